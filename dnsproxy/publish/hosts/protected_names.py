"""Names that nodes need for themselves: of API servers, image registries and cloud services.

The law: a name of the cluster never takes one of these in a node's hosts file unless the owner of the node names
exactly that name. An Ingress in any namespace may claim them, and the node's kubelet and container runtime would obey.
Pure.
"""

from __future__ import annotations

from typing import Final

_CLUSTER: Final = ("cluster.local", "default", "localdomain", "localhost", "svc")
"""`kubernetes.default.svc` and its parts; a name of one label is protected in any case."""
_API_SERVERS: Final = (
    "azmk8s.io",
    "containers.cloud.ibm.com",
    "eks.amazonaws.com",
    "exo.io",
    "gke.goog",
    "k8s.civo.com",
    "k8s.ondigitalocean.com",
    "k8s.ovh.net",
    "linodelke.net",
    "oraclecloud.com",
    "scw.cloud",
    "ske.eu01.onstackit.cloud",
    "vultr-k8s.com",
)
"""Managed API servers have names below these."""
_REGISTRIES: Final = (
    "aliyuncs.com",
    "azurecr.io",
    "cgr.dev",
    "cloudflarestorage.com",
    "cloudfront.net",
    "docker.com",
    "docker.elastic.co",
    "docker.io",
    "gcr.io",
    "ghcr.io",
    "githubusercontent.com",
    "icr.io",
    "k8s.io",
    "lscr.io",
    "mcr.microsoft.com",
    "nvcr.io",
    "ocir.io",
    "pkg.dev",
    "public.ecr.aws",
    "quay.io",
    "redhat.io",
    "registry.access.redhat.com",
    "registry.connect.redhat.com",
    "registry.digitalocean.com",
    "registry.gitlab.com",
    "registry.suse.com",
    "xpkg.upbound.io",
)
"""Public registries, and where they redirect to for the layers."""
_CLOUDS: Final = (
    "amazonaws.com",
    "amazonaws.com.cn",
    "compute.internal",
    "ec2.internal",
    "google.internal",
    "googleapis.com",
    "login.microsoftonline.com",
    "management.azure.com",
    "windows.net",
)
"""Metadata, credentials, node names and the storage that registries redirect to."""

_PROTECTED: Final = frozenset((*_CLUSTER, *_API_SERVERS, *_REGISTRIES, *_CLOUDS))


def is_protected(hostname: str) -> bool:
    """Whether a name in normal form is a single label, or at or below a protected name."""
    if "." not in hostname:
        return True
    # One look-up for each label: a table has up to 500,000 names.
    return is_at_or_below(hostname, _PROTECTED)


def is_at_or_below(hostname: str, names: frozenset[str]) -> bool:
    """Whether a name is one of these or below one."""
    while hostname:
        if hostname in names:
            return True
        hostname = hostname.partition(".")[2]
    return False
