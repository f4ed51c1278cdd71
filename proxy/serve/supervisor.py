"""Runs several workers on the same ports, with one admin port for all of them.

The law: the supervisor relays nothing. It reserves the ports, starts and replaces the workers, passes the stop signal
on to them, serves the admin port, and is the last to exit. Each worker has its own listeners, so a dead worker gets no
clients.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

import structlog
import trio
from prometheus_client.registry import Collector

from proxy.admin.server import View, serve_relay_admin
from proxy.backends.backend import Backend
from proxy.backends.discovery import follow_backends
from proxy.route_services.ports import LiveRoute
from proxy.route_services.starting import beside, make_followed_routes, reserve
from proxy.routes import ROUTE_FLAG
from proxy.serve.access_log import access_log
from proxy.serve.claimed_ports import ClaimedPorts
from proxy.serve.fleet import Fleet
from proxy.serve.program import log_routes
from proxy.serve.worker_reports import share_of
from proxy.serve.worker_settings import WorkerSettings
from proxy.settings import Settings
from proxy.tap.tap import Tap
from sidecar.admin.port import AdminPort, open_admin_port
from sidecar.cli.signals import run_until_signal
from sidecar.sockets.listeners import bound_endpoint, claim_tcp
from sidecar.values.endpoints import Endpoint

log: structlog.stdlib.BoundLogger = structlog.get_logger()


async def supervise(
    settings: Settings,
    admin: Endpoint | None,
    admin_hosts: tuple[str, ...],
    drain: float,
    workers: int,
    log_format: str | None,
    log_level: str,
) -> int:
    """Run `workers` processes until SIGTERM or SIGINT, then drain; returns the exit status. Raises StartError."""
    with ExitStack() as stack:
        claimed = [
            stack.enter_context(claim_tcp(route.listen, flag=ROUTE_FLAG, is_first=True)) for route in settings.routes
        ]
        port = stack.enter_context(open_admin_port(admin, hosts=admin_hosts, backlog=128))
        # By now, port 0 has become a number that all workers share.
        routes = tuple(
            dataclasses.replace(route, listen=bound_endpoint(claim))
            for route, claim in zip(settings.routes, claimed, strict=True)
        )
        services = reserve(settings.route_services, [route.listen for route in routes], port.endpoint)
        settings = dataclasses.replace(settings, routes=routes, route_services=services)
        each = dataclasses.replace(settings, max_connections=share_of(settings.max_connections, workers=workers))
        starting = [WorkerSettings(number, each, drain, log_format, log_level) for number in range(1, workers + 1)]
        claims = stack.enter_context(ClaimedPorts())
        tap = Tap()
        async with access_log(tap, on=settings.access_log) as collectors:
            serve = functools.partial(_supervise, starting, settings, port, claims, tap, collectors)
            return await run_until_signal(serve, grace=drain)


async def _supervise(
    workers: Sequence[WorkerSettings],
    settings: Settings,
    port: AdminPort,
    claims: ClaimedPorts,
    tap: Tap,
    collectors: Sequence[Collector],
    stopping: trio.Event,
) -> None:
    endpoints = [route.listen for route in settings.routes]
    backends = {route.backend: Backend(route.backend, listeners=endpoints) for route in settings.routes}
    routes = make_followed_routes(settings.route_services, claims, beside(endpoints, backends.values()))
    note_elsewhere = _ignore if routes is None else routes.table.note_elsewhere
    fleet = Fleet(workers, tap=tap, on_failures=note_elsewhere)
    view = View(
        settings,
        [LiveRoute(route, backends[route.backend]) for route in settings.routes],
        counters=fleet.counters,
        limit=lambda: fleet.limit,
        fault=fleet.fault,
        tap=tap,
        collectors=[fleet, *collectors],
        table=None if routes is None else routes.table,
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(follow_backends, list(backends.values()), settings)
        await nursery.start(serve_relay_admin, view, port, stopping)
        if routes is not None:
            await nursery.start(routes.run, settings, stopping)
        async with trio.open_nursery() as working:
            for worker in fleet.workers:
                await working.start(fleet.keep_working, worker, stopping)
            log_routes(view)
            log.info("limits", connections=fleet.limit, workers=len(fleet.workers))
        nursery.cancel_scope.cancel()


def _ignore(_who: str, _failures: Mapping[int, str]) -> None:
    """Without routes from Services no worker opens ports."""
