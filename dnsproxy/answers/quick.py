"""Quick answers: the replies to plain queries, which are nearly all queries, built from recipes.

A query is plain if its header has no flags except RD, CD, AD and Z, it has one question, and nothing follows except
perhaps an OPT of version 0 without options. It is handled as a body: the message without its ID. Plain bodies that
differ only in the case of the name have replies that differ only in the question. So the first one is decided, and the
octets of its reply around the question are kept, under the lower-case body, for all that follow.

The law: decide.decide is authoritative. A reply from here has the same octets as the one from decide; a query without
a reply from here goes to decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from dnsproxy.answers.answer_records import Answers, Claimed
from dnsproxy.answers.quick_forwards import LONGEST_PARENT, NAME_START, QuickForwards, Shape
from dnsproxy.answers.table import HostTable
from dnsproxy.dns import names, records
from dnsproxy.dns.wire import CD
from dnsproxy.replace.verdicts import judged_type, key_of

Unanswered = tuple[int, bytes, Shape | None]
"""A query without a reply from here: its position, its body in lower case, and its shape if that is known."""

Found = tuple[Any, tuple[bytes, bytes] | None]
"""A recipe; or for a query without a reply from here, its shape or None, and None."""

MayAnswer = Callable[[bytes, int, Answers], bool]
"""Whether a row that public DNS has a say in answers a lower-case wire name and type just now."""

Recipe = tuple[slice, tuple[bytes, bytes]]
"""Where the question is in the body of the query, and what the body of the reply has before and after it."""

_HEAD: Final = slice(0, 10)
_ADDITIONAL: Final = 9  # the octet of ARCOUNT that is 0 or 1
_TO_END: Final = slice(NAME_START, None)
_TO_OPT: Final = slice(NAME_START, -11)
_NAME_TO_END: Final = slice(NAME_START, -4)
_NAME_TO_OPT: Final = slice(NAME_START, -15)
_OPT: Final = slice(-11, None)
_NAME: Final = slice(None, -4)
_TYPE_AND_CLASS: Final = slice(-4, None)
_SHORTEST: Final = 15  # a header and the shortest question: the root
_DO: Final = -4  # the octet of a plain OPT whose top bit is DO
_TOP: Final = 0x80
_OPTS: Final = records.quick_opts()
_SPARE: Final = 1000
_MOST: Final = 1 << 17  # some 20 MB; a larger dict blocks all answers for many milliseconds when it grows
_UNKNOWN: Final[Found] = (None, None)
_NOTHING: Final[tuple[records.Heads, bytes]] = ({}, b"")


class QuickAnswers:
    """The recipes for one table.

    Random labels below a wildcard share one recipe per parent name.
    """

    def __init__(self, table: HostTable, may_answer: MayAnswer = lambda *_: False) -> None:
        self.table = table
        self._may_answer = may_answer
        self._claimed: dict[bytes, list[bytes]] = {}
        """The recipes that hold for as long as a verdict, by its name and type."""
        self._recipes: dict[bytes, Recipe] = {}
        self._below: dict[bytes, tuple[Recipe, slice | None]] = {}
        """As _recipes, under the body without the first label. The slice is the name, if an exact name may win."""
        self.forwards = QuickForwards(table)
        self._forwarded = self.forwards.below
        self._shared: dict[tuple[bytes, bytes], Recipe] = {}
        # Room for two variants of the A and the AAAA query of each name. Attackers can produce more; when it is full,
        # new queries go through `decide` each time, as if there were no recipes.
        self._room = min(4 * (len(table.exact) + len(table.wildcards)) + _SPARE, _MOST)

    def __len__(self) -> int:
        """The number of recipes."""
        return len(self._recipes) + len(self._below)

    def answer(self, bodies: Sequence[bytes]) -> tuple[list[bytes | None], list[Unanswered]]:
        """The bodies of the replies to a batch, and the queries that get no reply from here."""
        known = self._recipes.get
        replies: list[bytes | None] = []
        unanswered: list[Unanswered] = []
        for body in bodies:
            lowered = body.lower()
            found, around = known(lowered) or self._find(body, lowered)
            if around is None:
                unanswered.append((len(replies), lowered, found))  # type: ignore[arg-type]  # it is no slice then
                replies.append(None)
            else:
                replies.append(body[found].join(around))
        return replies, unanswered

    def forget(self, keys: Iterable[bytes]) -> None:
        """Drop the recipes of names and types whose verdicts are over (replace/verdicts.py)."""
        for key in keys:
            for lowered in self._claimed.pop(key, ()):
                self._recipes.pop(lowered, None)

    def _find(self, body: bytes, lowered: bytes) -> Found:
        """The recipe for a new query: from a query below the same wildcard, or learned."""
        if len(body) < _SHORTEST:
            return _UNKNOWN
        label = lowered[NAME_START]
        if 0 < label <= names.MAXIMUM_LABEL:
            key = lowered[_HEAD] + lowered[NAME_START + 1 + label :]
            below = self._below.get(key) or self._forwarded.get(key)
            if below is not None:
                found, where = below
                if where is None or not self._is_named(lowered[where]):
                    return found
        return self._learn(body, lowered) or _UNKNOWN

    def _is_named(self, name: bytes) -> bool:
        return name in self.table.exact or name in self.table.never or name in self.table.closed

    def _learn(self, body: bytes, lowered: bytes) -> Recipe | None:
        where, opt = (_TO_OPT, _OPTS.get(body[_OPT])) if body[_ADDITIONAL] else (_TO_END, b"")
        question = lowered[where]
        name = question[_NAME]
        found = self.table.find(name)
        if found is None or opt is None:
            return None
        type_and_class = body[where][_TYPE_AND_CLASS]
        key = b""
        if found.claimed is not Claimed.NO:
            key = self._verdict_key(found, body, name, type_and_class)
            if not key:
                return None
        heads, octets = found.quick.get(type_and_class, _NOTHING)
        head = heads.get(body[_HEAD])
        if head is None:
            return None
        recipe = where, (head, octets + opt)
        # HTTPS is type 65, which is an `A`: in lower case it would be type 97.
        if question[_TYPE_AND_CLASS] == type_and_class and len(self) < self._room:
            self._keep(recipe, lowered, name, key)
        return recipe

    def _verdict_key(self, found: Answers, body: bytes, name: bytes, type_and_class: bytes) -> bytes:
        """The key of the verdict by which a row answers a plain query just now; empty if none does."""
        exempt = body[_ADDITIONAL] and body[_DO] & _TOP and body[1] & CD  # see is_exempt
        rtype = judged_type(int.from_bytes(type_and_class[:2], "big"))
        return b"" if exempt or not self._may_answer(name, rtype, found) else key_of(name, rtype)

    def _keep(self, recipe: Recipe, lowered: bytes, name: bytes, key: bytes) -> None:
        # Most names share their addresses: one shared recipe stays in the cache of the processor.
        recipe = self._shared.setdefault(recipe[1], recipe)
        if key:
            self._claimed.setdefault(key, []).append(lowered)
        if key or name in self.table.exact:
            self._recipes[lowered] = recipe
            return
        rest = 1 + name[0]
        parent = name[rest:]
        if parent in self.table.wildcards and len(parent) <= LONGEST_PARENT:
            where = None
            # If only the wildcard is below the parent, no exact name needs to be looked up.
            if self.table.above.get(parent) != 1 or self.table.never or self.table.closed:
                where = _NAME_TO_OPT if recipe[0] is _TO_OPT else _NAME_TO_END
            self._below[lowered[_HEAD] + lowered[NAME_START + rest :]] = recipe, where
