"""The configuration files of a node's programs.

The law: text from values; it depends on the machine only through the arguments. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

import yaml

NODE: Final = "node-1"
NODE_ADDRESS: Final = "198.18.7.2"
"""RFC 2544: for network tests; visible only inside the node's own network."""
PUBLIC_ADDRESS: Final = "198.18.7.100"
SECOND_ADDRESS: Final = "198.18.7.102"
"""Of the second controller's Service."""
"""The load balancer's address in the public DNS."""
POD_RANGE: Final = "10.244.0.0/24"
SERVICE_RANGE: Final = "10.96.0.0/16"
CLUSTER_DNS: Final = "10.96.0.10"
API_PORT: Final = 6443
NFTABLES: Final = "nftables"
IPTABLES: Final = "iptables"
"""Modes of kube-proxy."""
PAUSE: Final = "localhost/pause:1"
HOSTS: Final = f"127.0.0.1\tlocalhost\n{NODE_ADDRESS} {NODE}   # by hand\n\n2001:db8::7 elsewhere.example.net"
"""The node's own hosts file, without a newline at its end."""


def format_containerd(folder: str, *, plugins: str = "/usr/lib/cni") -> str:
    """Containerd's config.toml. All its data is below `folder`; `plugins` has the CNI's programs."""
    return f"""\
version = 2
root = "{folder}/containerd/root"
state = "{folder}/containerd/state"
[grpc]
  address = "{folder}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  # Without CAP_SYS_RESOURCE runc could not lower it, and fails.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{folder}/cni"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder}/containerd/opt"
"""


def format_network() -> str:
    """The CNI configuration: a bridge, on which a pod can also reach itself through a Service."""
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "ipMasq": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": POD_RANGE}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    plugins = [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}]
    return json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": plugins}, indent=1)


def format_kubelet(folder: str, *, cgroup: str) -> str:
    """The kubelet's configuration; its pods' control groups are below `cgroup`."""
    return yaml.safe_dump(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": cgroup,
            "cgroupsPerQOS": True,
            "enforceNodeAllocatable": [],
            "failSwapOn": False,
            "failCgroupV1": False,
            "containerRuntimeEndpoint": f"unix://{folder}/containerd.sock",
            "resolvConf": f"{folder}/resolv.conf",
            "clusterDNS": [CLUSTER_DNS],
            "clusterDomain": "cluster.local",
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "staticPodPath": f"{folder}/static",
            "podLogsDir": f"{folder}/logs",
            # The longest delay until a pod sees a changed ConfigMap; the default is a minute. The scene waits for it
            # often.
            "syncFrequency": "10s",
            # The disk of the machine is not ours to manage.
            "evictionHard": {"memory.available": "50Mi"},
            "imageGCHighThresholdPercent": 100,
        }
    )


def format_proxy(folder: str, *, mode: str = NFTABLES) -> str:
    """kube-proxy's configuration."""
    return yaml.safe_dump(
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": mode,
            "clusterCIDR": POD_RANGE,
            "hostnameOverride": NODE,
            # These settings would apply to the whole machine.
            "conntrack": {"maxPerCore": 0},
            "clientConnection": {"kubeconfig": f"{folder}/kubeconfig"},
        }
    )


def format_kubeconfig(*, authority: str, token: str) -> str:
    """The administrator's kubeconfig, for use in the node's network."""
    cluster = {"server": f"https://{NODE_ADDRESS}:{API_PORT}", "certificate-authority": authority}
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "node", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": token}}],
            "contexts": [{"name": "node", "context": {"cluster": "node", "user": "admin"}}],
            "current-context": "node",
        }
    )


def format_public_dns() -> str:
    """The public DNS's Corefile: every name below example.org is at the load balancer, www.example.net elsewhere."""
    return f"""\
example.org {{
    bind {NODE_ADDRESS}
    template IN A {{
        answer "{{{{ .Name }}}} 60 IN A {PUBLIC_ADDRESS}"
    }}
    template IN ANY
}}
. {{
    bind {NODE_ADDRESS}
    template IN A example.net {{
        match ^www[.]example[.]net[.]$
        answer "{{{{ .Name }}}} 60 IN A 192.0.2.80"
        fallthrough
    }}
    template IN ANY {{
        rcode NXDOMAIN
    }}
}}
"""


def programs(folder: str, *, find: Mapping[str, str]) -> dict[str, list[str]]:
    """The command lines of the node's programs by name, in starting order."""
    kubeconfig = f"--kubeconfig={folder}/kubeconfig"
    etcd = "http://127.0.0.1:2379"
    peer = "http://127.0.0.1:2380"
    return {
        "public-dns": [find["coredns"], "-conf", f"{folder}/public.Corefile", "-p", "53"],
        "etcd": [
            *(find["etcd"], "--unsafe-no-fsync", f"--data-dir={folder}/etcd", "--name=node"),
            *(f"--listen-client-urls={etcd}", f"--advertise-client-urls={etcd}"),
            *(f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=node={peer}"),
        ],
        "kube-apiserver": [
            find["kube-apiserver"],
            f"--etcd-servers={etcd}",
            f"--secure-port={API_PORT}",
            f"--advertise-address={NODE_ADDRESS}",
            f"--cert-dir={folder}/certs",
            f"--service-account-key-file={folder}/sa.pub",
            f"--service-account-signing-key-file={folder}/sa.key",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--token-auth-file={folder}/tokens.csv",
            "--authorization-mode=RBAC",
            f"--service-cluster-ip-range={SERVICE_RANGE}",
            "--kubelet-preferred-address-types=InternalIP",
            "--allow-privileged",
        ],
        "containerd": [find["containerd"], "--config", f"{folder}/containerd.toml"],
        "kube-controller-manager": [
            *(find["kube-controller-manager"], kubeconfig, "--leader-elect=false"),
            f"--service-account-private-key-file={folder}/sa.key",
            f"--root-ca-file={folder}/certs/apiserver.crt",
        ],
        "kube-scheduler": [find["kube-scheduler"], kubeconfig, "--leader-elect=false"],
        "kubelet": [
            *(find["kubelet"], kubeconfig, f"--config={folder}/kubelet.yaml", f"--root-dir={folder}/kubelet"),
            *(f"--hostname-override={NODE}", f"--node-ip={NODE_ADDRESS}"),
        ],
        "kube-proxy": [find["kube-proxy"], f"--config={folder}/kube-proxy.yaml"],
        "enforcer": [find["python"], "-m", "tests.cluster.enforcer", f"{folder}/kubeconfig"],
    }


def files(folder: str, *, cgroup: str, token: str) -> dict[str, str]:
    """Every configuration file, by its name in `folder`."""
    return {
        "containerd.toml": format_containerd(folder),
        "cni/10-pods.conflist": format_network(),
        "kubelet.yaml": format_kubelet(folder, cgroup=cgroup),
        "kube-proxy.yaml": format_proxy(folder),
        "kubeconfig": format_kubeconfig(authority=f"{folder}/certs/apiserver.crt", token=token),
        "public.Corefile": format_public_dns(),
        "resolv.conf": f"nameserver {NODE_ADDRESS}\n",
        "tokens.csv": f"{token},admin,1,system:masters\n",
    }
