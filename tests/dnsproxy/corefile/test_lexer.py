"""The words of a Corefile, cut as CoreDNS cuts them, with nothing lost."""

from __future__ import annotations

import pytest
from hypothesis import example, given

from dnsproxy.corefile.lexer import comments, join, lex
from tests.dnsproxy.corefile.shapes import SHAPES, garbage, stock

# What the file has, and the words that CoreDNS makes of it.
WORDS = [
    pytest.param("", [], id="nothing"),
    pytest.param(" \t\r\n", [], id="blanks alone"),
    pytest.param(". {\n}", [".", "{", "}"], id="a block"),
    pytest.param("{}", ["{}"], id="braces without a blank are one word"),
    pytest.param("a\rb", ["ab"], id="CR is dropped inside a word"),
    pytest.param("a\r\nb\r", ["a", "b"], id="CR is dropped at the end of a word"),
    pytest.param("# a { b\nc", ["c"], id="a comment"),
    pytest.param("# a\rb\nc", ["c"], id="CR does not end a comment"),
    pytest.param("a#b c", ["a", "c"], id="a comment inside a word ends at the next blank"),
    pytest.param('a#"b c', ["a", "c"], id="a quote inside a comment opens nothing"),
    pytest.param('"a b"', ["a b"], id="a quoted word"),
    pytest.param('"a#b"', ["a#b"], id="no comment inside quotes"),
    pytest.param('"a\nb" c', ["a\nb", "c"], id="a quoted word over two lines"),
    pytest.param('"a\r\nb"', ["a\r\nb"], id="CR is kept inside quotes"),
    pytest.param('"a"b', ["a", "b"], id="a quote ends a word without a blank"),
    pytest.param('a"b c"', ['a"b', 'c"'], id="a quote inside a word is a character"),
    pytest.param(r'"a\"b"', ['a"b'], id="an escaped quote"),
    pytest.param(r'"a\b\\"', [r"a\b\\"], id="other backslashes stay"),
    pytest.param('""', [""], id="an empty quoted word"),
    pytest.param('"', [], id="a quote that opens at the end"),
    pytest.param('a "b c', ["a", "b c"], id="a quote that never closes"),
    pytest.param('"{"', ["{"], id="a quoted brace is a brace"),
    pytest.param("\ufeffa", ["a"], id="a byte order mark at the start"),
    pytest.param("a \ufeffb", ["a", "\ufeffb"], id="a byte order mark elsewhere"),
    pytest.param("a\u2003b\x85c\u3000d", ["a", "b", "c", "d"], id="Unicode blanks"),
    pytest.param("a\x1cb\u200bc", ["a\x1cb\u200bc"], id="what Go does not take for a blank"),
]


@pytest.mark.parametrize(("text", "words"), WORDS)
def test_words_are_those_of_coredns(text: str, words: list[str]) -> None:
    tokens, tail = lex(text)
    assert [token.text for token in tokens] == words
    assert join(tokens, tail) == text


@given(garbage)
@example("\ufeff")
@example('"\\')
def test_no_character_of_any_text_is_lost(text: str) -> None:
    assert join(*lex(text)) == text


@pytest.mark.parametrize("shape", SHAPES)
def test_no_character_of_a_stock_corefile_is_lost(shape: str) -> None:
    assert join(*lex(stock(shape))) == stock(shape)


def test_lines_are_counted_through_comments_and_quotes() -> None:
    tokens, _ = lex('a # b\n\n"c\nd" e\nf')
    assert [(token.line, token.last_line) for token in tokens] == [(1, 1), (3, 4), (4, 4), (5, 5)]


def test_comments_know_their_place_and_line() -> None:
    gap = " \n  # one\r\n# two"
    assert [(comment.text, comment.line) for comment in comments(gap, line=7)] == [("# one", 8), ("# two", 9)]
    first, second = comments(gap, line=7)
    assert gap[first.start : first.end] == "# one\r\n"
    assert gap[second.start : second.end] == "# two"
