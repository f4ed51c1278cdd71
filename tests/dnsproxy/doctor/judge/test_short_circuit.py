"""kube-proxy, Cilium and others: which of them short-circuits what."""

from __future__ import annotations

import pytest

from dnsproxy.doctor.facts.model import BalancerAddress, Component
from dnsproxy.doctor.judge.diagnose import judge
from dnsproxy.doctor.judge.findings import Severity
from dnsproxy.doctor.judge.short_circuit import Answer, data_plane, short_circuit
from tests.dnsproxy.doctor.making import (
    BALANCER,
    BOTH,
    DEPLOYED,
    HOSTNAME,
    IP,
    KUBE_PROXY,
    OLD_IP,
    PROXY_MODE,
    REQUIRES,
    answering,
    controller_probes,
    diagnose,
    facts,
    ids,
    lines,
    named,
    probes_at,
    service,
)

YES, NO, UNKNOWN = Answer.YES, Answer.NO, Answer.UNKNOWN


def cilium(version: str, replacement: str | None = "true") -> Component:
    settings = {} if replacement is None else {"kube-proxy-replacement": replacement}
    return Component("cilium", "DaemonSet kube-system/cilium", version, settings)


def proxy(version: str, mode: str = "") -> Component:
    return Component("kube-proxy", "DaemonSet kube-system/kube-proxy", version, {"mode": mode} if mode else {})


def other(name: str, version: str = "v3.30.0", **settings: str) -> Component:
    return Component(name, f"DaemonSet kube-system/{name}", version, settings)


def early(version: str, value: str = "true") -> Component:
    """Cilium with the program that reads Services since 1.18."""
    settings = {"kube-proxy-replacement": "true", "enable-experimental-lb": value}
    return Component("cilium", "DaemonSet kube-system/cilium", version, settings)


HONOURING = [
    pytest.param([early("v1.17.8")], "v1.34.4", NO, id="Cilium 1.17 with the program of 1.18"),
    pytest.param([early("v1.16.0")], "v1.34.4", NO, id="Cilium 1.16 with the program of 1.18"),
    pytest.param([early("v1.17.8", "false")], "v1.34.4", YES, id="Cilium 1.17 without the program of 1.18"),
    pytest.param([early("v1.17.8", "")], "v1.34.4", YES, id="an empty setting"),
    pytest.param([early("v1.18.1")], "v1.34.4", YES, id="a setting that Cilium 1.18 does not read"),
    pytest.param([proxy("v1.34.4")], "v1.34.4", YES, id="kube-proxy 1.34"),
    pytest.param([proxy("v1.30.0", "ipvs")], "v1.30.0", YES, id="kube-proxy 1.30, ipvs"),
    pytest.param([proxy("v1.34.4", "nftables")], "v1.34.4", YES, id="nftables"),
    pytest.param([proxy("v1.29.9")], "v1.29.9", NO, id="kube-proxy 1.29: behind a gate"),
    pytest.param([proxy("v1.28.0")], "v1.31.0", NO, id="nodes older than the API server"),
    pytest.param([proxy("v1.31.0")], "v1.29.0", NO, id="an API server that drops the field"),
    pytest.param([proxy("latest")], "v1.32.1", YES, id="an image without a version"),
    pytest.param([proxy("sha")], "", UNKNOWN, id="no version known"),
    pytest.param([], "v1.33.5+k3s1", YES, id="k3s has it built in"),
    pytest.param([], "v1.28.5+k3s1", NO, id="an old k3s"),
    pytest.param([], "v1.31.2+rke2r1", YES, id="RKE2"),
    pytest.param([], "v1.34.4", UNKNOWN, id="no data plane recognised"),
    pytest.param([], "garbage", UNKNOWN, id="no version at all"),
    pytest.param([cilium("v1.17.0")], "v1.34.4", YES, id="Cilium 1.17.0"),
    pytest.param([cilium("v1.17.9")], "v1.34.4", YES, id="Cilium 1.17.9"),
    pytest.param([cilium("v1.16.9")], "v1.34.4", NO, id="Cilium 1.16"),
    pytest.param([cilium("v1.17.0-rc.1")], "v1.34.4", NO, id="Cilium before 1.17.0"),
    pytest.param([cilium("v1.18.0")], "v1.34.4", NO, id="Cilium 1.18.0"),
    pytest.param([cilium("v1.18.0-rc.0")], "v1.34.4", NO, id="Cilium before 1.18.0"),
    pytest.param([cilium("v1.18.1")], "v1.34.4", YES, id="Cilium 1.18.1"),
    pytest.param([cilium("1.19.2")], "v1.34.4", YES, id="Cilium 1.19"),
    pytest.param([cilium("latest")], "v1.34.4", UNKNOWN, id="Cilium without a version"),
    pytest.param([cilium("v1.18.0", "strict")], "v1.34.4", NO, id="strict"),
    pytest.param([cilium("v1.18.0", None)], "v1.34.4", NO, id="no kube-proxy beside it"),
    pytest.param([cilium("v1.18.0", None), KUBE_PROXY], "v1.34.4", YES, id="kube-proxy beside it, nothing set"),
    pytest.param([cilium("v1.18.0", "false"), KUBE_PROXY], "v1.34.4", YES, id="Cilium that leaves it to kube-proxy"),
    pytest.param([cilium("v1.18.0", "true"), KUBE_PROXY], "v1.34.4", NO, id="both, and Cilium takes it"),
    pytest.param([cilium("v1.18.0", "disabled")], "v1.34.4", UNKNOWN, id="disabled, and nothing else"),
    pytest.param([other("antrea", "v2.0.0")], "v1.34.4", YES, id="Antrea 2.0"),
    pytest.param([other("antrea", "v1.15.1")], "v1.34.4", NO, id="Antrea 1.15"),
    pytest.param([other("antrea", "")], "v1.34.4", UNKNOWN, id="Antrea without a version"),
    pytest.param([other("calico", **{"service-proxy": "true"})], "v1.34.4", UNKNOWN, id="Calico eBPF"),
    pytest.param([other("calico"), KUBE_PROXY], "v1.34.4", YES, id="Calico beside kube-proxy"),
    pytest.param([other("ovn-kubernetes", **{"service-proxy": "true"})], "v1.34.4", UNKNOWN, id="OVN-Kubernetes"),
    pytest.param([other("kube-router", **{"service-proxy": "true"})], "v1.34.4", UNKNOWN, id="kube-router"),
    pytest.param([other("kube-router"), KUBE_PROXY], "v1.34.4", YES, id="kube-router that leaves Services alone"),
]  # fmt: skip


