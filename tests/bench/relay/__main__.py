"""`python -m tests.bench.relay`: the relay beside every other that is installed.

The law: it measures and says so; a slow figure is a figure and no failure.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from sidecar.cli.options import Command, StartError
from tests.bench.kit.command import COULD_NOT, interruptible, look_around, tell_missing, write_json
from tests.bench.kit.cpus import split_cpus
from tests.bench.kit.figures import rows_to_json
from tests.bench.kit.interpreters import CannotUse, find_optimised, prepare, prepare_named
from tests.bench.kit.profiling import make_profiles
from tests.bench.kit.rounds import Measured, count_steps
from tests.bench.relay.measuring import Plan, measure_all, pairs_of
from tests.bench.relay.network import describe_network, enter_own_network
from tests.bench.relay.peers import OURS, PEERS, Peer, missing_peers, ours_with, peers_for
from tests.bench.relay.profiling import profile as profile_workload
from tests.bench.relay.report import format_others, format_table, make_rows
from tests.bench.relay.rig import Rig
from tests.bench.relay.samples import Sample
from tests.bench.relay.workloads import WORKLOADS, Kind, Workload
from tests.kit.programs import find_program
from tests.kit.progress import Progress

MODULE = "tests.bench.relay"

EPILOG = """\b
Workloads:
{workloads}

\b
Examples:
  make bench-relay                                everything, some ten minutes
  make bench-relay ARGS='--workload new --workload keep-alive --rounds 5'
  make bench-relay ARGS=--long                    the transfers of 5 GB, too
  REQUIRE_PEERS=1 make bench-relay                a missing peer is an error

\b
Exit status: 0 measured, 2 bad usage, 3 could not measure.
"""


def choose(names: Sequence[str], *, long: bool) -> list[Workload]:
    """The workloads that are named; where none is, all but the long ones."""
    if names:
        return [workload for workload in WORKLOADS if workload.name in names]
    return [workload for workload in WORKLOADS if long or not workload.only_if_named]


@click.command(
    cls=Command,
    epilog=EPILOG.format(workloads="\n".join(f"  {each.name:<12} {each.about}" for each in WORKLOADS)),
    context_settings={"auto_envvar_prefix": "BENCH"},
)
@click.option(
    "--workload", type=click.Choice([each.name for each in WORKLOADS]), multiple=True, help="Only this; repeatable."
)
@click.option(
    "--relay", type=click.Choice([each.label for each in PEERS]), multiple=True, help="Only this; repeatable."
)
@click.option(
    "--python",
    multiple=True,
    metavar="PROGRAM",
    help="Measure ours with this Python, too; repeatable.  [default: those on the PATH that were optimised]",
)
@click.option("--long", is_flag=True, help="The transfers of 5 GB, too.")
@click.option("--rounds", type=click.IntRange(1), default=3, help="How often each relay is measured.")
@click.option("--seconds", type=click.FloatRange(0.2, 3600), default=3.0, help="How long each time.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), default="bench-relay.json", help="All figures.")
@click.option("--pin/--no-pin", default=True, help="Relays on one processor, the load on the others.")
@click.option(
    "--own-network/--no-own-network", default=True, help="In a network namespace where nothing is paced (no BBR)."
)
@click.option("--profile", is_flag=True, help="Show where ours spends its time, with perf and strace.")
def main(
    *,
    workload: Sequence[str],
    relay: Sequence[str],
    python: Sequence[str],
    long: bool,
    rounds: int,
    seconds: float,
    json_file: Path,
    pin: bool,
    own_network: bool,
    profile: bool,
) -> None:
    """Measure `proxy` side by side with other relays."""
    if own_network:
        enter_own_network(MODULE)
    missing = [*missing_peers(), *(["wrk"] if find_program("wrk") is None else [])]
    tell_missing(missing)
    surroundings = look_around()
    chosen = choose(workload, long=long)
    more = _other_pythons(python)
    plan = [(each, peers_for(each, relay, more=more)) for each in chosen]
    with interruptible():
        measured, profiles = _run(plan, rounds=rounds, seconds=seconds, pin=pin, profiling=profile)
    rows = make_rows(chosen, measured)
    others = {peer.label: make_rows(chosen, measured, ours=peer.label) for peer in more}
    network = describe_network()
    click.echo(
        "\n\n".join(
            [
                format_table(rows) + f"network: {network}; Python: {os.path.realpath(sys.executable)}\n",
                *([format_others(others)] if others else []),
                *profiles,
            ]
        ),
        nl=False,
    )
    how = {"rounds": rounds, "seconds": seconds, "pinned": pin, "missing": missing, "network": network}
    with_other_pythons = {label: rows_to_json(each)["rows"] for label, each in others.items()}
    write_json(json_file, rows_to_json(rows, **how, **surroundings, with_other_pythons=with_other_pythons))
    if (not relay or OURS in relay) and not any(row.relay == OURS and row.summary for row in rows):
        raise StartError("nothing of ours was measured", status=COULD_NOT)


def _run(plan: Plan, *, rounds: int, seconds: float, pin: bool, profiling: bool) -> tuple[Measured[Sample], list[str]]:
    cpus = split_cpus(os.sched_getaffinity(0), pin=pin)
    profiled = [workload for workload, _ in plan if profiling and workload.kind is not Kind.IDLE]
    progress = Progress(count_steps(pairs_of(plan), rounds=rounds) + len(profiled))
    try:
        with Rig(cpus=cpus) as rig:
            measured = measure_all(rig, plan, rounds=rounds, seconds=seconds, progress=progress)
            return measured, make_profiles(profiled, partial(profile_workload, rig, seconds=seconds), progress=progress)
    finally:
        progress.finish()


def _other_pythons(named: Sequence[str]) -> list[Peer]:
    """Ours with other Pythons. One that was found and cannot be used is left out; one that was named is an error."""
    if named:
        return [ours_with(label, program) for label, program in prepare_named(named)]
    peers = []
    for one in find_optimised():
        try:
            peers.append(ours_with(one.label, prepare(one)))
        except CannotUse as error:
            click.echo(f"left out: {error}", err=True)
    return peers


if __name__ == "__main__":
    main()
