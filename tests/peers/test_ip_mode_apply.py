"""`dnsproxy ip-mode --apply` and `--remove` against real API servers: written, in effect, rewritten, and taken back."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dnsproxy.ip_mode.policy import NAME
from dnsproxy.ip_mode.selection import ANNOTATION
from tests.kit.accounts import create_account, write_kubeconfig
from tests.kit.apiserver import ApiServer, running_apiserver, send
from tests.kit.polling import poll_until
from tests.kit.prepared_program import play
from tests.kit.programs import program

pytestmark = [pytest.mark.peer("etcd", "kube-apiserver", "kubectl"), pytest.mark.timeout(400)]

GROUP: Final = "/apis/admissionregistration.k8s.io"
PLURALS: Final = ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings")
MERGE: Final = "application/merge-patch+json"
ENDS: Final = "--balancer-ends-connections"
GATES: Final = (
    "--feature-gates=MutatingAdmissionPolicy=true",
    "--runtime-config=admissionregistration.k8s.io/v1beta1=true",
)
_numbers = itertools.count()


@dataclass(frozen=True)
class Scene:
    """An API server, and the command line for it."""

    server: ApiServer
    folder: Path

    def command(self, *arguments: str, kubeconfig: Path | None = None) -> list[str]:
        where = ["--kubeconfig", str(kubeconfig or self.server.kubeconfig)]
        return [sys.executable, "-m", "dnsproxy", "ip-mode", *where, *arguments]

    def run(self, *arguments: str, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
        command = self.command(*arguments, kubeconfig=kubeconfig)
        environment = {**os.environ, "NO_COLOR": "1"}
        return play(command, environment)

    def document(self, *arguments: str, status: int = 0, kubeconfig: Path | None = None) -> Any:
        result = self.run(*arguments, "--output", "json", kubeconfig=kubeconfig)
        assert result.returncode == status, result.stdout + result.stderr
        return json.loads(result.stdout)

    def service(self, name: str = "web", *, kind: str = "LoadBalancer", **spec: Any) -> str:
        """Create a Service whose provider wrote VIP. Returns `NAMESPACE/NAME`."""
        body = {"metadata": {"name": name}, "spec": {"type": kind, "ports": [{"port": 80}], **spec}}
        self.server.request("POST", "/api/v1/namespaces/default/services", body)
        if kind == "LoadBalancer":
            self.write_status(name)
        return f"default/{name}"

    def write_status(self, name: str = "web") -> None:
        """As a provider does."""
        status = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1", "ipMode": "VIP"}, {"ip": "2001:db8::1"}]}}
        path = f"/api/v1/namespaces/default/services/{name}/status"
        self.server.request("PATCH", path, {"status": status}, content_type=MERGE)

    def takes_proxy(self, name: str) -> bool:
        """Whether the API server would store ipMode Proxy."""
        status = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1", "ipMode": "Proxy"}]}}
        path = f"/api/v1/namespaces/default/services/{name}/status?dryRun=All"
        try:
            self.server.request("PATCH", path, {"status": status}, content_type=MERGE)
        except AssertionError:
            return False
        return True

    def modes(self, name: str = "web") -> list[str]:
        found = self.server.request("GET", f"/api/v1/namespaces/default/services/{name}")
        return [point["ipMode"] for point in found["status"]["loadBalancer"]["ingress"]]

    def shell(self, line: str) -> list[str]:
        """Run a command line of kubectl. Returns the ipModes after it."""
        words = [program("kubectl"), f"--kubeconfig={self.server.kubeconfig}", *shlex.split(line)[1:]]
        subprocess.run(words, check=True, capture_output=True)
        return self.modes()

    def annotation(self, name: str = "web") -> str | None:
        found = self.server.request("GET", f"/api/v1/namespaces/default/services/{name}")
        return (found["metadata"].get("annotations") or {}).get(ANNOTATION)

    def stored(self, version: str = "v1") -> list[Any]:
        """The policy and the binding that exist."""
        lists = [self.server.request("GET", f"{GROUP}/{version}/{plural}")["items"] for plural in PLURALS]
        return [one for items in lists for one in items if one["metadata"]["name"] == NAME]

    def kubeconfig_with(self, roles: list[Any]) -> Path:
        name = f"ip-mode-{next(_numbers)}"
        token = create_account(self.server, "default", name, roles)
        return write_kubeconfig(self.server, token, self.folder / f"{name}.kubeconfig")

    def clear(self) -> None:
        for name in [one["metadata"]["name"] for one in self._services()]:
            self.server.request("DELETE", f"/api/v1/namespaces/default/services/{name}")
        for plural in reversed(PLURALS):
            self.server.request("DELETE", f"{GROUP}/v1/{plural}")

    def _services(self) -> list[Any]:
        items = self.server.request("GET", "/api/v1/namespaces/default/services")["items"]
        return [one for one in items if one["metadata"]["name"] != "kubernetes"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Its own: one test restarts it, and a policy is about the whole cluster."""
    with running_apiserver(tmp_path_factory.mktemp("ip-mode")) as one:
        yield one


