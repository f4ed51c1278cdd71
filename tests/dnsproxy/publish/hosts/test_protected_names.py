"""Names that a node needs for itself."""

from __future__ import annotations

import pytest

from dnsproxy.dns.names import parse_zone
from dnsproxy.publish.hosts.protected_names import PROTECTED, is_at_or_below, is_protected


@pytest.mark.parametrize(
    "hostname",
    [
        pytest.param("kubernetes", id="the API server's Service"),
        pytest.param("kubernetes.default", id="with its namespace"),
        pytest.param("kubernetes.default.svc", id="with svc"),
        pytest.param("kubernetes.default.svc.cluster.local", id="in full"),
        pytest.param("registry", id="a single label"),
        pytest.param("localhost", id="localhost"),
        pytest.param("x.localhost", id="below localhost"),
        pytest.param("abc.gr7.eu-west-1.eks.amazonaws.com", id="EKS"),
        pytest.param("example-dns.hcp.westeurope.azmk8s.io", id="AKS"),
        pytest.param("gke-abc.europe-west1.gke.goog", id="GKE"),
        pytest.param("abc.k8s.ondigitalocean.com", id="DigitalOcean"),
        pytest.param("abc.api.k8s.fr-par.scw.cloud", id="Scaleway"),
        pytest.param("registry.k8s.io", id="Kubernetes"),
        pytest.param("docker.io", id="Docker, as written"),
        pytest.param("registry-1.docker.io", id="Docker, as asked"),
        pytest.param("production.cloudflare.docker.com", id="Docker's layers"),
        pytest.param("cdn01.quay.io", id="Quay's layers"),
        pytest.param("ghcr.io", id="GitHub"),
        pytest.param("pkg-containers.githubusercontent.com", id="GitHub's layers"),
        pytest.param("gcr.io", id="Google"),
        pytest.param("europe-west1-docker.pkg.dev", id="Artifact Registry"),
        pytest.param("public.ecr.aws", id="public ECR"),
        pytest.param("123.dkr.ecr.eu-west-1.amazonaws.com", id="ECR"),
        pytest.param("mcr.microsoft.com", id="Microsoft"),
        pytest.param("example.azurecr.io", id="ACR"),
        pytest.param("registry.gitlab.com", id="GitLab"),
        pytest.param("registry.access.redhat.com", id="Red Hat"),
        pytest.param("metadata.google.internal", id="Google's metadata"),
        pytest.param("instance-data.ec2.internal", id="Amazon's metadata"),
        pytest.param("ip-192-0-2-1.eu-west-1.compute.internal", id="a node"),
        pytest.param("storage.googleapis.com", id="storage"),
        pytest.param("0123.sk1.eu-west-1.eks-cluster.eu-west-1.api.aws", id="EKS of two families"),
        pytest.param("123.dkr-ecr.eu-west-1.on.aws", id="ECR of two families"),
        pytest.param("sts.eusc-de-east-1.amazonaws.eu", id="Amazon's cloud of Europe"),
        pytest.param("api.example.p1.openshiftapps.com", id="OpenShift of a cloud"),
        pytest.param("swr.cn-north-4.myhuaweicloud.com", id="Huawei's registry"),
        pytest.param("ccr.ccs.tencentyun.com", id="Tencent's registry and metadata"),
        pytest.param("example.tencentcloudcr.com", id="Tencent's registry of companies"),
        pytest.param("example.azurecr.cn", id="ACR of China"),
        pytest.param("example.azurecr.us", id="ACR of the US government"),
        pytest.param("example.blob.core.chinacloudapi.cn", id="layers of ACR in China"),
        pytest.param("example.blob.core.usgovcloudapi.net", id="layers of ACR of the US government"),
        pytest.param("login.chinacloudapi.cn", id="Microsoft's login in China"),
        pytest.param("login.microsoftonline.us", id="Microsoft's login of the US government"),
        pytest.param("cdn.registry.gitlab-static.net", id="GitLab's layers"),
        pytest.param("registry.rancher.com", id="Rancher"),
        pytest.param("registry.opensuse.org", id="openSUSE"),
        pytest.param("registry.fedoraproject.org", id="Fedora"),
        pytest.param("container-registry.oracle.com", id="Oracle"),
        pytest.param("ttl.sh", id="images that expire"),
        pytest.param("cr.yandex", id="Yandex"),
        pytest.param("factory.talos.dev", id="Talos' installer images"),
        pytest.param("packages.cloud.google.com", id="Google's packages"),
        pytest.param("dl.google.com", id="Google's programs"),
        pytest.param("github.com", id="programs of nodes"),
        pytest.param("update.k3s.io", id="k3s' channels"),
        pytest.param("metadata.example.internal", id="anything below internal"),
        pytest.param("internal", id="internal"),
    ],
)
def test_names_of_api_servers_registries_and_clouds_are_protected(hostname: str) -> None:
    assert is_protected(hostname)


@pytest.mark.parametrize(
    "hostname",
    [
        pytest.param("harbor.example.org", id="the cluster's own registry"),
        pytest.param("registry.example.org", id="named registry"),
        pytest.param("docker.io.example.org", id="a mirror below the owner's zone"),
        pytest.param("notdocker.io", id="a longer label"),
        pytest.param("gitlab.com", id="above a protected name"),
        pytest.param("microsoft.com", id="above another"),
        pytest.param("svc.example.org", id="svc in front"),
        pytest.param("internal.example.org", id="internal in front"),
        pytest.param("google.com", id="above Google's packages"),
    ],
)
def test_names_of_owners_are_not(hostname: str) -> None:
    assert not is_protected(hostname)


def test_each_entry_is_in_normal_form_and_below_no_other() -> None:
    assert {one for one in PROTECTED if parse_zone(one) != one} == set()
    assert {one for one in PROTECTED if is_at_or_below(one.partition(".")[2], PROTECTED)} == set()
