"""The stanza stands in the block of the root, right before the forward that serves its zone."""

from __future__ import annotations

import pytest

from dnsproxy.corefile.model import CorefileError
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.placing import find_layout, find_root_block, find_site
from dnsproxy.corefile.stanza import Layout

FORWARD = "forward . 192.0.2.53"


def placed_before(text: str, *zones: str) -> tuple[int, list[tuple[str, int]]]:
    """The line of the word that the stanza goes before, and the line of each zone's original forward."""
    corefile = parse_corefile(text)
    site = find_site(corefile, zones or (".",))
    return corefile.tokens[site.index].line, [(zone, one.directive.line if one else 0) for zone, one in site.originals]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param(f".:53 {{\n {FORWARD}\n}}\n", 1, id="the usual key"),
        pytest.param(f". {{\n {FORWARD}\n}}\n", 1, id="no port"),
        pytest.param(f"dns://.:53 {{\n {FORWARD}\n}}\n", 1, id="a scheme"),
        pytest.param(f"example.org\\\n.:53 {{\n {FORWARD}\n}}\n".replace("\\", ","), 1, id="among other keys"),
        pytest.param(f".:53 example.org:53 {{ # note\n {FORWARD}\n}}\n", 1, id="before other keys"),
        pytest.param(
            f"tls://. {{\n}}\nhttps://. {{\n}}\n. {{\n {FORWARD}\n}}\n", 5, id="not those of other transports"
        ),
        pytest.param(f".:5353 {{\n}}\n.:53 {{\n {FORWARD}\n}}\n", 3, id="not that of another port"),
        pytest.param(f".:5353 {{\n {FORWARD}\n}}\n", 1, id="that of another port where it is the only one"),
    ],
)
def test_the_block_of_the_root_is_found_by_what_it_serves(text: str, line: int) -> None:
    assert find_root_block(parse_corefile(text)).line == line


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        pytest.param("", 1, "no server block serves .", id="an empty file"),
        pytest.param("a {\n}\nb {\n}\n", 1, "no server block serves .", id="other zones only"),
        pytest.param("tls://. {\n}\n", 1, "no server block serves . over plain DNS", id="another transport"),
        pytest.param("{$ZONE} {\n}\n", 1, r"'{\$ZONE}' depends on \$ZONE of", id="a zone from the environment"),
        pytest.param("a {\n}\n.:{$DNS_PORT} {\n}\n", 3, r"depends on \$DNS_PORT of", id="a port from the environment"),
        pytest.param(".:{%A%} {$B}:1 {\n}\n", 1, r"depends on \$A of", id="a port of another form"),
        pytest.param("{$A}:{$B} {\n}\n", 1, r"depends on \$A, \$B of", id="two variables"),
        pytest.param("import *.server\n", 1, "into the imported file", id="blocks in files"),
        pytest.param(".:53 {\n}\n.:53 {\n}\n", 3, "several server blocks", id="two on port 53"),
        pytest.param(".:1 {\n}\n\n.:2 {\n}\n", 4, "several server blocks", id="two on other ports"),
        pytest.param("(s) {\n. {\n}\n}\nimport s\n", 2, "comes from a snippet", id="in a snippet"),
    ],
)
def test_without_one_block_of_the_root_there_is_no_place(text: str, line: int, reason: str) -> None:
    with pytest.raises(CorefileError, match=reason) as caught:
        find_site(parse_corefile(text), ["."])
    assert caught.value.line == line
    assert caught.value.remedy


def test_the_first_forward_that_serves_the_zone_is_the_original() -> None:
    text = ". {\n forward corp.example.org 192.0.2.1\n forward . 192.0.2.2\n forward . 192.0.2.3\n}\n"
    assert placed_before(text) == (3, [(".", 3)])
    assert placed_before(text, "corp.example.org") == (2, [("corp.example.org", 2)])
    assert placed_before(text, "example.org") == (3, [("example.org", 3)])


def test_several_zones_stand_together_before_the_first_of_their_forwards() -> None:
    text = ". {\n forward corp.example.org 192.0.2.1\n forward . 192.0.2.2\n}\n"
    assert placed_before(text, ".", "corp.example.org") == (2, [("corp.example.org", 2), (".", 3)])


def test_a_forward_out_of_a_snippet_is_placed_at_its_import() -> None:
    text = "(up) {\n log\n forward . 192.0.2.1\n}\n. {\n errors\n import up\n}\n"
    assert placed_before(text) == (7, [(".", 3)])


def test_an_excepted_zone_goes_to_the_next_forward() -> None:
    text = ". {\n forward . 192.0.2.1 {\n  except example.org\n }\n forward . 192.0.2.2\n}\n"
    assert placed_before(text, "example.org") == (5, [("example.org", 5)])


@pytest.mark.parametrize(
    ("text", "zones", "expected"),
    [
        pytest.param(". {\n log\n}\n", ["."], (3, [(".", 0)]), id="no forward"),
        pytest.param(". {\n}\n", ["a.org"], (2, [("a.org", 0)]), id="an empty block"),
        pytest.param(". {\n forward org 192.0.2.1\n log\n}\n", ["."], (4, [(".", 0)]), id="a zone alone"),
        pytest.param(
            ". {\n log\n forward org 192.0.2.1\n}\n", [".", "org"], (3, [("org", 3), (".", 0)]), id="one of two"
        ),
    ],
)
def test_where_nothing_is_forwarded_it_stands_at_the_end(
    text: str, zones: list[str], expected: tuple[int, list[tuple[str, int]]]
) -> None:
    assert placed_before(text, *zones) == expected


