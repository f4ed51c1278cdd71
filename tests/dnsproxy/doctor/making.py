"""Facts for tests: one controller behind one load balancer, with changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from dnsproxy.doctor.facts.cluster_dns import ClusterDns, Stanza
from dnsproxy.doctor.facts.model import (
    VERSION,
    BalancerAddress,
    Component,
    Facts,
    Host,
    OwnService,
    Port,
    RouteService,
    Service,
)
from dnsproxy.doctor.facts.probes import DnsCheck, Header, Lookup, Outcome, Probe
from dnsproxy.doctor.judge.diagnose import judge
from dnsproxy.doctor.judge.findings import Diagnosis, Finding, Severity

HOST = "app.example.org"
BALANCER = "203.0.113.10"
CONTROLLER = "10.96.0.80"
RELAY = "10.96.0.90"
DNSPROXY = "10.96.0.53"
DNS = "10.96.0.10"
KEY = "ingress-nginx/ingress-nginx-controller"
PORTS = (Port(80, "http"), Port(443, "https"))
IP = (BalancerAddress(ip=BALANCER, ip_mode="VIP"),)
OLD_IP = (BalancerAddress(ip=BALANCER),)
PROXY_MODE = (BalancerAddress(ip=BALANCER, ip_mode="Proxy"),)
HOSTNAME = (BalancerAddress(hostname="lb.example.org"),)
BOTH = (BalancerAddress(ip=BALANCER, hostname="lb.example.org"),)
KUBE_PROXY = Component("kube-proxy", "DaemonSet kube-system/kube-proxy", "v1.34.4", {"mode": "iptables"})

UNSEEN: dict[str, Any] = {"probed": False, "lookups": (), "probes": ()}
"""A look from outside the cluster."""
REQUIRES = (Outcome.CLOSED, Outcome.ANSWERED, Outcome.ANSWERED)
REJECTS = (Outcome.ANSWERED, Outcome.BAD_REQUEST, Outcome.BAD_REQUEST)
ACCEPTS = (Outcome.ANSWERED, Outcome.ANSWERED, Outcome.ANSWERED)

STRANGE = "192.0.2.99"
"""An address that no Service has."""
CLOSED, SILENT, REFUSED = (Outcome.CLOSED,) * 3, (Outcome.SILENT,) * 3, (Outcome.REFUSED,)
SERVED = (Outcome.ANSWERED,)
TARGET = f"DNSPROXY_TARGET_FOR=nginx=service:{KEY}"

OTHER_HOST = "other.example.org"
OTHER_KEY = "other/controller"
OTHER_BALANCER = "203.0.113.20"
OTHER_CONTROLLER = "10.96.0.81"


def other_service(**fields: Any) -> Service:
    """The Service of the class `other`, beside that of `service`."""
    fields = {
        "key": OTHER_KEY,
        "cluster_ips": (OTHER_CONTROLLER,),
        "points": (BalancerAddress(ip=OTHER_BALANCER),),
    } | fields
    return service(**fields)


def service(
    annotations: Mapping[str, str] | None = None, *, points: tuple[BalancerAddress, ...] = OLD_IP, **fields: Any
) -> Service:
    base = Service(KEY, "LoadBalancer", (CONTROLLER,), PORTS, points, annotations or {})
    return replace(base, **fields)


def probes_at(
    address: str, outcomes: Iterable[Outcome], *, port: int = 80, tls: bool = False, hostname: str = HOST
) -> tuple[Probe, ...]:
    """A bare probe, and those with a header of each version, as far as outcomes are given."""
    pairs = zip((Header.PLAIN, Header.V1, Header.V2), outcomes, strict=False)
    return tuple(Probe(address, port, hostname, tls, header, outcome) for header, outcome in pairs)


def controller_probes(outcomes: Iterable[Outcome], *, port: int = 80, tls: bool = False) -> tuple[Probe, ...]:
    return probes_at(CONTROLLER, outcomes, port=port, tls=tls)


def balancer_probes(*outcomes: Outcome, address: str = BALANCER) -> tuple[Probe, ...]:
    return probes_at(address, outcomes)


def relay_probe(outcome: Outcome) -> Probe:
    (one,) = probes_at(RELAY, [outcome])
    return one


def answering(*addresses: str, hostname: str = HOST, server: str = "cluster") -> Lookup:
    """What a DNS server answers for the host."""
    return Lookup(hostname, server, f"{DNS}:53", addresses)


def facts(one: Service | None = None, **fields: Any) -> Facts:
    """A cluster with kube-proxy, one controller that requires the header, and its short-circuited load balancer."""
    one = one if one is not None else service()
    status = tuple(text for point in one.points for text in (point.ip, point.hostname) if text)
    base = Facts(
        VERSION,
        server_version="v1.34.4",
        hosts=(Host(HOST, "Ingress web/shop", "nginx", status),),
        services=(one,),
        components=(KUBE_PROXY,),
        dns=ClusterDns("kube-system/kube-dns", (DNS,), ask_at=(f"{DNS}:53",), where="Deployment kube-system/coredns"),
        dnsproxy=OwnService("switchback/dnsproxy", found=False),
        relay=OwnService("switchback/relay", found=False),
        probed=True,
        lookups=(answering(BALANCER),),
        probes=(*controller_probes(REQUIRES), *balancer_probes(*REQUIRES)),
    )
    return replace(base, **fields)


DEPLOYED = ["kubectl apply -k deploy", "kubectl -n switchback rollout status deployment/operate"]
"""The lines that install Switchback."""

STANZA = Stanza("Corefile in ConfigMap kube-system/coredns", "corefile", (".",), (f"{DNSPROXY}:53",))


def installed(one: Service | None = None, **fields: Any) -> Facts:
    """The same with Switchback installed, loaded and answering."""
    base = facts(one)
    assert base.dns is not None
    base = replace(
        base,
        dns=replace(base.dns, stanzas=(STANZA,), decides=("kube-system/coredns",)),
        dnsproxy=OwnService("switchback/dnsproxy", True, (DNSPROXY,), ready=2, pods=("10.244.0.5",)),
        relay=OwnService(
            "switchback/relay", True, (RELAY,), PORTS, ready=2, pods=("10.244.0.6",),
            settings={"PROXY_ROUTE": "8080=ingress-nginx-controller.ingress-nginx.svc:80"},
        ),
        loaded=(DnsCheck(f"{DNS}:53", ".", "yes", "8 of 8 dnsproxy"),),
        answers=(DnsCheck(f"{DNSPROXY}:53", ".", "yes", "8 of 8 dnsproxy"),),
        lookups=(answering(RELAY),),
        probes=(*base.probes, relay_probe(Outcome.ANSWERED)),
    )  # fmt: skip
    return replace(base, **fields)


ROUTE = RouteService("switchback/relay-nginx", KEY, (RELAY,), PORTS)
"""The route Service of the class nginx."""


def steering(*routes: RouteService, **fields: Any) -> Facts:
    """The same with an installation that steers: these route Services, or that of the class nginx."""
    base = installed()
    assert base.dnsproxy is not None
    routes = routes or (ROUTE,)
    addresses = tuple(address for route in routes for address in route.addresses)
    relay = OwnService("switchback/relay", True, addresses, ready=2, pods=("10.244.0.6",), routes=routes)
    base = replace(base, dnsproxy=replace(base.dnsproxy, settings={"DNSPROXY_TARGET": "auto"}), relay=relay)
    return replace(base, **fields)


def diagnose(one: Service | None = None, **fields: Any) -> Diagnosis:
    return judge(facts(one, **fields))


def named(diagnosis: Diagnosis, ident: str) -> Finding:
    """The one finding of this id."""
    found = [finding for finding in diagnosis.findings if finding.id == ident]
    assert len(found) == 1, f"{ident}: {[finding.id for finding in diagnosis.findings]}"
    return found[0]


def ids(diagnosis: Diagnosis) -> set[str]:
    return {finding.id for finding in diagnosis.findings}


def bad(diagnosis: Diagnosis) -> set[str]:
    """The ids of warnings and problems."""
    wrong = (Severity.WARNING, Severity.PROBLEM)
    return {finding.id for finding in diagnosis.findings if finding.severity in wrong}


def lines(finding: Finding) -> list[str]:
    """All lines to type."""
    return [line for step in finding.steps for line in step.lines]


def led_to(address: str, outcomes: tuple[Outcome, ...], *, controller: Any = REQUIRES, **fields: Any) -> Facts:
    """The cluster's DNS answers with an address; the load balancer serves everybody."""
    healthy = balancer_probes(*SERVED) if address != BALANCER else ()
    probes = (*controller_probes(controller), *healthy, *probes_at(address, outcomes))
    one = fields.pop("one", service(points=PROXY_MODE))
    return facts(one, probes=probes, lookups=(answering(address),), **fields)
