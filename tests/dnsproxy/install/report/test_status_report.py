"""Table and document show the same report, and nothing in them drives a terminal."""

from __future__ import annotations

import json

import pytest

from dnsproxy.cluster_dns.probe_results import Outcome
from dnsproxy.install.report.status_document import format_document
from dnsproxy.install.report.status_report import format_rows
from dnsproxy.install.report.verdict import judge
from tests.dnsproxy.install.report.test_verdict import DNSPROXY, NO, NOTHING, YES, asked, report, report_of, with_stanza
from tests.kit.manifest_cluster import NAMES, discover, manifests, pick


def lines(objects: list[dict[str, object]], *rest: object) -> list[str]:
    return [" | ".join(row).rstrip() for row in format_rows(report(objects, *rest))]  # type: ignore[arg-type]


def test_the_table_of_a_cluster_with_the_stanza() -> None:
    answers = (asked(*YES.outcomes, endpoint=DNSPROXY),)
    objects = with_stanza()
    size = len(pick(objects, "ConfigMap", "coredns")["data"]["Corefile"])
    assert lines(objects, (YES,), answers) == [
        "service | ok | kube-system/kube-dns at 10.96.0.10",
        "server | ok | Deployment kube-system/coredns: CoreDNS 1.12.1, 2 of 2 pods ready, image "
        "registry.k8s.io/coredns/coredns:v1.12.1",
        f"  Corefile | ok | Corefile in ConfigMap kube-system/coredns, {size} characters, "
        "read as /etc/coredns/Corefile",
        "  owner |  | kubeadm (manager kubeadm): `kubeadm upgrade` carries edits over",
        "method | ok | corefile",
        " |  | ConfigMap kube-system/coredns has the Corefile of Deployment kube-system/coredns, and `kubeadm upgrade` "
        "carries edits over",
        " |  | writes Corefile in ConfigMap kube-system/coredns",
        "installed | ok | corefile: Corefile in ConfigMap kube-system/coredns, for ., asks 10.96.0.53",
        "loaded | ok | 10.96.0.10 for .: 2 of 2 dnsproxy",
        "dnsproxy | ok | 10.96.0.53 for .: 2 of 2 dnsproxy",
        "upstreams | ? | whether dnsproxy forwards where the cluster's DNS would: a dnsproxy does not report where it "
        "forwards: it is older",
    ]


@pytest.mark.parametrize(
    ("forwards", "row"),
    [
        pytest.param(
            ". /etc/resolv.conf",
            "upstreams | ok | dnsproxy forwards where ConfigMap kube-system/coredns does",
            id="the same",
        ),
        pytest.param(
            ". 192.0.2.9",
            "upstreams | no | names of . went to /etc/resolv.conf, and dnsproxy forwards them to 192.0.2.9",
            id="another",
        ),
        pytest.param(
            "a..b",
            "upstreams | ? | whether dnsproxy forwards where the cluster's DNS would: dnsproxy reports it in an "
            "unknown form",
            id="nonsense",
        ),
    ],
)
def test_it_compares_where_dnsproxy_forwards_with_the_block_of_the_stanza(forwards: str, row: str) -> None:
    answers = (asked(Outcome(ours=True, forwards=forwards), endpoint=DNSPROXY),)
    there = report(with_stanza(), (YES,), answers)
    assert row in [" | ".join(one) for one in format_rows(there)]
    verdict = judge(there)
    assert verdict.status == 0
    assert ("; but names of . went to" in verdict.text) is (forwards == ". 192.0.2.9")
    assert format_document(there, verdict)["upstreams"]["config_map"] == "kube-system/coredns"


def test_the_table_of_a_cluster_with_imports_and_of_one_with_a_cache() -> None:
    k3s = lines(manifests("k3s"), (NO,))
    assert (
        "  import | no | /etc/coredns/custom/*.override (line 20, in the server block of .): ConfigMap "
        "kube-system/coredns-custom, which does not exist yet; a forward in it is never asked, because one before it "
        "takes every query"
    ) in k3s
    assert "installed | no | nothing has Switchback's markers" in k3s
    assert "dnsproxy | ? | not asked: no address of it is known" in k3s
    gke = lines(manifests("gke"), (NOTHING,))
    assert "  stubDomains | ok | 1 stub domain in ConfigMap kube-system/kube-dns" in gke
    assert (
        " |  | pods ask it at 169.254.20.10, 10.20.0.10; it does not forward public names to the cluster's DNS" in gke
    )
    assert "loaded | ? | 10.96.0.10 for .: 1 of 1 no answer" in gke


