"""Health: what external-dns has not taken in."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from dnsproxy.publish.externaldns.health import unobserved
from dnsproxy.publish.externaldns.planning import Stored

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def stored(observed: int | None, *, created: str | None = "2026-01-01T11:00:00Z", generation: int = 2) -> Stored:
    body: dict[str, Any] = {"metadata": {"name": "one", "generation": generation, "creationTimestamp": created}}
    if observed is not None:
        body["status"] = {"observedGeneration": observed}
    return msgspec.convert(body, Stored)


@pytest.mark.parametrize(
    ("one", "behind"),
    [
        pytest.param(stored(2), False, id="seen"),
        pytest.param(stored(3), False, id="seen, and more"),
        pytest.param(stored(1), True, id="seen before the last change"),
        pytest.param(stored(None), True, id="never seen"),
        pytest.param(stored(None, created="2026-01-01T11:59:00Z"), False, id="too young to be seen"),
        pytest.param(stored(None, created=None), False, id="of unknown age"),
        pytest.param(stored(None, created="yesterday"), False, id="of an age that cannot be read"),
        pytest.param(stored(None, created="2026-01-01T11:00:00"), True, id="an age without a zone"),
    ],
)
def test_what_is_old_enough_and_was_not_seen_is_named(one: Stored, behind: bool) -> None:
    assert unobserved([one], now=NOW) == (["one"] if behind else [])
