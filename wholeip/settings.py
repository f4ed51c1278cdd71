"""The settings of the programs: frozen values, created once from the flags.

The law: each default equals that in the help text of its flag; no other module holds a setting. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sidecar.values.endpoints import Endpoint
from wholeip.mappings.addresses import Network
from wholeip.mappings.pods import Proof
from wholeip.mappings.services import DEFAULT_PROXY_NAME


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """The objects to follow, and the cluster that has them."""

    proxy_name: str = DEFAULT_PROXY_NAME
    """The value of the label that selects Services."""
    node_name: str | None = None
    """None: every pod counts as running here."""
    networks: tuple[Network, ...] = ()
    """Networks of the cluster's pods and Services, beside those of nodes."""
    protected: tuple[Network, ...] = ()
    """Addresses in them are never mapped."""
    allowed: tuple[Network, ...] = ()
    """Only addresses in them are mapped; empty: all that are not refused."""
    endpoints: Proof = Proof.REFERENCED
    """What an endpoint needs to count as a Pod."""
    kubeconfig: str | None = None
    """None: KUBECONFIG, the pod's own account, ~/.kube/config."""
    context: str | None = None


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The settings of the agent. Times in seconds."""

    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    resync: float = 60.0
    """Between two comparisons with the kernel, while it notifies of no change."""
    end_flows: bool = True
    """Whether to end flows that a change of the rules no longer allows, and those that are older than a mapping."""
    end_connections: bool = False
    """Whether connections (TCP, SCTP) that are older than a mapping end too."""
    events: bool = False
    """Whether excluded Services are also reported as Kubernetes Events."""
    remove_on_exit: bool = False
    """Whether to remove the rules when the agent exits."""
    admin: Endpoint | None = None
    admin_hosts: tuple[str, ...] = ()
    """The names by which the admin port may be asked."""
