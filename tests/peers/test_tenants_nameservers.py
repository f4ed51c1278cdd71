"""Tenants run the nameserver of their own names: slow, silent or lying, it delays and misleads nobody else.

A real Unbound asks it, as the resolvers of clusters do; for replies that Unbound would mend it stands in its place.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import dns.exception
import dns.message
import dns.query
import dns.rcode
import pytest

from tests.kit.messages import query
from tests.kit.polling import poll_until
from tests.kit.rpz.resolver import Site
from tests.kit.rpz.unbound import unbound_with
from tests.kit.scraping import is_ready
from tests.kit.serve_process import Serving
from tests.kit.tenants.acts import balance, claim
from tests.kit.tenants.nameserver import BEHAVIOURS, MANY, ZONE, Nameserver, running_nameserver
from tests.kit.tenants.public_dns import WORLD, running_public_dns
from tests.kit.tenants.rows import Stage
from tests.kit.tenants.scene import OWNED, Scene, started
from tests.kit.tenants.settings import COLUMNS, DEFAULT, STRICT

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl", "nsd", "gateway-api", "unbound")

NEIGHBOUR: Final = "fast.apps.example.org"
"""A name of another tenant, which leads to the cluster."""
FOREIGN: Final = "www.registered1.com"
"""A name of the world that a tenant claims."""
MALFORMED: Final = "malformed"
GIVEN_UP: Final = 2.0
"""Seconds that CoreDNS waits."""
POD, FLOODER = "127.0.0.1", "127.0.0.2"
FLOOD: Final = 3_000
PER_CLIENT: Final = 1_000
RANDOM: Final = 10_000
"""More than the verdicts on names below wildcards that are kept."""
PACE: Final = 0.0002
"""Seconds between two queries of a flood."""
LAST: Final = 3.0
"""Seconds without a reply after which a flood ends."""
GROWTH: Final = 32 * 2**20
"""Octets."""


@dataclass
class Hostile:
    """A server of ours in a cluster with that tenant."""

    scene: Scene
    column: str
    server: Serving
    nameserver: Nameserver
    upstream: int

    def ask(self, name: str, rtype: str = "A") -> tuple[str, set[str], float]:
        """The status, the addresses and the seconds that a pod waits; over TCP after a truncated reply."""
        begun = time.monotonic()
        message = dns.message.make_query(name, rtype, use_edns=0)
        try:
            reply, _ = dns.query.udp_with_fallback(message, POD, port=self.server.port, timeout=10)
        except dns.exception.FormError:
            return MALFORMED, set(), time.monotonic() - begun
        addresses = {str(one) for found in reply.answer for one in found if found.rdtype in {1, 28}}
        return dns.rcode.to_text(reply.rcode()), addresses, time.monotonic() - begun


@pytest.fixture(scope="module")
def scene(stage: Stage) -> Scene:
    """The objects of all tests."""
    one = stage.scene
    tenant = one.tenant("hostile")
    tenant.ingress(*(f"{label}.{ZONE}" for label in BEHAVIOURS), f"*.wild.{ZONE}", "*.random.apps.example.org")
    balance(one, tenant)
    neighbour = one.tenant("neighbour")
    neighbour.ingress(NEIGHBOUR, *(f"n{number}.shop.example.org" for number in range(50)))
    balance(one, neighbour)
    claim(FOREIGN)(one)
    one.mark()
    return one


@pytest.fixture(scope="module")
def nameserver(scene: Scene) -> Iterator[Nameserver]:
    with running_nameserver(scene.public_dns) as one:
        yield one


@pytest.fixture(scope="module")
def resolver(scene: Scene, nameserver: Nameserver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of Unbound."""
    folder = tmp_path_factory.mktemp("resolver")
    lines = f'server:\n    num-queries-per-thread: 4096\nstub-zone:\n    name: "{ZONE}"\n'
    lines += f"    stub-addr: 127.0.0.1@{nameserver.port}\n"
    with unbound_with(lines, Site(folder, 0, "", upstream=scene.public_dns)) as one:
        yield one.port


@pytest.fixture(params=COLUMNS)
def hostile(request: pytest.FixtureRequest, scene: Scene, nameserver: Nameserver, resolver: int) -> Iterator[Hostile]:
    """A server that asks Unbound."""
    yield from playing(scene, request.param, nameserver, resolver)


