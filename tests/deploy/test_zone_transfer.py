"""The components node-local and rpz: who serves the table as a zone, who loads it, and that they find each other."""

from __future__ import annotations

import copy
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from dnsproxy.primary.settings import LeaseRef, RpzSettings
from dnsproxy.serve.command import serve
from dnsproxy.serve.settings import ServeSettings, make_settings
from tests.deploy.manifests import (
    DEPLOY,
    INSTALLATION,
    Manifest,
    arguments_of,
    components,
    compose,
    find,
    name_of,
    pod_templates,
    render,
    roles_of,
    settings_of,
)
from tests.deploy.test_manifests import parsed
from tests.deploy.test_readme import written
from tests.kit.programs import program

pytestmark = pytest.mark.peer("kubectl")

COMPONENTS: Final = DEPLOY / "components"
KEY: Final = 'key "switchback" { algorithm hmac-sha256; secret "c3dpdGNoYmFjaw=="; };\n'
ALONE: Final = ("rpz",)
NODES: Final = ("node-local",)
BOTH: Final = ("node-local", "rpz")
OWNER: Final = """
patches:
  - target: {kind: ConfigMap, name: dnsproxy-settings}
    patch: |
      - {op: add, path: /data/DNSPROXY_RPZ, value: rpz.example.org}
      - {op: add, path: /data/DNSPROXY_RPZ_ALLOW, value: 203.0.113.0/24}
      - {op: add, path: /data/DNSPROXY_RPZ_NOTIFY, value: 203.0.113.53}
      - {op: add, path: /data/DNSPROXY_HOST, value: static.example.org=192.0.2.7}
      - {op: add, path: /data/DNSPROXY_NAMESPACE, value: shop}
      - {op: add, path: /data/DNSPROXY_LABEL_SELECTOR, value: team=web}
      - {op: add, path: /data/DNSPROXY_ANNOTATION_FILTER, value: example.org/public=true}
      - {op: add, path: /data/DNSPROXY_SOURCE_OWN, value: "crd:sites.example.org:spec.hosts[*] traefik"}
      - {op: add, path: /data/DNSPROXY_CLASS_OF, value: traefik=internal}
"""
UNSIGNED: Final = "      - {op: add, path: /data/DNSPROXY_RPZ_ALLOW_UNSIGNED, value: 203.0.113.54}\n"
"""Another line of it: a resolver without TSIG."""


def rendered(names: Sequence[str], folder: Path, *, more: str = "") -> list[Manifest]:
    return render(compose(folder, with_components=[COMPONENTS / one for one in names], more=more))


def template_of(manifests: Sequence[Manifest], kind: str, name: str) -> Manifest:
    found: Manifest = find(manifests, kind, name)["spec"]["template"]
    return found


