"""With its own token the agent of the component wholeip may make its calls, and all others are refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.called import NEVER_ALLOWED, rows
from tests.deploy.calls import Caller, account
from tests.deploy.kubectl import kubectl
from tests.deploy.manifests import DEPLOY, compose, kustomizations, pod_template
from tests.deploy.quotas import admitted_pod, set_quota_status
from tests.kit.apiserver import ApiServer

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl", "gateway-api", "prometheus-operator", "dnsendpoint")

SPACE = "switchback-wholeip"
WHOLEIP = """
list services
watch services
list endpointslices
watch endpointslices
list nodes
watch nodes
list servicecidrs
watch servicecidrs
watch services kubernetes in default
watch endpointslices in default
list services in kube-system
watch services dnsproxy in switchback
list services relay in switchback
list endpointslices in switchback
create events in default
create events in kube-system
create events in switchback
"""
NOT_WHOLEIP = f"""
get services any in switchback
patch services any in switchback
update services any in switchback
patch services/status any in switchback
delete endpointslices any in switchback
patch nodes any
patch nodes/status any
create servicecidrs any
patch servicecidrs kubernetes
delete servicecidrs kubernetes
list ipaddresses
list events
watch events
get events any in default
patch events any in default
delete events any in default
list events in switchback
create nodes/proxy any
list secrets in {SPACE}
list configmaps in {SPACE}
create pods in {SPACE}
create pods/exec any in {SPACE}
patch daemonsets wholeip in {SPACE}
create serviceaccounts/token wholeip in {SPACE}
"""


@pytest.fixture(scope="module")
def applied(bare: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> ApiServer:
    folder = compose(tmp_path_factory.mktemp("composed"), with_components=[DEPLOY / "components" / "wholeip"])
    kubectl(bare, "apply", "-k", str(folder))
    return bare


@pytest.fixture(scope="module")
def agent(applied: ApiServer) -> Caller:
    return account(applied, SPACE, "wholeip")


def test_the_agent_may_read_what_it_follows(agent: Caller) -> None:
    assert agent.allowed(rows(WHOLEIP)) == rows(WHOLEIP)


READS = ("list services", "watch services", "list endpointslices", "list nodes")
"""The agent reads these in every namespace."""


def test_the_agent_may_do_nothing_else(agent: Caller) -> None:
    others = [one for one in rows(NEVER_ALLOWED) if not one.startswith(READS)]
    assert agent.allowed([*others, *rows(NOT_WHOLEIP)]) == []


def test_an_administrator_may_do_all_of_it(applied: ApiServer) -> None:
    """Otherwise a call would be refused for another reason than its rights."""
    calls = rows(WHOLEIP, NOT_WHOLEIP)
    assert Caller(applied, applied.token).allowed(calls) == calls


def test_the_program_works_with_its_rights(agent: Caller, tmp_path: Path) -> None:
    config = agent.write_kubeconfig(tmp_path / "kubeconfig")
    done = subprocess.run(
        [sys.executable, "-m", "wholeip", "rules", "--kubeconfig", str(config), "--node-name", "n1"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "forbidden" not in done.stderr.lower()
    assert "table inet switchback_wholeip {" in done.stdout


def test_the_pod_is_admitted_with_its_priority(applied: ApiServer) -> None:
    manifests = kustomizations()["components/wholeip"]
    (daemons,) = [one for one in manifests if one["kind"] == "DaemonSet" and one["metadata"]["name"] == "wholeip"]
    template = pod_template(daemons)
    assert template is not None
    set_quota_status(applied, SPACE, "node-critical")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "wholeip"}, "spec": template["spec"]}
    made = admitted_pod(applied, SPACE, pod)
    assert made["spec"]["priority"] == 2_000_001_000
    assert made["spec"]["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["NET_ADMIN"]}
