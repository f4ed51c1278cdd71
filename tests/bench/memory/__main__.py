"""`python -m tests.bench.memory`: what the long-running commands take at rest, and to their first answer.

The law: it measures and says so; a goal that is missed is a figure and no failure.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from sidecar.cli.options import Command, StartError
from tests.bench.kit.command import COULD_NOT, interruptible, look_around, write_json
from tests.bench.kit.figures import rows_to_json
from tests.bench.memory.commands import COMMANDS
from tests.bench.memory.report import format_table
from tests.bench.memory.run import Options, run_bench

EPILOG = """\b
Examples:
  make bench-memory                                 everything, half a minute
  make bench-memory ARGS='--beside ../before'       compare with another checkout

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
@click.option("--rounds", type=click.IntRange(1), default=5, help="How often each command is started.")
@click.option("--rest", type=click.FloatRange(0), default=2.0, help="Seconds from the first answer to the reading.")
@click.option(
    "--beside",
    type=click.Path(path_type=Path, exists=True, file_okay=False, resolve_path=True),
    help="Another checkout, whose commands take turns with ours.",
)
@click.option(
    "--python",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    default=sys.executable,
    help="The interpreter of the commands, with what they need. That of a development environment has packages "
    "(rich, greenlet) that structlog imports, and an image has not.",
)
@click.option("--json", "json_file", type=click.Path(path_type=Path), default="bench-memory.json", help="All figures.")
def main(json_file: Path, commands: Sequence[str], **how: Any) -> None:
    """Measure the memory and the processor time of `dnsproxy serve`, `proxy` and `wholeip run` (root), at rest."""
    chosen = [one for one in COMMANDS if not commands or one.name in commands]
    options = Options(chosen, **how)
    surroundings = look_around()
    with interruptible():
        rows = run_bench(options)
    click.echo(format_table(rows), nl=False)
    write_json(json_file, rows_to_json(rows, rounds=options.rounds, rest=options.rest, **surroundings))
    if not any(row.figure for row in rows):
        raise StartError("nothing was measured", status=COULD_NOT)


if __name__ == "__main__":
    main()
