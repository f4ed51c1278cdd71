"""The table zone's rows: one TXT record set for each hostname, with all that a replica shows and answers.

The law: pure; a replica that has all rows has the table, its explanations and its pages. The records are ours alone, in
a zone below one reserved label, which other resolvers never load. Octets that are no row are a ValueError.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from ipaddress import ip_address
from itertools import chain
from typing import Annotated, Any, Final, NoReturn, TypeVar

import msgspec

from dnsproxy.answers.table import Host
from dnsproxy.dns import names
from dnsproxy.dns.names import Reach
from dnsproxy.dns.wire import Type
from dnsproxy.hostnames.claims import Claim, Origin
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.registry import Judgement
from dnsproxy.hostnames.targets import Targets
from dnsproxy.hostnames.verdict import Excluded, Verdict
from dnsproxy.zone.zone_records import fits, format_texts, format_zone_record, join_row

LABEL: Final = b"\x0b_switchback"
"""The reserved label: the table zone is this label and the policy zone."""
FORMAT: Final = 1
"""The version of the rows and of the control record."""
APEX: Final = b""
"""The owner of the control record."""
_PART: Final = 16_000
"""Octets in one TXT record; a longer text takes several, each with `NUMBER/COUNT ` in front."""
_MOST_EXCLUDED: Final = 200
"""Excluded claims of one hostname that replicas show."""
_HASHED: Final = b"\x09_too-long"
_REACHES: Final = tuple(Reach)

T = TypeVar("T")


class _Claim(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A claim without its hostname and reach; the fields are those of Claim."""

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
    doubt: str = ""
    waits: bool = False
    barred: bool = False


class _Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    hostname: str
    judged: tuple[_Judged, ...] = ()


