"""The contract of a Table: the same cases for the kernel in memory and for the real one with the real nft."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from itertools import pairwise

import hypothesis
import pytest
import trio
from hypothesis import strategies as st

from tests.kit.networks import Network, root
from tests.kit.wholeip_kernel import FakeKernel
from tests.wholeip.ruleset.rulesets import rulesets
from tests.wholeip.scene.place import Place, place
from wholeip.kernel.nft import Nft, Table
from wholeip.kernel.table_dump import dump_table
from wholeip.mappings.mapping import Mapping, OpenPort
from wholeip.ruleset.differences import find_differences, make_repair
from wholeip.ruleset.nft_errors import Refused
from wholeip.ruleset.ruleset import TABLE, Ruleset, Transaction, changes, format_transaction, make_ruleset
from wholeip.ruleset.static_rules import COLLECTIONS
from wholeip.ruleset.steps import at_once

__all__ = ["root"]
real = pytest.mark.peer("nft", "unshare", "nsenter")


def mapping(number: int, pod: int, *ports: int, family: int = 4) -> Mapping:
    address, endpoint = ("203.0.113.", "10.0.0.") if family == 4 else ("2001:db8::", "fd00::")
    opened = frozenset(OpenPort("tcp", port) for port in ports) if ports else None
    return Mapping(
        f"default/{number}", ip_address(f"{address}{number}"), ip_address(f"{endpoint}{pod}"), opened, True, not ports
    )


ONE = make_ruleset([mapping(1, 1), mapping(2, 2, 80, 443), mapping(1, 1, family=6)])
MOVED = make_ruleset([mapping(1, 2), mapping(2, 1, 80), mapping(3, 3, family=6)])
NOTHING = make_ruleset([])


@dataclass(frozen=True)
class Inside:
    """A network of its own: sockets by its block, and programs by name, for a thread that trio has kept is outside."""

    place: Place

    @contextmanager
    def entered(self) -> Iterator[None]:
        with Network(self.place.process).entered():
            yield

    def nft(self) -> Nft:
        return Nft(command=self.place.command("nft"))

    async def run(self, command: str) -> str:
        done = await trio.run_process([*self.place.command("nft"), command], capture_stdout=True)
        return done.stdout.decode()


@dataclass
class Kernel:
    """One under test, and how somebody else changes it."""

    table: Table
    change: Callable[[Ruleset | None], Awaitable[None]]


@pytest.fixture(scope="module")
def network(root: None) -> Iterator[Inside]:  # noqa: ARG001  # skips who is not root
    with place() as made:
        yield Inside(made)


@pytest.fixture(params=["in memory", pytest.param("real", marks=real)])
def kernel(request: pytest.FixtureRequest) -> Iterator[Kernel]:
    if request.param == "in memory":
        fake = FakeKernel()

        async def change(ruleset: Ruleset | None) -> None:
            await trio.lowlevel.checkpoint()
            fake.change(ruleset)

        yield Kernel(fake, change)
        return
    network: Inside = request.getfixturevalue("network")
    with network.entered():
        other = network.nft()

        async def change_for_real(ruleset: Ruleset | None) -> None:
            await (other.delete_table() if ruleset is None else other.apply(changes(None, ruleset)))

        yield Kernel(network.nft(), change_for_real)
        trio.run(other.delete_table)


async def test_there_is_no_table_at_first(kernel: Kernel) -> None:
    assert await kernel.table.read_ruleset() is None
    assert await kernel.table.dump_ruleset() is None


@pytest.mark.parametrize("ruleset", [ONE, MOVED, NOTHING], ids=["one", "another", "empty"])
async def test_a_whole_ruleset_is_read_back_as_it_was_written(kernel: Kernel, ruleset: Ruleset) -> None:
    await kernel.table.apply(changes(None, ruleset))
    assert await kernel.table.read_ruleset() == ruleset
    assert await kernel.table.dump_ruleset() == ruleset


async def test_the_generation_changes_with_each_change_of_anybody_and_not_with_a_read(kernel: Kernel) -> None:
    table, seen = kernel.table, [await kernel.table.read_generation()]
    await table.apply(changes(None, ONE))
    seen.append(await table.read_generation())
    await kernel.change(MOVED)
    seen.append(await table.read_generation())
    await table.delete_table()
    seen.append(await table.read_generation())
    assert None not in seen
    assert len({*seen}) == len(seen)
    assert await table.read_ruleset() is None
    assert await table.dump_ruleset() is None
    assert await table.read_generation() == seen[-1]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(ONE, ONE, id="nothing"),
        pytest.param(ONE, NOTHING, id="all go"),
        pytest.param(NOTHING, ONE, id="all come"),
        pytest.param(ONE, MOVED, id="two pods swap"),
        pytest.param(MOVED, ONE, id="two pods swap back"),
    ],
)
async def test_changes_by_element_lead_from_one_to_another(kernel: Kernel, before: Ruleset, after: Ruleset) -> None:
    await kernel.table.apply(changes(None, before))
    transaction = changes(await kernel.table.read_ruleset(), after)
    assert transaction.whole is None
    await kernel.table.apply(transaction)
    assert await kernel.table.read_ruleset() == after


async def test_what_is_there_already_may_be_added_again(kernel: Kernel) -> None:
    await kernel.table.apply(changes(None, ONE))
    await kernel.table.apply(changes(NOTHING, ONE))
    assert await kernel.table.read_ruleset() == ONE


@pytest.mark.parametrize(
    "transaction",
    [
        pytest.param(changes(MOVED, NOTHING), id="deletes what is not there"),
        pytest.param(changes(NOTHING, MOVED), id="adds a key that has another value"),
        pytest.param(changes(MOVED, ONE), id="is for another state"),
        pytest.param(
            Transaction(
                TABLE,
                deletes={"whole_v6": {"2001:db8::1": "fd00::1"}, "ports_v4": {"203.0.113.9 . 6 . 1": "10.0.0.1"}},
                adds={"here_v4": {"10.0.0.77": ""}},
            ),
            id="begins well",
        ),
    ],
)
async def test_a_transaction_that_does_not_fit_is_refused_as_a_whole(kernel: Kernel, transaction: Transaction) -> None:
    await kernel.table.apply(changes(None, ONE))
    with pytest.raises(Refused):
        await kernel.table.apply(transaction)
    assert await kernel.table.read_ruleset() == ONE


async def test_elements_without_a_table_are_refused(kernel: Kernel) -> None:
    with pytest.raises(Refused):
        await kernel.table.apply(changes(NOTHING, ONE))
    assert await kernel.table.read_ruleset() is None


async def test_a_transaction_of_nothing_does_nothing_also_without_a_table(kernel: Kernel) -> None:
    assert not changes(ONE, ONE)
    await kernel.table.apply(changes(ONE, ONE))
    assert await kernel.table.read_ruleset() is None


async def test_a_table_is_deleted_and_deleting_none_is_well(kernel: Kernel) -> None:
    await kernel.table.apply(changes(None, ONE))
    for _ in range(2):
        await kernel.table.delete_table()
        assert await kernel.table.read_ruleset() is None


async def test_a_table_with_another_static_part_is_made_anew(kernel: Kernel) -> None:
    await kernel.table.apply(changes(None, ONE))
    older = replace(ONE, static=frozenset({"chain of an earlier version"}))
    transaction = changes(older, MOVED)
    assert transaction.whole == MOVED
    await kernel.table.apply(transaction)
    assert await kernel.table.read_ruleset() == MOVED


@pytest.mark.parametrize("others", [None, ONE], ids=["removed", "made anew"])
async def test_a_change_by_somebody_else_is_told_and_our_own_is_not(kernel: Kernel, others: Ruleset | None) -> None:
    told = trio.Event()
    async with trio.open_nursery() as nursery:
        await nursery.start(kernel.table.watch_changes, told.set)
        await kernel.table.apply(changes(None, ONE))
        await kernel.table.apply(changes(ONE, MOVED))
        assert await kernel.table.read_ruleset() == MOVED
        assert not told.is_set()
        await kernel.change(others)
        await told.wait()
        assert await kernel.table.read_ruleset() == others
        nursery.cancel_scope.cancel()


@hypothesis.given(states=st.lists(rulesets(), min_size=2, max_size=6))
@hypothesis.settings(max_examples=15)
def test_any_states_one_after_another_are_reached_and_read_back_in_memory(states: list[Ruleset]) -> None:
    trio.run(_go_through, FakeKernel(), states)


@real
def test_any_states_one_after_another_are_reached_and_read_back_for_real(network: Inside) -> None:
    @hypothesis.given(states=st.lists(rulesets(), min_size=2, max_size=6))
    @hypothesis.settings(max_examples=8)
    def go_through(states: list[Ruleset]) -> None:
        trio.run(_go_through, network.nft(), states)

    with network.entered():
        go_through()


async def _go_through(table: Table, states: list[Ruleset]) -> None:
    await table.delete_table()
    for desired in states:
        await table.apply(changes(await table.dump_ruleset(), desired))
        assert await table.read_ruleset() == desired
        assert await table.dump_ruleset() == desired


_SPACES = {"v4": 1 << 32, "v6": 1 << 128}
_BOUNDS = st.sampled_from([0, 1, 2, 3, 4, 8, 16, 255, 256, 1 << 16, (1 << 16) + 7]) | st.integers(0, 1 << 20)


@st.composite
def intervals(draw: st.DrawFn) -> tuple[str, list[str]]:
    """Intervals of a family that do not overlap, some of them side by side, at the start or end of the space."""
    version = draw(st.sampled_from(["v4", "v6"]))
    make, space = (IPv4Address if version == "v4" else IPv6Address), _SPACES[version]
    bounds = draw(st.lists(_BOUNDS | _BOUNDS.map(lambda one: space - 1 - one), min_size=2, max_size=8, unique=True))
    pairs = pairwise(sorted(bounds))
    found = [(first, last - 1) for number, (first, last) in enumerate(pairs) if draw(st.booleans()) or number == 0]
    if draw(st.booleans()) and all(last < space - 5 for _, last in found):
        found.append((space - 4, space - 1))
    return version, [str(make(one)) if one == last else f"{make(one)}-{make(last)}" for one, last in found]


@real
def test_what_is_dumped_is_what_nft_lists(network: Inside) -> None:
    @hypothesis.given(ruleset=rulesets(), more=intervals())
    @hypothesis.settings(max_examples=25, deadline=None)
    def check(ruleset: Ruleset, more: tuple[str, list[str]]) -> None:
        version, elements = more
        script = [f"flush set inet {TABLE} cluster_{version}"]
        script += [f"add element inet {TABLE} cluster_{version} {{ {one} }}" for one in elements]

        async def run() -> None:
            nft = network.nft()
            await nft.apply(changes(None, ruleset))
            await network.run("; ".join(script))
            listed = await nft.read_ruleset()
            # Not by nft in the end, which it is for what is not understood.
            assert await dump_table(TABLE, trio.Lock()) == listed
            assert listed is not None
            assert len(listed.elements[f"cluster_{version}"]) == len(elements)

        trio.run(run)

    with network.entered():
        check()
        trio.run(network.nft().delete_table)


@real
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(f'add element inet {TABLE} whole_v4 {{ 192.0.2.1 comment "x" : 192.0.2.2 }}', id="a comment"),
        pytest.param(f"delete table inet {TABLE}", id="no table"),
    ],
)
def test_what_a_dump_does_not_tell_is_left_to_nft(network: Inside, command: str) -> None:
    async def run() -> None:
        nft = network.nft()
        await nft.apply(changes(None, ONE))
        assert await dump_table(TABLE, trio.Lock()) == ONE
        await network.run(command)
        assert await dump_table(TABLE, trio.Lock()) is None
        listed = await nft.read_ruleset()
        assert await nft.dump_ruleset() == listed
        assert changes(listed, ONE).whole == ONE
        await nft.delete_table()

    with network.entered():
        trio.run(run)


@real
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(f"add rule inet {TABLE} translate counter", id="a rule more"),
        pytest.param(f"add table inet {TABLE} {{ flags dormant; }}", id="asleep"),
        pytest.param(f"add set inet {TABLE} more {{ type ether_addr; }}", id="a set more, of another type"),
        pytest.param(f"add set inet {TABLE} more {{ type ipv4_addr; flags timeout; }}", id="a set with times"),
        pytest.param(f"add counter inet {TABLE} more", id="an object more"),
    ],
)
def test_a_table_with_more_than_ours_is_dumped_with_our_elements(network: Inside, command: str) -> None:
    async def run() -> None:
        nft = network.nft()
        await nft.apply(changes(None, ONE))
        await network.run(command)
        dumped = await dump_table(TABLE, trio.Lock())
        assert dumped is not None
        assert dumped.elements == ONE.elements
        assert changes(dumped, ONE).whole == ONE
        await nft.delete_table()

    with network.entered():
        trio.run(run)


@real
def test_a_table_without_a_set_of_ours_is_dumped_too(network: Inside) -> None:
    async def run() -> None:
        nft = network.nft()
        await network.run(
            f"table inet {TABLE} {{ set addresses_v4 {{ type ipv4_addr; elements = {{ 192.0.2.1 }}; }}; }}"
        )
        dumped = await dump_table(TABLE, trio.Lock())
        assert dumped is not None
        assert dumped.elements == {one.name: {} for one in COLLECTIONS} | {"addresses_v4": {"192.0.2.1": ""}}
        assert changes(dumped, ONE).whole == ONE
        await nft.delete_table()

    with network.entered():
        trio.run(run)


@real
def test_a_table_with_very_many_foreign_sets_is_dumped_without_nft(network: Inside) -> None:
    sets = "".join(f"set foreign{number} {{ type ipv4_addr; }};" for number in range(2000))

    async def run() -> None:
        nft = network.nft()
        await nft.apply(changes(None, ONE))
        await network.run(f"table inet {TABLE} {{ {sets} }}")
        dumped = await replace(nft, command=("no-such-nft",)).dump_ruleset()
        assert dumped is not None
        assert dumped.elements == ONE.elements
        assert len(dumped.static - ONE.static) == 2000
        await nft.delete_table()

    with network.entered():
        trio.run(run)


async def test_an_element_is_found_by_its_key(kernel: Kernel) -> None:
    await kernel.table.apply(changes(None, ONE))
    whole = {one.name for one in COLLECTIONS if not one.interval}
    places = {(name, key): value for name, found in ONE.elements.items() for key, value in found.items()}
    asked = {place: value for place, value in places.items() if place[0] in whole}
    assert len(asked) >= 5
    absent = [(name, key) for name, found in MOVED.elements.items() for key in found if (name, key) not in places]
    assert absent
    assert await kernel.table.find_elements([*asked, *absent]) == asked
    intervals = [(one.name, "10.0.0.0/24") for one in COLLECTIONS if one.interval]
    assert await kernel.table.find_elements(intervals) == {}
    await kernel.table.delete_table()
    assert await kernel.table.find_elements(asked) == {}


@real
def test_each_element_that_stays_is_found_beside_changes_whatever_a_dump_lacks(network: Inside) -> None:
    many = make_ruleset(
        [
            replace(
                mapping(1, 1),
                address=ip_address(f"198.18.{n // 250}.{n % 250 + 1}"),
                endpoint=ip_address(f"10.1.{n // 250}.{n % 250 + 1}"),
            )
            for n in range(2000)
        ]
    )
    flicker = make_ruleset([mapping(1, 1)])

    async def change(nft: Nft) -> None:
        while True:
            await nft.apply(changes(NOTHING, flicker))
            await nft.apply(changes(flicker, NOTHING))

    async def run() -> None:
        nft = network.nft()
        await nft.apply(changes(None, many))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(change, nft)
            for _ in range(20):
                found = await nft.dump_ruleset()
                assert found is not None
                kept = {(name, key) for name, elements in found.elements.items() for key in elements}
                # The kernel may lose some while it resizes a hash table.
                missing = {(name, key) for name, elements in many.elements.items() for key in elements} - kept
                assert (await nft.find_elements(missing)).keys() == missing
            nursery.cancel_scope.cancel()
        await nft.delete_table()

    with network.entered():
        trio.run(run)


@real
def test_a_repair_in_parts_ends_networks_that_overlap_first(network: Inside) -> None:
    desired = make_ruleset([], cluster=[ip_network(f"10.0.{number}.0/24") for number in range(0, 20, 2)])

    async def repair() -> None:
        nft = network.nft()
        await nft.apply(changes(None, desired))
        await network.run(f"flush set inet {TABLE} cluster_v4")
        await network.run(f"add element inet {TABLE} cluster_v4 {{ 10.0.0.0/8 }}")
        current = await nft.read_ruleset()
        assert current is not None
        for one in at_once(find_differences(current, desired)):
            await nft.apply(make_repair(TABLE, [one]))
        assert await nft.read_ruleset() == desired

    with network.entered():
        trio.run(repair)


@real
def test_nft_takes_every_ruleset_that_is_printed(network: Inside) -> None:
    @hypothesis.given(many=st.lists(rulesets(), min_size=10, max_size=30))
    @hypothesis.settings(max_examples=3)
    def check(many: list[Ruleset]) -> None:
        named = [replace(ruleset, table=f"printed_{number}") for number, ruleset in enumerate(many)]
        script = "".join(format_transaction(changes(None, ruleset)) for ruleset in named)
        network.place.run("nft", "--check", "--file", "-", script=script)

    check()


@real
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(f"add rule inet {TABLE} translate counter", id="a rule more"),
        pytest.param(f"insert rule inet {TABLE} refuse accept", id="a rule in front"),
        pytest.param(f"flush chain inet {TABLE} postrouting", id="a chain without its rules"),
        pytest.param(f"add chain inet {TABLE} more", id="a chain more"),
        pytest.param(f"add set inet {TABLE} more {{ type ipv4_addr; }}", id="a set more"),
        pytest.param(f"add counter inet {TABLE} more", id="an object more"),
        pytest.param(f"add table inet {TABLE} {{ flags dormant; }}", id="asleep"),
        pytest.param(f"add chain inet {TABLE} translated {{ policy drop; }}", id="another policy"),
        pytest.param(f"add element inet {TABLE} whole_v4 {{ 192.0.2.1 : 192.0.2.2 }}", id="an element more"),
        pytest.param(f"flush map inet {TABLE} whole_v4", id="no element any more"),
        pytest.param(f"add element inet {TABLE} cluster_v4 {{ 192.0.2.1-192.0.2.77 }}", id="a range more"),
        pytest.param(f"delete table inet {TABLE}", id="no table any more"),
        pytest.param("flush ruleset", id="nothing any more"),
    ],
)
def test_what_somebody_else_did_to_the_table_is_told_seen_and_undone(network: Inside, command: str) -> None:
    async def run() -> None:
        nft, told = network.nft(), trio.Event()
        async with trio.open_nursery() as nursery:
            await nursery.start(nft.watch_changes, told.set)
            await nft.apply(changes(None, ONE))
            await network.run(command)
            await told.wait()
            repair = changes(await nft.dump_ruleset(), ONE)
            assert repair
            assert repair == changes(await nft.read_ruleset(), ONE)
            await nft.apply(repair)
            assert await nft.read_ruleset() == ONE
            nursery.cancel_scope.cancel()

    with network.entered():
        trio.run(run)


@real
def test_tables_of_others_are_neither_told_nor_touched(network: Inside) -> None:
    async def run() -> None:
        nft, told = network.nft(), []
        async with trio.open_nursery() as nursery:
            await nursery.start(nft.watch_changes, lambda: told.append("told"))
            for family in ("ip", "ip6", "inet"):
                await network.run(f"add table {family} {TABLE}_other; add chain {family} {TABLE}_other c")
            await network.run(f"add table ip {TABLE}; add chain ip {TABLE} c")
            await nft.apply(changes(None, ONE))
            await nft.delete_table()
            assert told == []
            await network.run(f"add table inet {TABLE}")
            while not told:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        listing = await network.run("list tables")
        assert {f"table {family} {TABLE}_other" for family in ("ip", "ip6", "inet")} < set(listing.splitlines())
        assert f"table ip {TABLE}" in listing.splitlines()
        await network.run("flush ruleset")

    with network.entered():
        trio.run(run)
