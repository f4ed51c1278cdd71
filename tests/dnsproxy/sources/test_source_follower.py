"""Following the Gateway API while its CRDs appear, change version and disappear, and while the API server fails."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import pytest
import structlog
import structlog.testing
import trio
import trio.testing
from trio.testing import MockClock

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.hostnames.claims import Claim, Origin
from dnsproxy.sources.gateway.kinds import GROUP
from dnsproxy.sources.gateway.source import GatewaySource
from dnsproxy.sources.gateway.versions import NAMESPACES, WATCHED
from dnsproxy.sources.settings import GatewayOptions
from dnsproxy.sources.source_follower import SourceFollower
from tests.dnsproxy.sources.gateway.objects import SELECTED, gateway, listener, manifest, namespace, route
from tests.kit.faulty_api import SILENCE, Answer, client_in_memory, failure
from tests.kit.live_api import LiveApi

V1, BETA, ALPHA2, ALPHA3 = (f"{GROUP}/{version}" for version in ("v1", "v1beta1", "v1alpha2", "v1alpha3"))
BASIC: Final = ("gateways", "httproutes")


@dataclass
class Seen:
    """A store that a follower feeds, its reports, and every set of names over time."""

    api: LiveApi
    store: ClaimStore
    follower: SourceFollower | None = None
    synced: int = 0
    told: set[str] = field(default_factory=set)
    moments: list[set[str]] = field(default_factory=list)

    def take(self, hostnames: frozenset[str]) -> None:
        assert hostnames
        self.told |= hostnames
        self.moments.append(self.names)

    def note(self) -> None:
        self.synced += 1

    @property
    def names(self) -> set[str]:
        return set(self.store.names())

    async def until_synced(self) -> None:
        """From here on, `moments` count."""
        await self.until(lambda: self.synced == 1)
        self.moments.clear()

    @property
    def consistent(self) -> bool:
        assert self.follower is not None
        return self.follower.consistent

    @property
    def kinds(self) -> set[str]:
        assert self.follower is not None
        return {status.kind for status in self.follower.statuses}

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110  # the state of a task, which gives no signal; the clock jumps
            await trio.sleep(0.1)

    async def until_names(self, *names: str) -> None:
        await self.until(lambda: self.names == set(names))

    async def until_looked(self, times: int = 2) -> None:
        """Wait for this number of further discoveries."""
        after = self.looks + times
        await self.until(lambda: self.looks >= after)

    @property
    def looks(self) -> int:
        return self.api.asked_for(f"/apis/{V1}")


@asynccontextmanager
async def following(api: LiveApi, store: ClaimStore | None = None) -> AsyncIterator[Seen]:
    seen = Seen(api, store or ClaimStore())
    async with client_in_memory(api) as client, trio.open_nursery() as nursery:
        seen.follower = SourceFollower(
            client,
            seen.store,
            GatewaySource(seen.store, options=GatewayOptions()),
            name="Gateway API",
            kinds=WATCHED,
            beside=[NAMESPACES],
            on_claims=seen.take,
            on_synced=seen.note,
            draw=lambda: 0.0,
        )
        nursery.start_soon(seen.follower.run)
        yield seen
        nursery.cancel_scope.cancel()


def put(api: LiveApi, resource: str, item: Any) -> None:
    api.put(GROUP if resource != "namespaces" else "", resource, manifest(item))


def with_namespaces() -> LiveApi:
    api = LiveApi()
    api.provide("v1", "namespaces")
    return api


def with_crds(*more: str, version: str = V1) -> LiveApi:
    """A server with a Gateway for all names below example.org."""
    api = with_namespaces()
    api.provide(version, *BASIC, *more)
    put(api, "gateways", gateway(listener("*.example.org")))
    return api


async def test_routes_are_claimed_and_follow_their_changes(autojump_clock: MockClock) -> None:
    api = with_crds()
    put(api, "httproutes", route("app.example.org"))
    async with following(api) as seen:
        await seen.until_synced()
        assert seen.names == {"app.example.org"}
        assert seen.consistent
        put(api, "httproutes", route("new.example.org"))
        await seen.until_names("new.example.org")
        api.remove(GROUP, "httproutes", "web/app")
        await seen.until_names()


async def test_without_crds_there_is_nothing_to_wait_for(autojump_clock: MockClock) -> None:
    async with following(with_namespaces()) as seen:
        await seen.until_synced()
        assert seen.consistent
        assert seen.kinds == {"Namespace"}


async def test_crds_that_come_later_are_followed_and_go_again_with_their_names(autojump_clock: MockClock) -> None:
    """Off, on, off, on: a kind whose CRD is removed is not waited for, and its objects are gone."""
    api = with_namespaces()
    async with following(api) as seen:
        await seen.until_synced()
        for _ in range(2):
            api.provide(V1, *BASIC)
            put(api, "gateways", gateway(listener("*.example.org")))
            put(api, "httproutes", route("app.example.org"))
            await seen.until_names("app.example.org")
            await seen.until(lambda: seen.consistent)
            assert seen.kinds == {"Gateway", "HTTPRoute", "Namespace"}
            api.remove(GROUP, "httproutes", "web/app")
            api.remove(GROUP, "gateways", "infra/main")
            api.withdraw(V1, *BASIC)
            await seen.until_names()
            await seen.until(lambda: seen.kinds == {"Namespace"})
            assert seen.consistent


async def test_a_kind_that_vanishes_with_its_objects_takes_their_names_along(autojump_clock: MockClock) -> None:
    """No event reports the objects; only discovery shows it, twice."""
    api = with_crds("tlsroutes")
    put(api, "httproutes", route("app.example.org"))
    put(api, "tlsroutes", route("tls.example.org", place="web/tls"))
    put(api, "gateways", gateway(listener("*.example.org"), listener("*.example.org", "tls", protocol="TLS")))
    async with following(api) as seen:
        await seen.until_names("app.example.org", "tls.example.org")
        api.withdraw(V1, "tlsroutes")
        await seen.until_names("app.example.org")
        assert seen.kinds == {"Gateway", "HTTPRoute", "Namespace"}


async def test_a_kind_that_discovery_misses_once_stays(autojump_clock: MockClock) -> None:
    """A server that is starting may not know its custom kinds yet."""
    api = with_crds()
    put(api, "httproutes", route("app.example.org"))
    async with following(api) as seen:
        await seen.until_synced()
        api.withdraw(V1, *BASIC)
        await seen.until_looked(1)
        api.provide(V1, *BASIC)
        await seen.until_looked(3)
        await seen.until(lambda: seen.consistent)
        assert seen.names == {"app.example.org"}
        assert all("app.example.org" in names for names in seen.moments)


@pytest.mark.parametrize("is_withdrawn", [False, True], ids=["both are served", "the old one ends"])
async def test_a_better_version_is_adopted_without_a_moment_in_which_names_are_missing(
    autojump_clock: MockClock, is_withdrawn: bool
) -> None:
    api = with_crds(version=BETA)
    put(api, "httproutes", route("app.example.org"))
    put(api, "httproutes", route("gone.example.org", place="web/gone"))
    async with following(api) as seen:
        await seen.until_synced()
        assert seen.names == {"app.example.org", "gone.example.org"}
        api.provide(V1, *BASIC)
        if is_withdrawn:
            api.withdraw(BETA, *BASIC)
        # Not seen by the old watch, if it has ended, nor by the new one.
        api.remove(GROUP, "httproutes", "web/gone")
        await seen.until(lambda: api.asked_for(f"/apis/{V1}/httproutes") >= 2)
        await seen.until_names("app.example.org")
        await seen.until(lambda: seen.consistent)
        put(api, "httproutes", route("new.example.org", place="web/new"))
        await seen.until_names("app.example.org", "new.example.org")
    assert all("app.example.org" in names for names in seen.moments)
    assert api.asked[-1].path != f"/apis/{BETA}/httproutes"


async def test_a_version_that_ends_before_the_next_is_seen_costs_nothing(autojump_clock: MockClock) -> None:
    """Its watch gets 404 for longer than a confirmation takes, and the known objects stay until discovery decides."""
    api = with_crds("tlsroutes", version=V1)
    api.withdraw(V1, "tlsroutes")
    api.provide(ALPHA2, "tlsroutes")
    put(api, "gateways", gateway(listener("*.example.org", protocol="TLS")))
    put(api, "tlsroutes", route("tls.example.org"))
    async with following(api) as seen:
        await seen.until_names("tls.example.org")
        api.withdraw(ALPHA2, "tlsroutes")
        api.provide(ALPHA3, "tlsroutes")
        await seen.until(lambda: api.asked_for(f"/apis/{ALPHA3}/tlsroutes") >= 2)
        await seen.until(lambda: seen.consistent)
        assert seen.names == {"tls.example.org"}
        assert seen.told == {"tls.example.org"}
        api.remove(GROUP, "tlsroutes", "web/app")
        await seen.until_names()


async def test_objects_that_two_changes_of_version_outran_are_forgotten(autojump_clock: MockClock) -> None:
    """The second change comes before the first one has been read."""
    api = with_crds(version=ALPHA2)
    put(api, "httproutes", route("gone.example.org", place="web/gone"))
    put(api, "httproutes", route("app.example.org"))
    async with following(api) as seen:
        await seen.until_synced()
        api.faults[f"/apis/{BETA}/httproutes"] = failure(500, "InternalError")
        api.provide(BETA, *BASIC)
        api.withdraw(ALPHA2, *BASIC)
        await seen.until(lambda: api.asked_for(f"/apis/{BETA}/httproutes") >= 2)
        api.remove(GROUP, "httproutes", "web/gone")
        api.provide(V1, *BASIC)
        await seen.until_names("app.example.org")
    assert all("app.example.org" in names for names in seen.moments)


GARBAGE: Final = [
    pytest.param(failure(500, "InternalError"), id="500"),
    pytest.param(failure(503, "ServiceUnavailable"), id="503"),
    pytest.param(failure(403, "Forbidden"), id="403"),
    pytest.param(failure(429, "TooManyRequests", retry_after="1"), id="429"),
    pytest.param(Answer([b"<html>sign in</html>"]), id="HTML"),
    pytest.param(Answer([b'{"resources": [{"name"']), id="cut JSON"),
    pytest.param(Answer([b'{"resources": 1}']), id="another shape"),
    pytest.param(Answer([SILENCE]), id="silence"),
]


@pytest.mark.parametrize("answer", GARBAGE)
async def test_a_discovery_that_fails_changes_nothing(autojump_clock: MockClock, answer: Answer) -> None:
    """Known objects stay, also while one version answers and another does not."""
    api = with_crds()
    put(api, "httproutes", route("app.example.org"))
    async with following(api) as seen:
        await seen.until_synced()
        api.faults[f"/apis/{ALPHA3}"] = answer
        api.provide(V1, "grpcroutes")
        put(api, "grpcroutes", route("grpc.example.org", place="web/grpc"))
        await seen.until_looked(2)
        assert seen.names == {"app.example.org"}
        assert seen.consistent
        put(api, "httproutes", route("new.example.org"))
        await seen.until_names("new.example.org")
        del api.faults[f"/apis/{ALPHA3}"]
        await seen.until_names("new.example.org", "grpc.example.org")


@pytest.mark.parametrize("answer", GARBAGE)
async def test_nothing_is_claimed_and_one_line_is_logged_until_discovery_succeeds(
    autojump_clock: MockClock, answer: Answer
) -> None:
    structlog.reset_defaults()
    api = with_crds()
    put(api, "httproutes", route("app.example.org"))
    api.faults[f"/apis/{V1}"] = answer
    with structlog.testing.capture_logs() as logs:
        async with following(api) as seen:
            await seen.until_looked(3)
            assert not seen.consistent
            assert (seen.synced, seen.names) == (0, set())
            warnings = [line["event"] for line in logs if line["log_level"] == "warning"]
            assert warnings == ["cannot discover kinds"]
            api.faults.clear()
            await seen.until_names("app.example.org")


async def test_a_server_that_is_away_is_asked_ever_less_often(autojump_clock: MockClock) -> None:
    """At most once per second, and finally every 30 seconds."""
    api = with_crds()
    api.faults[f"/apis/{V1}"] = failure(503, "ServiceUnavailable")
    async with following(api) as seen:
        await seen.until_looked(6)
    times = [one.time for one in api.asked if one.path == f"/apis/{V1}"]
    pauses = [after - before for before, after in pairwise(times)]
    assert min(pauses) >= 1
    assert pauses == sorted(pauses)
    assert pauses[-1] == 15


async def test_a_crash_of_the_server_changes_nothing_and_is_caught_up_with(autojump_clock: MockClock) -> None:
    api = with_crds()
    put(api, "httproutes", route("app.example.org"))
    async with following(api) as seen:
        await seen.until_synced()
        api.crash()
        put(api, "httproutes", route("new.example.org", place="web/new"))
        await trio.sleep(20)
        assert seen.names == {"app.example.org"}
        api.recover()
        await seen.until_names("app.example.org", "new.example.org")
        await seen.until(lambda: seen.consistent)
    assert all("app.example.org" in names for names in seen.moments)


async def test_no_route_claims_anything_before_all_was_read(autojump_clock: MockClock) -> None:
    """Otherwise the younger of two objects would get a name until the older one is read."""
    api = with_crds()
    put(api, "httproutes", route("app.example.org"))
    api.faults[f"/apis/{V1}/gateways"] = failure(500, "InternalError")
    async with following(api) as seen:
        await seen.until(lambda: api.asked_for(f"/apis/{V1}/gateways") >= 4)
        assert (seen.synced, seen.names, seen.told) == (0, set(), set())
        api.faults.clear()
        await seen.until_names("app.example.org")
        assert seen.synced == 1


@pytest.mark.parametrize("hidden", ["listenersets", "grpcroutes", "tlsroutes"])
async def test_a_kind_that_few_use_and_we_may_not_see_holds_up_nothing(autojump_clock: MockClock, hidden: str) -> None:
    api = with_crds("listenersets", "grpcroutes", "tlsroutes")
    put(api, "httproutes", route("app.example.org"))
    api.faults[f"/apis/{V1}/{hidden}"] = failure(403, "Forbidden")
    async with following(api) as seen:
        await seen.until_synced()
        assert seen.names == {"app.example.org"}


async def test_a_kind_that_few_use_and_whose_list_fails_is_off_after_a_while(autojump_clock: MockClock) -> None:
    """A conversion webhook is dead, for example: all other names would wait, with their time of --hold."""
    api = with_crds("tlsroutes")
    put(api, "httproutes", route("app.example.org"))
    put(api, "tlsroutes", route("tls.example.org", place="web/tls"))
    api.faults[f"/apis/{V1}/tlsroutes"] = failure(500, "InternalError")
    with structlog.testing.capture_logs() as logs:
        async with following(api, restored_tls()) as seen:
            began = trio.current_time()
            await seen.until(lambda: seen.synced == 1)
            assert 30 <= trio.current_time() - began <= 50
            assert seen.names == {"app.example.org", "known.example.org"}
            assert not seen.consistent
            assert [line["kind"] for line in logs if line["event"] == "not waiting for a kind"] == ["TLSRoute"]
            api.faults.clear()
            put(api, "gateways", gateway(listener("*.example.org"), listener("*.example.org", "tls", protocol="TLS")))
            await seen.until_names("app.example.org", "tls.example.org")
            await seen.until(lambda: seen.consistent)


async def test_a_group_that_fails_is_off_after_a_while(autojump_clock: MockClock) -> None:
    """The server behind an aggregated API is dead, for example: the names of all other sources would wait."""
    api = with_crds("tlsroutes")
    put(api, "httproutes", route("app.example.org"))
    api.faults[f"/apis/{V1}"] = failure(503, "ServiceUnavailable")
    async with following(api, restored_tls()) as seen:
        began = trio.current_time()
        await seen.until(lambda: seen.synced == 1)
        assert 30 <= trio.current_time() - began <= 70
        assert (seen.names, seen.consistent) == ({"known.example.org"}, False)
        api.faults.clear()
        await seen.until_names("app.example.org")
        await seen.until(lambda: seen.consistent)


@pytest.mark.parametrize("fault", [failure(503, "ServiceUnavailable"), failure(401, "Unauthorized"), Answer([SILENCE])])
async def test_a_group_is_waited_for_while_the_api_server_itself_fails(
    autojump_clock: MockClock, fault: Answer
) -> None:
    api = with_crds()
    put(api, "httproutes", route("app.example.org"))
    api.faults |= {f"/apis/{V1}": failure(503, "ServiceUnavailable"), "/version": fault}
    async with following(api, restored_tls()) as seen:
        await seen.until(lambda: api.asked_for("/version") >= 1)
        await trio.testing.wait_all_tasks_blocked()
        assert (seen.synced, seen.names) == (0, {"known.example.org"})


@pytest.mark.parametrize("code", [401, 403, 429])
async def test_a_group_that_we_may_not_see_yet_is_waited_for(autojump_clock: MockClock, code: int) -> None:
    api = with_crds()
    api.faults[f"/apis/{V1}"] = failure(code, "Refused")
    async with following(api) as seen:
        await seen.until(lambda: api.asked_for(f"/apis/{V1}") >= 4)
        assert (seen.synced, api.asked_for("/version")) == (0, 0)


def restored_tls() -> ClaimStore:
    """A store with a TLSRoute of an earlier run."""
    store = ClaimStore()
    origin = Origin("TLSRoute", "known", "web", "2026-01-01T00:00:00Z")
    store.restore("TLSRoute", "web/known", [Claim("known.example.org", Reach.NAME, origin)])
    return store


async def test_no_kind_is_given_up_while_the_server_itself_fails(autojump_clock: MockClock) -> None:
    """A new server without names would replace one that has them."""
    api = with_crds("tlsroutes")
    api.faults |= {f"/apis/{V1}/{one}": failure(500, "InternalError") for one in ("tlsroutes", *BASIC)}
    async with following(api) as seen:
        await trio.sleep(15)
        api.faults |= {f"/apis/{version}": failure(500, "InternalError") for version in (V1, BETA, ALPHA2, ALPHA3)}
        await trio.sleep(40)
        assert seen.synced == 0
        assert "TLSRoute" in seen.kinds


@pytest.mark.parametrize("needed", BASIC)
async def test_a_kind_that_everybody_uses_and_we_may_not_see_is_waited_for(
    autojump_clock: MockClock, needed: str
) -> None:
    api = with_crds()
    put(api, "httproutes", route("app.example.org"))
    api.faults[f"/apis/{V1}/{needed}"] = failure(403, "Forbidden")
    async with following(api) as seen:
        await seen.until(lambda: api.asked_for(f"/apis/{V1}/{needed}") >= 3)
        assert (seen.synced, seen.names) == (0, set())


async def test_hidden_namespaces_are_not_admitted_by_label_but_by_all_other_rules(autojump_clock: MockClock) -> None:
    """And once RBAC allows it, they do."""
    api = with_crds()
    chosen = listener("*.example.com", "chosen", allowedRoutes=SELECTED)
    put(api, "gateways", gateway(listener("*.example.org"), chosen))
    put(api, "namespaces", namespace("web", team="web"))
    put(api, "httproutes", route("app.example.org"))
    put(api, "httproutes", route("app.example.com", place="web/chosen"))
    api.faults["/api/v1/namespaces"] = failure(403, "Forbidden")
    async with following(api) as seen:
        await seen.until_synced()
        assert seen.names == {"app.example.org"}
        api.faults.clear()
        await seen.until_names("app.example.org", "app.example.com")
        put(api, "namespaces", namespace("web"))
        await seen.until_names("app.example.org")


def restored(**hostnames: str) -> ClaimStore:
    """Restored claims of HTTPRoutes in the namespace `web`, by name."""
    store = ClaimStore()
    for name, hostname in hostnames.items():
        claim = Claim(hostname, Reach.NAME, Origin("HTTPRoute", name, "web"))
        store.restore("HTTPRoute", f"web/{name}", [claim])
    return store


async def test_what_a_snapshot_had_goes_after_the_first_whole_read_and_not_before(autojump_clock: MockClock) -> None:
    api = with_crds()
    put(api, "httproutes", route("app.example.org"))
    api.crash()
    async with following(api, restored(app="app.example.org", gone="gone.example.org")) as seen:
        await trio.sleep(10)
        assert seen.names == {"app.example.org", "gone.example.org"}
        api.faults[f"/apis/{V1}/gateways"] = failure(500, "InternalError")
        api.recover()
        await seen.until(lambda: api.asked_for(f"/apis/{V1}/httproutes") >= 2)
        await seen.until(lambda: api.asked_for(f"/apis/{V1}/gateways") >= 4)
        assert seen.names == {"app.example.org", "gone.example.org"}
        api.faults.clear()
        await seen.until_names("app.example.org")
        assert seen.consistent
    assert all("app.example.org" in names for names in seen.moments)


async def test_what_a_snapshot_had_of_a_kind_that_is_gone_goes_too(autojump_clock: MockClock) -> None:
    async with following(with_namespaces(), restored(app="app.example.org")) as seen:
        await seen.until_synced()
        assert seen.names == set()
        assert seen.told == {"app.example.org"}


async def test_a_first_list_without_what_a_snapshot_had_is_read_twice(autojump_clock: MockClock) -> None:
    """An API server that lost its storage, or is starting, is briefly empty."""
    api = with_crds()
    async with following(api, restored(app="app.example.org")) as seen:
        await seen.until(lambda: api.asked_for(f"/apis/{V1}/httproutes") == 1)
        put(api, "httproutes", route("app.example.org"))
        await seen.until_synced()
        assert seen.names == {"app.example.org"}
    assert all("app.example.org" in names for names in seen.moments)


async def test_many_changes_of_one_gateway_leave_others_their_turn(autojump_clock: MockClock) -> None:
    """A deleted Gateway removes 2,000 names, in slices."""
    api = with_crds()
    for number in range(2_000):
        put(api, "httproutes", route(f"h{number}.example.org", place=f"web/h{number}"))
    async with following(api) as seen:
        await seen.until(lambda: len(seen.names) == 2_000)
        api.remove(GROUP, "gateways", "infra/main")
        turns = 0
        while seen.names:
            turns += 1
            await trio.lowlevel.checkpoint()
        assert turns >= 20
