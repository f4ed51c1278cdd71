"""Placeholder slices: the EndpointSlices of a Service that its data plane serves by itself.

The law: pure. Kubernetes' own controller names each port of the Service in its slices. Cilium writes one slice with an
invented endpoint and a port that the Service does not have, for the Services of its Ingresses and Gateways, and answers
at their ClusterIPs itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from sidecar.kubernetes.endpoint_choice import USABLE
from sidecar.kubernetes.endpoint_slices import EndpointSlice, condition_of


def is_placeholder(slices: Iterable[EndpointSlice], port_names: Set[str]) -> bool:
    """Whether the usable slices of a Service have none of its ports, whose names these are; `` is an unnamed port."""
    known = {port.name or "" for one in slices if _is_usable(one) for port in one.ports or ()}
    return bool(known) and not known & port_names


def _is_usable(one: EndpointSlice) -> bool:
    return any(condition_of(endpoint) in USABLE and endpoint.addresses for endpoint in one.endpoints or ())
