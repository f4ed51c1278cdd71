"""A Service whose `ipMode: Proxy` cuts off its clients, and the way back.

The law: only for a load balancer that is known to pass packets on with its own address as their destination, and only
where a connection was seen to fail. Tested in tests/dnsproxy/doctor/judge/test_failing_ways.py.
"""

from __future__ import annotations

import json
from shlex import quote

from dnsproxy.doctor.facts.model import BalancerAddress, Service
from dnsproxy.doctor.judge.findings import Remedy
from dnsproxy.doctor.judge.ip_mode_policy import ANNOTATION, PROXY
from dnsproxy.doctor.judge.paths import normalize_address
from dnsproxy.doctor.judge.provider import Provider


def has_harmful_mode(service: Service, provider: Provider, address: str) -> bool:
    """Whether an address of a Service has `ipMode: Proxy`, though packets for it reach the nodes."""
    meant = normalize_address(address)
    modes = (point.ip_mode for point in service.points if point.ip and normalize_address(point.ip) == meant)
    return provider.passes_packets and PROXY in modes


def back_to_vip(service: Service) -> Remedy:
    """The commands that give its addresses `ipMode: VIP` again; without the first one our policy undoes the second."""
    namespace, _, name = service.key.partition("/")
    # A merge patch writes the whole list.
    entries = [_with_vip(point) for point in service.points]
    patch = json.dumps({"status": {"loadBalancer": {"ingress": entries}}})
    kubectl, what = f"kubectl -n {quote(namespace)}", f"service {quote(name)}"
    lines = (
        f"{kubectl} annotate {what} {ANNOTATION}-",
        f"{kubectl} patch {what} --subresource=status --type=merge -p {quote(patch)}",
    )
    return Remedy("give its addresses ipMode VIP again, so that kube-proxy takes the packets that arrive", lines)


def _with_vip(point: BalancerAddress) -> dict[str, str]:
    """The entry with the mode, which only an entry with an address may have."""
    hostname = {"hostname": point.hostname} if point.hostname else {}
    return {"ip": point.ip, **hostname, "ipMode": "VIP"} if point.ip else hostname
