"""The guide's page on other resolvers: its lines are those that tests/peers start real programs with."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.kit.rpz.page import NOTIFIERS, PAGE, PRIMARY, SECRET, blocks
from tests.kit.rpz.rigs import RESOLVERS, SECONDARIES, Kind

KINDS: Final = (*RESOLVERS, *SECONDARIES)
UNTESTED: Final = {"The primary", "Names and addresses", "OpenShift", "On premises", "What RPZ cannot say"}


def test_each_section_with_lines_for_a_resolver_has_a_rig() -> None:
    headings = set(re.findall(r"^## (.*)$", PAGE, re.MULTILINE))
    assert {kind.heading for kind in KINDS} == headings - UNTESTED


@pytest.mark.parametrize("heading", [kind.heading for kind in KINDS])
def test_the_lines_name_the_pages_primary(heading: str) -> None:
    assert PRIMARY in "".join(blocks(heading))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_resolver_has_a_secret_or_a_file_with_it_exactly_if_it_can_sign(kind: Kind) -> None:
    lines = "".join(blocks(kind.heading))
    assert (SECRET in lines or "switchback.key" in lines) is kind.is_keyed


def test_a_resolver_that_takes_notify_takes_it_from_the_pages_network() -> None:
    taking = {kind.heading for kind in KINDS if NOTIFIERS in "".join(blocks(kind.heading))}
    assert {kind.heading for kind in KINDS} - taking == {"PowerDNS Recursor"}


def test_a_wrong_heading_is_found() -> None:
    with pytest.raises(AssertionError, match="nothing"):
        blocks("nothing")
