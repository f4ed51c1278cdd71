"""Structs: the fields of Istio's objects that decide which hostnames are served, through which Gateway.

The law: as the API server sends them; every list and optional field may be null.
https://istio.io/latest/docs/reference/config/networking/gateway/
https://istio.io/latest/docs/reference/config/networking/virtual-service/
"""

from __future__ import annotations

import msgspec

from dnsproxy.sources.annotations import AnnotatedMetadata


class Server(msgspec.Struct, frozen=True, gc=False):
    """Server of a Gateway: its port and TLS mode do not affect names."""

    hosts: tuple[str | None, ...] | None = None


class GatewaySpec(msgspec.Struct, frozen=True, gc=False):
    """The fields that are read here."""

    selector: dict[str, str] | None = None
    """The labels of the pods that open the servers; none: all gateways of the mesh."""
    servers: tuple[Server | None, ...] | None = None


class Gateway(msgspec.Struct, frozen=True, gc=False):
    """networking.istio.io Gateway."""

    metadata: AnnotatedMetadata
    spec: GatewaySpec | None = None


class VirtualServiceSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields that are read here."""

    hosts: tuple[str | None, ...] | None = None
    gateways: tuple[str | None, ...] | None = None
    export_to: tuple[str | None, ...] | None = None


class VirtualService(msgspec.Struct, frozen=True, gc=False):
    """networking.istio.io VirtualService."""

    metadata: AnnotatedMetadata
    spec: VirtualServiceSpec | None = None
