"""Names that nodes need for themselves: of API servers, registries, clouds, downloads.

The law: a name of the cluster never takes one of these in a node's hosts file unless the owner of the node names
exactly that name. An Ingress in any namespace may claim them, and the node's kubelet and container runtime would obey.
Pure.
"""

from __future__ import annotations

from typing import Final

_CLUSTER: Final = ("cluster.local", "default", "localdomain", "localhost", "svc")
"""`kubernetes.default.svc` and its parts; a name of one label is protected in any case."""
_API_SERVERS: Final = (
    "aks.containerservice.azure.us",
    "api.aws",
    "api.openshift.com",
    "azk8s.cn",
    "azmk8s.io",
    "containers.cloud.ibm.com",
    "exo.io",
    "gke.goog",
    "k8s.civo.com",
    "k8s.ondigitalocean.com",
    "k8s.ovh.net",
    "linodelke.net",
    "openshiftapps.com",
    "oraclecloud.com",
    "oraclecloud.eu",
    "oraclegovcloud.com",
    "scw.cloud",
    "ske.eu01.onstackit.cloud",
    "vultr-k8s.com",
)
"""Managed API servers have names below these."""
_REGISTRIES: Final = (
    "aliyuncs.com",
    "azurecr.cn",
    "azurecr.io",
    "azurecr.us",
    "baidubce.com",
    "cgr.dev",
    "cloudflarestorage.com",
    "cloudfront.net",
    "cloudsmith.io",
    "container-registry.oracle.com",
    "container-registry.ovh.net",
    "cr.yandex",
    "daocloud.io",
    "digitaloceanspaces.com",
    "docker.com",
    "docker.elastic.co",
    "docker.io",
    "factory.talos.dev",
    "gcr.io",
    "ghcr.io",
    "githubusercontent.com",
    "gitlab-static.net",
    "icr.io",
    "jfrog.io",
    "k8s.io",
    "lscr.io",
    "mcr.azure.cn",
    "mcr.microsoft.com",
    "myhuaweicloud.com",
    "myhuaweicloud.eu",
    "myqcloud.com",
    "ngc.nvidia.com",
    "nvcr.io",
    "ocir.io",
    "on.aws",
    "pkg.dev",
    "public.ecr.aws",
    "quay.io",
    "redhat.io",
    "registry.access.redhat.com",
    "registry.connect.redhat.com",
    "registry.digitalocean.com",
    "registry.fedoraproject.org",
    "registry.gitlab.com",
    "registry.onstackit.cloud",
    "registry.opensuse.org",
    "registry.rancher.com",
    "registry.suse.com",
    "scarf.sh",
    "tencentcloudcr.com",
    "tencentyun.com",
    "ttl.sh",
    "volces.com",
    "vultrcr.com",
    "xpkg.crossplane.io",
    "xpkg.upbound.io",
    "yandexcloud.net",
)
"""Public registries, and where they redirect to for the layers."""
_CLOUDS: Final = (
    "amazonaws.com",
    "amazonaws.com.cn",
    "amazonaws.eu",
    "amazonwebservices.com.cn",
    "chinacloudapi.cn",
    "googleapis.com",
    "iam.cloud.ibm.com",
    "internal",
    "internal.cloudapp.net",
    "login.microsoftonline.com",
    "login.microsoftonline.us",
    "login.partner.microsoftonline.cn",
    "management.azure.com",
    "openstacklocal",
    "oraclevcn.com",
    "usgovcloudapi.net",
    "windows.net",
)
"""Metadata, credentials, node names and the storage that registries redirect to."""
_PROGRAMS: Final = (
    "acs-mirror.azureedge.net",
    "dl.google.com",
    "download.opensuse.org",
    "get.helm.sh",
    "github.com",
    "k3s.io",
    "mirror.openshift.com",
    "packages.aks.azure.com",
    "packages.cloud.google.com",
    "packages.microsoft.com",
    "rancher.io",
    "rke2.io",
    "snapcraft.io",
    "snapcraftcontent.com",
    "update.release.flatcar-linux.net",
)
"""Where nodes download their own programs from, at an upgrade too."""

PROTECTED: Final = frozenset((*_CLUSTER, *_API_SERVERS, *_REGISTRIES, *_CLOUDS, *_PROGRAMS))
"""Each with all names below it."""


def is_protected(hostname: str) -> bool:
    """Whether a name in normal form is a single label, or at or below a protected name."""
    if "." not in hostname:
        return True
    # One look-up for each label: a table has up to 500,000 names.
    return is_at_or_below(hostname, PROTECTED)


def is_at_or_below(hostname: str, names: frozenset[str]) -> bool:
    """Whether a name is one of these or below one."""
    while hostname:
        if hostname in names:
            return True
        hostname = hostname.partition(".")[2]
    return False
