"""Further requirements at the time of choosing: 'epsilon <= 1' of all parties, 'hospital: epsilon <= 1' of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from counterpoise._check import InputError
from counterpoise.record import Party
from counterpoise.tradeoff.requirements import parse


def with_requirements(parties: Sequence[Party], wishes: Sequence[str]) -> tuple[Party, ...]:
    """The parties with the wishes added to what they require already."""
    found = {party.name: party for party in parties}
    for wish in wishes:
        who, colon, words = wish.rpartition(":")
        who, words = who.strip(), words.strip()
        parse(words)
        if colon and who not in found:
            raise InputError(f"requirement {wish!r}: there is no party {who!r}; parties: {', '.join(found)}.")
        for name in [who] if colon else list(found):
            found[name] = replace(found[name], requires=(*found[name].requires, words))
    return tuple(found.values())
