"""Remedies for a short-circuited load balancer, as lines to type, the best first.

The law: the provider's own remedy goes before Switchback; a side effect is named with its line. If the provider has no
remedy, only Switchback is left (cures.py). Nothing here runs a command. Tested in
tests/dnsproxy/doctor/judge/test_providers.py and test_controller_findings.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import Final

from dnsproxy.doctor.facts.model import Facts, Service
from dnsproxy.doctor.facts.probes import Header
from dnsproxy.doctor.judge.findings import Remedy
from dnsproxy.doctor.judge.providers import AWS, DIGITAL_OCEAN, HETZNER, UNKNOWN, Provider
from dnsproxy.doctor.judge.short_circuit import IP_MODE_SINCE, Answer, DataPlane, parse_version

LOAD_BALANCER_NAME: Final = "lb.example.org"
"""A placeholder for a name that resolves to the load balancer."""
IMAGE: Final = "localhost/switchback:0.1.0"
_OVERLAYS: Final = {HETZNER.name: "hetzner", DIGITAL_OCEAN.name: "digitalocean", AWS.name: "eks"}
_DISTRIBUTIONS: Final = {"+k3s": "k3s", "+rke2": "rke2", "-eks": "eks", "-gke": "gke"}
_ANY_NAME: Final = (
    f" One name that resolves to the load balancer ({LOAD_BALANCER_NAME} here) is enough for all hosts; it need "
    "not be one of them."
)
_SIDE_EFFECTS: Final = (
    " Side effects: `kubectl get service` shows no address any more, and external-dns turns A records into CNAME "
    "records, which are possible neither beside TXT records of the same name nor at the top of a zone."
)


def annotate(service: Service, key: str, value: str) -> str:
    """The command that sets one annotation of a Service."""
    namespace, name = quoted(service.key)
    return f"kubectl -n {namespace} annotate service {name} --overwrite {key}={quote(value)}"


def quoted(key: str) -> tuple[str, str]:
    """Namespace and name of an object, quoted for a shell: a file of facts is not trusted."""
    namespace, _, name = key.partition("/")
    return quote(namespace), quote(name)


def provider_remedies(
    service: Service, provider: Provider, plane: DataPlane, facts: Facts, *, ignored: bool = False
) -> tuple[Remedy, ...]:
    """The remedies at the load balancer, the best first; `ignored`: ipMode is Proxy already, and has no effect."""
    first = (Remedy(plane.remedy),) if ignored and plane.remedy else ()
    ip_mode = first if ignored else tuple(_ip_mode(service, provider, plane, facts))
    return (*ip_mode, *_hostname(service, provider))


def _ip_mode(service: Service, provider: Provider, plane: DataPlane, facts: Facts) -> Iterator[Remedy]:
    server = parse_version(facts.server_version)
    before = []
    if server is not None and server < IP_MODE_SINCE:
        before.append("upgrade Kubernetes to 1.30 or newer")
    elif plane.honours_ip_mode is Answer.NO:
        before.append(plane.remedy)
    first = f"; first {' and '.join(before)}" if before else ""
    unknown = "" if plane.honours_ip_mode is not Answer.UNKNOWN else f"; whether {plane.name} honours ipMode is unknown"
    if provider.ip_mode_key:
        text = f"{provider.name} can set `ipMode: Proxy`, which ends the short circuit without side effects"
        yield Remedy(text + first + unknown, (annotate(service, provider.ip_mode_key, provider.ip_mode_value),))
    elif provider.ip_mode_auto:
        yield Remedy(f"{provider.ip_mode_auto}, which ends the short circuit without side effects{first}{unknown}")


def _hostname(service: Service, provider: Provider) -> Iterator[Remedy]:
    if provider.hostname_key:
        which = "" if provider.hostname_value else _ANY_NAME
        note = f" Note: {provider.hostname_note}." if provider.hostname_note else ""
        text = f"let {provider.name} put a hostname instead of the ip into the status.{which}{note}{_SIDE_EFFECTS}"
        yield Remedy(text, (annotate(service, provider.hostname_key, provider.hostname_value or LOAD_BALANCER_NAME),))


def header_on(service: Service, provider: Provider) -> Remedy:
    """How to turn the header on at the load balancer; the provider has a switch."""
    switch = provider.switches[0]
    if switch.on:
        return Remedy("turn it on at the load balancer", (annotate(service, switch.key, switch.on),))
    # The rest of the annotation must stay.
    return Remedy(f"turn it on at the load balancer: outbound_proxy_protocol of the backends in {switch.key}")


def install_step(facts: Facts, provider: Provider, *, condition: str = "") -> Remedy:
    """How to install Switchback with its relay; `condition` comes before the text."""
    if facts.relay is not None and facts.relay.found and facts.dnsproxy is not None and facts.dnsproxy.found:
        return Remedy("Switchback is deployed; let the cluster's DNS ask it", ("dnsproxy install", "dnsproxy status"))
    text = f"{condition}answer the name with a relay that adds the header, which needs no support from the provider"
    return Remedy(text, (deploy_line(facts, provider), "dnsproxy install"))


def deploy_line(facts: Facts, provider: Provider = UNKNOWN) -> str:
    """The command that deploys our parts."""
    return f"kubectl apply -k deploy/overlays/{overlay(facts, provider)}"


def overlay(facts: Facts, provider: Provider) -> str:
    """The matching folder under deploy/overlays: by the distribution, then by the provider."""
    for mark, name in _DISTRIBUTIONS.items():
        if mark in facts.server_version:
            return name
    return _OVERLAYS.get(provider.name, "kubeadm")


def look_from_inside(facts: Facts) -> Remedy:
    """How to look from a pod at what cannot be dialled from this machine."""
    host = f" {quote(facts.hostname)}" if facts.hostname else ""
    return Remedy(
        "look from a pod: it reads these facts from the file, then asks DNS and dials from its place",
        (
            f"dnsproxy doctor{host} --save facts.json",
            f"kubectl run switchback-doctor --rm -i --restart=Never --image={IMAGE} -- "
            "dnsproxy doctor --from - --probe < facts.json",
        ),
    )


def probe_by_hand(service: Service, hostname: str, header: Header) -> str:
    """One probe with curl from a pod, to check by hand."""
    address = service.cluster_ips[0] if service.cluster_ips else service.key
    proxy = " --haproxy-protocol" if header is Header.V1 else ""
    return (
        "kubectl run switchback-look --rm -i --restart=Never --image=docker.io/curlimages/curl -- "
        f"-sS -o /dev/null -w '%{{http_code}}\\n' --max-time 5{proxy} --connect-to {quote(f'::{address}:')} {quote(f'http://{hostname}/')}"
    )
