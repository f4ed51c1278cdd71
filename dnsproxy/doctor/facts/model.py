"""Facts: everything that a diagnosis rests on, as one frozen value that is also a file.

The law: a fact is what was seen; `judge` decides what it means. A file holds names, addresses, annotations of load
balancers and settings of controllers, so that a user can read it before sending it; no token, no Secret, no certificate
and no other annotation ever enters it. Tested in tests/dnsproxy/doctor/facts/test_file.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from dnsproxy.doctor.facts.cluster_dns import ClusterDns
from dnsproxy.doctor.facts.probes import DnsCheck, Fact, Lookup, Probe
from dnsproxy.hostnames.public_addresses import UnknownAddress
from dnsproxy.hostnames.wide_wildcards import WideWildcard

VERSION: Final = 2
"""Version of the file format; a file with another version is refused."""


class BalancerAddress(Fact, frozen=True):
    """One entry of a Service's `status.loadBalancer.ingress`."""

    ip: str = ""
    hostname: str = ""
    ip_mode: str = ""
    """`VIP` or `Proxy`; empty if the field is absent, which means VIP."""


class Port(Fact, frozen=True):
    """One TCP port of a Service."""

    port: int
    name: str = ""
    app_protocol: str = ""


class Service(Fact, frozen=True):
    """A Service that belongs to an ingress controller or Gateway, or may belong to one."""

    key: str
    """`NAMESPACE/NAME`."""
    type: str = "ClusterIP"
    cluster_ips: tuple[str, ...] = ()
    ports: tuple[Port, ...] = ()
    points: tuple[BalancerAddress, ...] = ()
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Only those of load balancers."""
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Only those that identify the program."""
    load_balancer_class: str = ""
    external_ips: tuple[str, ...] = ()
    external_traffic_policy: str = ""
    """`Local` or `Cluster`; empty if the Service has none."""
    source_ranges: tuple[str, ...] = ()
    """The only networks whose connections its load balancer takes; empty: all."""
    program: str = ""
    """The controller's program: `ingress-nginx`, `traefik` ...; empty if unknown."""
    settings: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The controller's settings about the PROXY protocol: `use-proxy-protocol`, `proxy-real-ip-cidr` ..."""
    settings_from: str = ""
    """Source of the settings: `ConfigMap ingress-nginx/ingress-nginx-controller`; if there is one and the program is
    known, an absent key has the program's default."""


class Host(Fact, frozen=True):
    """One object's claim to serve one hostname."""

    hostname: str
    origin: str
    """`Ingress web/shop`."""
    ingress_class: str = ""
    status: tuple[str, ...] = ()
    """Addresses and hostnames of the load balancer in the object's own status, or in that of its Gateway."""
    tls: bool = False
    """Whether the object, or a listener of its Gateway, has TLS for this hostname."""
    one_label: bool | None = None
    """Whether a wildcard covers exactly one label; None: as its kind's do, an Ingress's one and any other's more."""


class Class(Fact, frozen=True):
    """An IngressClass or GatewayClass."""

    name: str
    controller: str = ""


class Component(Fact, frozen=True):
    """A program that carries the cluster's connections: kube-proxy, or a CNI plugin that replaces it."""

    name: str
    """`kube-proxy`, `cilium`, `antrea`, `calico`, `ovn-kubernetes`, `kube-router`."""
    workload: str = ""
    version: str = ""
    """The tag of its image; empty if the image has none."""
    settings: Mapping[str, str] = msgspec.field(default_factory=dict)
    """`mode` of kube-proxy, `kube-proxy-replacement` of Cilium ..."""


class Admin(Fact, frozen=True):
    """The answer of an admin port of one of our pods."""

    program: str
    """`dnsproxy` or `relay`."""
    where: str
    ready: bool | None = None
    """None if the port did not answer."""
    text: str = ""
    """The body of /readyz, or the reason why there is none."""
    ages: Mapping[str, float] = msgspec.field(default_factory=dict)
    """Seconds since the last contact with each source."""
    unhealthy_upstreams: tuple[str, ...] = ()
    waiting_names: int = 0
    """Names that are claimed and still forwarded, because their target has no address or no ready endpoint."""
    unknown_addresses: tuple[UnknownAddress, ...] = ()
    """Where many of the asked names lead, if no status names it."""
    wide: tuple[WideWildcard, ...] = ()
    """Wildcards that cover whole domains."""


