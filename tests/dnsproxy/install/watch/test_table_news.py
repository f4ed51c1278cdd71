"""What of dnsproxy's table a watch follows, and which changes only follow it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from dnsproxy.cluster_dns.traces import Trace, find_traces
from dnsproxy.corefile.rewrite_lines import Rewrite, format_rewrites
from dnsproxy.corefile.stanza import BEGIN, END
from dnsproxy.dns.names import Reach
from dnsproxy.install.change.rewrite_choice import LiveRewrites
from dnsproxy.install.watch.table_news import Aim, learn_names, names_in, only_follows
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.cluster_dns.test_rewrite_place import tenant
from tests.dnsproxy.cluster_dns.test_traces import custom, marked
from tests.kit.manifest_cluster import discover

A, B = (Rewrite(f"{name}.example.org", Reach.NAME, "switchback/relay") for name in "ab")
DNSPROXY: Final = (Endpoint("10.96.0.53", 53),)
LINES: Final = Aim("the key", rewrites=frozenset([A]))
STANZA: Final = Aim("the key", DNSPROXY, ("example.org",))


def traces_of(*rewrites: Rewrite) -> tuple[Trace, ...]:
    text = "".join(f"{line}\n" for line in (BEGIN, *format_rewrites(rewrites, "cluster.local"), END))
    return find_traces(discover(tenant(switchback_override=text)))


def stanza(*zones: str) -> tuple[Trace, ...]:
    text = marked(f"{' '.join(zones)} {{", "  forward . 10.96.0.53", "}")
    return find_traces(discover(custom("k3s", switchback_server=text)))


def test_all_names_are_news_and_exempt_ones_too() -> None:
    live = LiveRewrites((A,), (replace(B, service=""),), answered=1)
    known = learn_names(live, frozenset())
    assert known == {"a.example.org (exact) switchback/relay", "b.example.org (exact)"}
    assert learn_names(replace(live, names=()), known) == {"b.example.org (exact)"}
    assert learn_names(LiveRewrites(doubt="silent"), known) == known
    assert names_in(None) == frozenset()


@pytest.mark.parametrize(
    ("before", "now", "traces", "follows"),
    [
        (LINES, replace(LINES, rewrites=frozenset([A, B])), traces_of(A), True),
        (LINES, replace(LINES, rewrites=frozenset()), traces_of(A), True),
        (LINES, replace(LINES, rewrites=frozenset([A, B])), traces_of(B), False),
        (LINES, replace(LINES, rewrites=frozenset([A, B])), (), False),
        (LINES, LINES, traces_of(), False),
        (LINES, replace(LINES, target="another", rewrites=frozenset([B])), traces_of(A), False),
        (STANZA, replace(STANZA, zones=("example.net", "example.org")), stanza("example.org"), True),
        (STANZA, replace(STANZA, zones=("example.net",)), stanza("example.org"), False),
        (STANZA, replace(STANZA, zones=("example.net", "example.org")), stanza("example.com"), False),
        (STANZA, replace(STANZA, addresses=(), zones=("example.net", "example.org")), stanza("example.org"), False),
        (STANZA, LINES, traces_of(A), False),
        (LINES, STANZA, stanza("example.org"), False),
    ],
    ids=[
        *("a new name", "a name that left", "others wrote", "others removed", "others emptied", "another key"),
        *("a new zone", "a zone that vanished", "others wrote zones", "another address", "to lines", "to a stanza"),
    ],
)
def test_a_change_that_only_follows_the_table_is_nobodys(
    before: Aim, now: Aim, traces: tuple[Trace, ...], follows: bool
) -> None:
    assert only_follows(before, now, traces) is follows


def test_equal_wishes_have_equal_texts() -> None:
    assert str(replace(LINES, rewrites=frozenset([A, B]))) == str(replace(LINES, rewrites=frozenset([B, A])))
    assert str(LINES) != str(replace(LINES, rewrites=frozenset([B])))
    assert str(STANZA) == "the key: 10.96.0.53:53 for example.org"
