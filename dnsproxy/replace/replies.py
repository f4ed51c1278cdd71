"""Replies that lead here: what in a reply leads to a load balancer, and the reply with the target in its place.

The law: pure; a record that does not lead here is never changed. Each address is judged alone, so a round robin over
two clusters keeps the other one. A name that is an alias of a load balancer's hostname leads there with all addresses.
Replaced records live at most `ttl` seconds; signatures over what was changed go, and so does AD, as both would say what
nobody has signed (RFC 4035 section 3.2.3).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from dnsproxy.dns import wire
from dnsproxy.dns.addresses import ADDRESS_SIZES
from dnsproxy.dns.wire import CLASS_IN, Query, Type
from dnsproxy.replace.balancers import OF_ROW, Leads, Target
from dnsproxy.replace.message import Record, Reply, read_reply, write_reply

_CNAME: Final = int(Type.CNAME)
_NS: Final = 2
_RRSIG: Final = 46
_TSIG: Final = 250
_SERVICES: Final = frozenset({int(Type.SVCB), int(Type.HTTPS)})
_HINTS: Final = {4: 4, 6: 16}
"""The keys ipv4hint and ipv6hint, and the octets of one address (RFC 9460 section 7.3)."""
_MANDATORY: Final = 0
_SHORTEST: Final = 5
_LONGEST: Final = 300


class Lead(NamedTuple):
    """One address of a reply."""

    address: bytes
    target: Target | None
    """What is to be used in its place; OF_ROW: what the name's row has; None: it leads elsewhere."""


class Reading(NamedTuple):
    """What a reply says about where a name leads."""

    rcode: int
    leads: tuple[Lead, ...]
    """Its addresses in the answer section."""
    ttl: int
    """Seconds for which this may be kept: the least TTL of its records, within 5 and 300."""


def is_exempt(query: Query) -> bool:
    """Whether the client validates by itself, and takes only what is signed: its replies pass untouched.

    It sets DO to get signatures and CD to judge them itself (RFC 6840 section 5.9).
    """
    return query.edns is not None and query.edns.do and bool(query.message[3] & wire.CD)


def read_leads(message: bytes, leads: Leads) -> Reading | None:
    """Where a reply leads; None for octets that are not a whole reply."""
    reply = read_reply(message)
    if reply is None:
        return None
    answers = reply.sections[0]
    judged = _Judged(reply, leads, claimed=True)
    found = tuple(Lead(one.data[0], judged.target_of(one.owner, one.data[0])) for one in answers if _is_address(one))
    least = min((one.ttl for one in (*answers, *reply.sections[1])), default=_SHORTEST)
    return Reading(message[3] & 0xF, found, min(max(least, _SHORTEST), _LONGEST))


def replace_leads(message: bytes, leads: Leads, *, ttl: int, own: Target | None = None) -> bytes | None:
    """The reply with every record replaced that leads here; None if nothing in it does.

    `own`: the addresses of the row of a claimed name; None: nobody has claimed it. A family without a target is left
    out; then nothing may be left of it: NODATA.
    """
    reply = read_reply(message)
    if reply is None or any(one.type == _TSIG for one in reply.sections[2]):
        return None  # its signature is over the whole message (RFC 8945 section 5.3)
    replacer = _Replacer(_Judged(reply, leads, claimed=own is not None), ttl=ttl, own=own)
    answer, additional = replacer.section(reply.sections[0]), replacer.section(reply.sections[2])
    if not replacer.changed:
        return None
    # Without an answer NS records would make a referral of it, in place of NODATA (RFC 2308 section 2.2).
    authority = [one for one in reply.sections[1] if answer or one.type != _NS]
    sections = tuple(
        [one for one in section if not replacer.covers(one)] for section in (answer, authority, additional)
    )
    # AD is the sixth bit of the flags' second octet.
    head = reply.head[:3] + bytes([reply.head[3] & ~wire.AD])
    return write_reply(Reply(head, reply.question, sections))  # type: ignore[arg-type]  # three


class _Judged:
    """What the addresses of one reply lead to.

    All addresses of a load balancer's hostname are that one's, and so are those of the names that it is an alias of.
    """

    def __init__(self, reply: Reply, leads: Leads, *, claimed: bool) -> None:
        self._leads = leads
        self._claimed = claimed
        self._target: Target | None = None
        """That of the hostname."""
        self._names: set[bytes] = set()
        """The hostname, and what it is an alias of."""
        aliases = {one.owner.lower(): one.data[0].lower() for one in reply.sections[0] if _is_alias(one)}
        name: bytes | None = reply.qname
        while name is not None and name not in self._names:
            self._target = self._target or leads.by_name(name, claimed=claimed)
            if self._target is not None:
                self._names.add(name)
            name = aliases.pop(name, None)

    def target_of(self, owner: bytes, address: bytes) -> Target | None:
        """See Lead.target: of an address of a name."""
        if owner.lower() in self._names:
            return self._target
        found = self._leads.by_name(owner.lower(), claimed=self._claimed)
        return found or self._leads.by_address(address, claimed=self._claimed)


