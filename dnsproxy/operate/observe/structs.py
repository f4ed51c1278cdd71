"""Structs: the fields of IngressClasses and Gateways that say which Service is behind them.

The law: as the API server sends them; null and an absent field are None.
"""

from __future__ import annotations

import msgspec

from sidecar.kubernetes.objects import Collection
from sidecar.kubernetes.structs.metadata import LabelledMetadata


class Marked(msgspec.Struct, frozen=True):
    """An IngressClass or a Gateway: who it is, and who owns it."""

    metadata: LabelledMetadata


INGRESS_CLASSES = Collection("IngressClass", "/apis/networking.k8s.io/v1/ingressclasses", Marked)
GATEWAYS = Collection("Gateway", "/apis/gateway.networking.k8s.io/v1/gateways", Marked, optional=True)
"""Without its CRD there are none. With v1beta1 alone no annotation of a Gateway is read; their statuses are."""
