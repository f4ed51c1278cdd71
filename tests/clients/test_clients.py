"""Every client against a real CoreDNS with our stanza, in pods of each address family; and against dnsproxy alone."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.clients import recorded
from tests.clients.cases import NEGATIVE, REMOVED, Lookups, outcomes, same_addresses
from tests.clients.clients import CLIENTS, Client, Session, running
from tests.clients.pods import DUAL, IPV4_ONLY, IPV6_ONLY, Pod, pod_on
from tests.clients.recorded import DIRECT, THROUGH_COREDNS
from tests.clients.servers import CLUSTER_DNS, DNSPROXY, PEERS, PUBLIC, REMOVED_NAMES, TARGET, Node, running_node
from tests.clients.tap import Tap, tapped
from tests.kit.networks import root
from tests.kit.polling import poll_until
from tests.kit.programs import find_program

TTL_AND_MORE = 15.0
"""Seconds: three times the TTL of our answers, and half of what Java keeps an address."""
LONGEST_CACHE = 60.0
WITHIN = "within the TTL"
LATER = "after its own cache"

pytestmark = pytest.mark.peer(*PEERS)

PODS = {
    "pod with IPv4": (IPV4_ONLY, THROUGH_COREDNS, CLUSTER_DNS),
    "pod with IPv6": (IPV6_ONLY, THROUGH_COREDNS, CLUSTER_DNS),
    "pod with both": (DUAL, THROUGH_COREDNS, CLUSTER_DNS),
    "without CoreDNS": (DUAL, DIRECT, DNSPROXY),
}


@pytest.fixture(scope="module")
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    request.getfixturevalue(root.__name__)
    with running_node(tmp_path_factory.mktemp("node")) as one:
        yield one


@dataclass(frozen=True)
class Place:
    """A pod, and how its clients ask."""

    pod: Pod
    tap: Tap
    way: str


@pytest.fixture(scope="module", params=PODS)
def place(request: pytest.FixtureRequest, node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    families, way, nameservers = PODS[request.param]
    number = list(PODS).index(request.param)
    folder = tmp_path_factory.mktemp("pod")
    with pod_on(node.network, families, nameservers, folder, number=number) as pod, tapped(pod.network) as tap:
        yield Place(pod, tap, way)


@pytest.mark.parametrize(
    "client", [pytest.param(client, id=client.name, marks=pytest.mark.peer(*client.peers)) for client in CLIENTS]
)
def test_a_client_sees_what_the_guide_says(client: Client, place: Place) -> None:
    with running(client, place.pod) as session:
        seen = outcomes(Lookups(session, place.tap))
        recorded.check(client.name, session.version, place.way, seen)


def test_a_removed_name_is_answered_by_public_dns_within_the_ttl(node: Node, tmp_path: Path) -> None:
    """All clients wait at the same time. Java keeps an address for longer than its TTL; no other client does."""
    present = [client for client in CLIENTS if all(map(find_program, client.peers))]
    with ExitStack() as stack:
        pod = stack.enter_context(pod_on(node.network, DUAL, CLUSTER_DNS, tmp_path, number=len(PODS)))
        waiting = {client.name: stack.enter_context(running(client, pod)) for client in present}
        for name, session in waiting.items():
            for removed in REMOVED_NAMES:
                answer = session.ask("any", removed)
                assert same_addresses(answer, list(TARGET.values())), (name, answer)
        start = time.monotonic()
        node.remove("app")
        took: dict[str, float] = {}

        def everyone_sees_it() -> bool:
            for name, session in waiting.items():
                if name not in took and _has_public_answers(session):
                    took[name] = time.monotonic() - start
            return len(took) == len(waiting)

        poll_until(everyone_sees_it, f"all of {list(waiting)} have the public answers", seconds=LONGEST_CACHE)
        for name, seconds in took.items():
            outcome = WITHIN if seconds < TTL_AND_MORE else LATER
            recorded.check(name, waiting[name].version, THROUGH_COREDNS, {REMOVED: outcome})


def _has_public_answers(session: Session) -> bool:
    """The public addresses of a name that public DNS has; no address of one that it has not."""
    public, none = (session.ask("any", name) for name in REMOVED_NAMES)
    for answer, otherwise in ((public, list(PUBLIC.values())), (none, [])):
        assert answer.outcome in ("found", *NEGATIVE)
        # A cache has A and AAAA each for itself: one may be of before while the other is of now.
        known = {ipaddress.ip_address(one) for one in (*TARGET.values(), *otherwise)}
        assert {ipaddress.ip_address(one) for one in answer.addresses} <= known, answer
    return same_addresses(public, list(PUBLIC.values())) and none.outcome in NEGATIVE
