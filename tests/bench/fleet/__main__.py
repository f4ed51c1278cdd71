"""`python -m tests.bench.fleet`: a primary with thousands of secondaries, ours beside BIND and NSD.

The law: it measures and says so; a goal that is missed is a figure and no failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from sidecar.cli.options import Command, StartError
from tests.bench.fleet.measuring import WORKLOADS
from tests.bench.fleet.primaries import KINDS, OURS, missing_programs
from tests.bench.fleet.report import format_table, to_json
from tests.bench.fleet.run import ZONES, Found, Options, chosen_workloads, run_bench
from tests.bench.kit.command import COULD_NOT, demand, interruptible, look_around, tell_missing, write_json
from tests.kit.processes import StartFailed

_WORKLOADS = "\n".join(f"  {one.name:<10} {one.about}" for one in WORKLOADS)

EPILOG = f"""\b
Workloads:
{_WORKLOADS}

\b
Examples:
  make bench-fleet                                everything, some fifteen minutes
  make bench-fleet ARGS='--workload change --secondaries 500'
  make bench-fleet ARGS='--server ours --zone policy --names 10000 --seconds 5'

\b
Exit status: 0 measured, 2 bad usage, 3 could not measure.
"""


@click.command(cls=Command, epilog=EPILOG, context_settings={"auto_envvar_prefix": "BENCH"})
@click.option(
    "--workload", type=click.Choice([one.name for one in WORKLOADS]), multiple=True, help="Only this, and rollout."
)
@click.option("--server", type=click.Choice([one.label for one in KINDS]), multiple=True, help="Only this, and ours.")
@click.option("--zone", type=click.Choice(list(ZONES)), default="table", help="Which of the two zones is transferred.")
@click.option("--names", type=click.IntRange(1, 1_000_000), default=100_000, help="Names in the zone.")
@click.option("--secondaries", type=click.IntRange(1, 10_000), default=2_000, help="How many there are.")
@click.option("--changes", type=click.IntRange(1), default=10, help="Single changes that are waited for.")
@click.option("--rate", type=click.FloatRange(0.1, 1000), default=100.0, help="Changes a second.")
@click.option("--seconds", type=click.FloatRange(0.5, 3600), default=60.0, help="How long so many are made.")
@click.option("--replicas", type=click.IntRange(0, 100), default=3, help="Real dnsproxys among the secondaries.")
@click.option("--rounds", type=click.IntRange(1), default=3, help="How often each server is measured.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), default="bench-fleet.json", help="All figures.")
@click.option("--pin/--no-pin", default=True, help="The primary on one processor, all else on the others.")
@click.option("--priority", is_flag=True, help="Primary and secondaries before all else on their processors.")
def main(json_file: Path, **values: Any) -> None:
    """Measure a primary with thousands of secondaries. Takes root."""
    options = make_options(**values)
    demand("ip", "unshare", "etcd", "kube-apiserver", root=True)
    missing = missing_programs()
    tell_missing([program for program in missing if any(kind.program == program for kind in options.kinds)])
    surroundings = look_around()
    found = _run(options, missing)
    servers = [kind.label for kind in options.kinds]
    click.echo(format_table(found.rows, servers, found.faults), nl=False)
    how = {
        name: values[name]
        for name in ("zone", "names", "secondaries", "changes", "rate", "seconds", "rounds", "pin", "priority")
    }
    write_json(json_file, to_json(found.rows, **how, missing=missing, faults=found.faults, **surroundings))
    if not any(found.samples.get(OURS, [])):
        raise StartError("nothing of ours was measured", status=COULD_NOT)


def _run(options: Options, missing: Sequence[str]) -> Found:
    present = [kind for kind in options.kinds if kind.program not in missing]
    try:
        with interruptible():
            return run_bench(Options(**{**_fields(options), "kinds": present}))
    except StartFailed as error:
        raise StartError(f"the API server: {error}", status=COULD_NOT) from error


def make_options(*, workload: Sequence[str], server: Sequence[str], **how: Any) -> Options:
    """Options from the command's values: everything, where nothing is named."""
    kinds = [kind for kind in KINDS if not server or kind.label in server or kind.label == OURS]
    return Options(workloads=chosen_workloads(workload), kinds=kinds, **how)


def _fields(options: Options) -> dict[str, Any]:
    return {name: getattr(options, name) for name in Options.__slots__}


if __name__ == "__main__":
    main()
