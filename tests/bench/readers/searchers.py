"""People who search one server's names on its pages; a process of its own.

The law: each asks once in an interval, for other words each time: part of a name, so that a few are found or thousands.

    python -m tests.bench.readers.searchers PORT PEOPLE INTERVAL SECONDS
"""

from __future__ import annotations

import random

import trio

from sidecar.admin.asking import NoAnswer, get
from sidecar.values.endpoints import Endpoint
from tests.bench.readers.pollers import Polled, run_process


async def search(port: int, *, readers: int, interval: float, seconds: float) -> Polled:
    """Search for so many seconds."""
    polled = Polled()
    async with trio.open_nursery() as nursery:
        nursery.cancel_scope.deadline = trio.current_time() + seconds
        for _ in range(readers):
            nursery.start_soon(_search, Endpoint("127.0.0.1", port), interval, polled)
    return polled


async def _search(server: Endpoint, interval: float, polled: Polled) -> None:
    await trio.sleep(random.uniform(0, interval))  # noqa: S311  # no secret
    while True:
        begun = trio.current_time()
        number = random.randrange(10 ** random.randrange(1, 6))  # noqa: S311  # no secret
        try:
            reply = await get(server, f"/names?q=h{number}", program="dnsproxy serve")
        except NoAnswer:
            polled.failed += 1
        else:
            polled.new += 1
            polled.octets += len(reply.body)
            polled.milliseconds.append((trio.current_time() - begun) * 1000)
        await trio.sleep_until(begun + interval)


if __name__ == "__main__":
    run_process(search)
