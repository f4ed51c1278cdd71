from __future__ import annotations

import pytest

from dnsproxy.cluster_dns.image import Image, Program, coredns_version, format_version, parse_image, program_of

DIGEST = "sha256:9d1e7b8b7989575119e1807e4adc2eb29f8165dec5c148b9c3a44d48458d8a71"


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("registry.k8s.io/coredns/coredns:v1.12.1", (1, 12, 1)),
        ("coredns/coredns:1.9.4", (1, 9, 4)),
        ("coredns:1.14.7", (1, 14, 7)),
        ("localhost:5000/coredns:v1.11.3", (1, 11, 3)),
        ("602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/coredns:v1.11.4-eksbuild.2", (1, 11, 4)),
        ("mcr.microsoft.com/oss/v2/kubernetes/coredns:v1.12.1-12", (1, 12, 1)),
        ("rancher/hardened-coredns:v1.12.2-build20250611", (1, 12, 2)),
        ("rancher/mirrored-coredns-coredns:1.12.0", (1, 12, 0)),
        ("docker.io/bitnami/coredns:1.11.1-debian-11-r0", (1, 11, 1)),
        (f"registry.k8s.io/coredns/coredns:v1.12.1@{DIGEST}", (1, 12, 1)),
    ],
)
def test_a_version_is_read_from_the_tag(image: str, version: tuple[int, ...]) -> None:
    assert coredns_version(image) == version


@pytest.mark.parametrize(
    "image",
    [
        "",
        ":",
        "coredns",
        "coredns:",
        "coredns:latest",
        "coredns:1.12",
        "coredns:v1",
        "coredns:1.12.x",
        "coredns:1.12.1rc1",
        "coredns:99999.1.1",
        "coredns:-1.2.3",
        "coredns:\u0661.12.3",
        f"registry.k8s.io/coredns/coredns@{DIGEST}",
        f"quay.io/openshift-release-dev/ocp-v4.0-art-dev@{DIGEST}",
        "registry.k8s.io/dns/k8s-dns-node-cache:1.26.4",
        "registry.k8s.io/coredns/other:v1.12.1",
        "localhost:5000/coredns",
        "1.12.1",
    ],
)
def test_what_does_not_tell_a_version_is_of_unknown_version(image: str) -> None:
    assert coredns_version(image) is None


def test_the_parts_of_an_image_are_told_apart() -> None:
    assert parse_image(f"localhost:5000/a/coredns:v1@{DIGEST}") == Image("localhost:5000/a/coredns", "v1", DIGEST)
    assert parse_image("localhost:5000/coredns") == Image("localhost:5000/coredns", "", "")
    assert parse_image(" coredns ").name == "coredns"


@pytest.mark.parametrize(
    ("image", "command", "program"),
    [
        ("registry.k8s.io/coredns/coredns:v1.12.1", "", Program.COREDNS),
        ("quay.io/ocp@sha256:00", "coredns", Program.COREDNS),
        ("registry.k8s.io/dns/k8s-dns-node-cache:1.26.4", "", Program.NODE_CACHE),
        ("rancher/hardened-dns-node-cache:1.26.0", "", Program.NODE_CACHE),
        ("example.org/dns:1", "node-cache", Program.NODE_CACHE),
        ("gke.gcr.io/k8s-dns-kube-dns:1.23.0-gke.9", "", Program.KUBE_DNS),
        ("gke.gcr.io/k8s-dns-kube-dns-amd64:1.15.4", "", Program.KUBE_DNS),
        ("example.org/resolver:1", "kube-dns", Program.KUBE_DNS),
        ("gke.gcr.io/k8s-dns-dnsmasq-nanny:1.23.0", "", None),
        ("registry.k8s.io/pause:3.9", "", None),
        ("example.org/coredns-autoscaler:1", "", None),
        ("example.org/unbound:1.20.0", "/usr/sbin/unbound", None),
        ("", "", None),
    ],
)
def test_a_program_is_known_by_its_image_or_its_name(image: str, command: str, program: Program | None) -> None:
    assert program_of(image, command=command) is program


def test_an_unknown_version_is_said_to_be_unknown() -> None:
    assert (format_version(None), format_version((1, 12, 1))) == ("of unknown version", "1.12.1")
