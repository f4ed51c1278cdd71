"""The watch over public records: its queries, its findings, its log, and its timing.

test_ownership_enforced.py has what differs with --ownership enforce.
"""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import ipaddress
import struct
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from ipaddress import ip_network
from typing import Any, Final

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from dnsproxy.dns.names import Reach, format_wire
from dnsproxy.dns.wire import Query, scan_query
from dnsproxy.hostnames.claims import Claim, Origin, Terms, with_terms
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.ownership import Mode, OwnershipSettings
from dnsproxy.hostnames.ownership_schedule import DEFAULT_PACE, OwnershipPace
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets
from dnsproxy.serve.ownership_watch import OwnershipWatch
from tests.kit import messages, upstream_replies
from tests.kit.dns_server import running, wait_until
from tests.kit.faulty_upstream import Step, faulty_upstream, silence

BALANCER, ELSEWHERE, RELAY = "192.0.2.1", "198.51.100.9", "10.96.7.7"
APP: Final = "app.example.org"
NXDOMAIN, SERVFAIL = 3, 2
FASTER: Final = 1000
"""Hours have to fit into the deadline of a test."""
FAST: Final = OwnershipPace(
    **{name: seconds if name == "jitter" else seconds / FASTER for name, seconds in asdict(DEFAULT_PACE).items()}
)


async def passes(seconds: float) -> None:
    """Let this many seconds of the default pace pass."""
    await trio.sleep(seconds / FASTER)


@dataclass
class PublicDns:
    """An upstream with records by hostname: addresses, `ALIAS.` in front of them, an rcode, or None for silence."""

    records: dict[str, Sequence[str] | int | None] = field(default_factory=dict)
    asked: list[tuple[str, int, float]] = field(default_factory=list)
    """Name, type and time."""
    delay: float = 0.0
    """Seconds of the default pace before an answer."""
    waiting: Counter[str] = field(default_factory=Counter)
    """Questions without an answer yet, by name."""
    on_wait: Callable[[], None] = lambda: None

    async def ask(self, query: Query) -> bytes | None:
        name = format_wire(query.name).removesuffix(".")
        self.asked.append((name, query.type, trio.current_time()))
        self.waiting[name] += 1
        self.on_wait()
        try:
            await passes(self.delay)
            parent = f"*.{name.partition('.')[2]}"
            found = self.records.get(name, self.records.get(parent, NXDOMAIN))
            if found is None:
                await trio.sleep_forever()
            return reply_to(query.message, found)
        finally:
            self.waiting[name] -= 1

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(name for name, _, _ in self.asked))


def reply_to(message: bytes, found: Sequence[str] | int) -> bytes:
    if isinstance(found, int):
        return upstream_replies.right(message, rcode=found, answers=0)
    query = scan_query(message)
    assert isinstance(query, Query)
    records = []
    for text in found:
        if text.endswith("."):
            records.append(messages.record(5, messages.wire_name(text)))
        elif ipaddress.ip_address(text).version == (4 if query.type == messages.A else 6):
            records.append(messages.record(query.type, ipaddress.ip_address(text).packed))
    head = struct.pack("!HHHHH", 0x8180, 1, len(records), 0, 0)
    return message[:2] + head + query.question + b"".join(records)


def claim(hostname: str = APP, name: str = "app", *status: str, **rest: Any) -> Claim:
    reach = Reach.ONE_LABEL if hostname.startswith("*.") else Reach.NAME
    origin = Origin("Ingress", name, "shop", rest.pop("created", "2026-01-01T00:00:00Z"))
    return Claim(hostname, reach, origin, Terms(status=status, **rest))


@dataclass
class Watched:
    watch: OwnershipWatch
    registry: Registry
    dns: PublicDns
    woken: list[float] = field(default_factory=list)

    def put(self, *claims: Claim) -> None:
        for one in claims:
            self.registry.replace("Ingress", f"{one.origin.name} {one.hostname}", [one])
        self.watch.note({one.hostname for one in claims})

    def answer(self, hostname: str = APP) -> tuple[str, ...]:
        """The addresses of the answer; none if the name is unverified."""
        reach = Reach.ONE_LABEL if hostname.startswith("*.") else Reach.NAME
        verdict = self.registry.verdict(hostname, reach)
        return () if verdict.doubt else verdict.addresses

    def doubt(self, hostname: str = APP) -> str:
        return self.registry.verdict(hostname, Reach.NAME).doubt


