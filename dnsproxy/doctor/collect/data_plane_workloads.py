"""The DaemonSets that can be the data plane, of all that have the name of one.

The law: the namespace decides. A tenant may create a DaemonSet of any name and write hostNetwork into its template, and
its status may count pods as ready that the tenant made without hostNetwork: a DaemonSet adopts every pod that its
selector finds. Only an owner creates in the namespaces here. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dnsproxy.cluster_dns.servers import pod_of
from dnsproxy.doctor.judge.short_circuit import ANTREA, CILIUM, KUBE_PROXY, SYSTEM_NAMESPACE
from sidecar.kubernetes.structs.workload import Workload

CALICO: Final = "calico"
_OVN: Final = "ovn-kubernetes"
_NAMES: Final = {
    "kube-proxy": KUBE_PROXY,
    "cilium": CILIUM,
    "anetd": CILIUM,
    "antrea-agent": ANTREA,
    "calico-node": CALICO,
    "ovnkube-node": _OVN,
    "kube-router": "kube-router",
}
_NAMESPACES: Final = {
    CILIUM: ("cilium", "cilium-system", "cozy-cilium"),
    CALICO: ("calico-system",),
    _OVN: ("ovn-kubernetes", "openshift-ovn-kubernetes"),
}
"""Where installers put these programs, beside kube-system: the operators of Cilium, of Tigera and of OpenShift, and
Cozystack. A program is looked for only in its own."""


def data_plane_workloads(daemon_sets: Iterable[Workload]) -> tuple[tuple[str, Workload], ...]:
    """The name of each program that carries connections, and its DaemonSet; one for each program, by name.

    Of several the one in kube-system, then the one with most ready pods, then the first by text.
    """
    found: dict[str, Workload] = {}
    for one in sorted(daemon_sets, key=_rank):
        name = _NAMES.get(one.metadata.name)
        if name is not None and _can_be(name, one):
            found.setdefault(name, one)
    return tuple(sorted(found.items()))


def _can_be(name: str, workload: Workload) -> bool:
    namespace = workload.metadata.namespace or ""
    if namespace == SYSTEM_NAMESPACE:
        return True
    # A program that no pod runs carries nothing; how many are ready does not matter, because a rollout leaves few.
    carries = bool(pod_of(workload).host_network) and _ready(workload) > 0
    return carries and namespace in _NAMESPACES.get(name, ())


def _rank(workload: Workload) -> tuple[bool, int, str, str]:
    namespace = workload.metadata.namespace or ""
    return namespace != SYSTEM_NAMESPACE, -_ready(workload), namespace, workload.metadata.name


def _ready(workload: Workload) -> int:
    return (workload.status.number_ready or 0) if workload.status is not None else 0
