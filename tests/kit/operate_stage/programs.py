"""The programs of the stage besides the API server: the controller of EndpointSlices and kube-proxy, both real.

The law: each runs in the network of the calling thread, and ends with its block.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from tests.kit.apiserver import ApiServer
from tests.kit.launched import ROOT
from tests.kit.ports import free_port
from tests.kit.processes import end_process, wait_for
from tests.kit.programs import program

NODE: Final = "stage"


@contextmanager
def running(
    command: Sequence[str], log: Path, is_ready: Callable[[], bool], **variables: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A program for the duration of a block, from its readiness."""
    # /sbin for nft, which kube-proxy calls by name.
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, cwd=ROOT, env={**os.environ, "PATH": path, **variables}
        )
    try:
        wait_for(is_ready, process=process, log=log)
        yield process
    finally:
        end_process(process)


def create_node(api: ApiServer, address: str) -> None:
    """The node of all pods: both programs wait for it."""
    api.request("POST", "/api/v1/nodes", {"metadata": {"name": NODE}, "spec": {"podCIDRs": ["10.244.0.0/16"]}})
    status = {
        "addresses": [{"type": "InternalIP", "address": address}],
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    path = f"/api/v1/nodes/{NODE}/status"
    api.request("PATCH", path, {"status": status}, content_type="application/merge-patch+json")


@contextmanager
def endpoint_slice_controller(api: ApiServer, folder: Path) -> Iterator[None]:
    """The controllers of kube-controller-manager that make EndpointSlices out of Pods."""
    log = folder / "controllers.log"
    command = [
        program("kube-controller-manager"),
        f"--kubeconfig={api.kubeconfig}",
        "--controllers=endpointslice-controller,namespace-controller",
        "--leader-elect=false",
        "--secure-port=0",
    ]
    with running(command, log, lambda: b"endpoint slice controller" in log.read_bytes()):
        yield


@contextmanager
def kube_proxy(api: ApiServer, folder: Path) -> Iterator[None]:
    """kube-proxy in nftables mode, for the connections of this network."""
    log, health = folder / "kube-proxy.log", free_port()
    config: dict[str, Any] = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "hostnameOverride": NODE,
        "clusterCIDR": "10.244.0.0/16",
        "conntrack": {"maxPerCore": 0},
        "clientConnection": {"kubeconfig": str(api.kubeconfig)},
        "healthzBindAddress": f"127.0.0.1:{health}",
        "metricsBindAddress": f"127.0.0.1:{free_port()}",
        # Rules within milliseconds of a change.
        "nftables": {"syncPeriod": "10s", "minSyncPeriod": "0s"},
    }
    (folder / "kube-proxy.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    command = [program("kube-proxy"), f"--config={folder / 'kube-proxy.yaml'}"]

    def has_rules() -> bool:
        listed = subprocess.run([program("nft"), "list", "table", "ip", "kube-proxy"], check=False, capture_output=True)
        return b"10.96.0.1" in listed.stdout

    with running(command, log, has_rules):
        yield
