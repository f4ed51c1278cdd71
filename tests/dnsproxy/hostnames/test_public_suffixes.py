"""Public suffixes: which names are one, and what is registrable below them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dnsproxy.hostnames.public_suffixes import is_public_suffix, registrable_domain


@pytest.mark.parametrize(
    ("name", "domain"),
    [
        pytest.param("org", None, id="top level"),
        pytest.param("lan", None, id="unknown top level"),
        pytest.param("co.uk", None, id="two labels"),
        pytest.param("github.io", None, id="of a hoster"),
        pytest.param("any.ck", None, id="wildcard rule"),
        pytest.param("xn--55qx5d.cn", None, id="A-label"),
        pytest.param("www.ck", "www.ck", id="exception"),
        pytest.param("example.org", "example.org", id="registrable itself"),
        pytest.param("a.b.example.co.uk", "example.co.uk", id="below"),
        pytest.param("a.team.github.io", "team.github.io", id="below a hoster's"),
        pytest.param("app.corp.lan", "corp.lan", id="below an unknown top level"),
    ],
)
def test_a_suffix_has_no_registrable_domain_and_every_other_name_has_one(name: str, domain: str | None) -> None:
    assert registrable_domain(name) == domain
    assert is_public_suffix(name) is (domain is None)


def test_the_list_is_read_only_when_it_is_needed() -> None:
    """A server of static names and the other commands never need it."""
    code = "import sys, dnsproxy.serve.program; print('publicsuffixlist' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"
