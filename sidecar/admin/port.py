"""The admin port of a program: opened at its start, and served beside its work until it is cancelled.

The law: every program connects its readiness, metrics and pages to the port here. A program without an admin port runs
the same code, with nothing to serve. Each port has a registry of its own, never prometheus_client's global one, so that
two servers in one process do not share metrics.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType

import trio
from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sidecar.admin.answers import Readiness, Route
from sidecar.admin.page.history import EVERY, History
from sidecar.admin.server import serve_admin
from sidecar.sockets.listeners import bound_endpoint, listen_tcp
from sidecar.values.build import own_build
from sidecar.values.endpoints import Endpoint


def open_admin_port(endpoint: Endpoint | None, *, hosts: Iterable[str] = (), backlog: int = 4096) -> AdminPort:
    """Listen where `--admin` says; None is no port. Raises StartError, which names the flag.

    `hosts` are names by which clients may ask, from `--admin-host`, beside this host's own.
    """
    names = frozenset((*hosts, socket.gethostname().lower()))
    return AdminPort(None if endpoint is None else listen_tcp(endpoint, flag="--admin", backlog=backlog), names)


@dataclass(frozen=True, slots=True)
class AdminPort:
    """An open admin port, or none; as text its endpoint, or `off`. As a context manager it closes the socket."""

    listener: socket.socket | None
    names: frozenset[str] = frozenset()
    """The names by which clients may ask."""

    @property
    def endpoint(self) -> Endpoint | None:
        """Where it is bound."""
        return None if self.listener is None else bound_endpoint(self.listener)

    def __str__(self) -> str:
        return str(self.endpoint or "off")

    def __enter__(self) -> AdminPort:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.listener is not None:
            self.listener.close()

    async def serve(
        self,
        *collectors: Collector,
        prefix: str,
        readiness: Callable[[], Readiness | Awaitable[Readiness]],
        page: Callable[[], str],
        routes: Mapping[str, Route] | None = None,
        samples: tuple[History, Callable[[], Mapping[str, float]]] | None = None,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve until cancelled; returns at once where there is no port. `page` and `routes` as in serve_admin.

        `prefix` begins the names of the program's metrics. `samples` is a history and the function that reads the
        counters for it.
        """
        if self.listener is None:
            task_status.started()
            return
        async with trio.open_nursery() as nursery:
            if samples is not None:
                nursery.start_soon(_keep_sampling, *samples)
            await serve_admin(
                [self.listener],
                readiness=readiness,
                registry=make_registry(BuildCollector(prefix), *collectors),
                page=page,
                routes=routes or {},
                names=self.names,
                task_status=task_status,
            )


class BuildCollector(Collector):
    """States the build that runs, as PREFIX_build_info."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def collect(self) -> Iterator[Metric]:
        """See prometheus_client."""
        labels = own_build().labels()
        family = GaugeMetricFamily(
            f"{self._prefix}_build_info",
            "1; the version, commit and Python that run, `unknown` if not recorded.",
            labels=list(labels),
        )
        family.add_metric(list(labels.values()), 1)
        yield family


def make_registry(*collectors: Collector) -> CollectorRegistry:
    """The metrics of some collectors, and those of the process and the interpreter."""
    registry = CollectorRegistry()
    for collector in collectors:
        registry.register(collector)
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return registry


async def _keep_sampling(history: History, read: Callable[[], Mapping[str, float]]) -> None:
    """Take a sample every EVERY seconds, also without an open page: a page opened after a fault shows the fault."""
    while True:
        history.take(trio.current_time(), read())
        await trio.sleep(EVERY)
