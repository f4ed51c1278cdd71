"""Every kustomization renders, keeps the laws, and gives the programs settings that they understand."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

import dnsproxy.cli
import proxy.cli
import wholeip.cli
from sidecar.cli.usage import GatheringOption
from tests.deploy.laws import LAWS
from tests.deploy.manifests import (
    ALONE,
    DEPLOY,
    INSTALLATION,
    PROJECT_VERSION,
    Manifest,
    added,
    arguments_of,
    components,
    compose,
    find,
    kustomizations,
    name_of,
    names,
    overlays,
    own_variables,
    pod_templates,
    render,
    roles_of,
    settings_of,
)
from tests.kit.one_manifest import OPERATE, SERVE
from tests.kit.programs import program

pytestmark = pytest.mark.peer("kubectl")


DECIDED = {
    "container-image-pull-policy": "an image by digest, or one that was brought to the nodes, is not pulled again",
    "deployment-has-host-podantiaffinity": "topology spread constraints say the same, and also work with one node",
    "cronjob-has-deadline": "it never runs by itself",
    "deployment-replicas": "operate alone: what it has decided stays while it is away",
    "container-security-context-user-group-id": "node-hosts and wholeip alone: laws.py says why they are root",
}
"""The demands of kube-score that we reject, with reasons. For CPU limits, see base/dnsproxy.yaml."""

OF_OPERATE = ("DNSPROXY_SERVICE", "DNSPROXY_TIMEOUT", "DNSPROXY_ADMIN_HOST")
"""The settings of operate-settings."""


@pytest.fixture(params=names(), scope="module")
def manifests(request: pytest.FixtureRequest) -> Sequence[Manifest]:
    """The installation, one of its parts, an overlay, or the installation with one component."""
    return kustomizations()[request.param]


def test_every_law_is_kept(manifests: Sequence[Manifest]) -> None:
    assert [fault for law in LAWS for fault in law(manifests)] == []
    names = [name_of(one) for one in manifests]
    assert len(names) == len(set(names))


def test_every_setting_is_one_that_its_program_understands(monkeypatch: pytest.MonkeyPatch) -> None:
    for manifests, workload, template in distinct_pods():
        values = settings_of(manifests, template)
        main = template["spec"]["containers"][0]
        command = parsed([*main["command"], *arguments_of(manifests, template)], values, monkeypatch)
        known = {f"{prefix_of(main)}_{(param.name or '').upper()}" for param in command.params}
        known |= {one for one in values if one.startswith(adding(command, prefix_of(main)))} | own_variables(template)
        # These Jobs have the settings of operate, and need some of them.
        known |= set(OF_OPERATE) if main.get("args") in (["uninstall"], ["install", "--method", "print"]) else set()
        assert set(values) <= known, name_of(workload)


def test_a_pod_has_time_to_end() -> None:
    for manifests, workload, template in distinct_pods():
        main, values = template["spec"]["containers"][0], settings_of(manifests, template)
        if main["command"] == ["dnsproxy"] and main["args"][0] == "serve":
            wanted = float(values["DNSPROXY_LAMEDUCK"]) + float(values.get("DNSPROXY_DRAIN", 5))
        elif main["command"] == ["proxy"]:
            wanted = main["lifecycle"]["preStop"]["sleep"]["seconds"] + float(values.get("PROXY_DRAIN", 30))
        else:
            continue
        assert template["spec"]["terminationGracePeriodSeconds"] > wanted, name_of(workload)


def test_a_service_routes_to_the_ports_that_the_program_listens_on() -> None:
    for manifests, workload, template in distinct_pods():
        main, values = template["spec"]["containers"][0], settings_of(manifests, template)
        listening = {int(route.partition("=")[0].rpartition(":")[2]) for route in values.get("PROXY_ROUTE", "").split()}
        listening |= {int(one.rpartition(":")[2]) for one in values.get("DNSPROXY_LISTEN", "").split()}
        stated = {one["containerPort"] for one in main.get("ports", ()) if one["name"] != "admin"}
        assert listening == stated, name_of(workload)


@pytest.mark.peer("kube-score")
def test_kube_score_has_nothing_to_say_that_was_not_decided(manifests: Sequence[Manifest]) -> None:
    """Kustomization by kustomization: it judges an object by the others that it is given with."""
    ignored = [word for name in DECIDED for word in ("--ignore-test", name)]
    command = [program("kube-score"), "score", "--output-format", "ci", "--ignore-container-cpu-limit", *ignored, "-"]
    done = subprocess.run(command, input=yaml.safe_dump_all(manifests), capture_output=True, text=True, check=False)
    assert [line for line in done.stdout.splitlines() if line.startswith(("[CRITICAL]", "[WARNING]"))] == []


def test_all_components_go_together(tmp_path: Path) -> None:
    chosen = [one for one in added() if one.name not in ALONE]
    manifests = render(compose(tmp_path, with_components=chosen))
    assert [fault for law in LAWS for fault in law(manifests)] == []


def test_the_images_tag_is_this_version() -> None:
    images = {template["spec"]["containers"][0]["image"] for _, _, template in distinct_pods()}
    assert images == {f"localhost/switchback:{PROJECT_VERSION}"}


def test_the_guide_names_every_overlay_and_component() -> None:
    guide = (DEPLOY / "README.md").read_text(encoding="utf-8")
    assert [one.name for one in components() if f"`{one.name}`" not in guide] == []
    assert [one.name for one in overlays() if f"`../deploy/overlays/{one.name}`" not in guide] == []


def test_one_patch_pins_every_image_by_digest(tmp_path: Path) -> None:
    digest = f"sha256:{'0' * 64}"
    more = f"images:\n  - name: localhost/switchback\n    newName: registry.example.org/s\n    digest: {digest}\n"
    chosen = [one for one in added() if one.name not in ALONE]
    for _, template in pod_templates(render(compose(tmp_path, with_components=chosen, more=more))):
        for one in template["spec"]["containers"]:
            assert one["image"] == f"registry.example.org/s@{digest}"


def test_a_changed_setting_restarts_the_pods(tmp_path: Path) -> None:
    more = (
        "configMapGenerator:\n"
        "  - name: dnsproxy-settings\n    namespace: switchback\n    behavior: merge\n    literals: [DNSPROXY_TTL=7]\n"
    )
    before, after = render(INSTALLATION), render(compose(tmp_path, with_components=[], more=more))
    assert find(before, "Deployment", "dnsproxy") != find(after, "Deployment", "dnsproxy")
    assert find(before, "Deployment", "relay") == find(after, "Deployment", "relay")
    (_, template), *_ = pod_templates([find(after, "Deployment", "dnsproxy")])
    assert settings_of(after, template)["DNSPROXY_TTL"] == "7"


def test_an_owners_kustomization_needs_nothing_but_the_image() -> None:
    rendered, settings = render(INSTALLATION), ("relay", "dnsproxy", "operate")
    assert [one for one in settings if f"{one}-settings-" not in " ".join(map(name_of, rendered))] == []
    text = yaml.safe_dump_all(rendered)
    # No distribution, no controller and no zone is named.
    assert [word for word in ("ingress-nginx", "traefik", "PROXY_ROUTE=", "DNSPROXY_ZONE") if word in text] == []


@pytest.mark.parametrize(("account", "roles"), [("dnsproxy", SERVE), ("operate", OPERATE)])
def test_an_account_has_the_rights_in_its_files_and_no_other(account: str, roles: Sequence[Manifest]) -> None:
    rendered = {name_of(one): one["rules"] for one in roles_of(render(INSTALLATION), account)}
    assert rendered == {name_of(one): one["rules"] for one in roles}


def distinct_pods() -> Iterator[tuple[Sequence[Manifest], Manifest, Manifest]]:
    """Each pod of every kustomization, with its manifests and its workload; a pod with the same settings only once."""
    seen: set[str] = set()
    for manifests in kustomizations().values():
        for workload, template in pod_templates(manifests):
            text = json.dumps([name_of(workload), template, settings_of(manifests, template)], sort_keys=True)
            if text not in seen:
                seen.add(text)
                yield manifests, workload, template


def adding(command: click.Command, prefix: str) -> tuple[str, ...]:
    """How the names of variables begin that add values to that of a flag."""
    gathering = [param for param in command.params if isinstance(param, GatheringOption)]
    return tuple(f"{prefix}_{(param.name or '').upper()}_" for param in gathering)


def prefix_of(container: Manifest) -> str:
    return {"dnsproxy": "DNSPROXY", "proxy": "PROXY", "wholeip": "WHOLEIP"}[container["command"][0]]


def parsed(words: Sequence[str], values: Manifest, monkeypatch: pytest.MonkeyPatch) -> click.Command:
    """The command of a container, after it has parsed its arguments and variables."""
    program: Any = {
        "dnsproxy": dnsproxy.cli.main,
        "proxy": proxy.cli.main,
        "wholeip": wholeip.cli.main,
    }[words[0]]
    with monkeypatch.context() as environment:
        for name, value in values.items():
            environment.setenv(name, value)
        context = program.make_context(words[0], list(words[1:]))
        if isinstance(program, click.Group):
            _, command, rest = program.resolve_command(context, [*context._protected_args, *context.args])
            assert isinstance(command, click.Command)
            command.make_context(command.name, rest, parent=context)
            return command
        command = context.command
    assert isinstance(command, click.Command)
    return command


def test_dnsproxy_may_read_the_config_maps_with_upstreams_and_no_other() -> None:
    for kustomization, manifests in kustomizations().items():
        settings = [one["data"] for one in manifests if one["metadata"]["name"].startswith("dnsproxy-settings-")]
        flags = ("DNSPROXY_UPSTREAM_CONFIGMAP", "DNSPROXY_UPSTREAM_IMPORTS")
        followed = {name for data in settings for flag in flags for name in data[flag].split()}
        assert {f"{namespace}/{name}" for namespace, name in readable(manifests)} == followed, kustomization


def readable(manifests: Sequence[Manifest]) -> list[tuple[str, str]]:
    """Namespace and name of each ConfigMap that dnsproxy may read; OpenShift's by its name in all of them."""
    found: list[tuple[str, str]] = []
    for binding in manifests:
        subjects = [(one["namespace"], one["name"]) for one in binding.get("subjects") or ()]
        if ("switchback", "dnsproxy") not in subjects:
            continue
        role = find(manifests, binding["roleRef"]["kind"], binding["roleRef"]["name"])
        for rule in role["rules"]:
            if "configmaps" in rule["resources"]:
                assert (rule["resources"], rule["verbs"]) == (["configmaps"], ["list", "watch"])
                namespace = role["metadata"].get("namespace", "openshift-dns")
                found += [(namespace, name) for name in rule["resourceNames"]]
    return found
