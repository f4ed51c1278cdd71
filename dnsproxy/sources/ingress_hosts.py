"""Ingress hosts: which hosts of the rules and TLS sections of one Ingress its controller serves.

The law: pure. A TLS section says for which names there is a certificate, and the rules say which names are served. Many
certificates are for more names than the cluster has, such as example.org and *.example.org with mail.example.org
elsewhere: a claim on each of them would send clients of mail.example.org to the relay.
https://kubernetes.io/docs/concepts/services-networking/ingress/#tls
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from dnsproxy.dns.names import parse_hostnames
from dnsproxy.hostnames.name_limits import too_many
from dnsproxy.sources.refusals import list_hostnames


class TlsHosts(StrEnum):
    """Which hosts of TLS sections count."""

    RULES = "rules"
    """Those that the object's rules serve."""
    ALL = "all"


class Rule(Protocol):
    """The part of an Ingress's rule that decides which names it serves."""

    @property
    def host(self) -> str | None:
        """None or empty: every name."""
        ...

    @property
    def http(self) -> object | None:
        """None: it has no paths."""
        ...


@dataclass(frozen=True, slots=True)
class Hosts:
    """The hosts of one object, in normal form, each once and in its order."""

    served: tuple[str, ...]
    unserved: tuple[str, ...]
    """Those of TLS sections that do not count, because no rule serves them."""
    faults: tuple[str, ...]


def read_hosts(
    rules: Sequence[Rule],
    in_tls: Iterable[str | None],
    *,
    has_default_backend: bool,
    tls_only: bool,
    tls_hosts: TlsHosts,
    most: int | None = None,
) -> Hosts:
    """The hosts of the rules, unless `tls_only`, and then those of the TLS sections: the first `most` of them."""
    of_rules, are_cut = _first_hosts((rule.host for rule in rules), most)
    hosts, is_cut = _first_hosts(in_tls, most, () if tls_only else of_rules)
    found, faults = parse_hostnames(hosts)
    unserved: list[str] = []
    # Nearly every object has only hosts in its TLS sections that are, letter for letter, those of its rules.
    if tls_hosts is TlsHosts.RULES and not hosts.keys() <= of_rules.keys():
        every_name = serves_every_name(rules, has_default_backend=has_default_backend)
        unserved = [] if every_name else unserved_hosts(found, parse_hostnames(of_rules)[0])
    left_out = frozenset(unserved)
    # A rule that was not read might serve one of these.
    too_long = [too_many(len(hosts))] if is_cut or (are_cut and (unserved or not tls_only)) else []
    return Hosts(tuple(name for name in found if name not in left_out), tuple(unserved), (*too_long, *faults))


def serves_every_name(rules: Sequence[Rule], *, has_default_backend: bool) -> bool:
    """Whether an Ingress with these rules serves whatever name a client asks for.

    ingress-nginx and Traefik take spec.defaultBackend for every name only of an Ingress without rules; beside rules,
    ingress-nginx takes it for the other paths of their hosts, and Traefik ignores it.
    https://github.com/kubernetes/ingress-nginx/blob/dbb11b92/internal/ingress/controller/controller.go createServers
    https://github.com/traefik/traefik/blob/0070a2aa/pkg/provider/kubernetes/ingress/kubernetes.go
    """
    if not rules:
        return has_default_backend
    return any(not rule.host and rule.http is not None for rule in rules)


def unserved_hosts(hostnames: Iterable[str], by_rules: Container[str]) -> list[str]:
    """The hostnames that no rule with a host serves, in their order.

    All are in normal form; the wildcard of a rule serves one label.
    """
    return [name for name in hostnames if name not in by_rules and f"*.{name.partition('.')[2]}" not in by_rules]


def explain_unserved(hostnames: Sequence[str]) -> str:
    """Why an object does not get these hosts of its TLS sections: at least one."""
    what, them = ("this host", "it") if len(hostnames) == 1 else ("these hosts", "them")
    return f"{list_hostnames(hostnames)}: no rule has {what} of the TLS section (--tls-hosts all claims {them})"


def _first_hosts(
    hosts: Iterable[str | None], most: int | None, before: Iterable[str] = ()
) -> tuple[dict[str, None], bool]:
    """The hosts of `before` and then the others, each once, until there are `most`; and whether one is left out."""
    found = dict.fromkeys(before)
    for host in hosts:
        if len(found) == most and host and host not in found:
            return found, True
        if host:
            found[host] = None
    return found, False
