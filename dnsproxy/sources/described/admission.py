"""Admission: whether an object's controller serves it, as its status says.

The law: pure; a judge takes the status and returns why the object is not served, as part of a sentence; None if it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from dnsproxy.sources.described.field_path import first_text, parse_path, values_at
from sidecar.values.text import quoted

_CURRENT: Final = parse_path("currentStatus")
_DESCRIPTION: Final = parse_path("description")
_ERRORS: Final = parse_path("conditions[*].errors[*]")
_PARTIAL: Final = frozenset({"IncludeError", "ServiceError"})
"""Errors in one part of an HTTPProxy: Contour answers 502 or 503 for it, and serves all others. After an error of any
other type it serves nothing of the object.
https://github.com/projectcontour/contour/blob/v1.33.8/internal/dag/httpproxy_processor.go"""
_ROUTERS: Final = parse_path("ingress[*]")
_CONDITIONS: Final = parse_path("conditions[*]")
_SHOWN: Final = 200


def refused_by_contour(status: Any) -> str | None:
    """Whether `status.currentStatus` of an HTTPProxy is something else than `valid`, and not for a part of it alone.

    Otherwise a host would be forwarded as soon as the Service of one of its paths is deleted.
    https://projectcontour.io/docs/main/config/fundamentals/#status-reporting
    """
    current = first_text(status, _CURRENT)
    if current == "valid":
        return None
    if current is None or current == "NotReconciled":
        return "no Contour has judged it yet"
    errors = list(values_at(status, _ERRORS))
    if current == "invalid" and errors and all(first_text(one, ("type",)) in _PARTIAL for one in errors):
        return None
    messages = (first_text(one, ("message",)) for one in errors)
    # The description of an object with an error only refers to the errors.
    reason = next(filter(None, messages), None) or first_text(status, _DESCRIPTION) or ""
    return f"Contour says that it is {quoted(current)}: {quoted(reason[:_SHOWN])}"


def refused_by_routers(status: Any) -> str | None:
    """Whether no router has admitted a Route.

    https://docs.redhat.com/en/documentation/openshift_container_platform/4.19/html/networking_apis/route-route-openshift-io-v1#status
    """
    admissions = list(_admissions(status))
    if not admissions:
        return "no router has admitted it yet"
    if any(condition.get("status") == "True" for condition in admissions):
        return None
    # Not str(): what is no text may have more levels than Python can show.
    parts = (first_text(admissions[0], (field,)) for field in ("reason", "message"))
    reason = ": ".join(filter(None, parts))
    return f"no router admits it: {quoted(reason[:_SHOWN])}" if reason else "no router admits it"


def admitting_routers(status: Any) -> Iterator[dict[str, Any]]:
    """What the routers wrote that admit a Route."""
    for router in values_at(status, _ROUTERS):
        if any(condition.get("status") == "True" for condition in _admissions_of(router)):
            yield router


def _admissions(status: Any) -> Iterator[dict[str, Any]]:
    """The conditions `Admitted` of all routers."""
    for router in values_at(status, _ROUTERS):
        yield from _admissions_of(router)


def _admissions_of(router: Any) -> Iterator[dict[str, Any]]:
    for condition in values_at(router, _CONDITIONS):
        if isinstance(condition, dict) and condition.get("type") == "Admitted":
            yield condition
