"""Keys of server blocks and the zones they name: `.:53`, `dns://example.org`, `tls://example.org:853`.

The law: zones are compared in one form: lower case, with a final dot. A text that depends on CoreDNS's environment
(`{$ZONE}`) has no zone and equals no other.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass

from dnsproxy.dns.names import MAXIMUM_LABEL, MAXIMUM_NAME
from dnsproxy.dns.wire import DNS_PORT

ROOT = "."
DNS_SCHEME = "dns"

# CoreDNS plugin/pkg/transport: the schemes and their default ports.
_PORTS = {"dns": 53, "tls": 853, "quic": 853, "grpc": 443, "https": 443, "https3": 443, "unix": 0}
_PORT = re.compile(r"(.*):([+-]?[0-9]{1,18})", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:[0-9]{3}|.)", re.DOTALL)
_ENVIRONMENT = re.compile(r"\{\$.+?\}|\{%.+?%\}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Origin:
    """The meaning of a key: a zone, and the scheme and port of its service."""

    zone: str | None
    """Lower case with a final dot; None if an environment variable decides."""
    scheme: str = DNS_SCHEME
    port: int = DNS_PORT


def parse_origin(key: str) -> Origin:
    """The zone, scheme and port of a server block's key (CoreDNS core/dnsserver/register.go, plugin/normalize.go).

    A name in CIDR notation stays as it is. Raises ValueError if CoreDNS accepts no such zone.
    """
    if has_environment(key):
        return Origin(None)
    scheme, rest = _split_scheme(key)
    if rest.endswith(":"):
        raise ValueError("there is no port after its colon")
    match = _PORT.fullmatch(rest)
    name, port = (match[1], int(match[2])) if match else (rest, _PORTS[scheme])
    return Origin(normalize_zone(name), scheme, port)


def normalize_zone(name: str) -> str:
    """The form in which zones are compared. Raises ValueError if the name is not a domain name."""
    zone = name.lower().removesuffix(".") + "."
    if len(zone) > MAXIMUM_NAME:
        raise ValueError(f"the name is longer than {MAXIMUM_NAME} octets")
    # A backslash escapes an octet of a label, also a dot (RFC 1035 section 5.1); CoreDNS compares the text as we do.
    plain = _ESCAPE.sub("x", name)
    labels = [] if plain == ROOT else plain.removesuffix(".").split(".")
    if "\\" in plain or any(not label or len(label.encode(errors="replace")) > MAXIMUM_LABEL for label in labels):
        raise ValueError("it is not a domain name")
    return zone


def reverse_zones(zone: str) -> Iterator[str]:
    """The reverse zones of a zone in CIDR notation, as CoreDNS reads it (plugin/normalize.go); others as they are."""
    address, slash, length = zone.removesuffix(".").partition("/")
    try:
        if not (slash and length.isdigit()):
            raise ValueError("not in CIDR notation")  # noqa: TRY301
        network = ipaddress.ip_network(f"{address}/{length}", strict=False)
    except ValueError:
        yield zone
        return
    # A zone ends between two octets or nibbles; a network that does not is several zones.
    step = 8 if isinstance(network, ipaddress.IPv4Network) else 4
    whole = -(-network.prefixlen // step) * step
    for part in network.subnets(new_prefix=whole):
        labels = part.network_address.reverse_pointer.split(".")
        yield ".".join(labels[(network.max_prefixlen - whole) // step :]) + "."


def has_environment(text: str) -> bool:
    """Whether CoreDNS replaces environment variables in this word: `{$NAME}` or `{%NAME%}`."""
    return _ENVIRONMENT.search(text) is not None


def environment_names(text: str) -> list[str]:
    """The names of the environment variables in a word, in order."""
    return [found.group().strip("{}$%") for found in _ENVIRONMENT.finditer(text)]


def is_at_or_below(zone: str, parent: str) -> bool:
    """Whether a zone equals another zone or lies inside it; both in the form of normalize_zone."""
    return parent in (ROOT, zone) or zone.endswith("." + parent)


def _split_scheme(key: str) -> tuple[str, str]:
    for scheme in _PORTS:
        if key.startswith(f"{scheme}://"):
            return scheme, key.removeprefix(f"{scheme}://")
    return DNS_SCHEME, key