class RouteService(Fact, frozen=True):
    """A Service that leads to our relay, which relays its connections to another Service."""

    key: str
    """`NAMESPACE/NAME`."""
    backend: str = ""
    """That other Service, `NAMESPACE/NAME`; empty if the Service does not name one that can be."""
    addresses: tuple[str, ...] = ()
    ports: tuple[Port, ...] = ()
    """Those that lead to the backend."""


class OwnService(Fact, frozen=True):
    """One of our own Services with its pods; of a relay that follows route Services, all of these as one."""

    key: str
    found: bool | None = None
    """None if it could not be read."""
    addresses: tuple[str, ...] = ()
    ports: tuple[Port, ...] = ()
    ask_at: tuple[str, ...] = ()
    """Where dnsproxy takes queries: `ADDRESS:PORT`; empty for the relay."""
    ready: int | None = None
    """How many of its pods are ready."""
    pods: tuple[str, ...] = ()
    """The addresses of its pods."""
    pod_names: tuple[str, ...] = ()
    """Their names, in the order of `pods`."""
    image: str = ""
    """The image that its pods run; empty if it is unknown."""
    settings: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Its own variables: `PROXY_ROUTE`, `PROXY_PROXY_PROTOCOL`, `DNSPROXY_TARGET` ..."""
    loop: str = ""
    faults: tuple[str, ...] = ()
    routes: tuple[RouteService, ...] = ()
    """Of a relay that follows them; `addresses` has those of all, and `ports` is empty."""


class IpModePolicy(Fact, frozen=True):
    """Our admission policy that makes providers write `ipMode: Proxy`."""

    version: str = ""
    """Of MutatingAdmissionPolicy, as the API server serves it: `v1`, `v1beta1`; empty if it serves none."""
    found: bool | None = None
    """Whether the policy is there; None if it could not be read."""
    classes: tuple[str, ...] = ()
    """The load balancer classes that it selects."""
    bound: bool | None = None
    """Whether its binding is there, without which it does nothing; None if that is not known."""


class ReadFailure(Fact, frozen=True):
    """An object or a list that could not be read."""

    what: str
    why: str
    names_hosts: bool = False
    """Whether hosts may be missing because of it; the lists in refusals.HOST_LISTS have no need to say so."""


class Facts(Fact, frozen=True):
    """Everything that was seen."""

    version: int
    program: str = ""
    """The version of Switchback that collected the facts."""
    taken: str = ""
    """When: RFC 3339, UTC."""
    hostname: str = ""
    """The host that the user asked about; empty for all hosts."""
    server_version: str = ""
    """Of Kubernetes: `v1.34.4+k3s1`."""
    provider: str = ""
    """The scheme of a node's spec.providerID: `hcloud`, `aws` ..."""
    sources: tuple[str, ...] = ()
    """The sources whose hosts were read beside Ingresses and the Gateway API: `traefik`, `crd:PLURAL.GROUP:PATH`."""
    hosts: tuple[Host, ...] = ()
    rejected: tuple[str, ...] = ()
    """Hostnames of objects that cannot be served, with the reason."""
    classes: tuple[Class, ...] = ()
    services: tuple[Service, ...] = ()
    components: tuple[Component, ...] = ()
    pod_networks: tuple[str, ...] = ()
    """The networks of the pods, as far as the nodes and the settings of the data plane show them; empty if unknown."""
    node_addresses: tuple[str, ...] = ()
    """The internal addresses of the first nodes: a short-circuited connection may come from its node's address."""
    ip_mode_policy: IpModePolicy | None = None
    """None if it was not asked for."""
    dns: ClusterDns | None = None
    dnsproxy: OwnService | None = None
    relay: OwnService | None = None
    probed: bool = False
    """Whether ports were dialled; false outside the cluster."""
    lookups: tuple[Lookup, ...] = ()
    probes: tuple[Probe, ...] = ()
    loaded: tuple[DnsCheck, ...] = ()
    """The cluster's DNS, asked for names that only dnsproxy answers."""
    answers: tuple[DnsCheck, ...] = ()
    """dnsproxy, asked directly."""
    own_lookups: tuple[Lookup, ...] = ()
    """What dnsproxy answers, asked directly, for the hosts that a line of the cluster's DNS takes before the stanza."""
    admin: tuple[Admin, ...] = ()
    refusals: tuple[ReadFailure, ...] = ()
