"""Looking: the second look, at what a pod or a client sees: DNS answers, connections and admin ports.

The law: it needs only the facts of the first look (collecting.py), and no right at the API server. Each part can fail
by itself and is then a ReadFailure. Tested in tests/dnsproxy/doctor/collect/test_collecting.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from dnsproxy.cluster_dns.probe_results import ProbeResult
from dnsproxy.cluster_dns.probing import ask_all
from dnsproxy.dns.wire import DNS_PORT
from dnsproxy.doctor.collect.dial_targets import dial_targets, names_to_look_up
from dnsproxy.doctor.collect.dialling import dial_with_headers
from dnsproxy.doctor.collect.lookups import look_up_all, public_server
from dnsproxy.doctor.collect.places import Places
from dnsproxy.doctor.collect.read_own import ask_admin
from dnsproxy.doctor.collect.reader import Progress
from dnsproxy.doctor.facts.model import Admin, Facts
from dnsproxy.doctor.facts.probes import DnsCheck, Lookup
from dnsproxy.doctor.judge.answering_lines import taken_by_lines
from dnsproxy.doctor.judge.host_groups import find_groups
from dnsproxy.doctor.judge.paths import Paths
from dnsproxy.doctor.judge.refusals import DIALLING, LOOKING_UP
from sidecar.values.endpoints import Endpoint, parse_endpoint

_MOST_ZONES: Final = 3
_MOST_OUTSIDE: Final = 40
# What is reported if the time was too short: its name in refusals.py, and the word for its items.
_LOOKING_UP: Final = (LOOKING_UP, "look-ups")
_DIALLING: Final = (DIALLING, "connections")


async def look_outside(facts: Facts, paths: Paths, places: Places, progress: Progress) -> Facts:
    """The facts with the answers of public DNS, which can be asked from everywhere."""
    public = places.public or public_server(facts.dns.addresses if facts.dns else ())
    names = names_to_look_up(facts, paths)[:_MOST_OUTSIDE] if public else ()
    servers = {"public": public} if public else {}
    lookups = await look_up_all(names, servers, lambda done: progress(f"looked up {done} of {len(names)} names"))
    return replace(facts, lookups=lookups.results, refusals=(*facts.refusals, *lookups.failures(*_LOOKING_UP)))


async def look(facts: Facts, paths: Paths, places: Places, progress: Progress) -> Facts:
    """The facts with DNS answers and connections as seen from this machine."""
    dns = facts.dns
    cluster = (places.dns,) if places.dns else tuple(_endpoints(dns.ask_at if dns else ()))
    servers = _servers(facts, cluster, places.public)
    names = names_to_look_up(facts, paths)
    count = len(names) * len(servers)
    lookups = await look_up_all(names, servers, lambda done: progress(f"looked up {done} of {count} names"))
    targets = dial_targets(facts, find_groups(facts, paths, lookups.results), lookups.results)
    probes = await dial_with_headers(targets, progress)
    progress("asking for dnsproxy")
    stanzas = dns.stanzas if dns else ()
    markers = tuple(stanza.marker for stanza in stanzas if stanza.marker)
    zones = tuple(dict.fromkeys(zone for stanza in stanzas for zone in stanza.zones))[:_MOST_ZONES]
    return replace(
        facts,
        probed=True,
        lookups=lookups.results,
        probes=probes.results,
        admin=(*facts.admin, *await _ask_admin_ports(places)),
        loaded=await _check(cluster, (*markers, *zones) or (".",)),
        answers=await _check(_dnsproxy_endpoints(facts), (".",)),
        own_lookups=await _ask_own(facts, names),
        refusals=(*facts.refusals, *lookups.failures(*_LOOKING_UP), *probes.failures(*_DIALLING)),
    )


def _servers(facts: Facts, cluster: tuple[Endpoint, ...], public: Endpoint | None) -> dict[str, Endpoint]:
    """The DNS servers to ask: one of the cluster, and a public one."""
    dns = facts.dns
    own = [*(dns.addresses if dns else ()), *(dns.node_local_addresses if dns else ())]
    public = public or public_server([*own, *(endpoint.host for endpoint in cluster)])
    return ({"cluster": cluster[0]} if cluster else {}) | ({"public": public} if public else {})


def _dnsproxy_endpoints(facts: Facts) -> tuple[Endpoint, ...]:
    """Where the stanzas ask dnsproxy; without a stanza, the addresses of its Service."""
    stanzas = facts.dns.stanzas if facts.dns else ()
    found = tuple(dict.fromkeys(_endpoints(address for stanza in stanzas for address in stanza.addresses)))
    return found or tuple(_endpoints(facts.dnsproxy.ask_at if facts.dnsproxy else ()))


async def _ask_own(facts: Facts, names: Sequence[str]) -> tuple[Lookup, ...]:
    """What dnsproxy would answer for the names that it is not asked for."""
    own, taken = _dnsproxy_endpoints(facts), taken_by_lines(names, facts)
    return (await look_up_all(taken, {"dnsproxy": own[0]})).results if own and taken else ()


async def _ask_admin_ports(places: Places) -> list[Admin]:
    named = ((places.admin, "dnsproxy"), (places.relay_admin, "relay"))
    return [await ask_admin(endpoint, program) for endpoint, program in named if endpoint is not None]


async def _check(endpoints: Iterable[Endpoint], zones: Iterable[str]) -> tuple[DnsCheck, ...]:
    return tuple(map(_dns_check, await ask_all(tuple(endpoints), tuple(zones))))


def _dns_check(asked: ProbeResult) -> DnsCheck:
    forwards = tuple(sorted({one.forwards for one in asked.outcomes if one.forwards}))
    return DnsCheck(str(asked.endpoint), asked.zone, asked.state.value, asked.said, forwards)


def _endpoints(texts: Iterable[str]) -> Iterable[Endpoint]:
    for text in texts:
        try:
            yield parse_endpoint(text, default_port=DNS_PORT)
        except ValueError:
            continue
