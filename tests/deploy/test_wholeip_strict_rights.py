"""With its own token the agent of the component wholeip-strict may read Pods too, and verifies endpoints with them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.called import NEVER_ALLOWED, rows
from tests.deploy.calls import Caller, account
from tests.deploy.kubectl import kubectl
from tests.deploy.manifests import DEPLOY, compose
from tests.deploy.test_wholeip_rights import NOT_WHOLEIP, READS, SPACE, WHOLEIP
from tests.kit.apiserver import ApiServer

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl", "gateway-api", "prometheus-operator", "dnsendpoint")

PODS = """
list pods
watch pods
"""
NOT_PODS = f"""
get pods any in {SPACE}
patch pods any in {SPACE}
delete pods any in {SPACE}
patch pods/status any in {SPACE}
get pods/log any in {SPACE}
create pods/eviction any in {SPACE}
"""


@pytest.fixture(scope="module")
def agent(bare: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Caller:
    parts = [DEPLOY / "components" / one for one in ("wholeip", "wholeip-strict")]
    kubectl(bare, "apply", "-k", str(compose(tmp_path_factory.mktemp("composed"), with_components=parts)))
    return account(bare, SPACE, "wholeip")


def test_the_agent_may_read_pods_too(agent: Caller) -> None:
    calls = rows(WHOLEIP, PODS)
    assert agent.allowed(calls) == calls


def test_the_agent_may_do_nothing_else(agent: Caller) -> None:
    others = [one for one in rows(NEVER_ALLOWED) if not one.startswith((*READS, "list pods", "watch pods"))]
    assert agent.allowed([*others, *rows(NOT_WHOLEIP, NOT_PODS)]) == []


def test_the_program_verifies_with_its_rights(agent: Caller, tmp_path: Path) -> None:
    config = agent.write_kubeconfig(tmp_path / "kubeconfig")
    command = [sys.executable, "-m", "wholeip", "rules", "--kubeconfig", str(config), "--node-name", "n1"]
    done = subprocess.run(
        [*command, "--endpoints", "verified"], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "forbidden" not in done.stderr.lower()
