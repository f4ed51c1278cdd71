"""Many readers of one server's names, as many nodes have; a process of its own.

The law: each asks in its own turn, keeps its own tag, and what it is sent is thrown away: on a node that is another
processor's work.

    python -m tests.bench.readers.pollers PORT READERS INTERVAL SECONDS
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field

import trio

from dnsproxy.admin.publication_route import PATH
from sidecar.admin.asking import NoAnswer, get
from sidecar.values.endpoints import Endpoint
from tests.bench.kit.figures import percentile


@dataclass(slots=True)
class Polled:
    """What the readers were told, all together."""

    same: int = 0
    new: int = 0
    failed: int = 0
    octets: int = 0
    milliseconds: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Summary:
    """The same, summed up."""

    same: int
    new: int
    failed: int
    octets: int
    p99: float | None
    """Milliseconds of a look."""


def parse_summary(text: str) -> Summary:
    """What the process printed. Raises ValueError."""
    return Summary(**json.loads(text))


async def poll(port: int, *, readers: int, interval: float, seconds: float) -> Polled:
    """Poll for so many seconds."""
    polled = Polled()
    async with trio.open_nursery() as nursery:
        nursery.cancel_scope.deadline = trio.current_time() + seconds
        for _ in range(readers):
            nursery.start_soon(_read, Endpoint("127.0.0.1", port), interval, polled)
    return polled


async def _read(server: Endpoint, interval: float, polled: Polled) -> None:
    tag = ""
    await trio.sleep(random.uniform(0, interval))  # noqa: S311  # no secret
    while True:
        begun = trio.current_time()
        try:
            reply = await get(server, PATH, program="dnsproxy serve", headers={"If-None-Match": tag} if tag else {})
        except NoAnswer:
            polled.failed += 1
        else:
            tag = reply.tag
            polled.new += reply.modified
            polled.same += not reply.modified
            polled.octets += len(reply.body)
            polled.milliseconds.append((trio.current_time() - begun) * 1000)
        await trio.sleep_until(begun + interval)


def run_process(asking: Callable[..., Awaitable[Polled]]) -> None:
    """The process: `asking` is poll, or takes the same."""
    port, readers, interval, seconds = sys.argv[1:]
    polled = trio.run(lambda: asking(int(port), readers=int(readers), interval=float(interval), seconds=float(seconds)))
    summary = Summary(polled.same, polled.new, polled.failed, polled.octets, percentile(polled.milliseconds, 0.99))
    print(json.dumps(asdict(summary)))  # noqa: T201  # what it is for


if __name__ == "__main__":
    run_process(poll)
