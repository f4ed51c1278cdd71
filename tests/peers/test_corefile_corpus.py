"""Every Corefile of the corpus, with our stanza, in the newest and in the oldest supported CoreDNS.

The files are loaded unchanged. CoreDNS runs in a root folder with the files of its pod (those beside the Corefile, a
resolv.conf, a ServiceAccount), and in a separate network where every port and address of the file is free; `kubernetes`
uses a real API server. The one exception is a template of node-cache, which becomes a Corefile only after node-cache
inserts resolv.conf: the test does that too, after the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.placing import find_root_block, root_port
from dnsproxy.corefile.plan import Change, plan_install, plan_uninstall
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.corefile.corpus import Shape, load_corpus
from tests.kit.apiserver import ApiServer, running_apiserver
from tests.kit.coredns import coredns_version
from tests.kit.networks import NODE_ADDRESS, Networks, joined_networks, root
from tests.kit.nsd import running_nsd
from tests.kit.pods import make_pod
from tests.kit.serve_process import serving

__all__ = ["root"]

pytestmark = [
    pytest.mark.peer("coredns", "coredns-old", "kube-apiserver", "etcd", "nsd", "ip"),
    pytest.mark.usefixtures("root"),
]

DNSPROXY: Final = "10.96.0.53"
CACHE_ADDRESSES: Final = ("169.254.20.10", "169.254.25.10", "10.20.0.10", "10.43.0.10", "10.96.0.10")
"""The addresses on which the caches of the corpus listen on each node."""
UPSTREAMS: Final = ("192.0.2.53", "100.64.71.9")
"""The upstreams of those shapes in the corpus that do not use resolv.conf."""
IN_TABLE, RELAY = "shop.example.org", "192.0.2.1"
OUTSIDE, ALSO_OUTSIDE, PUBLIC = "www.example.org", "mail.example.org", "192.0.2.80"
KUBERNETES, FIRST_CLUSTER_IP = "kubernetes.default.svc.cluster.local", "10.96.0.1"


@dataclass(frozen=True)
class Cluster:
    """The environment of a CoreDNS: an API server, dnsproxy behind a ClusterIP, and the node's nameserver."""

    networks: Networks
    api: ApiServer


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with ExitStack() as stack:
        networks = stack.enter_context(joined_networks(services=(DNSPROXY, *UPSTREAMS), own=CACHE_ADDRESSES))
        with networks.node.entered():
            records = "".join(f"{name}. IN A {PUBLIC}\n" for name in (IN_TABLE, OUTSIDE, ALSO_OUTSIDE))
            stack.enter_context(running_nsd(folder, records, addresses=(NODE_ADDRESS, *UPSTREAMS)))
            own = ("--listen", f"{DNSPROXY}:53", "--host", f"{IN_TABLE}={RELAY}")
            stack.enter_context(serving(folder, *own, "--upstream", f"{NODE_ADDRESS}:53"))
        stack.enter_context(networks.pod.entered())
        yield Cluster(networks, stack.enter_context(running_apiserver(folder)))


def installed(text: str, peer: str) -> Change:
    return plan_install(text, addresses=[Endpoint(DNSPROXY, 53)], coredns_version=coredns_version(peer))


@pytest.mark.parametrize("peer", ["coredns", "coredns-old"])
@pytest.mark.parametrize("shape", load_corpus(), ids=lambda shape: shape.name)
def test_the_stanza_goes_in_is_loaded_answers_and_goes_out(
    shape: Shape, peer: str, cluster: Cluster, tmp_path: Path
) -> None:
    change = installed(shape.text, peer)
    assert change.changed
    assert not installed(change.new, peer).changed
    assert plan_uninstall(change.new).new == shape.text

    pod = make_pod(tmp_path, cluster.api, nameserver=NODE_ADDRESS)
    pod.write({**dict(shape.files), shape.path: shape.rendered(change.new)})
    port = root_port(find_root_block(parse_corefile(shape.text)))
    address = next((own for own in CACHE_ADDRESSES if f"bind {own}" in shape.text), "127.0.0.1")
    with pod.coredns(peer, conf=shape.path, address=address, port=port) as coredns:
        assert coredns.addresses(IN_TABLE) == [RELAY]
        assert coredns.addresses(OUTSIDE) == [PUBLIC]
        if not shape.node:
            assert coredns.addresses(KUBERNETES) == [FIRST_CLUSTER_IP]
        with cluster.networks.unreachable(DNSPROXY):
            assert coredns.addresses(ALSO_OUTSIDE) == [PUBLIC]