def test_what_is_not_there_yet_and_what_takes_no_file_is_said() -> None:
    kops = lines(manifests("kops-nodelocal"), (NO,))
    assert "  stubDomains | ok | 0 stub domains in ConfigMap kube-system/kube-dns, which does not exist yet" in kops
    objects = manifests("aks")
    pick(objects, "ConfigMap", "coredns-custom")["immutable"] = True
    assert any(
        line.endswith("between the server blocks): ConfigMap kube-system/coredns-custom is immutable")
        for line in lines(objects, (NO,))
    )


def test_where_nothing_was_found_the_faults_are_in_the_table() -> None:
    assert lines([], ()) == [
        "service | no | no kube-dns in namespace kube-system",
        "server | no | not found",
        "method | no | none",
        "installed | no | nothing has Switchback's markers",
        "loaded | ? | not asked: no address of the cluster's DNS is known",
        "dnsproxy | ? | not asked: no address of it is known",
        "fault | no | there is no Service kube-dns in namespace kube-system; name the Service that pods ask with "
        "--dns-service",
    ]


def test_many_faults_are_counted() -> None:
    objects = manifests("k3s")
    data = {f"{number:03}.server": "{" for number in range(50)}
    objects.append(
        {"kind": "ConfigMap", "metadata": {"name": "coredns-custom", "namespace": "kube-system"}, "data": data}
    )
    assert lines(objects, ())[-1] == "fault | no | and 30 more"


def test_text_from_the_cluster_drives_no_terminal() -> None:
    objects = manifests("kubeadm")
    pick(objects, "ConfigMap", "coredns")["metadata"]["labels"] = {"helm.toolkit.fluxcd.io/name": "\x1b[2J\nx"}
    pick(objects, "Deployment", "coredns")["spec"]["template"]["spec"]["containers"][0]["image"] = "coredns\x1b]0;x\x07"
    text = "\n".join(lines(objects, (NO,)))
    assert "\x1b" not in text
    assert "helm.toolkit.fluxcd.io/name=\\x1b[2J x" in text


@pytest.mark.parametrize("name", NAMES)
def test_the_document_of_every_cluster_is_json_and_tells_what_the_table_does(name: str) -> None:
    made = report_of(discover(manifests(name)), (NO,))
    document = json.loads(json.dumps(format_document(made, judge(made))))
    assert document["status"] == 1
    assert document["choice"]["why"] == made.choice.why
    assert document["service"]["addresses"]
    assert document["server"]["workload"] == str(made.found.server)
    assert (document["node_local"] is None) is (made.found.node_local is None)
    assert document["read"]
    assert document["faults"] == []


def test_the_document_of_an_installed_cluster() -> None:
    made = report(with_stanza(), (YES,), (YES,))
    document = format_document(made, judge(made))
    assert document["installed"] == [
        {
            "method": "corefile",
            "target": {"config_map": "kube-system/coredns", "key": "Corefile"},
            "zones": ["."],
            "addresses": ["10.96.0.53:53"],
            "fault": "",
            "names": [],
        }
    ]
    assert document["loaded"] == [
        {"endpoint": "10.96.0.10:53", "zone": ".", "state": "yes", "ours": 2, "asks": 2, "said": "2 of 2 dnsproxy"}
    ]
    assert document["server"]["version"] == "1.12.1"
    assert document["server"]["corefile"]["owner"]["habit"] == "keeps"


def test_an_empty_cluster_has_a_document_too() -> None:
    made = report([], ())
    document = format_document(made, judge(made))
    assert (document["service"], document["server"], document["node_local"]) == (None, None, None)
    assert document["faults"][0]["blame"] == "contents"
