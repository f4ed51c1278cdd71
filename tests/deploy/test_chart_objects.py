"""The chart gives the objects of the kustomization, field by field: base, components, overlays, an owner's values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.deploy.helm import CHART, ONE_IMAGE, RESTARTS, by_name, template
from tests.deploy.manifests import (
    BASE,
    DEPLOY,
    INCLUDED,
    INSTALLATION,
    added,
    components,
    compose,
    find,
    overlays,
    pod_templates,
    render,
    with_needed,
)

pytestmark = pytest.mark.peer("helm", "kubectl")

NODES: Final = {"DNSPROXY_ZONE": "example.org"}
"""The zone of node-hosts in `compose`."""
PUBLISHED: Final = frozenset({"external-dns", "node-hosts", "node-hosts-control-planes", "node-hosts-user-namespace"})
"""Components that switch publishing on; an owner of a kustomization lists it."""
GROUPS: Final = 4
"""In so many sets, all others are beside a component that changes them."""


def values_of(names: Sequence[str], *, base: Path = INSTALLATION) -> dict[str, Any]:
    """The values with these components, and those of the installation if it is the base."""
    included = dict.fromkeys(INCLUDED, base == INSTALLATION)
    values: dict[str, Any] = {"components": included | dict.fromkeys(names, True), **ONE_IMAGE}
    if any(one.startswith("node-hosts") for one in names):
        values["settings"] = {"node-hosts": NODES}
    return values


def folders_of(names: Sequence[str]) -> list[Path]:
    """The folders of components and of those that they need, in an order in which they go together."""
    wanted = {one for name in names for one in with_needed(DEPLOY / "components" / name)}
    if PUBLISHED & {one.name for one in wanted}:
        wanted.add(DEPLOY / "components" / "publishing")
    order = ["stub-domains", "hpa", "node-local", "wholeip"]
    found = [one for one in components() if one in wanted]
    return sorted(found, key=lambda one: order.index(one.name) if one.name in order else len(order))


def test_without_values_it_is_the_installation() -> None:
    assert by_name(template(ONE_IMAGE)) == by_name(render(INSTALLATION))


def test_without_the_components_it_is_the_base() -> None:
    assert by_name(template(values_of([], base=BASE))) == by_name(render(BASE))


@pytest.mark.parametrize("name", sorted(INCLUDED))
def test_a_component_of_the_installation_stands_alone_too(name: str, tmp_path: Path) -> None:
    folder = compose(tmp_path, with_components=[DEPLOY / "components" / name], base=BASE)
    assert by_name(template(values_of([name], base=BASE))) == by_name(render(folder))


@pytest.mark.parametrize("name", [one.name for one in added()])
def test_each_component_is_that_of_the_kustomization(name: str, tmp_path: Path) -> None:
    folder = compose(tmp_path, with_components=folders_of([name]))
    assert by_name(template(values_of([name]))) == by_name(render(folder))


def beside_others() -> Iterator[tuple[str, ...]]:
    """Each component that changes others with each other one: a few at once, because each row renders twice."""
    names = [one.name for one in added()]
    for changing in ("print", "stub-domains", "strict", "hpa", "node-local"):
        others = [one for one in names if one != changing]
        yield from ((changing, *others[start::GROUPS]) for start in range(GROUPS))


@pytest.mark.parametrize("names", list(beside_others()), ids=" and ".join)
def test_each_component_that_changes_others_goes_with_each_other_one(names: Sequence[str], tmp_path: Path) -> None:
    folder = compose(tmp_path, with_components=folders_of(names))
    assert by_name(template(values_of(names))) == by_name(render(folder))


def test_all_components_go_together(tmp_path: Path) -> None:
    names = [one.name for one in added()]
    folder = compose(tmp_path, with_components=folders_of(names))
    assert by_name(template(values_of(names))) == by_name(render(folder))


@pytest.mark.parametrize("overlay", overlays(), ids=lambda one: one.name)
def test_an_overlay_is_the_component_print(overlay: Path) -> None:
    assert by_name(template(values_of(["print"]))) == by_name(render(overlay))


def test_every_component_has_a_value_and_no_other() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    assert set(values["components"]) == {one.name for one in components()}
    assert {name for name, on in values["components"].items() if on} == INCLUDED


def test_a_pod_with_settings_restarts_when_they_change() -> None:
    names = [one.name for one in added()]
    before, after = (template(values_of(names) | {"settings": one}) for one in changed_settings())
    sums = [
        {workload["metadata"]["name"]: pod["metadata"].get("annotations", {}).get(RESTARTS) for workload, pod in pods}
        for pods in (pod_templates(before), pod_templates(after))
    ]
    restarted = {name for name in sums[0] if sums[0][name] != sums[1][name]}
    programs = {"dnsproxy", "dnsproxy-primary", "relay", "operate", "external-dns-publisher", "node-hosts", "wholeip"}
    assert restarted == programs


def changed_settings() -> list[dict[str, Any]]:
    """Settings before and after a change of each program's."""
    before: dict[str, Any] = {"node-hosts": NODES}
    after = {
        "dnsproxy": {"DNSPROXY_TTL": "10"},
        "relay": {"PROXY_DRAIN": "20"},
        "operate": {"DNSPROXY_TIMEOUT": "200"},
        "external-dns": {"DNSPROXY_INSTANCE": "other"},
        "node-hosts": NODES | {"DNSPROXY_DENY": "api.example.org"},
        "wholeip": {"WHOLEIP_PROXY_NAME": "other"},
    }
    return [before, after]


