"""The plan of a watcher, in steps that are told, and as laws against a world of writers, conflicts and lists."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dnsproxy.ip_mode.watch.observed import Observed
from dnsproxy.ip_mode.watch.plan import (
    LONGEST,
    UNTIL_UPGRADE,
    Event,
    Overtaken,
    Seen,
    Standing,
    Tick,
    WatchState,
    WriteFailed,
    Written,
    watch_step,
)
from sidecar.kubernetes.structs.network import LoadBalancerPoint
from sidecar.values.write_backoff import FREE, QUIET

ADDRESS = "192.0.2.1"


def service(version: int, mode: str | None = "VIP", *, uid: str = "a", ip: str = ADDRESS, **more: str) -> Observed:
    return Observed(uid, str(version), (LoadBalancerPoint(ip=ip, ip_mode=mode),), "cloud-controller", **more)


def steps(*events: Event, now: float = 0.0) -> tuple[WatchState, bool]:
    """Each event a second after the one before."""
    state, writes = WatchState(), False
    for number, event in enumerate(events):
        state, writes = watch_step(state, event, now + number, 0.0)
    return state, writes


VIP, PROXY = service(1), service(2, "Proxy")
ROWS: list[tuple[str, list[Event], Standing, bool]] = [
    ("the provider's write is written once", [Seen(VIP)], Standing.WRITING, True),
    ("and no second time while it runs", [Seen(VIP), Tick()], Standing.WRITING, False),
    ("its answer ends it", [Seen(VIP), Written(PROXY)], Standing.IN_PLACE, False),
    ("the watch shows our own write", [Seen(VIP), Written(PROXY), Seen(PROXY)], Standing.IN_PLACE, False),
    ("the next write of the provider", [Seen(VIP), Written(PROXY), Seen(service(3))], Standing.WRITING, True),
    ("a missing mode is VIP", [Seen(service(1, None))], Standing.WRITING, True),
    ("Proxy already", [Seen(PROXY)], Standing.IN_PLACE, False),
    ("no Service", [Seen(None)], Standing.WAITING, False),
    ("a Service that comes later", [Seen(None), Seen(VIP)], Standing.WRITING, True),
    ("a Service that is deleted", [Seen(VIP), Written(PROXY), Seen(None)], Standing.WAITING, False),
    ("and made anew", [Seen(PROXY), Seen(None), Seen(service(9, uid="b"))], Standing.WRITING, True),
    ("another type", [Seen(service(1, why_waiting="its type is ClusterIP"))], Standing.WAITING, False),
    ("no address", [Seen(Observed("a", "1", why_waiting="it has no address yet"))], Standing.WAITING, False),
    ("an address that is lost", [Seen(PROXY), Seen(Observed("a", "3", why_waiting="-"))], Standing.WAITING, False),
    ("a harmful balancer", [Seen(service(1, why_refused="MetalLB"))], Standing.REFUSED, False),
    ("one that becomes known", [Seen(PROXY), Seen(service(3, "Proxy", why_refused="x"))], Standing.REFUSED, False),
    ("a doubt that is gone", [Seen(service(1, why_refused="x")), Seen(VIP)], Standing.WRITING, True),
    ("a conflict waits a moment", [Seen(VIP), Overtaken("422")], Standing.WRITING, True),
    ("another state after a conflict", [Seen(VIP), Overtaken("422"), Seen(service(3))], Standing.WRITING, True),
    ("the other watcher was faster", [Seen(VIP), Overtaken("422"), Seen(PROXY)], Standing.IN_PLACE, False),
    ("a write that is not allowed", [Seen(VIP), WriteFailed("403")], Standing.FAILED, False),
    ("nor for each new state", [Seen(VIP), WriteFailed("403", 60.0), Seen(service(3))], Standing.FAILED, False),
    ("a lost answer", [Seen(VIP), WriteFailed("timeout"), Seen(PROXY)], Standing.IN_PLACE, False),
    ("the field is dropped", [Seen(VIP), Written(VIP)], Standing.NOT_KEPT, False),
    ("and not written again", [Seen(VIP), Written(VIP), Tick(), Seen(service(1))], Standing.NOT_KEPT, False),
    ("nor for the next state", [Seen(VIP), Written(VIP), Seen(service(3))], Standing.NOT_KEPT, False),
]  # fmt: skip


@pytest.mark.parametrize(("events", "standing", "writes"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_after_these_events(events: list[Event], standing: Standing, *, writes: bool) -> None:
    if events[-1] == Overtaken("422"):
        state, _ = steps(*events)
        assert state.wake_at > 1
        state, now = watch_step(state, Tick(), state.wake_at, 0.0)
    else:
        state, now = steps(*events)
    assert (state.standing, now) == (standing, writes)


def test_an_hour_after_a_write_that_was_not_kept_the_next_state_is_tried() -> None:
    state, _ = steps(Seen(VIP), Written(VIP))
    assert state.wake_at == float("inf")
    state, writes = watch_step(state, Seen(service(1)), UNTIL_UPGRADE + 2, 0.0)
    assert not writes, "the same version was written already"
    assert watch_step(state, Seen(service(3)), UNTIL_UPGRADE + 2, 0.0)[1]


def test_a_patch_that_is_refused_without_a_conflict_becomes_a_failure_and_rare() -> None:
    state, writes = steps(Seen(VIP))
    now, times = 0.0, []
    for _ in range(30):
        assert writes
        times.append(now)
        state, writes = watch_step(state, Overtaken("422: no"), now, 0.5)
        assert not writes
        now = state.wake_at
        state, writes = watch_step(state, Tick(), now, 0.5)
    assert state.failures > 5
    assert LONGEST / 2 <= times[-1] - times[-2] <= LONGEST


def test_who_undoes_it_again_and_again_is_named_and_meets_ever_longer_waits() -> None:
    state, now, waits = WatchState(), 0.0, []
    for number in range(1, 40, 2):
        began = now
        state, writes = watch_step(state, Seen(service(number)), now, 0.0)
        if not writes:
            assert state.standing is Standing.UNDONE
            assert state.why.startswith(f"undone by cloud-controller, {state.undone} times")
            now = state.wake_at
            state, writes = watch_step(state, Tick(), now, 0.0)
        assert writes
        waits.append(now - began)
        state, _ = watch_step(state, Written(service(number + 1, "Proxy")), now, 0.0)
    assert waits[: FREE + 1] == [0.0] * (FREE + 1)
    assert waits[FREE + 1 : FREE + 4] == [5.0, 10.0, 20.0]
    assert waits[-1] == LONGEST
    assert (state.writes, state.undone) == (20, 19)


def test_another_address_is_not_counted_as_undone() -> None:
    state, writes = steps(Seen(VIP), Written(PROXY), Seen(service(3, ip="192.0.2.9")))
    assert (writes, state.undone) == (True, 0)


# --- Laws, in a world of its own ---


@dataclass
class Server:
    """One Service of an API server: it tests the version of each patch, and every change gets a new one."""

    version: int = 1
    mode: str = "VIP"
    ip: str = ADDRESS
    states: set[int] = field(default_factory=lambda: {1})
    """The versions that others wrote."""
    patched: list[int] = field(default_factory=list)
    """The versions that were patched."""

    history: list[Observed] = field(default_factory=lambda: [service(1)])

    def change(self, mode: str, ip: str) -> Observed:
        self.version, self.mode, self.ip = self.version + 1, mode, ip
        self.history.append(service(self.version, mode, ip=ip))
        return self.history[-1]

    def write(self, mode: str, ip: str) -> None:
        """The provider's; an identical one changes nothing."""
        if (mode, ip) != (self.mode, self.ip):
            self.change(mode, ip)
            self.states.add(self.version)

    def patch(self, asked: Observed) -> Event:
        if asked.resource_version != str(self.version):
            return Overtaken("422: the test failed")
        self.patched.append(self.version)
        return Written(self.change("Proxy", self.ip))


