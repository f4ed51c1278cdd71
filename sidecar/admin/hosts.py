"""The names by which an admin port may be asked, against DNS rebinding.

The law: a page of another site reads nothing of this port. With a name that first has the address of its site and then
ours, a page makes a browser ask this port and read the answer as its own; but the browser states that name in Host,
with the port that it dialled, and no page can change that. So a name is answered only if it is known. An address is no
name that anyone can move. Pure.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sidecar.admin.answers import Answer
from sidecar.values.endpoints import is_address
from sidecar.values.text import quoted

OPEN: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""Paths that a client may ask for by any name, as probes and scrapers do. It gets no hostname of the cluster:
of /readyz only the status."""
_LOCALHOST: Final = "localhost"
"""Browsers resolve it to loopback themselves."""
_HTTP: Final = 80
_AUTHORITY: Final = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(?::([0-9]{1,5})?)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Asked:
    """What decides whether a request is answered."""

    path: str
    headers: Mapping[bytes, str]
    """By name in lower case."""
    authority: str = ""
    """Of a request target in absolute form, which replaces Host (RFC 9112 section 3.2.2); else empty."""
    port: int = 0
    """Where the request arrived."""
    from_here: bool = True
    """Whether the client is on this host, or unknown."""


def refusal_of_host(asked: Asked, names: frozenset[str]) -> Answer | None:
    """421 (RFC 9110 section 15.5.20) for a request that states an unknown name, else None. `names` in small letters."""
    return None if asked.path in OPEN else unknown_host(asked, names)


def unknown_host(asked: Asked, names: frozenset[str]) -> Answer | None:
    """The same, whatever the path."""
    for text in (asked.headers.get(b"host", ""), asked.authority):
        host, port = _split(text.strip())
        if host is None or not (_is_known(host, names) or _is_forwarded(asked, port)):
            said = (
                f"This port is not known as {quoted(text)}: ask it by its address, or add the name to --admin-host.\n"
            )
            return Answer(421, said.encode())
    return None


def is_loopback(address: str) -> bool:
    """Whether the address of a client is on this host; also for a text that is no address."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return True
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback


def _split(authority: str) -> tuple[str | None, int]:
    """Host and port; the host is None if this is no authority."""
    found = _AUTHORITY.fullmatch(authority)
    if found is None:
        return None, _HTTP
    return found[1].lower().removesuffix("."), int(found[2] or _HTTP)


def _is_known(host: str, names: frozenset[str]) -> bool:
    # HTTP/1.0 and some probes state none; a browser always does.
    return not host or host == _LOCALHOST or host in names or is_address(host.removeprefix("[").removesuffix("]"))


def _is_forwarded(asked: Asked, port: int) -> bool:
    """Whether the API server forwarded it (`pods/proxy`): it passes on the Host by which its own client asked.

    A browser states the port that it dialled, which is ours, and `Connection`, which a proxy takes off and no page can.
    https://fetch.spec.whatwg.org/#forbidden-request-header
    """
    through_proxy = b"x-forwarded-for" in asked.headers and b"connection" not in asked.headers
    return through_proxy and port != asked.port and not asked.from_here
