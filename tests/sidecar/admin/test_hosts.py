"""Which Host headers the admin port answers: every name that a rebinding page can state is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.admin.answers import authority_of
from sidecar.admin.hosts import OPEN, Asked, is_loopback, refusal_of_host
from sidecar.values.host_name import parse_host_name

NAMES = frozenset({"admin.example.org", "dnsproxy-0"})
PORT = 8081
PROXIED = {b"x-forwarded-for": "192.0.2.1"}


def answered(host: str | None, path: str = "/table", *, authority: str = "", **more: object) -> bool:
    headers = {} if host is None else {b"host": host}
    asked = Asked(path, headers | more.pop("headers", {}), authority, PORT, **more)  # type: ignore[operator,arg-type]
    answer = refusal_of_host(asked, NAMES)
    assert answer is None or answer.status == 421
    return answer is None


@pytest.mark.parametrize(
    "host",
    [
        pytest.param(None, id="none: HTTP/1.0"),
        pytest.param("", id="empty"),
        pytest.param("10.244.0.5:8081", id="Prometheus and the kubelet: the pod's address"),
        pytest.param("127.0.0.1:9000", id="kubectl port-forward, another port"),
        pytest.param("[::1]:8081", id="IPv6"),
        pytest.param("[fe80::1%eth0]:8081", id="IPv6 with a scope"),
        pytest.param("192.0.2.1", id="no port"),
        pytest.param("192.0.2.1:", id="an empty port"),
        pytest.param("localhost:8081", id="localhost"),
        pytest.param("LOCALHOST.:8081", id="localhost, in another form"),
        pytest.param("dnsproxy-0:8081", id="the hostname"),
        pytest.param("admin.example.org", id="--admin-host"),
        pytest.param("Admin.Example.ORG.:8081", id="--admin-host, in another form"),
    ],
)
def test_addresses_and_known_names_are_answered(host: str | None) -> None:
    assert answered(host)


@pytest.mark.parametrize(
    "host",
    [
        "attacker.example.net:8081",
        "attacker.example.net",
        "admin.example.org.attacker.example.net:8081",
        "x.admin.example.org",
        "localhost.attacker.example.net",
        "127.0.0.1.attacker.example.net",
        "127.0.0.1@attacker.example.net",
        "localhost:8081@attacker.example.net",
        "127.1",
        "0x7f000001",
        "2130706433",
        "::1",
        "[attacker.example.net]",
        "[::1",
        "localhost:80:80",
        "localhost:port",
        "localhost, attacker.example.net",
        "localhost/",
        "loc\u212alhost",
        "ad\x00min.example.org",
        "localhost\uff0e",
    ],
)
def test_other_names_are_refused(host: str) -> None:
    assert not answered(host)
    assert not answered(host, "/names.json.gz")
    assert not answered(host, "/")


@pytest.mark.parametrize("path", sorted(OPEN))
def test_probes_and_scrapers_may_use_any_name(path: str) -> None:
    assert answered("attacker.example.net:8081", path)
    assert not answered("attacker.example.net:8081", f"{path}/")


def test_a_target_in_absolute_form_is_judged_too() -> None:
    assert answered("localhost", authority="127.0.0.1:8081")
    assert not answered("localhost", authority="attacker.example.net:8081")
    assert not answered("attacker.example.net", authority="localhost:8081")
    assert authority_of(b"http://attacker.example.net:8081/table?x=http://y/") == "attacker.example.net:8081"
    assert authority_of(b"https://a?b") == "a"
    assert authority_of(b"/explain?name=http://a") == ""


@pytest.mark.parametrize(
    ("host", "headers", "from_here", "expected"),
    [
        pytest.param("api.example.org:6443", PROXIED, False, True, id="the API server's pods/proxy"),
        pytest.param("api.example.org", PROXIED, False, True, id="the same at 443"),
        pytest.param("attacker.example.net:8081", PROXIED, False, False, id="the port that a browser dials"),
        pytest.param("attacker.example.net:6443", {}, False, False, id="not proxied"),
        pytest.param(
            "attacker.example.net:30081",
            PROXIED | {b"connection": "keep-alive"},
            False,
            False,
            id="a browser, by a NodePort",
        ),
        pytest.param("attacker.example.net:9000", PROXIED, True, False, id="kubectl port-forward, another port"),
    ],
)
def test_what_the_api_server_forwards_is_told_from_a_browser(
    host: str, headers: dict[bytes, str], from_here: bool, expected: bool
) -> None:
    assert answered(host, headers=headers, from_here=from_here) is expected


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("192.0.2.1", False),
        ("::ffff:192.0.2.1", False),
        ("fe80::1%eth0", False),
        ("", True),
        ("unknown", True),
    ],
)
def test_a_client_is_on_this_host_or_not(address: str, expected: bool) -> None:
    assert is_loopback(address) is expected


def test_the_refusal_is_a_line_that_names_the_flag() -> None:
    answer = refusal_of_host(Asked("/", {b"host": "a\x1b[2J\u2028b" + "x" * 500}), frozenset())
    assert answer is not None
    assert isinstance(answer.body, bytes)
    text = answer.body.decode("ascii")
    assert text.count("\n") == 1
    assert "\x1b" not in text
    assert "--admin-host" in text
    assert len(text) < 250


@given(st.text(max_size=40))
def test_whatever_is_stated_is_judged_without_an_error(host: str) -> None:
    asked = Asked("/", {b"host": host}, from_here=False, port=PORT)
    answer = refusal_of_host(asked, frozenset())
    assert answer is None or answer.status == 421


@pytest.mark.parametrize(
    "text", ["", ".", "a b", "a:8081", "[::1]", "http://a", "a/", "-a", "a-", "ä", "a\n b", "a" * 254]
)
def test_a_name_for_the_flag_is_a_host_without_a_port(text: str) -> None:
    with pytest.raises(ValueError, match="name of a host"):
        parse_host_name(text)


def test_a_name_for_the_flag_is_taken_in_its_one_form() -> None:
    assert parse_host_name(" DNSproxy-Admin.switchback.svc. ") == "dnsproxy-admin.switchback.svc"
