"""The table zone's rows: one TXT record set for each hostname, with all that a replica shows and answers.

The law: pure; a replica that has all rows has the table, its explanations and its pages. The records are ours alone, in
a zone below one reserved label, which other resolvers never load. Octets that are no row are a ValueError.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any, Final

import msgspec
from msgspec.structs import astuple

from dnsproxy.answers.answer_records import Claimed
from dnsproxy.answers.table import Host
from dnsproxy.dns import names
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin, Terms, share_terms
from dnsproxy.hostnames.registry import Judgement
from dnsproxy.hostnames.verdict import Excluded, Verdict
from sidecar.values.endpoints import is_address
from sidecar.values.text import message_of, quoted

_MOST_EXCLUDED: Final = 200
"""Excluded claims of one hostname that replicas show."""
_REACHES: Final = tuple(Reach)
_is_address: Final = lru_cache(maxsize=1024)(is_address)
"""Nearly all rows of a table have the same few addresses."""


class _Claim(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A claim without its hostname and reach; the fields after its origin are those of its terms, in their order."""

    origin: tuple[str, ...]
    addresses: tuple[str, ...] = ()
    ingress_class: str | None = None
    target: str | None = None
    status: tuple[str, ...] = ()
    routed: bool = True
    annotated: bool = False
    since: str = ""
    target_from: str = ""
    gateway: str = ""
    accepted: bool = True
    declared: tuple[str, ...] = ()


class _Judged(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One reach of a hostname; claims are named by their position in `claims`."""

    reach: Annotated[int, msgspec.Meta(ge=0, lt=len(_REACHES))]
    addresses: tuple[str, ...] = ()
    service: str = ""
    claims: tuple[_Claim, ...] = ()
    winner: int = -1
    unready: int = -1
    excluded: tuple[tuple[int, str], ...] = ()
    contenders: tuple[int, ...] = ()
    reserved: str = ""
    """Kept for readers of earlier rows: fields are told by their places."""
    waits: bool = False
    barred: bool = False
    claimed: Claimed = Claimed.NO


class _Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    hostname: str
    judged: tuple[_Judged, ...] = ()


_ENCODER: Final = msgspec.json.Encoder()
_ROW_DECODER: Final = msgspec.json.Decoder(_Row)


def format_row(hostname: str, judged: Sequence[Judgement]) -> bytes | None:
    """The text of a hostname's row; None if there is nothing to know about it."""
    parts = tuple(found for one in judged if (found := _format_judged(one)) is not None)
    return _ENCODER.encode((hostname, parts)) if parts else None


def parse_row(text: bytes) -> tuple[str, tuple[Judgement, ...]]:
    """A hostname and its judged hosts. Raises ValueError."""
    try:
        row = _ROW_DECODER.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"it is no row of a table: {message_of(error)}") from None
    if names.parse_hostname(row.hostname) != row.hostname:
        raise ValueError(f"{quoted(row.hostname)} is not in normal form")
    return row.hostname, tuple(_parse_judged(row.hostname, one) for one in row.judged)


def _format_judged(one: Judgement) -> list[Any] | None:
    host, verdict = one.host, one.verdict
    excluded = verdict.excluded[:_MOST_EXCLUDED]
    known: dict[int, int] = {}
    claims: list[Claim] = []

    def position(claim: Claim | None) -> int:
        if claim is None:
            return -1
        if id(claim) not in known:
            known[id(claim)] = len(claims)
            claims.append(claim)
        return known[id(claim)]

    winner, unready = position(verdict.winner), position(verdict.unready)
    left_out = tuple((position(each.claim), each.reason) for each in excluded)
    contenders = tuple(position(claim) for claim in verdict.contenders)
    if not claims and not host.barred:
        return None
    found = _Judged(
        _REACHES.index(host.reach),
        host.addresses,
        host.service,
        tuple(map(_format_claim, claims)),  # type: ignore[arg-type]  # shortened
        winner,
        unready,
        left_out,
        # Of nearly every name it is the winner.
        () if contenders == (winner,) else contenders,
        "",
        verdict.waits,
        host.barred,
        host.claimed,
    )
    return _shorten(found)


def _parse_judged(hostname: str, one: _Judged) -> Judgement:
    reach = _REACHES[one.reach]
    if (reach is Reach.NAME) == names.is_wildcard(hostname):
        raise ValueError(f"{hostname!a} cannot reach {reach.value}")
    claims = [_parse_claim(hostname, reach, each) for each in one.claims]

    def at(position: int) -> Claim | None:
        if not -1 <= position < len(claims):
            raise ValueError(f"{hostname!a} has no claim {position}")
        return claims[position] if position >= 0 else None

    if not all(map(_is_address, one.addresses)):
        raise ValueError(f"{hostname!a} has an address that is none")
    winner, unready = at(one.winner), at(one.unready)
    excluded = tuple(Excluded(claim, reason) for number, reason in one.excluded if (claim := at(number)) is not None)
    found = (at(number) for number in one.contenders) if one.contenders else (winner,)
    contenders = tuple(claim for claim in found if claim is not None)
    # The addresses of a name whose Service is not ready stay in the row, and are no answer.
    answered = one.addresses if winner is not None else ()
    verdict = Verdict(winner, answered, excluded, waits=one.waits, unready=unready, contenders=contenders)
    owned = winner is not None or unready is not None
    if owned != bool(one.addresses):
        raise ValueError(f"{hostname!a} has addresses without a claim, or a claim without addresses")
    return Judgement(Host(hostname, reach, one.addresses, one.barred, one.service, one.claimed), verdict)


def _shorten(struct: msgspec.Struct) -> list[Any]:
    """The fields up to the last one that is not its default: a row of most hostnames has a tenth of the fields."""
    values = list(astuple(struct))
    defaults = struct.__struct_defaults__
    while defaults and values[-1] == defaults[-1]:
        values.pop()
        defaults = defaults[:-1]
    return values


def _format_claim(claim: Claim) -> list[Any]:
    return _shorten(_Claim(astuple(claim.origin), *astuple(claim.terms)))


def _parse_claim(hostname: str, reach: Reach, claim: _Claim) -> Claim:
    origin, *terms = astuple(claim)
    if len(origin) != len(Origin.__struct_fields__):
        raise ValueError("a claim's origin has not four parts")
    return Claim(hostname, reach, Origin(*origin), share_terms(Terms(*terms)))
