"""`python -m tests.bench.wholeip_events`: how soon a change of the cluster is in the kernel of a node.

The law: it measures and says so; a goal that is missed is a figure and no failure.
"""

from __future__ import annotations

from pathlib import Path

import click

from sidecar.cli.options import Command
from sidecar.cli.program import INTERRUPTED
from tests.bench.kit.command import demand, ending_on_sigterm, look_around, write_json
from tests.bench.wholeip_events.report import format_figures, to_json
from tests.bench.wholeip_events.run import measure

EPILOG = """\b
A real API server, agent and kernel, in a network of their own: so many Services with a pod each, then one pod
after the other gets another address. Each time counts from the request that changes the slice to the kernel's element.

\b
Exit status: 0 measured, 2 bad usage, 3 could not measure.
"""


@click.command(cls=Command, epilog=EPILOG, context_settings={"auto_envvar_prefix": "BENCH"})
@click.option("--services", type=click.IntRange(1, 10_000), default=1_000, help="How many there are.")
@click.option("--changes", type=click.IntRange(1), default=300, help="How often a pod gets another address.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), default="bench-events.json", help="All figures.")
def main(services: int, changes: int, json_file: Path) -> None:
    """Measure from an event of the cluster to the rule in the kernel. Takes root."""
    demand("nft", "ip", "etcd", "kube-apiserver", root=True)
    surroundings = look_around()
    try:
        with ending_on_sigterm():
            figures = measure(services, changes)
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    click.echo(format_figures(figures))
    write_json(json_file, to_json(figures, **surroundings))


if __name__ == "__main__":
    main()
