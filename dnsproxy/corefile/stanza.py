"""The stanza: `forward ZONE <dnsproxy> <the original upstreams> { policy sequential; <the original options> }`.

The law: a query that dnsproxy does not answer goes to the original upstreams. dnsproxy forwards it there, as
upstream_routes.py reads them; if dnsproxy is dead, CoreDNS does, with the original options. Where nothing was forwarded
before, dnsproxy is the only upstream. An option that would break this (a dead dnsproxy would stop the cluster's DNS, or
CoreDNS would skip dnsproxy's answers) is omitted or raised with a note, or refused if that would change the meaning of
the original.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dnsproxy.corefile.forward_directive import MAXIMUM_UPSTREAMS, Forward, Option
from dnsproxy.corefile.model import CorefileError
from dnsproxy.dns.wire import DNS_PORT
from sidecar.values.endpoints import Endpoint

BEGIN = "# BEGIN switchback: managed by dnsproxy, changes in here are lost; `dnsproxy uninstall` takes it out"
END = "# END switchback"
_SEVERAL = "# BEGIN switchback ({} addresses):"
"""With more than one: otherwise an upstream that was removed from the original forward would pass for an address."""

POLICY = "policy sequential"
"""CoreDNS asks dnsproxy first, whatever the original's policy is."""

SEVERAL_FORWARDS = (1, 9, 4)
"""The first CoreDNS that takes several `forward` in one server block (notes/coredns-1.9.4.md)."""

FAILOVER = (1, 13, 0)
"""The first CoreDNS with `failover` (notes/coredns-1.13.0.md)."""

FAILOVER_ENDS = (1, 14, 7)
"""The first CoreDNS whose `failover` asks each upstream once. Earlier versions reset their count with each round, so
they repeat a query that every upstream answers with SERVFAIL for five seconds (plugin/forward/forward.go): with 1.14.6
one query became 27,000 queries to upstreams, with 1.14.7 one to each."""

MAX_FAILS = 1
"""CoreDNS skips an upstream after more than this number of failed health checks in a row. It notices a hanging dnsproxy
when the first query has waited two seconds; each check then takes one second, with half a second between two checks
(plugin/pkg/proxy/health.go, plugin/pkg/up/up.go). So queries stop waiting after 4.5 s; with CoreDNS's default of 2
after 6 s."""

MAX_CONCURRENT = 5000
"""Room for the queries that wait for a hanging dnsproxy for two seconds. CoreDNS answers REFUSED to all queries above
its limit, also for names that are not ours, and 500 queries a second exhaust the common limit of 1000. 5000 waiting
queries cost CoreDNS about 130 MB (`python -m tests.bench.faults`), so a limit remains."""

PREFER_UDP = "prefer_udp"
"""Forwards a client's TCP query over UDP first, and over TCP if the reply is truncated. CoreDNS waits 2 seconds for a
lost datagram, but 1 to 30 seconds for a connection that is never established, by its recent average
(plugin/pkg/proxy/connect.go). After five seconds it ends the query without asking the original upstreams."""

ALONE = (POLICY, f"max_fails {MAX_FAILS}", PREFER_UDP, f"max_concurrent {MAX_CONCURRENT}")
"""The options of a `forward` without other upstreams."""

_FAILOVER_CODES = ("SERVFAIL", "REFUSED")
_NUMBER = re.compile(r"[0-9]{1,10}")

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """The indentation and line ends of the stanza: those of its surroundings."""

    indent: str
    option_indent: str
    newline: str
    trailing: str
    """The characters between the stanza and the next word: the indentation of that word's line."""


@dataclass(frozen=True, slots=True)
class StanzaForward:
    """One `forward` of the stanza."""

    zone: str
    upstreams: tuple[str, ...]
    options: tuple[str, ...]
    notes: tuple[str, ...]

    def lines(self, layout: Layout) -> list[str]:
        """Its lines, without line ends."""
        head = f"{layout.indent}forward {self.zone} {' '.join(self.upstreams)} {{"
        return [head, *(layout.option_indent + option for option in self.options), f"{layout.indent}}}"]


def make_forward(
    zone: str, original: Forward | None, *, addresses: Sequence[Endpoint], coredns_version: Version | None
) -> StanzaForward:
    """The `forward` that asks the addresses first and the original's upstreams next.

    Raises CorefileError if the two cannot be combined.
    """
    notes = list(_notes_on_addresses(addresses))
    if original is None:
        notes.append(f"no forward serves {zone}: its other names fail with SERVFAIL, where CoreDNS refused them")
        return StanzaForward(zone, tuple(map(format_address, addresses)), ALONE, tuple(notes))
    _check_upstreams(original, addresses)
    options = [
        POLICY,
        *_failover(original, coredns_version, notes),
        *_max_fails(original),
        *_prefer_udp(original, notes),
    ]
    kept = [option for option in original.options if _is_kept(option, original, len(addresses), notes)]
    options += [_widened(option, notes) for option in kept]
    upstreams = (*map(format_address, addresses), *original.upstreams_raw)
    return StanzaForward(zone, upstreams, tuple(options), tuple(notes))


