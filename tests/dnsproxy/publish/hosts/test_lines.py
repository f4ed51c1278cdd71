"""The lines of a hosts file: one name each, in a fixed order, and the names that are excluded."""

from __future__ import annotations

import pytest

from dnsproxy.admin.publication import Name
from dnsproxy.dns.names import Reach
from dnsproxy.publish.hosts.lines import count_names, make_lines, without_taken

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


def test_names_are_counted_once_however_many_addresses_they_have() -> None:
    lines = [line.encode() for line in make_lines(NAMES).lines]
    assert count_names([*lines, b"", b"192.0.2.9", b"# note"]) == 3 + 1


@pytest.mark.parametrize(
    ("foreign", "taken"),
    [
        pytest.param(b"", (), id="nothing there"),
        pytest.param(b"192.0.2.99 app.example.org\n", ("app.example.org",), id="the name"),
        pytest.param(b"192.0.2.99\tother  App.Example.ORG.\r\n", ("app.example.org",), id="another spelling"),
        pytest.param(b"::1 example.org # own\n1 notexample.org", ("example.org", "notexample.org"), id="two of them"),
        pytest.param(b"192.0.2.99 x # app.example.org\n#1 app.example.org\n", (), id="in comments"),
        pytest.param(b"app.example.org\n", (), id="where the address should be"),
        pytest.param(b"192.0.2.99 app.example\xff.org sub.app.example.org\n", (), id="other names"),
    ],
)
def test_a_name_that_the_file_has_already_is_left_to_it(foreign: bytes, taken: tuple[str, ...]) -> None:
    made = without_taken(make_lines(NAMES), foreign)
    assert made.taken == taken
    assert {line.split()[1] for line in made.lines} == {"example.org", "app.example.org", "notexample.org"} - set(taken)
    assert (made.names, made.wildcards) == (3 - len(taken), ("*.example.org",))
