"""The values of the chart: each is described, a wrong one is refused with its path, and none is needed."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from docs.chart_schema import SCHEMA, complete, format_schema
from tests.deploy.helm import CHART, Refused, by_name, run_helm, template
from tests.deploy.manifests import PROJECT_VERSION, find

pytestmark = pytest.mark.peer("helm")


def values() -> dict[str, Any]:
    """The chart's defaults."""
    found: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    return found


def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return found


def test_helm_finds_nothing_to_mend() -> None:
    done = run_helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[WARNING]" not in done.stdout


def test_chart_and_programs_are_one_release() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert (chart["version"], chart["appVersion"]) == (PROJECT_VERSION, PROJECT_VERSION)


def test_the_schema_has_the_variables_of_every_program() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == format_schema(complete(schema())), "run: python -m docs.chart_schema"


def test_every_value_is_described() -> None:
    assert [path for path, one in _properties(schema()) if not one.get("description")] == []


def test_every_default_has_a_place_in_the_schema_and_the_other_way_round() -> None:
    properties = schema()["properties"]
    assert set(values()) == set(properties) - {"global", "enabled"}
    for name in ("image", "nftablesImage", "components", "settings", "dns", "networkPolicies", "controllerPolicy"):
        assert set(values()[name]) == set(properties[name]["properties"]), name


