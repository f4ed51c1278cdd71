"""The printed text for each owner, turned into a Corefile in the owner's way, in a real CoreDNS."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from dnsproxy.cluster_dns.method_choice import Method, choose_method
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.placing import find_root_block, root_port
from dnsproxy.install.change.config_map import Wanted
from dnsproxy.install.report.printing import print_for
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.install.report.rendered import RENDERERS
from tests.kit.manifest_cluster import discover, manifests
from tests.kit.networks import NODE_ADDRESS, root
from tests.kit.pods import make_pod
from tests.peers.test_corefile_corpus import (
    ALSO_OUTSIDE,
    DNSPROXY,
    FIRST_CLUSTER_IP,
    IN_TABLE,
    KUBERNETES,
    OUTSIDE,
    PUBLIC,
    RELAY,
    Cluster,
    cluster,
)

__all__ = ["cluster", "root"]

pytestmark = [pytest.mark.peer("coredns", "kube-apiserver", "etcd", "nsd", "ip"), pytest.mark.usefixtures("root")]

WANTED = Wanted((Endpoint(DNSPROXY, 53),))
ZONE = Wanted((Endpoint(DNSPROXY, 53),), (IN_TABLE,))


@pytest.mark.parametrize("name", list(RENDERERS))
def test_the_owners_corefile_is_loaded_and_answers(name: str, cluster: Cluster, tmp_path: Path) -> None:
    found = discover(manifests(name))
    server = found.asked_by_pods
    assert server is not None
    assert server.corefile is not None
    # The operator of OpenShift accepts only zones, and no second upstream such as resolv.conf.
    printed = print_for(found, choose_method(found, Method.PRINT), ZONE if name == "openshift" else WANTED)
    text = RENDERERS[name](printed, server.corefile.text)
    assert_answers(cluster, tmp_path, {server.corefile.path: text}, server.corefile.path)


@pytest.mark.parametrize("name", ["aks", "k3s"])
def test_the_printed_key_is_loaded_through_its_import_and_answers(name: str, cluster: Cluster, tmp_path: Path) -> None:
    found = discover(manifests(name))
    server = found.asked_by_pods
    assert server is not None
    assert server.corefile is not None
    printed = print_for(found, choose_method(found, Method.PRINT), ZONE)
    custom = {f"/etc/coredns/custom/{key}": text for key, text in yaml.safe_load(printed.text)["data"].items()}
    beside = {"/etc/coredns/NodeHosts": "192.0.2.9 node\n"}
    corefile = server.corefile
    assert_answers(cluster, tmp_path, {corefile.path: corefile.text, **custom, **beside}, corefile.path)


def assert_answers(cluster: Cluster, folder: Path, files: dict[str, str], conf: str) -> None:
    """Names of the table resolve by dnsproxy, others by the upstream, the cluster's by CoreDNS; also without us."""
    pod = make_pod(folder, cluster.api, nameserver=NODE_ADDRESS)
    pod.write(files)
    port = root_port(find_root_block(parse_corefile(files[conf])))
    with pod.coredns("coredns", conf=conf, address="127.0.0.1", port=port) as coredns:
        assert coredns.addresses(IN_TABLE) == [RELAY]
        assert coredns.addresses(OUTSIDE) == [PUBLIC]
        assert coredns.addresses(KUBERNETES) == [FIRST_CLUSTER_IP]
        with cluster.networks.unreachable(DNSPROXY):
            assert coredns.addresses(ALSO_OUTSIDE) == [PUBLIC]