@asynccontextmanager
async def watching(
    records: Mapping[str, Sequence[str] | int | None],
    *claims: Claim,
    mode: Mode = Mode.WARN,
    guards: Guards | None = None,
    **settings: Any,
) -> AsyncIterator[Watched]:
    """A watch under the test's clock."""
    dns = PublicDns(dict(records))
    registry = Registry(targets=Targets((RELAY,)), guards=guards or Guards(), enforce_ownership=mode is Mode.ENFORCE)
    woken: list[float] = []
    watch = OwnershipWatch(
        registry,
        settings=OwnershipSettings(mode, pace=FAST, **settings),
        ask=dns.ask,
        on_change=lambda: woken.append(trio.current_time()),
        draw=lambda: 0.5,
    )
    watched = Watched(watch, registry, dns, woken)
    watched.put(*claims)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch.run)
        yield watched
        nursery.cancel_scope.cancel()


CONFIRMED: Final = DEFAULT_PACE.confirm + 2


async def test_a_name_whose_record_points_to_the_load_balancer_stays(autojump_clock: MockClock) -> None:
    async with watching({APP: [BALANCER]}, claim(APP, "app", BALANCER)) as watched:
        await passes(CONFIRMED)
        assert watched.answer() == (RELAY,)
        assert (watched.registry.findings, watched.woken) == ({}, [])
        assert watched.watch.looks == {"record": 2, "none": 0, "unanswered": 0}, "once as new, once in its round"


async def test_a_name_whose_record_points_elsewhere_is_unverified_once_that_is_confirmed(
    autojump_clock: MockClock,
) -> None:
    async with watching({APP: [ELSEWHERE]}, claim(APP, "app", BALANCER)) as watched:
        await passes(DEFAULT_PACE.confirm - 1)
        assert watched.answer() == (RELAY,)
        await passes(3)
        assert watched.answer() == ()
        assert watched.doubt() == f"its public record points elsewhere ({ELSEWHERE})"
        assert len(watched.woken) == 1


async def test_a_warning_leaves_the_answer_as_it_is(autojump_clock: MockClock) -> None:
    async with watching({APP: [ELSEWHERE]}, claim(APP, "app", BALANCER), mode=Mode.WARN) as watched:
        with capture_logs() as logs:
            await passes(4 * DEFAULT_PACE.every)
        assert watched.registry.verdict(APP, Reach.NAME).addresses == (RELAY,)
        assert watched.doubt() == f"its public record points elsewhere ({ELSEWHERE})"
        (line,) = [line for line in logs if line["log_level"] == "warning"]
        assert (line["hostname"], line["origin"], line["left_out"]) == (APP, "Ingress shop/app", False)
        assert (line["public"], line["expected"]) == ([ELSEWHERE], [BALANCER])
        for remedy in ("--trust ZONE", "--trust NETWORK", "--deny NAME", "--ownership off"):
            assert remedy in line["advice"]


async def test_a_record_that_is_put_right_gives_the_name_back_soon(autojump_clock: MockClock) -> None:
    async with watching({APP: [ELSEWHERE]}, claim(APP, "app", BALANCER)) as watched:
        with capture_logs() as logs:
            await passes(CONFIRMED)
            assert watched.answer() == ()
            watched.dns.records[APP] = [BALANCER]
            await passes(DEFAULT_PACE.doubted + 1)
        assert watched.answer() == (RELAY,)
        assert [line["log_level"] for line in logs] == ["warning", "info"]


async def test_a_load_balancer_that_moves_to_the_record_is_believed_at_once(autojump_clock: MockClock) -> None:
    async with watching({APP: [ELSEWHERE]}, claim(APP, "app", BALANCER)) as watched:
        await passes(CONFIRMED)
        assert watched.answer() == ()
        watched.put(claim(APP, "app", ELSEWHERE))
        assert watched.answer() == (RELAY,)


