"""The component ip-mode: the printed policy as a kustomization, alone and beside others, with classes and other names.

What the policy does to each status is in tests/peers/test_ip_mode_policy.py.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from dnsproxy.ip_mode.policy import format_policy, make_policy
from dnsproxy.ip_mode.selection import Selection
from tests.deploy.kubectl import kubectl
from tests.deploy.manifests import DEPLOY, INSTALLATION, compose, render
from tests.deploy.putting import put, take_away
from tests.deploy.test_readme import written
from tests.kit.apiserver import ApiServer
from tests.kit.ip_mode import COMPONENT, SELECTED, Services, entries_of, status_of
from tests.kit.polling import poll_until
from tests.kit.programs import program

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl", "gateway-api", "prometheus-operator", "dnsendpoint")

POLICY_KINDS: Final = "mutatingadmissionpolicies,mutatingadmissionpolicybindings"
ADDRESS: Final = {"ip": "192.0.2.80"}
GUIDE: Final = (DEPLOY / "ip-mode.md").read_text(encoding="utf-8")


@pytest.fixture
def server(bare: ApiServer) -> Iterator[ApiServer]:
    """The API server, without a policy of ours before and after."""
    kubectl(bare, "delete", POLICY_KINDS, "--all")
    yield bare
    kubectl(bare, "delete", POLICY_KINDS, "--all")


def kustomization(folder: Path, more: str = "") -> Path:
    """An owner's kustomization with this component alone."""
    rows = ["apiVersion: kustomize.config.k8s.io/v1beta1", "kind: Kustomization"]
    rows += [f"components: [{os.path.relpath(COMPONENT, folder.resolve())}]", more]
    (folder / "kustomization.yaml").write_text("\n".join(rows), encoding="utf-8")
    return folder


def test_it_is_what_the_command_prints() -> None:
    assert render(COMPONENT) == make_policy("v1", Selection())


def test_beside_the_installation_it_adds_its_two_objects_and_changes_no_other(tmp_path: Path) -> None:
    plain = render(INSTALLATION)
    with_it = render(compose(tmp_path, with_components=[COMPONENT]))
    assert [one for one in plain if one not in with_it] == []
    assert [one for one in with_it if one not in plain] == render(COMPONENT)


def test_applied_again_nothing_is_changed_and_deleted_nothing_is_left(server: ApiServer, tmp_path: Path) -> None:
    kubectl(server, "apply", "-k", str(COMPONENT))
    again = kubectl(server, "apply", "-k", str(COMPONENT))
    assert [line.split()[-1] for line in again.splitlines()] == ["unchanged", "unchanged"]
    printed = tmp_path / "printed.yaml"
    printed.write_text(format_policy("v1", Selection()), encoding="utf-8")
    kubectl(server, "diff", "-f", str(printed))
    kubectl(server, "apply", "--server-side", "--force-conflicts", "-k", str(COMPONENT))
    for _ in range(2):
        kubectl(server, "delete", "-k", str(COMPONENT), "--ignore-not-found")
        assert kubectl(server, "get", POLICY_KINDS, "-o", "name") == ""


@pytest.mark.parametrize(
    "more",
    [
        pytest.param("namePrefix: our-", id="prefix"),
        pytest.param("nameSuffix: -ours", id="suffix"),
        pytest.param("namespace: shop", id="namespace"),
        pytest.param("commonAnnotations: {example.org/owner: us}", id="annotations"),
        pytest.param(
            "labels: [{pairs: {example.org/owner: us}, includeSelectors: true, includeTemplates: true}]", id="labels"
        ),
    ],
)
def test_changed_by_an_owners_transformers_it_still_works(server: ApiServer, more: str, tmp_path: Path) -> None:
    folder = kustomization(tmp_path, more)
    policy, binding = render(folder)
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]
    kubectl(server, "apply", "-k", str(folder))
    services = Services(server, "default")
    services.wait_for_mode(services.create(annotations=SELECTED), "Proxy")
    kubectl(server, "delete", "-k", str(folder))
    assert kubectl(server, "get", POLICY_KINDS, "-o", "name") == ""


