"""From an Ingress on a real API server to the answer of a real resolver, which is a secondary of the policy zone."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.kit.apiserver import ApiServer
from tests.kit.polling import poll_until
from tests.kit.rpz.resolver import Resolver
from tests.kit.rpz.rigs import RESOLVERS, Kind, rig

pytestmark = [pytest.mark.peer("etcd", "kube-apiserver", "nsd"), pytest.mark.timeout(240)]

TARGET: Final = "192.0.2.10"
SLOWEST: Final = 20
"""Seconds that no resolver may take, below the zone's refresh of 60 s; the measured ones are printed."""
MANY: Final = {"bind": 50}
FEW: Final = 10
KINDS: Final = [pytest.param(kind, id=kind.name, marks=pytest.mark.peer(*kind.programs)) for kind in RESOLVERS]


@pytest.fixture
def namespace(apiserver: ApiServer, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace for one test; its Ingresses are deleted afterwards."""
    name = f"rpz-{request.node.callspec.id}"
    apiserver.create_namespace(name)
    yield name
    apiserver.delete_all_ingresses(namespace=name)


def seconds_until(resolver: Resolver, name: str, addresses: Sequence[str]) -> float:
    """Ask without a pause, as an impatient client does, whose early questions fill the resolver's cache."""
    start = time.monotonic()
    while resolver.addresses(name) != [*addresses]:
        assert time.monotonic() - start < SLOWEST, name
    return time.monotonic() - start


def percentiles(seconds: Sequence[float]) -> str:
    ordered = sorted(seconds)
    p50, p99 = ordered[len(ordered) // 2], ordered[-(-len(ordered) * 99 // 100) - 1]
    return f"p50 {p50 * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms"


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_ingress_is_answered_by_the_resolver_and_a_deleted_one_no_more(
    kind: Kind, apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    """Each Ingress follows at once on the answer for the one before: NOTIFY has its shortest interval between them."""
    options = ["--source", "ingress", "--kubeconfig", str(apiserver.kubeconfig), "--target", TARGET]
    apiserver.create_ingress("first", ["first.shop.example.org"], namespace=namespace)
    with rig(kind, tmp_path, options=options) as one:
        poll_until(lambda: one.resolver.addresses("first.shop.example.org") == [TARGET], "the first name", seconds=60)
        names = [f"app-{number}.{kind.name}.example.org" for number in range(MANY.get(kind.name, FEW))]
        assert one.resolver.rcode(names[0]) == "NXDOMAIN"
        took = []
        for number, name in enumerate(names):
            apiserver.create_ingress(f"app-{number}", [name], namespace=namespace)
            took.append(seconds_until(one.resolver, name, [TARGET]))
        apiserver.delete_ingress("app-0", namespace=namespace)
        gone = seconds_until(one.resolver, names[0], [])
        print(f"{kind.name}: new {percentiles(took)}; gone after {gone:.3f} s")  # noqa: T201  # to be seen with -rP
        for name in (*names[1:], "first.shop.example.org"):
            assert one.resolver.addresses(name) == [TARGET]
        assert one.resolver.rcode(names[0]) == "NXDOMAIN"
        assert one.resolver.addresses("www.example.org") == ["198.51.100.3"]
