"""A kustomization is applied over an older one: other settings, the server side, and the former layout.

former_layout.yaml has the objects of an installation from before `dnsproxy operate`.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
import yaml

from dnsproxy.operate.decide.route_faults import Backend, find_route_faults
from sidecar.kubernetes.relay_routes import RouteService, find_relay_routes
from tests.deploy.kubectl import KINDS, LABEL, kubectl
from tests.deploy.manifests import (
    DEPLOY,
    INSTALLATION,
    Manifest,
    compose,
    containers,
    find,
    name_of,
    pod_templates,
    render,
    settings_of,
)
from tests.deploy.putting import path_of
from tests.kit.apiserver import ApiServer

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl", "gateway-api", "prometheus-operator", "dnsendpoint")

FORMER: Final = Path(__file__).parent / "former_layout.yaml"
CHANGED: Final = """\
images:
  - name: localhost/switchback
    newTag: 0.2.0
configMapGenerator:
  - {name: operate-settings, namespace: switchback, behavior: merge, literals: [DNSPROXY_TIMEOUT=301]}
  - {name: dnsproxy-settings, namespace: switchback, behavior: merge, literals: [DNSPROXY_TTL=7]}
"""
"""A changed image and changed settings."""
README: Final = (DEPLOY / "README.md").read_text(encoding="utf-8")
UPGRADE: Final = README.partition("\n### From the layout with an installer\n")[2].partition("\n## ")[0]
END_AND_APPLY, WITHOUT_A_GAP, CLEAN_UP = (
    block.splitlines() for block in re.findall(r"```sh\n(.*?)```", UPGRADE, re.DOTALL)
)
"""The commands of the page, in the order of its steps."""


@pytest.mark.parametrize("arguments", [(), ("--server-side",)], ids=["kubectl", "server-side"])
@pytest.mark.parametrize("folder", [INSTALLATION, DEPLOY / "overlays" / "eks"], ids=["deploy", "eks"])
def test_changed_settings_are_applied_over_the_old_ones(
    folder: Path, arguments: Sequence[str], bare: ApiServer, tmp_path: Path
) -> None:
    # Argo CD and Flux apply on the server side too.
    kubectl(bare, "apply", "-k", str(folder), *arguments)
    changed = compose(tmp_path, with_components=[], more=CHANGED, base=folder)
    kubectl(bare, "apply", "-k", str(changed), *arguments)
    for workload, template in pod_templates(render(changed)):
        path = path_of(workload)
        assert bare.request("GET", path)["spec"] is not None
        assert {one["image"] for one in containers(template)} == {"localhost/switchback:0.2.0"}
    clear(bare)


def test_a_kustomization_that_prints_from_now_on_leaves_no_right_to_write(bare: ApiServer, tmp_path: Path) -> None:
    printing = compose(tmp_path, with_components=[DEPLOY / "components" / "print"])
    kubectl(bare, "apply", "-k", str(INSTALLATION))
    kubectl(bare, "apply", "-k", str(printing))
    blocks = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    (block,) = (one for one in blocks if "delete role,rolebinding switchback-operate-writing" in one)
    run(bare, block.splitlines())
    assert left(bare) == {name_of(one) for one in render(printing) if one["kind"] != "Namespace"}
    clear(bare)


# --- the upgrade from the layout with an installer ---


@pytest.fixture
def former(bare: ApiServer) -> ApiServer:
    """An API server with an installation of the former layout."""
    kubectl(bare, "apply", "-f", str(FORMER))
    return bare


def test_the_upgrade_leaves_nothing_of_the_former_layout(former: ApiServer) -> None:
    upgrade(former)
    run(former, CLEAN_UP)
    # kubectl leaves every ConfigMap of earlier settings, whose name is another one.
    expected = {name_of(one) for one in render(INSTALLATION) if one["kind"] not in {"Namespace", "ConfigMap"}}
    assert {one for one in left(former) if not one.startswith("ConfigMap ")} == expected
    clear(former)


def test_no_installer_runs_beside_operate(former: ApiServer) -> None:
    """Each would undo the other's stanza; the page ends the installer before it applies."""
    assert [line.startswith("kubectl apply") for line in END_AND_APPLY].index(True) == 1
    assert "delete deployment,job dnsproxy-install" in END_AND_APPLY[0]
    upgrade(former)
    assert "Deployment switchback/dnsproxy-install" not in left(former)
    clear(former)


def test_in_between_the_names_of_a_class_can_be_led_by_the_former_service(former: ApiServer) -> None:
    relays = yaml.safe_load_all(FORMER.read_text(encoding="utf-8"))
    manifests = [one for one in relays if one]
    old = settings_of(manifests, find(manifests, "Deployment", "relay")["spec"]["template"])
    before = service(former)
    run(former, WITHOUT_A_GAP)
    after = service(former)
    # Clients keep its address.
    assert after["spec"]["clusterIP"] == before["spec"]["clusterIP"]
    key = "switchback/relay"
    parsed = {key: msgspec.convert(after, RouteService)}
    backends = {"ingress-nginx/ingress-nginx-controller": Backend(frozenset([80, 443]))}
    assert find_route_faults(parsed, backends, relay_selector=(("app.kubernetes.io/name", "relay"),)) == {}
    listening = {route.listen: route.port for route in find_relay_routes(parsed).routes}
    # The old relay listens at the same ports, for the same ports of the same controller.
    routes = [route.partition("=") for route in old["PROXY_ROUTE"].split()]
    assert listening == {int(own): int(backend.rpartition(":")[2]) for own, _, backend in routes}
    assert all("ingress-nginx-controller.ingress-nginx.svc" in backend for _, _, backend in routes)
    # The new manifests leave it as it is.
    upgrade(former)
    assert service(former)["spec"] == after["spec"]
    clear(former)


def upgrade(server: ApiServer) -> None:
    """Step 2 of the page; nothing rolls out here."""
    run(server, [line.replace("my-cluster", str(INSTALLATION)) for line in END_AND_APPLY if "rollout" not in line])


def run(server: ApiServer, lines: Sequence[str]) -> None:
    """Commands of the page."""
    for line in lines:
        kubectl(server, *words_of(line))


def words_of(line: str) -> list[str]:
    """The arguments of kubectl in a line of the page."""
    words = shlex.split(line, comments=True)
    assert words[0] == "kubectl"
    return words[1:]


def service(server: ApiServer) -> Any:
    return server.request("GET", "/api/v1/namespaces/switchback/services/relay")


def left(server: ApiServer) -> set[str]:
    """The objects of ours, namespaces apart."""
    found: list[Manifest] = json.loads(kubectl(server, "get", KINDS, "-A", "-l", LABEL, "-o", "json"))["items"]
    return {name_of(one) for one in found}


def clear(server: ApiServer) -> None:
    kubectl(server, "delete", KINDS, "-A", "-l", LABEL, "--wait=false")
