"""The routes from Services of a process that starts."""

from __future__ import annotations

import subprocess
import sys

import pytest

from proxy.route_services.starting import beside, make_followed_routes, reserve
from proxy.settings import RouteServices
from sidecar.kubernetes.relay_routes import MOST_ROUTES
from sidecar.values.endpoints import Endpoint
from tests.proxy.route_services.made import RealPorts

PORT = Endpoint("::", 443)


def test_without_the_flag_there_are_none() -> None:
    assert reserve(None, [PORT], None) is None
    assert make_followed_routes(None, RealPorts(), beside([PORT], [])) is None


def test_the_ports_of_flags_are_reserved_and_the_namespace_stays() -> None:
    services = reserve(RouteServices("switchback"), [PORT], Endpoint("127.0.0.1", 8082))
    assert services == RouteServices("switchback", {443: "--route has", 8082: "--admin has"})


@pytest.mark.parametrize(("limit", "most"), [(64, 5), (1024, 85), (1_048_576, MOST_ROUTES)])
def test_a_low_limit_of_open_files_allows_fewer_routes(monkeypatch: pytest.MonkeyPatch, limit: int, most: int) -> None:
    monkeypatch.setattr("proxy.route_services.starting.descriptor_limit", lambda: limit)
    fixed = beside([PORT], [])
    assert fixed.most == most
    assert fixed.no_room.startswith(f"the limit of open files is {limit}, and more are needed; raise it")


def test_a_relay_without_services_imports_no_client_of_the_api_server() -> None:
    code = "import sys, proxy.serve.program, proxy.serve.supervisor; sys.exit('httpx2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
