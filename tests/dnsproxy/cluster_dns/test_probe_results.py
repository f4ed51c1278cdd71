"""Results of probes: the state of a server, and the servers and zones to ask."""

from __future__ import annotations

import pytest

from dnsproxy.cluster_dns.probe_results import MOST_ZONES, Outcome, Presence, ProbeResult, places_to_ask, zones_to_ask
from dnsproxy.cluster_dns.traces import find_traces
from dnsproxy.corefile.rewrite_lines import format_rewrites
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.cluster_dns.test_traces import custom, marked
from tests.dnsproxy.corefile.shapes import installed
from tests.kit.manifest_cluster import Manifest, discover, manifests, pick

OURS, OTHER = Outcome(ours=True, rcode=0), Outcome(rcode=3)
SILENT = Outcome(fault="no answer")


def probed(*outcomes: Outcome) -> ProbeResult:
    return ProbeResult(Endpoint("10.96.0.10", 53), ".", outcomes)


def with_stanza() -> list[Manifest]:
    """A kubeadm cluster with the stanza."""
    objects = manifests("kubeadm")
    data = pick(objects, "ConfigMap", "coredns")["data"]
    data["Corefile"] = installed(data["Corefile"]).new
    return objects


@pytest.mark.parametrize(
    ("outcomes", "state"),
    [
        ((OURS, OURS), Presence.YES),
        ((OURS, OTHER), Presence.PARTLY),
        ((OURS, SILENT), Presence.PARTLY),
        ((OTHER, SILENT), Presence.NO),
        ((OTHER,), Presence.NO),
        ((SILENT, SILENT), Presence.SILENT),
        ((), Presence.SILENT),
    ],
)
def test_the_outcomes_of_a_server_are_one_state(outcomes: tuple[Outcome, ...], state: Presence) -> None:
    assert probed(*outcomes).state is state


def test_outcomes_are_counted() -> None:
    assert probed(OURS, OTHER, OTHER, SILENT).said == "2 of 4 NXDOMAIN, 1 of 4 dnsproxy, 1 of 4 no answer"
    assert probed(Outcome(ours=True, by="rewritten", rcode=0), OTHER).said == "1 of 2 rewritten, 1 of 2 NXDOMAIN"
    assert probed(Outcome(rcode=3, fault="no address")).said == "1 of 1 no address"
    assert probed(Outcome(rcode=11)).said == "1 of 1 RCODE 11"


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("kubeadm", ["10.96.0.10:53"]),
        ("kops-nodelocal", ["169.254.20.10:53"]),
        ("kops-forward", ["100.64.0.10:53"]),
        ("gke", ["169.254.20.10:53"]),
        ("openshift", ["172.30.0.10:53"]),
    ],
)
def test_the_servers_to_ask_are_those_that_pods_ask(name: str, places: list[str]) -> None:
    assert list(map(str, places_to_ask(discover(manifests(name))))) == places


def test_both_families_are_asked_and_an_invalid_address_is_not() -> None:
    objects = manifests("kubeadm")
    pick(objects, "Service", "kube-dns")["spec"]["clusterIPs"] = ["10.96.0.10", "2001:db8::a", "x"]
    assert list(map(str, places_to_ask(discover(objects)))) == ["10.96.0.10:53", "[2001:db8::a]:53"]
    assert places_to_ask(discover([])) == ()


def test_the_zones_that_are_installed_are_asked_for() -> None:
    assert zones_to_ask(()) == (".",)
    assert zones_to_ask(find_traces(discover(with_stanza()))) == (".",)
    keys = " ".join(f"z{number}.example.org" for number in range(9))
    found = discover(custom("k3s", switchback_server=marked(f"{keys} {{", "  forward . 10.96.0.53", "}")))
    assert len(zones_to_ask(find_traces(found))) == MOST_ZONES


def test_rewrite_lines_are_asked_for_by_their_marker() -> None:
    lines = format_rewrites([], "cluster.local")
    traces = find_traces(discover(custom("cozystack", switchback_override=marked(*lines))))
    (zone,) = zones_to_ask(traces)
    assert zone.endswith("._switchback-rewrites.cluster.local")
