"""Our stanza without its markers: a migration of the Corefile (kubeadm, Cluster API) drops every comment.

The law: forwards are ours if they are, zone by zone and option by option, what an install writes before the forward
behind them, for any addresses of dnsproxy. What differs in a word is its owner's.
https://github.com/coredns/corefile-migration
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from dnsproxy.corefile.forward_directive import Forward, parse_forward
from dnsproxy.corefile.model import Corefile, CorefileError, Directive, ServerBlock
from dnsproxy.corefile.stanza import FAILOVER_ENDS, POLICY, make_forward
from dnsproxy.dns.wire import DNS_PORT
from sidecar.values.endpoints import Endpoint, parse_endpoint

_VERSIONS = (FAILOVER_ENDS, None)
"""CoreDNS with and without `failover`: each version gets the options of one of them."""
_MOST = 64
"""Forwards that follow one another; more are nobody's stanza, and would be compared in every combination."""


@dataclass(frozen=True, slots=True)
class Unmarked:
    """A stanza without markers."""

    first: Directive
    after: Directive
    """The forward behind it."""
    addresses: int
    """How many of dnsproxy it has."""


def find_unmarked(corefile: Corefile) -> Unmarked | None:
    """The first stanza without markers, as long as it can be; None if there is none."""
    return next((found for block in corefile.blocks if not block.imported for found in _in_block(block)), None)


def _in_block(block: ServerBlock) -> Iterator[Unmarked]:
    for run in _runs(block):
        forwards = [forward for one in run if (forward := _read(one)) is not None]
        if len(forwards) < len(run):
            continue
        for start in range(len(run)):
            for stop in range(len(run) - 1, start, -1):
                # The forward behind it may come from a snippet; the stanza itself is written out.
                if any(one.imported for one in run[start:stop]):
                    continue
                if addresses := _addresses(forwards[start:stop], forwards[stop:]):
                    yield Unmarked(run[start], run[stop], addresses)


def _runs(block: ServerBlock) -> Iterator[list[Directive]]:
    """The forwards of a block that follow one another, with nothing in between."""
    imports = [one.index for one in block.imports]
    run: list[Directive] = []
    for before, one in pairwise((None, *block.directives, None)):
        parted = before is None or one is None or any(before.index < index < one.index for index in imports)
        if one is None or one.name != "forward" or (run and parted):
            if 1 < len(run) <= _MOST:
                yield run
            run = []
        if one is not None and one.name == "forward":
            run.append(one)


def _read(directive: Directive) -> Forward | None:
    try:
        return parse_forward(directive)
    except CorefileError:
        return None


def _addresses(ours: Sequence[Forward], others: Sequence[Forward]) -> int:
    """How many addresses of dnsproxy these forwards have, if they are what is written before the others; else 0."""
    heads: set[tuple[Endpoint, ...]] = set()
    for forward in ours:
        original = next((one for one in others if forward.zone is not None and one.serves(forward.zone)), None)
        head = None if original is None else _head(forward, original)
        if original is None or head is None or not _is_written(forward, original, head):
            return 0
        heads.add(head)
    return len(next(iter(heads))) if len(heads) == 1 else 0


def _head(forward: Forward, original: Forward) -> tuple[Endpoint, ...] | None:
    """The addresses before the original's upstreams; None if there are none, or the others differ."""
    count = len(forward.upstreams) - len(original.upstreams)
    if count < 1 or forward.upstreams_raw[count:] != original.upstreams_raw:
        return None
    try:
        return tuple(parse_endpoint(one, default_port=DNS_PORT) for one in forward.upstreams[:count])
    except ValueError:
        return None


def _is_written(forward: Forward, original: Forward, head: tuple[Endpoint, ...]) -> bool:
    written = tuple(option.raw for option in forward.options)
    if POLICY not in written:
        return False
    for version in _VERSIONS:
        try:
            made = make_forward(forward.zone_text, original, addresses=head, coredns_version=version)
        except CorefileError:
            continue
        if (made.upstreams, made.options) == (forward.upstreams_raw, written):
            return True
    return False
