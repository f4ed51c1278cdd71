"""Which pods of a Service are listened to, from its EndpointSlices.

The law: only values, no requests. A text from a slice becomes part of a path of the API only if it is the name of an
object.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dnsproxy.cluster_dns.options import parse_object_ref
from sidecar.kubernetes.endpoint_choice import USABLE
from sidecar.kubernetes.endpoint_slices import EndpointSlice, SliceEndpoint, condition_of

MOST_PODS: Final = 100
"""Each costs a connection to the API server, which has one to the pod."""
_POD: Final = "Pod"


def pods_of(slices: Iterable[EndpointSlice], *, namespace: str) -> tuple[str, ...]:
    """The names of the pods that answer, in order: the ready ones, and those that terminate and still serve."""
    found = {_pod_of(one, namespace) for each in slices for one in each.endpoints or () if condition_of(one) in USABLE}
    return tuple(sorted(found - {""}))


def _pod_of(endpoint: SliceEndpoint, namespace: str) -> str:
    """The pod of an endpoint; empty if it has none here."""
    ref = endpoint.target_ref
    if ref is None or ref.kind != _POD or (ref.namespace or namespace) != namespace:
        return ""
    try:
        return parse_object_ref(f"{namespace}/{ref.name or ''}").name
    except ValueError:
        return ""
