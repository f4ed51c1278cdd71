"""The annotations of route Services: whose names, which backend, which header."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.kubernetes.route_services import (
    HEADERS,
    EndpointHeaders,
    PortHeaders,
    format_endpoint_headers,
    format_headers,
    format_port_backends,
    gateway_subject,
    ingress_class_subject,
    parse_endpoint_headers,
    parse_headers,
    parse_port_backends,
    parse_relay_to,
    parse_subjects,
)


@pytest.mark.parametrize(
    ("text", "subjects"),
    [
        pytest.param("ingressclass/nginx", ("ingressclass/nginx",), id="a class"),
        pytest.param("gateway/web/public", ("gateway/web/public",), id="a Gateway"),
        pytest.param(" ingressclass/a , gateway/b/c ", ("ingressclass/a", "gateway/b/c"), id="two"),
        pytest.param("ingressclass/a,ingressclass/a", ("ingressclass/a",), id="each once"),
        pytest.param("ingressclass/nginx.example.org", ("ingressclass/nginx.example.org",), id="a name with dots"),
    ],
)
def test_it_is_a_list_of_subjects(text: str, subjects: tuple[str, ...]) -> None:
    assert parse_subjects(text) == subjects


@pytest.mark.parametrize(
    "text",
    ["", ",", "nginx", "ingressclass/", "ingressclass/a/b", "gateway/web", "gateway/a/b/c", "gateway//b", "Gateway/a/b",
     "ingressclass/A", "ingressclass/-a", "ingressclass/a,", "ingressclass/a;b", "gatewayclass/a", "gateway/a.b/c",
     "ingressclass/" + "a." * 130 + "a", "ingressclass/a\nb", "ingressclass/\uff41"],
)  # fmt: skip
def test_anything_else_is_an_error_that_quotes_it(text: str) -> None:
    with pytest.raises(ValueError, match="is not ingressclass/NAME or gateway/NAMESPACE/NAME"):
        parse_subjects(text)


NAMES = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)


@given(st.lists(st.builds(ingress_class_subject, NAMES) | st.builds(gateway_subject, NAMES, NAMES), min_size=1))
def test_every_subject_can_be_written_and_read(subjects: list[str]) -> None:
    assert parse_subjects(",".join(subjects)) == tuple(dict.fromkeys(subjects))


@given(st.text())
def test_no_text_raises_anything_else(text: str) -> None:
    with suppress(ValueError):
        assert ",".join(parse_subjects(text)).isascii()


@pytest.mark.parametrize(
    ("text", "backend"),
    [("web/shop", ("web", "shop")), (" a/b ", ("a", "b")), ("0/1", ("0", "1"))],
    ids=["a Service", "with blanks", "digits"],
)
def test_a_backend_is_a_namespace_and_a_name(text: str, backend: tuple[str, str]) -> None:
    assert parse_relay_to(text) == backend


@pytest.mark.parametrize(
    "text",
    [
        "",
        "web",
        "/web",
        "web/",
        "a/b/c",
        "A/b",
        "a/B",
        "a/-b",
        "a/b.c",
        "a/b:80",
        "a/" + "b" * 64,
        "a/b\nc",
        "service:a/b",
    ],
)
def test_any_other_backend_is_an_error_that_quotes_it(text: str) -> None:
    with pytest.raises(ValueError, match="is not NAMESPACE/NAME"):
        parse_relay_to(text)


@pytest.mark.parametrize(
    ("text", "backends"),
    [
        pytest.param("", {}, id="none"),
        pytest.param("22=git/ssh", {22: ("git", "ssh")}, id="one"),
        pytest.param(" 22=git/ssh , 5=a/b", {22: ("git", "ssh"), 5: ("a", "b")}, id="two, with blanks"),
    ],
)
def test_single_ports_have_another_backend(text: str, backends: dict[int, tuple[str, str]]) -> None:
    assert parse_port_backends(text) == backends


@pytest.mark.parametrize("text", [",", "22", "22=", "22=git", "=git/ssh", "0=a/b", "22=a/b,22=c/d", "22=a/b;5=a/b"])
def test_any_other_backend_of_a_port_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not (PORT=NAMESPACE/NAME|NAMESPACE/NAME|a port)|is there twice"):
        parse_port_backends(text)


@given(st.dictionaries(st.integers(1, 65_535), st.sampled_from(["git/ssh", "a/b"])))
def test_written_backends_of_ports_are_read(backends: dict[int, str]) -> None:
    parsed = parse_port_backends(format_port_backends(backends))
    assert {port: "/".join(backend) for port, backend in parsed.items()} == backends


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        pytest.param("v1", PortHeaders("v1"), id="one for all"),
        pytest.param("none", PortHeaders("none"), id="none"),
        pytest.param("v2, 22=none", PortHeaders("v2", {22: "none"}), id="another for a port"),
        pytest.param("22=none,v2", PortHeaders("v2", {22: "none"}), id="in any order"),
        pytest.param("22=pass", PortHeaders("v1", {22: "pass"}), id="v1 for the rest"),
    ],
)
def test_a_header_is_for_all_ports_or_for_one(text: str, headers: PortHeaders) -> None:
    assert parse_headers(text) == headers


@pytest.mark.parametrize(
    "text",
    ["", ",", "v3", "V1", "v1,v2", "v1,", "22=", "=v1", "0=v1", "65536=v1", "022=v1", "22=none,22=v1", "a=v1",
     "v1;22=none", "\uff12=v1", "22==v1", "-1=v1"],
)  # fmt: skip
def test_any_other_header_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a (header|port)|beside another"):
        parse_headers(text)


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        pytest.param("", {}, id="nothing"),
        pytest.param("443@10.244.1.7=none", {(443, "10.244.1.7"): "none"}, id="IPv4"),
        pytest.param("443@2001:DB8:0::7=v2", {(443, "2001:db8::7"): "v2"}, id="IPv6 in another spelling"),
        pytest.param(
            "80@10.0.0.1=none, 443@10.0.0.1=none", {(80, "10.0.0.1"): "none", (443, "10.0.0.1"): "none"}, id="two"
        ),
    ],
)
def test_single_endpoints_take_another_header(text: str, headers: EndpointHeaders) -> None:
    assert parse_endpoint_headers(text) == headers


@pytest.mark.parametrize(
    "text",
    [",", "443", "443=none", "10.0.0.1=none", "443@=none", "443@10.0.0.1", "443@10.0.0.1=", "443@10.0.0.256=none",
     "0@10.0.0.1=none", "443@10.0.0.1=v3", "443@10.0.0.1=v1,443@10.0.0.1=v2", "443@10.0.0.1:80=v1", "443@a=v1"],
)  # fmt: skip
def test_any_other_endpoint_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not|twice"):
        parse_endpoint_headers(text)


PORTS = st.integers(1, 65_535)


@given(st.sampled_from(HEADERS), st.dictionaries(PORTS, st.sampled_from(HEADERS)))
def test_all_headers_can_be_written_and_read(default: str, by_port: dict[int, str]) -> None:
    headers = PortHeaders(default, by_port)
    assert parse_headers(format_headers(headers)) == headers


@given(st.dictionaries(st.tuples(PORTS, st.ip_addresses().map(str)), st.sampled_from(HEADERS)))
def test_all_headers_of_endpoints_can_be_written_and_read(headers: dict[tuple[int, str], str]) -> None:
    assert parse_endpoint_headers(format_endpoint_headers(headers)) == headers


@given(st.text())
def test_no_text_of_the_other_annotations_raises_anything_else(text: str) -> None:
    for parse in (parse_relay_to, parse_headers, parse_endpoint_headers, parse_port_backends):
        with suppress(ValueError):
            parse(text)


def test_a_long_text_that_is_no_subject_is_not_repeated_whole() -> None:
    with pytest.raises(ValueError, match="is not ingressclass/NAME") as error:
        parse_subjects("x" * 200_000)
    assert len(str(error.value)) < 400
