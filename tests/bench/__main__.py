"""`python -m tests.bench`: every benchmark in a given time, and one page of all figures.

The law: it measures and says so; a slow figure is a figure and no failure.
"""

from __future__ import annotations

import datetime
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click

from docs.speed.page import format_page
from docs.speed.run import Machine, Run, format_run
from docs.speed.tables import RECORDED, update_readme
from sidecar.cli.options import Command, StartError
from tests.bench.kit.command import COULD_NOT, interruptible, look_around
from tests.bench.whole.machine import read_commit, read_machine, read_programs
from tests.bench.whole.part import Part
from tests.bench.whole.parts import PARTS
from tests.bench.whole.report import format_run_as_text
from tests.bench.whole.run import Found, run_parts
from tests.bench.whole.status import Status
from tests.kit.launched import ROOT

FAILED = 1
README = ROOT / "README.md"
_RECORD_HELP = (
    "Also write docs/speed.json, and the README's table from it. Every part then has its rounds, "
    "even if all take longer than --minutes."
)

EPILOG = """\b
Parts:
{parts}

\b
Examples:
  make bench                                            everything, in 20 minutes
  make bench ARGS='--minutes 60'                        more rounds of each
  make bench ARGS='--only dns --only relay --minutes 8'
  make bench ARGS='--output json' > run.json
  make bench ARGS='--record --beside "nothing else"'    the figures of the guide and the README

\b
Exit status: 0 measured, also if programs are missing, which the page says; 1 a part failed; 2 bad usage;
3 nothing could be measured.
"""


@click.command(
    cls=Command,
    epilog=EPILOG.format(parts="\n".join(f"  {one.name:<15} {one.title}" for one in PARTS)),
    context_settings={"auto_envvar_prefix": "BENCH"},
)
@click.option("--minutes", type=click.FloatRange(1, 600), default=20.0, help="How long all of it may take.")
@click.option("--only", type=click.Choice([one.name for one in PARTS]), multiple=True, help="Only this; repeatable.")
@click.option("--quick", is_flag=True, help="As little as can be: do all parts work?")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", help="What to print.")
@click.option("--folder", type=click.Path(path_type=Path), default="build/bench", help="For the page and all figures.")
@click.option("--beside", default="", metavar="TEXT", help="What else runs on the machine, for the page.")
@click.option("--record", is_flag=True, help=_RECORD_HELP)
def main(
    *, minutes: float, only: Sequence[str], quick: bool, output: str, folder: Path, beside: str, record: bool
) -> None:
    """Measure Switchback beside its peers, and write one page with charts."""
    if record and (only or quick):
        raise click.UsageError("--record replaces all recorded figures: not with --only or --quick")
    parts = [one for one in PARTS if not only or one.name in only]
    folder = _make_folder(folder)
    look_around()
    run = _measure(parts, minutes * 60, quick=quick, whole=record, folder=folder, beside=beside)
    (folder / "run.json").write_text(format_run(run), encoding="utf-8")
    page = folder / "index.html"
    page.write_text(format_page(run), encoding="utf-8")
    click.echo(format_run(run) if output == "json" else format_run_as_text(run), nl=False)
    click.echo(f"\npage: {page}", err=output == "json")
    if not run.rows:
        raise StartError("nothing was measured", status=COULD_NOT)
    if record:
        _record(run)
    if any(one.failed for one in run.benches):
        sys.exit(FAILED)


def _measure(parts: Sequence[Part], seconds: float, *, quick: bool, whole: bool, folder: Path, beside: str) -> Run:
    # Read first: the work tree may get another commit meanwhile.
    machine, commit, begun, status = read_machine(beside), read_commit(), time.monotonic(), Status()
    try:
        with interruptible():
            found = run_parts(parts, seconds=seconds, quick=quick, whole=whole, folder=folder, tell=status.tell)
    finally:
        status.finish()
    return _make_run(found, machine=machine, commit=commit, minutes=(time.monotonic() - begun) / 60)


def _make_run(found: Found, *, machine: Machine, commit: str, minutes: float) -> Run:
    return Run(
        date=datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        commit=commit,
        minutes=round(minutes, 1),
        machine=machine,
        programs=read_programs(),
        benches=found.benches,
        rows=found.rows,
    )


def _make_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StartError(f"--folder {folder}: {error.strerror}", status=COULD_NOT) from error
    return folder.resolve()


def _record(run: Run) -> None:
    """The guide's figures, and the README's table."""
    RECORDED.write_text(format_run(run), encoding="utf-8")
    README.write_text(update_readme(README.read_text(encoding="utf-8"), run), encoding="utf-8")


if __name__ == "__main__":
    main()
