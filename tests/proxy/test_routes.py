"""Routes in the form of their flags."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.header.protocol import ProxyProtocol
from proxy.routes import (
    ANY_HOST,
    Listening,
    Quorum,
    Route,
    ServicePort,
    check_ready_when,
    check_routes,
    parse_advertise,
    parse_backend,
    parse_destination,
    parse_namespace,
    parse_ready_when,
    parse_route,
    parse_service,
    reaches,
)
from sidecar.values.endpoints import Endpoint
from sidecar.values.host_port import HostPort


@pytest.mark.parametrize(
    ("text", "listen", "backend"),
    [
        pytest.param("8080=example.org:80", Endpoint(ANY_HOST, 8080), HostPort("example.org", 80), id="port"),
        pytest.param(
            "127.0.0.1:8080=192.0.2.1:80", Endpoint("127.0.0.1", 8080), HostPort("192.0.2.1", 80), id="addresses"
        ),
        pytest.param(
            "[::1]:8080=[2001:DB8::1]:80",
            Endpoint("::1", 8080),
            HostPort("2001:db8::1", 80),
            id="IPv6",
        ),
        pytest.param("0=example.org:80", Endpoint(ANY_HOST, 0), HostPort("example.org", 80), id="any port"),
        pytest.param("80=INGRESS.Web.svc.:80", Endpoint(ANY_HOST, 80), HostPort("ingress.web.svc.", 80), id="dot"),
        pytest.param(" 80=a_b:80 ", Endpoint(ANY_HOST, 80), HostPort("a_b", 80), id="blanks and underscore"),
    ],
)
def test_a_route_is_read(text: str, listen: Endpoint, backend: HostPort) -> None:
    assert parse_route(text) == Route(listen, backend)
    assert parse_route(str(parse_route(text))) == parse_route(text)


@pytest.mark.parametrize(
    ("text", "backend"),
    [
        pytest.param("service:web/ingress:https", ServicePort("web", "ingress", "https"), id="port by name"),
        pytest.param("service:web/ingress:443", ServicePort("web", "ingress", 443), id="port by number"),
        pytest.param("service:8080", HostPort("service", 8080), id="a host of that name"),
    ],
)
def test_a_service_is_read(text: str, backend: ServicePort | HostPort) -> None:
    assert parse_backend(text) == backend
    assert parse_route(f"80={text}") == Route(Endpoint(ANY_HOST, 80), backend)
    assert parse_backend(str(backend)) == backend


@pytest.mark.parametrize("protocol", ProxyProtocol)
def test_a_route_may_name_its_protocol(protocol: ProxyProtocol) -> None:
    for backend in ("example.org:80", "[2001:db8::1]:80", "service:web/ingress:https"):
        route = parse_route(f"[::1]:80={backend},proxy-protocol={protocol}")
        assert route.proxy_protocol is protocol
        assert parse_route(str(route)) == route


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("8080", id="a port alone"),
        pytest.param("=example.org:80", id="no listener"),
        pytest.param("8080=", id="no backend"),
        pytest.param("8080=example.org", id="no backend port"),
        pytest.param("8080=:80", id="no backend host"),
        pytest.param("8080=example.org:0", id="backend port 0"),
        pytest.param("8080=example.org:http", id="port by name"),
        pytest.param("65536=example.org:80", id="port of 65536"),
        pytest.param("-1=example.org:80", id="negative port"),
        pytest.param("8080=2001:db8::1:80", id="IPv6 without brackets"),
        pytest.param("8080=[2001:db8::1]", id="IPv6 without port"),
        pytest.param("8080=[192.0.2.1]:80", id="IPv4 in brackets"),
        pytest.param("8080=[example.org]:80", id="name in brackets"),
        pytest.param("example.org:8080=example.org:80", id="listening on a name"),
        pytest.param("::1:8080=example.org:80", id="listening on IPv6 without brackets"),
        pytest.param("8080=exa mple.org:80", id="blank in a name"),
        pytest.param("8080=-a.org:80", id="dash in front"),
        pytest.param("8080=a..org:80", id="empty label"),
        pytest.param(f"8080={'a' * 64}:80", id="long label"),
        pytest.param(f"8080={'a.' * 128}:80", id="long name"),
        pytest.param("8080=192.0.2:80", id="cut address"),
        pytest.param("8080=192.0.2.256:80", id="octet of 256"),
        pytest.param("8080=http://example.org:80", id="URL"),
        pytest.param("8080=exämple.org:80", id="umlaut"),
        pytest.param("8080=example.org:80=x:1", id="two equals"),
        pytest.param("8080=a\nb:80", id="line end"),
        pytest.param("80=a:1,", id="empty option"),
        pytest.param("80=a:1,proxy-protocol", id="option without value"),
        pytest.param("80=a:1,proxy-protocol=", id="option with no value"),
        pytest.param("80=a:1,proxy-protocol=v3", id="no such version"),
        pytest.param("80=a:1,proxy-protocol=V2", id="version in capitals"),
        pytest.param("80=a:1,proxy-protocol=v1,proxy-protocol=v2", id="option twice"),
        pytest.param("80=a:1,version=v1", id="no such option"),
        pytest.param("80=a:1, proxy-protocol=v1", id="blank before an option"),
        pytest.param("80=service:web/ingress", id="Service without port"),
        pytest.param("80=service:web/ingress:", id="Service with an empty port"),
        pytest.param("80=service:web/ingress:0", id="Service with port 0"),
        pytest.param("80=service:web/ingress:65536", id="Service with port 65536"),
        pytest.param("80=service:web/ingress:HTTP", id="port name in capitals"),
        pytest.param("80=service:web/ingress:-a", id="port name with a dash in front"),
        pytest.param("80=service:web/ingress:\u0661", id="port in Arabic digits"),
        pytest.param("80=service:web/:80", id="Service without name"),
        pytest.param("80=service:/ingress:80", id="Service without namespace"),
        pytest.param("80=service:web/in/gress:80", id="Service with two slashes"),
        pytest.param("80=service:web/in.gress:80", id="Service with a dot"),
        pytest.param("80=service:../ingress:80", id="a path"),
        pytest.param(f"80=service:web/{'a' * 64}:80", id="long Service name"),
    ],
)
def test_what_is_no_route_is_refused_on_one_line(text: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        parse_route(text)
    assert "\n" not in str(caught.value)


@given(st.text())
def test_any_text_is_a_route_or_a_value_error(text: str) -> None:
    for parse in (parse_route, parse_backend, parse_service, parse_destination, parse_advertise):
        try:
            parse(text)
        except ValueError as error:
            assert type(error) is ValueError  # noqa: PT017


def test_an_advertised_port_is_read() -> None:
    assert parse_advertise("8080=80") == (8080, 80)


@pytest.mark.parametrize("text", ["", "80", "=80", "80=", "0=80", "80=0", "a=b", "1=2=3", "80=65536"])
def test_what_advertises_no_port_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_advertise(text)


@pytest.mark.parametrize(
    ("routes", "advertise", "message"),
    [
        pytest.param(["80=a:1", "80=b:1"], {}, r"2 routes listen on \[::\]:80", id="one port twice"),
        pytest.param(["80=127.0.0.1:80"], {}, "own listener", id="loopback"),
        pytest.param(["80=localhost:80"], {}, "own listener", id="localhost"),
        pytest.param(["80=[::1]:80"], {}, "own listener", id="IPv6 loopback"),
        pytest.param(["192.0.2.1:80=192.0.2.1:80"], {}, "own listener", id="same address"),
        pytest.param(["80=127.0.0.1:81", "81=a:1"], {}, r"the listener of \[::\]:81=a:1", id="another route's"),
        pytest.param(["80=a:1"], {81: 443}, "port 81", id="advertised port without a route"),
    ],
)
def test_routes_that_contradict_are_refused(routes: list[str], advertise: dict[int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_routes(map(parse_route, routes), advertise)


@pytest.mark.parametrize(
    "routes",
    [
        pytest.param(["80=a:1", "81=a:1"], id="two ports, one backend"),
        pytest.param(["127.0.0.1:80=a:1", "127.0.0.2:80=a:1"], id="one port on two addresses"),
        pytest.param(["0=a:1", "0=a:1"], id="two ports of the system's choice"),
        pytest.param(["80=127.0.0.1:81"], id="loopback on another port"),
        pytest.param(["0.0.0.0:80=[::1]:80"], id="the other family"),
        pytest.param(["80=ingress.example.org:80"], id="a name that may be anyone"),
        pytest.param(["80=service:web/ingress:80"], id="a Service"),
    ],
)
def test_routes_that_go_together_are_taken(routes: list[str]) -> None:
    check_routes(map(parse_route, routes), {})


def test_loopback_is_reached_by_a_listener_on_every_address_only() -> None:
    assert reaches(Endpoint("::", 80), Endpoint("127.0.0.1", 80))
    assert reaches(Endpoint("0.0.0.0", 80), Endpoint("127.3.4.5", 80))
    assert not reaches(Endpoint("192.0.2.1", 80), Endpoint("127.0.0.1", 80))
    assert not reaches(Endpoint("::", 80), Endpoint("127.0.0.1", 81))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("any", Quorum.ANY),
        (" all ", Quorum.ALL),
        ("8443", Listening(8443)),
        ("192.0.2.1:8443", Listening(8443, "192.0.2.1")),
        ("[2001:DB8::1]:8443", Listening(8443, "2001:db8::1")),
    ],
)
def test_when_a_relay_is_ready_is_parsed(text: str, rule: Quorum | Listening) -> None:
    assert parse_ready_when(text) == rule
    assert parse_ready_when(str(rule)) == rule


@pytest.mark.parametrize(
    "text", ["", "ANY", "some", "0", "65536", "-1", "8443,8080", "::", "host.example.org:80", "a:b"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_ready_when(text)


def test_a_port_without_an_address_may_be_that_of_any_route() -> None:
    routes = [parse_route("127.0.0.1:80=a:1"), parse_route("81=a:1")]
    for text in ("80", "81", "127.0.0.1:80", "[::]:81"):
        check_ready_when((parse_ready_when(text),), routes)
    for text in ("82", "127.0.0.1:81", "[::]:80"):
        with pytest.raises(ValueError, match="no route listens on"):
            check_ready_when((parse_ready_when(text),), routes)


@pytest.mark.parametrize("text", ["", "A", "a_b", "-a", "a-", "a/b", "a.b", "a" * 64, "a\n"])
def test_what_no_namespace_is_called_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not the name of a namespace"):
        parse_namespace(text)
    assert parse_namespace("switchback") == "switchback"


def test_a_port_that_a_service_may_bring_later_is_no_error() -> None:
    routes = [parse_route("80=a:1")]
    check_ready_when((Listening(443),), routes, more_come=True)
    with pytest.raises(ValueError, match="any stands alone"):
        check_ready_when((Quorum.ANY, Listening(443)), routes, more_come=True)
