"""What an install and an uninstall make of a Corefile, and the laws between them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.corefile.model import CorefileError
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.plan import Change, plan_install, plan_uninstall
from dnsproxy.corefile.stanza import BEGIN, END, Version
from tests.dnsproxy.corefile.shapes import NEWEST, SHAPES, address, corefiles, garbage, installed, stock

versions = st.sampled_from([None, (1, 9, 4), (1, 13, 0), NEWEST])
ROOT_BLOCK = ".:53 {\n    errors\n    forward . /etc/resolv.conf\n    reload\n}\n"


@given(corefiles(), versions)
def test_an_uninstall_gives_back_the_text_from_before(text: str, version: Version | None) -> None:
    change = installed(text, version=version)
    assert change.changed
    assert plan_uninstall(change.new).new == text


@given(corefiles(), versions)
def test_installing_twice_is_installing_once(text: str, version: Version | None) -> None:
    once = installed(text, version=version).new
    assert not installed(once, version=version).changed


@given(corefiles())
def test_another_address_takes_the_place_of_the_old_one(text: str) -> None:
    first = installed(text, "192.0.2.1").new
    assert installed(first, "192.0.2.2", "2001:db8::2").new == installed(text, "192.0.2.2", "2001:db8::2").new


@given(corefiles())
def test_everything_outside_the_markers_stays(text: str) -> None:
    change = installed(text)
    before, _, rest = change.new.partition(BEGIN)
    after = rest.partition(END)[2]
    assert text.startswith(before)
    assert text.endswith(after.lstrip("\r\n"))
    assert len(before) + len(after) >= len(text)


@given(corefiles())
def test_what_is_written_holds_the_stanza_before_the_original(text: str) -> None:
    (root,) = [block for block in parse_corefile(installed(text).new).blocks if block.named("forward")][-1:]
    ours, theirs = root.named("forward")
    assert [word.text for word in ours.arguments] == [".", "10.96.0.53", *(word.text for word in theirs.arguments[1:])]
    assert [word.text for word in ours.options][:2] == ["policy", "sequential"]


@given(garbage)
def test_garbage_is_planned_or_refused(text: str) -> None:
    for plan in (installed, plan_uninstall):
        assert outcome(plan, text)


def outcome(plan: object, text: str) -> Change | str:
    try:
        return plan(text) if callable(plan) else ""
    except CorefileError as error:
        return str(error)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_stock_corefile_comes_back_from_a_round_trip(shape: str) -> None:
    change = installed(stock(shape), version=NEWEST)
    assert change.changed
    assert not installed(change.new, version=NEWEST).changed
    back = plan_uninstall(change.new)
    assert back.new == stock(shape)
    assert not plan_uninstall(back.new).changed


def test_without_a_stanza_an_uninstall_changes_nothing() -> None:
    change = plan_uninstall(ROOT_BLOCK)
    assert (change.changed, change.notes) == (False, ())


def test_what_the_owner_changes_outside_the_markers_is_kept_and_followed() -> None:
    edited = installed(ROOT_BLOCK).new.replace(
        "forward . /etc/resolv.conf\n    reload", "forward . 192.0.2.53\n    log"
    )
    again = installed(edited)
    assert "forward . 10.96.0.53 192.0.2.53 {" in again.new
    assert plan_uninstall(again.new).new == ROOT_BLOCK.replace("/etc/resolv.conf\n    reload", "192.0.2.53\n    log")


def test_a_stanza_that_was_moved_goes_back_to_its_place() -> None:
    good = installed(ROOT_BLOCK).new
    region = good[good.index("    # BEGIN") : good.index(END) + len(END) + 1]
    moved = good.replace(region, "").replace("    reload\n", "    reload\n" + region)
    assert installed(moved).new == good


def test_an_address_given_twice_is_written_once() -> None:
    assert "forward . 192.0.2.1 /etc/resolv.conf {" in installed(ROOT_BLOCK, "192.0.2.1", "192.0.2.1:53").new


def test_zones_are_written_inner_first() -> None:
    new = installed(ROOT_BLOCK, zones=("org", "a.example.org", ".")).new
    assert [word.arguments[0].text for word in parse_corefile(new).blocks[0].named("forward")] == [
        "a.example.org",
        "org",
        ".",
        ".",
    ]


@pytest.mark.parametrize("version", [(1, 9, 3), (1, 8, 7), (0, 9, 9)])
def test_a_coredns_that_takes_one_forward_is_refused(version: Version) -> None:
    with pytest.raises(CorefileError, match="takes one forward per server block") as caught:
        installed(ROOT_BLOCK, version=version)
    assert caught.value.line == 3


@pytest.mark.parametrize("arguments", [((), (".",)), (("192.0.2.1",), ())], ids=["no address", "no zone"])
def test_an_install_of_nothing_is_a_mistake_of_the_caller(arguments: tuple[Sequence[str], Sequence[str]]) -> None:
    addresses, zones = arguments
    with pytest.raises(ValueError, match="takes an address and a zone"):
        plan_install(ROOT_BLOCK, addresses=[address(one) for one in addresses], zones=zones)


NOTES = [
    pytest.param("", "1.9.4 or newer", id="the version is unknown"),
    pytest.param("loop", "`loop` is on", id="loop"),
    pytest.param("import custom/*.override", "imported files were not read: custom/*.override", id="imports"),
    pytest.param("forward a.org 192.0.2.9", "`forward a.org` (line 2) never come to dnsproxy", id="an inner forward"),
    pytest.param("}\na.org {", "never come to dnsproxy: a.org (line 4)", id="another server block"),
]


@pytest.mark.parametrize(("line", "note"), NOTES)
def test_what_works_differently_than_one_may_think_is_noted(line: str, note: str) -> None:
    text = f". {{\n{line}\n forward . /etc/resolv.conf\n reload\n}}\n"
    if line.startswith("}"):
        text = f". {{\n forward . /etc/resolv.conf\n{line}\n}}\n"
    assert any(note in one for one in installed(text).notes)


def test_a_missing_reload_is_noted_both_ways() -> None:
    text = ". {\n hosts {\n  reload 5s\n }\n # reload\n forward . /etc/resolv.conf\n}\n"
    change = installed(text)
    assert any("no `reload`" in note for note in change.notes)
    assert any("no `reload`" in note for note in plan_uninstall(change.new).notes)
    assert not any("no `reload`" in note for note in installed(ROOT_BLOCK).notes)


def test_names_under_except_and_a_root_on_another_port_are_noted() -> None:
    notes = installed(".:5353 {\n forward . /etc/resolv.conf {\n  except a.org\n }\n reload\n}\n", version=NEWEST).notes
    assert notes == (
        "the server block of . listens on port 5353",
        "names under `except` (line 2) never come to dnsproxy",
    )


def test_a_loopback_address_is_noted() -> None:
    assert any("own pod" in note for note in installed(ROOT_BLOCK, "::1").notes)
    assert not any("own pod" in note for note in installed(ROOT_BLOCK, "2001:db8::1").notes)


FORWARDLESS = [
    pytest.param(".:53 {\n    errors\n    hosts {\n        fallthrough\n    }\n    reload\n}\n", id="the usual form"),
    pytest.param(". {\n}\n", id="an empty block"),
    pytest.param("  . {\n\t  log # note\n\n  # end\n  }", id="indented"),
    pytest.param(".:53 {\r\n log\r\n}\r\n", id="CRLF"),
    pytest.param("a.org {\n log\n}\n\n. {\n forward a.test 192.0.2.1\n}\n# end\n", id="a zone alone"),
    pytest.param("(s) {\n log\n}\n. {\n import s\n}\n", id="a snippet"),
]


@pytest.mark.parametrize("text", FORWARDLESS)
def test_where_nothing_is_forwarded_dnsproxy_is_the_only_upstream_and_comes_out_again(text: str) -> None:
    change = installed(text, version=NEWEST)
    (stanza,) = [one for block in parse_corefile(change.new).blocks for one in block.named("forward") if one.options]
    assert [word.text for word in stanza.arguments] == [".", "10.96.0.53"]
    assert any("fail with SERVFAIL" in note for note in change.notes)
    assert not installed(change.new, version=NEWEST).changed
    assert installed(change.new, "192.0.2.2", "192.0.2.3").new == installed(text, "192.0.2.2", "192.0.2.3").new
    assert plan_uninstall(change.new).new == text


@pytest.mark.parametrize("text", FORWARDLESS)
@pytest.mark.parametrize("zones", [(".",), ("apps.example.org", "example.net")], ids=["the root", "two zones"])
def test_where_nothing_is_forwarded_the_stanza_is_known_without_its_markers_too(
    text: str, zones: tuple[str, ...]
) -> None:
    """A migration by kubeadm drops every comment."""
    marked = installed(text, zones=zones, version=NEWEST).new
    bare = "".join(line for line in marked.splitlines(keepends=True) if " switchback" not in line)
    assert bare != marked
    assert plan_uninstall(bare).new == text
    assert installed(bare, zones=zones, version=NEWEST).new == marked


def test_an_old_coredns_takes_no_stanza_of_two_forwards() -> None:
    with pytest.raises(CorefileError, match="one forward per server block, and this one would have 2"):
        installed(".:53 {\n    errors\n}\n", zones=("a.test", "b.test"), version=(1, 8, 6))


def test_a_stanza_that_somebody_has_made_unreadable_comes_out_all_the_same() -> None:
    text = installed(ROOT_BLOCK).new.replace("policy sequential", "import policy")
    assert plan_uninstall(text).new == ROOT_BLOCK
    assert installed(text).new == installed(ROOT_BLOCK).new


def test_a_forward_that_comes_later_becomes_the_second_upstream_and_stays() -> None:
    text = installed(".:53 {\n    errors\n}\n").new
    later = text.replace("    errors\n", "    errors\n    forward . 192.0.2.1\n")
    again = installed(later).new
    assert "forward . 10.96.0.53 192.0.2.1 {" in again
    assert plan_uninstall(again).new == ".:53 {\n    errors\n    forward . 192.0.2.1\n}\n"


def test_an_old_coredns_takes_the_stanza_where_it_is_the_only_forward() -> None:
    assert installed(".:53 {\n    errors\n}\n", version=(1, 8, 0)).changed


def test_an_uninstall_that_would_leave_no_upstream_is_refused() -> None:
    text = installed(ROOT_BLOCK).new.replace(f"{END}\n    forward . /etc/resolv.conf", END)
    with pytest.raises(CorefileError, match=r"no forward of this server block serves \., and nothing") as caught:
        plan_uninstall(text)
    assert caught.value.line == 3
    with pytest.raises(CorefileError, match="has no forward"):
        installed(text)


@pytest.mark.parametrize(
    ("left", "zones", "lost"),
    [
        pytest.param("forward corp.test 10.0.0.5", (".",), "serves ., and nothing outside", id="for another zone"),
        pytest.param(
            "forward . 192.0.2.1 {\n except example.org\n }",
            ("example.org",),
            "serves example.org., and no name of example.org.",
            id="except this zone",
        ),
    ],
)
def test_an_uninstall_that_would_leave_other_forwards_alone_is_refused(
    left: str, zones: tuple[str, ...], lost: str
) -> None:
    own = "\n".join(f"    forward {zone} 192.0.2.7" for zone in zones)
    text = installed(f".:53 {{\n    errors\n{own}\n}}\n", zones=zones).new
    changed = text.replace(f"{END}\n{own}\n", f"{END}\n    {left}\n")
    assert changed != text
    with pytest.raises(CorefileError, match=lost):
        plan_uninstall(changed)


def test_an_uninstall_does_not_judge_a_forward_that_it_cannot_read() -> None:
    text = installed(ROOT_BLOCK).new.replace("forward . /etc/resolv.conf\n", "forward . 192.0.2.1 {\n import x\n }\n")
    assert plan_uninstall(text).changed


def test_the_long_name_of_an_imported_file_is_not_repeated_whole() -> None:
    text = f". {{\n forward . 192.0.2.1\n import {'x' * 200_000}\n}}\n"
    change = plan_install(text, addresses=[address("192.0.2.53")])
    assert any("imported files were not read" in note for note in change.notes)
    assert max(map(len, change.notes)) < 1_100