@pytest.fixture
def scene(server: ApiServer, tmp_path: Path) -> Iterator[Scene]:
    one = Scene(server, tmp_path)
    yield one
    one.clear()


def test_apply_is_proved_and_the_next_write_of_the_provider_is_proxy(scene: Scene) -> None:
    web, other = scene.service(), scene.service("other")
    document = scene.document("--apply", "--service", web, ENDS)
    assert document["in_effect"]["state"] == "yes"
    assert [change["verb"] for change in document["changes"]] == ["create", "create", "patch"]
    assert scene.modes() == ["VIP", "VIP"]
    scene.write_status()
    scene.write_status("other")
    assert (scene.modes(), scene.modes("other")) == (["Proxy", "Proxy"], ["VIP", "VIP"])
    assert other not in json.dumps(document)


def test_applying_twice_writes_once(scene: Scene) -> None:
    web = scene.service()
    scene.document("--apply", "--service", web, ENDS, "--class", "example.org/lb")
    before = scene.stored()
    document = scene.document("--apply", "--service", web, ENDS, "--class", "example.org/lb")
    assert (document["wrote"], document["changes"]) == (False, [])
    assert scene.stored() == before


def test_the_printed_policy_applied_by_kubectl_is_as_wanted(scene: Scene) -> None:
    printed = scene.run("--api-version", "v1", "--class", "example.org/lb").stdout
    for plural, text in zip(PLURALS, printed.split("---\n")[1:], strict=True):
        scene.server.request("POST", f"{GROUP}/v1/{plural}", yaml.safe_load(text))
    assert scene.document("--apply", "--class", "example.org/lb", "--dry-run")["changes"] == []


def test_a_dry_run_shows_the_loss_of_a_class_and_writes_nothing(scene: Scene) -> None:
    scene.document("--apply", "--class", "example.org/lb")
    before = scene.stored()
    document = scene.document("--apply", "--dry-run")
    assert "the policy no longer selects loadBalancerClass example.org/lb" in document["notes"]
    assert "-  - expression: '[\"example.org/lb\"]'" in document["changes"][0]["diff"]
    assert scene.stored() == before


def test_a_service_alone_leaves_the_classes_of_an_earlier_apply(scene: Scene) -> None:
    scene.document("--apply", "--class", "example.org/lb")
    web = scene.service("web")
    document = scene.document("--apply", "--service", web, ENDS)
    assert not any("no longer selects" in note for note in document["notes"])
    assert document["wrote"]
    assert scene.document("--apply", "--service", web, ENDS, "--class", "example.org/lb", "--dry-run")["changes"] == []


def test_rewriting_shows_each_service_and_a_second_time_is_unchanged(scene: Scene) -> None:
    webs = [scene.service(name) for name in ("web", "shop")]
    named = [part for web in webs for part in ("--service", web)]
    text = scene.run("--apply", *named, ENDS, "--rewrite")
    assert "Service default/web: VIP -> Proxy" in text.stdout, text.stderr
    assert "Service default/shop: VIP -> Proxy" in text.stdout
    assert scene.modes() == scene.modes("shop") == ["Proxy", "Proxy"]
    again = scene.document("--apply", "--rewrite")
    assert [one["result"] for one in again["services"]] == ["unchanged", "unchanged"]
    assert again["in_effect"]["state"] == "yes"