async def test_a_record_that_moves_away_is_found_within_a_round(autojump_clock: MockClock) -> None:
    async with watching({APP: [BALANCER]}, claim(APP, "app", BALANCER)) as watched:
        await passes(10)
        watched.dns.records[APP] = [ELSEWHERE]
        await passes(1.1 * DEFAULT_PACE.every + CONFIRMED)
        assert watched.answer() == ()


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(NXDOMAIN, id="NXDOMAIN"),
        pytest.param([], id="NODATA"),
        pytest.param(SERVFAIL, id="SERVFAIL"),
        pytest.param(5, id="REFUSED"),
        pytest.param(None, id="silence"),
        pytest.param(["0.0.0.0", "::"], id="blocked by the resolver"),
        pytest.param(["lb.example.net."], id="an alias that leads nowhere"),
    ],
)
async def test_a_name_without_a_public_record_or_an_answer_stays(record: Any, autojump_clock: MockClock) -> None:
    async with watching({APP: record}, claim(APP, "app", BALANCER)) as watched:
        await passes(DEFAULT_PACE.every + CONFIRMED)
        assert watched.answer() == (RELAY,)
        assert watched.doubt() == ""


@pytest.mark.parametrize("trouble", [SERVFAIL, None], ids=["SERVFAIL", "silence"])
async def test_an_unanswered_lookup_changes_nothing(trouble: Any, autojump_clock: MockClock) -> None:
    async with watching({APP: [ELSEWHERE]}, claim(APP, "app", BALANCER)) as watched:
        await passes(CONFIRMED)
        watched.dns.records[APP] = trouble
        await passes(3 * DEFAULT_PACE.every)
        assert watched.answer() == ()


async def test_a_doubted_name_whose_lookup_is_not_answered_is_looked_up_again_soon(autojump_clock: MockClock) -> None:
    async with watching({APP: [ELSEWHERE]}, claim(APP, "app", BALANCER)) as watched:
        await passes(CONFIRMED)
        assert watched.doubt()
        watched.dns.records[APP] = SERVFAIL
        await passes(DEFAULT_PACE.doubted + 1)
        watched.dns.records[APP] = [BALANCER]
        await passes(DEFAULT_PACE.doubted + 1)
        assert not watched.doubt()


async def test_a_removed_record_verifies_the_name_again(autojump_clock: MockClock) -> None:
    async with watching({APP: [ELSEWHERE]}, claim(APP, "app", BALANCER)) as watched:
        await passes(CONFIRMED)
        watched.dns.records[APP] = NXDOMAIN
        await passes(DEFAULT_PACE.doubted + 1)
        assert watched.answer() == (RELAY,)


async def test_a_contradiction_that_passes_before_it_is_confirmed_does_not_count(autojump_clock: MockClock) -> None:
    async with watching({APP: [ELSEWHERE]}, claim(APP, "app", BALANCER)) as watched:
        with capture_logs() as logs:
            await passes(DEFAULT_PACE.confirm - 5)
            watched.dns.records[APP] = [BALANCER]
            await passes(10)
            watched.dns.records[APP] = [ELSEWHERE]
            watched.put(claim(APP, "app", BALANCER, "192.0.2.2"))
            await passes(DEFAULT_PACE.confirm - 5)
        assert (watched.answer(), logs) == ((RELAY,), [])


async def test_a_name_that_changes_all_the_time_is_not_unverified_any_sooner(autojump_clock: MockClock) -> None:
    async with watching({APP: [ELSEWHERE]}, claim(APP, "app", BALANCER)) as watched:
        for _ in range(20):
            watched.watch.note([APP])
            await passes(1)
        assert watched.answer() == (RELAY,)
        await passes(CONFIRMED - 20)
        assert watched.answer() == ()