@pytest.fixture(params=COLUMNS)
def direct(request: pytest.FixtureRequest, scene: Scene, nameserver: Nameserver) -> Iterator[Hostile]:
    """A server that asks the tenant's nameserver itself."""
    yield from playing(scene, request.param, nameserver, nameserver.port)


@pytest.fixture(params=[(path, column) for path in ("resolver", "direct") for column in COLUMNS], ids="-".join)
def either(request: pytest.FixtureRequest, scene: Scene, nameserver: Nameserver, resolver: int) -> Iterator[Hostile]:
    """Each of them."""
    path, column = request.param
    yield from playing(scene, column, nameserver, resolver if path == "resolver" else nameserver.port)


def playing(scene: Scene, column: str, nameserver: Nameserver, upstream: int) -> Iterator[Hostile]:
    with started(scene, column, upstream=upstream) as server:
        poll_until(lambda: is_ready(server.admin), "/readyz", seconds=60)
        one = Hostile(scene, column, server, nameserver, upstream)
        poll_until(lambda: one.ask(NEIGHBOUR)[1] == {scene.relay}, NEIGHBOUR, seconds=60)
        yield one
        assert server.metric("dnsproxy_dns_failures_total") == 0
        assert one.ask(NEIGHBOUR)[:2] == ("NOERROR", {scene.relay})
        assert one.ask(FOREIGN)[:2] == ("NOERROR", {WORLD})


# --- Late and silent ---


def test_a_name_of_a_silent_zone_is_answered_in_time(hostile: Hostile) -> None:
    name = f"silent.{ZONE}"
    rcode, addresses, seconds = hostile.ask(name)
    expected = ("NOERROR", {hostile.scene.relay}) if hostile.column == DEFAULT else ("SERVFAIL", set())
    assert (rcode, addresses) == expected
    assert seconds < GIVEN_UP + 0.5
    if hostile.column == DEFAULT:
        assert hostile.ask(name)[2] < GIVEN_UP / 4, "what nobody says is known for some seconds"


def test_a_name_of_a_late_zone_is_answered_as_its_record_says_and_then_at_once(direct: Hostile) -> None:
    name = f"late.{ZONE}"
    assert direct.ask(name)[:2] == ("NOERROR", {direct.scene.relay})
    rcode, addresses, seconds = direct.ask(name)
    assert (rcode, addresses) == ("NOERROR", {direct.scene.relay})
    assert seconds < GIVEN_UP / 4


def test_thousands_of_queries_for_silent_names_are_held_and_delay_nobody(either: Hostile) -> None:
    """A pod asks for random names of the zone; the limit of its address holds, and others are answered meanwhile."""
    either.ask(FOREIGN)
    with flooding(either, f"silent.{ZONE}", FLOOD) as flood:
        slowest = 0.0
        for number in range(20):
            assert either.ask(NEIGHBOUR)[1] == {either.scene.relay}
            rcode, addresses, seconds = either.ask(f"n{number}.shop.example.org")
            assert (rcode, addresses) == ("NOERROR", {either.scene.relay})
            slowest = max(slowest, seconds)
            assert either.ask(FOREIGN)[1] == {WORLD}
        assert either.server.metric("dnsproxy_forward_outstanding") <= PER_CLIENT + 10
        assert slowest < GIVEN_UP, "the names of others wait for nothing"
    # Unbound soon says by itself that nobody answers there; then the queries do not wait.
    assert flood.rcodes["REFUSED"] + flood.rcodes["SERVFAIL"] > FLOOD // 3, flood.rcodes
    if either.upstream == either.nameserver.port:
        assert flood.rcodes["REFUSED"] > 0, flood.rcodes
        assert either.server.metric("dnsproxy_forward_overload_total") > 0


# --- Replies of every kind ---


def test_records_that_live_no_second_are_not_asked_for_each_query(direct: Hostile) -> None:
    before = direct.nameserver.asked["brief"]
    for _ in range(200):
        assert direct.ask(f"brief.{ZONE}")[1] == {direct.scene.relay}
    assert direct.nameserver.asked["brief"] - before < 20