def test_removal_says_that_the_status_stays_and_rewrites_it_on_request(scene: Scene) -> None:
    web = scene.service()
    scene.document("--apply", "--service", web, ENDS, "--rewrite")
    removed = scene.run("--remove", "--service", web)
    assert (removed.returncode, scene.stored(), scene.annotation()) == (0, [], None)
    assert "Service default/web stays Proxy until its provider writes the status again" in removed.stdout
    assert scene.modes() == ["Proxy", "Proxy"]
    again = scene.document("--remove", "--service", web, "--rewrite")
    assert again["services"][0]["result"] == "rewritten"
    assert scene.modes() == ["VIP", "VIP"]
    assert scene.document("--remove", "--service", web, "--rewrite")["verdict"] == "there is nothing to remove"


def test_the_shown_command_lines_do_what_the_flag_does(scene: Scene) -> None:
    web = scene.service()
    applied = scene.document("--apply", "--service", web, ENDS)
    scene.shell(applied["services"][0]["rewrite"])
    assert scene.modes() == ["Proxy", "Proxy"]
    removed = scene.document("--remove", "--service", web)
    poll_until(lambda: scene.shell(removed["services"][0]["rewrite"]) == ["VIP", "VIP"], "VIP", seconds=60)


def test_removal_and_rewriting_at_once_outlasts_the_policy(scene: Scene) -> None:
    """A deleted policy works for a moment longer; the VIP that it turned into Proxy is written again."""
    web = scene.service()
    scene.document("--apply", "--service", web, ENDS, "--rewrite")
    assert scene.document("--remove", "--service", web, "--rewrite")["services"][0]["after"] == ["VIP", "VIP"]
    assert scene.modes() == ["VIP", "VIP"]


def test_the_printed_rights_are_enough_and_each_missing_one_is_named(scene: Scene) -> None:
    web = scene.service()
    applying = ("--apply", "--service", web, ENDS, "--rewrite")
    removing = ("--remove", "--service", web, "--rewrite")
    rights = scene.document(*applying, "--dry-run")["rbac"]
    nobody = scene.kubeconfig_with([])
    refused = scene.document(*applying, status=3, kubeconfig=nobody)
    assert refused["rbac_missing"] == rights
    assert scene.stored() == []
    account = scene.kubeconfig_with(rights)
    assert scene.document(*applying, kubeconfig=account)["in_effect"]["state"] == "yes"
    account = scene.kubeconfig_with(scene.document(*removing, "--dry-run")["rbac"])
    scene.document(*removing, kubeconfig=account)
    assert (scene.stored(), scene.modes(), scene.annotation()) == ([], ["VIP", "VIP"], None)


def test_without_the_right_to_write_the_policy_nothing_is_written_and_the_yaml_names_it(scene: Scene) -> None:
    web = scene.service()
    rights = scene.document("--apply", "--service", web, ENDS, "--dry-run")["rbac"]
    (rule,) = [one for role in rights for one in role["rules"] if one["resources"] == [PLURALS[1]]]
    rule["verbs"].remove("create")
    account = scene.kubeconfig_with(rights)
    result = scene.run("--apply", "--service", web, ENDS, kubeconfig=account)
    assert result.returncode == 3
    assert "resources:\n  - mutatingadmissionpolicybindings\n" in result.stdout
    assert result.stdout.count("resources:") == 1
    assert "verbs:\n  - create\n" in result.stdout
    assert (scene.stored(), scene.annotation()) == ([], None)
    dry = scene.document("--apply", "--service", web, ENDS, "--dry-run", kubeconfig=account)
    assert len(dry["changes"]) == 3


