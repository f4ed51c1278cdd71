"""The network of the stage as nftables rules: which server a pod meets at each address.

The law: one table, replaced as a whole for each state. As kube-proxy does, DNAT leads an address to the pod of a
server; an address of which a state says nothing is a dead one, whose packets nobody takes. Loopback addresses and a
device without a peer carry everything: no packet leaves the namespace.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from typing import Final

from dnsproxy.dns.addresses import is_address
from sidecar.values.endpoints import Endpoint, parse_endpoint
from tests.kit.doctor_stage.objects import DNS_ADDRESS, DNSPROXY, PUBLIC_DNS
from tests.kit.doctor_stage.servers import Fate, Server
from tests.kit.networks import POD_ADDRESS, Network
from tests.kit.programs import program

POD_IPV6: Final = "2001:db8:244::2"
_DEVICE: Final = "pod"
_PEER: Final = "nowhere"
_WEB: Final = (80, 443)
_TLS: Final = (443, 8443)
_EVERY_PORT: Final = 0
_TABLE: Final = """\
table inet stage
delete table inet stage
table inet stage {{
    chain fates {{
        type filter hook output priority -150;
{fates}
    }}
    chain services {{
        type nat hook output priority -100;
{services}
    }}
}}
"""


def build(network: Network) -> None:
    """The addresses of the pod, of the servers and of DNS; the way to all others."""
    network.ip("link", "add", _DEVICE, "type", "veth", "peer", "name", _PEER)
    network.ip("addr", "add", f"{POD_ADDRESS}/24", "dev", _DEVICE)
    for device in (_DEVICE, _PEER):
        network.ip("link", "set", device, "up")
    network.ip("route", "add", "default", "dev", _DEVICE)
    for address in (DNS_ADDRESS, DNSPROXY, PUBLIC_DNS, *(server.ipv4 for server in Server)):
        network.own(address)
    for server in Server:
        network.own(server.ipv6)


def set_ipv6(network: Network, *, on: bool) -> None:
    """Give the pod an address and a route of IPv6, or take them away."""
    verb = "replace" if on else "del"
    if on:
        network.ip("addr", verb, f"{POD_IPV6}/64", "dev", _DEVICE, "nodad")
    network.ip("-6", "route", verb, "default", "dev", _DEVICE)
    if not on:
        network.ip("addr", verb, f"{POD_IPV6}/64", "dev", _DEVICE)


def apply(at: Mapping[str, Server | Fate]) -> None:
    """Lead the addresses to the servers. Raises CalledProcessError."""
    rules = format_rules(at)
    subprocess.run([program("nft"), "-f", "-"], input=rules.encode(), check=True, capture_output=True)


def format_rules(at: Mapping[str, Server | Fate]) -> str:
    """The table for the addresses of a state."""
    places = {_parse(text): what for text, what in at.items()}
    fates = [line for place, what in places.items() if isinstance(what, Fate) for line in _fate(place, what)]
    fates += [line for host in sorted({place.host for place in places}) for line in _closed(host, places)]
    services = [line for place, what in places.items() if isinstance(what, Server) for line in _led(place, what)]
    return _TABLE.format(fates="\n".join(fates), services="\n".join(services))


def _parse(text: str) -> Endpoint:
    return Endpoint(text, _EVERY_PORT) if is_address(text) else parse_endpoint(text)


def _family(host: str) -> str:
    return "ip6" if ":" in host else "ip"


def _fate(place: Endpoint, fate: Fate) -> Iterator[str]:
    port = f" tcp dport {place.port}" if place.port else " meta l4proto tcp"
    yield f"{_family(place.host)} daddr {place.host}{port} {fate.value}"


def _closed(host: str, places: Mapping[Endpoint, Server | Fate]) -> Iterator[str]:
    """The other ports of an address that has servers refuse connections."""
    ports = {port for place in places if place.host == host for port in ((place.port,) if place.port else _WEB)}
    listed = ", ".join(map(str, sorted(ports)))
    yield f"{_family(host)} daddr {host} tcp dport != {{ {listed} }} {Fate.REFUSED.value}"


def _led(place: Endpoint, server: Server) -> Iterator[str]:
    """DNAT to the server: ports 80 and 443, or one port to the server's port 443 for TLS, otherwise to port 80."""
    family = _family(place.host)
    to = f"[{server.ipv6}]" if family == "ip6" else server.ipv4
    for port in (place.port,) if place.port else _WEB:
        of_server = 443 if port in _TLS else 80
        yield f"{family} daddr {place.host} tcp dport {port} dnat {family} to {to}:{of_server}"
