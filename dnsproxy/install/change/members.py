"""Adds members to the text of a JSON object, and removes them, without changing another character.

The law: removing what was added gives the original text, including its whitespace; other members are never rewritten.
RFC 8259 section 4. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

_BLANKS: Final = re.compile(r"[ \t\n\r]*")
_DECODER: Final = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Member:
    """One member and its position."""

    name: str
    start: int
    end: int
    """After its value."""


@dataclass(frozen=True, slots=True)
class _Object:
    opening: int
    """After its brace."""
    members: tuple[Member, ...]


def put_in(text: str, members: Mapping[str, Any]) -> str:
    """The object with these members appended. Raises ValueError for a text that is no object."""
    found = _read(text)
    at = found.members[-1].end if found.members else found.opening
    written = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in members.items()]
    between = ", " if found.members and written else ""
    return text[:at] + between + ", ".join(written) + text[at:]


def take_out(text: str, names: Collection[str]) -> str:
    """The object without these members, as before put_in. Raises ValueError for a text that is no object."""
    members = _read(text).members
    # From the end, so that earlier members keep their positions; a name may occur twice.
    for at in range(len(members) - 1, -1, -1):
        if members[at].name in names:
            text = _without(text, _read(text).members, at)
    return text


def _without(text: str, members: tuple[Member, ...], at: int) -> str:
    """Removes the comma before the member, or after it if the member is the first."""
    member = members[at]
    if at:
        return text[: members[at - 1].end] + text[member.end :]
    return text[: member.start] + text[members[1].start if len(members) > 1 else member.end :]


def _read(text: str) -> _Object:
    at = _skip(text, 0)
    if text[at : at + 1] != "{":
        raise ValueError("it is no JSON object")
    opening = at + 1
    members: list[Member] = []
    at = _skip(text, opening)
    while text[at : at + 1] != "}":
        if members:
            at = _skip(text, _expect(text, at, ","))
        start = at
        _expect(text, at, '"')
        name, at = _DECODER.raw_decode(text, at)
        at = _skip(text, _expect(text, _skip(text, at), ":"))
        _, end = _DECODER.raw_decode(text, at)
        members.append(Member(name, start, end))
        at = _skip(text, end)
    if _skip(text, at + 1) != len(text):
        raise ValueError("there is text after the JSON object")
    return _Object(opening, tuple(members))


def _skip(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    return match.end() if match else at


def _expect(text: str, at: int, character: str) -> int:
    if text[at : at + 1] != character:
        raise ValueError(f"{character} is missing at character {at} of the JSON")
    return at + 1
