"""The command line: parse, call, print. Exit codes: 0 done; 1 infeasible; 2 the input is wrong (one sentence)."""

from __future__ import annotations

import json
import os
import sys
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from counterpoise import __version__
from counterpoise._check import InputError, NothingFitsError, one_of

app = typer.Typer(
    name="counterpoise",
    help="Decide, and show, how private, how accurate and how explainable an image classifier is to be.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

INFEASIBLE, WRONG_INPUT, STOPPED = 1, 2, 130

StudyFile = Annotated[Path, typer.Argument(help="the study's TOML file ('counterpoise init' writes one)")]
Run = Annotated[Path, typer.Argument(help="the folder of a run ('counterpoise run … --out FOLDER' writes one)")]
Policy = Annotated[str, typer.Option(help="paper | unanimous | quorum | egalitarian | nash")]
Mode = Annotated[str, typer.Option(help="paper (the source's formulas) | measured (real attacks and faithfulness)")]
QuorumOf = Annotated[int | None, typer.Option("--quorum", help="how many parties must allow a cell (policy quorum)")]
Workers = Annotated[int | None, typer.Option(help="worker processes; default: one a core")]


def main() -> None:
    """Run a command; a user's mistake is one sentence on standard error."""
    try:
        app()
    except InputError as mistake:
        print(f"counterpoise: {mistake}", file=sys.stderr)
        sys.exit(INFEASIBLE if isinstance(mistake, NothingFitsError) else WRONG_INPUT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def _version(asked: bool) -> None:
    if asked:
        print(f"counterpoise {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    pass


@app.command(epilog="Example: counterpoise init study.toml")
def init(
    path: Annotated[Path, typer.Argument(help="where to write it")] = Path("study.toml"),
    force: Annotated[bool, typer.Option("--force", help="overwrite a file that is there")] = False,
) -> None:
    """Write a commented study that runs as it is."""
    from counterpoise._files import write

    if path.exists() and not force:
        raise InputError(f"{path}: is there already; name another file, or add --force to overwrite it.")
    try:
        write(path, files("counterpoise").joinpath("study.toml").read_bytes())
    except OSError as problem:
        raise InputError(f"{path}: cannot be written ({problem.strerror}).") from None
    print(f"Wrote {path}. Next: counterpoise plan {path}")


@app.command(epilog="Example: counterpoise plan study.toml")
def plan(study: StudyFile, workers: Workers = None) -> None:
    """Print the grid, epsilon of every degree, refusals, conflicts and the cost, before any training."""
    from counterpoise import _show
    from counterpoise._check import naming
    from counterpoise.executors import Processes
    from counterpoise.plan import preview
    from counterpoise.prepare import prepare
    from counterpoise.study import read

    pool = Processes(workers)
    whole = read(study)
    with naming(str(study)):
        prepared = prepare(whole)
        prepared.check_plans()
    _show.preview(Console(), preview(prepared), pool.workers)


@app.command(epilog="Example: counterpoise run study.toml --out runs/demo")
def run(
    study: StudyFile,
    out: Annotated[Path, typer.Option(help="the run's folder; an interrupted run in it is continued")],
    executor: Annotated[str, typer.Option(help="processes | serial")] = "processes",
    workers: Workers = None,
    seeds: Annotated[int | None, typer.Option(help="repeat with seeds 0 … N-1 instead of the study's")] = None,
    policy: Policy = "unanimous",
    mode: Mode = "measured",
    prove: Annotated[
        bool,
        typer.Option(
            "--prove", help="train only until the optimum of policy and mode is proved, and write a certificate"
        ),
    ] = False,
    until: Annotated[
        str | None,
        typer.Option(help="search the degree where a bound turns: 'non-discriminatory: class_leak <= 0.1'"),
    ] = None,
) -> None:
    """Train and measure what is missing, decide, and write the report."""
    kept = "before the first training"
    try:
        from counterpoise import _show
        from counterpoise._check import at_least
        from counterpoise._progress import Live
        from counterpoise.proving import Search
        from counterpoise.publish import describe, publish
        from counterpoise.running import everything
        from counterpoise.running import run as execute
        from counterpoise.store import Store
        from counterpoise.study import read
        from counterpoise.threshold import Threshold
        from counterpoise.tradeoff import choose as decide
        from counterpoise.tradeoff.modes import mode_named
        from counterpoise.tradeoff.policies import policy_named

        policy_named(policy), mode_named(mode)
        whole = read(study)
        if seeds is not None:
            at_least(1, seeds=seeds)
            whole = whole.model_copy(update={"seeds": tuple(range(seeds))})
        if prove and until is not None:
            raise InputError("--prove and --until are two orders of training; choose one.")
        search = Search(policy, mode) if prove else Threshold(until) if until is not None else None
        live = Live(Console())
        try:
            with live:
                results = execute(
                    whole,
                    out,
                    executor=executor,
                    workers=workers,
                    order=search or everything,
                    report=live.report,
                    started=live.started,
                    source=str(study),
                )
        finally:
            if live.total:
                kept = f"{live.finished} of {live.total} trainings are kept"
        print(f"{out}: {describe(results)}.")
        console = Console()
        for words in search.sentences if search else ():
            _show.say(console, words)
        decision = decide(results, policy=policy, mode=mode)
        _show.say(console, decision.sentence(), "bold")
        _show.files(console, publish(Store.open(out), results, decision))
    except KeyboardInterrupt:
        print(f"Stopped: {kept}; the same command goes on.", file=sys.stderr)
        raise typer.Exit(STOPPED) from None


def _on_request() -> tuple[str, ...]:
    from counterpoise.catalogue import requested_measures  # imports torch: only where it is needed

    return requested_measures()


@app.command(
    epilog="Example: counterpoise choose runs/demo --require 'hospital: epsilon <= 6' --policy unanimous --json"
)
def choose(
    folder: Run,
    require: Annotated[
        list[str] | None,
        typer.Option(
            help="a further requirement, of all parties ('epsilon <= 1') or of one ('hospital: epsilon <= 1')"
        ),
    ] = None,
    policy: Policy = "unanimous",
    mode: Mode = "measured",
    quorum: QuorumOf = None,
    shake: Annotated[bool, typer.Option("--shake", help="decide again with each measured input moved by 10 %")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print decision.json instead of text")] = False,
) -> None:
    """Decide over a finished run: the optimum, runners-up, regret, flip margin. Exit code 1 if nothing is feasible."""
    from counterpoise import _show
    from counterpoise.report import decision_json
    from counterpoise.store import Store
    from counterpoise.tradeoff import Choice, shaken
    from counterpoise.tradeoff import choose as decide
    from counterpoise.tradeoff.asking import refuse_unmeasured, with_requirements

    store = Store.open(folder)
    results = store.results()
    parties = with_requirements(results.parties, require or ())
    refuse_unmeasured(results, parties, _on_request)
    decision = decide(results, policy, mode, parties, quorum)
    if as_json:
        print(json.dumps(decision_json(results, decision, environment=store.manifest().environment), allow_nan=False))
    else:
        _show.decision(Console(), decision)
        if shake and decision.best is not None:
            _show.shakes(Console(), shaken(results, decision), decision.best.winner)
        for note in results.notes:
            print(note)
    if not any(isinstance(outcome, Choice) for outcome in decision.outcomes.values()):
        raise typer.Exit(INFEASIBLE)


@app.command(epilog="Example: counterpoise report runs/demo --policy nash")
def report(folder: Run, policy: Policy = "unanimous", mode: Mode = "measured", quorum: QuorumOf = None) -> None:
    """Write report.html, decision.json, matrix.csv and the figures of a finished run."""
    from counterpoise import _show
    from counterpoise.publish import campaign, publish
    from counterpoise.store import Store
    from counterpoise.tradeoff import choose as decide

    store = Store.open(folder)
    results = store.results()
    decision = decide(results, policy, mode, quorum=quorum)
    console = Console()
    _show.say(console, decision.sentence(), "bold")
    _show.budgets(console, campaign(results, decision))
    _show.files(console, publish(store, results, decision))


@app.command(epilog="Example: counterpoise explain runs/demo photo.png --out explained.png")
def explain(
    folder: Run,
    photo: Annotated[Path, typer.Argument(help="an image file")],
    out: Annotated[Path, typer.Option(help="where to write the picture")] = Path("explained.png"),
    party: Annotated[str | None, typer.Option(help="whose model; default: the first party's")] = None,
    explainer: Annotated[
        str | None, typer.Option(help="another than the study's: grad-cam, say ('counterpoise list explainers')")
    ] = None,
    policy: Policy = "unanimous",
    mode: Mode = "measured",
) -> None:
    """Predict one image with the chosen model, and draw why."""
    from counterpoise.explaining import explain_photo

    print(explain_photo(folder, photo, out, party, policy, mode, explainer))


@app.command(epilog="Example: counterpoise export runs/demo --split")
def export(
    folder: Run,
    split: Annotated[bool, typer.Option("--split", help="as two files that run apart, cut at a layer")] = False,
    release: Annotated[
        bool, typer.Option("--release", help="what images pass before the model, as files that run alone")
    ] = False,
    at: Annotated[
        str | None, typer.Option(help="with --split: the layer whose output is sent; default: the mechanism's own")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="where the files go; default: FOLDER/split or FOLDER/release")
    ] = None,
    party: Annotated[str | None, typer.Option(help="whose model; default: the first party's")] = None,
    policy: Policy = "unanimous",
    mode: Mode = "measured",
) -> None:
    """Write the chosen model, or its filter, for use elsewhere, and say what is known about it."""
    from counterpoise.releasing import chosen_release, export_release
    from counterpoise.splitting import export_split

    if split == release:
        raise InputError(
            "export: say what to write, one of: --split (two halves of the model), --release (its filter)."
        )
    if split:
        print(export_split(folder, out or folder / "split", at, party, policy, mode).sentence())
    elif at is not None:
        raise InputError("export: --at names a layer to cut at, so it goes with --split.")
    else:
        print(export_release(chosen_release(folder, party, policy, mode), out or folder / "release"))


@app.command(epilog="Example: counterpoise release runs/faces photos/ --out filtered/")
def release(
    folder: Run,
    photos: Annotated[Path, typer.Argument(help="an image file, or a folder of them")],
    out: Annotated[Path, typer.Option(help="the folder for filtered images")],
    party: Annotated[str | None, typer.Option(help="whose filter; default: the first party's")] = None,
    policy: Policy = "unanimous",
    mode: Mode = "measured",
) -> None:
    """Pass photos through the chosen model's filter: what anybody outside may see of them."""
    from counterpoise.releasing import chosen_release, release_folder

    try:
        print(release_folder(chosen_release(folder, party, policy, mode), photos, out))
    except KeyboardInterrupt:
        print(f"Stopped: the images in {out} are whole; the same command goes on.", file=sys.stderr)
        raise typer.Exit(STOPPED) from None


@app.command(epilog="Example: counterpoise reproduce abbasi-example")
def reproduce(
    name: Annotated[str, typer.Argument(help="which one ('counterpoise list reproductions')")],
    data: Annotated[Path | None, typer.Option(help="where the data files are; default: $COUNTERPOISE_DATA")] = None,
    scale: Annotated[str, typer.Option(help="quick | cpu | paper")] = "quick",
    out: Annotated[Path | None, typer.Option(help="where results go; default: runs/NAME")] = None,
) -> None:
    """Repeat a published result and print its numbers beside ours."""
    from counterpoise.reproduce import reproduction

    print(reproduction(name)(data, scale, out or Path("runs") / name))


@app.command("list", epilog="Example: counterpoise list measures")
def list_parts(
    room: Annotated[str, typer.Argument(help="datasets | models | mechanisms | explainers | measures | reproductions")],
) -> None:
    """Show the parts that a study can name, and where they come from."""
    from counterpoise import _show, catalogue, reproduce

    one_of((*catalogue.ROOMS, "reproductions"), room=room)
    found = reproduce.listing() if room == "reproductions" else catalogue.listing(room)
    _show.entries(Console(), room, found)
