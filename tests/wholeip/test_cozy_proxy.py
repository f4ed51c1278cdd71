"""A node that migrates from cozy-proxy: what deploy/migrating/cozy-proxy.md says of connections, in a real kernel."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio

from tests.kit.networks import Network, root
from tests.wholeip.scene.cluster import CLUSTER, OPEN_PORT, Cluster, address, balanced, cluster, install, mappings
from tests.wholeip.scene.cozy_proxy import COZY_PROXY
from wholeip.kernel.conntrack import end_flows
from wholeip.ruleset.ruleset import make_ruleset

__all__ = ["root"]
pytestmark = pytest.mark.peer("nft", "ip", "nsenter", "unshare")

LB = balanced("a", 4)


@pytest.fixture
def both(root: None) -> Iterator[Cluster]:  # noqa: ARG001  # skips who is not root
    with cluster() as made:
        made.node.run("nft", "-f", "-", script=COZY_PROXY)
        install(made)
        yield made


def judge_flows(made: Cluster) -> None:
    """As an agent does at its start."""
    ruleset = make_ruleset(mappings(), cluster=CLUSTER)
    with Network(made.node.process).entered():
        trio.run(end_flows, ruleset, ruleset)


def test_connections_are_taken_by_one_then_the_other_and_open_ones_go_on(both: Cluster) -> None:
    client = both.client
    own = address("client", 4)
    assert client.do("ask", kind="tcp", address=LB, port=OPEN_PORT) == own
    opened = client.do("open", kind="tcp", address=LB, port=OPEN_PORT)
    assert client.do("exchange", number=opened) == own
    both.node.run("nft", "delete", "table", "ip", "cozy_proxy")
    for kind in ("tcp", "udp"):
        assert client.do("ask", kind=kind, address=LB, port=OPEN_PORT) == own
    assert both.a.do("ask", kind="tcp", address=own, port=OPEN_PORT) == LB
    judge_flows(both)
    assert client.do("exchange", number=opened) == own
