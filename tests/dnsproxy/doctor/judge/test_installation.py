"""The folder that the doctor names, and whether names are steered by route Services."""

from __future__ import annotations

from typing import Any, Final

import pytest
from msgspec.structs import replace

from dnsproxy.cluster_dns.owner import Form
from dnsproxy.doctor.facts.cluster_dns import ClusterDns
from dnsproxy.doctor.facts.model import Facts, OwnService
from dnsproxy.doctor.judge.installation import folder, image_of, is_automatic, prints
from dnsproxy.doctor.judge.remedies import install_lines, install_step, look_from_inside
from tests.dnsproxy.doctor.making import DEPLOYED, facts, installed
from tests.kit.launched import ROOT

WHERE: Final = "Deployment kube-system/coredns"
READ: Final = ClusterDns(where=WHERE)


def owned(form: Form) -> ClusterDns:
    """A DNS whose owner takes text."""
    return ClusterDns(where=WHERE, printed_as=form.value)


CLUSTERS: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "a DNS that may be written": ({"dns": READ}, "deploy"),
    "EKS add-on": ({"dns": owned(Form.EKS_ADDON), "server_version": "v1.34.4-eks-3025e55"}, "deploy/overlays/eks"),
    "EKS, a CoreDNS of its own": ({"dns": READ, "server_version": "v1.34.4-eks-3025e55"}, "deploy"),
    "RKE2": ({"dns": owned(Form.HELM_CHART_CONFIG), "server_version": "v1.34.4+rke2r1"}, "deploy/overlays/rke2"),
    "RKE2, its cache takes stub domains": ({"dns": READ, "server_version": "v1.34.4+rke2r1"}, "deploy"),
    "OpenShift": ({"dns": owned(Form.OPENSHIFT_DNS)}, "deploy/overlays/openshift"),
    "kops": ({"dns": owned(Form.KOPS_CLUSTER), "provider": "aws"}, "deploy/overlays/kops"),
    "k0s": ({"dns": owned(Form.K0S_CLUSTER), "server_version": "v1.34.4+k0s"}, "deploy/overlays/k0s"),
    "Helm values": ({"dns": owned(Form.HELM_VALUES)}, "deploy"),
    "Argo CD": ({"dns": owned(Form.STANZA)}, "deploy"),
    "k3s": ({"dns": READ, "server_version": "v1.34.4+k3s1"}, "deploy"),
    "GKE": ({"dns": READ, "server_version": "v1.34.4-gke.100"}, "deploy"),
    "AKS": ({"dns": READ, "provider": "azure"}, "deploy"),
    "DNS not read, RKE2": ({"dns": ClusterDns(), "server_version": "v1.34.4+rke2r1"}, "deploy/overlays/rke2"),
    "DNS not read, EKS": ({"dns": None, "server_version": "v1.34.4-eks-3025e55"}, "deploy/overlays/eks"),
    "DNS not read, k0s": ({"dns": None, "server_version": "v1.34.4+k0s.0"}, "deploy/overlays/k0s"),
    "DNS not read, on AWS": ({"dns": None, "provider": "aws", "server_version": "v1.34.4"}, "deploy"),
    "nothing": ({"dns": None, "server_version": ""}, "deploy"),
}


@pytest.mark.parametrize(("fields", "expected"), CLUSTERS.values(), ids=list(CLUSTERS))
def test_a_folder_follows_from_the_owner_of_the_dns(fields: dict[str, Any], expected: str) -> None:
    assert folder(facts(**fields)) == expected
    assert (ROOT / expected / "kustomization.yaml").is_file()


def test_every_overlay_is_named_by_some_cluster() -> None:
    overlays = {f"deploy/overlays/{path.name}" for path in (ROOT / "deploy" / "overlays").iterdir()}
    assert overlays == {expected for _, expected in CLUSTERS.values()} - {"deploy"}


def test_every_form_that_an_owner_takes_is_printed_and_no_other() -> None:
    for form in Form:
        assert prints(facts(dns=owned(form)))
    assert not prints(facts(dns=READ))


@pytest.mark.parametrize(
    ("seen", "lines", "words"),
    [
        (facts(dns=READ), DEPLOYED, "needs no support from the provider"),
        (facts(dns=owned(Form.EKS_ADDON)), ["kubectl apply -k deploy/overlays/eks"], "a Job prints the stanza"),
        (facts(dns=owned(Form.HELM_VALUES)), ["kubectl apply -k deploy"], "add the component print"),
    ],
    ids=["written", "an overlay prints", "the component prints"],
)
def test_the_step_installs_and_waits_or_has_the_stanza_printed(seen: Facts, lines: list[str], words: str) -> None:
    step = install_step(seen)
    assert words in step.text
    assert list(step.lines[: len(lines)]) == lines
    assert step.lines == install_lines(seen)
    assert any("--from=cronjob/dnsproxy-print" in line for line in step.lines) is prints(seen)


@pytest.mark.parametrize(
    ("target", "expected"), [("auto", True), ("service:switchback/relay", False), ("", False), ("AUTO", False)]
)
def test_names_are_steered_by_route_services_if_dnsproxys_target_says_so(target: str, expected: bool) -> None:
    assert is_automatic(OwnService("switchback/dnsproxy", settings={"DNSPROXY_TARGET": target})) is expected


def test_without_dnsproxy_or_its_settings_nothing_is_steered() -> None:
    assert not is_automatic(None)
    assert not is_automatic(OwnService("switchback/dnsproxy"))


def test_an_installation_that_steers_is_asked_what_it_decided() -> None:
    seen = installed()
    assert seen.dnsproxy is not None
    assert install_step(seen).lines == ("dnsproxy install", "dnsproxy status")
    steering = replace(seen, dnsproxy=replace(seen.dnsproxy, settings={"DNSPROXY_TARGET": "auto"}))
    assert install_step(steering).lines == ("kubectl -n switchback exec deploy/operate -- dnsproxy status",)


DNSPROXY: Final = OwnService("switchback/dnsproxy", image="registry.example.org/dns@sha256:0")
RELAY: Final = OwnService("switchback/relay", image="registry.example.org/relay:1")


@pytest.mark.parametrize(
    ("parts", "built_for", "image"),
    [
        ({"dnsproxy": DNSPROXY, "relay": RELAY}, "b:2", DNSPROXY.image),
        ({"dnsproxy": OwnService("switchback/dnsproxy", found=False), "relay": RELAY}, "b:2", RELAY.image),
        ({"dnsproxy": None, "relay": None}, "registry.example.org/built:2", "registry.example.org/built:2"),
        ({"dnsproxy": None, "relay": None}, "", ""),
    ],
    ids=["that runs", "that of the relay", "that of the release", "none"],
)
def test_the_image_is_the_one_that_runs_or_else_that_of_the_release(
    parts: dict[str, Any], built_for: str, image: str
) -> None:
    assert image_of(replace(facts(), **parts), built_for) == image


def test_the_line_to_look_from_a_pod_has_the_image_or_says_what_to_put_there() -> None:
    known = look_from_inside(replace(facts(), dnsproxy=OwnService("switchback/dnsproxy", image="a b:1")))
    assert "--image='a b:1' -- " in known.lines[1]
    assert "IMAGE" not in known.text
    unknown = look_from_inside(facts())
    assert "--image=IMAGE -- " in unknown.lines[1]
    assert unknown.text.endswith("IMAGE is an image of Switchback that the nodes can pull or have")
