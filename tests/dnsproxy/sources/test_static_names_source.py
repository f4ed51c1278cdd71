"""The hosts file as a source: the claims match its current content, whatever it was before."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.answers.table import HostTable
from dnsproxy.answers.table_writer import TableWriter
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets
from dnsproxy.sources.static_names import HostsFile, HostsSource
from tests.dnsproxy.answers.test_table_writer import contents
from tests.kit.messages import addresses_of
from tests.kit.stepping import finish, parse_hosts

NAMES = ("a.example.org", "b.example.org", "*.example.org", "bad..name")
ADDRESSES = ("192.0.2.1", "192.0.2.2", "2001:db8::1", "no address")

files = st.lists(st.tuples(st.sampled_from(ADDRESSES), st.sampled_from(NAMES)).map(" ".join), max_size=5)


def parsed(*lines: str) -> HostsFile:
    return parse_hosts("\n".join(lines))


class Following:
    """A registry, the hosts file that feeds it and the table that follows it."""

    def __init__(self) -> None:
        self.registry = Registry(targets=Targets(), guards=Guards())
        self.source = HostsSource(self.registry)
        self.writer = TableWriter(ttl=5)

    def replace(self, *lines: str) -> None:
        finish(self.source.replace(parsed(*lines)))

    def table(self) -> HostTable:
        for host in self.registry.changes():
            self.writer.put(host)
        return self.writer.publish()


@given(st.lists(files, min_size=1, max_size=5))
def test_only_the_last_state_of_the_file_counts(states: list[list[str]]) -> None:
    following, fresh = Following(), Following()
    for lines in states:
        following.replace(*lines)
        table = following.table()
    fresh.replace(*states[-1])
    assert contents(table) == contents(fresh.table())
    assert set(following.registry.store.claims()) == set(fresh.registry.store.claims())
    assert list(following.registry.store.rejections()) == parsed(*states[-1]).rejections


@given(files, files, st.integers(0, 10))
def test_no_table_shows_half_a_change(before: list[str], after: list[str], steps: int) -> None:
    following, fresh = Following(), Following()
    following.replace(*before)
    kept = contents(following.table())
    change = following.source.replace(parsed(*after))
    for _ in islice(change, steps):
        assert contents(following.table()) == kept
    finish(change)
    fresh.replace(*after)
    assert contents(following.table()) == contents(fresh.table())


def test_a_line_that_stays_is_not_judged_again() -> None:
    following = Following()
    following.replace("192.0.2.1 a.example.org", "192.0.2.2 b.example.org", "192.0.2.3 c.example.org")
    following.table()
    following.replace("192.0.2.1 a.example.org", "192.0.2.9 b.example.org", "", "192.0.2.4 d.example.org")
    assert {host.hostname for host in following.registry.changes()} == {
        "b.example.org",
        "c.example.org",
        "d.example.org",
    }


@pytest.mark.parametrize("lines", [[], ["# empty"], ["bad line"]], ids=["nothing", "comment", "fault"])
def test_other_sources_keep_their_claims_when_the_file_is_emptied(lines: list[str]) -> None:
    following = Following()
    flag = Claim("a.example.org", Reach.NAME, Origin("flag", "--host"), Terms(("192.0.2.8",)))
    following.registry.replace("flag", "--host", [flag])
    following.replace("192.0.2.1 a.example.org", "192.0.2.1 b.example.org")
    following.replace(*lines)
    table = following.table()
    assert addresses_of(table, "a.example.org") == ("192.0.2.8",)
    assert addresses_of(table, "b.example.org") is None


def test_what_it_was_given_stays_as_it_was() -> None:
    following, found = Following(), parsed("192.0.2.1 a.example.org")
    for _ in range(2):
        finish(following.source.replace(found))
    finish(following.source.replace(parsed()))
    assert list(found.claims) == ["a.example.org"]
