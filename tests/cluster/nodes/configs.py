"""The configuration files of a node's programs.

The law: text from values; it depends on the machine only through the arguments. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import yaml

from tests.cluster.addresses import WORLD, Addresses, Family
from tests.cluster.nodes.registry import REGISTRY, format_registry

API_PORT: Final = 6443
NFTABLES: Final = "nftables"
IPTABLES: Final = "iptables"
"""Modes of kube-proxy."""
MODES: Final = (NFTABLES, IPTABLES)
PAUSE: Final = "localhost/pause:1"
UPLINK: Final = "node0"
"""A node's device on the link."""
_IPV6: Final[Family] = 6


@dataclass(frozen=True)
class Place:
    """What the files and command lines of one node depend on."""

    folder: str
    """Of this node's files."""
    number: int
    """The first node, 1, has the control plane."""
    at: Sequence[Addresses]
    """The cluster's families, the primary one first."""
    mode: str = NFTABLES
    """Of kube-proxy."""
    cgroup: str = "/"
    token: str = ""
    """The administrator's."""
    first_folder: str = ""
    """Of the first node's files, if this is another one."""

    @property
    def name(self) -> str:
        return f"node-{self.number}"

    @property
    def addresses(self) -> list[str]:
        """The node's own, by family."""
        return [one.node(self.number) for one in self.at]

    @property
    def server(self) -> str:
        """The API server's URL."""
        first = self.at[0]
        return f"https://{first.in_url(first.node(1))}:{API_PORT}"

    @property
    def has_ipv6(self) -> bool:
        return any(one.family == _IPV6 for one in self.at)

    @property
    def authority(self) -> str:
        """The file with the API server's certificate."""
        return f"{self.first_folder or self.folder}/certs/apiserver.crt"


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
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "{folder}/certs.d"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{folder}/cni"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder}/containerd/opt"
"""


def format_network(place: Place) -> str:
    """The CNI configuration: a bridge, on which a pod can also reach itself through a Service."""
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        # It would rewrite what pods send to the pods of other nodes; see format_masquerade().
        "ipMasq": False,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": one.pods_of(place.number)}] for one in place.at],
            "routes": [{"dst": "::/0" if one.family == _IPV6 else "0.0.0.0/0"} for one in place.at],
        },
    }
    plugins = [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}]
    return json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": plugins}, indent=1)


def format_masquerade(place: Place) -> str:
    """A ruleset for `nft -f`: what pods send to others than pods leaves with the node's address."""
    rules = [
        f"    {family} saddr {one.pods} {family} daddr != {one.pods} oifname {UPLINK} masquerade"
        for one in place.at
        for family in ["ip6" if one.family == _IPV6 else "ip"]
    ]
    chain = ["  chain postrouting {", "    type nat hook postrouting priority srcnat;", *rules, "  }"]
    return "\n".join(["table inet pods {", *chain, "}", ""])


def format_kubelet(place: Place) -> str:
    """The kubelet's configuration; its pods' control groups are below the place's."""
    return yaml.safe_dump(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": "::" if place.has_ipv6 else "0.0.0.0",  # in the node's own network
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": place.cgroup,
            "cgroupsPerQOS": True,
            "enforceNodeAllocatable": [],
            "failSwapOn": False,
            "failCgroupV1": False,
            "containerRuntimeEndpoint": f"unix://{place.folder}/containerd.sock",
            "resolvConf": f"{place.folder}/resolv.conf",
            "clusterDNS": [place.at[0].dns],
            "clusterDomain": "cluster.local",
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "staticPodPath": f"{place.folder}/static",
            "podLogsDir": f"{place.folder}/logs",
            # The longest delay until a pod sees a changed ConfigMap; the default is a minute. The scene waits for it
            # often.
            "syncFrequency": "10s",
            # The disk of the machine is not ours to manage.
            "evictionHard": {"memory.available": "50Mi"},
            "imageGCHighThresholdPercent": 100,
        }
    )


def format_proxy(place: Place) -> str:
    """kube-proxy's configuration."""
    return yaml.safe_dump(
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": place.mode,
            "bindAddress": "::" if place.at[0].family == _IPV6 else "0.0.0.0",  # in the node's own network
            "clusterCIDR": ",".join(one.pods for one in place.at),
            "hostnameOverride": place.name,
            # These settings would apply to the whole machine.
            "conntrack": {"maxPerCore": 0},
            "clientConnection": {"kubeconfig": f"{place.folder}/kubeconfig"},
        }
    )


def format_kubeconfig(place: Place) -> str:
    """The administrator's kubeconfig, for use in a node's network."""
    cluster = {"server": place.server, "certificate-authority": place.authority}
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "scene", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": place.token}}],
            "contexts": [{"name": "scene", "context": {"cluster": "scene", "user": "admin"}}],
            "current-context": "scene",
        }
    )


def format_public_dns(place: Place) -> str:
    """The public DNS's Corefile: every name below example.org is at a load balancer, www.example.net elsewhere."""
    bound = f"    bind {' '.join(one.node(1) for one in place.at)}\n"
    zones = {"example.org": [(one.record, one.public) for one in place.at]}
    for controller in WORLD:
        zones[f"{controller}.example.org"] = [(one.record, one.of(controller)) for one in place.at]
    balanced = "".join(
        f"{zone} {{\n{bound}{_templates(records)}    template IN ANY\n}}\n" for zone, records in zones.items()
    )
    elsewhere = "".join(
        f"    template IN {one.record} example.net {{\n"
        "        match ^www[.]example[.]net[.]$\n"
        f'        answer "{{{{ .Name }}}} 60 IN {one.record} {one.elsewhere}"\n'
        "        fallthrough\n"
        "    }\n"
        for one in place.at
    )
    return f"{balanced}. {{\n{bound}{elsewhere}    template IN ANY {{\n        rcode NXDOMAIN\n    }}\n}}\n"


def _templates(records: Iterable[tuple[str, str]]) -> str:
    """Every name of a zone has these records."""
    return "".join(
        f'    template IN {record} {{\n        answer "{{{{ .Name }}}} 60 IN {record} {address}"\n    }}\n'
        for record, address in records
    )


def format_hosts(place: Place) -> str:
    """The node's own hosts file, without a newline at its end."""
    own = f"{place.addresses[0]} {place.name}   # by hand"
    return f"127.0.0.1\tlocalhost\n{own}\n\n2001:db8::7 elsewhere.example.net"


def format_resolv_conf(place: Place) -> str:
    return f"nameserver {place.at[0].node(1)}\n"


def files(place: Place) -> dict[str, str]:
    """Every configuration file, by its path in the place's folder."""
    common = {
        "containerd.toml": format_containerd(place.folder),
        f"certs.d/{REGISTRY}/hosts.toml": format_registry(place.folder),
        "cni/10-pods.conflist": format_network(place),
        "masquerade.nft": format_masquerade(place),
        "kubelet.yaml": format_kubelet(place),
        "kube-proxy.yaml": format_proxy(place),
        "kubeconfig": format_kubeconfig(place),
        "resolv.conf": format_resolv_conf(place),
    }
    if place.number > 1:
        return common
    return common | {
        "public.Corefile": format_public_dns(place),
        "tokens.csv": f"{place.token},admin,1,system:masters\n",
    }
