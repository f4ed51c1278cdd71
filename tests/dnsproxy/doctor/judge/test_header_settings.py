"""The words for the settings of a controller about the PROXY header."""

from __future__ import annotations

import pytest

from dnsproxy.doctor.facts.model import Service
from dnsproxy.doctor.judge.header_settings import format_settings, turn_off, turn_on

NGINX_ON = '`use-proxy-protocol: "true"`'
NGINX_OFF = '`use-proxy-protocol: "false"`'


@pytest.mark.parametrize(
    ("program", "on", "off"),
    [
        ("contour", "contour: the flag `--use-proxy-protocol`", "contour: no `--use-proxy-protocol`"),
        ("ingress-nginx", f"ingress-nginx: {NGINX_ON}", f"ingress-nginx: {NGINX_OFF}"),
        ("envoy-gateway", "envoy-gateway: `proxyProtocol: {}`", "envoy-gateway: no `proxyProtocol`"),
        ("skipper", "skipper: the flags `-enable-proxy-protocol`", "skipper: no `-enable-proxy-protocol`"),
        ("traefik", "traefik: `proxyProtocol.trustedIPs`", "traefik: no `proxyProtocol`"),
        ("nginx-ingress", 'nginx-ingress: `proxy-protocol: "True"`', "nginx-ingress: no `proxy-protocol`"),
        (
            "kubernetes-ingress",
            "kubernetes-ingress: `proxy-protocol: NETWORKS`",
            "kubernetes-ingress: no `proxy-protocol`",
        ),
        ("cilium", "cilium: `enable-ingress-proxy-protocol", "cilium: no `enable-ingress-proxy-protocol"),
        ("", f"ingress-nginx: {NGINX_ON}", f"ingress-nginx: {NGINX_OFF}"),
        ("unheard-of", f"ingress-nginx: {NGINX_ON}", f"ingress-nginx: {NGINX_OFF}"),
    ],
)
def test_the_words_are_those_of_the_program(program: str, on: str, off: str) -> None:
    service = Service("any", program=program)
    assert turn_on(service).startswith(on)
    assert turn_off(service).startswith(off)


def test_settings_about_the_header_are_told_with_their_place() -> None:
    settings = {"use-proxy-protocol": "true", "log-format": "x"}
    service = Service("any", settings=settings, settings_from="ConfigMap edge/nginx")
    assert list(format_settings(service)) == ["use-proxy-protocol is 'true', according to ConfigMap edge/nginx"]


def test_no_setting_is_no_line() -> None:
    assert list(format_settings(Service("any"))) == []
