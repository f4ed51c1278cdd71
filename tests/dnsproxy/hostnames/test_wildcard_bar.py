"""A held name, and the wildcards above it: who may answer it until its namespace had the time to come back."""

from __future__ import annotations

from typing import Final

import pytest

from dnsproxy.admin.explain import explain
from dnsproxy.answers.table_writer import TableWriter
from dnsproxy.dns import names
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.holds import Holds
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets
from dnsproxy.hostnames.wildcard_bar import names_below

HOLD: Final = 600.0
NAME: Final = "app.shop.example.org"


class Server:
    """A registry with holds, and the table that follows it."""

    def __init__(self) -> None:
        self.registry = Registry(
            targets=Targets(("192.0.2.1",)), guards=Guards(deny=("denied.shop.example.org",)), holds=Holds(HOLD)
        )
        self.writer = TableWriter(ttl=5, never=self.registry.denied)
        self.now = 0.0
        self.registry.holds.begin()

    def put(self, namespace: str, hostname: str, *, reach: Reach = Reach.ONE_LABEL, name: str = "one") -> None:
        origin = Origin("Ingress" if reach is Reach.ONE_LABEL else "HTTPRoute", name, namespace, "2026-01-01T00:00:00Z")
        given = reach if names.is_wildcard(hostname) else Reach.NAME
        key = f"{namespace}/{name} {hostname} {reach}"
        self.registry.replace("objects", key, [Claim(hostname, given, origin)])
        self.settle()

    def delete(self, namespace: str, hostname: str, *, reach: Reach = Reach.ONE_LABEL, name: str = "one") -> None:
        self.registry.replace("objects", f"{namespace}/{name} {hostname} {reach}", [])
        self.settle()

    def settle(self) -> None:
        for host in self.registry.changes(self.now):
            self.writer.put(host)

    def answers(self, hostname: str) -> bool:
        return self.writer.publish().find(names.to_wire(hostname)) is not None


@pytest.mark.parametrize("wildcard", ["*.shop.example.org", "*.example.org"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_wildcard_of_another_namespace_does_not_answer_a_held_name(wildcard: str, when: str) -> None:
    server = Server()
    server.put("victim", NAME)
    if when == "before":
        server.put("squatter", wildcard, reach=Reach.ANY_LABELS)
    server.delete("victim", NAME)
    if when == "after":
        server.put("squatter", wildcard, reach=Reach.ANY_LABELS)
    assert not server.answers(NAME)
    assert server.answers(f"other.{wildcard[2:]}")


def test_it_answers_after_the_hold() -> None:
    server = Server()
    server.put("victim", NAME)
    server.put("squatter", "*.shop.example.org")
    server.delete("victim", NAME)
    server.now = HOLD + 1
    server.settle()
    assert server.answers(NAME)


def test_a_holder_that_comes_back_is_answered_and_leaves_no_bar() -> None:
    server = Server()
    server.put("squatter", "*.shop.example.org")
    server.put("victim", NAME)
    server.delete("victim", NAME)
    server.put("victim", NAME, name="again")
    assert server.answers(NAME)
    assert not server.registry.is_barred(NAME)


def test_a_wildcard_of_the_same_namespace_answers_at_once() -> None:
    server = Server()
    server.put("victim", "*.shop.example.org")
    server.put("victim", NAME)
    server.delete("victim", NAME)
    assert server.answers(NAME)


def test_the_name_is_kept_if_that_wildcard_goes_too() -> None:
    server = Server()
    server.put("victim", "*.shop.example.org")
    server.put("squatter", "*.shop.example.org", reach=Reach.ANY_LABELS)
    server.put("victim", NAME)
    server.delete("victim", NAME)
    server.delete("victim", "*.shop.example.org")
    assert not server.answers(NAME)


def test_a_wildcard_that_is_held_is_held_for_the_other_kind_of_wildcard_too() -> None:
    server = Server()
    server.put("victim", "*.shop.example.org")
    server.delete("victim", "*.shop.example.org")
    server.put("squatter", "*.shop.example.org", reach=Reach.ANY_LABELS)
    assert not server.answers("any.shop.example.org")
    server.now = HOLD + 1
    server.settle()
    assert server.answers("any.shop.example.org")


def test_a_denied_name_stays_barred() -> None:
    server = Server()
    server.put("squatter", "*.shop.example.org")
    server.put("victim", "denied.shop.example.org")
    server.delete("victim", "denied.shop.example.org")
    server.now = HOLD + 1
    server.settle()
    assert not server.answers("denied.shop.example.org")


def test_explain_says_why_the_wildcard_does_not_answer() -> None:
    server = Server()
    server.put("victim", NAME)
    server.put("squatter", "*.shop.example.org")
    server.delete("victim", NAME)
    found = explain(server.registry, NAME, ttl=5)
    assert found.answer is None
    assert [one.reason for one in found.left_out] == [
        "its namespace may take it again, and no wildcard of another one has it meanwhile (--hold)"
    ]


def test_names_below_a_wildcard_are_found_by_whole_labels() -> None:
    wanted = ["a.example.org", "a.b.example.org"]
    assert names_below({"*.example.org"}, [*wanted, "notexample.org", "example.net"]) == wanted
