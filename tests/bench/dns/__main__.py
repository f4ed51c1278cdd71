"""`python -m tests.bench.dns`: the DNS server beside every other that is installed.

The law: it measures and says so; a slow figure is a figure and no failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from sidecar.cli.options import Command, StartError
from tests.bench.dns.disturbing import DISTURBANCES, Disturbance
from tests.bench.dns.peers import OURS, PEERS, missing_programs, ours_with
from tests.bench.dns.report import format_table
from tests.bench.dns.run import Options, run_bench
from tests.bench.dns.workloads import WORKLOADS, Workload
from tests.bench.kit.command import COULD_NOT, interruptible, look_around, tell_missing, write_json
from tests.bench.kit.figures import rows_to_json
from tests.bench.kit.interpreters import prepare_named
from tests.kit.programs import find_program

EPILOG = """\b
Workloads:
{workloads}

\b
Disturbances:
{disturbances}

\b
Examples:
  make bench-dns                                  everything, some ten minutes
  make bench-dns ARGS='--workload table --rounds 5'
  make bench-dns ARGS='--workload table --python python3.14'
  make bench-dns ARGS='--disturb all --seconds 10'
  REQUIRE_PEERS=1 make bench-dns                  a missing peer is an error

\b
Exit status: 0 measured, 2 bad usage, 3 could not measure.
"""

Named = TypeVar("Named", Workload, Disturbance)


def _describe(things: Sequence[Workload] | Sequence[Disturbance]) -> str:
    return "\n".join(f"  {thing.name:<12} {thing.about}" for thing in things)


def _chosen(things: Sequence[Named], names: Sequence[str], *, everything: bool) -> list[Named]:
    return [thing for thing in things if everything or thing.name in names or "all" in names]


def _choice(things: Sequence[Workload] | Sequence[Disturbance]) -> click.Choice[str]:
    return click.Choice([*(thing.name for thing in things), "all"])


@click.command(
    cls=Command,
    epilog=EPILOG.format(workloads=_describe(WORKLOADS), disturbances=_describe(DISTURBANCES)),
    context_settings={"auto_envvar_prefix": "BENCH"},
)
@click.option("--workload", type=_choice(WORKLOADS), multiple=True, help="Only this; more than once for several.")
@click.option("--disturb", type=_choice(DISTURBANCES), multiple=True, help="Only the answer times during this.")
@click.option(
    "--server",
    "servers",
    type=click.Choice(list(dict.fromkeys(peer.label for peer in PEERS))),
    multiple=True,
    help="Only this; repeatable.",
)
@click.option("--python", multiple=True, metavar="PROGRAM", help="Measure ours with this Python, too; repeatable.")
@click.option("--rounds", type=click.IntRange(1), default=3, help="How often each server is measured.")
@click.option("--seconds", type=click.FloatRange(0.2, 3600), default=3.0, help="How long each time.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), default="bench-dns.json", help="All figures.")
@click.option("--pin/--no-pin", default=True, help="Servers on one processor, the load on the others.")
@click.option("--profile", is_flag=True, help="Show where ours spends its time, with perf and strace.")
def main(json_file: Path, **values: Any) -> None:
    """Measure `dnsproxy serve` side by side with other servers."""
    options = make_options(**values)
    dnsperf = _find_dnsperf(options)
    missing = missing_programs()
    tell_missing(missing)
    surroundings = look_around()
    with interruptible():
        found = run_bench(options, dnsperf=dnsperf)
    click.echo("\n\n".join([format_table(found.rows), *found.profiles]), nl=False)
    how = {"rounds": options.rounds, "seconds": options.seconds, "pinned": options.pin, "missing": missing}
    write_json(json_file, rows_to_json(found.rows, **how, **surroundings))
    if (not options.servers or OURS in options.servers) and not found.has_ours:
        raise StartError("nothing of ours was measured", status=COULD_NOT)


def make_options(*, workload: Sequence[str], disturb: Sequence[str], python: Sequence[str] = (), **how: Any) -> Options:
    """Options from the command's values: everything, where nothing is named."""
    everything = not workload and not disturb
    return Options(
        workloads=_chosen(WORKLOADS, workload, everything=everything),
        disturbances=_chosen(DISTURBANCES, disturb, everything=everything),
        more=[ours_with(label, program) for label, program in prepare_named(python)],
        **how,
    )


def _find_dnsperf(options: Options) -> str:
    program = find_program("dnsperf")
    if program is None and options.workloads:
        raise StartError("dnsperf is not installed (`make peers` brings it)", status=COULD_NOT)
    return program or "dnsperf"


if __name__ == "__main__":
    main()
