"""A controller's program and settings, from its workload and its files."""

from __future__ import annotations

from typing import Any

import pytest

from dnsproxy.doctor.collect.controller_settings import (
    config_map_of,
    program_of,
    settings_of_skipper,
    settings_of_traefik,
    traefik_file_of,
)
from sidecar.kubernetes.structs.workload import Container, EnvVar
from tests.dnsproxy.doctor.making import service

EVERYONE = "0.0.0.0/0,::/0"
TRUSTED = "proxyProtocol.trustedIPs"


def facts(entry_points: str, with_header: str = "", trusted: str = "") -> dict[str, str]:
    found = {"entrypoints": entry_points, "entrypoints-with-proxy-protocol": with_header, "trusted-ips": trusted}
    return {key: value for key, value in found.items() if value}


def container(*words: str, image: str = "", **variables: str) -> Container:
    env = tuple(EnvVar(name, value) for name, value in variables.items())
    return Container("controller", image, args=words, env=env)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--configmap=a/b"], ("a", "b")),
        (["--configmap=$(POD_NAMESPACE)/b"], ("web", "b")),
        (["--configmap=$(NAMESPACE)/b"], ("web", "b")),
        (["--config-map=b"], ("web", "b")),
        (["/nginx", "--x=y", "--configmap=a/b"], ("a", "b")),
        (["--configmap=$(OTHER)/b"], None),
        (["-nginx-configmaps=$(POD_NAMESPACE)/b"], ("web", "b")),
        (["--configmap"], None),
        (["--configmap-tcp-services=a/b"], None),
        ([], None),
    ],
)
def test_the_config_map_of_a_controller_is_named_by_its_arguments(words: list[str], expected: Any) -> None:
    assert config_map_of(words, "web") == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([f"--entryPoints.web.{TRUSTED}=10.0.0.0/8"], facts("web", "web", "10.0.0.0/8")),
        ([f"--entryPoints.web.{TRUSTED}", "10.0.0.0/8"], facts("web", "web", "10.0.0.0/8")),
        ([f"-entrypoints.web.{TRUSTED}=10.0.0.0/8,192.0.2.1"], facts("web", "web", "10.0.0.0/8,192.0.2.1")),
        (["--entrypoints.web.address=:80", f"--entrypoints.b.{TRUSTED}=10.0.0.0/8"], facts("b,web", "b", "10.0.0.0/8")),
        (["--entrypoints.websecure.proxyprotocol.insecure"], facts("websecure", "websecure", EVERYONE)),
        (["--entrypoints.websecure.proxyprotocol.insecure=true"], facts("websecure", "websecure", EVERYONE)),
        (["--entrypoints.websecure.proxyprotocol.insecure=false"], facts("websecure")),
        (["--entrypoints.web.address=:80", "--entrypoints.traefik.address=:8080/tcp"], facts("traefik,web")),
        ([f"--entrypoints.web.{TRUSTED}="], facts("web")),
        (["--entrypoints.web.forwardedheaders.trustedips=10.0.0.0/8"], facts("web")),
        (["--entrypoints", "--entrypoints.=x", "--entrypoints..a=b"], {}),
        (["--providers.kubernetesingress", "--log.level=INFO"], {}),
        ([], {}),
    ],
)
def test_entry_points_of_traefik_are_in_its_arguments(words: list[str], expected: dict[str, str]) -> None:
    assert settings_of_traefik(container(*words)) == expected


def test_entry_points_of_traefik_are_in_its_variables_if_it_has_no_arguments() -> None:
    variables = {
        "TRAEFIK_ENTRYPOINTS_WEB_ADDRESS": ":8000",
        "TRAEFIK_ENTRYPOINTS_WEB_PROXYPROTOCOL_TRUSTEDIPS": "10.0.0.0/8",
        "POD_NAME": "x",
    }
    assert settings_of_traefik(container(**variables)) == facts("web", "web", "10.0.0.0/8")
    assert settings_of_traefik(container("--entrypoints.a.address=:80", **variables)) == facts("a")


def test_skippers_flags_about_the_header_have_one_dash_or_two() -> None:
    words = ("skipper", "-kubernetes", "-enable-proxy-protocol", "--proxy-allow-cidrs=10.0.0.0/8", "-address=:9999")
    expected = {"enable-proxy-protocol": "true", "proxy-allow-cidrs": "10.0.0.0/8"}
    assert settings_of_skipper(container(*words)) == expected


