"""The form of an upstream: one text, so that equal texts mean equal upstreams.

The law: `192.0.2.1`, `192.0.2.1:5353`, `tcp://192.0.2.1:53`, `tls://192.0.2.1:853#NAME`, or NODE, also as `tcp://` and
NODE. What dnsproxy cannot ask as CoreDNS does is an error with its reason, never another upstream. Tested in
test_upstream_routes.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from typing import Final

from dnsproxy.corefile.forward_directive import Forward
from dnsproxy.corefile.model import shown
from dnsproxy.corefile.stanza import format_address
from dnsproxy.corefile.zones import has_environment
from dnsproxy.dns.names import is_wildcard, parse_hostname
from dnsproxy.dns.wire import DNS_PORT
from sidecar.values.endpoints import Endpoint, parse_endpoint

NODE: Final = "/etc/resolv.conf"
"""The nameservers of the node: CoreDNS's pod and dnsproxy's pod have the same file, with dnsPolicy Default."""
TCP: Final = "tcp://"
TLS: Final = "tls://"
_TLS_PORT: Final = 853
_PLAIN: Final = "dns://"


def upstreams_of(forward: Forward) -> Iterator[str]:
    """The upstreams of a forward. Raises ValueError with the reason if dnsproxy cannot ask one as CoreDNS does."""
    for option in forward.options:
        if option.name == "source_address":
            raise ValueError(f"`{option.shown}` sets an address that dnsproxy does not have")
        if option.name == "tls" and option.values and any(text.startswith(TLS) for text in forward.upstreams):
            raise ValueError(f"`{option.shown}` names certificates that only CoreDNS's pod has")
    names = [" ".join(option.values) for option in forward.options if option.name == "tls_servername"]
    forced = any(option.name == "force_tcp" for option in forward.options)
    for text in forward.upstreams:
        if has_environment(text):
            raise ValueError(f"{shown(text)} comes from a variable of CoreDNS's pod")
        if text.startswith(TLS):
            yield _tls(text, names[-1] if names else "")
        else:
            plain = format_upstream(text.removeprefix(_PLAIN))
            yield format_over_tcp(plain) if forced else plain


def endpoint_of(text: str) -> Endpoint:
    """An address with the port of DNS, or its own. Raises ValueError."""
    return parse_endpoint(text, default_port=DNS_PORT)


def is_local(upstream: str) -> bool:
    """Whether an upstream is an address of the pod or node that asks it."""
    if upstream.endswith(NODE):
        return False
    address = ip_address(endpoint_of(upstream.rpartition("://")[2].partition("#")[0]).host)
    return address.is_loopback or address.is_unspecified


def format_upstream(text: str) -> str:
    """The form of an address, or NODE. Raises ValueError with the reason for anything else."""
    if text == NODE:
        return NODE
    if "://" in text:
        raise ValueError(f"{shown(text)} is neither plain DNS nor DNS over TLS")
    try:
        return format_address(endpoint_of(text))
    except ValueError:
        what = "a file of CoreDNS's pod" if text.startswith("/") else "no address"
        raise ValueError(f"{shown(text)} is {what}, and dnsproxy knows addresses and {NODE}") from None


def format_over_tcp(upstream: str) -> str:
    """A plain upstream that is asked over TCP alone."""
    return TCP + (upstream if upstream == NODE else str(endpoint_of(upstream)))


def _tls(text: str, servername: str) -> str:
    """CoreDNS verifies `tls_servername`, else the name after `%`, else the address (plugin/forward/setup.go)."""
    host, name = _split_name(text.removeprefix(TLS))
    try:
        endpoint = parse_endpoint(host, default_port=_TLS_PORT)
    except ValueError:
        raise ValueError(f"{shown(text)} is no address") from None
    return f"{TLS}{endpoint}#{_checked_name(servername or name or endpoint.host)}"


def _split_name(host: str) -> tuple[str, str]:
    """`192.0.2.1%NAME:853` without the name, and the name."""
    before, percent, after = host.rpartition("%")
    if not percent:
        return host, ""
    name, colon, port = after.partition(":")
    name, bracket, rest = name.partition("]")
    return before + bracket + rest + colon + port, name


def _checked_name(name: str) -> str:
    try:
        return str(ip_address(name))
    except ValueError:
        hostname = parse_hostname(name)
    if is_wildcard(hostname):
        raise ValueError(f"{shown(name)} is not one name of a certificate")
    return hostname
