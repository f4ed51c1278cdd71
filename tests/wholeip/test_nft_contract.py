"""The contract of a Table: the same cases for the kernel in memory and for the real one with the real nft."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from ipaddress import ip_address

import hypothesis
import pytest
import trio

from tests.kit.networks import Network, root
from tests.kit.wholeip_kernel import FakeKernel
from tests.wholeip.ruleset.rulesets import rulesets
from tests.wholeip.scene.place import Place, place
from wholeip.kernel.nft import Nft, Table
from wholeip.mappings.mapping import Mapping, OpenPort
from wholeip.ruleset.nft_errors import Refused
from wholeip.ruleset.ruleset import TABLE, Ruleset, Transaction, changes, format_transaction, make_ruleset

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


@pytest.mark.parametrize("ruleset", [ONE, MOVED, NOTHING], ids=["one", "another", "empty"])
async def test_a_whole_ruleset_is_read_back_as_it_was_written(kernel: Kernel, ruleset: Ruleset) -> None:
    await kernel.table.apply(changes(None, ruleset))
    assert await kernel.table.read_ruleset() == ruleset


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


@hypothesis.given(states=hypothesis.strategies.lists(rulesets(), min_size=2, max_size=6))
@hypothesis.settings(max_examples=15)
def test_any_states_one_after_another_are_reached_and_read_back_in_memory(states: list[Ruleset]) -> None:
    trio.run(_go_through, FakeKernel(), states)


@real
def test_any_states_one_after_another_are_reached_and_read_back_for_real(network: Inside) -> None:
    @hypothesis.given(states=hypothesis.strategies.lists(rulesets(), min_size=2, max_size=6))
    @hypothesis.settings(max_examples=8)
    def go_through(states: list[Ruleset]) -> None:
        trio.run(_go_through, network.nft(), states)

    with network.entered():
        go_through()


async def _go_through(table: Table, states: list[Ruleset]) -> None:
    await table.delete_table()
    for desired in states:
        await table.apply(changes(await table.read_ruleset(), desired))
        assert await table.read_ruleset() == desired


@real
def test_nft_takes_every_ruleset_that_is_printed(network: Inside) -> None:
    @hypothesis.given(many=hypothesis.strategies.lists(rulesets(), min_size=10, max_size=30))
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
            repair = changes(await nft.read_ruleset(), ONE)
            assert repair
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
