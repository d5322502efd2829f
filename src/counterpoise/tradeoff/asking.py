"""Further requirements at the time of choosing: 'epsilon <= 1' of all parties, 'hospital: epsilon <= 1' of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from counterpoise._check import InputError
from counterpoise.record import Party, Results
from counterpoise.tradeoff.ranges import check_reachable
from counterpoise.tradeoff.requirements import parse


def with_requirements(parties: Sequence[Party], wishes: Sequence[str]) -> tuple[Party, ...]:
    """The parties with the wishes added to what they require already."""
    found = {party.name: party for party in parties}
    for wish in wishes:
        who, colon, words = wish.rpartition(":")
        who, words = who.strip(), words.strip()
        check_reachable(parse(words))
        if colon and who not in found:
            raise InputError(f"requirement {wish!r}: there is no party {who!r}; parties: {', '.join(found)}.")
        for name in [who] if colon else list(found):
            found[name] = replace(found[name], requires=(*found[name].requires, words))
    return tuple(found.values())


def refuse_unmeasured(results: Results, parties: Sequence[Party], on_request: Callable[[], Iterable[str]]) -> None:
    """Raise where a wish is about something that can be measured, but was not in this run.

    `on_request` gives the names of the measures that a study has to ask for; it is called only where a wish is about
    something that the run does not have, because finding them takes a while.
    """
    found = results.measured()
    for party in parties:
        for words in party.requires:
            quantity = parse(words).quantity
            if found and quantity not in found and quantity.partition("_of_")[0] in on_request():
                raise InputError(
                    f"party {party.name!r}: '{words}' is about {quantity!r}, which is measured on request only, and"
                    " this run was not asked: list it under [[measures]] in the study, or in a party's requires, and"
                    " run the study again."
                )
