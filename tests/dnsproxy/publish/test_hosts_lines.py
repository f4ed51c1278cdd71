"""The lines of a hosts file: one name each, in an order of their own, and what cannot be one."""

from __future__ import annotations

import pytest

from dnsproxy.claims import Reach
from dnsproxy.publish.hosts_lines import count_names, make_lines, select_names
from dnsproxy.publish.publication import Name

NAMES = (
    Name("example.org", ("192.0.2.1",)),
    Name("*.example.org", ("192.0.2.2",), Reach.ONE_LABEL),
    Name("*.example.org", ("192.0.2.3",), Reach.ANY_LABELS),
    Name("app.example.org", ("192.0.2.10", "2001:db8::10")),
    Name("notexample.org", ("192.0.2.4",)),
)


def test_each_address_of_each_name_is_a_line_and_wildcards_are_told_once() -> None:
    made = make_lines(NAMES)
    assert made.lines == (
        "192.0.2.1 example.org",
        "192.0.2.10 app.example.org",
        "2001:db8::10 app.example.org",
        "192.0.2.4 notexample.org",
    )
    assert (made.names, made.wildcards) == (3, ("*.example.org",))


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


def test_names_are_counted_once_however_many_addresses_they_have() -> None:
    lines = [line.encode() for line in make_lines(NAMES).lines]
    assert count_names([*lines, b"", b"192.0.2.9", b"# note"]) == 3 + 1
