"""Quick answers: the replies to plain queries, which come by the hundred thousand, put together from recipes.

A query is plain if its header has no flags but RD, CD, AD and Z, it asks one question, and behind that there is nothing
but perhaps an OPT of version 0 without options. It is taken as a body: the message without its ID. Plain bodies that
differ in the case of the name alone have replies that differ in the question alone, so the first one is judged, and
what its reply has around the question is kept, under the lower-cased body, for all that follow.

The law: responder.decide is the whole truth. Where a reply comes from here, decide gives the same octets; where none
does, decide has the word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dnsproxy.answers.table import HostTable
from dnsproxy.dns import names, records

Recipe = tuple[slice, tuple[bytes, bytes]]
"""Where the question is in the query's body, and what the reply's body has before and behind it."""

_HEAD: Final = slice(0, 10)
_ADDITIONAL: Final = 9  # the octet of ARCOUNT that tells 0 from 1
_NAME_START: Final = 10
_TO_END: Final = slice(_NAME_START, None)
_TO_OPT: Final = slice(_NAME_START, -11)
_NAME_TO_END: Final = slice(_NAME_START, -4)
_NAME_TO_OPT: Final = slice(_NAME_START, -15)
_OPT: Final = slice(-11, None)
_NAME: Final = slice(None, -4)
_TYPE_AND_CLASS: Final = slice(-4, None)
_SHORTEST: Final = 15  # a header and the shortest question: the root
_LONGEST_PARENT: Final = names.MAXIMUM_NAME - names.MAXIMUM_LABEL - 1
_OPTS: Final = records.quick_opts()
_SPARE: Final = 1000
_MOST: Final = 1 << 17  # some 20 MB; to grow beyond would hold up the answers for longer than a few milliseconds
_NOTHING: Final[tuple[records.Heads, bytes]] = ({}, b"")


class QuickAnswers:
    """The recipes for one table; they go with it.

    Random labels below a wildcard leave no recipe each, but one for all that are below the same parent.
    """

    def __init__(self, table: HostTable) -> None:
        self.table = table
        self._recipes: dict[bytes, Recipe] = {}
        self._below: dict[bytes, tuple[Recipe, slice | None]] = {}
        """As _recipes, under the body without the name's first label. The slice is the name, if a name may beat it."""
        self._shared: dict[tuple[bytes, bytes], Recipe] = {}
        # For the A and the AAAA query of each name in two dresses. Enemies know more; when all is taken, what is new is
        # judged each time, which costs them and us no more than before there were recipes.
        self._room = min(4 * (len(table.exact) + len(table.wildcards)) + _SPARE, _MOST)

    def __len__(self) -> int:
        """How many recipes are kept."""
        return len(self._recipes) + len(self._below)

    def answer(self, bodies: Sequence[bytes]) -> tuple[list[bytes | None], list[int]]:
        """The bodies of the replies to a batch, and the positions of those that decide is to give."""
        known = self._recipes.get
        replies: list[bytes | None] = []
        undecided: list[int] = []
        for body in bodies:
            lowered = body.lower()
            recipe = known(lowered) or self._find(body, lowered)
            if recipe is None:
                undecided.append(len(replies))
                replies.append(None)
            else:
                question, around = recipe
                replies.append(body[question].join(around))
        return replies, undecided

    def _find(self, body: bytes, lowered: bytes) -> Recipe | None:
        """The recipe for a query that is like none before, but perhaps below a wildcard that was asked."""
        if len(body) < _SHORTEST:
            return None
        if self._below:
            label = lowered[_NAME_START]
            below = self._below.get(lowered[_HEAD] + lowered[_NAME_START + 1 + label :])
            if below is not None and 0 < label <= names.MAXIMUM_LABEL:
                recipe, where = below
                if where is None or not self._is_named(lowered[where]):
                    return recipe
        return self._learn(body, lowered)

    def _is_named(self, name: bytes) -> bool:
        return name in self.table.exact or name in self.table.never

    def _learn(self, body: bytes, lowered: bytes) -> Recipe | None:
        where, opt = (_TO_OPT, _OPTS.get(body[_OPT])) if body[_ADDITIONAL] else (_TO_END, b"")
        question = lowered[where]
        name = question[_NAME]
        found = self.table.find(name)
        if found is None or opt is None:
            return None
        type_and_class = body[where][_TYPE_AND_CLASS]
        heads, octets = found.quick.get(type_and_class, _NOTHING)
        head = heads.get(body[_HEAD])
        if head is None:
            return None
        recipe = where, (head, octets + opt)
        # HTTPS is 65, an A: in lower case it would be the type 97.
        if question[_TYPE_AND_CLASS] == type_and_class and len(self) < self._room:
            self._keep(recipe, lowered, name)
        return recipe

    def _keep(self, recipe: Recipe, lowered: bytes, name: bytes) -> None:
        # Most names share their addresses: one recipe for all of them stays in the processor's cache.
        recipe = self._shared.setdefault(recipe[1], recipe)
        if name in self.table.exact:
            self._recipes[lowered] = recipe
            return
        rest = 1 + name[0]
        parent = name[rest:]
        if parent in self.table.wildcards and len(parent) <= _LONGEST_PARENT:
            where = None
            # Where the wildcard is all that is below the parent, no name needs to be looked up.
            if self.table.above.get(parent) != 1 or self.table.never:
                where = _NAME_TO_OPT if recipe[0] is _TO_OPT else _NAME_TO_END
            self._below[lowered[_HEAD] + lowered[_NAME_START + rest :]] = recipe, where
