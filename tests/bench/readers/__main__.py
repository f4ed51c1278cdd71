"""`python -m tests.bench.readers`: what it costs one server that many nodes read its names, or people search.

The law: it measures and says so; a figure that is bad is a figure and no failure.
"""

from __future__ import annotations

import click

from sidecar.cli.options import Command
from tests.bench.kit.command import ending_on_sigterm, look_around
from tests.bench.readers.run import Figure, Options, run

_COLUMNS = "{:<34} {:>8} {:>9} {:>9} {:>8} {:>8} {:>8} {:>9} {:>9}"


@click.command(cls=Command, context_settings={"auto_envvar_prefix": "BENCH"})
@click.option("--names", type=click.IntRange(1), default=10_000, help="In the table.")
@click.option("--readers", type=click.IntRange(1), default=500, help="Nodes.")
@click.option("--interval", type=click.FloatRange(0.1), default=10.0, help="Seconds between two looks of one.")
@click.option("--people", type=click.IntRange(1), default=20, help="Who search on the pages.")
@click.option("--pause", type=click.FloatRange(0.01), default=1.0, help="Seconds between two searches of one.")
@click.option("--seconds", type=click.FloatRange(1), default=10.0, help="Of each scene.")
def main(*, names: int, readers: int, interval: float, people: int, pause: float, seconds: float) -> None:
    """Measure a server whose names are read by many nodes or searched by people, and its DNS beside."""
    look_around()
    click.echo(f"{names:,} names, {readers} readers that look every {interval:g} s; a change every {interval:g} s")
    click.echo(f"{people} people who search every {pause:g} s")
    click.echo(_COLUMNS.format("", "CPU %", "DNS p50", "DNS p99", "lost", "304", "200", "look p99", "MB sent"))
    with ending_on_sigterm():
        for figure in run(Options(names, readers, interval, people, pause, seconds)):
            click.echo(_line(figure))


def _line(figure: Figure) -> str:
    dns, readers = figure.dns, figure.readers
    told = [readers.same, readers.new, _ms(readers.p99), f"{readers.octets / 1e6:.1f}"] if readers else ["-"] * 4
    line = _COLUMNS.format(figure.scene.about, f"{figure.cpu:.1%}", _ms(dns.p50), _ms(dns.p99), dns.lost, *told)
    return f"{line}  {readers.failed} failed" if readers and readers.failed else line


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} ms"


if __name__ == "__main__":
    main()
