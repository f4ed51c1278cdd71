"""Hosts: the hosts of a Gateway's servers, by the namespaces whose VirtualServices may bind to them.

The law: pure; an invalid host affects no other. A wildcard covers any number of labels: "The match could be an exact
match or a suffix match with the server's hosts." A wildcard within a label (`*-x.example.org`), which Istio takes too,
has no form in DNS and is rejected.
https://istio.io/latest/docs/reference/config/networking/gateway/#Server
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from sys import intern
from typing import Final

import msgspec

from dnsproxy.dns.names import BadName, ObjectNames, is_wildcard, parse_hostname
from dnsproxy.hostnames.name_limits import too_many
from dnsproxy.sources.istio import structs
from sidecar.kubernetes.names import LABEL
from sidecar.values.text import quoted

EVERY_HOST: Final = "*"
"""As the host of a server or a VirtualService: every name."""
_ANY: Final = "*"
"""As the namespace of a server's host: every namespace; the default."""
_NAMESPACE: Final = re.compile(LABEL)


class BadHost(ValueError):
    """A text that is not the host of a server; the message quotes it."""


class NameSet(msgspec.Struct, frozen=True, gc=False):
    """Hostnames in normal form, in which those below a wildcard are found without a walk over all."""

    names: Mapping[str, None]
    """In the object's order."""
    keys: tuple[str, ...]
    """Their labels from the last to the first, sorted: `org.example.app.`"""
    by_key: tuple[str, ...]
    """The hostnames in the order of the keys."""

    def below(self, wildcard: str) -> Iterator[str]:
        """The hostnames whose names a wildcard covers, itself included."""
        apex = _key_of(wildcard.removeprefix("*."))
        place = bisect_right(self.keys, apex)
        while place < len(self.keys) and self.keys[place].startswith(apex):
            yield self.by_key[place]
            place += 1


def make_name_set(names: Iterable[str]) -> NameSet:
    """A set of these hostnames, each once."""
    distinct = dict.fromkeys(names)
    ordered = sorted((_key_of(name), name) for name in distinct)
    return NameSet(distinct, tuple(key for key, _ in ordered), tuple(name for _, name in ordered))


def _key_of(name: str) -> str:
    return ".".join(reversed(name.split("."))) + "."


class ServerHosts(msgspec.Struct, frozen=True, gc=False):
    """The hosts of all servers of one Gateway."""

    named: Mapping[str, NameSet]
    """By namespace."""
    every: frozenset[str]
    """The namespaces for which the servers have every name."""
    is_cut: bool = False
    """Whether hosts beyond the limit were not read."""

    def admit(self, namespace: str) -> bool:
        """Whether VirtualServices of a namespace may bind to any of them."""
        return self.have_every_name_for(namespace) or namespace in self.named or _ANY in self.named

    def names_for(self, namespace: str) -> Iterator[NameSet]:
        """The hostnames that VirtualServices of a namespace may bind to, in one set or two."""
        for scope in dict.fromkeys((namespace, _ANY)):
            if scope in self.named:
                yield self.named[scope]

    def have_every_name_for(self, namespace: str) -> bool:
        """Whether VirtualServices of a namespace may bind to every name."""
        return _ANY in self.every or namespace in self.every

    def exact_names(self) -> Iterator[str]:
        """The hostnames without wildcards, each once, whatever their namespaces."""
        names = dict.fromkeys(name for some in self.named.values() for name in some.names)
        return (name for name in names if not is_wildcard(name))


def parse_servers(
    servers: Iterable[structs.Server | None] | None, *, home: str, most: int | None
) -> tuple[ServerHosts, list[str]]:
    """The hosts of a Gateway in the namespace `home`, and the faults of the invalid ones."""
    texts, faults = first_hosts((host for one in servers or () if one is not None for host in one.hosts or ()), most)
    is_cut = bool(faults)
    named: dict[str, dict[str, None]] = {}
    every: set[str] = set()
    names = ObjectNames()
    for text in texts:
        try:
            namespace, hostname = parse_server_host(text, home, parse=names.parse)
        except (BadHost, BadName) as error:
            faults.append(f"servers: {error}")
        else:
            if hostname is None:
                every.add(namespace)
            else:
                named.setdefault(namespace, {})[hostname] = None
    sets = {namespace: make_name_set(names) for namespace, names in named.items()}
    return ServerHosts(sets, frozenset(every), is_cut), faults


def parse_server_host(text: str, home: str, *, parse: Callable[[str], str] = parse_hostname) -> tuple[str, str | None]:
    """The namespace and the hostname in normal form of `HOST`, `NAMESPACE/HOST`, `./HOST` or `*/HOST`.

    The hostname is None for every name. `parse`: of a hostname. Raises BadHost or BadName.
    """
    namespace, slash, host = text.rpartition("/")
    if slash and namespace not in (".", _ANY) and not _NAMESPACE.fullmatch(namespace):
        raise BadHost(f"{quoted(text)} is neither HOST nor NAMESPACE/HOST")
    scope = {"": _ANY, ".": home}.get(namespace, namespace)
    return intern(scope), None if host == EVERY_HOST else parse(host)


def first_hosts(texts: Iterable[str | None], most: int | None) -> tuple[list[str], list[str]]:
    """The first distinct texts, at most so many, and a fault if there are more; an object can have 100,000."""
    hosts: dict[str, None] = {}
    for text in texts:
        if len(hosts) == most and (text or "") not in hosts:
            return list(hosts), [too_many(len(hosts))]
        hosts[text or ""] = None
    return list(hosts), []
