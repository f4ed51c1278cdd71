"""Asks an API server which of the needed rights the account lacks.

The law: all of them are asked about before the first write, so that no want of rights leaves half of a change.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dnsproxy.install.report.rights import Grant
from dnsproxy.ip_mode.rights import REVIEWS, make_review
from dnsproxy.ip_mode.survey import SECONDS
from sidecar.kubernetes.errors import Garbled
from sidecar.kubernetes.http import ApiClient


class _Verdict(msgspec.Struct, frozen=True):
    allowed: bool = False


class _Review(msgspec.Struct, frozen=True):
    status: _Verdict


async def missing_rights(client: ApiClient, grants: Iterable[Grant]) -> tuple[Grant, ...]:
    """Those that the account does not have, in order. Raises ApiError."""
    return tuple([grant for grant in grants if not await _is_allowed(client, grant)])


async def _is_allowed(client: ApiClient, grant: Grant) -> bool:
    content = msgspec.json.encode(make_review(grant))
    body = await client.change("POST", REVIEWS, {}, content, content_type="application/json", seconds=SECONDS)
    try:
        return msgspec.json.decode(body, type=_Review).status.allowed
    except msgspec.DecodeError as error:
        raise Garbled(str(error)) from error
