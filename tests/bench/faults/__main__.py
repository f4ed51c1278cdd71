"""`python -m tests.bench.faults`: what a fault of dnsproxy costs the lookups behind a real CoreDNS with our stanza.

The law: it measures and says so; a goal that is missed is a figure and no failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from sidecar.cli.options import Command, StartError
from tests.bench.faults.measuring import FAULTS
from tests.bench.faults.report import format_table, to_json
from tests.bench.faults.run import Options, run_bench
from tests.bench.kit.command import COULD_NOT, demand, interruptible, look_around, write_json

_PEERS: Final = {"newest": "coredns", "oldest": "coredns-old"}
_FAULTS: Final = "\n".join(f"  {fault.name:<12} {fault.about}" for fault in FAULTS)
_STOCK: Final = ("max_concurrent 1000",)
"""What kubeadm, minikube, kops, kubespray and Talos write into their forward."""

EPILOG = f"""\b
Faults:
{_FAULTS}

\b
Examples:
  make bench-faults                               everything, some three minutes
  make bench-faults ARGS='--fault hung --coredns newest --rounds 3'
  make bench-faults ARGS='--option "max_fails 2" --option "max_concurrent 20000"'

\b
Exit status: 0 measured, 2 bad usage, 3 could not measure.
"""


@click.command(cls=Command, epilog=EPILOG, context_settings={"auto_envvar_prefix": "BENCH"})
@click.option("--fault", type=click.Choice([fault.name for fault in FAULTS]), multiple=True, help="Only this.")
@click.option("--coredns", type=click.Choice(list(_PEERS)), multiple=True, help="Only behind this one.")
@click.option("--rounds", type=click.IntRange(1), default=1, help="How often each is measured.")
@click.option(
    "--rate", type=click.FloatRange(10, 5000), default=2000.0, help="Lookups a second, half of them in the table."
)
@click.option("--seconds", type=click.FloatRange(1, 60), default=9.0, help="How long a fault lasts.")
@click.option("--option", "forward", multiple=True, default=_STOCK, help="Of the forward that was there before ours.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), default="bench-faults.json", help="All figures.")
def main(json_file: Path, **values: Any) -> None:
    """Kill, stop and cut off `dnsproxy serve` behind a real CoreDNS, and count what fails and what is slow."""
    options = make_options(**values)
    demand(*options.peers, "nsd")
    surroundings = look_around()
    with interruptible():
        rows = run_bench(options)
    click.echo(format_table(rows), nl=False)
    how = {"rounds": options.rounds, "rate": options.rate, "seconds": options.seconds, "forward": options.forward}
    write_json(json_file, to_json(rows, **how, **surroundings))
    if all(row.outcome is None for row in rows):
        raise StartError("nothing was measured", status=COULD_NOT)


def make_options(*, fault: Sequence[str], coredns: Sequence[str], **how: Any) -> Options:
    """Options from the command's values: everything, where nothing is named."""
    peers = [peer for name, peer in _PEERS.items() if not coredns or name in coredns]
    return Options(peers=peers, faults=[one for one in FAULTS if not fault or one.name in fault], **how)


if __name__ == "__main__":
    main()
