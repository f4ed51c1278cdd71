"""The guide's kustomizations of ip-mode-watch for other Services: the patched command, run with its account's rights.

The rights of the unpatched component are in test_ip_mode_watch_rights.py.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.deploy.calls import account
from tests.deploy.kubectl import kubectl
from tests.deploy.manifests import Manifest, containers, find, render
from tests.deploy.putting import put, take_away
from tests.deploy.test_readme import written
from tests.kit.apiserver import ApiServer
from tests.kit.ip_mode import Services, entries_of, status_of
from tests.kit.polling import poll_until
from tests.kit.watching import launched_watch

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl", "gateway-api", "prometheus-operator", "dnsendpoint")

OTHERS: Final = "ingress-nginx/other"
"""A Service that no kustomization names."""
WRITTEN: Final[Mapping[str, Sequence[str]]] = {
    "my-cluster/ip-mode-watch": ["traefik/web"],
    "my-cluster/ip-mode-watch-two": ["ingress-nginx/ingress-nginx-controller", "ingress-nginx/internal"],
}
"""The Services that each kustomization of the guide lets the watch write."""
EVERY: Final = sorted({OTHERS, *(name for names in WRITTEN.values() for name in names)})


def service(key: str) -> Manifest:
    """A Service of a load balancer that ends connections."""
    namespace, _, name = key.partition("/")
    annotations = {"load-balancer.hetzner.cloud/uses-proxyprotocol": "true"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 443}]},
    }


def modes(server: ApiServer, key: str) -> list[str]:
    namespace, _, name = key.partition("/")
    return [entry["ipMode"] for entry in entries_of(Services(server, namespace).get(name))]


@pytest.fixture
def server(bare: ApiServer) -> Iterator[ApiServer]:
    """The API server with these Services, whose provider wrote VIP, and at the end without them and their rights."""
    namespaces = sorted({key.partition("/")[0] for key in EVERY})
    put(bare, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in namespaces])
    services = [service(key) for key in EVERY]
    put(bare, services)
    for one in services:
        space = Services(bare, one["metadata"]["namespace"])
        space.patch_status(one["metadata"]["name"], status_of([{"ip": "192.0.2.80", "ipMode": "VIP"}]))
    yield bare
    named = ("--field-selector", "metadata.name=switchback-ip-mode-watch")
    kubectl(bare, "delete", "roles,rolebindings", "-A", *named)
    take_away(bare, services)


@pytest.mark.parametrize("place", WRITTEN)
def test_the_guides_patches_let_the_watch_write_the_services_that_they_name_and_no_other(
    place: str, server: ApiServer, tmp_path: Path
) -> None:
    folder = written(place, tmp_path)
    kubectl(server, "apply", "-k", str(folder))
    caller = account(server, "switchback", "ip-mode-watch")
    kubeconfig = caller.write_kubeconfig(tmp_path / "kubeconfig")
    command = [*command_of(render(folder)), "--kubeconfig", str(kubeconfig)]
    with launched_watch(command, tmp_path) as watch:
        poll_until(lambda: all(modes(server, key) == ["Proxy"] for key in WRITTEN[place]), "Proxy", seconds=60)
        watch.wait_ready()
        assert {key for key in EVERY if modes(server, key) == ["VIP"]} == {*EVERY} - {*WRITTEN[place]}
    for key in EVERY:
        namespace, _, name = key.partition("/")
        calls = [
            f"{call} {name} in {namespace}" for call in ("list services", "watch services", "patch services/status")
        ]
        assert caller.allowed(calls) == (calls if key in WRITTEN[place] else [])


def command_of(manifests: Sequence[Manifest]) -> list[str]:
    """The command of the watch's container, without its admin port, which the test chooses."""
    (container,) = containers(find(manifests, "Deployment", "ip-mode-watch")["spec"]["template"])
    assert container["command"] == ["dnsproxy"]
    words = list(container["args"])
    at = words.index("--admin")
    return [sys.executable, "-m", "dnsproxy", *words[:at], *words[at + 2 :]]
