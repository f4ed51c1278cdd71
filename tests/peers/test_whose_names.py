"""Whose names: a domain that is partly elsewhere, claimed as people claim it, with real programs on the whole path.

A pod gets for each name what it got before, but for those that lead to the load balancer, which lead to the relay.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

import pytest
import trio

from tests.kit.apiserver import in_thread
from tests.kit.messages import HTTPS, TXT, A, query
from tests.kit.polling import poll_until
from tests.peers.steady import answered_with, asking
from tests.peers.whose_names_scene import (
    BALANCER,
    CDN,
    ELSEWHERE,
    GATEWAY_RELAY,
    INGRESSES,
    NEVER,
    NEW_BALANCER,
    RELAY,
    ROUTER,
    SECOND,
    SECONDS,
    Scene,
    World,
    playing,
    read,
    reply_of,
    running_world,
    set_status,
)

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "coredns", "nsd", "gateway-api")

UNTOUCHED: Final = (
    *(("www", rtype) for rtype in ("A", "AAAA", "TXT", "MX", "HTTPS")),
    *(("mail", rtype) for rtype in ("A", "MX")),
    *(("shop", rtype) for rtype in ("A", "AAAA", "HTTPS", "CNAME")),
    *(("nas", "A"), ("a.b.c", "A"), ("home", "A"), ("@", "A"), ("@", "MX"), ("@", "NS"), ("app", "TXT")),
)
"""Names of the domain, with types, for which a pod gets what public DNS says."""
FLAGS: Final = {"as they are": (), "all hosts of TLS sections": ("--tls-hosts", "all")}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with running_world(tmp_path_factory.mktemp("whose")) as one:
        yield one


@pytest.fixture(autouse=True)
def _as_it_was(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "world" in request.fixturenames:
        request.getfixturevalue("world").reset()


@pytest.fixture(scope="module", params=list(FLAGS.values()), ids=list(FLAGS))
def scene(request: pytest.FixtureRequest, world: World) -> Iterator[Scene]:
    with playing(world, *request.param) as one:
        one.wait_for("app.example.org", RELAY)
        one.wait_for("gate.example.org", GATEWAY_RELAY)
        yield one


def name_of(label: str) -> str:
    return "example.org" if label == "@" else f"{label}.example.org"


# --- Each name ---


@pytest.mark.parametrize(("label", "rtype"), UNTOUCHED)
def test_a_name_that_is_elsewhere_is_untouched(scene: Scene, label: str, rtype: str) -> None:
    said = scene.world.public.reading(name_of(label), rtype)
    assert scene.ask(name_of(label), rtype) == said == read(scene.plain.port, name_of(label), rtype)


@pytest.mark.parametrize("label", ["www", "mail", "shop", "nas", "a.b.c", "home", "@"])
@pytest.mark.parametrize("rtype", [A, HTTPS, TXT])
def test_dnsproxy_passes_such_a_reply_octet_for_octet(scene: Scene, label: str, rtype: int) -> None:
    message = query(name_of(label), rtype)
    for _ in range(2):
        assert reply_of(scene.dnsproxy.port, message) == reply_of(scene.world.public.nsd_port, message)


def test_a_host_of_the_cluster_is_led_to_the_relay(scene: Scene) -> None:
    assert scene.ask("app.example.org").contents() == {RELAY}
    assert scene.ask("x.apps.example.org").contents() == {RELAY}
    assert scene.ask("app.example.org", "AAAA").contents() == set()


def test_a_host_of_a_gateway_is_led_to_its_own_relay(scene: Scene) -> None:
    assert scene.ask("gate.example.org").contents() == {GATEWAY_RELAY}


def test_a_customers_domain_in_no_object_is_led_to_the_relay(scene: Scene) -> None:
    assert scene.world.public.reading("customers.example.net").contents() == {BALANCER}
    assert scene.ask("customers.example.net").contents() == {RELAY}
    assert scene.ask("other.example.net") == scene.world.public.reading("other.example.net")


def test_of_two_addresses_the_other_one_stays(scene: Scene) -> None:
    assert scene.world.public.reading("api.example.org").contents() == {BALANCER, SECOND}
    assert scene.ask("api.example.org").contents() == {RELAY, SECOND}


def test_a_preview_without_a_record_is_served(scene: Scene) -> None:
    name = "pull-1.preview.example.org"
    assert read(scene.plain.port, name).rcode == "NXDOMAIN"
    assert scene.ask(name).contents() == {RELAY}


def test_a_host_behind_a_cdn_keeps_its_alias_and_hints(scene: Scene) -> None:
    """Also where the status of a Gateway names the host of the CDN: its owner may choose what stands there."""
    found = scene.ask("shop.example.org")
    assert found.contents() == {CDN}
    assert ("shop.example.org.", "CNAME", "shop.cdn.example.com.") in found.answers
    assert CDN in str(scene.ask("shop.example.org", "HTTPS").answers)


def test_only_the_claimed_wildcard_answers_names_without_a_record(scene: Scene, request: pytest.FixtureRequest) -> None:
    """`--tls-hosts all` is the owner's wish to claim what the certificate names."""
    is_claimed = "all" in str(request.node.callspec.id)
    found = scene.ask("nobody.example.org")
    assert found.contents() == ({RELAY} if is_claimed else set())
    assert found.rcode == ("NOERROR" if is_claimed else "NXDOMAIN")


