"""Facts: all that a diagnosis rests on, as one frozen value that is also a file.

The law: what was seen, never what it means; judge.py decides. A file holds names, addresses, annotations of load
balancers and settings of controllers, which whoever reports a fault can read through first; no token, no Secret, no
certificate and no other annotation ever comes into it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

VERSION: Final = 1
"""Of the form of the file; one with another is refused, not guessed at."""


class _Value(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=False):
    """What all have in common: frozen, and short as JSON."""


class Point(_Value, frozen=True):
    """One entry of a Service's `status.loadBalancer.ingress`."""

    ip: str = ""
    hostname: str = ""
    ip_mode: str = ""
    """`VIP`, `Proxy`, or empty where the field is absent, which means VIP."""


class Port(_Value, frozen=True):
    """One TCP port of a Service."""

    port: int
    name: str = ""
    app_protocol: str = ""


class Service(_Value, frozen=True):
    """A Service that stands before an ingress controller or Gateway, or might."""

    key: str
    """`NAMESPACE/NAME`."""
    type: str = "ClusterIP"
    cluster_ips: tuple[str, ...] = ()
    ports: tuple[Port, ...] = ()
    points: tuple[Point, ...] = ()
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Those of load balancers alone."""
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Those that say which program it belongs to."""
    load_balancer_class: str = ""
    external_ips: tuple[str, ...] = ()
    settings: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Of the controller behind it, about the PROXY protocol: `use-proxy-protocol`, `proxy-real-ip-cidr` ..."""
    settings_from: str = ""
    """Where those were read: `ConfigMap ingress-nginx/ingress-nginx-controller`."""


class Host(_Value, frozen=True):
    """One object's wish to serve one hostname."""

    hostname: str
    origin: str
    """`Ingress web/shop`."""
    ingress_class: str = ""
    status: tuple[str, ...] = ()
    """Addresses and hostnames of the load balancer in its own status, or in that of its Gateway."""


class Class(_Value, frozen=True):
    """An IngressClass or GatewayClass."""

    name: str
    controller: str = ""


class Component(_Value, frozen=True):
    """A program that carries the cluster's connections: kube-proxy, or a CNI plugin that takes its place."""

    name: str
    """`kube-proxy`, `cilium`, `antrea`, `calico`, `ovn-kubernetes`, `kube-router`."""
    workload: str = ""
    version: str = ""
    """As the tag of its image has it; empty where that does not tell."""
    settings: Mapping[str, str] = msgspec.field(default_factory=dict)
    """`mode` of kube-proxy, `kube-proxy-replacement` of Cilium ..."""


class Lookup(_Value, frozen=True):
    """What one DNS server says about a hostname, both families together."""

    hostname: str
    server: str
    """`cluster` or `public`."""
    endpoint: str
    addresses: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    fault: str = ""
    """Why there is no answer; empty where one came, be it an empty one."""


class Header(StrEnum):
    """What a probe sends before its request."""

    PLAIN = "plain"
    V1 = "v1"
    V2 = "v2"


class Outcome(StrEnum):
    """How a probe ended."""

    ANSWERED = "answered"
    """An HTTP response other than 400, or a TLS ServerHello."""
    BAD_REQUEST = "bad request"
    """HTTP 400: to octets that are no request, or to a request that it does not like."""
    ALERT = "TLS alert"
    """TLS is spoken there, and this handshake is refused."""
    GARBAGE = "garbage"
    """Octets that are neither."""
    CLOSED = "closed"
    RESET = "reset"
    SILENT = "silent"
    """Connected, and then nothing."""
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    """No connection in time, or no route."""


class Role(StrEnum):
    """Why something is probed."""

    CONTROLLER = "controller"
    """A controller's Service at its ClusterIP: which header does it want?"""
    BALANCER = "balancer"
    """The load balancer's own address, as a pod dials it that was told the public record."""
    RELAY = "relay"
    """Our relay's Service, as a pod dials it."""


class Probe(_Value, frozen=True):
    """One connection that was tried."""

    role: Role
    service: str
    """`NAMESPACE/NAME` of the Service whose address it is."""
    endpoint: str
    port: int
    hostname: str
    tls: bool
    header: Header
    outcome: Outcome
    detail: str = ""
    """The status line, the alert, what the operating system said."""