# Values, and the same by an owner's kustomization, in the words of deploy/README.md.
OWNERS: Final = {
    "another image": (
        {"image": {"repository": "registry.example.org/switchback", "digest": f"sha256:{'0' * 64}"}},
        [],
        f"""
images:
  - {{name: localhost/switchback, newName: registry.example.org/switchback, digest: "sha256:{"0" * 64}"}}
""",
    ),
    "two images": (
        {
            "image": {"repository": "registry.example.org/switchback", "tag": "1.2.3"},
            "nftablesImage": {"repository": "registry.example.org/switchback", "tag": "1.2.3"},
            "components": {"wholeip": True, "wholeip-strict": True},
        },
        ["wholeip", "wholeip-strict"],
        """
images:
  - {name: localhost/switchback, newName: registry.example.org/switchback, newTag: 1.2.3}
""",
    ),
    "settings and another DNS": (
        {
            "settings": {
                "dnsproxy": {"DNSPROXY_ZONE": "example.org", "DNSPROXY_INGRESS_CLASS": "nginx public"},
                "operate": {"DNSPROXY_RELAY_SELECTOR": "app=my-relay"},
            },
            "pods": {"operate": {"replicas": 2}},
            "dns": {"service": "my-dns", "configMaps": ["my-corefile"]},
        },
        [],
        """
replicas:
  - {name: operate, count: 2}
configMapGenerator:
  - name: dnsproxy-settings
    namespace: switchback
    behavior: merge
    literals:
      - DNSPROXY_ZONE=example.org
      - DNSPROXY_INGRESS_CLASS=nginx public
      - >-
        DNSPROXY_UPSTREAM_CONFIGMAP=kube-system/my-corefile kube-system/nodelocaldns kube-system/coredns
        kube-system/rke2-coredns-rke2-coredns kube-system/kube-dns openshift-dns/dns-default
  - name: operate-settings
    namespace: switchback
    behavior: merge
    literals:
      - DNSPROXY_DNS_SERVICE=kube-system/my-dns
      - DNSPROXY_RELAY_SELECTOR=app=my-relay
patches:
  - target: {kind: Role, name: switchback-operate, namespace: kube-system}
    patch: |
      - {op: add, path: /rules/0/resourceNames/-, value: my-dns}
      - {op: add, path: /rules/2/resourceNames/-, value: my-corefile}
  - target: {kind: Role, name: switchback-operate-writing}
    patch: |
      - {op: add, path: /rules/0/resourceNames/-, value: my-corefile}
  - target: {kind: Role, name: switchback-dnsproxy-upstreams}
    patch: |
      - {op: add, path: /rules/0/resourceNames/-, value: my-corefile}
""",
    ),
    "a router's addresses": (
        {"dns": {"publicAddresses": ["198.51.100.1", "2001:db8:1::/48"]}},
        [],
        """
configMapGenerator:
  - name: dnsproxy-settings
    namespace: switchback
    behavior: merge
    literals:
      - DNSPROXY_TRUST=198.51.100.1 2001:db8:1::/48
""",
    ),
    "a router's address beside a trusted zone": (
        {
            "settings": {"dnsproxy": {"DNSPROXY_TRUST": "cdn.example.org"}},
            "dns": {"publicAddresses": ["198.51.100.1"]},
        },
        [],
        """
configMapGenerator:
  - name: dnsproxy-settings
    namespace: switchback
    behavior: merge
    literals:
      - DNSPROXY_TRUST=cdn.example.org 198.51.100.1
""",
    ),
    "network policies": (
        {
            "components": {"monitoring": True, "external-dns": True},
            "networkPolicies": {
                "apiServerPorts": [7443],
                "upstreams": [{"cidr": "192.0.2.53/32", "port": 5300}],
                "scrapers": ["192.0.2.0/24", "2001:db8::/64"],
            },
        },
        ["publishing", "external-dns", "monitoring"],
        """
patches:
  - target: {kind: NetworkPolicy, name: dnsproxy|publisher}
    patch: |
      - {op: add, path: /spec/egress/-, value: {ports: [{port: 7443, protocol: TCP}]}}
  - target: {kind: NetworkPolicy, name: dnsproxy}
    patch: |
      - op: add
        path: /spec/egress/-
        value:
          ports: [{port: 5300, protocol: UDP}, {port: 5300, protocol: TCP}]
          to: [{ipBlock: {cidr: 192.0.2.53/32}}]
  - target: {kind: NetworkPolicy, name: metrics}
    patch: |
      - {op: add, path: /spec/ingress/0/from/-, value: {ipBlock: {cidr: 192.0.2.0/24}}}
      - {op: add, path: /spec/ingress/0/from/-, value: {ipBlock: {cidr: "2001:db8::/64"}}}
""",
    ),
    "pods": (
        {
            "pods": {
                "dnsproxy": {
                    "replicas": 3,
                    "resources": {"requests": {"cpu": "200m"}, "limits": {"memory": "1Gi"}},
                    "nodeSelector": {"example.org/pool": "infra"},
                    "tolerations": [{"key": "example.org/pool", "operator": "Exists"}],
                    "labels": {"example.org/team": "platform"},
                    "annotations": {"example.org/note": "dns"},
                },
                "relay": {"priorityClassName": "relays"},
            },
            "image": {"pullSecrets": []},
        },
        [],
        """
patches:
  - target: {kind: Deployment, name: dnsproxy}
    patch: |
      - {op: replace, path: /spec/replicas, value: 3}
      - {op: add, path: /spec/template/spec/containers/0/resources/requests/cpu, value: 200m}
      - {op: add, path: /spec/template/spec/containers/0/resources/limits/memory, value: 1Gi}
      - {op: add, path: /spec/template/spec/nodeSelector/example.org~1pool, value: infra}
      - {op: add, path: /spec/template/spec/tolerations/-, value: {key: example.org/pool, operator: Exists}}
      - {op: add, path: /spec/template/metadata/labels/example.org~1team, value: platform}
      - {op: add, path: /spec/template/metadata/annotations/example.org~1note, value: dns}
  - target: {kind: Deployment, name: relay}
    patch: |
      - {op: replace, path: /spec/template/spec/priorityClassName, value: relays}
""",
    ),
    "ip-mode of two classes": (
        {
            "components": {"ip-mode": True},
            "ipMode": {"loadBalancerClasses": ["example.org/lb", "service.k8s.aws/nlb"]},
        },
        ["ip-mode"],
        """
patches:
  - target: {kind: MutatingAdmissionPolicy, name: switchback-ip-mode}
    patch: |
      - {op: replace, path: /spec/variables/0/expression, value: '["example.org/lb","service.k8s.aws/nlb"]'}
""",
    ),
    "ip-mode-watch of another Service": (
        {"components": {"ip-mode-watch": True}, "ipModeWatch": {"services": ["traefik/traefik"]}},
        ["ip-mode-watch"],
        """
patches:
  - target: {kind: Deployment, name: ip-mode-watch}
    patch: |
      - {op: replace, path: /spec/template/spec/containers/0/args/5, value: traefik/traefik}
  - target: {kind: Role|RoleBinding, name: switchback-ip-mode-watch}
    patch: |
      - {op: replace, path: /metadata/namespace, value: traefik}
  - target: {kind: Role, name: switchback-ip-mode-watch}
    patch: |
      - {op: replace, path: /rules/0/resourceNames, value: [traefik]}
      - {op: replace, path: /rules/1/resourceNames, value: [traefik]}
""",
    ),
    "patches": (
        {
            "patches": [
                {
                    "target": {"kind": "Deployment", "name": "dnsproxy|relay"},
                    "patch": [
                        {"op": "add", "path": "/spec/template/spec/runtimeClassName", "value": "gvisor"},
                        {"op": "remove", "path": "/spec/template/spec/topologySpreadConstraints/0"},
                        {"op": "add", "path": "/spec/template/spec/tolerations/0", "value": {"operator": "Exists"}},
                        {"op": "replace", "path": "/spec/template/spec/tolerations/1/key", "value": "example.org/pool"},
                    ],
                },
            ]
        },
        [],
        """
patches:
  - target: {kind: Deployment, name: dnsproxy|relay}
    patch: |
      - {op: add, path: /spec/template/spec/runtimeClassName, value: gvisor}
      - {op: remove, path: /spec/template/spec/topologySpreadConstraints/0}
      - {op: add, path: /spec/template/spec/tolerations/0, value: {operator: Exists}}
      - {op: replace, path: /spec/template/spec/tolerations/1/key, value: example.org/pool}
""",
    ),
}