@pytest.mark.parametrize("mode", ["--apply", "--remove"])
@pytest.mark.parametrize("plural", PLURALS)
def test_an_object_of_somebody_else_is_left_alone(scene: Scene, mode: str, plural: str) -> None:
    scene.document("--apply")
    path = f"{GROUP}/v1/{plural}/{NAME}"
    scene.server.request("PATCH", path, {"metadata": {"labels": None}}, content_type=MERGE)
    before = scene.stored()
    document = scene.document(mode, status=1)
    assert "is not Switchback's" in document["refusals"][0]["why"]
    assert scene.stored() == before


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param({"kind": "ClusterIP"}, "is of type ClusterIP", id="no load balancer"),
        pytest.param({}, "may lose its connections", id="an unknown load balancer"),
        pytest.param({"loadBalancerClass": "metallb.io/speaker"}, "would lose its connections", id="MetalLB"),
    ],
)
def test_a_service_that_it_would_not_help_or_would_harm_is_refused(scene: Scene, spec: Any, why: str) -> None:
    web = scene.service(**spec)
    document = scene.document("--apply", "--service", web, status=1)
    assert why in document["refusals"][0]["why"]
    assert (scene.stored(), scene.annotation()) == ([], None)


def test_where_another_policy_denies_proxy_nothing_is_written(scene: Scene) -> None:
    web = scene.service()
    with denied(scene, "true"):
        document = scene.document("--apply", "--service", web, ENDS, status=1)
        assert scene.stored() == []
        assert scene.annotation() is None
    assert document["verdict"] == "nothing was written: refused"
    (refusal,) = document["refusals"]
    assert refusal["object"] == f"Service {web}"
    assert "ValidatingAdmissionPolicy 'no-proxy'" in refusal["why"]


def test_what_makes_the_providers_writes_fail_is_taken_out_again(scene: Scene) -> None:
    scene.service("shop")
    scene.document("--apply", "--class", "example.org/lb")
    before = specs(scene.stored())
    web = scene.service()
    # Only what this command annotates is denied, so a trial before it is not.
    with denied(scene, f"'{ANNOTATION}' in object.metadata.?annotations.orValue({{}})"):
        document = scene.document("--apply", "--service", web, "--class", "example.org/other", ENDS, status=1)
        assert document["verdict"].startswith(f"taken out again: Service {web} does not tell: ")
        assert "ValidatingAdmissionPolicy 'no-proxy'" in document["verdict"]
        assert document["wrote"] is False
        assert scene.annotation() is None
        assert specs(scene.stored()) == before
        scene.write_status()


def specs(objects: list[Any]) -> list[Any]:
    return [one["spec"] for one in objects]


@contextmanager
def denied(scene: Scene, condition: str) -> Iterator[None]:
    """Another policy denies ipMode Proxy where a condition in CEL holds; from when it works until it does not."""
    proxy = "object.status.?loadBalancer.?ingress.orValue([]).exists(one, one.?ipMode.orValue('') == 'Proxy')"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["services/status"]}
    policy = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": f"!(({condition} || object.metadata.name == 'denied') && {proxy})"}],
    }
    bodies = {
        "validatingadmissionpolicies": policy,
        "validatingadmissionpolicybindings": {"policyName": "no-proxy", "validationActions": ["Deny"]},
    }
    for plural, spec in bodies.items():
        scene.server.request("POST", f"{GROUP}/v1/{plural}", {"metadata": {"name": "no-proxy"}, "spec": spec})
    scene.service("denied")
    poll_until(lambda: not scene.takes_proxy("denied"), "the other policy is in effect", seconds=30)
    yield
    for plural in reversed(bodies):
        scene.server.request("DELETE", f"{GROUP}/v1/{plural}/no-proxy")
    poll_until(lambda: scene.takes_proxy("denied"), "the other policy is gone", seconds=30)


def test_a_service_that_does_not_exist_is_refused_by_apply_and_done_for_remove(scene: Scene) -> None:
    refused = scene.document("--apply", "--service", "default/nobody", ENDS, status=1)
    assert refused["refusals"] == [{"object": "Service default/nobody", "why": "does not exist"}]
    assert scene.document("--remove", "--service", "default/nobody")["status"] == 0