@dataclass
class World:
    """A server, and watchers that see it late, in order, and perhaps not every state."""

    server: Server
    states: list[WatchState]
    shown: list[int] = field(default_factory=lambda: [0, 0])
    """How much of the history each watcher was shown."""
    now: float = 0.0

    def see(self, number: int, part: float, *, loses_answer: bool = False) -> None:
        """Show a watcher a later state, or the last one again; part 1 is the present one."""
        history = self.server.history
        self.shown[number] += round((len(history) - 1 - self.shown[number]) * part)
        self.give(number, Seen(history[self.shown[number]]), loses_answer=loses_answer)

    def give(self, number: int, event: Event, *, loses_answer: bool = False) -> None:
        """An event for a watcher; its write, if there is one, is made at once."""
        state, writes = watch_step(self.states[number], event, self.now, 0.5)
        if writes:
            assert state.seen is not None
            end = self.server.patch(state.seen)
            if isinstance(end, Written) and not loses_answer:
                self.shown[number] = len(self.server.history) - 1
            state, again = watch_step(state, WriteFailed("timeout") if loses_answer else end, self.now, 0.5)
            assert not again, "two writes without anything new in between"
        self.states[number] = state


MOVES = st.tuples(
    st.sampled_from(["provider", "moved", "see", "tick", "lose", "undo at once"]),
    st.integers(0, 1),
    st.floats(0, 400),
)