YAML = "entryPoints:\n  web:\n    address: ':80'\n    proxyProtocol: {trustedIPs: [10.0.0.0/8, 192.0.2.1]}\n  b: {}\n"
TOML = '[entryPoints.web]\naddress = ":80"\n[entryPoints.web.proxyProtocol]\ninsecure = true\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (YAML, facts("b,web", "web", "10.0.0.0/8,192.0.2.1")),
        (TOML, facts("web", "web", EVERYONE)),
        ("entryPoints: {web: {proxyProtocol: {insecure: true}}}", facts("web", "web", EVERYONE)),
        ("entryPoints: {web: {proxyProtocol: {insecure: false}}}", facts("web")),
        ("entryPoints: {web: null}", facts("web")),
        ("entryPoints: {web: {proxyProtocol: {trustedIPs: null}}}", facts("web")),
        ("entryPoints: {web: {proxyProtocol: {trustedIPs: [null]}}}", facts("web")),
        ("entryPoints: &a {web: *a}", facts("web")),
        ("entryPoints: [web]", {}),
        ("entryPoints: web", {}),
        ("a: &a [*a]", {}),
        ("{" * 5000, {}),
        ("- a\n- b", {}),
        ("key: [", {}),
        ("\x00", {}),
        ("", {}),
    ],
    ids=["yaml", "toml", "insecure", "secure", "null", "no networks",
         "a network that is null", "itself", "list", "text", "recursive", "deep", "no mapping", "broken",
         "control", "empty"],
)  # fmt: skip
def test_a_file_of_traefik_overrides_its_arguments(text: str, expected: dict[str, str]) -> None:
    assert settings_of_traefik(container("--entrypoints.argument.address=:80"), text) == expected


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (container("--configFile=/config/t.yml"), ("/config/t.yml",)),
        (container("--configfile", "/config/t.yml"), ("/config/t.yml",)),
        (container(TRAEFIK_CONFIGFILE="/config/t.yml"), ("/config/t.yml",)),
        (container(), ("/etc/traefik/traefik.yaml", "/etc/traefik/traefik.yml", "/etc/traefik/traefik.toml")),
    ],
    ids=["flag", "two words", "variable", "none"],
)
def test_traefik_looks_for_one_named_file_or_in_etc(one: Container, expected: Any) -> None:
    assert traefik_file_of(one) == expected


@pytest.mark.parametrize(
    ("image", "controllers", "label", "expected"),
    [
        ("registry.k8s.io/ingress-nginx/controller:v1.13.0@sha256:0", [], "", "ingress-nginx"),
        ("rancher/nginx-ingress-controller:v1.12.1-hardened1", [], "", "ingress-nginx"),
        ("nginx/nginx-ingress:5.0.0", [], "", "nginx-ingress"),
        ("private-registry.nginx.com/nginx-ic/nginx-plus-ingress:5.0.0", [], "", "nginx-ingress"),
        ("docker.io/haproxytech/kubernetes-ingress:3.1", [], "", "kubernetes-ingress"),
        ("quay.io/jcmoraisjr/haproxy-ingress:v0.14", [], "", "haproxy-ingress"),
        ("registry.opensource.zalan.do/teapot/skipper:v0.27.41", [], "", "skipper"),
        (
            "docker.io/envoyproxy/envoy:v1.40.0",
            ["gateway.envoyproxy.io/gatewayclass-controller"],
            "envoy",
            "envoy-gateway",
        ),
        ("localhost:5000/traefik", [], "", "traefik"),
        ("rancher/mirrored-library-traefik:3.3.6", [], "", "traefik"),
        ("traefik:v3.7", ["k8s.io/ingress-nginx"], "ingress-nginx", "traefik"),
        ("example.org/own:1", ["haproxy.org/ingress-controller/haproxy"], "", "kubernetes-ingress"),
        ("", ["cilium.io/ingress-controller"], "", "cilium"),
        ("", ["io.cilium/gateway-controller"], "", "cilium"),
        ("", ["example.org/other"], "nginx-ingress", "nginx-ingress"),
        ("example.org/not-traefik:1", [""], "", ""),
        ("", [], "my-shop", ""),
        ("", [], "", ""),
    ],
)
def test_the_program_is_known_by_image_class_or_label(
    image: str, controllers: list[str], label: str, expected: str
) -> None:
    one = service(labels={"app.kubernetes.io/name": label} if label else {})
    assert program_of(one, controllers, container(image=image)) == expected
    if not image:
        assert program_of(one, controllers, None) == expected
