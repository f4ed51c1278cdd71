"""Whether the policy is in effect: what the API server would store if a provider wrote VIP now.

The law: the answer is the API server's own, to a dry run that changes nothing, before the policy is written and after.
A policy takes a moment to work after it was written, so a no is one only at the end of the wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

import msgspec
import trio

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.install.change.config_map import Write
from dnsproxy.ip_mode.changes import Refusal
from dnsproxy.ip_mode.present import modes_of, points_of, ref_of
from dnsproxy.ip_mode.results import Effect, Proof
from dnsproxy.ip_mode.selection import PROXY
from dnsproxy.ip_mode.status_writes import make_trial
from dnsproxy.ip_mode.survey import SECONDS
from sidecar.kubernetes.errors import ApiError, Forbidden, Garbled, NotFound, Refused
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.protocol import FAULTS
from sidecar.kubernetes.structs.network import Service
from sidecar.values.text import one_line

WAIT_SECONDS: Final = 30.0
"""Seconds. API servers follow the policies by a watch and compile them; that takes a second or two."""
PAUSE: Final = 0.5
"""Seconds between two questions."""
_WITHOUT_TRIAL: Final = "does not support dry run"
"""What the API server says of a webhook that it may not ask without a write: nothing is known then."""
_WOULD_FAIL: Final = "then each write of its provider would be refused"


async def prove(
    client: ApiClient, service: Service, progress: Callable[[float], None], *, seconds: float = WAIT_SECONDS
) -> Proof:
    """Ask until the policy is in effect for the Service, or the wait is over; never raises ApiError."""
    ref = ref_of(service)
    started = trio.current_time()
    while True:
        proof = await _ask(client, ref, service)
        passed = trio.current_time() - started
        if proof is not None and (proof.effect is Effect.YES or proof.service is None):
            return replace(proof, service=ref)
        if passed >= seconds:
            return proof or Proof(Effect.NO, ref, _why_not(ref, seconds))
        progress(passed)
        await trio.sleep(PAUSE)


async def refuse_denied(client: ApiClient, services: Iterable[Service]) -> tuple[Refusal, ...]:
    """The Services for which the API server refuses a status with ipMode Proxy. Raises ApiError.

    Another policy or a webhook may deny it; then each write of the provider would be refused, with all that it says.
    """
    found = []
    for service in services:
        ref = ref_of(service)
        try:
            await write_status(client, make_trial(ref, points_of(service), PROXY))
        except (Forbidden, Refused) as error:
            if _WITHOUT_TRIAL not in str(error):
                why = f"may not have ipMode {PROXY}: {error}; {_WOULD_FAIL}"
                found.append(Refusal(f"Service {ref}", one_line(why)))
        except NotFound:
            continue
    return tuple(found)


async def write_status(client: ApiClient, write: Write) -> Service:
    """The Service as the API server stores it, or would. Raises ApiError."""
    body = await client.change(
        write.method, write.path, write.params, write.content, content_type=write.content_type, seconds=SECONDS
    )
    try:
        return msgspec.json.decode(body, type=Service)
    except FAULTS as error:
        raise Garbled(str(error)) from error


async def _ask(client: ApiClient, ref: ObjectRef, service: Service) -> Proof | None:
    """None for a no; without a Service, if asking again cannot help."""
    try:
        answer = await write_status(client, make_trial(ref, points_of(service)))
    except NotFound:
        return Proof(Effect.UNKNOWN, None, f"Service {ref} was deleted meanwhile: run this again")
    except (Forbidden, Refused) as error:
        refused = _WITHOUT_TRIAL not in str(error)
        return Proof(Effect.UNKNOWN, None, one_line(f"Service {ref} does not tell: {error}"), refused=refused)
    except ApiError as error:
        return Proof(Effect.UNKNOWN, ref, one_line(f"Service {ref} does not tell: {error}"))
    if set(modes_of(answer)) == {PROXY}:
        return Proof(Effect.YES, ref, f"a status that a provider writes as VIP for Service {ref} becomes {PROXY}")
    return None


def _why_not(ref: ObjectRef, seconds: float) -> str:
    after = f"after {seconds:.0f} s " if seconds else ""
    return (
        f"{after}a status that a provider writes as VIP for Service {ref} stays VIP: see the API "
        "server's metrics and log for errors of the policy switchback-ip-mode"
    )
