"""The lines of others that answer names in the cluster's DNS, as facts.

The law: they are those of `dnsproxy status`, and of no host in particular, so that a file of facts can be judged for
another host. A configuration that could not be read, or that CoreDNS would not load, has no lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dnsproxy.cluster_dns.found import Found
from dnsproxy.cluster_dns.method_choice import Method
from dnsproxy.cluster_dns.taken_hosts import TakenLine, find_taken_lines
from dnsproxy.cluster_dns.traces import Trace
from dnsproxy.corefile.zones import ROOT
from dnsproxy.doctor.facts.cluster_dns import AnsweringLine, LineNames


def answering_lines(found: Found, traces: Sequence[Trace]) -> tuple[AnsweringLine, ...]:
    """The lines that come before our stanzas; without a stanza, those before one that an install would write."""
    return tuple(map(_fact, _lines(found, traces)))


def _lines(found: Found, traces: Sequence[Trace]) -> Iterator[TakenLine]:
    stanzas = [trace for trace in traces if trace.method is not Method.OVERRIDE_REWRITES]
    for trace in stanzas:
        yield from find_taken_lines(found, trace.method, trace.zones)
    if not stanzas:
        yield from find_taken_lines(found, Method.COREFILE, (ROOT,))


def _fact(line: TakenLine) -> AnsweringLine:
    names, excepted = line.names, tuple(LineNames(one.kind, one.text) for one in line.excepted)
    return AnsweringLine(line.what, names.kind, names.text, names.gives, line.text, excepted)
