"""Which ports of a Service are dialled."""

from __future__ import annotations

import pytest

from dnsproxy.doctor.facts.model import Port
from dnsproxy.doctor.judge.web_ports import is_tls, web_ports


@pytest.mark.parametrize(
    ("port", "tls"),
    [
        (Port(443), True),
        (Port(8443), True),
        (Port(9000, "https"), True),
        (Port(9000, "websecure"), True),
        (Port(9000, "x", "kubernetes.io/wss-https"), True),
        (Port(80), False),
        (Port(8080, "http-alt"), False),
        (Port(22, "ssh"), None),
        (Port(5432, "postgres"), None),
        (Port(9100), None),
        (Port(443, "https-webhook"), None),
        (Port(8443, "webhook"), None),
        (Port(10254, "http-metrics"), None),
        (Port(8080, "admin"), None),
        (Port(8000, "healthz"), None),
    ],
)
def test_only_ports_that_serve_hosts_are_dialled(port: Port, tls: bool | None) -> None:
    assert is_tls(port) is tls


def test_the_admission_service_of_a_controller_has_no_web_port() -> None:
    assert web_ports([Port(443, "https-webhook", "https")]) == ()
    assert web_ports([Port(80, "http"), Port(10254, "metrics"), Port(443, "https")]) == ((80, False), (443, True))
