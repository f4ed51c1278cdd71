"""Traces: everything of ours that is installed in a cluster's DNS, by any method, found by its marks.

The law: a text between our markers is ours, the stanza also without them, and so is a stub domain that our annotation
on its ConfigMap names. An uninstall removes exactly the traces found here. A damaged trace is reported with its fault.
An upstream of others is never taken for an address of dnsproxy, also if the original forward has other upstreams now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from dnsproxy.cluster_dns.found import Found, FoundCorefile, ImportedFile, StubDomains
from dnsproxy.cluster_dns.kube_dns import STUB_DOMAINS
from dnsproxy.cluster_dns.method_choice import ConfigMapKey, Method
from dnsproxy.corefile.forward_directive import Forward, parse_forward
from dnsproxy.corefile.markers import count_addresses, find_region, is_marked, without_region
from dnsproxy.corefile.model import Corefile, CorefileError, Scope, ServerBlock
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.rewrite_lines import RewriteLines, parse_rewrites
from dnsproxy.corefile.zones import ROOT, normalize_zone
from dnsproxy.dns.wire import DNS_PORT
from sidecar.kubernetes.structs.workload import ConfigMap
from sidecar.values.endpoints import Endpoint, parse_endpoint
from sidecar.values.text import cut_list

Upstreams = tuple[str, ...]
"""The upstreams of one forward, as CoreDNS reads them."""

ANNOTATION: Final = "switchback.dev/stub-domains"
"""On a ConfigMap with stubDomains: the zones in it that are ours, separated by blanks."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One place with something of ours."""

    method: Method
    target: ConfigMapKey
    zones: tuple[str, ...]
    """Zones whose queries go to dnsproxy, with a final dot, `.` for all; empty if unreadable."""
    addresses: tuple[Endpoint, ...]
    """The addresses of dnsproxy in order, without the original upstreams after them."""
    fault: str = ""
    """What is wrong with it; empty if it is intact."""
    rewrites: RewriteLines | None = None
    """For `override-rewrites`: what its lines say; None if they are unreadable."""


def find_traces(found: Found) -> tuple[Trace, ...]:
    """Everything of ours in a cluster; Corefiles first."""
    servers = [found.server, found.node_local.server if found.node_local else None]
    corefiles = [server.corefile for server in servers if server and server.corefile]
    stubs = [server.stub_domains for server in servers if server and server.stub_domains]
    traces = [
        *(trace for corefile in corefiles for trace in _traces_in(corefile)),
        *(trace for stub in stubs for trace in _trace_of_stubs(stub)),
    ]
    # Two servers may read the same ConfigMap.
    return tuple({(trace.method, str(trace.target)): trace for trace in traces}.values())


def has_marks(config_map: ConfigMap) -> bool:
    """Whether a ConfigMap has a marker or an annotation of ours."""
    annotated = ANNOTATION in (config_map.metadata.annotations or {})
    return annotated or any(map(_has_mark, (config_map.data or {}).values()))


def _has_mark(text: str) -> bool:
    try:
        return is_marked(text)
    except CorefileError:  # no Corefile
        return False


def _traces_in(corefile: FoundCorefile) -> Iterator[Trace]:
    target = ConfigMapKey(corefile.source, corefile.key)
    theirs = [words for file in corefile.files if not is_marked(file.text) for words in _upstreams(file.value)]
    try:
        value = parse_corefile(corefile.text)
        region = find_region(value)
        theirs += _upstreams(without_region(value))
        if region is not None:
            inside = range(region.start.index, region.stop.index)
            forwards = _forwards(value, Scope.ROOT_PLUGINS, inside)
            yield _trace(Method.COREFILE, target, forwards, theirs, count_addresses(region.begin))
    except CorefileError as error:
        if is_marked(corefile.text):
            yield Trace(Method.COREFILE, target, (), (), f"line {error.line}: {error}")
    for file in corefile.files:
        if is_marked(file.text):
            yield _trace_of_file(file, theirs)


