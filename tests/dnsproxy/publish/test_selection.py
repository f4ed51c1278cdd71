"""Which names are published, and which losses need a second read."""

from __future__ import annotations

import pytest

from dnsproxy.admin.publication import Name
from dnsproxy.dns.names import Reach
from dnsproxy.publish.selection import is_sudden_loss, select_names

NAMES = (
    Name("example.org", ("192.0.2.1",)),
    Name("*.example.org", ("192.0.2.2",), Reach.ONE_LABEL),
    Name("*.example.org", ("192.0.2.3",), Reach.ANY_LABELS),
    Name("app.example.org", ("192.0.2.10", "2001:db8::10")),
    Name("notexample.org", ("192.0.2.4",)),
)


@pytest.mark.parametrize(
    ("zones", "expected"),
    [
        pytest.param(
            (), ["example.org", "*.example.org", "*.example.org", "app.example.org", "notexample.org"], id="all"
        ),
        pytest.param(
            ("example.org",), ["example.org", "*.example.org", "*.example.org", "app.example.org"], id="by whole labels"
        ),
        pytest.param(("app.example.org",), ["app.example.org"], id="one name"),
        pytest.param(("example.net", "notexample.org"), ["notexample.org"], id="several"),
        pytest.param(("net",), [], id="none of them"),
    ],
)
def test_zones_narrow(zones: tuple[str, ...], expected: list[str]) -> None:
    assert [name.hostname for name in select_names(NAMES, zones=zones)] == expected


@pytest.mark.parametrize(
    ("before", "after", "doubtful"),
    [
        pytest.param(0, 0, False, id="nothing and nothing"),
        pytest.param(0, 5, False, id="a beginning"),
        pytest.param(1, 0, True, id="the last name"),
        pytest.param(10_000, 0, True, id="all names"),
        pytest.param(19, 1, False, id="few names, most of them"),
        pytest.param(20, 1, True, id="twenty names, all but one"),
        pytest.param(20, 2, False, id="a tenth is left"),
        pytest.param(10_000, 999, True, id="less than a tenth is left"),
        pytest.param(10_000, 20_000, False, id="more than before"),
    ],
)
def test_losing_nearly_everything_is_doubted(before: int, after: int, doubtful: bool) -> None:
    assert is_sudden_loss(before=before, after=after) is doubtful