@pytest.mark.parametrize(("components", "server", "honours"), HONOURING)
def test_whether_ip_mode_is_honoured_follows_from_program_and_version(
    components: list[Component], server: str, honours: Answer
) -> None:
    plane = data_plane(facts(components=tuple(components), server_version=server))
    assert plane.honours_ip_mode is honours
    expected = {YES: NO, NO: YES, UNKNOWN: UNKNOWN}[honours]
    assert short_circuit(service(points=PROXY_MODE), plane).state is expected
    assert short_circuit(service(points=OLD_IP), plane).state is YES
    assert short_circuit(service(points=HOSTNAME), plane).state is NO


@pytest.mark.parametrize(
    ("workloads", "wanted"),
    [
        (["kube-system/cilium", "tenant-a/cilium"], "kube-system/cilium"),
        (["kube-system/cilium", "zz-tenant/cilium"], "kube-system/cilium"),
        (["cilium/cilium", "kube-system-2/cilium", "my-kube-system/cilium"], "cilium/cilium"),
        (["b/cilium", "a/cilium"], "a/cilium"),
        ([""], ""),
    ],
    ids=["first by text", "last by text", "none in kube-system", "by text", "not told"],
)
def test_of_several_programs_of_one_name_in_saved_facts_that_of_kube_system_counts(
    workloads: list[str], wanted: str
) -> None:
    settings = {"kube-proxy-replacement": "true"}
    made = [Component("cilium", f"DaemonSet {one}" if one else "", "v1.18.1", settings) for one in workloads]
    for components in (made, made[::-1]):
        plane = data_plane(facts(components=tuple(components)))
        assert plane.why.startswith(f"DaemonSet {wanted} " if wanted else "cilium ")


