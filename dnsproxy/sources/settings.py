"""What to read from a cluster: which sources, and which of their objects count.

The law: values only. All fields of a source's options go into the settings of a snapshot, so that a snapshot taken
with other options is never used.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from dnsproxy.sources.ingress_hosts import TlsHosts
from dnsproxy.sources.selection import ALL, Selection


@dataclass(frozen=True, slots=True)
class IngressOptions:
    """Which Ingresses and which of their hosts count."""

    classes: frozenset[str] = frozenset()
    """`--ingress-class`: only these classes; empty: all Ingresses, also those without a class."""
    tls_only: bool = False
    """`--tls-only`: only the hosts of TLS sections."""
    tls_hosts: TlsHosts = TlsHosts.RULES
    """`--tls-hosts`: which hosts of TLS sections count."""


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """Which Gateways count."""

    classes: frozenset[str] = frozenset()
    """`--gateway-class`: only Gateways of these classes, with what attaches to them; empty: all."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """A source of another API, and which of its objects count."""

    name: str
    """The value of `--source`: one of names.OTHERS, or `crd:PLURAL.GROUP:PATH`."""
    classes: frozenset[str] = frozenset()
    """`--class-of`: only objects of these, by the source's own idea of a class; empty: all."""


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """How to reach the API server and what to read from it."""

    ingress: IngressOptions | None = None
    gateway: GatewayOptions | None = None
    services: bool = False
    """Whether Services with a `switchback.dev/hostname` annotation count."""
    others: tuple[SourceOptions, ...] = ()
    """The sources of other APIs, each once."""
    steers: bool = False
    """Whether a target is `auto`: Services of our own namespace say which class or Gateway they answer for."""
    routes_namespace: str | None = None
    """Where those Services are; None: the pod's own namespace, or that of the kubeconfig's context."""
    selection: Selection = ALL
    """Which objects of the sources count, of whatever kind."""
    kubeconfig: str | None = None
    context: str | None = None

    def snapshot_settings(self, server: str) -> dict[str, str]:
        """What decides which claims exist, for a snapshot to be compared by; `server`: the API server's URL."""
        sources = {"ingress": self.ingress, "gateway": self.gateway}
        given: dict[str, object] = {name: options for name, options in sources.items() if options is not None}
        given |= {other.name: other for other in sorted(self.others, key=lambda other: other.name)}
        names = [*given, *(["service"] if self.services else [])]
        flags = {"API server": server, "sources": ",".join(names)} | self.selection.snapshot_settings()
        return flags | {
            key: text for name, options in given.items() for key, text in settings_of(name, options).items()
        }


def settings_of(source: str, options: object) -> dict[str, str]:
    """Settings for a snapshot from all fields of a source's options, a dataclass."""
    return {f"{source} {one.name}": _format_value(getattr(options, one.name)) for one in fields(options)}  # type: ignore[arg-type]


def _format_value(value: object) -> str:
    if isinstance(value, (frozenset, tuple)):
        return ",".join(sorted(map(_format_value, value)))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)
