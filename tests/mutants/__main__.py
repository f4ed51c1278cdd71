"""`python -m tests.mutants`: small faults, one after the other, and whether a test notices each of them.

The law: the judged tree is only read. Figures go to stdout, the progress to stderr.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from operator import methodcaller
from pathlib import Path
from typing import Final

import click

from tests.bench.kit.command import interruptible
from tests.kit.progress import Progress
from tests.mutants.court import Court, namespace
from tests.mutants.judges import PACKAGES, Judges, source_files
from tests.mutants.judging import Judging
from tests.mutants.operators import mutants_of
from tests.mutants.record import GONE, SURVIVED, Verdict, draw_sample, fallen, format_table, from_json, to_json

ROOT: Final = Path(__file__).parents[2]
FELL: Final = 1

EPILOG = """\b
Examples:
  make mutants                                                the sample, some 30 minutes
  make mutants ARGS='--again tests/mutants/record.json'       whether what was noticed then is noticed now
  make mutants ARGS='--only dnsproxy/zone --one-of 10'        more of one folder
  make mutants ARGS='--show tests/mutants/record.json'        the table, and what survived

\b
Exit status: 0 judged, 1 what was noticed before is not noticed any more, 2 bad usage, 3 tests cannot be run.
"""

_FILE: Final = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command(epilog=EPILOG, context_settings={"auto_envvar_prefix": "MUTANTS"})
@click.option(
    "--one-of", type=click.IntRange(1), default=140, help="One of so many mutants of each folder, at least 3."
)
@click.option("--seed", type=int, default=0, help="Another seed, another sample.")
@click.option("--only", type=str, default="", metavar="PATH", help="Only files whose path begins so.")
@click.option("--again", type=_FILE, help="Judge the mutants of this record, each first by the test that noticed it.")
@click.option("--survivors", is_flag=True, help="With --again: also those that nothing noticed.")
@click.option("--show", type=_FILE, help="Print this record and judge nothing.")
@click.option("--workers", type=click.IntRange(1, 64), default=1, help="So many mutants at the same time.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), default="build/mutants.json", help="The record.")
def main(
    *,
    one_of: int,
    seed: int,
    only: str,
    again: Path | None,
    survivors: bool,
    show: Path | None,
    workers: int,
    json_file: Path,
) -> None:
    """Judge a sample of mutants by the tests that import the mutated module; the same sample for the same sources."""
    if show:
        verdicts = _read(show)
        click.echo(format_table(verdicts), nl=False)
        _print_mutants("survived", [one for one in verdicts if one.outcome == SURVIVED])
        return
    before = [one for one in _read(again) if one.file.startswith(only)] if again else []
    kept = [one for one in before if one.outcome == SURVIVED and not survivors]
    if again:
        tasks = [methodcaller("judge_again", one) for one in before if one not in kept]
    else:
        mutants = {file: mutants_of((ROOT / file).read_bytes()) for file in source_files(ROOT) if file.startswith(only)}
        sample = draw_sample(mutants, one_of=one_of, seed=seed)
        if not sample:
            raise click.UsageError(f"no mutants there; the packages are {', '.join(PACKAGES)}")
        tasks = [methodcaller("judge", file, one) for file, one in sample]
    json_file.parent.mkdir(parents=True, exist_ok=True)
    verdicts = kept
    with interruptible():
        for verdict in judge_all(tasks, workers):
            verdicts = sorted([*verdicts, verdict], key=lambda one: (one.file, one.line, one.operator, one.index))
            # After each, so that an interrupted run leaves a record.
            json_file.write_text(to_json(verdicts), encoding="utf-8")
    click.echo(format_table(verdicts, before), nl=False)
    _print_mutants("gone", [one for one in verdicts if one.outcome == GONE])
    if lost := fallen(verdicts, before):
        _print_mutants("noticed before, and not now", lost)
        raise SystemExit(FELL)


def judge_all(tasks: Sequence[Callable[[Judging], Verdict]], workers: int) -> Iterator[Verdict]:
    """Each task gets a court to itself. The verdicts are in the order of the tasks."""
    judges, prefix = Judges(ROOT), namespace()
    progress = Progress(len(tasks))
    courts: queue.SimpleQueue[Judging] = queue.SimpleQueue()

    def judge(task: Callable[[Judging], Verdict]) -> Verdict:
        judging, began = courts.get(), time.monotonic()
        try:
            verdict = task(judging)
        finally:
            courts.put(judging)
        progress.step(f"{verdict.outcome:8} {time.monotonic() - began:5.1f} s  {verdict.name}  {verdict.killer}")
        return verdict

    with ExitStack() as stack:
        for _ in range(workers):
            court = stack.enter_context(Court(ROOT, prefix=prefix))
            courts.put(Judging(ROOT, court, judges))
        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(judge, tasks)
    progress.finish()


def _read(record: Path) -> list[Verdict]:
    try:
        return from_json(record.read_text(encoding="utf-8"))
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise click.UsageError(f"{record} is no record of mutants: {error}") from error


def _print_mutants(title: str, verdicts: Sequence[Verdict]) -> None:
    if verdicts:
        click.echo(f"\n{title}:")
    for verdict in verdicts:
        click.echo(f"  {verdict.name}{_change(verdict)}")


def _change(verdict: Verdict) -> str:
    """What the mutant replaces; empty if it is gone."""
    path = ROOT / verdict.file
    source = path.read_bytes() if path.exists() else b""
    for one in mutants_of(source):
        if (one.function, one.operator, one.index) == (verdict.function, verdict.operator, verdict.index):
            return f": {' '.join(source[one.start : one.end].decode().split())} -> {one.after}"
    return ""


if __name__ == "__main__":
    main()
