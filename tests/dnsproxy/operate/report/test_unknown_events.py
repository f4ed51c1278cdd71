"""The Events about addresses that no status names."""

from __future__ import annotations

from dnsproxy.hostnames.public_addresses import UnknownAddress
from dnsproxy.operate.report.event_reasons import UNKNOWN_ADDRESS
from dnsproxy.operate.report.unknown_events import unknown_events

SERVICE = "switchback/dnsproxy"


def address(text: str, subject: str = "ingressclass/nginx") -> UnknownAddress:
    return UnknownAddress(address=text, hostnames=12, asked=14, examples=("app.example.org",), subject=subject)


def test_the_addresses_of_a_class_are_one_event_and_those_of_a_gateway_another() -> None:
    found = unknown_events(
        [address("198.51.100.1"), address("198.51.100.2"), address("198.51.100.3", "gateway/infra/gate")],
        ("198.51.100.1", "198.51.100.2", "198.51.100.3"),
        service=SERVICE,
    )
    (nginx, text), (gate, _) = found
    assert (nginx.kind, nginx.namespace, nginx.name) == ("IngressClass", "", "nginx")
    assert (gate.kind, gate.namespace, gate.name) == ("Gateway", "infra", "gate")
    assert "lead to 198.51.100.1, which no status names" in text
    assert "lead to 198.51.100.2, which no status names" in text
    assert "--trust 198.51.100.1" in text


def test_without_a_class_or_gateway_it_is_about_our_own_service() -> None:
    ((about, _),) = unknown_events([address("198.51.100.1", "")], ["198.51.100.1"], service=SERVICE)
    assert (about.kind, about.namespace, about.name) == ("Service", "switchback", "dnsproxy")


def test_an_address_that_is_not_to_be_reported_makes_none() -> None:
    assert unknown_events([address("198.51.100.1")], (), service=SERVICE) == []
    assert unknown_events([], ("198.51.100.1",), service=SERVICE) == []


def test_it_is_a_warning_by_a_word_that_stays() -> None:
    assert (UNKNOWN_ADDRESS.name, UNKNOWN_ADDRESS.warns) == ("UnknownAddress", True)
