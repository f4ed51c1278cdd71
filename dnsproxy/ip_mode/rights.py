"""The rights that --apply and --remove take.

The law: they follow from the command line and from the Services that it is about, so that a second run needs no other
ones; every object that can be named is. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.doctor.judge.mutating_admission import GROUP
from dnsproxy.install.report.rights import Grant
from dnsproxy.ip_mode.policy import NAME
from dnsproxy.ip_mode.present import PLURALS
from dnsproxy.ip_mode.request import WriteRequest

ROLE_NAME: Final = "dnsproxy-ip-mode"
REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
"""Where an API server says what the asking account may do; every account may ask."""
_STATUS: Final = "services/status"
_VERBS: Final = {"apply": ("get", "patch", "create"), "remove": ("get", "delete")}


def rights_of(mode: str, request: WriteRequest, statuses: Iterable[ObjectRef]) -> tuple[Grant, ...]:
    """The rights of a mode; `statuses` are the Services whose status is written, on trial or to stay."""
    return tuple(dict.fromkeys(_rights(mode, request, statuses)))


def _rights(mode: str, request: WriteRequest, statuses: Iterable[ObjectRef]) -> Iterator[Grant]:
    for plural in PLURALS.values():
        yield from (Grant("", GROUP, plural, NAME, verb) for verb in _VERBS[mode])
    for ref in request.services:
        yield from (Grant(ref.namespace, "", "services", ref.name, verb) for verb in ("get", "patch"))
    if mode == "apply":
        # Their providerID tells whose load balancers these are.
        yield Grant("", "", "nodes", None, "list")
    if request.lists:
        yield Grant("", "", "services", None, "list")
    for ref in statuses:
        yield from (Grant(ref.namespace, "", _STATUS, ref.name, verb) for verb in ("get", "patch"))


def make_review(grant: Grant) -> dict[str, Any]:
    """The question whether the asking account has a right."""
    plural, _, subresource = grant.plural.partition("/")
    attributes = {"namespace": grant.namespace, "group": grant.group, "resource": plural, "verb": grant.verb}
    optional = {"subresource": subresource, "name": grant.name or ""}
    return {"spec": {"resourceAttributes": attributes | {key: text for key, text in optional.items() if text}}}
