"""A replica ends with exactly its primary's table, and shows none on the way that the primary never had."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import Any, Final

import msgspec
import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.admin.pages.routes import table_routes
from dnsproxy.answers.answer_records import Claimed
from dnsproxy.dns import names
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.ownership import Mode, OwnershipSettings
from dnsproxy.hostnames.targets import Targets
from dnsproxy.hostnames.verdict import Verdict
from dnsproxy.replace.balancers import OF_ROW, make_target
from dnsproxy.zone.serials import following
from dnsproxy.zone.table_zone import owner_of
from sidecar.admin.answers import Answer
from tests.kit.messages import wire_name
from tests.kit.zone_sides import TABLE_ZONE, PrimarySide, ReplicaSide, Shown, show

HOSTNAMES: Final = ("example.org", "app.example.org", "x.app.example.org", "y.x.app.example.org", "shop.example.net")
ASKED: Final = tuple(f"{prefix}{name}" for name in HOSTNAMES for prefix in ("", "q.", "r.q."))
TARGETS: Final = Targets(
    default=("192.0.2.1",),
    by_class={"inner": ("192.0.2.2", "2001:db8::2"), "relay": ("service:edge/relay",), "none": ()},
    services={"edge/relay": ("192.0.2.3",)},
)
HOLD: Final = 60.0
OWNERSHIP: Final = OwnershipSettings(
    Mode.VERIFY,
    zones=("shop.example.net",),
    networks=(ip_network("198.51.100.0/24"),),
    replaced=(("203.0.113.9", ("192.0.2.9", "2001:db8::9")),),
)
STATUSES: Final = ((), ("203.0.113.10",), ("203.0.113.11", "2001:db8::11"), ("lb.example.net",))


@st.composite
def claims(draw: st.DrawFn, number: int) -> tuple[Claim, ...]:
    """The claims of one object: each row once, as in every source."""
    namespace = draw(st.sampled_from(["shop", "edge"]))
    created = f"2026-0{draw(st.integers(1, 3))}-01T00:00:00Z"
    ingress_class = draw(st.sampled_from([None, *TARGETS.by_class]))
    status = draw(st.sampled_from(STATUSES))
    annotated = draw(st.booleans())
    found = {}
    for hostname in draw(st.lists(st.sampled_from(HOSTNAMES), max_size=3)):
        reach = draw(st.sampled_from(Reach))
        name = hostname if reach is Reach.NAME else f"*.{hostname}"
        found[name, reach] = Claim(
            name,
            reach,
            Origin("Ingress", f"i{number}", namespace, created),
            Terms((), ingress_class, status=status, annotated=annotated),
        )
    return tuple(found.values())


SEARCHES: Final = st.sampled_from([(), ("app.example.org",), ("x.app.example.org", "example.net")])
DENIED: Final = st.sampled_from([(), ("q.example.org",), ("x.app.example.org", "a.b.example.org")])
STEPS: Final = st.lists(
    st.one_of(
        st.integers(0, 4).flatmap(lambda number: st.tuples(st.just("change"), st.just(number), claims(number))),
        st.integers(0, 4).flatmap(lambda number: st.tuples(st.just("publish"), st.just(number), claims(number))),
        st.tuples(st.just("unready"), st.booleans()),
        st.tuples(st.just("forward"), st.booleans()),
        st.tuples(st.just("search"), SEARCHES),
        st.tuples(st.just("time"), st.sampled_from([1.0, HOLD + 1])),
        st.tuples(st.just("retell")),
        st.tuples(st.just("swap")),
        st.tuples(st.just("refresh"), st.booleans()),
        st.tuples(st.just("refresh"), st.booleans()),
        st.tuples(st.just("cut"), st.integers(0, 2)),
        st.tuples(st.just("save")),
        st.tuples(st.just("restart replica"), st.booleans()),
        st.tuples(st.just("restart primary"), st.sampled_from([1, 5, 3600]), DENIED, st.integers(1, 1 << 20)),
    ),
    min_size=10,
    max_size=40,
)


class World:
    """One primary after another, and one replica after another; made inside of a loop."""

    def __init__(self, *, serial: int) -> None:
        self.seen: list[Shown] = []
        """Every table that a primary published."""
        self.objects: dict[int, tuple[Claim, ...]] = {}
        self.saved: list[bytes] | None = None
        self.primary = PrimarySide(
            start=serial, targets=TARGETS, hold=HOLD, ownership=OWNERSHIP, shown=self.seen.append
        )
        self.replica = ReplicaSide(self._check)

    def _check(self, shown: Shown) -> None:
        assert shown in self.seen, "a table that the primary never had"

    async def play(self, step: tuple[Any, ...]) -> None:
        primary = self.primary
        match step:
            case "change", number, found:
                self.objects[number] = found
                primary.registry.replace("ingress", str(number), found)
            case "publish", number, found:
                await self.play(("change", number, found))
                await primary.swap()
            case "unready", dead:
                primary.registry.set_services(TARGETS.services, unready=_unready(dead=dead))
            case "forward", dead:
                primary.registry.set_services(TARGETS.services, unready=_unready(dead=dead))
                primary.keeper.forward(_unready(dead=dead))
            case "search", domains:
                primary.registry.set_guarded(search=domains, cluster_domains=("cluster.local",))
            case _:
                await self._play_process(step)

    async def _play_process(self, step: tuple[Any, ...]) -> None:
        primary, replica = self.primary, self.replica
        match step:
            case "time", seconds:
                await trio.sleep(seconds)
            case ("retell",):
                primary.keeper.retell()
            case ("swap",):
                await primary.swap()
            case "refresh", datagram:
                await primary.swap()
                await replica.refresh(primary, datagram=datagram)
            case "cut", messages:
                await primary.swap()
                await replica.refresh(primary, cut=messages)
            case ("save",) if replica.serial is not None:
                self.saved = await replica.save()
            case "restart replica", with_saved:
                assert not replica.fallbacks
                self.replica = ReplicaSide(self._check)
                if self.saved is not None and with_saved:
                    await self.replica.load(self.saved)
            case "restart primary", ttl, deny, later:
                await self._restart_primary(following(primary.serial, later), ttl, Guards(deny=deny))

    async def _restart_primary(self, start: int, ttl: int, guards: Guards) -> None:
        """Another process reads the same objects; its serials begin later, and its journal is empty."""
        self.primary = PrimarySide(
            start=start,
            ttl=ttl,
            targets=TARGETS,
            guards=guards,
            hold=HOLD,
            ownership=OWNERSHIP,
            shown=self.seen.append,
        )
        for number, found in self.objects.items():
            self.primary.registry.replace("ingress", str(number), found)
        await self.primary.swap()

    async def check_end(self) -> None:
        """Connected, the replica has what the primary has."""
        primary, replica = self.primary, self.replica
        await primary.swap()
        await replica.refresh(primary)
        assert replica.serial == primary.serial
        assert not replica.fallbacks, "a difference of the primary did not fit"
        assert show(replica.table) == show(primary.table)
        for name in map(wire_name, ASKED):
            ours, theirs = replica.table.find(name), primary.table.find(name)
            assert (ours and (ours.addresses, ours.claimed)) == (theirs and (theirs.addresses, theirs.claimed))
        for (hostname, reach), verdict in primary.verdicts.items():
            assert explained(replica.registry.verdict(hostname, reach)) == explained(verdict)
        await replica.refresh(primary)
        assert show(replica.table) == show(primary.table)


def _unready(*, dead: bool) -> frozenset[str]:
    return frozenset(["edge/relay"]) if dead else frozenset()


def explained(verdict: Verdict) -> tuple[object, ...]:
    """What pages and `explain` say of a name."""
    return verdict.winner, verdict.unready, verdict.addresses, verdict.excluded, verdict.waits


@given(STEPS, st.sampled_from([1, 1 << 31, (1 << 32) - 2]))
def test_after_any_steps_it_has_the_primarys_table_and_never_had_another(
    steps: list[tuple[Any, ...]], serial: int
) -> None:
    async def play() -> None:
        world = World(serial=serial)
        for step in steps:
            await world.play(step)
        await world.check_end()

    trio.run(play, clock=trio.testing.MockClock(autojump_threshold=0))


@pytest.mark.parametrize("path", ["/table", "/explain"])
def test_table_and_explain_show_the_ttl_of_the_primary(path: str) -> None:
    async def play() -> bytes:
        primary = PrimarySide(ttl=77, targets=TARGETS)
        replica = ReplicaSide()
        await primary.swap()
        await replica.refresh(primary)
        routes = table_routes(replica.registry, ttl=5, notes=list)
        answer = routes[path]({"name": "app.example.org"})
        assert isinstance(answer, Answer)
        return b"".join(answer.body)  # type: ignore[arg-type]  # in pieces

    document = msgspec.json.decode(trio.run(play))
    assert document["ttl"] == 77


def test_a_name_like_the_owner_of_a_long_one_takes_its_place_neither_in_the_zone_nor_at_the_replica() -> None:
    async def play() -> None:
        primary, replica = PrimarySide(targets=TARGETS), ReplicaSide()
        long = ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * 61])
        hashed = names.hostname_of(owner_of(long, TABLE_ZONE) + b"\0")
        for key, hostname in (("long", long), ("hashed", hashed)):
            primary.registry.replace("ingress", key, [Claim(hostname, Reach.NAME, Origin("Ingress", key, "shop"))])
            await primary.swap()
            await replica.refresh(primary)
            assert show(replica.table) == show(primary.table)
        primary.registry.replace("ingress", "long", [])
        await primary.swap()
        await replica.refresh(primary)
        assert show(replica.table) == show(primary.table)
        assert replica.table.find(wire_name(hashed))

    trio.run(play)


def test_the_load_balancers_of_a_primary_lead_to_its_replica_and_go_with_the_last_object() -> None:
    """Also where no row changes but one that is gone, and a balancer alone makes a version."""

    async def play() -> None:
        primary, replica = PrimarySide(targets=TARGETS, ownership=OWNERSHIP), ReplicaSide()
        seen = []
        for status in (("203.0.113.10",), ("203.0.113.11", "lb.example.net"), ()):
            terms = Terms((), "inner", status=status)
            claim = Claim("app.example.org", Reach.NAME, Origin("Ingress", "app", "shop"), terms)
            primary.registry.replace("ingress", "app", [claim])
            await primary.swap()
            await replica.refresh(primary)
            assert show(replica.table) == show(primary.table)
            found = replica.table.find(wire_name("app.example.org"))
            assert found is not None
            assert found.claimed is Claimed.VERIFIED
            leads = replica.table.leads
            seen.append(
                [leads.by_address(ip_address(f"203.0.113.{last}").packed, claimed=True) for last in (9, 10, 11)]
            )
            assert leads.by_address(ip_address("198.51.100.7").packed, claimed=True) == OF_ROW
        inner, given = make_target(TARGETS.by_class["inner"]), make_target(OWNERSHIP.replaced[0][1])
        # An address that has left the statuses leads here for a while, and without any other at once not any more.
        assert seen == [[given, inner, None], [given, inner, inner], [given, None, None]]

    trio.run(play)
