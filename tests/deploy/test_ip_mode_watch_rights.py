"""The rights of the component ip-mode-watch: those on the Service that it names, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.deploy.called import NEVER_ALLOWED, rows
from tests.deploy.calls import Caller, account
from tests.deploy.kubectl import kubectl
from tests.deploy.manifests import DEPLOY, compose
from tests.kit.apiserver import ApiServer

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl", "gateway-api", "prometheus-operator", "dnsendpoint")

CALLED = """
list services ingress-nginx-controller in ingress-nginx
watch services ingress-nginx-controller in ingress-nginx
patch services/status ingress-nginx-controller in ingress-nginx
create events in ingress-nginx
"""

REFUSED = """
list services in ingress-nginx
watch services in ingress-nginx
list services other in ingress-nginx
list services ingress-nginx-controller in default
patch services ingress-nginx-controller in ingress-nginx
update services ingress-nginx-controller in ingress-nginx
patch services/status other in ingress-nginx
patch services/status ingress-nginx-controller in default
delete services ingress-nginx-controller in ingress-nginx
create services in ingress-nginx
patch events any in ingress-nginx
create events in switchback
"""


@pytest.fixture(scope="module")
def watcher(bare: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Caller:
    folder = compose(
        Path(tmp_path_factory.mktemp("composed")), with_components=[DEPLOY / "components" / "ip-mode-watch"]
    )
    kubectl(bare, "apply", "-k", str(folder))
    return account(bare, "switchback", "ip-mode-watch")


def test_it_may_do_what_the_watch_calls(watcher: Caller) -> None:
    assert watcher.allowed(rows(CALLED)) == rows(CALLED)


def test_it_may_do_nothing_else(watcher: Caller) -> None:
    assert watcher.allowed(rows(REFUSED, NEVER_ALLOWED)) == []
