"""Address rules: the load balancers that lead here, as response-IP triggers of the policy zone.

The law: pure. A trigger replaces what leads to an address in every reply, whatever the name (draft-vixie-dnsop-dns-rpz
section 4), so an address has one only if replies for any name may be replaced:

- what is replaced in every reply here (`Balancers.replaced`) has one;
- what leads here for the names of the table alone (`Balancers.known`) has one if it has a target of its own and the
  table has rows that depend on public DNS. It is then the load balancer of a class, from the status of its objects;
- an address or network without a target of its own has none, also if all rows have the same target. It comes from
  `--trust`, and may be a router that forwards other ports to other machines, or the network of a CDN: a trigger would
  lead their other names to the target.

A hostname cannot be a trigger; the addresses that were found for it can. What is no address is left out, as in
Leads (replace/balancers.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Address, ip_network
from typing import Final, NamedTuple

from dnsproxy.dns import names
from dnsproxy.dns.names import BadName
from dnsproxy.replace.balancers import Balancers, Network
from dnsproxy.zone.zone_records import format_zone_addresses, join_row
from sidecar.values.endpoints import is_address

_LABEL: Final = "rpz-ip"
_MAPPED_PREFIX: Final = 96


class AddressRules(NamedTuple):
    """The rows of the triggers, and what has none."""

    rows: Mapping[bytes, bytes]
    """By the wire name of the trigger, relative to the zone."""
    hostnames: int = 0
    """Load balancers that are known by their hostname."""
    addresses: int = 0
    """Addresses and networks that a trigger would replace for too many names, or that it cannot say."""


NO_RULES: Final = AddressRules({})


def make_address_rules(balancers: Balancers, *, conditional: bool, ttl: int) -> AddressRules:
    """The triggers of load balancers; `conditional`: whether the table has rows that depend on public DNS.

    The records have the target's addresses of both families: a family without one is NODATA, and never the load
    balancer's own address.
    """
    rows: dict[bytes, bytes] = {}
    hostnames = addresses = 0
    for text, target in {**(balancers.known if conditional else {}), **balancers.replaced}.items():
        network = _parse_network(text)
        if network is None:
            hostnames += _is_hostname(text)
            continue
        node = trigger_node(network) if target and all(map(is_address, target)) else None
        if node is None:
            addresses += 1
            continue
        # The longest owner is as long as the hashed owner of a row, for which every zone's name leaves room.
        rows[node] = join_row(format_zone_addresses(node[:-1], target, ttl=ttl)) or b""
    return AddressRules(rows, hostnames, addresses)


def trigger_node(network: Network) -> bytes | None:
    """The trigger's wire name, `32.10.113.0.203.rpz-ip` for 203.0.113.10; None for a network that has none.

    In canonical form, because BIND takes no other: a prefix of at least 1, groups of IPv6 in the shortest form with
    `zz` for the first of the longest runs of zeros, and no IPv4 address as an IPv6 one.
    """
    address, prefix = network.network_address, network.prefixlen
    if not prefix:
        return None
    if isinstance(network, IPv4Network):
        labels = str(address).split(".")
    elif prefix >= _MAPPED_PREFIX and getattr(address, "ipv4_mapped", None) is not None:
        return None
    else:
        # Without the zone of a link-local address, which no reply has.
        text = IPv6Address(address.packed).compressed
        labels = text.replace("::", ":zz:").strip(":").split(":")
    return names.to_wire(".".join([str(prefix), *reversed(labels), _LABEL]))


def _parse_network(text: str) -> Network | None:
    try:
        return ip_network(text)
    except ValueError:
        return None


def _is_hostname(text: str) -> bool:
    try:
        names.parse_hostname(text)
    except BadName:
        return False
    return True
