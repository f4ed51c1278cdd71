"""Names that objects claim, at real resolvers with the policy zone: replaced by where their public record leads.

The objects are Ingresses on a real API server, the public DNS is an NSD. What the guide's page says that each resolver
does is asked here.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import dns.rcode
import pytest

from tests.kit.apiserver import ApiServer
from tests.kit.polling import poll_until
from tests.kit.rpz.rigs import RESOLVERS, Kind, Rig, rig

pytestmark = [pytest.mark.peer("etcd", "kube-apiserver", "nsd"), pytest.mark.timeout(240)]

SOON: Final = 30
"""Seconds, below the zone's refresh."""
BY_NAMES: Final = "knot-resolver"
"""It knows no response-IP triggers."""
KINDS: Final = [
    pytest.param(kind, id=kind.name, marks=pytest.mark.peer(*kind.programs))
    for kind in RESOLVERS
    if kind.name != BY_NAMES
]
KNOT: Final = [
    pytest.param(kind, id=kind.name, marks=pytest.mark.peer(*kind.programs))
    for kind in RESOLVERS
    if kind.name == BY_NAMES
]

BALANCER, BALANCER6, MOVED = "203.0.113.10", "2001:db8:a::10", "203.0.113.11"
"""Of the controller: in the status of its Ingresses."""
GIVEN: Final = "203.0.113.20"
"""Another load balancer, which --replace names."""
TARGET, TARGET6, GIVEN_TARGET = "192.0.2.10", "2001:db8:b::10", "192.0.2.20"
OTHER, OTHER6 = "198.51.100.3", "2001:db8:ffff::3"
PUBLIC: Final = f"""\
here IN A {BALANCER}
here IN AAAA {BALANCER6}
here IN HTTPS 1 . ipv4hint={BALANCER}
here IN TXT "of the upstream"
elsewhere IN A {OTHER}
elsewhere IN AAAA {OTHER6}
both IN A {BALANCER}
both IN A {OTHER}
moved IN A {MOVED}
router IN A 192.0.2.129
unclaimed IN A {BALANCER}
given IN A {GIVEN}
given IN AAAA {OTHER6}
alias IN CNAME here
owned IN A {OTHER}
hidden.apps IN A {BALANCER}
www IN A {OTHER}
"""
CLAIMED: Final = ("here", "elsewhere", "both", "moved", "router", "missing", "hidden.apps", "owned")
OPTIONS: Final = (
    *("--source", "ingress", "--target", f"{TARGET},{TARGET6}", "--ownership", "verify"),
    *("--replace", f"{GIVEN}={GIVEN_TARGET}", "--trust", "192.0.2.128/25"),
    *("--host", "owned.example.org=192.0.2.30", "--host", "*.apps.example.org=192.0.2.31"),
)


_NUMBERS: Final = itertools.count()


def set_status(api: ApiServer, name: str, *addresses: str, namespace: str) -> None:
    """What the controller writes: the addresses of its load balancer."""
    points = [{"ip": one} for one in addresses]
    path = f"/apis/networking.k8s.io/v1/namespaces/{namespace}/ingresses/{name}/status"
    patch: dict[str, Any] = {"status": {"loadBalancer": {"ingress": points}}}
    api.request("PATCH", path, patch, content_type="application/merge-patch+json")


@contextmanager
def playing(kind: Kind, api: ApiServer, folder: Path, *options: str) -> Iterator[tuple[Rig, str]]:
    """A rig whose table has the Ingresses of a namespace, which is returned too."""
    namespace = f"balancers-{next(_NUMBERS)}"
    api.create_namespace(namespace)
    try:
        api.create_ingress("app", [f"{name}.example.org" for name in CLAIMED], namespace=namespace)
        set_status(api, "app", BALANCER, BALANCER6, namespace=namespace)
        flags = [*OPTIONS, "--kubeconfig", str(api.kubeconfig), "--namespace", namespace, *options]
        with rig(kind, folder, options=flags, names=PUBLIC) as one:
            poll_until(lambda: one.resolver.addresses("here.example.org") == [TARGET], "the first transfer", seconds=60)
            yield one, namespace
    finally:
        api.delete_all_ingresses(namespace=namespace)


@pytest.fixture(scope="module", params=KINDS)
def world(
    request: pytest.FixtureRequest, apiserver: ApiServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Rig]:
    with playing(request.param, apiserver, tmp_path_factory.mktemp("rpz")) as (one, _):
        yield one


ANSWERS: Final = {
    "a name that leads to the load balancer": ("here", "A", [TARGET]),
    "the same over IPv6": ("here", "AAAA", [TARGET6]),
    "a name that leads elsewhere": ("elsewhere", "A", [OTHER]),
    "the same over IPv6, elsewhere": ("elsewhere", "AAAA", [OTHER6]),
    "a name that nobody has": ("missing", "A", []),
    "a family that nobody has": ("missing", "AAAA", []),
    "two addresses, one of them the load balancer's: both are replaced": ("both", "A", [TARGET]),
    "a name that no object claims": ("unclaimed", "A", [TARGET]),
    "an address that --replace names": ("given", "A", [GIVEN_TARGET]),
    "its other family leads elsewhere": ("given", "AAAA", [OTHER6]),
    "an address that no status has": ("moved", "A", [MOVED]),
    "an address that --trust names leads here for the table alone": ("router", "A", ["192.0.2.129"]),
    "a name of the owner's word": ("owned", "A", ["192.0.2.30"]),
    "below a wildcard of the owner's word": ("x.apps", "A", ["192.0.2.31"]),
    "a name of others": ("www", "A", [OTHER]),
}


