"""Names of objects: within the limits, and different for every two hostnames."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dns.names import parse_hostname
from dnsproxy.publish.externaldns.object_names import label_name, subdomain_name

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")

labels = st.text("ab01-_", min_size=1, max_size=63).filter(lambda one: one[0] != "-" != one[-1])


def is_hostname(text: str) -> bool:
    try:
        return parse_hostname(text) == text
    except ValueError:
        return False


hostnames = (
    st.builds(
        lambda star, parts: star + ".".join(parts),
        st.sampled_from(("", "*.")),
        st.lists(labels, min_size=1, max_size=6),
    )
    .map(lambda name: name[:253].strip("-."))
    .filter(is_hostname)
)


@given(hostnames)
def test_a_name_is_one_that_the_api_server_takes(hostname: str) -> None:
    assert SUBDOMAIN.fullmatch(subdomain_name(hostname))
    assert len(subdomain_name(hostname)) <= 253
    assert LABEL.fullmatch(label_name(hostname))
    assert len(label_name(hostname)) <= 63


@given(st.lists(hostnames, min_size=2, max_size=30, unique=True))
def test_two_hostnames_have_two_names(many: list[str]) -> None:
    assert len(set(map(subdomain_name, many))) == len(many)
    assert len(set(map(label_name, many))) == len(many)


LONG = ".".join(["a" * 60] * 4)


@pytest.mark.parametrize(
    "hostnames",
    [
        pytest.param(["a-b.example.org", "a.b.example.org", "a_b.example.org"], id="dash, dot and underscore"),
        pytest.param(["*.example.org", "any.example.org", "_.example.org"], id="a wildcard and its words"),
        pytest.param([f"{LONG}.a", f"{LONG}.b", LONG], id="a long beginning in common"),
    ],
)
def test_hostnames_that_look_alike_are_told_apart(hostnames: list[str]) -> None:
    assert len(set(map(subdomain_name, hostnames))) == len(hostnames)
    assert len(set(map(label_name, hostnames))) == len(hostnames)


@pytest.mark.parametrize("hostname", ["*.example.org", "a_b.example.org", f"{LONG}.a"])
def test_no_hostname_can_be_made_that_has_the_name_of_a_changed_one(hostname: str) -> None:
    """Any tenant may choose a host like the hash of another's."""
    name = subdomain_name(hostname)
    for forged in (name, name.removeprefix("switchback."), name.removeprefix("switchback-"), f"h.{name}"):
        assert subdomain_name(forged) != name
        assert label_name(forged) != label_name(hostname)


@pytest.mark.parametrize(
    ("hostname", "subdomain", "label"),
    [
        pytest.param(
            "app.example.org", "switchback-app.example.org", "switchback-app-example-org-b0bf13b620397f0e", id="plain"
        ),
        pytest.param(
            "*.example.org",
            "switchback.any.example.org-87158a8b6a7c06bd",
            "switchback-any-example-org-87158a8b6a7c06bd",
            id="wildcard",
        ),
        pytest.param("_", "switchback.d2e2adf7177b7a8a", "switchback-d2e2adf7177b7a8a", id="nothing is left of it"),
    ],
)
def test_a_name_stays_the_same_from_version_to_version(hostname: str, subdomain: str, label: str) -> None:
    """Another name for the same host would have its record deleted and made anew."""
    assert (subdomain_name(hostname), label_name(hostname)) == (subdomain, label)