class SavedGuards(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fields of Guards: what is denied, and where wildcards end."""

    cluster_domains: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()


class Control(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What counts for the whole table; the record at the apex."""

    format: int
    ttl: Annotated[int, msgspec.Meta(ge=1, le=3600)]
    unready: tuple[str, ...] = ()
    """The Services whose names are forwarded."""
    guards: SavedGuards = SavedGuards()
    target: tuple[str, ...] = ()
    by_class: dict[str, tuple[str, ...]] = {}
    steered: dict[str, str] = {}

    @property
    def targets(self) -> Targets:
        """The targets, for explanations: every row has its own addresses."""
        return Targets(self.target, self.by_class, unready=frozenset(self.unready), steered=self.steered)

    @property
    def named_guards(self) -> Guards:
        """The guards, for explanations and for wildcards."""
        return Guards(**msgspec.structs.asdict(self.guards))


_ENCODER: Final = msgspec.json.Encoder()
_ROW_DECODER: Final = msgspec.json.Decoder(_Row)
_CONTROL_DECODER: Final = msgspec.json.Decoder(Control)


def table_zone(zone: bytes) -> bytes:
    """The wire name of the table zone beside a policy zone. Raises ValueError if it is too long."""
    name = LABEL + zone
    if not fits(_hashed(""), name):
        raise ValueError("the zone's name is too long: the names in it have no room in front of it")
    return name


def owner_of(hostname: str, zone: bytes) -> bytes:
    """The relative owner of a hostname's row in the table zone `zone`.

    A name that does not fit in front of the zone's name has a hash for owner; readers go by the row's own hostname.
    """
    star = b"\x01*" if names.is_wildcard(hostname) else b""
    owner = star + names.to_wire(hostname)[:-1]
    return owner if fits(owner, zone) else _hashed(hostname)


def _hashed(hostname: str) -> bytes:
    digest = blake2b(hostname.encode(), digest_size=20).hexdigest().encode()
    return bytes([len(digest)]) + digest + _HASHED


def format_row(hostname: str, judged: Sequence[Judgement]) -> bytes | None:
    """The text of a hostname's row; None if there is nothing to know about it."""
    parts = tuple(found for one in judged if (found := _format_judged(one)) is not None)
    return _ENCODER.encode((hostname, parts)) if parts else None


def parse_row(text: bytes) -> tuple[str, tuple[Judgement, ...]]:
    """A hostname and its judged hosts. Raises ValueError."""
    row = _decode(_ROW_DECODER, text)
    if names.parse_hostname(row.hostname) != row.hostname:
        raise ValueError(f"{row.hostname!a} is not in normal form")
    return row.hostname, tuple(_parse_judged(row.hostname, one) for one in row.judged)


def format_control(control: Control) -> bytes:
    """The text of the control record."""
    return _ENCODER.encode(control)


def parse_control(text: bytes) -> Control:
    """Raises ValueError."""
    control = _decode(_CONTROL_DECODER, text)
    if control.format != FORMAT:
        raise ValueError(f"its table has format {control.format}, and this program reads format {FORMAT}")
    for name in chain.from_iterable(msgspec.structs.astuple(control.guards)):
        if not _has_wire_form(name):
            raise ValueError(f"{name!a} among its guards is no name")
    return control


def text_records(owner: bytes, text: bytes, *, ttl: int) -> bytes:
    """The row of the TXT records with a text."""
    parts = [text[start : start + _PART] for start in range(0, len(text), _PART)]
    if len(parts) > 1:
        parts = [b"%d/%d " % (number, len(parts)) + part for number, part in enumerate(parts, 1)]
    row = join_row(format_zone_record(owner, Type.TXT, ttl, format_texts(part)) for part in parts)
    return row or b""


def join_texts(parts: Sequence[bytes]) -> bytes:
    """The text of one owner's TXT records, in any order. Raises ValueError."""
    if len(parts) == 1:
        return parts[0]
    numbered: dict[int, bytes] = {}
    for part in parts:
        head, _, rest = part.partition(b" ")
        number, _, count = head.partition(b"/")
        if not number.isdigit() or count != b"%d" % len(parts):
            raise ValueError("its TXT records are not the parts of one text")
        numbered[int(number)] = rest
    if sorted(numbered) != list(range(1, len(parts) + 1)):
        raise ValueError("its TXT records are not the parts of one text")
    return b"".join(numbered[number] for number in sorted(numbered))


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
        verdict.doubt,
        verdict.waits,
        host.barred,
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
    verdict = Verdict(winner, answered, excluded, one.doubt, one.waits, None, unready, contenders)
    owned = winner is not None or unready is not None
    if owned != bool(one.addresses):
        raise ValueError(f"{hostname!a} has addresses without a claim, or a claim without addresses")
    return Judgement(Host(hostname, reach, one.addresses, one.barred, one.service), verdict)


def _shorten(struct: msgspec.Struct) -> list[Any]:
    """The fields up to the last one that is not its default: a row of most hostnames has a tenth of the fields."""
    values = list(msgspec.structs.astuple(struct))
    defaults = struct.__struct_defaults__
    while defaults and values[-1] == defaults[-1]:
        values.pop()
        defaults = defaults[:-1]
    return values


def _format_claim(claim: Claim) -> list[Any]:
    origin = claim.origin
    found = _Claim(
        (origin.kind, origin.name, origin.namespace, origin.created),
        claim.addresses,
        claim.ingress_class,
        claim.target,
        claim.status,
        claim.routed,
        claim.annotated,
        claim.since,
        claim.target_from,
        claim.gateway,
        claim.accepted,
    )
    return _shorten(found)


def _parse_claim(hostname: str, reach: Reach, claim: _Claim) -> Claim:
    kind, name, namespace, created = claim.origin if len(claim.origin) == 4 else _bad_origin()  # noqa: PLR2004
    return Claim(
        hostname,
        reach,
        Origin(kind, name, namespace, created),
        claim.addresses,
        claim.ingress_class,
        claim.target,
        claim.status,
        claim.routed,
        claim.annotated,
        claim.since,
        claim.target_from,
        claim.gateway,
        claim.accepted,
    )


@lru_cache(maxsize=1024)
def _is_address(text: str) -> bool:
    """Whether a text is an address; nearly all rows of a table have the same few."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _has_wire_form(name: str) -> bool:
    labels = name.removeprefix("*.").split(".")
    return (
        name.isascii()
        and len(name) < names.MAXIMUM_NAME - 1
        and all(0 < len(one) <= names.MAXIMUM_LABEL for one in labels)
    )


def _bad_origin() -> NoReturn:
    raise ValueError("a claim's origin has not four parts")


def _decode(decoder: msgspec.json.Decoder[T], text: bytes) -> T:
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"it is no row of a table: {error}") from None
