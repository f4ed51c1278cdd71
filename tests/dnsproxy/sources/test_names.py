"""The values of `--source` and `--class-of`."""

from __future__ import annotations

import pytest

from dnsproxy.sources.names import BUILT_IN, OTHERS, parse_source_class, parse_source_name


@pytest.mark.parametrize("text", [*BUILT_IN, *OTHERS, "crd:sites.example.org:spec.hosts[*]"])
def test_a_source_is_named(text: str) -> None:
    assert parse_source_name(text) == text


@pytest.mark.parametrize(
    "text", ["", "Ingress", "ingress,gateway", "nginx", "crd:", "crd:sites:spec.host", "httpproxy"]
)
def test_another_source_is_refused_with_what_there_is(text: str) -> None:
    with pytest.raises(ValueError, match=r"traefik|crd:PLURAL"):
        parse_source_name(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("traefik=internal", ("traefik", "internal"), id="a name"),
        pytest.param(" contour=public", ("contour", "public"), id="with a space before it"),
        pytest.param("crd:sites.example.org:spec.host=x", ("crd:sites.example.org:spec.host", "x"), id="custom"),
        pytest.param("istio=app=a,istio=b", ("istio", "app=a,istio=b"), id="a selector of two labels"),
        pytest.param("istio=istio=b, app=a", ("istio", "app=a,istio=b"), id="its labels in another order"),
        pytest.param("openshift=key=value", ("openshift", "key=value"), id="the class itself has an equals sign"),
    ],
)
def test_a_class_is_that_of_a_source(text: str, expected: tuple[str, str]) -> None:
    assert parse_source_class(text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "SOURCE=CLASS"),
        ("traefik", "SOURCE=CLASS"),
        ("traefik=", "SOURCE=CLASS"),
        ("=x", "SOURCE=CLASS"),
        ("nginx=x", "none of"),
        ("ingress=x", "--ingress-class"),
        ("service=x", "no classes"),
        ("dnsendpoint=x", "no classes"),
        ("gateway=x", "--gateway-class"),
        ("istio=ingressgateway", "selector"),
        ("istio=istio=a,istio=b", "selector"),
        ("istio=istio=a,", "selector"),
    ],
)
def test_another_class_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_source_class(text)