def _trace_of_file(file: ImportedFile, theirs: Sequence[Upstreams]) -> Trace:
    target = ConfigMapKey(file.source, file.key)
    try:
        value = parse_corefile(file.text, file.scope)
        if any(block.named("rewrite") and not block.named("forward") for block in value.blocks):
            return _trace_of_rewrites(target, value)
        forwards = _forwards(value, file.scope, range(len(value.tokens)))
        return _trace(Method.IMPORT, target, forwards, theirs, count_addresses(file.text))
    except CorefileError as error:
        return Trace(Method.IMPORT, target, (), (), f"line {error.line}: {error}")


def _trace_of_rewrites(target: ConfigMapKey, value: Corefile) -> Trace:
    try:
        return Trace(Method.OVERRIDE_REWRITES, target, (), (), rewrites=parse_rewrites(value))
    except CorefileError as error:
        return Trace(Method.OVERRIDE_REWRITES, target, (), (), f"line {error.line}: {error}")


def _trace_of_stubs(stub: StubDomains) -> Iterator[Trace]:
    annotations = (stub.source.object.metadata.annotations if stub.source.object else None) or {}
    if ANNOTATION not in annotations:
        return
    named = annotations[ANNOTATION].split()
    there = [zone for zone in named if zone in stub.zones]
    fault = (
        ""
        if there == named and there
        else f"its annotation names {cut_list(named, ' ') or 'nothing'}, and not all of that exists"
    )
    addresses = dict.fromkeys(address for zone in there for address in stub.zones[zone])
    target = ConfigMapKey(stub.source, STUB_DOMAINS)
    yield Trace(Method.STUB_DOMAINS, target, tuple(map(_zone, there)), tuple(_endpoints(addresses)), fault)


def _trace(
    method: Method,
    target: ConfigMapKey,
    forwards: Iterable[tuple[Forward, tuple[str, ...]]],
    theirs: Sequence[Upstreams],
    count: int,
) -> Trace:
    zones: dict[str, None] = {}
    addresses: dict[Endpoint, None] = {}
    for forward, served in forwards:
        zones |= dict.fromkeys(served)
        addresses |= dict.fromkeys(_endpoints(_own_upstreams(forward.upstreams, theirs, count)))
    fault = "" if addresses else "it has no address of dnsproxy"
    return Trace(method, target, tuple(zones), tuple(addresses), fault)


def _forwards(value: Corefile, scope: Scope, inside: range) -> Iterator[tuple[Forward, tuple[str, ...]]]:
    """The forwards among some words, each with its zones."""
    for block in value.blocks:
        for directive in block.named("forward"):
            if directive.index in inside:
                forward = parse_forward(directive)
                yield forward, _zones_of(forward, block, scope)


def _zones_of(forward: Forward, block: ServerBlock, scope: Scope) -> tuple[str, ...]:
    if scope is Scope.BLOCKS and forward.zone == ROOT:
        return tuple(key.origin.zone for key in block.keys if key.origin.zone)
    return (forward.zone,) if forward.zone else ()


def _own_upstreams(upstreams: Upstreams, theirs: Sequence[Upstreams], count: int) -> Upstreams:
    """The first upstreams of a forward of ours, as many as its marker says; those of the original forward stand last.

    If no present forward has the others, somebody changed one of the two since, and an upstream of others is not ours.
    """
    ours = upstreams[:count]
    if upstreams[count:] in theirs:
        return ours
    return tuple(takewhile(lambda one: not any(one in words for words in theirs), ours))


def _upstreams(corefile: Corefile | None) -> list[Upstreams]:
    """The upstreams of each forward."""
    blocks = corefile.blocks if corefile else ()
    words = [tuple(word.text for word in one.arguments[1:]) for block in blocks for one in block.named("forward")]
    return list(filter(None, words))


def _endpoints(upstreams: Iterable[str]) -> Iterator[Endpoint]:
    for upstream in upstreams:
        try:
            yield parse_endpoint(upstream.removeprefix("dns://"), default_port=DNS_PORT)
        except ValueError:
            continue


def _zone(text: str) -> str:
    try:
        return normalize_zone(text)
    except ValueError:
        return text
