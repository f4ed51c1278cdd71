"""The installation: which folder of deploy/ fits a cluster, its image, and how one of ours decides about names.

The law: only what the facts show chooses a folder: how the owner of the cluster's DNS takes the stanza, and where its
DNS was not read, the version of Kubernetes. Every other cluster gets the whole of deploy/. Tested in
tests/dnsproxy/doctor/judge/test_installation.py.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from dnsproxy.cluster_dns.owner import Form
from dnsproxy.doctor.facts.model import Facts, OwnService

AUTO: Final = "auto"
"""The target with which the route Services say whose names are answered."""
DEPLOY: Final = "deploy"
BUILT_FOR: Final = ""
"""The image of the release that this is, `NAME:TAG`; `make release` writes it here, and in a checkout there is none."""
_BY_FORM: Final = MappingProxyType(
    {
        Form.EKS_ADDON.value: "eks",
        Form.HELM_CHART_CONFIG.value: "rke2",
        Form.OPENSHIFT_DNS.value: "openshift",
        Form.KOPS_CLUSTER.value: "kops",
        Form.K0S_CLUSTER.value: "k0s",
    }
)
_BY_VERSION: Final = MappingProxyType({"+rke2": "rke2", "-eks": "eks", "+k0s": "k0s"})


def folder(facts: Facts) -> str:
    """The folder to apply, from the top of this project."""
    dns = facts.dns
    if dns is not None and dns.where:
        name = _BY_FORM.get(dns.printed_as, "")
    else:
        name = next((name for mark, name in _BY_VERSION.items() if mark in facts.server_version), "")
    return f"{DEPLOY}/overlays/{name}" if name else DEPLOY


def prints(facts: Facts) -> bool:
    """Whether the owner of the cluster's DNS has to be handed the stanza."""
    return folder(facts) != DEPLOY or bool(facts.dns is not None and facts.dns.printed_as)


def image_of(facts: Facts, built_for: str = BUILT_FOR) -> str:
    """The image of our programs on the cluster's nodes: that of the running pods, else that of this release.

    Empty if neither is known.
    """
    parts = (facts.dnsproxy, facts.relay)
    return next((part.image for part in parts if part is not None and part.image), built_for)


def is_automatic(dnsproxy: OwnService | None) -> bool:
    """Whether a dnsproxy answers names as the route Services say, which `dnsproxy operate` writes."""
    return dnsproxy is not None and dnsproxy.settings.get("DNSPROXY_TARGET") == AUTO