async def test_a_change_during_a_lookup_discards_its_answer(autojump_clock: MockClock) -> None:
    """The answer has no addresses of the load balancer that the object has now, and would exclude it."""
    records = {APP: [ELSEWHERE], "old.example.net": [BALANCER], "new.example.net": [ELSEWHERE]}
    async with watching(records, claim(APP, "app", "old.example.net"), mode=Mode.ENFORCE) as watched:
        watched.dns.delay = 3
        await passes(4.5)
        assert watched.dns.names == [APP, "old.example.net"]
        watched.put(claim(APP, "app", "new.example.net"))
        await passes(3)
        assert (watched.watch.looks["record"], watched.registry.has_record(APP)) == (1, False)
        await passes(6)
        assert (watched.answer(), watched.doubt()) == ((RELAY,), "")


async def test_a_claim_that_goes_during_a_lookup_leaves_nothing(autojump_clock: MockClock) -> None:
    async with watching({APP: [BALANCER]}, claim(APP, "app", BALANCER), mode=Mode.ENFORCE) as watched:
        watched.dns.delay = 3
        await passes(1)
        watched.registry.replace("Ingress", f"app {APP}", [])
        await passes(10)
        assert not watched.registry.has_record(APP)


async def test_a_turn_that_comes_during_the_lookup_of_its_name_is_served_by_it(autojump_clock: MockClock) -> None:
    async with watching({APP: None}, claim(APP, "app", BALANCER), mode=Mode.ENFORCE) as watched:
        await passes(DEFAULT_PACE.confirm - 1)
        assert len(watched.dns.asked) == 2, "A and AAAA, as new and in its round"


async def test_a_name_that_is_noted_during_its_lookup_is_looked_up_again(autojump_clock: MockClock) -> None:
    async with watching({APP: [BALANCER]}, claim(APP, "app", BALANCER), mode=Mode.ENFORCE) as watched:
        watched.dns.delay = 3
        await passes(1)
        watched.watch.note([APP])
        await passes(5)
        assert len(watched.dns.asked) == 4


async def test_who_changes_an_object_all_the_time_keeps_no_verdict_from_a_name(autojump_clock: MockClock) -> None:
    async with watching({APP: [BALANCER]}, claim(APP, "app", BALANCER), mode=Mode.ENFORCE) as watched:
        watched.dns.delay = 3
        for number in range(10):
            watched.put(claim(APP, "rival", f"192.0.2.{number + 10}"))
            await passes(1)
        assert watched.answer() == (RELAY,)


async def test_claims_with_nothing_to_compare_are_not_even_asked_for(autojump_clock: MockClock) -> None:
    claims = [
        claim(APP, ingress_class="nobody"),
        claim("host.example.org", "static", BALANCER, addresses=("192.0.2.7",)),
        claim("no.example.org", "denied", BALANCER),
        claim("in.trusted.example.net", "trusted", BALANCER),
    ]
    guards = Guards(deny=("no.example.org",))
    async with watching({}, *claims, guards=guards, zones=("trusted.example.net",)) as watched:
        await passes(CONFIRMED)
        assert watched.dns.asked == []


async def test_an_object_without_status_is_judged_by_its_controllers(autojump_clock: MockClock) -> None:
    settled = claim("old.example.org", "old", BALANCER, ingress_class="nginx")
    fresh = claim(APP, "fresh", ingress_class="nginx")
    records = {"old.example.org": [BALANCER], APP: [ELSEWHERE]}
    async with watching(records, settled, fresh, claim("x.example.org", "x", ingress_class="nobody")) as watched:
        await passes(CONFIRMED)
        assert (watched.answer("old.example.org"), watched.answer()) == ((RELAY,), ())
        assert "x.example.org" not in watched.dns.names


@pytest.mark.parametrize(
    ("records", "stays"),
    [
        pytest.param({"lb.example.net": [ELSEWHERE]}, True, id="the same address"),
        pytest.param({"lb.example.net": ["2001:db8::1", BALANCER]}, False, id="another"),
        pytest.param({"lb.example.net": None}, True, id="not answered"),
        pytest.param({"lb.example.net": NXDOMAIN}, True, id="nowhere"),
        pytest.param({APP: ["lb.example.net.", ELSEWHERE], "lb.example.net": [BALANCER]}, True, id="an alias of it"),
    ],
)
async def test_a_load_balancer_with_a_name_is_resolved_likewise(
    records: dict[str, Any], stays: bool, autojump_clock: MockClock
) -> None:
    async with watching({APP: [ELSEWHERE], **records}, claim(APP, "app", "lb.example.net")) as watched:
        await passes(CONFIRMED + 2 * DEFAULT_PACE.timeout)
        assert (watched.answer() == (RELAY,)) is stays


