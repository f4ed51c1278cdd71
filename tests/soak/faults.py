"""Random faults of the upstream: scripts for tests.kit.faulty_upstream. Pure, given the random source.

The law: most replies are correct and in time; every kind of fault occurs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final

from tests.kit import upstream_replies
from tests.kit.faulty_upstream import Close, Elsewhere, Part, Pause, Reset, Script, Step, answer, silence

_LONGEST_PAUSE: Final = 2.5
"""Seconds: longer than our timeout for an upstream."""

Fault = Callable[[bytes, random.Random], Sequence[Step]]


def _late(asked: bytes, chance: random.Random) -> Sequence[Step]:
    return [Pause(chance.uniform(0.01, _LONGEST_PAUSE)), *answer(asked)]


def _lost(asked: bytes, _chance: random.Random) -> Sequence[Step]:
    return silence(asked)


def _forged(asked: bytes, _chance: random.Random) -> Sequence[Step]:
    wrong = [upstream_replies.wrong_id(asked), upstream_replies.other_question(asked)]
    return [*wrong, Elsewhere(upstream_replies.right(asked)), *answer(asked)]


def _twice(asked: bytes, _chance: random.Random) -> Sequence[Step]:
    return [*answer(asked), *answer(asked)]


def _cut(asked: bytes, chance: random.Random) -> Sequence[Step]:
    return [upstream_replies.right(asked)[: chance.randrange(40)]]


def _truncated(asked: bytes, _chance: random.Random) -> Sequence[Step]:
    return [upstream_replies.truncated(asked)]


def _refused(asked: bytes, _chance: random.Random) -> Sequence[Step]:
    return [upstream_replies.header_only(asked, upstream_replies.REFUSED)]


def _reset(_asked: bytes, _chance: random.Random) -> Sequence[Step]:
    return [Reset()]


def _closed(_asked: bytes, _chance: random.Random) -> Sequence[Step]:
    return [Close()]


def _half(asked: bytes, chance: random.Random) -> Sequence[Step]:
    whole = upstream_replies.framed(upstream_replies.right(asked))
    return [Part(whole[: chance.randrange(1, len(whole))]), Reset() if chance.random() < 0.5 else Close()]


DATAGRAM_FAULTS: Final[Sequence[Fault]] = (
    _lost,
    _lost,
    _lost,
    _late,
    _late,
    _forged,
    _twice,
    _cut,
    _truncated,
    _refused,
)
STREAM_FAULTS: Final[Sequence[Fault]] = (_reset, _closed, _half, _late, _truncated, _lost)

SHARE: Final = 0.1
"""The share of queries that meet a fault."""


def faulty(faults: Sequence[Fault], chance: random.Random, *, share: float = SHARE) -> Script:
    """A script that answers, and sometimes has one of the faults instead."""

    def play(asked: bytes) -> Sequence[Step]:
        if chance.random() >= share:
            return answer(asked)
        return chance.choice(faults)(asked, chance)

    return play
