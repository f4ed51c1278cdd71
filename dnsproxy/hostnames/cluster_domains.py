"""The cluster domains: the zones of the cluster's own names, from all that tell them.

The law: pure. All that are known are guarded together, because a domain too many costs nobody a name, and one too few
lets an object take the cluster's own. Without any, all usual ones are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

USUAL: Final = ("cluster.local", "cozy.local")
"""The defaults of distributions. kubeadm, k3s, RKE2, Talos, OpenShift, EKS, AKS and GKE have the first one, and
cozystack before 1.6 the second."""


@dataclass(frozen=True, slots=True)
class ClusterDomains:
    """The cluster domains by what tells them, in normal form."""

    flags: tuple[str, ...] = ()
    """`--cluster-domain`."""
    search: tuple[str, ...] = ()
    """Of the search list of a pod."""
    corefile: tuple[str, ...] = ()
    """The zones of CoreDNS's plugin `kubernetes`."""

    @property
    def is_known(self) -> bool:
        """Whether anything tells them."""
        return bool(self.flags or self.search or self.corefile)

    @property
    def guarded(self) -> tuple[str, ...]:
        """The domains whose names are denied to every claim."""
        return tuple(dict.fromkeys((*self.corefile, *self.search, *self.flags))) or USUAL

    @property
    def told_by(self) -> str:
        """What tells them, for a log line: `--cluster-domain, the Corefile`."""
        told = {"the Corefile": self.corefile, "the search list": self.search, "--cluster-domain": self.flags}
        return ", ".join(name for name, domains in told.items() if domains) or "nothing: the usual ones are guarded"
