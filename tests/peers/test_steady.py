"""The judgement on late replies: after a hang, a drop that the kernel counted explains one second wait, and no more."""

from __future__ import annotations

import pytest

from tests.peers import steady
from tests.peers.steady import Outcome, Tally


@pytest.mark.parametrize(
    ("seconds", "dropped", "late"),
    [
        pytest.param([0.1, 2.1], 0, [], id="one wait for a server"),
        pytest.param([0.1, 4.0], 1, [], id="two waits and a drop"),
        pytest.param([0.1, 4.0], 0, [4.0], id="two waits without a drop"),
        pytest.param([4.0, 4.1], 1, [4.0, 4.1], id="more second waits than drops"),
        pytest.param([4.0, 6.1], 9, [6.1], id="three waits, whatever was dropped"),
    ],
)
def test_only_as_many_second_waits_as_drops_are_in_time(
    seconds: list[float], dropped: int, late: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    tally = Tally([Outcome("www.example.org", "UDP", one, "192.0.2.1") for one in seconds], dropped_before=7)
    monkeypatch.setattr(steady, "dropped_datagrams", lambda: 7 + dropped)
    assert [outcome.seconds for outcome in tally.late_after_a_hang()] == late
