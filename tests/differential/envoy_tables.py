"""Envoy's tables: which hostnames an Envoy serves by its listeners (LDS) and route tables (RDS).

The law: pure, and the rules are Envoy's: of filter chains the one with the most specific server name, then of virtual
hosts the one with the most specific domain. A name counts if a chain or a virtual host names it: an answer to every
name makes none of them this Envoy's.
https://www.envoyproxy.io/docs/envoy/latest/api-v3/config/route/v3/route_components.proto#config-route-v3-virtualhost
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.differential.sets import ObjectSet

Resource = Mapping[str, Any]
"""A resource of xDS as JSON with the names of its proto."""


@dataclass(frozen=True)
class VirtualHost:
    """The domains of a virtual host, and of each of its routes what the name must match."""

    domains: tuple[str, ...]
    authorities: tuple[tuple[re.Pattern[str], ...], ...]

    def routes(self, name: str) -> bool:
        """Whether a route takes requests for a name."""
        return any(all(pattern.fullmatch(name) for pattern in patterns) for patterns in self.authorities)


@dataclass(frozen=True)
class FilterChain:
    """Connections with one of these server names, or all others, go to a route table, or without one to a backend."""

    server_names: tuple[str, ...]
    route_table: str | None


@dataclass(frozen=True)
class EnvoyTables:
    """The chains of each listener, the default one last, and the virtual hosts of each route table."""

    listeners: tuple[tuple[FilterChain, ...], ...]
    route_tables: Mapping[str, tuple[VirtualHost, ...]]

    def serve(self, objects: ObjectSet, name: str) -> bool:  # noqa: ARG002  # the form for find_differences
        """Whether a name of a set is served."""
        return self.serves(name)

    def serves(self, name: str) -> bool:
        """Whether any listener has the name and a route or a backend for it."""
        return any(self._listener_serves(chains, name) for chains in self.listeners)

    def _listener_serves(self, chains: tuple[FilterChain, ...], name: str) -> bool:
        named: dict[str, FilterChain] = {}
        for chain in chains:
            for server_name in chain.server_names or ("*",):
                named.setdefault(server_name, chain)
        found = best_match(named, name)
        if found is None:
            return False
        chain = named[found]
        if chain.route_table is None:
            return found != "*"
        hosts = {domain: host for host in self.route_tables.get(chain.route_table, ()) for domain in host.domains}
        domain = best_match(hosts, name)
        return domain is not None and (found, domain) != ("*", "*") and hosts[domain].routes(name)


def best_match(domains: Iterable[str], name: str) -> str | None:
    """The domain that Envoy takes for a name: the name itself, the longest wildcard, or `*`."""
    fitting = [one for one in domains if one in ("*", name) or (one.startswith("*.") and name.endswith(one[1:]))]
    return max(fitting, key=lambda one: (one == name, len(one)), default=None)


def read_tables(listeners: Iterable[Resource], route_tables: Iterable[Resource]) -> EnvoyTables:
    """The tables of all listeners, and of route tables that they name."""
    chains = tuple(tuple(_read_chains(one)) for one in listeners)
    hosts = {one["name"]: tuple(map(_read_host, one.get("virtual_hosts", ()))) for one in route_tables}
    return EnvoyTables(chains, hosts)


def _read_chains(listener: Resource) -> Iterator[FilterChain]:
    default = listener.get("default_filter_chain")
    for chain in (*listener.get("filter_chains", ()), *([default] if default else ())):
        configs = [one.get("typed_config", {}) for one in chain.get("filters", ())]
        tables = [one["rds"]["route_config_name"] for one in configs if "rds" in one]
        server_names = tuple(chain.get("filter_chain_match", {}).get("server_names", ()))
        yield FilterChain(server_names, tables[0] if tables else None)


def _read_host(host: Resource) -> VirtualHost:
    matches = (one.get("match", {}) for one in host.get("routes", ()))
    return VirtualHost(tuple(host["domains"]), tuple(tuple(_authorities(match)) for match in matches))


def _authorities(match: Resource) -> Iterator[re.Pattern[str]]:
    for header in match.get("headers", ()):
        if header["name"].lower() in (":authority", "host"):
            wanted = header["string_match"]
            text = wanted["safe_regex"]["regex"] if "safe_regex" in wanted else re.escape(wanted["exact"])
            yield re.compile(text)
