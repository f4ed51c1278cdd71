"""The pages of deploy/ hold: their kustomizations render from the paths that they state.

The table of clusters is judged in test_distributions.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import pytest
import yaml

from dnsproxy.operate.decide.listen_ports import COUNT, FIRST
from dnsproxy.operate.decide.route_faults import Backend, find_route_faults
from sidecar.kubernetes.relay_routes import RouteService, find_relay_routes
from sidecar.kubernetes.route_services import parse_subjects
from tests.deploy.kubectl import kubectl
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
from tests.kit.apiserver import ApiServer
from tests.kit.distributions import load_distributions

pytestmark = pytest.mark.peer("kubectl")

README: Final = (DEPLOY / "README.md").read_text(encoding="utf-8")
PAGES: Final = (README, *((DEPLOY / name).read_text(encoding="utf-8") for name in ("ip-mode.md", "node-hosts.md")))
_SHOWN: Final = re.compile(r"```yaml\n# (?P<place>\S+)/kustomization\.yaml\n(?P<text>.*?)```", re.DOTALL)
SHOWN: Final = {shown["place"]: shown["text"] for page in PAGES for shown in _SHOWN.finditer(page)}


def written(place: str, folder: Path) -> Path:
    """Write a kustomization of the page, with the real path of deploy/. Returns its folder."""
    there = folder / place
    there.mkdir(parents=True)
    deploy = os.path.relpath(DEPLOY, there.resolve())
    (there / "kustomization.yaml").write_text(re.sub(r"(\.\./)+deploy(?=[]/])", deploy, SHOWN[place]), encoding="utf-8")
    return there


def test_the_pages_show_these_kustomizations() -> None:
    folders = {"wholeip", "other-ports", "node-hosts", "controller-policy", "ip-mode", "values"}
    folders |= {"ip-mode-watch", "ip-mode-watch-two", "rpz"}
    assert set(SHOWN) == {"my-cluster", *(f"my-cluster/{one}" for one in folders)}


@pytest.mark.parametrize("place", [place for place in SHOWN if "images:" in SHOWN[place]])
def test_every_image_is_the_owners(place: str, tmp_path: Path) -> None:
    templates = [template for _, template in pod_templates(render(written(place, tmp_path)))]
    images = {one["image"].partition(":")[0] for template in templates for one in containers(template)}
    assert len(images) == 1
    assert images.pop().startswith("registry.example.org/")


def test_the_agents_learn_the_clusters_networks(tmp_path: Path) -> None:
    manifests = render(written("my-cluster/wholeip", tmp_path))
    template = find(manifests, "DaemonSet", "wholeip")["spec"]["template"]
    values = settings_of(manifests, template)
    assert values["WHOLEIP_CLUSTER_NETWORK"] == "10.244.0.0/16 10.96.0.0/16"
    assert values["WHOLEIP_PROXY_NAME"] == "cozy-proxy"


def test_the_policies_are_widened_and_nothing_else_changes(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    monitoring = [DEPLOY / "components" / "monitoring"]
    plain = render(compose(folder, with_components=monitoring))
    widened = render(written("my-cluster/other-ports", tmp_path))
    changed = {name_of(one) for one in widened} - {name_of(one) for one in widened if one in plain}
    assert changed == {f"NetworkPolicy switchback/{name}" for name in ("dnsproxy", "metrics")}
    for name in ("dnsproxy", "metrics"):
        before, after = (find(one, "NetworkPolicy", name)["spec"] for one in (plain, widened))
        assert after["podSelector"] == before["podSelector"]
        assert [rule for rule in before.get("egress", ()) if rule not in after["egress"]] == []
    assert ports_of(widened, "dnsproxy") >= {(7443, "TCP"), (5300, "UDP"), (5300, "TCP"), (6443, "TCP"), (53, "UDP")}
    sources = find(widened, "NetworkPolicy", "metrics")["spec"]["ingress"][0]["from"]
    assert sources == [{"namespaceSelector": {}}, {"ipBlock": {"cidr": "192.0.2.0/24"}}]


def test_nodes_take_the_named_host_alone_and_pools_can_be_added(tmp_path: Path) -> None:
    manifests = render(written("my-cluster/node-hosts", tmp_path))
    template = find(manifests, "DaemonSet", "node-hosts")["spec"]["template"]
    assert settings_of(manifests, template)["DNSPROXY_ZONE"] == "registry.example.org"
    assert template["spec"]["tolerations"] == [{"key": "example.org/pool", "operator": "Exists"}]


def test_the_values_arrive_where_the_page_says(tmp_path: Path) -> None:
    manifests = render(written("my-cluster/values", tmp_path))
    settings = {
        name: settings_of(manifests, find(manifests, "Deployment", name)["spec"]["template"])
        for name in ("dnsproxy", "operate")
    }
    assert settings["dnsproxy"]["DNSPROXY_INGRESS_CLASS"] == "nginx public"
    assert settings["dnsproxy"]["DNSPROXY_TARGET"] == "auto"
    assert settings["operate"]["DNSPROXY_RELAY_SELECTOR"] == "app=my-relay"
    assert find(manifests, "Deployment", "operate")["spec"]["replicas"] == 2
    read, write = (find(manifests, "Role", f"switchback-operate{end}")["rules"] for end in ("", "-writing"))
    assert (read[0]["resources"], read[0]["resourceNames"][-1]) == (["services"], "my-dns")
    assert (read[2]["resources"], read[2]["resourceNames"][-1]) == (["configmaps"], "my-corefile")
    assert (write[0]["verbs"], write[0]["resourceNames"][-1]) == (["patch"], "my-corefile")
    (upstreams,) = find(manifests, "Role", "switchback-dnsproxy-upstreams")["rules"]
    assert upstreams["resourceNames"][-1] == "my-corefile"


def route_services(page: str = README) -> list[Manifest]:
    """The Services of the page's example."""
    text = page.partition("```yaml\n# my-cluster/routes/services.yaml\n")[2].partition("```")[0]
    return list(yaml.safe_load_all(text))


