"""The cluster domains of real Corefiles, and of files that tell none."""

from __future__ import annotations

import pytest

from dnsproxy.corefile.cluster_zones import cluster_zones
from dnsproxy.corefile.parser import parse_corefile

KUBEADM = """.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    forward . /etc/resolv.conf
    cache 30
}
"""
CHART = """.:53 {
    kubernetes   cluster.local  cluster.local in-addr.arpa ip6.arpa {
        pods insecure
    }
    forward . 192.0.2.53
}
"""
TENANT = """.:53 {
    import /etc/coredns/custom/*.override
    kubernetes cozy.local cluster.local in-addr.arpa ip6.arpa
    forward . 192.0.2.53
}
import /etc/coredns/custom/*.server
"""


@pytest.mark.parametrize(
    ("text", "domains"),
    [
        pytest.param(KUBEADM, ("cluster.local",), id="kubeadm, k3s"),
        pytest.param(CHART, ("cluster.local",), id="the chart of RKE2, each once"),
        pytest.param(TENANT, ("cozy.local", "cluster.local"), id="two domains"),
        pytest.param(".:53 {\n kubernetes K8S.Example.Org. 10.96.0.0/12\n}\n", ("k8s.example.org",), id="a CIDR"),
        pytest.param(
            "k8s.example.org:53 {\n kubernetes {\n pods insecure\n }\n}\n", ("k8s.example.org",), id="its block's"
        ),
        pytest.param("a.test b.test {\n kubernetes\n}\n", ("a.test", "b.test"), id="a block with two keys"),
        pytest.param(
            ". {\n kubernetes a.test\n}\nb.test {\n kubernetes b.test\n}\n", ("a.test", "b.test"), id="two blocks"
        ),
        pytest.param("(k) {\n kubernetes a.test\n}\n. {\n import k\n}\n", ("a.test",), id="a snippet"),
        pytest.param(". {\n kubernetes a.test\n kubernetes b.test\n}\n", ("a.test", "b.test"), id="twice in a block"),
        pytest.param(".:53 {\n kubernetes\n}\n", (), id="only the root"),
        pytest.param(".:53 {\n kubernetes {$DOMAIN} in-addr.arpa\n}\n", (), id="an environment variable"),
        pytest.param(".:53 {\n kubernetes 10.in-addr.arpa ip6.arpa\n}\n", (), id="reverse zones"),
        pytest.param(".:53 {\n kubernetes a..b\n}\n", (), id="not a zone"),
        pytest.param(".:53 {\n forward . 192.0.2.53\n}\n", (), id="without the plugin"),
        pytest.param("import /etc/coredns/all\n", (), id="an imported file"),
        pytest.param("# kubernetes a.test\n", (), id="a comment"),
        pytest.param("", (), id="empty"),
    ],
)
def test_the_zones_of_the_plugin_are_the_cluster_domains(text: str, domains: tuple[str, ...]) -> None:
    assert cluster_zones(parse_corefile(text)).zones == domains


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        pytest.param(KUBEADM, True, id="kubeadm"),
        pytest.param(TENANT, True, id="imports beside the plugin"),
        pytest.param(". {\n forward . 192.0.2.53\n}\n", True, id="without the plugin"),
        pytest.param(". {\n kubernetes {$DOMAIN} b.test\n}\n", False, id="an environment variable among its zones"),
        pytest.param("{$ZONE} {\n kubernetes\n}\n", False, id="an environment variable as the block's key"),
        pytest.param("import /etc/coredns/all\n", False, id="only an imported file"),
        pytest.param(". {\n import /etc/coredns/parts\n}\n", False, id="an imported file in the block"),
    ],
)
def test_zones_may_be_hidden(text: str, complete: bool) -> None:
    assert cluster_zones(parse_corefile(text)).complete is complete