@pytest.mark.parametrize(("values", "names", "more"), OWNERS.values(), ids=OWNERS)
def test_a_value_is_what_an_owner_writes(
    values: dict[str, Any], names: Sequence[str], more: str, tmp_path: Path
) -> None:
    folder = compose(tmp_path, with_components=[DEPLOY / "components" / one for one in names], more=more)
    assert by_name(template(ONE_IMAGE | values)) == by_name(render(folder))


def test_the_controllers_policy_is_that_of_its_folder(tmp_path: Path) -> None:
    more = """
patches:
  - target: {kind: NetworkPolicy, name: headers-from-the-relay}
    patch: |
      - {op: replace, path: /spec/ingress/0/from/2/ipBlock/except, value: [10.244.0.0/16]}
"""
    rendered = by_name(render(compose(tmp_path, with_components=[], base=DEPLOY / "controller-policy", more=more)))
    (name,) = rendered
    assert by_name(template({"controllerPolicy": {"podNetworks": ["10.244.0.0/16"]}}))[name] == rendered[name]


def test_the_controllers_policy_takes_both_families_and_other_ports() -> None:
    labels = {"app": "traefik"}
    networks = ["10.244.0.0/16", "2001:db8::/56"]
    values = {"namespace": "traefik", "podLabels": labels, "ports": [8443, 8000], "podNetworks": networks}
    found = find(template({"controllerPolicy": values}), "NetworkPolicy", "headers-from-the-relay")
    restricted, others = found["spec"]["ingress"]
    assert found["metadata"]["namespace"] == "traefik"
    assert found["spec"]["podSelector"] == {"matchLabels": {"app": "traefik"}}
    assert [one["port"] for one in restricted["ports"]] == [8000, 8443]
    assert [one["ipBlock"] for one in restricted["from"] if "ipBlock" in one] == [
        {"cidr": "0.0.0.0/0", "except": ["10.244.0.0/16"]},
        {"cidr": "::/0", "except": ["2001:db8::/56"]},
    ]
    assert [(one.get("port"), one.get("endPort")) for one in others["ports"]] == [
        (1, 7999),
        (8001, 8442),
        (8444, 65535),
        (None, None),
    ]


def test_what_is_piped_to_kubectl_has_its_namespace_whatever_that_of_the_release() -> None:
    # Helm itself leaves the namespace of the release out, see test_chart_apiserver.py.
    assert by_name(template(ONE_IMAGE, "--namespace=switchback")) == by_name(template(ONE_IMAGE))