NO_PLACE = [
    pytest.param(". {\n grpc . 192.0.2.1\n}\n", ["."], 1, r"'grpc' \(line 2\) may answer", id="grpc"),
    pytest.param(". {\n fanout . 192.0.2.1\n}\n", ["."], 1, "'fanout'", id="a plugin of others"),
    pytest.param(".\nlog\n", ["."], 1, "has no forward", id="a block without braces"),
    pytest.param(". {\n proxy . 192.0.2.1\n}\n", ["."], 2, "forwards with `proxy`", id="the plugin before forward"),
    pytest.param(". {\n import up\n}\n", ["."], 1, "into the imported file", id="no forward but an import"),
    pytest.param(". {\n forward {$Z} 192.0.2.1\n}\n", ["."], 1, "serves .", id="a zone that only CoreDNS knows"),
    pytest.param(f". {{\n {FORWARD} {{\n  except org\n }}\n}}\n", ["a.org"], 1, "serves a.org", id="excepted"),
    pytest.param(f"a.org {{\n}}\n. {{\n {FORWARD}\n}}\n", ["a.org"], 1, "a.org is served by", id="its own block"),
    pytest.param(
        f". {{\n {FORWARD}\n}}\norg {{\n}}\n", ["a.org"], 4, "served by the server block of 'org'", id="above"
    ),
    pytest.param(
        ". {\n forward a.org 192.0.2.1\n forward b.org 192.0.2.2\n forward . 192.0.2.3\n}\n",
        [".", "a.org"],
        3,
        "would come before `forward b.org`",
        id="it would hide another forward",
    ),
    pytest.param(
        ". {\n forward a.org 192.0.2.1\n forward {$Z} 192.0.2.2\n forward . 192.0.2.3\n}\n",
        [".", "a.org"],
        3,
        "would come before",
        id="it might hide another forward",
    ),
]


@pytest.mark.parametrize(("text", "zones", "line", "reason"), NO_PLACE)
def test_where_no_place_is_right_none_is_taken(text: str, zones: list[str], line: int, reason: str) -> None:
    with pytest.raises(CorefileError, match=reason) as caught:
        find_site(parse_corefile(text), zones)
    assert caught.value.line == line
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("other", "zone"),
    [
        pytest.param("tls://a.org", "a.org", id="another transport"),
        pytest.param("a.org:5353", "a.org", id="another port"),
        pytest.param("b.a.org", "a.org", id="a zone below"),
        pytest.param("xa.org", "a.org", id="a zone with the same end"),
        pytest.param("{$ZONE}", "a.org", id="an unknown zone"),
    ],
)
def test_a_block_that_takes_nothing_away_is_no_hindrance(other: str, zone: str) -> None:
    assert placed_before(f"{other} {{\n}}\n. {{\n {FORWARD}\n}}\n", zone) == (4, [(zone, 4)])


def test_a_longer_key_of_the_root_block_beats_another_block() -> None:
    assert placed_before(f"org {{\n}}\n. a.org {{\n {FORWARD}\n}}\n", "a.org") == (4, [("a.org", 4)])


LAYOUTS = [
    pytest.param(".:53 {\n    log\n    forward . 192.0.2.1\n}", Layout("    ", " " * 8, "\n", "    "), id="four"),
    pytest.param(".:53 {\n\tforward . 192.0.2.1\n}", Layout("\t", "\t\t", "\n", "\t"), id="tabs"),
    pytest.param(".:53 {\r\n  forward . 192.0.2.1\r\n}", Layout("  ", "    ", "\r\n", "  "), id="CRLF"),
    pytest.param(".:53 {\nforward . 192.0.2.1\n}", Layout("", "    ", "\n", ""), id="none"),
    pytest.param(
        "  .:53 {\n    forward . 192.0.2.1\n  }", Layout("    ", "      ", "\n", "    "), id="an indented block"
    ),
    pytest.param(
        ". {\n  a {\n   b\n  }\n  forward . 192.0.2.1\n}", Layout("  ", "   ", "\n", "  "), id="as others nest"
    ),
    pytest.param(". { forward . 192.0.2.1\n}", Layout("", "    ", "\n", ""), id="on the line of the brace"),
]


@pytest.mark.parametrize(("text", "layout"), LAYOUTS)
def test_the_stanza_looks_like_what_is_around_it(text: str, layout: Layout) -> None:
    corefile = parse_corefile(text)
    assert find_layout(corefile, find_site(corefile, ["."])) == layout


LONG = "{$" + "x" * 200_000 + "}"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{LONG} {{\n {FORWARD}\n}}\n", id="a key"),
        pytest.param(f". {{\n forward example.org 192.0.2.1\n forward {LONG} 192.0.2.1\n {FORWARD}\n}}\n", id="a zone"),
        pytest.param(f". {{\n proxy . {LONG}\n}}\n", id="an upstream of the removed plugin"),
    ],
)
def test_a_long_word_is_not_repeated_whole(text: str) -> None:
    with pytest.raises(CorefileError) as error:
        find_site(parse_corefile(text), ["example.org", "."])
    assert len(str(error.value)) < 2_100