def test_the_guides_patch_names_classes_and_an_annotation_leaves_a_service_out(
    server: ApiServer, tmp_path: Path
) -> None:
    folder = written("my-cluster/ip-mode", tmp_path)
    assert render(folder) == make_policy("v1", Selection(("example.org/lb", "service.k8s.aws/nlb")))
    kubectl(server, "apply", "-k", str(folder))
    services = Services(server, "default")
    services.wait_for_mode(services.create(loadBalancerClass="example.org/lb"), "Proxy")
    assert services.modes(services.create(loadBalancerClass="service.k8s.aws/nlb")) == ["Proxy", "Proxy"]
    assert services.modes(services.create(loadBalancerClass="example.org/other")) == ["VIP", "VIP"]
    assert services.modes(services.create()) == ["VIP", "VIP"]
    left_out = {"switchback.dev/ip-mode": "VIP"}
    assert services.modes(services.create(annotations=left_out, loadBalancerClass="example.org/lb")) == ["VIP", "VIP"]


CONTROLLER: Final[tuple[dict[str, Any], ...]] = (
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ingress-nginx"}},
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "ingress-nginx-controller", "namespace": "ingress-nginx"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 443}]},
    },
)


def test_the_guides_commands_change_a_status_that_exists(server: ApiServer) -> None:
    apply, *rest = "".join(re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)).splitlines()
    put(server, CONTROLLER)
    services = Services(server, "ingress-nginx")
    name = CONTROLLER[1]["metadata"]["name"]
    services.patch_status(name, status_of([ADDRESS, {"hostname": "lb.example.org"}]))
    shell(server, apply)
    services.wait_for_mode(services.create(annotations=SELECTED), "Proxy")
    assert entries_of(services.get(name))[0]["ipMode"] == "VIP"
    assert shell(server, "\n".join(rest)).splitlines()[-1] == "Proxy"
    (removal,) = re.findall(r"`(kubectl delete [^`]*)`", GUIDE)
    shell(server, removal)
    assert entries_of(services.get(name))[0]["ipMode"] == "Proxy"
    services.wait_for_mode(name, "VIP")
    take_away(server, CONTROLLER[1:])


def shell(server: ApiServer, script: str) -> str:
    """The output of a script of the guide, run where the guide's paths are right."""
    environment = {
        **os.environ,
        "PATH": f"{Path(program('kubectl')).parent}:{os.environ['PATH']}",
        "KUBECONFIG": str(server.kubeconfig),
    }
    command = ["sh", "-euc", script]
    done = subprocess.run(command, env=environment, cwd=DEPLOY.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("verb", "group", "resource", "allowed"),
    [
        pytest.param("patch", "", "services", True, id="a tenant may select its own Service"),
        pytest.param("patch", "", "services/status", False, id="it may not write its status"),
        pytest.param("patch", "admissionregistration.k8s.io", "mutatingadmissionpolicies", False, id="nor the policy"),
        pytest.param("create", "admissionregistration.k8s.io", "mutatingadmissionpolicies", False, id="nor its own"),
        pytest.param(
            "delete", "admissionregistration.k8s.io", "mutatingadmissionpolicybindings", False, id="nor the binding"
        ),
    ],
)
def test_who_may_change_what(server: ApiServer, verb: str, group: str, resource: str, allowed: bool) -> None:
    put(server, TENANT)
    name, _, subresource = resource.partition("/")
    attributes = {"namespace": "default", "verb": verb, "group": group, "resource": name, "subresource": subresource}
    review = {"spec": {"user": "tenant", "resourceAttributes": attributes}}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

    def is_judged() -> bool:
        return server.request("POST", path, review)["status"]["allowed"] is allowed

    # The server's authorizer reads the new rights at its own time.
    poll_until(is_judged, f"allowed is {allowed}", seconds=30)


TENANT: Final = [
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": f"tenant-{role}", "namespace": "default"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": f"system:aggregate-to-{role}",
        },
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "tenant"}],
    }
    for role in ("view", "edit", "admin")
]
"""The role `admin`: the controller manager, which is missing here, makes it of these."""
