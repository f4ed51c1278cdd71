"""What the world's controllers have in common."""

from __future__ import annotations

import pytest

from tests.cluster.world.contour import CONTOUR
from tests.cluster.world.controller import PROTOCOLS, Controller
from tests.cluster.world.envoy_gateway import GATEWAY, infrastructure_name
from tests.cluster.world.skipper import SKIPPER
from tests.cluster.world.traefik import TRAEFIK

EVERY = (CONTOUR, TRAEFIK, SKIPPER, GATEWAY)
LINES = {
    CONTOUR: '[2026-11-25T17:00:00.000Z] "GET /seen-1 HTTP/1.1" 200 - 0 52 3 2 "10.244.1.5" "Go-http-client/1.1" "1-2" '
    '"pages.contour.example.org" "10.244.0.9:8080"',
    TRAEFIK: '10.244.1.5 - - [25/Nov/2026:17:00:00 +0000] "GET /seen-1 HTTP/1.1" 200 52 "-" "-" 7 "r@kubernetes" '
    '"http://10.244.0.9:8080" 2ms',
    SKIPPER: '10.244.1.5 - - [25/Nov/2026:17:00:00 +0000] "GET /seen-1 HTTP/1.1" 200 52 "-" "Go-http-client/1.1" 2 '
    "pages.skipper.example.org - -",
    GATEWAY: '{":authority":"pages.gateway.example.org","bytes_received":0,"downstream_remote_address":'
    '"10.244.1.5:4000","method":"GET","response_code":200,"x-envoy-origin-path":"/seen-1","x-forwarded-for":"10.244.1.5"}',
}
"""A line of each access log, with its program's default format."""


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.name)
def test_the_client_is_found_in_the_access_log(one: Controller) -> None:
    log = f"started\n{LINES[one].replace('10.244.1.5', '192.0.2.9')}\n{LINES[one]}\n"
    assert one.client_in(log, "/seen-1") == "10.244.1.5"
    assert not one.client_in(log, "/seen-2")
    assert not one.client_in(log, "/seen")


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.name)
def test_each_protocol_has_a_url_below_the_controllers_zone(one: Controller) -> None:
    assert set(one.protocols) <= set(PROTOCOLS)
    assert all(f".{one.name}.example.org/" in one.asks(protocol)[1] for protocol in PROTOCOLS)


def test_the_names_fit_the_device_of_a_load_balancer() -> None:
    assert all(len(one.name) <= len("ten-letter") for one in EVERY)


def test_a_gateways_row_has_its_namespace() -> None:
    assert (CONTOUR.subject, GATEWAY.subject) == ("contour", "gateway/default/gateway")


def test_the_name_of_a_gateways_envoy_ends_with_a_hash() -> None:
    # internal/infrastructure/kubernetes/proxy: `envoy-default-eg-e41e7b31` for its quick start's Gateway.
    assert infrastructure_name("default", "eg") == "envoy-default-eg-e41e7b31"
