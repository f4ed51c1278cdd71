"""The listeners of a relay by port."""

from __future__ import annotations

from proxy.backends.own_listeners import OwnListeners
from sidecar.values.endpoints import Endpoint


def test_the_listeners_at_a_port_are_found_on_every_address() -> None:
    one, other, beside = Endpoint("192.0.2.1", 443), Endpoint("::1", 443), Endpoint("::", 80)
    listeners = OwnListeners([one, beside, other])
    assert list(listeners.at(443)) == [one, other]
    assert list(listeners.at(80)) == [beside]
    assert list(listeners.at(8080)) == []
    assert list(OwnListeners().at(443)) == []