def test_the_route_services_of_the_page_have_no_fault_and_the_header_that_it_says() -> None:
    services = {f"switchback/{one['metadata']['name']}": msgspec.convert(one, RouteService) for one in route_services()}
    backends = {"ingress-nginx/ingress-nginx-controller": [80, 443], "git/ssh": [22], "iot/broker": [1883]}
    known = {key: Backend(frozenset(ports)) for key, ports in backends.items()}
    selector = (("app.kubernetes.io/name", "relay"),)
    assert find_route_faults(services, known, relay_selector=selector) == {}
    routes = {(one.listen, one.backend, one.port, one.header) for one in find_relay_routes(services).routes}
    assert routes == {
        (8080, "ingress-nginx-controller", 80, "v1"),
        (8443, "ingress-nginx-controller", 443, "v1"),
        (2222, "ssh", 22, "none"),
        (1883, "broker", 1883, "v1"),
    }
    # operate listens at none of these ports.
    assert not [listen for listen, *_ in routes if FIRST <= listen < FIRST + COUNT]
    assert parse_subjects(services["switchback/by-hand"].annotations.subjects or "") == ("ingressclass/nginx",)


def gardener_policy(page: str = README) -> Manifest:
    """The NetworkPolicy of the page for Gardener."""
    text = page.partition("```yaml\n# my-cluster/gardener/network-policy.yaml\n")[2].partition("```")[0]
    policy: Manifest = yaml.safe_load(text)
    return policy


def test_gardeners_coredns_may_send_to_the_pods_and_the_port_of_dnsproxy() -> None:
    policy = gardener_policy()
    (coredns,) = load_distributions()["gardener"].workload
    assert policy["metadata"]["namespace"] == coredns.namespace
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= coredns.labels.items()
    (rule,) = policy["spec"]["egress"]
    template = find(render(INSTALLATION), "Deployment", "dnsproxy")["spec"]["template"]
    (to,) = rule["to"]
    assert to["podSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    assert to["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "switchback"}
    listening = {
        (one["containerPort"], one["protocol"])
        for container in containers(template)
        for one in container["ports"]
        if one["name"].startswith("dns")
    }
    assert {(one["port"], one["protocol"]) for one in rule["ports"]} == listening


@pytest.mark.peer("etcd", "kube-apiserver")
def test_the_api_server_takes_the_policy_for_gardener(bare: ApiServer) -> None:
    kubectl(bare, "apply", "-f", "-", given=[gardener_policy()])
    kubectl(bare, "delete", "-f", "-", given=[gardener_policy()])


@pytest.mark.peer("etcd", "kube-apiserver", "gateway-api", "prometheus-operator", "dnsendpoint")
def test_the_api_server_takes_the_route_services_of_the_page(bare: ApiServer) -> None:
    kubectl(bare, "apply", "-k", str(INSTALLATION))
    kubectl(bare, "apply", "-f", "-", given=route_services())
    kubectl(bare, "delete", "-f", "-", given=route_services())


@pytest.mark.peer("etcd", "kube-apiserver", "gateway-api", "prometheus-operator", "dnsendpoint")
def test_the_api_server_takes_the_widened_policies(bare: ApiServer, tmp_path: Path) -> None:
    kubectl(bare, "apply", "-k", str(written("my-cluster/other-ports", tmp_path)))


def ports_of(manifests: Sequence[Manifest], name: str) -> set[tuple[int, str]]:
    """The ports to which a policy lets its pods send."""
    rules = find(manifests, "NetworkPolicy", name)["spec"]["egress"]
    return {(port["port"], port["protocol"]) for rule in rules for port in rule["ports"]}
