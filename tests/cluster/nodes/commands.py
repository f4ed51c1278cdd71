"""The command lines of a node's programs.

The law: words from values, in starting order; no secret is among them, because every user of a machine can read a
command line. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.cluster.nodes.configs import API_PORT, Place

_ETCD: Final = "http://127.0.0.1:2379"
_PEER: Final = "http://127.0.0.1:2380"


def programs(place: Place, *, find: Mapping[str, str]) -> dict[str, list[str]]:
    """The command lines by program; the first node has those of the control plane too."""
    control_plane = _control_plane(place, find=find) if place.number == 1 else {}
    return {**control_plane, **_worker(place, find=find)}


def _control_plane(place: Place, *, find: Mapping[str, str]) -> dict[str, list[str]]:
    folder, first = place.folder, place.at[0]
    kubeconfig = f"--kubeconfig={folder}/kubeconfig"
    return {
        "public-dns": [find["coredns"], "-conf", f"{folder}/public.Corefile", "-p", "53"],
        "etcd": [
            *(find["etcd"], "--unsafe-no-fsync", f"--data-dir={folder}/etcd", "--name=node"),
            *(f"--listen-client-urls={_ETCD}", f"--advertise-client-urls={_ETCD}"),
            f"--listen-peer-urls={_PEER}",
            *(f"--initial-advertise-peer-urls={_PEER}", f"--initial-cluster=node={_PEER}"),
        ],
        "kube-apiserver": [
            find["kube-apiserver"],
            f"--etcd-servers={_ETCD}",
            f"--secure-port={API_PORT}",
            # The address and the certificate of the Service `kubernetes` are of its family.
            f"--advertise-address={first.node(1)}",
            f"--bind-address={'::' if place.has_ipv6 else '0.0.0.0'}",
            f"--cert-dir={folder}/certs",
            f"--service-account-key-file={folder}/sa.key",
            f"--service-account-signing-key-file={folder}/sa.key",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--token-auth-file={folder}/tokens.csv",
            "--authorization-mode=RBAC",
            f"--service-cluster-ip-range={','.join(one.services for one in place.at)}",
            "--kubelet-preferred-address-types=InternalIP",
            "--allow-privileged",
        ],
        "kube-controller-manager": [
            *(find["kube-controller-manager"], kubeconfig, "--leader-elect=false"),
            f"--service-account-private-key-file={folder}/sa.key",
            f"--root-ca-file={place.authority}",
        ],
        "kube-scheduler": [find["kube-scheduler"], kubeconfig, "--leader-elect=false"],
    }


def _worker(place: Place, *, find: Mapping[str, str]) -> dict[str, list[str]]:
    folder = place.folder
    return {
        "containerd": [find["containerd"], "--config", f"{folder}/containerd.toml"],
        "kubelet": [
            *(find["kubelet"], f"--kubeconfig={folder}/kubeconfig", f"--config={folder}/kubelet.yaml"),
            *(f"--root-dir={folder}/kubelet", f"--hostname-override={place.name}"),
            f"--node-ip={','.join(place.addresses)}",
        ],
        "kube-proxy": [find["kube-proxy"], f"--config={folder}/kube-proxy.yaml"],
        "enforcer": [find["python"], "-m", "tests.cluster.nodes.enforcer", f"{folder}/kubeconfig"],
    }