def play(world: World, move: tuple[str, int, float]) -> None:
    kind, watcher, seconds = move
    world.now += seconds
    if kind in ("provider", "undo at once"):
        world.server.write("VIP", world.server.ip)
    if kind == "moved":
        world.server.write("VIP", "192.0.2.2" if world.server.ip == ADDRESS else ADDRESS)
    if kind in ("see", "lose", "undo at once"):
        world.see(watcher, 1.0 if kind == "undo at once" else seconds % 1, loses_answer=kind == "lose")
    if kind == "tick":
        world.give(watcher, Tick())


@settings(max_examples=300)
@given(st.lists(MOVES, max_size=60), st.integers(1, 2))
def test_there_are_never_more_writes_than_states_of_others(moves: list[tuple[str, int, float]], watchers: int) -> None:
    world = World(Server(), [WatchState() for _ in range(watchers)])
    for kind, watcher, seconds in moves:
        play(world, (kind, watcher % watchers, seconds))
    assert len(world.server.patched) == len(set(world.server.patched))
    assert set(world.server.patched) <= world.server.states


@settings(max_examples=200)
@given(st.lists(MOVES, max_size=40), st.integers(1, 2))
def test_once_nobody_else_writes_it_is_proxy_and_stays_without_a_write(
    moves: list[tuple[str, int, float]], watchers: int
) -> None:
    world = World(Server(), [WatchState() for _ in range(watchers)])
    for kind, watcher, seconds in moves:
        play(world, (kind, watcher % watchers, seconds))
    for _ in range(2):
        for number in range(watchers):
            world.see(number, 1.0)
        world.now += 2 * LONGEST
        for number in range(watchers):
            world.give(number, Tick())
    assert world.server.mode == "Proxy"
    before = len(world.server.patched)
    for number in range(watchers):
        world.see(number, 1.0)
        world.give(number, Tick())
        assert world.states[number].standing is Standing.IN_PLACE
        assert world.states[number].wake_at == float("inf")
    assert len(world.server.patched) == before


@settings(max_examples=100)
@given(st.lists(st.floats(0, 100), min_size=1, max_size=80))
def test_a_writer_that_undoes_at_once_sees_a_few_writes_a_minute_at_most(pauses: list[float]) -> None:
    world, times = World(Server(), [WatchState()]), []
    for pause in pauses:
        world.now += pause
        world.server.write("VIP", ADDRESS)
        world.see(0, 1.0)
        if world.server.mode != "Proxy":
            world.now = max(world.now, world.states[0].wake_at)
            world.give(0, Tick())
        times.append(world.now)
        assert world.server.mode == "Proxy"
    for first in times:
        assert sum(first <= one < first + QUIET for one in times) <= FREE + 5


def test_a_write_that_is_always_lost_becomes_rare() -> None:
    """An API server that takes the write, and whose answers and watch never arrive."""
    state, writes = watch_step(WatchState(), Seen(VIP), 0.0, 0.0)
    now = 0.0
    for _ in range(20):
        assert writes
        state, writes = watch_step(state, WriteFailed("timeout"), now, 0.0)
        before, now = now, state.wake_at
        state, writes = watch_step(state, Tick(), now, 0.0)
    assert now - before >= LONGEST / 2


def test_after_a_restored_cluster_an_older_version_is_written_again() -> None:
    """Versions go back with the storage; they are compared for equality alone."""
    state, _ = steps(Seen(VIP), Written(PROXY))
    assert watch_step(state, Seen(VIP), 100.0, 0.0)[1]
    assert replace(VIP, resource_version="0").patch
