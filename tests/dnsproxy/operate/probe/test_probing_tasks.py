"""Probes and handshakes as tasks, on a clock that jumps; what they dial is replaced."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf
from typing import Any, Final

import pytest
import trio
from trio.testing import MockClock

from dnsproxy.doctor.facts.model import BalancerAddress, Port
from dnsproxy.doctor.judge.header_mode import HeaderMode
from dnsproxy.operate.decide.decisions import UNKNOWN_PLANE, decide
from dnsproxy.operate.decide.facts import Facts, Place, Probed, ServiceFacts, Subject, SubjectFacts
from dnsproxy.operate.decide.handshaking import Answered, RelayHandshake
from dnsproxy.operate.decide.probing import INTERVAL, MOST_PORTS, SETTLE, BalancerProbe, EndpointProbe
from dnsproxy.operate.decide.turns import OF_ONE
from dnsproxy.operate.probe import probing_tasks
from dnsproxy.operate.probe.probing_tasks import ProbingTasks
from dnsproxy.operate.report.steering_status import SteeringStatus
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.operate.decide.cluster import (
    CLASS,
    GATEWAY,
    KEY,
    NGINX,
    PROXY,
    SERVICE,
    by_key,
    cluster,
    endpoints_of,
    probed,
    route_of,
    service,
)

SILENCE: Final = 32.0
"""Seconds of a probe of a silent port: eight connections, each until its deadline."""
SILENT: Final = "tenant/silent"
PORTS: Final = tuple(Port(10000 + number, f"http-{number}") for number in range(100))
CROWD: Final = service(
    SILENT,
    ports=PORTS,
    points=(BalancerAddress("203.0.113.5"),),
    endpoints=endpoints_of((p.port for p in PORTS), ["10.9.9.9"]),
)
TENANT: Final = SubjectFacts(GATEWAY, hostnames=1, examples=("web.example.org",), status=("203.0.113.5",))
BOTH: Final = (CLASS, TENANT)
NEW: Final = Endpoint("10.0.0.9", 8443)
MORE: Final = replace(SERVICE, endpoints=endpoints_of((80, 443), ("10.0.0.1", "10.0.0.2", "10.0.0.9")))

Seconds = Callable[[str], float]
"""How long a dial takes, by Service."""


def quick_or_silent(key: str) -> float:
    return SILENCE if key == SILENT else 0.01


@dataclass
class World:
    """What the tasks dial, and when."""

    seconds: Seconds
    reacts: Callable[[Place, float], HeaderMode] = lambda _place, _now: HeaderMode.REQUIRES
    takes: Callable[[float], bool] = lambda _now: True
    """Whether a handshake succeeds."""
    begun: float = 0.0
    probes: dict[Place, list[float]] = field(default_factory=lambda: defaultdict(list))
    handshakes: dict[Subject, list[float]] = field(default_factory=lambda: defaultdict(list))
    balancers: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    most: int = 0
    """Tasks at once."""

    @property
    def now(self) -> float:
        return trio.current_time() - self.begun

    async def probe(self, wanted: EndpointProbe) -> Probed:
        self.probes[wanted.place].append(self.now)
        await trio.sleep(self.seconds(wanted.place[0]))
        mode = self.reacts(wanted.place, self.now)
        return probed(HeaderMode.SILENT if wanted.place[0] == SILENT else mode)

    async def shake(self, wanted: RelayHandshake, pods: Sequence[str], **_: bool) -> Answered:
        assert pods
        self.handshakes[wanted.subject].append(self.now)
        await trio.sleep(self.seconds(wanted.relay_to))
        return Answered(succeeded=self.takes(self.now), taken=True)

    async def reach(self, wanted: BalancerProbe) -> bool:
        self.balancers[wanted.service].append(self.now)
        await trio.sleep(self.seconds(wanted.service))
        return False

    def first(self, host: str) -> dict[int, float]:
        """By port: when an endpoint of the good controller was first probed."""
        return {port: times[0] for (key, port, one), times in self.probes.items() if (key, one.host) == (KEY, host)}


Play = Callable[..., World]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    """Plays readings, each for so many seconds with a step in each; `others_until` counts from the begin.

    With a loop of its own: minutes on a clock that jumps are longer than the deadline of an async test.
    """

    def run(
        *readings: tuple[Facts, int], others_until: float = -inf, seconds: Seconds = quick_or_silent, **changes: Any
    ) -> World:
        world = World(seconds, **changes)
        monkeypatch.setattr(probing_tasks, "probe_endpoint", world.probe)
        monkeypatch.setattr(probing_tasks, "shake_hands", world.shake)
        monkeypatch.setattr(probing_tasks, "reach_balancer", world.reach)
        trio.run(_play, world, readings, others_until, clock=MockClock(autojump_threshold=0))
        return world

    return run


async def _play(world: World, readings: Sequence[tuple[Facts, int]], others_until: float) -> None:
    world.begun = trio.current_time()
    async with trio.open_nursery() as nursery:
        tasks = ProbingTasks(nursery, SteeringStatus(), lambda: None)
        for facts, seconds in readings:
            for _ in range(seconds):
                known = tasks.known(facts)
                tasks.start_due(known, decide(known), others_until=world.begun + others_until)
                world.most = max(world.most, len(nursery.child_tasks))
                await trio.sleep(1)
        nursery.cancel_scope.cancel()


def with_crowd(good: ServiceFacts = SERVICE) -> Facts:
    return cluster(subjects=BOTH, services=by_key(good, CROWD), routes=(route_of(),))


def test_a_hundred_silent_ports_of_one_service_delay_no_other_and_nothing_queues(play: Play) -> None:
    world = play((with_crowd(), 1200), (with_crowd(MORE), 60))
    assert world.first("10.0.0.9") == {80: 1200, 443: 1200}
    assert gaps(world.handshakes[NGINX])[-1] <= INTERVAL + 2
    for wanted in (80, 443):
        times = [at for (key, port, _), found in world.probes.items() if (key, port) == (KEY, wanted) for at in found]
        assert gaps(times)[-1] <= INTERVAL + 2
    silent = {port: found for (key, port, _), found in world.probes.items() if key == SILENT}
    assert sorted(silent) == [port.port for port in PORTS[:MOST_PORTS]]
    # They wait for one another, and take turns.
    counts = [len(found) for found in silent.values()]
    assert min(counts) >= max(counts) - 1
    # Those of the good controller, and its handshake.
    assert world.most <= OF_ONE + OF_ONE + 1


def gaps(times: list[float]) -> list[float]:
    """Between each and the next, sorted."""
    return sorted(after - before for before, after in pairwise(sorted(times)))


def test_a_slow_backend_delays_its_own_handshakes_alone(play: Play) -> None:
    """Two classes of one controller take turns; a third one has its own."""
    slow, other = Subject("slow"), Subject("other")
    own = service("web/own", points=(BalancerAddress("192.0.2.30"),))
    subjects = CLASS, replace(CLASS, subject=slow), replace(CLASS, subject=other, status=("192.0.2.30",))
    routes = route_of(), route_of(slow), route_of(other, to="web/own")
    facts = cluster(subjects=subjects, services=by_key(SERVICE, own), routes=routes)
    found = play((facts, 300), seconds=lambda key: 40.0 if key == KEY else 0.01).handshakes
    assert gaps([*found[NGINX], *found[slow]])[0] >= 40
    assert len(found[NGINX]) > 1
    assert len(found[slow]) > 1
    assert gaps(found[other])[-1] <= INTERVAL + 2


def test_a_load_balancer_that_is_silent_is_dialled_once_at_a_time_and_alone(play: Play) -> None:
    bad = service(SILENT, points=(BalancerAddress("203.0.113.5", ip_mode="Proxy"),))
    facts = cluster(subjects=BOTH, services=by_key(service(points=PROXY), bad), plane=UNKNOWN_PLANE)
    found = play((facts, 290), seconds=lambda key: 100.0 if key == SILENT else 0.01).balancers
    assert found[KEY] == [0, 60, 120, 180, 240]
    assert len(found[SILENT]) == 3
    assert gaps(found[SILENT])[0] >= 100


def test_after_another_replica_what_is_old_waits_for_its_minute(play: Play) -> None:
    world = play((cluster(routes=(route_of(),)), 60), others_until=-5)
    assert [found[0] for found in world.probes.values()] == [55] * 4
    assert world.handshakes[NGINX][0] == 55


def test_after_another_replica_what_is_new_is_probed_at_once_with_what_is_beside_it(play: Play) -> None:
    routes = (route_of(),)
    world = play((cluster(routes=routes), 10), (cluster(CLASS, MORE, routes=routes), 10), others_until=-5)
    assert world.first("10.0.0.9") == {80: 10, 443: 10}
    assert {*world.first("10.0.0.1").values(), *world.first("10.0.0.2").values()} <= {10, 11}
    assert not world.handshakes


def test_a_class_whose_first_name_comes_later_is_probed_and_tried_at_once(play: Play) -> None:
    world = play((cluster(subjects=()), 10), (cluster(routes=(route_of(steered=False),)), 3), others_until=-5)
    assert [found[0] for found in world.probes.values()] == [10] * 4
    # The step after the probes.
    assert world.handshakes[NGINX] == [11]


@pytest.mark.parametrize(
    "others_until",
    [pytest.param(-inf, id="no other replica has ever led"), pytest.param(-61.0, id="none has for a minute")],
)
def test_without_another_replica_all_is_probed_and_tried_at_once(play: Play, others_until: float) -> None:
    world = play((cluster(routes=(route_of(),)), 1), others_until=others_until)
    assert [found[0] for found in world.probes.values()] == [0] * 4
    assert world.handshakes[NGINX] == [0]


def test_a_pod_that_comes_and_goes_is_probed_at_most_twice_in_a_minute(play: Play) -> None:
    flapping = [(cluster(CLASS, one), 5) for _ in range(30) for one in (MORE, SERVICE)]
    found = play(*flapping).probes[KEY, 443, NEW]
    assert len(found) > 8
    assert all(later - first >= INTERVAL for first, later in zip(found, found[2:], strict=False))


ROUTED: Final = cluster(CLASS, MORE, routes=(route_of(),))


def after(world: World, place: Place, moment: float) -> float:
    """How long after a moment a place was probed."""
    return min(at for at in world.probes[place] if at >= moment) - moment


def test_pods_that_read_new_settings_one_after_the_other_are_all_found_within_a_round(play: Play) -> None:
    """The handshake that fails comes amid the reload; a relay that takes turns hides the pods that follow."""
    switched = {"10.0.0.1": 95.0, "10.0.0.2": 100.0, "10.0.0.9": 112.0}
    world = play(
        (ROUTED, 180),
        reacts=lambda place, now: HeaderMode.REJECTS if now >= switched[place[2].host] else HeaderMode.REQUIRES,
        takes=lambda now: not 95 <= now < 112,
    )
    late = {place: after(world, place, switched[place[2].host]) for place in world.probes}
    assert max(late.values()) <= SETTLE + 2


def test_a_controller_that_restarts_for_seconds_is_known_again_within_a_round(play: Play) -> None:
    """The probe that the failed handshake causes finds it down."""
    world = play(
        (ROUTED, 150),
        reacts=lambda _, now: HeaderMode.DEAD if 80 <= now < 92 else HeaderMode.REQUIRES,
        takes=lambda now: not 80 <= now < 92,
    )
    assert max(after(world, place, 92.0) for place in world.probes) <= SETTLE + 1


def test_a_port_that_reacts_otherwise_has_the_other_ports_probed_at_once(play: Play) -> None:
    world = play((ROUTED, 200), reacts=lambda _, now: HeaderMode.REJECTS if now >= 61 else HeaderMode.REQUIRES)
    first = min(at for found in world.probes.values() for at in found if at >= 61)
    assert {place[1] for place, found in world.probes.items() if any(first <= at <= first + 2 for at in found)} == {
        80,
        443,
    }


def test_a_steered_class_whose_first_handshake_with_other_headers_fails_has_its_controller_probed(play: Play) -> None:
    world = play((ROUTED, 8), takes=lambda _: False)
    assert world.handshakes[NGINX] == [0]
    assert all(max(found) > 0 for found in world.probes.values())