@pytest.mark.parametrize(
    ("points", "state", "addresses"),
    [
        (IP, YES, (BALANCER,)),
        (OLD_IP, YES, (BALANCER,)),
        (BOTH, YES, (BALANCER,)),
        (PROXY_MODE, NO, ()),
        (HOSTNAME, NO, ()),
        ((BalancerAddress(hostname="a.example.org"), BalancerAddress(ip=BALANCER)), YES, (BALANCER,)),
        ((*PROXY_MODE, BalancerAddress(ip="2001:db8::1")), YES, ("2001:db8::1",)),
        ((*PROXY_MODE, BalancerAddress(ip="2001:db8::1", ip_mode="Proxy")), NO, ()),
        ((BalancerAddress(ip=BALANCER, ip_mode="Tunnel"),), UNKNOWN, (BALANCER,)),
        ((BalancerAddress(),), NO, ()),
        ((), NO, ()),
    ],
    ids=["VIP", "no ipMode", "ip and hostname", "Proxy", "hostname", "one of each", "one family forgotten",
         "both families Proxy", "a mode that is not known", "an empty entry", "no status"],
)  # fmt: skip
def test_what_is_short_circuited_follows_from_the_status(
    points: tuple[BalancerAddress, ...], state: Answer, addresses: tuple[str, ...]
) -> None:
    found = short_circuit(service(points=points), data_plane(facts()))
    assert (found.state, found.addresses) == (state, addresses)
    assert found.empty is (points == ())
    assert found.evidence


def test_one_family_whose_ip_mode_is_ignored_is_told_from_the_other() -> None:
    points = (BalancerAddress(ip=BALANCER), BalancerAddress(ip="2001:db8::1", ip_mode="Proxy"))
    found = short_circuit(service(points=points), data_plane(facts(components=(cilium("v1.18.0"),))))
    assert (found.addresses, found.ignored) == ((BALANCER, "2001:db8::1"), ("2001:db8::1",))
    honoured = short_circuit(service(points=points), data_plane(facts(components=(cilium("v1.18.1"),))))
    assert (honoured.addresses, honoured.ignored) == ((BALANCER,), ())
    answers = (answering("2001:db8::1"),)
    probes = (*controller_probes(REQUIRES), *probes_at("2001:db8::1", REQUIRES))
    seen = facts(service(points=points), components=(cilium("v1.18.0"),), lookups=answers, probes=probes)
    assert "ip-mode-ignored" in ids(judge(seen))


def test_external_ips_are_short_circuited_with_any_ip_mode() -> None:
    one = service(points=PROXY_MODE, external_ips=("198.51.100.7",))
    found = short_circuit(one, data_plane(facts()))
    assert (found.state, found.addresses) == (YES, ("198.51.100.7",))
    assert "to which ipMode does not apply" in " ".join(found.evidence)


def test_antrea_can_be_configured_to_leave_load_balancers_alone() -> None:
    plane = data_plane(facts(components=(other("antrea", "v1.13.0", proxyLoadBalancerIPs="false"),)))
    assert short_circuit(service(), plane).state is NO


def test_ip_mode_that_is_ignored_is_a_finding_of_its_own() -> None:
    diagnosis = diagnose(service(points=PROXY_MODE), components=(cilium("v1.18.0"),))
    finding = named(diagnosis, "ip-mode-ignored")
    assert finding.severity is Severity.PROBLEM
    assert finding.steps[0].text == "upgrade Cilium to 1.18.1 or newer"
    assert lines(finding)[-2:] == DEPLOYED
    assert "short-circuited" not in ids(diagnosis)


def test_an_upgrade_comes_before_an_annotation_without_effect() -> None:
    one = service({"lb.stackit.cloud/tcp-proxy-protocol": "true"})
    old = diagnose(one, components=(proxy("v1.28.0"),), server_version="v1.28.0")
    assert "first upgrade Kubernetes to 1.30 or newer" in named(old, "short-circuited").steps[0].text
    ignoring = diagnose(one, components=(cilium("v1.18.0"),))
    assert "first upgrade Cilium to 1.18.1 or newer" in named(ignoring, "short-circuited").steps[0].text
    unknown = diagnose(one, components=(other("kube-router", **{"service-proxy": "true"}),))
    assert "honours ipMode is unknown" in named(unknown, "short-circuited").steps[0].text


def test_the_mode_of_kube_proxy_is_evidence() -> None:
    diagnosis = diagnose(components=(proxy("v1.34.4", "ipvs"),))
    assert "mode: ipvs" in " ".join(named(diagnosis, "short-circuited").evidence)


def test_a_long_setting_is_not_repeated_whole() -> None:
    plane = data_plane(facts(components=(cilium("v" + "1" * 200_000, "x" * 200_000),)))
    assert all(len(text) < 1_000 for text in (plane.name, plane.why, plane.remedy))
