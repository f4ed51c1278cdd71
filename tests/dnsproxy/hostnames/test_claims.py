"""Claims: the text of an origin."""

from __future__ import annotations

import pytest

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin


@pytest.mark.parametrize(
    ("origin", "shown"),
    [
        pytest.param(Origin("Ingress", "app", "shop"), "Ingress shop/app", id="object"),
        pytest.param(Origin("hosts file", "/etc/names:3"), "hosts file /etc/names:3", id="line"),
        pytest.param(Origin("flag", "--host a=192.0.2.1"), "flag --host a=192.0.2.1", id="flag"),
    ],
)
def test_an_origin_is_shown_as_people_look_for_it(origin: Origin, shown: str) -> None:
    assert str(origin) == shown


def test_claims_are_values() -> None:
    origin = Origin("Ingress", "app", "shop", "2026-01-01T00:00:00Z")
    one = Claim("app.example.org", Reach.NAME, origin)
    assert one == Claim("app.example.org", Reach.NAME, origin)
    assert len({one, Claim("app.example.org", Reach.NAME, origin)}) == 1
