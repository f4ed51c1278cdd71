"""With the component doctor-strict the doctor reads ConfigMaps with known names alone and lists the others."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dnsproxy.doctor.facts.file import parse_facts
from tests.deploy.called import DOCTOR, NOT_DOCTOR, rows
from tests.deploy.calls import Caller, account
from tests.deploy.kubectl import kubectl
from tests.deploy.manifests import DEPLOY, compose
from tests.deploy.test_component_rights import shop
from tests.kit.apiserver import ApiServer
from tests.kit.ports import free_port
from tests.kit.prepared_program import play

__all__ = ["shop"]
pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl", "gateway-api", "prometheus-operator", "dnsendpoint")

PARTS = [DEPLOY / "components" / one for one in ("doctor", "doctor-strict")]
ANYWHERE = "get configmaps any in default"
KNOWN = """
get configmaps coredns-custom in kube-system
get configmaps kube-proxy in kube-system
get configmaps cilium-config in kube-system
get configmaps dnsproxy-settings-5d8b9 in switchback
"""
UNKNOWN = f"""
{ANYWHERE}
get configmaps coredns in default
get configmaps any in kube-system
get configmaps extension-apiserver-authentication in kube-system
get configmaps any in switchback-doctor
list configmaps in kube-system
watch configmaps in kube-system
list configmaps in switchback
patch configmaps coredns in kube-system
"""


@pytest.fixture(scope="module")
def with_gateways(bare: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> ApiServer:
    """First without doctor-strict, as an owner who adds it later: applying it must take the right away."""
    for parts in (PARTS[:-1], PARTS):
        kubectl(bare, "apply", "-k", str(compose(tmp_path_factory.mktemp("composed"), with_components=parts)))
    return bare


@pytest.fixture(scope="module")
def doctor(with_gateways: ApiServer) -> Caller:
    return account(with_gateways, "switchback-doctor", "doctor")


def test_the_doctor_may_look(doctor: Caller) -> None:
    calls = [one for one in rows(DOCTOR, KNOWN) if one != ANYWHERE]
    assert doctor.allowed(calls) == calls


def test_the_doctor_may_get_no_other_configmap(doctor: Caller) -> None:
    assert doctor.allowed(rows(UNKNOWN, NOT_DOCTOR)) == []


@pytest.mark.usefixtures("shop")
def test_a_controllers_configmap_is_listed_as_unread_and_not_taken_for_absent(doctor: Caller, tmp_path: Path) -> None:
    config, saved = doctor.write_kubeconfig(tmp_path / "kubeconfig"), tmp_path / "facts.json"
    command = [sys.executable, "-m", "dnsproxy", "doctor", f"--kubeconfig={config}", f"--save={saved}"]
    command += ["--no-probe", f"--public-dns=127.0.0.1:{free_port()}"]
    done = play(command)
    facts = parse_facts(saved.read_bytes())
    assert [one.what for one in facts.refusals] == ["get configmaps ingress in namespace default"]
    assert "get configmaps ingress in namespace default" in done.stdout
    (controller,) = [one for one in facts.services if one.key == "default/ingress"]
    assert (controller.settings, controller.settings_from) == ({}, ""), "with a source, an absent switch would be off"
    assert [one.settings for one in facts.components] == [{"mode": "nftables"}], "kube-proxy's is known by name"
    assert facts.dns is not None
    assert facts.dns.decides