class Asked(_Value, frozen=True):
    """Whether dnsproxy answers through one DNS server: the probe names of install/probing.py."""

    endpoint: str
    zone: str
    state: str
    """`yes`, `partly`, `no` or `silent`."""
    said: str = ""


class Stanza(_Value, frozen=True):
    """Our stanza in one ConfigMap."""

    target: str
    method: str
    zones: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    """Whom it asks: `ADDRESS:PORT`."""
    fault: str = ""


class ClusterDns(_Value, frozen=True):
    """What serves the cluster's DNS, and what of ours is in it."""

    service: str = ""
    addresses: tuple[str, ...] = ()
    server: str = ""
    """Workload, program and version, for people."""
    ask_at: tuple[str, ...] = ()
    """Where pods ask for public names: `ADDRESS:PORT`."""
    node_local: str = ""
    """The cache on the nodes; empty where there is none."""
    node_local_addresses: tuple[str, ...] = ()
    node_local_passes_on: bool = False
    """Whether public names that it is asked for come to the main Corefile."""
    stanzas: tuple[Stanza, ...] = ()
    where: str = ""
    """Which workload decides about public names: `Deployment kube-system/coredns`."""
    decides: tuple[str, ...] = ()
    """The ConfigMaps whose contents that workload reads, `NAMESPACE/NAME`."""
    faults: tuple[str, ...] = ()


class Admin(_Value, frozen=True):
    """What the admin port of a pod of ours said."""

    program: str
    """`dnsproxy` or `relay`."""
    where: str
    ready: bool | None = None
    """None where it was not told."""
    text: str = ""
    """The body of /readyz, or why there is none."""
    ages: Mapping[str, float] = msgspec.field(default_factory=dict)
    """Seconds since each source said anything."""
    unhealthy_upstreams: tuple[str, ...] = ()
    waiting_names: int = 0
    """Names that are claimed and yet forwarded, because their target has no address."""


class Part(_Value, frozen=True):
    """One of our own Services and the pods behind it."""

    key: str
    found: bool | None = None
    """None where it could not be read."""
    addresses: tuple[str, ...] = ()
    ports: tuple[Port, ...] = ()
    ask_at: tuple[str, ...] = ()
    """Where dnsproxy is asked: `ADDRESS:PORT`; of other parts empty."""
    ready: int | None = None
    pods: tuple[str, ...] = ()
    """The addresses of its pods."""
    pod_names: tuple[str, ...] = ()
    """Their names, in the order of their addresses."""
    settings: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Its own variables: `PROXY_ROUTE`, `PROXY_PROXY_PROTOCOL`, `DNSPROXY_TARGET` ..."""
    loop: str = ""
    faults: tuple[str, ...] = ()


class Refusal(_Value, frozen=True):
    """Something that could not be looked at."""

    what: str
    why: str


class Facts(_Value, frozen=True):
    """All that was seen."""

    version: int
    program: str = ""
    """The version of Switchback that looked."""
    taken: str = ""
    """When: RFC 3339, UTC."""
    hostname: str = ""
    """The host that was asked about; empty for all."""
    server_version: str = ""
    """Of Kubernetes: `v1.34.4+k3s1`."""
    provider: str = ""
    """The scheme of a node's spec.providerID: `hcloud`, `aws` ..."""
    hosts: tuple[Host, ...] = ()
    rejected: tuple[str, ...] = ()
    """Hostnames of objects that cannot be served, with the reason."""
    classes: tuple[Class, ...] = ()
    services: tuple[Service, ...] = ()
    components: tuple[Component, ...] = ()
    dns: ClusterDns | None = None
    dnsproxy: Part | None = None
    relay: Part | None = None
    probed: bool = False
    """Whether anything was dialled: not from outside of the cluster."""
    lookups: tuple[Lookup, ...] = ()
    probes: tuple[Probe, ...] = ()
    loaded: tuple[Asked, ...] = ()
    """The cluster's DNS, asked for names that dnsproxy alone answers."""
    answers: tuple[Asked, ...] = ()
    """dnsproxy, asked directly."""
    admin: tuple[Admin, ...] = ()
    refusals: tuple[Refusal, ...] = ()
