"""A dnsproxy that is dead, hangs, or is cut off, behind a real CoreDNS with our stanza in a stock forward.

The contract (I6): queries outside the table never fail, whatever happens to dnsproxy; names of the table get our answer
or that of the original resolver; no query waits for dnsproxy for long, and CoreDNS asks it again once it is back.
tests/bench/faults measures how long that takes at 2,000 queries a second.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
import trio

from tests.bench.faults.scene import PUBLIC, RELAY, Scene, running_scene
from tests.peers.steady import Tally, answered_at_once_with, asking

Block = Callable[[Scene], AbstractContextManager[None]]

RATE: Final = 50
"""Questions a second. CoreDNS's socket holds some 270 by default (net.core.rmem_default): at 200 a second it was full
when CoreDNS got no processor for a second and a half, and the kernel dropped what no program of ours had seen."""

pytestmark = pytest.mark.peer("coredns", "nsd", "ip")

BOTH = [
    pytest.param("coredns", id="newest"),
    pytest.param("coredns-old", id="oldest", marks=pytest.mark.peer("coredns-old")),
]
FAULTS = [
    pytest.param(Scene.killed, id="killed"),
    pytest.param(Scene.hung, id="hung"),
    pytest.param(Scene.black_holed, id="black hole"),
]


@pytest.fixture
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    """`request.param`: the CoreDNS, the options of its forward before ours, and a word for a dual-stack Service."""
    peer, options, *dual_stack = request.param
    with running_scene(tmp_path, peer=peer, options=options, dual_stack=bool(dual_stack)) as running:
        yield running


@asynccontextmanager
async def during(fault: AbstractContextManager[None]) -> AsyncIterator[None]:
    """The fault for the duration of the block. Starting and ending it wait for processes, so they run in a thread."""
    await trio.to_thread.run_sync(fault.__enter__)
    try:
        yield
    finally:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(fault.__exit__, None, None, None)


def check(tally: Tally) -> None:
    """Nothing lost, nothing wrong, nothing late; the server goes on after most of these faults."""
    print(tally)  # noqa: T201  # the count of failures, to be seen with -rP
    print(*tally.unexpected({RELAY, PUBLIC}), sep="\n")  # noqa: T201  # each with its transport and time
    assert set(tally.said(in_table=False)) == {PUBLIC}
    assert set(tally.said(in_table=True)) <= {RELAY, PUBLIC}
    assert tally.late() == []


@pytest.mark.parametrize(
    "scene", [pytest.param((one.values[0], ()), id=one.id, marks=one.marks) for one in BOTH], indirect=True
)
@pytest.mark.parametrize("fault", FAULTS)
async def test_no_lookup_outside_the_table_fails_and_the_table_is_back_after_the_fault(
    fault: Block, scene: Scene
) -> None:
    async with asking(scene.coredns.port, rate=RATE) as tally:
        await tally.wait_for(20, answered_at_once_with(RELAY))
        async with during(fault(scene)):
            await tally.wait_for(50, answered_at_once_with(PUBLIC))
        await tally.wait_for(20, answered_at_once_with(RELAY))
    check(tally)


@pytest.mark.parametrize(
    "scene",
    [pytest.param((one.values[0], (), "dual stack"), id=one.id, marks=one.marks) for one in BOTH],
    indirect=True,
)
async def test_a_hung_dnsproxy_with_a_dual_stack_service_costs_no_more_than_with_one_address(scene: Scene) -> None:
    async with asking(scene.coredns.port, rate=RATE) as tally:
        await tally.wait_for(20, answered_at_once_with(RELAY))
        async with during(scene.hung()):
            await tally.wait_for(50, answered_at_once_with(PUBLIC))
        await tally.wait_for(20, answered_at_once_with(RELAY))
    check(tally)


@pytest.mark.parametrize("scene", [("coredns", ("max_concurrent 100",))], indirect=True, ids=["100 at once"])
async def test_queries_that_wait_for_us_do_not_use_up_the_limit_of_the_others(scene: Scene) -> None:
    """200 wait for the hanging server: for two seconds each."""
    assert "max_concurrent 100\n" not in scene.corefile.partition("# END")[0]
    async with asking(scene.coredns.port, rate=2 * RATE) as tally:
        await tally.wait_for(20, answered_at_once_with(RELAY))
        async with during(scene.hung()):
            await tally.wait_for(50, answered_at_once_with(PUBLIC))
        await tally.wait_for(20, answered_at_once_with(RELAY))
    check(tally)