def test_a_resolver_replaces_what_leads_to_the_load_balancer_and_nothing_else(world: Rig) -> None:
    for row, (name, rdtype, expected) in ANSWERS.items():
        assert world.resolver.addresses(f"{name}.example.org", rdtype) == expected, row
        # From the resolver's cache too.
        assert world.resolver.addresses(f"{name}.example.org", rdtype) == expected, row


def test_a_claimed_name_below_a_wildcard_passes_and_is_not_replaced(world: Rig) -> None:
    """The rule to let it pass precedes those about addresses; Unbound forgets that for what it has in its cache."""
    assert world.resolver.addresses("hidden.apps.example.org") == [BALANCER]
    cached = TARGET if world.kind.name == "unbound" else BALANCER
    assert world.resolver.addresses("hidden.apps.example.org") == [cached]


def test_a_name_that_nobody_has_stays_unknown_though_the_table_has_it(world: Rig) -> None:
    """The table answers it; a resolver has no rule for it."""
    assert world.resolver.rcode("missing.example.org") == "NXDOMAIN"


def test_an_alias_of_a_name_that_leads_here_is_replaced_at_its_end(world: Rig) -> None:
    reply = world.resolver.ask("alias.example.org")
    records = [record for answer in reply.answer for record in answer]
    assert [str(record) for record in records] == ["here.example.org.", TARGET]


@pytest.mark.parametrize("rdtype", ["TXT", "HTTPS", "MX"])
def test_other_types_of_a_claimed_name_are_the_upstreams(world: Rig, rdtype: str) -> None:
    """Also the hints of HTTPS, which dnsproxy replaces."""
    found, expected = (one.ask("here.example.org", rdtype) for one in (world.resolver, world.upstream))
    assert (found.rcode(), found.answer) == (expected.rcode(), expected.answer)


def test_the_primary_tells_what_is_not_replaced(world: Rig) -> None:
    assert "what leads here and resolvers with the policy zone do not replace" in world.publisher.log


@pytest.mark.parametrize("kind", KINDS)
def test_another_address_of_the_load_balancer_is_replaced_from_its_status_on(
    kind: Kind, apiserver: ApiServer, tmp_path: Path
) -> None:
    """Asked for before, so that the resolver's cache has the answers; without a change of any name."""
    with playing(kind, apiserver, tmp_path, "--hold", "0") as (one, namespace):
        assert one.resolver.addresses("moved.example.org") == [MOVED]
        set_status(apiserver, "app", MOVED, namespace=namespace)
        poll_until(lambda: one.resolver.addresses("moved.example.org") == [TARGET], "the new address", seconds=SOON)
        # The addresses of before still lead here: public DNS, and caches, have them for a while.
        assert one.resolver.addresses("here.example.org") == [TARGET]
        assert one.resolver.addresses("here.example.org", "AAAA") == [TARGET6]
        assert one.resolver.addresses("given.example.org") == [GIVEN_TARGET]


@pytest.mark.parametrize("kind", KINDS)
def test_with_triggers_of_addresses_a_resolver_that_verifies_replaces_what_is_signed(
    kind: Kind, apiserver: ApiServer, tmp_path: Path
) -> None:
    flags = [*OPTIONS, "--kubeconfig", str(apiserver.kubeconfig)]
    with rig(kind, tmp_path, options=flags, names=PUBLIC, is_signed=True) as one:
        poll_until(lambda: one.resolver.addresses("given.example.org") == [GIVEN_TARGET], "the zone", seconds=60)
        for dnssec in (False, True):
            reply = one.resolver.ask("given.example.org", dnssec=dnssec)
            assert [str(record) for answer in reply.answer for record in answer] == [GIVEN_TARGET]
        assert one.resolver.addresses("www.example.org") == [OTHER]


NAMES: Final = {
    "a name that leads to the load balancer": ("here", [TARGET]),
    "a name that leads elsewhere": ("elsewhere", [TARGET]),
    "a name that nobody has": ("missing", [TARGET]),
    "a name with two addresses": ("both", [TARGET]),
    "below a wildcard of the owner's word": ("hidden.apps", [TARGET]),
    "a name that no object claims": ("unclaimed", [BALANCER]),
    "an address that --replace names": ("given", [GIVEN]),
}


@pytest.mark.parametrize("kind", [*KNOT, *KINDS])
def test_with_triggers_of_names_every_name_is_answered_and_no_address_replaced(
    kind: Kind, apiserver: ApiServer, tmp_path: Path
) -> None:
    with playing(kind, apiserver, tmp_path, "--rpz-triggers", "names") as (one, _):
        for row, (name, expected) in NAMES.items():
            assert one.resolver.addresses(f"{name}.example.org") == expected, row
        assert one.resolver.addresses("here.example.org", "AAAA") == [TARGET6]
        assert dns.rcode.to_text(one.resolver.ask("here.example.org", "TXT").rcode()) == "NOERROR"
        assert one.resolver.ask("here.example.org", "TXT").answer == []


@pytest.mark.parametrize("kind", KNOT)
def test_knot_resolver_does_nothing_with_triggers_of_addresses_and_still_answers_names(
    kind: Kind, apiserver: ApiServer, tmp_path: Path
) -> None:
    """A flag that was forgotten: names of the owner's word stay, the others are the upstream's."""
    flags = [*OPTIONS, "--kubeconfig", str(apiserver.kubeconfig)]
    with rig(kind, tmp_path, options=flags, names=PUBLIC) as one:
        poll_until(lambda: one.resolver.addresses("owned.example.org") == ["192.0.2.30"], "the zone", seconds=60)
        assert one.resolver.addresses("given.example.org") == [GIVEN]
        assert one.resolver.addresses("x.apps.example.org") == ["192.0.2.31"]
