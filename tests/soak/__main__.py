"""`python -m tests.soak`: a real server under mixed traffic and faults for a given time, checked for growth.

The law: the verdict is about flatness and correctness, never about speed.
"""

from __future__ import annotations

import signal
import tempfile
from pathlib import Path

import click
import trio

from sidecar.cli.options import Command, StartError, run_program
from tests.bench.kit.command import COULD_NOT, look_around, write_json
from tests.kit.progress import Progress
from tests.soak.figures import judge_samples
from tests.soak.flatness import TooFew
from tests.soak.report import find_problems, format_report, to_json
from tests.soak.run import Found, Options, run_soak

EPILOG = """\b
What goes on:
  names of a table of 2,500 from ever new clients, with and without EDNS, in random case
  names outside it, to upstreams of which one refuses, and one loses, delays, forges and resets
  outages of one upstream, and of all of them
  TCP: pipelined questions, connections that are kept, dropped, slow, or that read nothing
  malformed messages, compression pointers in circles among them
  the hosts file replaced every three seconds

\b
Examples:
  make soak                                       twenty minutes
  make soak ARGS='--minutes 1440 --rate 300'      a day
  make soak ARGS='--minutes 1 --json /dev/null'   a look

\b
Exit status: 0 flat, 1 something grows or was wrong, 2 bad usage, 3 could not run.
"""


@click.command(cls=Command, epilog=EPILOG, context_settings={"auto_envvar_prefix": "SOAK"})
@click.option("--minutes", type=click.FloatRange(0.05, 60 * 24 * 31), default=20.0, help="Duration in minutes.")
@click.option("--rate", type=click.FloatRange(50, 20_000), default=1000.0, help="Questions per second, of all kinds.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), default="bench-soak.json", help="Output file.")
def main(minutes: float, rate: float, json_file: Path) -> None:
    """Soak `dnsproxy serve` in mixed traffic and check whether memory, descriptors or tasks grow."""
    run_program(_run, Options(seconds=minutes * 60, rate=rate), json_file)


async def _run(options: Options, json_file: Path) -> int:
    surroundings = look_around()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_end_on_sigterm)
        found = await _soak(options)
        nursery.cancel_scope.cancel()
    try:
        judged = judge_samples(found.samples)
    except TooFew as error:
        raise StartError(f"{error}; {found.gone or 'run longer'}", status=1 if found.gone else COULD_NOT) from None
    click.echo(format_report(found, judged), nl=False)
    write_json(json_file, to_json(found, judged, **surroundings))
    return 1 if find_problems(found, judged) else 0


async def _soak(options: Options) -> Found:
    progress = Progress(options.samples + 1)
    with tempfile.TemporaryDirectory(prefix="soak-", ignore_cleanup_errors=True) as folder:
        try:
            return await run_soak(options, Path(folder), progress)
        finally:
            progress.finish()


async def _end_on_sigterm() -> None:
    """SIGTERM unwinds like Ctrl-C, so that no server keeps running."""
    with trio.open_signal_receiver(signal.SIGTERM) as received:
        await anext(aiter(received))
        raise KeyboardInterrupt


if __name__ == "__main__":
    main()
