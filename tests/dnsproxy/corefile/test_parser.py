"""Server blocks, snippets and imports, read as CoreDNS reads them."""

from __future__ import annotations

import pytest
from hypothesis import given

from dnsproxy.corefile.model import CorefileError, format_corefile
from dnsproxy.corefile.parser import MAXIMUM_EXPANSIONS, parse_corefile
from tests.dnsproxy.corefile.shapes import SHAPES, corefiles, garbage, stock
from tests.dnsproxy.corefile.verdicts import ACCEPTED, REFUSED, REFUSED_SINCE

# Where and why: the line is the one to look at, not the end of the file.
REASONS = [
    pytest.param(".:53 {\n log\n", 1, "the { of this server block is never closed", id="unclosed block"),
    pytest.param(".:53 {\n errors {\n log\n", 2, "the { of 'errors' is never closed", id="unclosed nested block"),
    pytest.param(".:53 {\n log\n x }\n}\n", 3, "a } closes nothing here", id="brace on a directive's line"),
    pytest.param(".:53 {\n log\na.org:53 {\n}\n", 3, "'a.org:53' is not a plugin", id="block in a block"),
    pytest.param("a, {\n}\n", 1, "a key is missing", id="comma before the brace"),
    pytest.param("a {\n}\nb,\n", 3, "needs another key", id="comma at the end"),
    pytest.param("\n.: {\n}\n", 2, "'.:' is not a key of a server block", id="key without its port"),
    pytest.param("(s) {\n}\n\n(s) {\n}\n", 4, "snippet 's' is defined twice", id="snippet twice"),
    pytest.param("\n(s)\nlog\n", 3, "snippet 's' has no {", id="snippet without a brace"),
    pytest.param("(s) {\n log {\n}\n", 1, "snippet 's' is never closed", id="unclosed snippet"),
    pytest.param(".:53 {\n import\n}\n", 2, "names neither a file", id="import of nothing"),
    pytest.param(".:53 {\n import a b\n}\n", 2, "takes one file", id="import of two"),
    pytest.param(".:53 {\n import */*\n}\n", 2, "takes one wildcard", id="two wildcards"),
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_what_coredns_accepts_is_a_value_that_formats_to_the_same_text(text: str) -> None:
    assert format_corefile(parse_corefile(text)) == text


@pytest.mark.parametrize("text", [*REFUSED, *REFUSED_SINCE])
def test_what_coredns_refuses_is_refused(text: str) -> None:
    with pytest.raises(CorefileError) as caught:
        parse_corefile(text)
    assert 1 <= caught.value.line <= text.count("\n") + 1


@pytest.mark.parametrize(("text", "line", "reason"), REASONS)
def test_a_refusal_names_the_line_and_the_reason(text: str, line: int, reason: str) -> None:
    with pytest.raises(CorefileError) as caught:
        parse_corefile(text)
    assert caught.value.line == line
    assert reason in str(caught.value)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_stock_corefile_formats_to_itself(shape: str) -> None:
    assert format_corefile(parse_corefile(stock(shape))) == stock(shape)


@given(corefiles())
def test_a_generated_corefile_formats_to_itself(text: str) -> None:
    assert format_corefile(parse_corefile(text)) == text


@given(garbage)
def test_garbage_is_a_value_of_the_same_text_or_a_short_refusal(text: str) -> None:
    verdict = verdict_on(text)
    assert verdict == text or 0 < len(verdict) < 200


def test_keys_directives_and_nested_blocks_are_told_apart() -> None:
    text = 'a.org:53, tls://b.org\n{\n  log\n  health {\n    lameduck "5s" # wait\n  } tail\n}\n'
    (block,) = parse_corefile(text).blocks
    assert [(key.text, key.origin.scheme, key.origin.port) for key in block.keys] == [
        ("a.org:53", "dns", 53),
        ("tls://b.org", "tls", 853),
    ]
    log, health = block.directives
    assert (log.name, log.words, log.line) == ("log", (), 3)
    assert [word.text for word in health.words] == ["{", "lameduck", "5s", "}", "tail"]
    assert block.closing is not None


def test_arguments_stand_before_the_nested_block_and_options_inside() -> None:
    (block,) = parse_corefile(". {\n forward . 192.0.2.1 {\n  max_fails 1\n }\n}\n").blocks
    (forward,) = block.directives
    assert [word.text for word in forward.arguments] == [".", "192.0.2.1"]
    assert [word.text for word in forward.options] == ["max_fails", "1"]


def test_a_snippet_stands_in_the_place_of_its_import() -> None:
    text = "(a) {\n log\n import b\n}\n(b) {\n errors\n}\n. {\n whoami\n import a\n import *.x\n}\n"
    corefile = parse_corefile(text)
    (block,) = corefile.blocks
    assert [(entry.name, entry.imported, entry.line) for entry in block.directives] == [
        ("whoami", False, 9),
        ("log", True, 2),
        ("errors", True, 6),
    ]
    assert {entry.index for entry in block.directives[1:]} == {corefile.tokens.index(block_import(corefile.tokens))}
    assert [(found.pattern, found.line) for found in block.imports] == [("*.x", 11)]
    assert [snippet.name for snippet in corefile.snippets] == ["a", "b"]


def block_import(tokens: tuple[object, ...]) -> object:
    return next(token for token in tokens if getattr(token, "text", "") == "import" and getattr(token, "line", 0) == 10)


def test_a_server_block_in_a_snippet_is_known_for_one() -> None:
    (block,) = parse_corefile("(s) {\n. {\n whoami\n}\n}\nimport s\n").blocks
    assert block.imported


def test_imports_of_files_are_left_alone() -> None:
    text = "import a/*.server\n. {\n import b\n forward . 192.0.2.1 {\n  import {$OPTIONS}\n }\n}\n"
    corefile = parse_corefile(text)
    assert [found.pattern for found in corefile.imports] == ["a/*.server"]
    assert [found.pattern for found in corefile.blocks[0].imports] == ["b"]
    assert [found.pattern for found in corefile.blocks[0].directives[0].unread] == ["{$OPTIONS}"]


# A quarter of a mebibyte of each; the limit of a test's time is the judge.
HOSTILE = [
    pytest.param("{", id="braces"),
    pytest.param('"', id="quotes"),
    pytest.param("#\n", id="comments"),
    pytest.param("a\r", id="CRs in words"),
    pytest.param("a,\n", id="keys"),
    pytest.param("a {\n}\n", id="blocks"),
    pytest.param("(a", id="parentheses"),
    pytest.param("import *.x\n", id="imports"),
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_hostile_text_is_read_or_refused_in_few_words(unit: str) -> None:
    text = unit * ((1 << 18) // len(unit))
    verdict = verdict_on(text)
    assert verdict == text or len(verdict) < 200


def verdict_on(text: str) -> str:
    """The text again, or why it is refused."""
    try:
        return format_corefile(parse_corefile(text))
    except CorefileError as error:
        return str(error)


def test_snippets_that_multiply_are_refused() -> None:
    levels = "".join(f"(s{level}) {{\n" + f" import s{level - 1}\n" * 10 + "}\n" for level in range(1, 9))
    with pytest.raises(CorefileError, match="over and over"):
        parse_corefile("(s0) {\n log\n}\n" + levels + ". {\n import s8\n}\n")


def test_as_many_imports_as_coredns_takes_are_taken() -> None:
    text = "(s) {\n}\n. {\n" + "import s\n" * MAXIMUM_EXPANSIONS + "}\n"
    assert parse_corefile(text).blocks
    with pytest.raises(CorefileError, match="over and over"):
        parse_corefile(text.replace("}\n", "}\n", 1) + "a {\n import s\n}\n")
