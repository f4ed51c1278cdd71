"""Runs the trial of --check: Proxy, dial, and the status as it was.

The law: whatever ends the trial (an answer, the time, a signal, an error), the status is restored, and tried again for
a minute if the API server is away; if that fails too, the command that does it is part of the result. A write whose end
is unknown may still be made, so that the status is looked at until it cannot be. What was not written is not restored.
"""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import trio

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.doctor.collect.dial_targets import DialTarget
from dnsproxy.doctor.collect.dialling import dial_all
from dnsproxy.doctor.facts.probes import Probe
from dnsproxy.doctor.judge.header_mode import is_understood
from dnsproxy.ip_mode.check.trial_plan import format_restoring, make_write, modes_before, restoring
from dnsproxy.ip_mode.check.trial_result import Trial
from dnsproxy.ip_mode.effect import write_status
from dnsproxy.ip_mode.present import points_of, service_path
from dnsproxy.ip_mode.selection import PROXY
from dnsproxy.ip_mode.survey import SECONDS
from sidecar.kubernetes.errors import ApiError, NotFound, ServerTrouble
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.one_shot import get_object
from sidecar.kubernetes.structs.network import Service
from sidecar.values.text import one_line

LASTS: Final = 30.0
"""Seconds with Proxy: data planes follow a status within a second or two, and some balancers check health first."""
RESTORES: Final = 60.0
"""Seconds in which the status is restored."""
LANDS: Final = SECONDS + 5.0
"""Seconds after which a write without an answer is not made any more: the API server is told the same deadline."""
_PAUSE: Final = 1.0
_DIAL_SECONDS: Final = 8.0
_ENDING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


async def run_trial(
    client: ApiClient, ref: ObjectRef, targets: Sequence[DialTarget], progress: Callable[[str], None]
) -> Trial:
    """The trial of one Service; never raises ApiError. A signal ends it early."""
    before = (await dial_all(targets, seconds=_DIAL_SECONDS)).results
    if before and all(map(is_understood, before)):
        return Trial(before, failure="every port answered before ipMode was written, so a trial shows nothing")
    try:
        service = await get_object(client, service_path(ref), Service, seconds=SECONDS)
    except ApiError as error:
        return Trial(before, failure=one_line(str(error)))
    if not modes_before(points_of(service)):
        return Trial(before, failure="meanwhile its status has ipMode Proxy, or no address, so there is nothing to try")
    with trio.open_signal_receiver(*_ENDING) as signals:
        return await _try(client, ref, service, Trial(before), partial(_until_signal, signals, targets, progress))


async def _try(
    client: ApiClient, ref: ObjectRef, service: Service, trial: Trial, look: Callable[[Trial], Awaitable[Trial]]
) -> Trial:
    """Write Proxy, look, and restore."""
    unsure = False
    try:
        await _write_proxy(client, ref, service)
    except ServerTrouble as error:
        unsure = True
        trial = replace(trial, failure=one_line(f"whether ipMode was written is not known: {error}"))
    except ApiError as error:
        return replace(trial, failure=one_line(f"ipMode could not be written: {error}"))
    try:
        trial = trial if unsure else await look(trial)
    finally:
        with trio.CancelScope(shield=True):
            left = await _restore(client, ref, service, lands=LANDS if unsure else 0.0)
    return replace(trial, left=left)


async def _write_proxy(client: ApiClient, ref: ObjectRef, service: Service) -> None:
    """Never interrupted, because a write that nobody waits for may be made after the status was restored."""
    points = points_of(service)
    operations = restoring(points, dict.fromkeys(modes_before(points), PROXY))
    write = make_write(ref, operations, service.metadata.resource_version)
    with trio.CancelScope(shield=True):
        await write_status(client, replace(write, params={"timeout": f"{SECONDS:.0f}s"}))


async def _until_signal(
    signals: AsyncIterator[int], targets: Sequence[DialTarget], progress: Callable[[str], None], trial: Trial
) -> Trial:
    """The trial with what was seen until a signal came."""
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_end_at, signals, scope)
            trial = await _dial_with_proxy(targets, trial, progress)
            nursery.cancel_scope.cancel()
    return replace(trial, failure="ended by a signal") if scope.cancelled_caught else trial


async def _end_at(signals: AsyncIterator[int], scope: trio.CancelScope) -> None:
    await anext(signals)
    scope.cancel()


async def _dial_with_proxy(targets: Sequence[DialTarget], trial: Trial, progress: Callable[[str], None]) -> Trial:
    """The trial with what was seen while ipMode was Proxy."""
    started = trio.current_time()
    after: tuple[Probe, ...] = ()
    passed = 0.0
    while passed < LASTS:
        progress(f"trying ipMode Proxy, {passed:.0f} of at most {LASTS:.0f} s")
        after = (await dial_all(targets, seconds=_DIAL_SECONDS)).results
        passed = trio.current_time() - started
        if len(after) == len(targets) and all(map(is_understood, after)):
            break
        await trio.sleep(_PAUSE)
    return replace(trial, after=after, seconds=passed)


async def _restore(client: ApiClient, ref: ObjectRef, service: Service, *, lands: float) -> str:
    """Write the ipModes of before; the command that does it, if it could not be done.

    `lands`: seconds for which a write of Proxy may still be made.
    """
    points, landed = points_of(service), trio.current_time() + lands
    before = modes_before(points)
    with trio.move_on_after(RESTORES):
        while True:
            try:
                now = await get_object(client, service_path(ref), Service, seconds=SECONDS)
                operations = restoring(points_of(now), before)
                if operations:
                    now = await write_status(client, make_write(ref, operations, now.metadata.resource_version))
                points = points_of(now)
                if not restoring(points, before) and trio.current_time() >= landed:
                    return ""
            except NotFound:
                return ""
            except ApiError:
                pass
            await trio.sleep(_PAUSE)
    return format_restoring(ref, points, before)