def _properties(one: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The values that an owner meets; what Kubernetes itself describes (a toleration) is left out."""
    for name, below in one.get("properties", {}).items():
        if "toleration" not in path and "target" not in path and "patches" not in path:
            yield f"{path}/{name}", below
            yield from _properties(below, f"{path}/{name}")


ZONE: Final = {"node-hosts": {"DNSPROXY_ZONE": "example.org"}}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"component": {}}, ["additional properties 'component' not allowed"]),
        ({"components": {"opperate": True}}, ["at '/components'", "'opperate'"]),
        ({"components": {"doctor": "yes"}}, ["at '/components/doctor'", "want boolean"]),
        ({"components": ["doctor"]}, ["components"]),
        ({"controllerPolicy": {"podLabels": {"app": None}}}, ["at '/controllerPolicy/podLabels/app'"]),
        # null takes a default away, as `--reuse-values` does with a value that an older chart did not have.
        ({"components": None}, ["missing property 'components'"]),
        ({"settings": None}, ["missing property 'settings'"]),
        ({"image": None}, ["missing property 'image'"]),
        ({"image": {"tag": None}}, ["at '/image'", "missing property 'tag'"]),
        ({"controllerPolicy": {"ports": None}}, ["at '/controllerPolicy'", "missing property 'ports'"]),
        ({"image": {"digest": "sha256:12"}}, ["at '/image/digest'"]),
        ({"image": {"repository": "example.org/switchback:1"}}, ["at '/image/repository'"]),
        ({"image": {"tag": "a b"}}, ["at '/image/tag'"]),
        ({"image": {"pullPolicy": "Sometimes"}}, ["at '/image/pullPolicy'", "IfNotPresent"]),
        ({"settings": {"dnsproxy": {"DNSPROXY_ZNOE": "x"}}}, ["at '/settings/dnsproxy'", "DNSPROXY_ZNOE"]),
        ({"settings": {"dnsproxy": {"PROXY_ROUTE": "x"}}}, ["at '/settings/dnsproxy'", "PROXY_ROUTE"]),
        ({"settings": {"dnsproxy": {"DNSPROXY_ZONE": ["a"]}}}, ["at '/settings/dnsproxy/DNSPROXY_ZONE'"]),
        ({"settings": {"dns": {}}}, ["at '/settings'", "'dns'"]),
        ({"settings": {"wholeip": {"WHOLEIP_PROXY_NAME": "a"}}}, ["switch on components.wholeip"]),
        ({"components": {"operate": False}, "dns": {"service": "my-dns"}}, ["switch on components.operate"]),
        ({"dns": {"service": "kube-system/my-dns"}}, ["at '/dns/service'"]),
        ({"dns": {"publicAddresses": "198.51.100.1"}}, ["at '/dns/publicAddresses'", "want array"]),
        ({"dns": {"publicAddresses": ["198.51.100.1 0.0.0.0/0"]}}, ["at '/dns/publicAddresses/0'"]),
        ({"dns": {"publicAddresses": ["198.51.100.1", "router.example.org"]}}, ["at '/dns/publicAddresses/1'"]),
        ({"dns": {"publicAddresses": ["198.51.100.0/"]}}, ["at '/dns/publicAddresses/0'"]),
        ({"dns": {"publicAddresses": [198]}}, ["at '/dns/publicAddresses/0'", "want string"]),
        ({"dns": {"publicAddresses": [""]}}, ["at '/dns/publicAddresses/0'"]),
        ({"dns": {"publicAddresses": None}}, ["at '/dns'", "missing property 'publicAddresses'"]),
        ({"components": {"node-hosts": True}}, ["settings.node-hosts.DNSPROXY_ZONE: state the zones"]),
        ({"components": {"node-hosts": True}, "settings": {"node-hosts": {"DNSPROXY_ZONE": ""}}}, ["state the zones"]),
        ({"settings": ZONE}, ["switch on components.node-hosts"]),
        ({"components": {"hpa": True}, "pods": {"relay": {"replicas": 3}}}, ["pods.relay.replicas", "hpa"]),
        ({"components": {"node-local": True}, "pods": {"dnsproxy": {"replicas": 3}}}, ["a DaemonSet has no number"]),
        ({"pods": {"doctor": {}}}, ["pods.doctor", "no such workload"]),
        ({"pods": {"relay": {"replicas": -1}}}, ["at '/pods/relay/replicas'"]),
        ({"pods": {"relay": {"resource": {}}}}, ["at '/pods/relay'", "'resource'"]),
        ({"pods": {"relay": {"resources": {"limit": {}}}}}, ["at '/pods/relay/resources'", "'limit'"]),
        ({"pods": {"relay": {"tolerations": [{"operator": "Any"}]}}}, ["at '/pods/relay/tolerations/0/operator'"]),
        ({"networkPolicies": {"apiServerPorts": [0]}}, ["at '/networkPolicies/apiServerPorts/0'"]),
        ({"networkPolicies": {"upstreams": [{"cidr": "192.0.2.1/32"}]}}, ["upstreams/0'", "port"]),
        ({"networkPolicies": {"scrapers": ["192.0.2.0/24"]}}, ["switch on components.monitoring"]),
        ({"controllerPolicy": {"podNetworks": ["10.0.0.0"]}}, ["at '/controllerPolicy/podNetworks/0'"]),
        ({"controllerPolicy": {"podNetworks": ["10.0.0.0/8"], "ports": []}}, ["at '/controllerPolicy/ports'"]),
        ({"ipMode": {"loadBalancerClasses": ["a"]}}, ["switch on components.ip-mode"]),
        ({"components": {"ip-mode": True}, "ipMode": {"loadBalancerClasses": ['a"]']}}, ["loadBalancerClasses/0'"]),
        ({"ipModeWatch": {"services": ["traefik"]}}, ["at '/ipModeWatch/services/0'"]),
        ({"test": {"hosts": ["--from=x"]}}, ["at '/test/hosts/0'"]),
        ({"patches": [{"patch": []}]}, ["at '/patches/0'", "target"]),
        ({"patches": [{"target": {}, "patch": [{"op": "remove", "path": "/a"}]}]}, ["at '/patches/0/target'"]),
        ({"patches": [{"target": {"kind": "A"}, "patch": [{"op": "add", "path": "/a"}]}]}, ["patch/0'", "value"]),
        ({"patches": [{"target": {"kind": "A"}, "patch": [{"op": "remove", "path": "/a"}]}]}, ["no object is a A"]),
        *(
            (
                {"patches": [{"target": {"kind": "Deployment", "name": "relay"}, "patch": [operation]}]},
                ["Deployment relay", words],
            )
            for operation, words in [
                ({"op": "remove", "path": "/spec/x"}, "there is no x"),
                ({"op": "replace", "path": "/spec/x", "value": 1}, "there is no x"),
                ({"op": "add", "path": "/spec/x/y", "value": 1}, "there is no x"),
                ({"op": "add", "path": "/spec/replicas/y", "value": 1}, "there is no place for y"),
                ({"op": "add", "path": "/spec/template/spec/tolerations/9", "value": {}}, "there is no 9"),
                ({"op": "add", "path": "/spec/template/spec/tolerations/9/key", "value": ""}, "there is no 9"),
                ({"op": "remove", "path": "/spec/template/spec/tolerations/-"}, "there is no -"),
                ({"op": "add", "path": "/spec/template/spec/tolerations/a", "value": {}}, "a is no index"),
            ]
        ),
    ],
    ids=lambda one: json.dumps(one) if isinstance(one, dict) else "",
)
def test_a_wrong_value_is_refused_with_its_path(given: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(Refused) as refused:
        template(given)
    assert [word for word in words if word not in str(refused.value)] == [], str(refused.value)


@pytest.mark.parametrize("value", [1_000_000, "1e6", True, "", "a b", "0x10", 1.5])
def test_a_setting_reaches_the_program_as_it_is_written(value: object) -> None:
    settings = {"relay": {"PROXY_MAX_CONNECTIONS": value}}
    text = value if isinstance(value, str) else json.dumps(value)
    assert (
        find(template({"settings": settings}), "ConfigMap", "relay-settings")["data"]["PROXY_MAX_CONNECTIONS"] == text
    )


def test_null_takes_back_what_another_file_set() -> None:
    given = {
        "settings": {"dnsproxy": {"DNSPROXY_ZONE": None}},
        "pods": {"dnsproxy": None, "relay": {"replicas": None}, "nothing": None},
    }
    assert by_name(template(given)) == by_name(template({}))


def test_null_takes_a_label_of_nodes_and_an_annotation_out() -> None:
    changes = {"nodeSelector": {"kubernetes.io/os": None}, "annotations": {"linkerd.io/inject": None}}
    relay = find(template({"pods": {"relay": changes | {"priorityClassName": ""}}}), "Deployment", "relay")
    pod = relay["spec"]["template"]
    assert pod["spec"].get("nodeSelector", {}) == {}
    assert "linkerd.io/inject" not in pod["metadata"]["annotations"]
    assert "priorityClassName" not in pod["spec"]


def test_a_change_of_one_object_is_none_of_another() -> None:
    patches = [
        {
            "target": {"kind": "Deployment", "name": "dnsproxy|relay"},
            "patch": [{"op": "add", "path": "/metadata/annotations", "value": {"team": "dns"}}],
        },
        {
            "target": {"kind": "Deployment", "name": "dnsproxy"},
            "patch": [{"op": "add", "path": "/metadata/annotations/only", "value": "dnsproxy"}],
        },
    ]
    rendered = template({"patches": patches})
    found = {one: find(rendered, "Deployment", one)["metadata"]["annotations"] for one in ("dnsproxy", "relay")}
    assert found == {"dnsproxy": {"team": "dns", "only": "dnsproxy"}, "relay": {"team": "dns"}}


def test_a_list_that_became_empty_takes_items_again() -> None:
    operations = [
        {"op": "remove", "path": "/spec/template/spec/tolerations/0"},
        {"op": "add", "path": "/spec/template/spec/tolerations/-", "value": {"operator": "Exists"}},
        {"op": "add", "path": "/spec/template/spec/dnsConfig", "value": {"options": []}},
        {"op": "add", "path": "/spec/template/spec/dnsConfig/options/-", "value": {"name": "ndots", "value": "1"}},
    ]
    patches = [{"target": {"kind": "Deployment", "name": "dnsproxy|relay"}, "patch": operations}]
    rendered = template({"patches": patches})
    for name in ("dnsproxy", "relay"):
        spec = find(rendered, "Deployment", name)["spec"]["template"]["spec"]
        assert spec["tolerations"] == [{"operator": "Exists"}]
        assert spec["dnsConfig"] == {"options": [{"name": "ndots", "value": "1"}]}


def test_a_parent_may_switch_it_on_and_keep_anchors() -> None:
    assert by_name(template({"enabled": True, "x-common": {"a": 1}, "global": {}})) == by_name(template({}))


def test_pull_secrets_are_in_every_pod() -> None:
    rendered = template(
        {"image": {"pullSecrets": ["registry"], "pullPolicy": "Always"}, "components": {"doctor": True}}
    )
    for kind, name in (("Deployment", "dnsproxy"), ("Deployment", "operate")):
        spec = find(rendered, kind, name)["spec"]["template"]["spec"]
        assert spec["imagePullSecrets"] == [{"name": "registry"}]
        assert [one["imagePullPolicy"] for one in spec["containers"]] == ["Always"]


def test_only_wholeip_has_the_image_with_nft() -> None:
    rendered = template({"components": {"wholeip": True, "doctor": True}})
    images = {
        one["metadata"].get("namespace"): _image_of(one)
        for one in rendered
        if one["kind"] in ("Deployment", "DaemonSet")
    }
    assert images == {
        "switchback": f"localhost/switchback:{PROJECT_VERSION}",
        "switchback-wholeip": f"localhost/switchback-nftables:{PROJECT_VERSION}",
    }


def _image_of(workload: Mapping[str, Any]) -> str:
    image: str = workload["spec"]["template"]["spec"]["containers"][0]["image"]
    return image


def test_what_is_piped_to_kubectl_has_no_hook() -> None:
    everything = {"components": dict.fromkeys(values()["components"], True), "settings": ZONE}
    for arguments in ([], ["--is-upgrade"], ["--include-crds"]):
        rendered = template(everything, *arguments)
        hooks = [one for one in rendered if "helm.sh/hook" in str(one["metadata"].get("annotations", {}))]
        assert hooks == []
        assert "helm.sh/hook" not in json.dumps(rendered)


def test_two_renderings_are_the_same() -> None:
    # Argo CD compares each rendering with the objects of the cluster: a time in it would always differ.
    assert template({}) == template({}) == template({}, "--is-upgrade")


def test_the_packaged_chart_renders_as_the_folder_does(tmp_path: Path) -> None:
    assert run_helm("package", str(CHART), "-d", str(tmp_path)).returncode == 0
    archive = tmp_path / f"switchback-{PROJECT_VERSION}.tgz"
    with tarfile.open(archive) as members:
        assert [one.name for one in members if not one.isfile()] == []
        names = {one.name for one in members}
    assert "switchback/manifests/base/dnsproxy.yaml" in names
    assert "switchback/values.schema.json" in names
    assert by_name(template({}, chart=archive)) == by_name(template({}))


def test_a_source_whose_links_were_not_followed_says_so(tmp_path: Path) -> None:
    # Flux leaves links out of the archive of a git repository.
    copied = tmp_path / "switchback"
    for one in CHART.rglob("*"):
        if one.is_file() and "manifests" not in one.relative_to(CHART).parts:
            (copied / one.relative_to(CHART)).parent.mkdir(parents=True, exist_ok=True)
            (copied / one.relative_to(CHART)).write_bytes(one.read_bytes())
    with pytest.raises(Refused, match=r"manifests/base is not in the chart.*packaged chart"):
        template({}, chart=copied)


@pytest.mark.parametrize(
    ("given", "present", "absent"),
    [
        ({}, ["rollout status deployment/operate", "dnsproxy status", "helm test", "helm uninstall"], ["print", "nft"]),
        ({"components": {"print": True}}, ["create job print", "dnsproxy status"], ["rollout status", "stanza leaves"]),
        ({"components": {"operate": False}}, ["components.operate is off", "helm test"], ["helm uninstall"]),
        ({"components": {"wholeip": True}}, ["wholeip status", "rules leave every node"], []),
    ],
    ids=["default", "print", "without operate", "wholeip"],
)
def test_the_notes_say_what_to_look_at(given: dict[str, Any], present: list[str], absent: list[str]) -> None:
    done = run_helm("install", "my", str(CHART), "--dry-run=client", "--kubeconfig=/dev/null", values=given)
    assert done.returncode == 0, done.stderr
    notes = done.stdout.partition("NOTES:\n")[2]
    assert [word for word in present if word not in notes] == []
    assert [word for word in absent if word in notes] == []
    assert max(map(len, notes.splitlines())) <= 120