class _Replacer:
    """Replaces the records of one reply; remembers which record sets it changed."""

    def __init__(self, judged: _Judged, *, ttl: int, own: Target | None) -> None:
        self._judged = judged
        self._ttl = ttl
        self._own = own
        self.changed: set[tuple[bytes, int]] = set()
        """Owners in lower case, with the type."""

    def section(self, records: Sequence[Record]) -> list[Record]:
        """The records of a section, each replaced address once."""
        kept: list[Record] = []
        written: set[tuple[bytes, int, bytes]] = set()
        for one in records:
            new = self._replace(one)
            if new is None:
                kept.append(one)
                continue
            self.changed.add((one.owner.lower(), one.type))
            for record in new:
                key = one.owner.lower(), one.type, b"".join(record.data)
                if key not in written:
                    written.add(key)
                    kept.append(record)
        # One TTL for a record set (RFC 2181 section 5.2).
        return [
            one._replace(ttl=min(one.ttl, self._ttl)) if (one.owner.lower(), one.type) in self.changed else one
            for one in kept
        ]

    def covers(self, record: Record) -> bool:
        """Whether a record is a signature over a set that was changed."""
        if record.type != _RRSIG or len(record.data[0]) <= 2:  # noqa: PLR2004  # its first two octets are the type
            return False
        return (record.owner.lower(), int.from_bytes(record.data[0][:2], "big")) in self.changed

    def _replace(self, record: Record) -> list[Record] | None:
        """The records in place of one; None if it stays."""
        if _is_address(record):
            target = self._target_of(record.owner, record.data[0])
            if target is None:
                return None
            return [record._replace(data=(one,)) for one in target.of_size(len(record.data[0]))]
        if record.type in _SERVICES and record.klass == CLASS_IN:
            data = self._replace_hints(record)
            return None if data is None else [record._replace(data=(data,))]
        return None

    def _target_of(self, owner: bytes, address: bytes) -> Target | None:
        found = self._judged.target_of(owner, address)
        return self._own if found == OF_ROW else found

    def _replace_hints(self, record: Record) -> bytes | None:
        """The data of a SVCB or HTTPS record with replaced hints; None if it stays."""
        data = record.data[0]
        head = wire.skip_name(data, 2)
        params = _params(data, head) if head else None
        if params is None:
            return None
        # The hints are addresses of the target, and `.` is the owner (RFC 9460 section 2.5.2).
        owner = data[2:head] if data[2:head] != b"\0" else record.owner
        changed = False
        for key, size in _HINTS.items():
            if key in params and len(params[key]) % size == 0:
                hints = self._hints(owner, params[key], size)
                changed = changed or hints != params[key]
                params[key] = hints
        if not changed:
            return None
        gone = {key for key in _HINTS if params.get(key) == b""}
        if _MANDATORY in params:
            # A mandatory key that is not there makes the record void (RFC 9460 section 8).
            keys = params[_MANDATORY]
            named = [keys[at : at + 2] for at in range(0, len(keys), 2)]
            params[_MANDATORY] = b"".join(one for one in named if int.from_bytes(one, "big") not in gone)
            gone |= {_MANDATORY} if not params[_MANDATORY] else set()
        left = (struct.pack("!HH", key, len(value)) + value for key, value in params.items() if key not in gone)
        return data[:head] + b"".join(left)

    def _hints(self, owner: bytes, hints: bytes, size: int) -> bytes:
        found: dict[bytes, None] = {}
        for at in range(0, len(hints), size):
            hint = hints[at : at + size]
            target = self._target_of(owner, hint)
            found |= dict.fromkeys((hint,) if target is None else target.of_size(size))
        return b"".join(found)


def _is_address(record: Record) -> bool:
    return record.klass == CLASS_IN and ADDRESS_SIZES.get(record.type) == len(record.data[0])


def _is_alias(record: Record) -> bool:
    return record.type == _CNAME and record.klass == CLASS_IN


def _params(data: bytes, position: int) -> dict[int, bytes] | None:
    """The parameters of a SVCB record by key, in their order; None if they are malformed."""
    params: dict[int, bytes] = {}
    while position < len(data):
        if position + 4 > len(data):
            return None
        key, size = struct.unpack_from("!HH", data, position)
        position += 4
        if position + size > len(data) or key in params:
            return None
        params[key] = data[position : position + size]
        position += size
    return params
