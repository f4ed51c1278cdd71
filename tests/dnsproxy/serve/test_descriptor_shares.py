"""The shares of descriptors: all together fit, and each is enough to work with."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.serve.descriptor_shares import divide
from sidecar.sockets.descriptors import LEAST_FREE, admin_share


@given(free=st.integers(LEAST_FREE, 2_000_000), opened=st.integers(4, 200))
def test_all_shares_together_fit_and_leave_room_for_the_server_itself(free: int, opened: int) -> None:
    admin = admin_share(free + opened)
    shares = divide(free, admin=min(admin, free // 4))
    assert shares.connections >= 1
    assert 1 <= shares.per_client <= shares.connections
    assert shares.source_ports >= 2
    assert shares.connections + shares.source_ports + min(admin, free // 4) + 6 <= free


@pytest.mark.parametrize(
    ("free", "admin", "shares"),
    [
        pytest.param(54, 8, (17, 4, 16), id="64"),
        pytest.param(1013, 128, (441, 110, 316), id="1,024"),
        pytest.param(8180, 256, (1024, 256, 2556), id="8,192"),
        pytest.param(1_048_000, 256, (1024, 256, 4096), id="1,048,576"),
    ],
)
def test_the_shares_of_usual_limits(free: int, admin: int, shares: tuple[int, int, int]) -> None:
    assert divide(free, admin=admin) == shares