async def test_a_wildcard_is_looked_up_by_a_random_name_below_it(autojump_clock: MockClock) -> None:
    wild, open_ = claim("*.example.org", "wild", BALANCER), claim("*.example.net", "open", BALANCER)
    async with watching({"*.example.org": [ELSEWHERE], "example.net": [ELSEWHERE]}, wild, open_) as watched:
        await passes(CONFIRMED)
        assert (watched.answer("*.example.org"), watched.answer("*.example.net")) == ((), (RELAY,))
        assert sorted(name.partition(".")[2] for name in watched.dns.names) == ["example.net", "example.org"]
        assert all(name.startswith("switchback-") for name in watched.dns.names)


async def test_a_wildcard_too_long_for_a_name_below_it_is_let_be(autojump_clock: MockClock) -> None:
    longest = "*." + ".".join(["a" * 60] * 4)
    async with watching({}, claim(longest, "long", BALANCER)) as watched:
        await passes(CONFIRMED)
        assert (watched.dns.asked, watched.answer(longest)) == ([], (RELAY,))


async def test_trusted_addresses_are_the_clusters_own(autojump_clock: MockClock) -> None:
    """If the operator has named them, an internal status does not excuse a record that points elsewhere."""
    networks = (ip_network("203.0.113.0/24"),)
    claims = claim(APP, "app", "10.0.0.5"), claim("login.example.com", "thief", "10.0.0.5")
    records = {APP: ["203.0.113.7"], "login.example.com": [ELSEWHERE]}
    async with watching(records, *claims, networks=networks) as watched:
        await passes(CONFIRMED)
        assert (watched.answer(), watched.answer("login.example.com")) == ((RELAY,), ())
    async with watching(records, *claims) as watched:
        await passes(CONFIRMED)
        assert watched.answer("login.example.com") == (RELAY,)


async def test_the_pace_is_kept_whatever_the_number_of_names_and_a_new_one_comes_soon(
    autojump_clock: MockClock,
) -> None:
    claims = [claim(f"h{number}.example.org", f"h{number}", BALANCER) for number in range(1000)]
    async with watching({"*.example.org": [BALANCER]}, *claims) as watched:
        await passes(60)
        times = sorted({time for _, _, time in watched.dns.asked})
        assert len(times) <= 60 / DEFAULT_PACE.gap + 1
        watched.put(claim("new.example.org", "new", BALANCER))
        await passes(3 * DEFAULT_PACE.gap)
        assert "new.example.org" in watched.dns.names


async def test_names_that_need_no_look_are_passed_over_at_leisure(autojump_clock: MockClock) -> None:
    """A first sync has 100,000 of them and needs the processor."""
    async with watching({APP: [BALANCER]}) as watched:
        begun = trio.current_time()
        for number in range(5000):
            watched.registry.replace("Ingress", str(number), [claim(f"h{number}.example.org", ingress_class="nobody")])
        watched.registry.replace("Ingress", "app", [claim(APP, "app", BALANCER)])
        await passes(30 * DEFAULT_PACE.rest)
        assert watched.dns.names == [APP]
        assert watched.dns.asked[0][2] - begun >= 5 * DEFAULT_PACE.rest / FASTER


async def test_every_name_is_looked_at_again_after_an_hour(autojump_clock: MockClock) -> None:
    claims = [claim(f"h{number}.example.org", f"h{number}", BALANCER) for number in range(100)]
    async with watching({"*.example.org": [BALANCER]}, *claims) as watched:
        await passes(3 * DEFAULT_PACE.every + 100)
        times = [time for name, qtype, time in watched.dns.asked if name == "h7.example.org" and qtype == messages.A]
        assert len(times) == 5, "as new, and in the rounds at 0, 1, 2 and 3 hours"