def test_of_many_records_only_the_one_that_leads_here_is_replaced(direct: Hostile) -> None:
    rcode, addresses, seconds = direct.ask(f"many.{ZONE}")
    assert rcode == "NOERROR"
    assert direct.scene.relay in addresses
    assert len(addresses) == MANY + 1
    assert seconds < GIVEN_UP


@pytest.mark.parametrize("label", ["loop", "circle", "crowd", "garbage", "cut"])
def test_no_reply_does_harm(either: Hostile, label: str) -> None:
    """Its own pods get an answer or an error in time; the fixture asks for the names of others afterwards."""
    one = either
    for _ in range(3):
        for rtype in ("A", "AAAA"):
            rcode, addresses, seconds = one.ask(f"{label}.{ZONE}", rtype)
            assert seconds < GIVEN_UP + 0.5
            # A reply that cannot be read is passed on as it is: the pod gets what it got before.
            assert rcode in {"NOERROR", "SERVFAIL", *([MALFORMED] if label == "cut" else [])}
            if one.column == STRICT:
                assert one.scene.relay not in addresses, "no record leads here"


# --- Random names ---


@pytest.mark.parametrize("column", COLUMNS)
def test_random_names_below_a_wildcard_push_out_the_verdict_of_no_other_name(
    scene: Scene, column: str, nameserver: Nameserver, tmp_path: Path
) -> None:
    """After them public DNS ends: what was known still holds, and the memory is bounded."""
    with ExitStack() as public:
        port = public.enter_context(running_public_dns(tmp_path / "public"))
        with started(scene, column, upstream=port) as server:
            one = Hostile(scene, column, server, nameserver, port)
            known = [NEIGHBOUR, OWNED, *(f"n{number}.shop.example.org" for number in range(50))]
            for name in known:
                poll_until(lambda name=name: one.ask(name)[1] == {scene.relay}, name, seconds=60)  # type: ignore[misc]
            assert one.ask(FOREIGN)[1] == {WORLD}
            before = resident(server)
            with flooding(one, "random.apps.example.org", RANDOM, window=100) as flood:
                flood.done.wait(120)
            assert flood.rcodes["NOERROR"] > RANDOM * 0.9, flood.rcodes
            assert resident(server) - before < GROWTH
            public.close()
            for name in known:
                rcode, addresses, seconds = one.ask(name)
                assert (rcode, addresses) == ("NOERROR", {scene.relay}), name
                assert seconds < GIVEN_UP / 4, name
            assert one.ask(FOREIGN)[1] == set(), "it is not taken because public DNS is away"


def resident(server: Serving) -> int:
    """Octets of the process."""
    status = Path(f"/proc/{server.process.pid}/status").read_text(encoding="utf-8")
    (size,) = [int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS")]
    return size


@dataclass
class Flood:
    """What a pod got that asks for names without end."""

    rcodes: Counter[str] = field(default_factory=Counter)
    done: threading.Event = field(default_factory=threading.Event)


@contextmanager
def flooding(one: Hostile, suffix: str, count: int, *, window: int = FLOOD) -> Iterator[Flood]:
    """Ask for so many random names below a suffix, from another address; `window`: how many may wait for a reply."""
    flood = Flood()
    thread = threading.Thread(target=_flood, args=[flood, one.server.port, suffix, count, window], daemon=True)
    thread.start()
    try:
        yield flood
    finally:
        thread.join(120)


def _flood(flood: Flood, port: int, suffix: str, count: int, window: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * 2**20)
        client.bind((FLOODER, 0))
        client.connect((POD, port))
        sent = got = 0
        quiet = time.monotonic()
        while (sent < count or got < sent) and time.monotonic() - quiet < LAST:
            if sent < count and sent - got < window:
                client.send(query(f"x{sent}.{suffix}", ident=sent % 65_536))
                sent += 1
                quiet = time.monotonic()
            client.settimeout(PACE if sent < count and sent - got < window else 0.1)
            with suppress(TimeoutError):
                reply = client.recv(4096)
                flood.rcodes[dns.rcode.to_text(dns.rcode.Rcode(reply[3] & 15))] += 1
                got += 1
                quiet = time.monotonic()
    flood.done.set()
