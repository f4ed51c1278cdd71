"""Where and how everything is measured: an API server with its objects, and servers of ours one after the other.

The law: whoever measures gets a fresh server and a fresh folder, gone with their block.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.kit.cpus import Cpus
from tests.bench.sync.contents import Contents
from tests.bench.sync.ours import POD, Ours, Way, serving
from tests.bench.sync.samples import S, take_rounds
from tests.kit.apiserver import ApiServer


@dataclass(frozen=True, slots=True)
class Bench:
    """One API server, what it has, and how often and how long to measure."""

    api: ApiServer
    contents: Contents
    size: int
    """Objects."""
    cpus: Cpus
    rounds: int
    tries: int
    seconds: float
    upstream: int
    """The port of an upstream of loopback."""
    realtime: bool = False
    """Whether nothing else has our server's processor while it is ready to run."""

    def take(self, take: Callable[[], S]) -> list[S]:
        """A sample for each round."""
        return take_rounds(take, rounds=self.rounds, tries=self.tries)

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """A folder for the time of a block."""
        with tempfile.TemporaryDirectory(prefix="bench-sync-") as name:
            yield Path(name)

    @contextmanager
    def server(self, *, way: Way = POD, profile: Path | None = None) -> Iterator[Ours]:
        """A server of ours for the time of a block."""
        how: dict[str, Any] = {"cpus": self.cpus.server, "upstream": self.upstream, "realtime": self.realtime}
        how |= {"sources": self.contents.sources, "way": way, "profile": profile}
        with self.folder() as folder, serving(self.api, folder, **how) as ours:
            yield ours
