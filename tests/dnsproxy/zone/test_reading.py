"""A secondary's reading: any octets are a whole transfer or a TransferRefused, and taking one over ends nothing.

test_zone_follower.py has the table of faults.
"""

from __future__ import annotations

import random
from typing import Final

import msgspec
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.answers.table import HostTable
from dnsproxy.hostnames.keeper import TableKeeper
from dnsproxy.replica.replica_registry import ReplicaRegistry
from dnsproxy.zone.control import FORMAT
from dnsproxy.zone.reading import Changes, Transfer, TransferReader, TransferRefused, apply_changes
from dnsproxy.zone.requests import format_request
from dnsproxy.zone.table_zone import APEX, owner_of
from sidecar.loop.slices import in_slices
from tests.kit.strategies import mutate
from tests.kit.zone_replicas import APP, CONTROL, NEW, increment, piece_of, row_piece, whole
from tests.kit.zone_sides import TABLE_ZONE

AXFR: Final = format_request(TABLE_ZONE, serial=None, ident=1)
IXFR: Final = format_request(TABLE_ZONE, serial=1, ident=1)
FIRST: Final = whole(AXFR, 1, CONTROL, APP)[0]
SECOND: Final = increment(IXFR, 1, 2, deleted=[APP], added=[NEW])[0]
LARGE: Final = whole(AXFR, 2, CONTROL, *(row_piece(f"n{number}.example.org", "192.0.2.1") for number in range(20)))[0]


class Replica:
    """A registry with version 1; made inside of a loop."""

    def __init__(self) -> None:
        self.registry = ReplicaRegistry(TABLE_ZONE)
        self.tables: list[HostTable] = []
        self.keeper = TableKeeper(self.registry, ttl=5, publish=self.tables.append, sources=[])

    async def take(self, message: bytes, *, known: int | None, datagram: bool = False) -> bool:
        """Whether it was taken."""
        reader = TransferReader(TABLE_ZONE, known=known, datagram=datagram)
        try:
            await in_slices(reader.read(message))
            if reader.is_current or reader.needs_stream or not reader.is_done:
                return False
            version = await in_slices(self.registry.prepare(reader.transfer()))
        except TransferRefused:
            return False
        taken = self.registry.stage(version)
        await self.keeper.swap()
        assert taken.is_set()
        for hostname in self.registry.every_name():
            assert self.registry.is_barred(hostname) in (True, False)
        list(self.registry.texts())
        return True


def play(message: bytes, *, known: int | None, datagram: bool = False) -> bool:
    async def run() -> bool:
        replica = Replica()
        assert await replica.take(FIRST, known=None)
        return await replica.take(message, known=known, datagram=datagram)

    return trio.run(run)


@given(st.integers(0, 2**32), st.sampled_from([FIRST, SECOND, LARGE]), st.sampled_from([None, 1]), st.booleans())
def test_a_mutated_transfer_is_refused_or_taken_whole(
    seed: int, message: bytes, known: int | None, datagram: bool
) -> None:
    others = (FIRST, SECOND, LARGE)
    play(mutate(message, random.Random(seed), others=others), known=known, datagram=datagram)  # noqa: S311


JSON: Final = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 300)
    | st.sampled_from(["", "192.0.2.1", "*.example.org", "a.b", "\0", "é"]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["deny", "search", "0"]), inner, max_size=2)
    ),
    max_leaves=8,
)


@given(st.lists(JSON, max_size=11), st.sampled_from(["new.example.org", "*.example.org"]))
def test_a_row_of_any_values_is_refused_or_taken(values: list[object], hostname: str) -> None:
    piece = piece_of(owner_of(hostname, TABLE_ZONE), msgspec.json.encode([hostname, [values]]))
    play(whole(AXFR, 2, CONTROL, piece)[0], known=None)


FIELDS: Final = ["unready", "guards", "target", "by_class", "steered"]


@given(
    st.dictionaries(st.sampled_from(FIELDS), JSON | st.dictionaries(st.sampled_from(["deny", "search", "zones"]), JSON))
)
def test_a_control_record_of_any_values_is_refused_or_taken(fields: dict[str, object]) -> None:
    control = piece_of(APEX, msgspec.json.encode({"format": FORMAT, "ttl": 5, **fields}))
    play(whole(AXFR, 2, control, APP)[0], known=None)


def test_good_ones_are_taken() -> None:
    assert play(SECOND, known=1)
    assert play(SECOND, known=1, datagram=True)
    assert play(LARGE, known=None)
    assert play(LARGE, known=1)


def test_a_transfer_that_is_not_done_is_none() -> None:
    reader = TransferReader(TABLE_ZONE, known=None)
    with pytest.raises(TransferRefused, match="ended before"):
        reader.transfer()


@pytest.mark.parametrize(
    ("records", "changes", "expected"),
    [
        ([b"a", b"b"], Changes([b"a"], [b"c"]), [b"b", b"c"]),
        ([b"a"], Changes([b"a"], [b"a"]), [b"a"]),
        ([], Changes([], [b"a"]), [b"a"]),
        ([b"a"], Changes([b"b"], []), None),
        ([b"a"], Changes([b"a", b"a"], []), None),
        ([], Changes([b"a"], [b"a"]), None),
    ],
)
def test_a_difference_deletes_only_what_is_there(
    records: list[bytes], changes: Changes, expected: list[bytes] | None
) -> None:
    if expected is None:
        with pytest.raises(TransferRefused, match="what is not there"):
            apply_changes(records, changes)
    else:
        assert apply_changes(records, changes) == expected


def test_a_name_with_more_records_than_a_row_can_have_is_refused() -> None:
    """The transfer that has them takes a megabyte."""
    registry = ReplicaRegistry(TABLE_ZONE)
    record = b"\0\x10\0\1\0\0\0\5\0\4\3"
    many = [record + number.to_bytes(3, "big") for number in range(1 << 16)]
    with pytest.raises(TransferRefused, match="65536 records"):
        list(registry.prepare(Transfer(5, True, {b"\x01x": Changes([], many)})))
    assert (registry.serial, list(registry.texts()), registry.versions) == (None, [], 0)
