"""A secondary's reading of a transfer: messages in, records out (RFC 5936 section 2.2, RFC 1995 section 4).

The law: pure and bounded; what is not whole, not of this zone, or of other types than a primary of Switchback has is
refused with the reason, and nothing of it counts.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from dnsproxy.dns import wire
from dnsproxy.dns.names import format_wire
from dnsproxy.dns.wire import CLASS_IN, Rcode, Type
from dnsproxy.zone.requests import soa_serial
from dnsproxy.zone.serials import is_newer
from dnsproxy.zone.table_zone import join_texts
from dnsproxy.zone.walking import Record, walk_records
from dnsproxy.zone.zone_records import MOST_RECORDS, ZONE, join_row, parse_texts, split_row

LARGEST: Final = 256 << 20
"""Octets of one transfer; 500,000 names are some 100 MB."""
TABLE_TYPES: Final = frozenset({int(Type.TXT)})
POLICY_TYPES: Final = frozenset({int(Type.A), int(Type.AAAA), int(Type.CNAME)})
_SOA: Final = int(Type.SOA)
_NS: Final = int(Type.NS)
_FIXED: Final = 10
"""Octets of type, class, TTL and length."""


class TransferRefused(ValueError):
    """An answer that is no usable transfer; the message is the reason, as part of a sentence."""


class Changes(NamedTuple):
    """What a transfer says about one owner: records without their owner, as octets from the type on."""

    deleted: list[bytes]
    added: list[bytes]


class Transfer(NamedTuple):
    """A whole answer."""

    serial: int
    whole: bool
    """Whether it is the whole zone, and not a difference."""
    owners: Mapping[bytes, Changes]
    """By relative owner."""


class _State(Enum):
    FIRST = "the first SOA"
    SECOND = "the second record"
    WHOLE = "the rest of a whole zone"
    DELETED = "what a version deleted"
    ADDED = "what a version added"
    DONE = "nothing more"


class TransferReader:
    """Reads the messages of one answer. `known`: the serial that the request named; None for AXFR."""

    def __init__(
        self, zone: bytes, *, known: int | None, types: Collection[int] = TABLE_TYPES, datagram: bool = False
    ) -> None:
        self.octets = 0
        self.serial: int | None = None
        """Of the first SOA: what the primary has."""
        self.is_current = False
        """Whether the primary has nothing newer."""
        self.needs_stream = False
        """Whether the answer is too large for a datagram."""
        self._zone = zone
        self._types = types
        self._known = known
        self._datagram = datagram
        self._state = _State.FIRST
        self._owners: dict[bytes, Changes] = {}
        self._whole = False
        self._at: int | None = known
        """The serial that the differences so far lead to."""

    @property
    def is_done(self) -> bool:
        """Whether the answer is whole."""
        return self._state is _State.DONE

    def read(self, message: bytes) -> Generator[None, None, None]:
        """Read one message, in steps of one record. Raises TransferRefused."""
        self.octets += len(message)
        if self.octets > LARGEST:
            raise TransferRefused(f"its zone is larger than {LARGEST >> 20} MiB")
        self._check_head(message)
        answers = 0
        try:
            for record in walk_records(message):
                if record.section == 1:
                    answers += 1
                    self._take(message, record)
                yield
        except TransferRefused:
            raise
        except ValueError as error:
            raise TransferRefused(str(error)) from None
        self._end_message(answers)

    def transfer(self) -> Transfer:
        """The result, when is_done and not is_current. Raises TransferRefused."""
        if self.serial is None or not self.is_done:
            raise TransferRefused("it ended before its last SOA")
        return Transfer(self.serial, self._whole, self._owners)

    def _check_head(self, message: bytes) -> None:
        if len(message) < wire.HEADER or not message[2] & 0x80 or message[2] & 0x78:
            raise TransferRefused("it is no answer to a query")
        rcode = wire.rcode_of(message)
        if rcode != Rcode.NOERROR:
            raise TransferRefused(_refusal_of(rcode))
        if wire.is_truncated(message):
            if not self._datagram:
                raise TransferRefused("it is truncated")
            self.needs_stream, self._state = True, _State.DONE

    def _end_message(self, answers: int) -> None:
        if self.needs_stream:
            return
        if not answers:
            raise TransferRefused("it has no records")
        if self._state is _State.SECOND and self._known is not None:
            # A single SOA: nothing newer, or more than a datagram holds (RFC 1995 sections 2 and 4).
            if self.serial is not None and not is_newer(self.serial, self._known):
                self.is_current, self._state = True, _State.DONE
            elif self._datagram:
                self.needs_stream, self._state = True, _State.DONE
        if self._datagram and self._state is not _State.DONE:
            raise TransferRefused("it ended before its last SOA")

    def _take(self, message: bytes, record: Record) -> None:
        if self._state is _State.DONE:
            if not self.needs_stream:
                raise TransferRefused("it has records after its last SOA")
            return
        owner = self._relative(record)
        if record.type == _SOA:
            self._take_soa(message, record, owner)
        elif self._state is _State.FIRST:
            raise TransferRefused("it does not begin with a SOA")
        else:
            if self._state is _State.SECOND:
                self._state, self._whole = _State.WHOLE, True
            self._take_record(message, record, owner)

    def _take_soa(self, message: bytes, record: Record, owner: bytes) -> None:
        serial = soa_serial(message, record.data)
        if serial is None or owner:
            raise TransferRefused("a SOA in it is malformed, or not at the zone's apex")
        if self._state is _State.FIRST:
            self.serial, self._state = serial, _State.SECOND
            if self._known is not None and not is_newer(serial, self._known):
                self.is_current, self._state = True, _State.DONE
        elif self._state is _State.SECOND and self._known is None:
            raise TransferRefused("it is a zone of nothing but its SOA")
        elif self._state is _State.SECOND and serial != self._at:
            # A difference from a version that nobody has.
            raise TransferRefused(f"its difference begins at serial {serial}, and {self._at} is known here")
        elif self._state is _State.SECOND:
            self._state = _State.DELETED
        elif self._state is _State.DELETED:
            self._at, self._state = serial, _State.ADDED
        elif self._state is _State.ADDED and serial == self._at and serial != self.serial:
            self._state = _State.DELETED
        elif serial == self.serial and self._state in (_State.WHOLE, _State.ADDED):
            self._finish()
        else:
            raise TransferRefused(f"its serials do not lead from one to another: {serial} after {self._at}")

    def _finish(self) -> None:
        if self._state is _State.ADDED and self._at != self.serial:
            raise TransferRefused(f"its differences lead to serial {self._at}, and not to {self.serial}")
        self._state = _State.DONE

    def _take_record(self, message: bytes, record: Record, owner: bytes) -> None:
        if record.type == _NS and not owner:
            return
        if record.type not in self._types or record.klass != CLASS_IN:
            raise TransferRefused("it has other records than a table of Switchback: it is another zone")
        tail = message[record.data - _FIXED : record.end]
        changes = self._owners.get(owner)
        if changes is None:
            changes = self._owners[owner] = Changes([], [])
        if self._state is not _State.DELETED:
            changes.added.append(tail)
        elif tail in changes.added:
            # What an earlier version of the same answer added is gone again.
            changes.added.remove(tail)
        else:
            changes.deleted.append(tail)

    def _relative(self, record: Record) -> bytes:
        if not record.name.endswith(self._zone):
            raise TransferRefused(f"it has records of {format_wire(record.name)}, outside the zone")
        return record.name[: len(record.name) - len(self._zone)]


def _refusal_of(rcode: int) -> str:
    reasons = {
        int(Rcode.REFUSED): "the primary refuses it (REFUSED): --rpz-allow there does not have this address, or the "
        "request needs --rpz-key",
        int(Rcode.NOTAUTH): "the primary answers NOTAUTH: it has no such zone, or does not take the signature",
        int(Rcode.SERVFAIL): "the primary has no table yet (SERVFAIL)",
    }
    try:
        name = Rcode(rcode).name
    except ValueError:
        name = f"RCODE{rcode}"
    return reasons.get(rcode, f"the primary answers {name}")


def apply_changes(records: Iterable[bytes], changes: Changes) -> list[bytes]:
    """The records of one owner after a difference. Raises TransferRefused if a deleted one is not there."""
    left = dict.fromkeys(records)
    for deleted in changes.deleted:
        if deleted not in left:
            raise TransferRefused("its difference deletes what is not there")
        del left[deleted]
    return [*left, *changes.added]


def text_of(records: Iterable[bytes]) -> bytes:
    """The text of the TXT records of one owner. Raises TransferRefused."""
    try:
        return join_texts([parse_texts(record[_FIXED:]) for record in records])
    except ValueError as error:
        raise TransferRefused(str(error)) from None


def row_of(owner: bytes, records: Iterable[bytes]) -> bytes | None:
    """The records as a row of a content. Raises TransferRefused for more than a row can have."""
    found = [owner + ZONE + record for record in records]
    if len(found) > MOST_RECORDS:
        raise TransferRefused(f"one name in it has {len(found)} records")
    return join_row(found)


def records_of(owner: bytes, row: bytes) -> list[bytes]:
    """The inverse of row_of."""
    start = len(owner) + len(ZONE)
    return [record[start:] for record in split_row(row)]
