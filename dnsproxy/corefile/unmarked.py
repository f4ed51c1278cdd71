"""Our stanza without its markers: a migration of the Corefile (kubeadm, Cluster API) drops every comment.

The law: forwards are ours if they are, zone by zone and option by option, what an install writes, for any addresses of
dnsproxy: before the forward behind them, or where no forward serves the zone. What differs in a word is its owner's.
https://github.com/coredns/corefile-migration
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from dnsproxy.corefile.forward_directive import Forward, parse_forward
from dnsproxy.corefile.model import Corefile, CorefileError, Directive, ServerBlock
from dnsproxy.corefile.stanza import FAILOVER_ENDS, POLICY, make_forward
from dnsproxy.dns.wire import DNS_PORT
from sidecar.values.endpoints import Endpoint, parse_endpoint

_VERSIONS = (FAILOVER_ENDS, None)
"""CoreDNS with and without `failover`: each version gets the options of one of them."""
_MOST = 64
"""A longer run of forwards is not looked at: every combination of them would be compared."""


@dataclass(frozen=True, slots=True)
class Unmarked:
    """A stanza without markers."""

    first: Directive
    stop: int
    """The index of the word behind it: a directive, an import, or the brace that closes the block."""
    addresses: int
    """How many of dnsproxy it has."""


def find_unmarked(corefile: Corefile) -> Unmarked | None:
    """The first stanza without markers, as long as it can be; None if there is none."""
    return next((found for block in corefile.blocks if not block.imported for found in _in_block(block)), None)


def _in_block(block: ServerBlock) -> Iterator[Unmarked]:
    for run in _runs(block):
        try:
            forwards = [parse_forward(one) for one in run]
        except CorefileError:
            continue
        behind = [*(one.index for one in run[1:]), _index_behind(block, run[-1])]
        for start in range(len(run)):
            for stop in range(len(run), start, -1):
                # The forward behind it may come from a snippet; the stanza itself is written out.
                if any(one.imported for one in run[start:stop]):
                    continue
                index = behind[stop - 1]
                if index is not None and (addresses := _addresses(forwards[start:stop], forwards[stop:])):
                    yield Unmarked(run[start], index, addresses)


def _index_behind(block: ServerBlock, last: Directive) -> int | None:
    """The index of the word behind a directive; None at the end of a file without a closing brace."""
    return next((one.index for one in block.entries if one.index > last.index), block.closing)


def _runs(block: ServerBlock) -> Iterator[list[Directive]]:
    """The forwards of a block that follow one another, with nothing in between."""
    for is_forward, group in groupby(
        block.entries, key=lambda one: isinstance(one, Directive) and one.name == "forward"
    ):
        run = [one for one in group if isinstance(one, Directive)]
        if is_forward and len(run) <= _MOST:
            yield run


def _addresses(ours: Sequence[Forward], others: Sequence[Forward]) -> int:
    """How many addresses of dnsproxy these forwards have, if they are what is written before the others; else 0."""
    heads: set[tuple[Endpoint, ...]] = set()
    for forward in ours:
        original = next((one for one in others if forward.zone is not None and one.serves(forward.zone)), None)
        head = _head(forward, original)
        if head is None or not _is_written(forward, original, head):
            return 0
        heads.add(head)
    return len(next(iter(heads))) if len(heads) == 1 else 0


def _head(forward: Forward, original: Forward | None) -> tuple[Endpoint, ...] | None:
    """The addresses before as many upstreams as the original has; None if there are none."""
    count = len(forward.upstreams) - (len(original.upstreams) if original else 0)
    try:
        return tuple(parse_endpoint(one, default_port=DNS_PORT) for one in forward.upstreams[: max(0, count)]) or None
    except ValueError:
        return None


def _is_written(forward: Forward, original: Forward | None, head: tuple[Endpoint, ...]) -> bool:
    written = tuple(option.raw for option in forward.options)
    if POLICY not in written:
        return False  # nearly every forward of others
    for version in _VERSIONS:
        try:
            made = make_forward(forward.zone_text, original, addresses=head, coredns_version=version)
        except CorefileError:
            continue
        if (made.upstreams, made.options) == (forward.upstreams_raw, written):
            return True
    return False
