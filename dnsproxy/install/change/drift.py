"""Drift: how a stanza that stands differs from the one that an install would write now.

The law: the comparison is with the plan of an install by the same method, for the same zones and the same dnsproxy. Its
reasons are edits of the original forward, or between the markers, and another version of CoreDNS or of dnsproxy. Spaces
and comments are no difference, because owners that render a printed text change them. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dnsproxy.cluster_dns.found import Found
from dnsproxy.cluster_dns.method_choice import Choice, ConfigMapKey, Method, choose_method
from dnsproxy.cluster_dns.refusal import ChangeRefused
from dnsproxy.cluster_dns.traces import Trace
from dnsproxy.corefile.lexer import lex
from dnsproxy.corefile.zones import ROOT
from dnsproxy.install.change.config_map import ConfigMapChange, Edits, Entry, Wanted, format_diffs
from dnsproxy.install.change.planning import plan_apply
from dnsproxy.install.change.rewrite_choice import LiveRewrites
from sidecar.values.endpoints import Endpoint


@dataclass(frozen=True, slots=True)
class Drift:
    """An installed stanza that is out of date."""

    target: ConfigMapKey
    diff: str
    """The unified diff from the present state to that after an install; empty if an install would be refused."""
    refusal: str = ""
    """Why an install would be refused now; empty if it would not."""


def find_drift(
    found: Found,
    traces: Sequence[Trace],
    *,
    own: Sequence[Endpoint] = (),
    named: Sequence[Endpoint] = (),
    live: LiveRewrites | None = None,
    within: Sequence[str] = (),
) -> Drift | None:
    """The drift of what is installed; None if there is none, or nothing intact is installed.

    `own` are the addresses of dnsproxy's Service, empty if unknown; `named` those that a user gave to the install;
    `live` the names of its table, None if they are unknown; `within` the zones to which they are limited.
    """
    lines = next((trace for trace in traces if trace.rewrites), None)
    rewriting = choose_method(found, Method.OVERRIDE_REWRITES)
    if lines is not None and rewriting.method is None:
        # CoreDNS may have loaded them all the same, and answer some names past them.
        return Drift(lines.target, "", rewriting.why)
    picked = _pick(found, traces)
    if picked is None:
        return None
    trace, choice = picked
    wanted = Wanted(_addresses(trace, own, named), _zones(trace))
    if trace.rewrites is not None:
        wanted = Wanted((), tuple(within), live or LiveRewrites(doubt="they were not read"))
    try:
        edits = plan_apply(found, choice, wanted)
    except ChangeRefused as refusal:
        return Drift(trace.target, "", str(refusal))
    return Drift(trace.target, format_diffs(edits)) if _differs(edits) else None


def _pick(found: Found, traces: Sequence[Trace]) -> tuple[Trace, Choice] | None:
    """The trace to compare, and the choice of its method: the place that an install writes, before others."""
    intact = [trace for trace in traces if (trace.addresses or trace.rewrites) and not trace.fault]
    pairs = [(trace, choose_method(found, trace.method)) for trace in intact]
    # Without a method nothing can be written, so there is nothing to compare with.
    pairs = [(trace, choice) for trace, choice in pairs if choice.method is not None]
    same = [(trace, choice) for trace, choice in pairs if str(choice.target) == str(trace.target)]
    return next(iter([*same, *pairs]), None)


def _addresses(trace: Trace, own: Sequence[Endpoint], named: Sequence[Endpoint]) -> tuple[Endpoint, ...]:
    """The primary address of the Service if the stanza asks the Service; any other address was given by a user."""
    if set(trace.addresses) <= set(named) or trace.addresses[0] not in own:
        return trace.addresses
    return tuple(own[:1])


def _zones(trace: Trace) -> tuple[str, ...]:
    """The zones as an install writes them."""
    return tuple(zone if zone == ROOT else zone.removesuffix(".") for zone in trace.zones)


def _differs(edits: Edits) -> bool:
    return any(_changes(change, edits.method) for change in edits.changes)


def _changes(change: ConfigMapChange, method: Method | None) -> bool:
    if any(entry.old != entry.new for entry in change.annotations):
        return True
    return any(_reads_differently(entry, method) for entry in change.data)


def _reads_differently(entry: Entry, method: Method | None) -> bool:
    if method is Method.STUB_DOMAINS or entry.old is None or entry.new is None:
        return entry.old != entry.new
    return _meaning(entry.old) != _meaning(entry.new)


def _meaning(text: str) -> list[tuple[str, bool]]:
    """The words as CoreDNS reads them, each with whether it starts a line."""
    tokens, _ = lex(text)
    ends = [0, *(token.last_line for token in tokens)]
    return [(token.text, token.line > end) for token, end in zip(tokens, ends, strict=False)]
