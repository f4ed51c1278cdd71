"""Writes existing statuses anew: through the policy, or as VIP once it is gone.

The law: one failure does not stop the others. A deleted policy works for a moment longer, so a VIP that became Proxy is
written again, until the wait is over. What a program that watches the statuses has written again is a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Final

import trio

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.ip_mode.effect import PAUSE, WAIT_SECONDS, write_status
from dnsproxy.ip_mode.present import modes_of, ref_of
from dnsproxy.ip_mode.results import Rewrite
from dnsproxy.ip_mode.selection import PROXY
from dnsproxy.ip_mode.status_writes import make_empty, make_vip, status_path
from dnsproxy.ip_mode.survey import SECONDS
from sidecar.kubernetes.errors import ApiError, Forbidden, NotFound
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.one_shot import get_object
from sidecar.kubernetes.structs.network import Service
from sidecar.values.text import one_line

_WATCHER_SECONDS: Final = 3.0
"""Seconds before the last look: a program that watches the statuses writes them again within about one."""
_ATTEMPTS: Final = 3
"""For each Service, also after the wait."""


async def rewrite_all(
    client: ApiClient, services: Iterable[Service], mode: str, progress: Callable[[float], None]
) -> tuple[Rewrite, ...]:
    """Write the status of each Service until its entries have this ipMode; never raises ApiError."""
    started = trio.current_time()
    return tuple([await _rewrite(client, service, mode, started, progress) for service in services])


async def look_again(client: ApiClient, rewrites: tuple[Rewrite, ...], mode: str) -> tuple[Rewrite, ...]:
    """The outcomes as another look finds them, if a status was written; never raises ApiError.

    What was written again is written once more: its writer may have asked while the deleted policy still worked.
    """
    if not any(one.result == "rewritten" for one in rewrites):
        return rewrites
    seen = await _see_later(client, rewrites, mode)
    undone = [after.service for before, after in zip(rewrites, seen, strict=True) if after.failure != before.failure]
    for ref in undone:
        with suppress(ApiError):
            await _write_once(client, ref, mode)
    return await _see_later(client, rewrites, mode) if undone else seen


async def _rewrite(
    client: ApiClient, service: Service, mode: str, started: float, progress: Callable[[float], None]
) -> Rewrite:
    ref, before = ref_of(service), modes_of(service)
    attempts = 0
    while True:
        attempts += 1
        try:
            after = modes_of(await _write_once(client, ref, mode))
            if set(after) <= {mode}:
                return Rewrite(ref, before, after)
            failure = f"it is still {', '.join(after)}"
        except NotFound:
            return Rewrite(ref, before, before, gone=True)
        except ApiError as error:
            after, failure = before, one_line(str(error))
            if isinstance(error, Forbidden):
                return Rewrite(ref, before, before, failure=failure)
        passed = trio.current_time() - started
        if attempts >= _ATTEMPTS and passed > WAIT_SECONDS:
            return Rewrite(ref, before, after, failure=failure)
        progress(passed)
        await trio.sleep(PAUSE)


async def _see_later(client: ApiClient, rewrites: tuple[Rewrite, ...], mode: str) -> tuple[Rewrite, ...]:
    await trio.sleep(_WATCHER_SECONDS)
    return tuple([await _seen_again(client, one, mode) for one in rewrites])


async def _seen_again(client: ApiClient, rewrite: Rewrite, mode: str) -> Rewrite:
    if rewrite.failure or rewrite.gone:
        return rewrite
    try:
        after = modes_of(await get_object(client, status_path(rewrite.service), Service, seconds=SECONDS))
    except NotFound:
        return replace(rewrite, gone=True)
    except ApiError as error:
        return replace(rewrite, failure=f"whether it stays so is unknown: {one_line(str(error))}")
    if set(after) <= {mode}:
        return rewrite
    again = "its provider, or a program such as `dnsproxy ip-mode --watch`, has written it again"
    return replace(rewrite, after=after, failure=again)


async def _write_once(client: ApiClient, ref: ObjectRef, mode: str) -> Service:
    """The Service as it is stored now. Raises ApiError."""
    service = await get_object(client, status_path(ref), Service, seconds=SECONDS)
    if set(modes_of(service)) <= {mode}:
        return service
    return await write_status(client, make_empty(ref) if mode == PROXY else make_vip(ref, service))
