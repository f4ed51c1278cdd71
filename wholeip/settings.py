"""What the programs are told: frozen values, made once at the edge and handed down.

The law: no default here contradicts the help text of the flags; nothing else holds a setting.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sidecar.values.endpoints import Endpoint
from wholeip.mappings.addresses import Network
from wholeip.mappings.services import DEFAULT_PROXY_NAME


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """What to look for in a cluster, and from where."""

    proxy_name: str = DEFAULT_PROXY_NAME
    """The value of the label that selects Services."""
    node_name: str | None = None
    """None: every pod is taken to run here."""
    networks: tuple[Network, ...] = ()
    """Of the cluster's pods and Services, beside those that nodes name."""
    protected: tuple[Network, ...] = ()
    """Addresses in them are never mapped."""
    kubeconfig: str | None = None
    """None: KUBECONFIG, the pod's own account, ~/.kube/config."""
    context: str | None = None


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Of the agent. Times in seconds."""

    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    resync: float = 60.0
    """Between two comparisons with the kernel, where it does not tell of a change by itself."""
    end_flows: bool = True
    """Whether flows end that a change of the rules no longer allows."""
    remove_on_exit: bool = False
    """Whether the rules go when the agent does."""
    admin: Endpoint | None = None