# --- Public DNS fails ---


@pytest.mark.parametrize("how", ["ended", "silent"])
def test_without_public_dns_the_hosts_of_the_cluster_are_answered(world: World, how: str) -> None:
    with playing(world) as one:
        one.wait_for("app.example.org", RELAY)
        assert one.ask("www.example.org").contents() == {ELSEWHERE}
        if how == "ended":
            world.public.end()
        else:
            world.path.delay = NEVER
        for _ in range(5):
            begun = time.monotonic()
            assert read(one.dnsproxy.port, "app.example.org").contents() == {RELAY}
            assert time.monotonic() - begun < 1, "nobody waits for public DNS"
        assert one.ask("app.example.org").contents() == {RELAY}
        # Of this one nothing is known yet.
        assert one.ask("new.apps.example.org").contents() == {RELAY}
        failed = "www.example.org fails, as without us"
        poll_until(lambda: one.ask("www.example.org").rcode == "SERVFAIL", failed, seconds=SECONDS)
        assert read(one.plain.port, "mail.example.org", timeout=20).rcode == "SERVFAIL"
        assert one.ask("mail.example.org").rcode == "SERVFAIL"


def test_a_slow_public_dns_delays_nothing_that_is_known_and_changes_no_answer(world: World) -> None:
    with playing(world) as one:
        one.wait_for("app.example.org", RELAY)
        world.path.delay = 1.0
        for _ in range(10):
            begun = time.monotonic()
            assert read(one.dnsproxy.port, "app.example.org").contents() == {RELAY}
            assert time.monotonic() - begun < 0.5
        assert one.ask("customers.example.net").contents() == {RELAY}
        assert one.ask("api.example.org").contents() == {RELAY, SECOND}
        for label, rtype in (("www", "A"), ("mail", "MX"), ("shop", "A")):
            assert one.ask(name_of(label), rtype) == world.public.reading(name_of(label), rtype)


def test_a_lying_public_dns_takes_no_host_of_the_cluster_away(world: World) -> None:
    with playing(world) as one:
        one.wait_for("app.example.org", RELAY)
        world.public.lie()
        lied = "www.example.org does not exist, as public DNS says"
        poll_until(lambda: one.ask("www.example.org").rcode == "NXDOMAIN", lied, seconds=SECONDS)
        for name in ("app.example.org", "new.apps.example.org", "api.example.org"):
            poll_until(lambda name=name: one.ask(name).contents() == {RELAY}, name, seconds=SECONDS)  # type: ignore[misc]
        assert one.ask("customers.example.net").rcode == "NXDOMAIN"