async def test_a_name_without_claims_leaves_nothing_behind(autojump_clock: MockClock) -> None:
    async with watching({"*.example.org": [ELSEWHERE]}, claim(APP, "app", BALANCER)) as watched:
        await passes(CONFIRMED)
        assert watched.registry.findings
        watched.registry.replace("Ingress", f"app {APP}", [])
        watched.watch.note([APP])
        await passes(1.5)
        assert not watched.registry.findings
        asked = len(watched.dns.asked)
        await passes(2 * DEFAULT_PACE.every)
        assert len(watched.dns.asked) == asked


async def test_each_unverified_object_is_logged_once(autojump_clock: MockClock) -> None:
    async with watching({APP: [ELSEWHERE]}, claim(APP, "app", BALANCER), mode=Mode.WARN) as watched:
        with capture_logs() as logs:
            await passes(2 * DEFAULT_PACE.every)
            watched.put(claim(APP, "second", BALANCER, created="2027-01-01T00:00:00Z"))
            await passes(2 * DEFAULT_PACE.every)
        assert [line["origin"] for line in logs] == ["Ingress shop/app", "Ingress shop/second"]


async def test_many_unverified_names_are_logged_as_one_warning(autojump_clock: MockClock) -> None:
    claims = [claim(f"h{number}.example.org", f"h{number}", BALANCER) for number in range(50)]
    async with watching({"*.example.org": [ELSEWHERE]}, *claims, mode=Mode.WARN) as watched:
        with capture_logs() as logs:
            await passes(3 * DEFAULT_PACE.every)
        assert len(watched.registry.findings) == 50
        warnings = [line["event"] for line in logs if line["log_level"] == "warning"]
        assert warnings.count("public record points elsewhere") == 20
        assert len(warnings) == 21


async def test_a_look_that_fails_unforeseen_fails_alone(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with watching({APP: [ELSEWHERE]}, claim(APP, "app", BALANCER)) as watched:
        good = watched.watch._lookups._records._ask

        async def ask(query: Query) -> bytes | None:
            if b"broken" in query.name:
                raise ZeroDivisionError
            return await good(query)

        monkeypatch.setattr(watched.watch._lookups._records, "_ask", ask)
        watched.put(claim("broken.example.org", "broken", BALANCER))
        with capture_logs() as logs:
            await passes(CONFIRMED)
        assert watched.answer() == ()
        assert any(line["log_level"] == "error" and line["hostname"] == "broken.example.org" for line in logs)


QUICK: Final = OwnershipPace(gap=0.001, every=0.05, confirm=0.01, doubted=0.02)


@pytest.mark.parametrize("way", ["streams", "datagrams"])
async def test_a_real_upstream_is_asked_and_not_our_own_table(way: str) -> None:
    """The table has the name, with the relay's address; over TCP, or over UDP if TCP is refused."""

    def script(asked: bytes) -> list[Step]:
        return [reply_to(asked, [ELSEWHERE] if APP.split(".")[0].encode() in asked else [BALANCER])]

    streams, datagrams = (script, silence) if way == "streams" else (silence, script)
    async with faulty_upstream(datagrams, streams) as upstream, running(upstream.endpoint) as server:
        registry = Registry(targets=Targets((RELAY,)), guards=Guards())
        for name in (APP, "own.example.org"):
            registry.replace("Ingress", name, [with_terms(claim(name), status=(BALANCER,))])
        settings = OwnershipSettings(Mode.WARN, pace=QUICK)
        ask = server.server.ask_upstream
        watch = OwnershipWatch(registry, settings=settings, ask=ask, on_change=lambda: None)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch.run)
            await wait_until(lambda: bool(registry.verdict(APP, Reach.NAME).doubt))
            nursery.cancel_scope.cancel()
        assert registry.verdict("own.example.org", Reach.NAME).addresses == (RELAY,)
        assert server.server.counters.requests_udp == 0


async def test_a_server_that_does_not_run_yet_has_no_upstream_to_ask() -> None:
    async with faulty_upstream() as upstream, running(upstream.endpoint) as server:
        server.server.forwarder = None
        query = scan_query(messages.query(APP))
        assert isinstance(query, Query)
        assert await server.server.ask_upstream(query) is None
