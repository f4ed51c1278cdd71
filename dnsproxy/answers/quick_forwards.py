"""Quick forwards: the decisions about plain queries below names of which the table knows nothing.

Most names that are forwarded have siblings: search domains and large zones have thousands. A name without a row of its
own is forwarded if its siblings are, so the octets behind the first label decide about the type, the class, the OPT and
the length of all these queries.

The law: decide.decide is authoritative. A Forward from here equals the one from decide; a query without a shape goes to
decide. What is kept is bounded, and all of it is dropped when it is full: names from outside change for ever.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from dnsproxy.answers.decide import Forward
from dnsproxy.answers.table import HostTable
from dnsproxy.dns import names
from dnsproxy.dns.wire import CLASS_IN, HEADER, Edns, Query, Type

ID: Final = 2
"""Octets of a message before its body."""
MOST: Final = 2000
"""Shapes: 1.3 MB with the longest names."""
EVERY: Final = 8
"""Queries without a shape, of which one is learned from."""

NAME_START: Final = HEADER - ID
"""Where the name of the question starts in a body."""
LONGEST_PARENT: Final = names.MAXIMUM_NAME - names.MAXIMUM_LABEL - 1
"""Octets of a parent below which a label of any length makes a name."""

# Decided by more than the name: a probe of this server is a TXT, and a transfer is refused.
_NEVER: Final = frozenset({Type.TXT, Type.AXFR, Type.IXFR})
_PLAIN_OPT: Final = 11  # octets of an OPT without options
# As in wire.py.
_new: Final = tuple.__new__


class Shape(NamedTuple):
    """What a query has in common with those for its siblings."""

    name: slice
    """Where the name is in the body."""
    type: int
    klass: int
    behind: int
    """Octets behind the question."""
    edns: Edns | None


class QuickForwards:
    """The shapes for one table."""

    def __init__(self, table: HostTable) -> None:
        self._table = table
        self._noted = 0
        self.below: dict[bytes, tuple[tuple[Shape, None], slice | None]] = {}
        """Shapes, under the body in lower case without the first label.

        The slice is the name, if the table has names below the same parent: one of them may be asked for.
        """

    def decide(self, message: bytes, lowered: bytes, shape: Shape) -> Forward:
        """The decision about a message with this shape; `lowered` is its body in lower case."""
        where, qtype, klass, behind, edns = shape
        name = lowered[where]
        query = _new(Query, (message, name, qtype, klass, len(message) - behind, edns))
        return _new(Forward, (query, name in self._table.above, None))

    def note(self, forward: Forward) -> None:
        """Learn from one of EVERY queries without a shape: what has siblings comes again, and learning takes time."""
        self._noted += 1
        if self._noted % EVERY == 0:
            self.learn(forward)

    def learn(self, forward: Forward) -> None:
        """Keep the shape of a query that decide forwards, if it is that of all its siblings."""
        query = forward.query
        behind = len(query.message) - query.end
        body = query.message[ID:]
        rest = 1 + query.name[0]
        if not self._is_shared(query, body, rest, behind):
            return
        if len(self.below) >= MOST:
            self.below.clear()
        name = slice(NAME_START, -4 - behind)
        lowered = body.lower()
        shape = Shape(name, query.type, query.klass, behind, query.edns)
        where = name if query.name[rest:] in self._table.above else None
        self.below[lowered[:NAME_START] + lowered[NAME_START + rest :]] = (shape, None), where

    def _is_shared(self, query: Query, body: bytes, rest: int, behind: int) -> bool:
        table, name = self._table, query.name
        edges = body[:NAME_START] + body[NAME_START + len(name) :]
        return (
            1 < rest < len(name) <= rest + LONGEST_PARENT
            and behind in (0, _PLAIN_OPT)
            and query.klass == CLASS_IN
            and query.type not in _NEVER
            # Octets that are letters by chance are not those of the same body in lower case.
            and edges == edges.lower() == edges.upper()
            and name not in table.never
            and name not in table.closed
            and table.find(name) is None
        )