# --- The load balancer moves ---


@pytest.mark.parametrize("first", ["status", "record"])
async def test_the_load_balancer_moves_while_clients_ask(world: World, first: str) -> None:
    """No query is lost, and the new address is replaced as soon as a status and a record have it."""
    with playing(world) as one:
        await in_thread(one.wait_for, "app.example.org", RELAY)
        async with asking(one.coredns.port, rate=50) as tally:
            await tally.wait_for(50, answered_with(RELAY))
            moves = [
                lambda: set_status(world.api, *INGRESSES, address=NEW_BALANCER),
                lambda: world.public.move(NEW_BALANCER),
            ]
            for move in moves if first == "status" else reversed(moves):
                await in_thread(move)
                await trio.sleep(2)
            begun = trio.current_time()
            await in_thread(until_relayed, one, "customers.example.net")
            assert trio.current_time() - begun < 2
            await tally.wait_for(50, answered_with(RELAY))
            seen = len(tally.outcomes)
            await tally.wait_for(100, answered_with(RELAY))
        assert {one.said for one in tally.outcomes[seen:] if one.in_table} == {RELAY}, str(tally)
        assert tally.unexpected({RELAY, ELSEWHERE, BALANCER, NEW_BALANCER}) == [], str(tally)
        if first == "status":
            # The record has the address of before for two seconds, and it still leads here.
            assert set(tally.said(in_table=True)) == {RELAY}, str(tally)


def until_relayed(one: Scene, name: str) -> None:
    """Ask dnsproxy, which keeps nothing of a name that no object claims."""
    poll_until(lambda: read(one.dnsproxy.port, name).contents() == {RELAY}, name, seconds=SECONDS)


async def test_a_new_status_is_replaced_within_a_watch_event(world: World) -> None:
    """The record is there already, as where the load balancer has two addresses for a while."""
    with playing(world) as one:
        await in_thread(one.wait_for, "app.example.org", RELAY)
        await in_thread(world.public.move, NEW_BALANCER)
        assert (await in_thread(read, one.dnsproxy.port, "customers.example.net")).contents() == {NEW_BALANCER}
        await in_thread(set_status, world.api, *INGRESSES, address=NEW_BALANCER)
        begun = trio.current_time()
        await in_thread(until_relayed, one, "customers.example.net")
        await in_thread(until_relayed, one, "y.apps.example.org")
        await in_thread(until_relayed, one, "app.example.org")
        assert trio.current_time() - begun < 2


# --- A router that no status names ---


def test_hosts_behind_a_router_are_untouched_until_its_address_is_named(world: World) -> None:
    with playing(world) as one:
        one.wait_for("app.example.org", RELAY)
        assert one.ask("home.example.org").contents() == {ROUTER}
    with playing(world, "--trust", ROUTER) as one:
        one.wait_for("home.example.org", RELAY)
        for label, rtype in (("www", "A"), ("mail", "A"), ("shop", "A")):
            assert one.ask(name_of(label), rtype) == world.public.reading(name_of(label), rtype)
        assert one.ask("app.example.org").contents() == {RELAY}


# --- An address as the target ---


def test_with_an_address_as_the_target_verified_and_replaced_by_flags(world: World) -> None:
    flags = ("--ownership", "verify", "--replace", f"{BALANCER}={RELAY}")
    with playing(world, *flags, target=("--target", RELAY)) as one:
        one.wait_for("app.example.org", RELAY)
        assert one.ask("customers.example.net").contents() == {RELAY}
        assert one.ask("api.example.org").contents() == {RELAY, SECOND}
        for label, rtype in (("www", "A"), ("mail", "MX"), ("shop", "A"), ("nas", "A"), ("@", "A"), ("home", "A")):
            assert one.ask(name_of(label), rtype) == world.public.reading(name_of(label), rtype)
