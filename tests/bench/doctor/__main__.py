"""`python -m tests.bench.doctor`: doctor, status and installer on a big cluster with a real API server.

The law: it measures and says so; a goal that is missed is a figure and no failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from sidecar.cli.options import Command, StartError
from tests.bench.doctor.commands import COMMANDS
from tests.bench.doctor.objects import MOST, Size
from tests.bench.doctor.report import format_table
from tests.bench.doctor.run import Options, run_bench
from tests.bench.kit.command import COULD_NOT, demand, interruptible, look_around, write_json
from tests.bench.kit.command_rows import Row
from tests.bench.kit.figures import rows_to_json
from tests.kit.processes import StartFailed

_COMMANDS = "\n".join(f"  {one.name:<10} {one.about}" for one in COMMANDS)
_DEFAULT = Size()

EPILOG = f"""\b
Commands:
{_COMMANDS}

\b
Examples:
  make bench-doctor                                 everything, some four minutes
  make bench-doctor ARGS='--command host --rounds 10'
  make bench-doctor ARGS='--data ~/.cache/bench-doctor --beside ../before'
                                                    keep the cluster; compare with another checkout

\b
Exit status: 0 measured, 2 bad usage, 3 could not measure.
"""


@click.command(cls=Command, epilog=EPILOG, context_settings={"auto_envvar_prefix": "BENCH"})
@click.option(
    "--command",
    "commands",
    type=click.Choice([one.name for one in COMMANDS]),
    multiple=True,
    help="Only this.  [default: all]",
)
@click.option("--ingresses", type=click.IntRange(1, MOST), default=_DEFAULT.ingresses, help="So many Ingresses.")
@click.option(
    "--services",
    type=click.IntRange(0, 20_000),
    default=_DEFAULT.services,
    help="So many Services, each with a Deployment and an EndpointSlice.",
)
@click.option("--nodes", type=click.IntRange(0, MOST), default=_DEFAULT.nodes, help="So many nodes.")
@click.option("--rounds", type=click.IntRange(1), default=5, help="How often each command is measured.")
@click.option(
    "--beside",
    type=click.Path(path_type=Path, exists=True, file_okay=False, resolve_path=True),
    help="Another checkout, whose commands take turns with ours.",
)
@click.option("--data", type=click.Path(path_type=Path), metavar="FOLDER", help="Keep the API server's data here.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), default="bench-doctor.json", help="All figures.")
@click.option("--pin/--no-pin", default=True, help="Commands on one processor, all else on the others.")
def main(json_file: Path, **values: Any) -> None:
    """Measure `dnsproxy doctor`, `status`, `install` and others on a big cluster with a real kube-apiserver."""
    options = make_options(**values)
    demand("etcd", "kube-apiserver")
    surroundings = look_around()
    rows = _run(options)
    click.echo(format_table(rows), nl=False)
    size = options.size
    how = {"ingresses": size.ingresses, "services": size.services, "nodes": size.nodes, "rounds": options.rounds}
    write_json(json_file, rows_to_json(rows, **how, pinned=options.pin, **surroundings))
    if not any(row.figure for row in rows):
        raise StartError("nothing was measured", status=COULD_NOT)


def _run(options: Options) -> list[Row]:
    try:
        with interruptible():
            return run_bench(options)
    except StartFailed as error:
        raise StartError(f"the API server: {error}", status=COULD_NOT) from error


def make_options(*, commands: Sequence[str], ingresses: int, services: int, nodes: int, **how: Any) -> Options:
    """Options from the command's values: every command, where none is named."""
    chosen = [one for one in COMMANDS if not commands or one.name in commands]
    return Options(chosen, Size(ingresses, services, nodes), **how)


if __name__ == "__main__":
    main()
