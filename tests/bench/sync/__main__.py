"""`python -m tests.bench.sync`: how fast and how large our server is with many objects on a real API server.

The law: it measures and says so; a goal that is missed is a figure and no failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from sidecar.cli.options import Command, StartError
from tests.bench.kit.command import COULD_NOT, demand, interruptible, look_around, write_json
from tests.bench.sync.filling import MOST
from tests.bench.sync.measuring import MEASUREMENTS
from tests.bench.sync.report import SIZES, format_table, to_json
from tests.bench.sync.run import Found, Options, run_bench
from tests.kit.processes import StartFailed

_NAMES = [one.name for one in MEASUREMENTS]
_MEASUREMENTS = "\n".join(f"  {one.name:<12} {one.about}" for one in MEASUREMENTS)

EPILOG = f"""\b
Measurements:
{_MEASUREMENTS}

\b
Examples:
  make bench-sync                                 everything, some fifteen minutes
  make bench-sync ARGS='--size 10000 --measure start --measure informer'
  make bench-sync ARGS='--data ~/.cache/bench-sync --fill'
                                                  only make the Ingresses, for the runs to come
  make bench-sync ARGS='--data ~/.cache/bench-sync --measure changes'
  make bench-sync ARGS='--size 100000 --measure mixed'

\b
Exit status: 0 measured, 2 bad usage, 3 could not measure.
"""


@click.command(cls=Command, epilog=EPILOG, context_settings={"auto_envvar_prefix": "BENCH"})
@click.option("--size", type=click.IntRange(1, MOST), multiple=True, default=SIZES, help="So many objects.")
@click.option(
    "--measure", type=click.Choice([*(one.name for one in MEASUREMENTS), "all"]), multiple=True, help="Only this."
)
@click.option("--rounds", type=click.IntRange(1), default=3, help="How often each is measured.")
@click.option("--tries", type=click.IntRange(1), default=3, help="How often a round that others disturb is taken.")
@click.option(
    "--seconds", type=click.FloatRange(0.5, 3600), default=10.0, help="How long names are created or changed."
)
@click.option("--data", type=click.Path(path_type=Path), metavar="FOLDER", help="Keep the API server's data here.")
@click.option("--fill", is_flag=True, help="Only make the Ingresses.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), default="bench-sync.json", help="All figures.")
@click.option("--pin/--no-pin", default=True, help="Our server on one processor, all else on the others.")
@click.option("--realtime", is_flag=True, help="Our server before all else on its processor (root): others stay out.")
@click.option("--profile", is_flag=True, help="Show where our server spends its time until it is ready.")
def main(json_file: Path, **values: Any) -> None:
    """Measure `dnsproxy serve` with many Ingresses, or objects of mixed kinds, on a real kube-apiserver."""
    options = make_options(**values)
    demand("etcd", "kube-apiserver")
    surroundings = look_around()
    found = _run(options)
    if not options.measurements and not options.profile:
        return
    click.echo("\n\n".join([format_table(found.rows), *found.profiles]), nl=False)
    how = {
        "rounds": options.rounds,
        "tries": options.tries,
        "seconds": options.seconds,
        "pinned": options.pin,
        "realtime": options.realtime,
    }
    write_json(json_file, to_json(found.rows, **how, **surroundings))
    if options.measurements and not found.has_any:
        raise StartError("nothing was measured", status=COULD_NOT)


def _run(options: Options) -> Found:
    try:
        with interruptible():
            return run_bench(options)
    except StartFailed as error:
        raise StartError(f"the API server: {error}", status=COULD_NOT) from error


def make_options(*, size: Sequence[int], measure: Sequence[str], fill: bool, profile: bool, **how: Any) -> Options:
    """Options from the command's values: every measurement, where neither one nor anything else is named."""
    everything = "all" in measure or not (measure or fill or profile)
    chosen = [one for one in MEASUREMENTS if everything or one.name in measure]
    return Options(sizes=tuple(dict.fromkeys(size)), measurements=chosen, profile=profile, **how)


if __name__ == "__main__":
    main()
