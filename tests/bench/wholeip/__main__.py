"""`python -m tests.bench.wholeip`: what our rules cost the traffic, and how soon they are the kernel's.

The law: it measures and says so; a goal that is missed is a figure and no failure.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from sidecar.cli.options import Command
from sidecar.cli.program import INTERRUPTED
from tests.bench.kit.command import demand, ending_on_sigterm, look_around, write_json
from tests.bench.wholeip.applying import Applied, Ended, measure_applying, measure_ending
from tests.bench.wholeip.report import format_applied, format_ended, format_resync, format_traffic, to_json
from tests.bench.wholeip.resync import Resync, measure_resync
from tests.bench.wholeip.traffic import Traffic, measure_traffic
from tests.bench.wholeip.ways import WAYS
from tests.kit.progress import Progress
from tests.wholeip.scene.cluster import cluster

_PARTS: Final = ("traffic", "applying", "ending", "resync")
_COUNTS: Final = (1_000, 10_000)

EPILOG = """\b
Parts:
  traffic    throughput and processor time, without a mapping, with ours, and with cozy-proxy's chains
  applying   seconds until 1,000 and 10,000 mappings, and one more, are the kernel's and reach a packet
  ending     seconds to end flows that a filter no longer allows
  resync     milliseconds of a change while the agent compares 10,000 mappings with the kernel

\b
Examples:
  make bench-wholeip                                  everything, some three minutes
  make bench-wholeip ARGS='--part traffic --rounds 5'

\b
Exit status: 0 measured, 2 bad usage, 3 could not measure.
"""


@click.command(cls=Command, epilog=EPILOG, context_settings={"auto_envvar_prefix": "BENCH"})
@click.option("--part", "parts", type=click.Choice(_PARTS), multiple=True, default=_PARTS, help="Only this.")
@click.option("--rounds", type=click.IntRange(1), default=3, help="How often each way is measured.")
@click.option("--seconds", type=click.FloatRange(1, 60), default=2.0, help="How long each kind of traffic is.")
@click.option("--changes", "times", type=click.IntRange(1), default=50, help="How often a mapping comes and goes.")
@click.option("--meanwhile", type=click.IntRange(1), default=200, help="How many changes there are during comparisons.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), default="bench-wholeip.json", help="All figures.")
def main(parts: tuple[str, ...], rounds: int, seconds: float, times: int, meanwhile: int, json_file: Path) -> None:
    """Measure the rules of wholeip between a client, a node and a pod in network namespaces. Takes root."""
    demand("nft", "ip", "iperf3", "conntrack", root=True)
    surroundings = look_around()
    traffic: list[Traffic] = []
    applied: list[Applied] = []
    ended: Ended | None = None
    resync: Resync | None = None
    steps = {"traffic": len(WAYS) * rounds, "applying": len(_COUNTS), "ending": 1, "resync": 1}
    progress = Progress(sum(steps[one] for one in parts))
    try:
        with ending_on_sigterm(), cluster() as made:
            # The client has no way to a pod's own address but for this.
            made.client.ip("route add 10.244.0.0/24 via 198.51.100.11\n")
            if "traffic" in parts:
                traffic = measure_traffic(made, rounds, seconds, progress)
            if "applying" in parts:
                applied = measure_applying(made, _COUNTS, times, progress)
            if "ending" in parts:
                ended = measure_ending(made, progress)
            if "resync" in parts:
                resync = measure_resync(made, max(_COUNTS), meanwhile, progress)
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    finally:
        progress.finish()
    texts = [
        traffic and format_traffic(traffic),
        applied and format_applied(applied),
        ended and format_ended(ended),
        resync and format_resync(resync),
    ]
    click.echo("\n".join(text for text in texts if text), nl=False)
    write_json(json_file, to_json(traffic, applied, ended, resync, rounds=rounds, seconds=seconds, **surroundings))


if __name__ == "__main__":
    main()