def test_a_policy_whose_binding_was_lost_is_completed(scene: Scene) -> None:
    """As after a connection that was lost between the two writes."""
    web = scene.service()
    scene.document("--apply", "--service", web, ENDS)
    scene.server.request("DELETE", f"{GROUP}/v1/{PLURALS[1]}/{NAME}")
    document = scene.document("--apply", "--service", web, ENDS)
    assert [change["kind"] for change in document["changes"]] == ["MutatingAdmissionPolicyBinding"]
    assert document["in_effect"]["state"] == "yes"


def test_another_writer_of_the_same_objects_keeps_its_fields_and_delays_only(scene: Scene) -> None:
    web = scene.service()
    scene.document("--apply")
    with writing(scene.server, f"{GROUP}/v1/{PLURALS[0]}/{NAME}", "/api/v1/namespaces/default/services/web"):
        document = scene.document("--apply", "--service", web, ENDS, "--class", "example.org/lb")
    assert document["in_effect"]["state"] == "yes"
    assert scene.annotation() == "Proxy"
    assert all("example.org/count" in one["metadata"].get("annotations", {}) for one in scene.stored()[:1])


def test_removal_while_the_api_server_restarts_is_completed_by_itself_or_by_the_next(scene: Scene) -> None:
    web = scene.service()
    scene.document("--apply", "--service", web, ENDS)
    process = subprocess.Popen(
        scene.command("--remove", "--service", web), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    with scene.server.connection() as connection:
        poll_until(lambda: not is_there(connection, f"{GROUP}/v1/{PLURALS[1]}/{NAME}"), "a binding gone", seconds=60)
    scene.server.kill()
    scene.server.start()
    said, _ = process.communicate(timeout=120)
    assert process.returncode in (0, 3), said
    assert scene.document("--remove", "--service", web)["status"] == 0
    assert (scene.stored(), scene.annotation()) == ([], None)


def test_the_beta_of_1_34_is_applied_proved_and_removed(tmp_path: Path) -> None:
    with running_apiserver(tmp_path, version="v1.34.4", flags=GATES) as server:
        scene = Scene(server, tmp_path)
        web = scene.service()
        document = scene.document("--apply", "--service", web, ENDS, "--rewrite")
        assert (document["api_version"], document["in_effect"]["state"]) == ("v1beta1", "yes")
        assert scene.modes() == ["Proxy", "Proxy"]
        assert scene.document("--apply", "--service", web, ENDS)["changes"] == []
        scene.document("--remove", "--service", web, "--rewrite")
        assert (scene.stored("v1beta1"), scene.modes()) == ([], ["VIP", "VIP"])


def test_without_the_gate_apply_says_why_and_what_to_do_instead_and_remove_still_cleans_up(tmp_path: Path) -> None:
    with running_apiserver(tmp_path, version="v1.34.4") as server:
        scene = Scene(server, tmp_path)
        web = scene.service()
        result = scene.run("--apply", "--service", web, ENDS)
        assert result.returncode == 1
        assert "MutatingAdmissionPolicy=true" in result.stderr
        assert "--watch" in result.stderr
        assert scene.annotation() is None
        assert scene.document("--remove", "--service", web)["verdict"] == "there is nothing to remove"


@contextmanager
def writing(server: ApiServer, *paths: str) -> Iterator[None]:
    """Another client writes these objects five times a second, meanwhile."""
    begun, ended = threading.Event(), threading.Event()

    def write() -> None:
        with server.connection() as connection:
            for count in itertools.count():
                for path in paths:
                    body = {"metadata": {"annotations": {"example.org/count": str(count)}}}
                    send(connection, "PATCH", path, body, content_type=MERGE)
                begun.set()
                if ended.wait(0.2):
                    return

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert begun.wait(30)
        yield
    finally:
        ended.set()
        thread.join()


def is_there(connection: http.client.HTTPSConnection, path: str) -> bool:
    connection.request("GET", path, headers={"authorization": "Bearer switchback-admin-token"})
    response = connection.getresponse()
    response.read()
    return response.status == http.client.OK