def format_stanza(forwards: Sequence[StanzaForward], layout: Layout, *, addresses: int = 1) -> str:
    """The text to insert before a word: from the first marker to the indentation of that word."""
    lines = [line for forward in forwards for line in forward.lines(layout)]
    begin = layout.indent.removeprefix(layout.trailing) + format_begin(addresses)
    return layout.newline.join([begin, *lines, layout.indent + END, layout.trailing])


def format_begin(addresses: int) -> str:
    """The marker that begins a stanza with so many addresses of dnsproxy."""
    return BEGIN if addresses == 1 else BEGIN.replace("# BEGIN switchback:", _SEVERAL.format(addresses))


def format_address(endpoint: Endpoint) -> str:
    """An address as people write it in a Corefile: without port 53."""
    return endpoint.host if endpoint.port == DNS_PORT else str(endpoint)


def _notes_on_addresses(addresses: Sequence[Endpoint]) -> Iterator[str]:
    if len(addresses) > 1:
        yield f"dnsproxy has {len(addresses)} addresses: if it hangs, CoreDNS waits two seconds for each of them"


def _check_upstreams(original: Forward, addresses: Sequence[Endpoint]) -> None:
    line = original.directive.line
    looped = [address for address in addresses if address in original.endpoints()]
    if looped:
        ours = format_address(looped[0])
        reason = f"{ours} is an upstream of this forward already, as in a stanza that was changed by hand"
        raise CorefileError(line, reason, "take that address, or the whole stanza, out of the file, and run this again")
    if len(addresses) + len(original.upstreams) > MAXIMUM_UPSTREAMS:
        reason = f"CoreDNS takes {MAXIMUM_UPSTREAMS} upstreams, and this forward has {len(original.upstreams)}"
        raise CorefileError(line, reason, f"remove {len(addresses)} of them")


def _failover(original: Forward, version: Version | None, notes: list[str]) -> list[str]:
    """Our `failover` line, if this CoreDNS ends failover and the original does not name the same codes."""
    theirs = {code.upper() for option in original.options if option.name == "failover" for code in option.values}
    missing = [code for code in _FAILOVER_CODES if code not in theirs]
    if version is not None and version >= FAILOVER_ENDS:
        return [f"failover {' '.join(missing)}"] if missing else []
    if version is not None and version >= FAILOVER:
        notes.append("no `failover`: before CoreDNS 1.14.7 it repeats a query for five seconds if every upstream fails")
    return []


def _max_fails(original: Forward) -> list[str]:
    """Our `max_fails` line, if the original sets no number."""
    chosen = [_number(option) for option in original.options if option.name == "max_fails"]
    return [] if any(number != 0 for number in chosen) else [f"max_fails {MAX_FAILS}"]


def _prefer_udp(original: Forward, notes: list[str]) -> list[str]:
    """Our `prefer_udp` line, if the original sets no protocol."""
    names = {option.name for option in original.options}
    if "force_tcp" in names:
        notes.append(
            "`force_tcp` stays: if dnsproxy's node vanishes, lookups wait for connections to it, some of them too long"
        )
    return [] if names & {"force_tcp", PREFER_UDP} else [PREFER_UDP]


def _widened(option: Option, notes: list[str]) -> str:
    """An option as the stanza has it: a low `max_concurrent` is raised."""
    number = _number(option) if option.name == "max_concurrent" else None
    if number is None or not 0 < number < MAX_CONCURRENT:
        return option.raw
    notes.append(
        f"`{option.shown}` becomes `max_concurrent {MAX_CONCURRENT}`: queries that wait for a dead dnsproxy count"
    )
    return f"max_concurrent {MAX_CONCURRENT}"


def _is_kept(option: Option, original: Forward, addresses: int, notes: list[str]) -> bool:
    if option.name == "next_on_nodata" or (option.name == "next" and "NOERROR" in map(str.upper, option.values)):
        reason = f"`{option.shown}` would pass dnsproxy's own answers on to the next forward"
        raise CorefileError(original.directive.line, reason, "remove that option, or use a separate server block")
    if option.name == "policy":
        if option.values != ("sequential",):
            notes.append(f"`{option.shown}` is replaced by `policy sequential`: CoreDNS has to ask dnsproxy first")
        return False
    return not _hides_the_fallback(option, addresses, notes)


def _hides_the_fallback(option: Option, addresses: int, notes: list[str]) -> bool:
    """Whether the option would keep CoreDNS from skipping a dead dnsproxy and asking the original upstreams."""
    number = _number(option)
    hides = (option.name == "max_fails" and number == 0) or (
        option.name == "max_connect_attempts" and number is not None and 0 < number <= addresses
    )
    if hides:
        notes.append(f"`{option.shown}` is omitted: with it CoreDNS would not skip a dead dnsproxy")
    return hides


def _number(option: Option) -> int | None:
    return int(option.values[0]) if _NUMBER.fullmatch(" ".join(option.values)) else None
