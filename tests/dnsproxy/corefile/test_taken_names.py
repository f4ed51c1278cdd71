"""The names that other lines of a server block take."""

from __future__ import annotations

import pytest

from dnsproxy.corefile.model import Scope
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.taken_names import Match, TakenNames, taken_names

APP = "app.example.org"


def taken(text: str) -> list[TakenNames]:
    value = parse_corefile(text, Scope.ROOT_PLUGINS)
    return [one for block in value.blocks for directive in block.directives for one in taken_names(directive)]


TAKING = {
    "two names": "rewrite name app.example.org relay.example.net\n",
    "exact": "rewrite name exact App.Example.org. relay.example.net\n",
    "a mode": "rewrite stop name app.example.org relay.example.net\n",
    "another mode": "rewrite CONTINUE name exact app.example.org relay.example.net answer auto\n",
    "a block": "rewrite stop {\n  name exact app.example.org relay.example.net\n  answer auto\n}\n",
    "a block without a mode": "rewrite {\n  name app.example.org relay.example.net\n}\n",
    "a suffix": "rewrite name suffix .example.org .example.net\n",
    "a prefix": "rewrite name prefix app. relay.\n",
    "a substring": "rewrite name substring example.org example.net\n",
    "hosts": "hosts {\n  192.0.2.1 other.example.org app.example.org # the app\n  fallthrough\n}\n",
    "a template": "template IN A app.example.org {\n  rcode NXDOMAIN\n}\n",
    "a template of a zone": "template ANY ANY cluster.local example.org. {\n  rcode NXDOMAIN\n}\n",
    "hosts of IPv6": "hosts {\n  2001:db8::1 APP.example.org.\n  fallthrough\n}\n",
}


@pytest.mark.parametrize("text", TAKING.values(), ids=TAKING)
def test_a_line_takes_a_name(text: str) -> None:
    assert any(one.takes(APP) for one in taken(text))


LEAVING = {
    "another name": "rewrite name exact app.example.net relay.example.net\n",
    "the name as the new one": "rewrite name exact relay.example.net app.example.org\n",
    "another field": "rewrite type A AAAA\n",
    "a TTL": "rewrite ttl exact app.example.org 30\n",
    "a regular expression": "rewrite name regex (.*)\\.example\\.org {1}.example.net\n",
    "an unknown kind": "rewrite name fuzzy app.example.org relay.example.net\n",
    "too few words": "rewrite name app.example.org\n",
    "no words": "rewrite\n",
    "a prefix without its dot": "rewrite name prefix ap relay\n",
    "another plugin": "forward app.example.org 192.0.2.1\n",
    "a template for another type": "template IN MX example.org {\n  rcode NXDOMAIN\n}\n",
    "a template that switches IPv6 off": "template IN AAAA example.org {\n  rcode NOERROR\n}\n",
    "a template for another class": "template CH A example.org {\n  rcode NXDOMAIN\n}\n",
    "a template of its block": "template IN A {\n  rcode NXDOMAIN\n}\n",
    "a template with a regular expression": "template IN A example.org {\n  match ^app[.]\n  rcode NXDOMAIN\n}\n",
    "a template of another zone": "template IN A ample.org {\n  rcode NXDOMAIN\n}\n",
    "a hosts file": "hosts /etc/hosts example.org\n",
    "an option of hosts": "hosts {\n  ttl 60\n  fallthrough app.example.org\n}\n",
}


@pytest.mark.parametrize("text", LEAVING.values(), ids=LEAVING)
def test_a_line_leaves_a_name_alone(text: str) -> None:
    assert not any(one.takes(APP) for one in taken(text))


@pytest.mark.parametrize(
    ("kind", "text", "below"),
    [
        ("exact", "app.example.org.", True),
        ("exact", "a.b.example.org.", True),
        ("exact", "example.org.", False),
        ("exact", "app.example.net.", False),
        ("suffix", ".example.org.", True),
        ("suffix", ".org.", True),
        ("suffix", ".team.example.org.", True),
        ("suffix", ".example.net.", False),
        ("prefix", "app.", True),
        ("substring", "any.", True),
    ],
)
def test_a_line_may_take_names_below_a_wildcard(kind: str, text: str, below: bool) -> None:
    assert TakenNames(Match(kind), text).takes_below("example.org") is below