def serve_settings(
    manifests: Sequence[Manifest], template: Manifest, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> ServeSettings:
    """The settings of a pod, as its program makes them; the key is that of a folder in place of the Secret."""
    values = settings_of(manifests, template)
    if values.get("DNSPROXY_RPZ_KEY"):
        mounts = {one["mountPath"]: one for one in template["spec"]["containers"][0]["volumeMounts"]}
        assert mounts[str(Path(values["DNSPROXY_RPZ_KEY"]).parent)]["readOnly"]
        values["DNSPROXY_RPZ_KEY"] = str(folder / "keys.conf")
        (folder / "keys.conf").write_text(KEY, encoding="utf-8")
    arguments = arguments_of(manifests, template)
    command = parsed(["dnsproxy", *arguments], values, monkeypatch)
    with monkeypatch.context() as environment:
        for name, value in values.items():
            environment.setenv(name, value)
        flags = command.make_context("serve", arguments[1:], auto_envvar_prefix="DNSPROXY").params
    return make_settings(**{name: one for name, one in flags.items() if name not in {"log_format", "log_level"}})


def test_a_primary_is_the_bases_pod_with_a_name_of_its_own_and_its_address(tmp_path: Path) -> None:
    base = copy.deepcopy(dict(find(render(INSTALLATION), "Deployment", "dnsproxy")))
    primary = copy.deepcopy(dict(find(rendered(NODES, tmp_path), "Deployment", "dnsproxy-primary")))
    pod: dict[str, Any] = primary["spec"]["template"]
    assert {one["name"] for one in pod["spec"]["containers"][0].pop("env")} == {
        *("POD_IP", "DNSPROXY_RPZ_ADDRESS", "DNSPROXY_RPZ_ALLOW", "DNSPROXY_RPZ_NOTIFY")
    }
    assert pod["metadata"]["labels"].pop("app.kubernetes.io/component") == "primary"
    for one in (pod["metadata"], base["spec"]["template"]["metadata"]):
        one["labels"].pop("app.kubernetes.io/part-of", None)
    for one in (pod, base["spec"]["template"]):
        # Another ConfigMap by its hash.
        (read,) = one["spec"]["containers"][0].pop("envFrom")
        (mounted,) = [volume.pop("configMap") for volume in one["spec"]["volumes"] if "configMap" in volume]
        assert mounted == read["configMapRef"]
    assert str(primary).replace("dnsproxy-primary", "dnsproxy") == str(
        base | {"metadata": primary["metadata"]}
    ).replace("dnsproxy-primary", "dnsproxy")


@pytest.mark.parametrize(
    ("names", "more", "zone"),
    [
        pytest.param(NODES, "", "table.switchback.internal", id="node-local"),
        pytest.param(BOTH, "", "table.switchback.internal", id="both"),
        pytest.param(BOTH, OWNER + UNSIGNED, "rpz.example.org", id="both, with an owner's values"),
    ],
)
def test_a_nodes_pod_loads_the_zone_that_the_primaries_serve(
    names: Sequence[str], more: str, zone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests = rendered(names, tmp_path, more=more)
    of_node = template_of(manifests, "DaemonSet", "dnsproxy")
    node = serve_settings(manifests, of_node, tmp_path, monkeypatch)
    primary = serve_settings(manifests, template_of(manifests, "Deployment", "dnsproxy-primary"), tmp_path, monkeypatch)
    assert primary.rpz is not None
    assert node.replica is not None
    assert (node.rpz, node.cluster, node.hosts) == (None, None, ())
    (source,) = node.replica.primaries
    assert source.zone == primary.rpz.zone
    assert str(source) == f"rpz:{zone}@192.0.2.10:53"
    # The kubelet has the address of a Service only with this, and under this name.
    assert of_node["spec"]["enableServiceLinks"] is True
    assert find(manifests, "Service", "dnsproxy-primary")["spec"]["ports"][0]["port"] == source.port
    assert [node.replica.key] == [next(iter(primary.rpz.keys), None)]


@pytest.mark.parametrize("names", [ALONE, NODES, BOTH], ids=" and ".join)
@pytest.mark.parametrize("more", ["", OWNER], ids=["plain", "an owner's values"])
def test_primaries_allow_and_tell_one_another_whatever_the_owner_adds(
    names: Sequence[str], more: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests = rendered(names, tmp_path, more=more)
    template = template_of(manifests, "Deployment", primary_of(names))
    rpz = serve_settings(manifests, template, tmp_path, monkeypatch).rpz
    assert rpz is not None
    assert isinstance(rpz.serial, LeaseRef)
    assert str(rpz.address) == "192.0.2.10:1053"
    assert [one for one in ("10.244.0.7", "192.168.3.4", "100.64.0.9", "fd00::7") if not rpz.allows(one)] == []
    assert (rpz.allows("203.0.113.9"), rpz.allows("198.51.100.9")) == (bool(more), False)
    assert bool(rpz.keys) is ("rpz" in names)
    assert ("203.0.113.53:53" in map(str, rpz.notify)) is bool(more)
    told = [pods for one in rpz.notify if str(one).startswith("service:") for pods in selected(manifests, str(one))]
    assert f"Deployment switchback/{primary_of(names)}" in told
    assert ("DaemonSet switchback/dnsproxy" in told) is ("node-local" in names)


def primary_of(names: Sequence[str]) -> str:
    return "dnsproxy-primary" if "node-local" in names else "dnsproxy"


def selected(manifests: Sequence[Manifest], target: str) -> list[str]:
    """The workloads that a headless Service selects, ready or not, with the port of a NOTIFY."""
    service = find(manifests, "Service", target.rpartition("/")[2])
    spec = service["spec"]
    assert (spec["clusterIP"], spec["publishNotReadyAddresses"]) == ("None", True)
    assert [(one["targetPort"], one["protocol"]) for one in spec["ports"]] == [("dns", "UDP")]
    return [
        name_of(workload)
        for workload, template in pod_templates(manifests)
        if spec["selector"].items() <= template["metadata"]["labels"].items()
    ]


@pytest.mark.parametrize("names", [ALONE, BOTH], ids=" and ".join)
def test_resolvers_reach_what_serves_the_zone_and_nothing_else(names: Sequence[str], tmp_path: Path) -> None:
    manifests = rendered(names, tmp_path)
    selector = find(manifests, "Service", "dnsproxy-rpz")["spec"]["selector"]
    reached = [
        name_of(one)
        for one, template in pod_templates(manifests)
        if selector.items() <= template["metadata"]["labels"].items()
    ]
    assert reached == [f"Deployment switchback/{primary_of(names)}"]
    ports = find(manifests, "Service", "dnsproxy-rpz")["spec"]["ports"]
    assert {(one["port"], one["protocol"]) for one in ports} == {(53, "UDP"), (53, "TCP")}
    assert find(manifests, "NetworkPolicy", "dnsproxy-rpz")["spec"]["podSelector"]["matchLabels"] == selector


def test_without_rpz_only_pods_of_ours_reach_the_primaries(tmp_path: Path) -> None:
    manifests = rendered(NODES, tmp_path)
    labels = template_of(manifests, "Deployment", "dnsproxy-primary")["metadata"]["labels"]
    rules = [
        rule
        for one in manifests
        if one["kind"] == "NetworkPolicy"
        and (one["spec"]["podSelector"].get("matchLabels") or {}).items() <= labels.items()
        for rule in one["spec"].get("ingress", ())
    ]
    (rule,) = rules
    (peer,) = rule["from"]
    (expression,) = peer["podSelector"]["matchExpressions"]
    assert expression["values"] == ["dnsproxy", "dnsproxy-primary"]


def test_what_a_replica_refuses_is_empty_on_a_node(tmp_path: Path) -> None:
    # dnsproxy-settings has it for the primaries, or an owner adds it there.
    container = template_of(rendered(NODES, tmp_path), "DaemonSet", "dnsproxy")["spec"]["containers"][0]
    emptied = {one["name"] for one in container["env"] if one.get("value") == ""}
    flags = {f"DNSPROXY_{(param.name or '').upper()}" for param in serve.params}
    allowed = {"DNSPROXY_RPZ_KEY", "DNSPROXY_RPZ_WILDCARDS", "DNSPROXY_RPZ_TRIGGERS"}
    wanted = {one for one in flags if one.startswith("DNSPROXY_RPZ")} - allowed
    names = {f"DNSPROXY_{flag}" for flag in ("HOST", "HOSTS_FILE", "ZONE", "DENY", "ALLOW")}
    names |= {f"DNSPROXY_{flag}" for flag in ("CLASS_OF", "NAMESPACE", "LABEL_SELECTOR", "ANNOTATION_FILTER")}
    assert emptied == wanted | names


def test_whichever_components_add_sources_the_primaries_read_them_and_the_nodes_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["node-local", *(one.name for one in components() if one.name.startswith("source-"))]
    manifests = rendered(names, tmp_path)
    node = serve_settings(manifests, template_of(manifests, "DaemonSet", "dnsproxy"), tmp_path, monkeypatch)
    primary = serve_settings(manifests, template_of(manifests, "Deployment", "dnsproxy-primary"), tmp_path, monkeypatch)
    assert (node.cluster, node.replica is not None) == (None, True)
    assert primary.cluster is not None
    assert (primary.cluster.ingress is not None, primary.cluster.gateway is not None) == (True, True)
    read = [one.name for one in primary.cluster.others] + (["service"] if primary.cluster.services else [])
    assert sorted(f"source-{one}" for one in read) == sorted(names[1:])


def test_a_nodes_account_reads_the_upstreams_and_nothing_else(tmp_path: Path) -> None:
    manifests = rendered(NODES, tmp_path)
    assert template_of(manifests, "DaemonSet", "dnsproxy")["spec"]["serviceAccountName"] == "dnsproxy-node"
    rules = [rule for role in roles_of(manifests, "dnsproxy-node") for rule in role["rules"]]
    assert {tuple(rule["resources"]) for rule in rules} == {("configmaps",)}
    named = {name for rule in rules for name in rule["resourceNames"]}
    settings = settings_of(manifests, template_of(manifests, "DaemonSet", "dnsproxy"))
    followed = f"{settings['DNSPROXY_UPSTREAM_CONFIGMAP']} {settings['DNSPROXY_UPSTREAM_IMPORTS']}"
    assert named == {one.partition("/")[2] for one in followed.split()}


@pytest.mark.parametrize("names", [ALONE, NODES, BOTH], ids=" and ".join)
def test_the_one_object_that_is_written_is_the_lease_of_the_settings(
    names: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests = rendered(names, tmp_path)
    template = template_of(manifests, "Deployment", primary_of(names))
    rpz = serve_settings(manifests, template, tmp_path, monkeypatch).rpz
    assert isinstance(rpz, RpzSettings)
    assert isinstance(rpz.serial, LeaseRef)
    reading = {"list", "watch"}
    rules = [rule for role in roles_of(manifests, "dnsproxy") for rule in role["rules"]]
    written_to = [rule for rule in rules if not set(rule["verbs"]) <= reading]
    assert {tuple(rule["resources"]) for rule in written_to} == {("leases",)}
    for rule in written_to:
        assert (rule.get("resourceNames"), rule["verbs"]) in [
            (None, ["create"]),
            ([rpz.serial.ref.name], ["get", "update"]),
        ]


def test_an_earlier_daemon_set_is_changed_in_place(tmp_path: Path) -> None:
    # A selector cannot be changed: another one would make `kubectl apply` fail on the node-local of an earlier version.
    spec = find(rendered(NODES, tmp_path), "DaemonSet", "dnsproxy")["spec"]
    assert spec["selector"] == {"matchLabels": {"app.kubernetes.io/name": "dnsproxy"}}
    labels = template_of(rendered(NODES, tmp_path), "Deployment", "dnsproxy-primary")["metadata"]["labels"]
    assert labels["app.kubernetes.io/name"] != "dnsproxy"


def test_in_the_other_order_it_is_refused_in_words(tmp_path: Path) -> None:
    folder = compose(tmp_path, with_components=[COMPONENTS / one for one in reversed(BOTH)])
    command = [program("kubectl"), "kustomize", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "List node-local before rpz" in done.stderr


def test_the_page_exposes_the_zone_to_two_resolvers_and_tells_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests = render(written("my-cluster/rpz", tmp_path))
    spec = find(manifests, "Service", "dnsproxy-rpz")["spec"]
    assert (spec["type"], spec["externalTrafficPolicy"]) == ("LoadBalancer", "Local")
    rpz = serve_settings(manifests, template_of(manifests, "Deployment", "dnsproxy"), tmp_path, monkeypatch).rpz
    assert rpz is not None
    assert [str(one) for one in rpz.notify][1:] == ["192.0.2.53:53", "192.0.2.54:53"]
    assert (rpz.allows("192.0.2.54"), rpz.allows("192.0.2.55")) == (True, False)
    # A changed setting restarts the pods: the patch is before the hash.
    plain = template_of(rendered(ALONE, tmp_path), "Deployment", "dnsproxy")
    assert template_of(manifests, "Deployment", "dnsproxy") != plain
