"""The syntax of Traefik's rules. Traefik 3.6.12 and 3.7.13 accept and refuse the same."""

from __future__ import annotations

import pytest

from dnsproxy.sources.described.traefik_syntax import BadRule, Matcher, Operator, parse_steps

AND, OR = Operator.AND, Operator.OR


def call(name: str, *arguments: str, negated: bool = False) -> Matcher:
    return Matcher(name, arguments, negated)


A, B, C = call("A"), call("B"), call("C")
NOT_A, NOT_B, NOT_C = (call(name, negated=True) for name in "ABC")


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        pytest.param("A()", [A], id="one call"),
        pytest.param("A()&&B()&&C()", [A, B, AND, C, AND], id="from the left"),
        pytest.param("A() || B() && C()", [A, B, C, AND, OR], id="and first"),
        pytest.param("A() && B() || C()", [A, B, AND, C, OR], id="and first, on the left"),
        pytest.param("(A() || B()) && C()", [A, B, OR, C, AND], id="parentheses"),
        pytest.param("!A() && B()", [NOT_A, B, AND], id="not binds first"),
        pytest.param("!(A() && B()) || C()", [NOT_A, NOT_B, OR, C, OR], id="De Morgan"),
        pytest.param("!(A() || B() && C())", [NOT_A, NOT_B, NOT_C, OR, AND], id="De Morgan keeps precedence"),
        pytest.param("!(A() && !(B() || C()))", [NOT_A, B, C, OR, OR], id="De Morgan twice"),
        pytest.param("!(!A()) && !!B()", [A, B, AND], id="double negation"),
    ],
)
def test_steps_are_in_postfix_order(text: str, steps: list[Matcher | Operator]) -> None:
    assert parse_steps(text) == steps


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        pytest.param("A(`a`)", ["a"], id="backquotes"),
        pytest.param('A("a")', ["a"], id="double quotes"),
        pytest.param('A(`a`, "b" ,`c`)', ["a", "b", "c"], id="several"),
        pytest.param("A(`a`,)", ["a"], id="a final comma"),
        pytest.param("A(`a`...)", ["a"], id="spread"),
        pytest.param("A(`a`..., )", ["a"], id="spread and a final comma"),
        pytest.param(r"A(`\x61\`)", [r"\x61" + "\\"], id="no escapes in backquotes"),
        pytest.param("A(`a\r\nb`)", ["a\nb"], id="carriage returns in backquotes are dropped"),
        pytest.param(r'A("\x61\141\u0061\U00000061")', ["aaaa"], id="numbers"),
        pytest.param(r'A("\a\b\f\n\r\t\v\\\"")', ['\a\b\f\n\r\t\v\\"'], id="letters"),
        pytest.param(r'A("\\x61")', [r"\x61"], id="an escaped backslash"),
        pytest.param('A("`")', ["`"], id="a backquote in double quotes"),
        pytest.param("A(``)", [""], id="empty"),
        pytest.param("A(`//`)", ["//"], id="no comment in a string"),
    ],
)
def test_arguments_are_strings_of_go(text: str, arguments: list[str]) -> None:
    assert parse_steps(text) == [call("A", *arguments)]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("A() &&\nB()", id="after and"),
        pytest.param("A() && !\nB()", id="after not"),
        pytest.param("A() && (\nB())", id="after a parenthesis"),
        pytest.param("A() &&\n\t// the second\n\tB()", id="a comment on its own line"),
        pytest.param("/* one */ A(/* none */) /* and */ && B() // all", id="comments"),
        pytest.param("A() && B()\n", id="the last newline"),
        pytest.param("\n\nA() && B() \n\n// end\n", id="blank lines around"),
        pytest.param("\ufeffA() && B()", id="a byte order mark"),
        pytest.param("A(\n) && B(\n)", id="in a call"),
        pytest.param("A () && B\t()", id="a blank before the arguments"),
    ],
)
def test_blanks_comments_and_newlines_are_allowed_where_go_allows_them(text: str) -> None:
    assert [step for step in parse_steps(text) if step is not AND] in ([A, B], [A, NOT_B])


@pytest.mark.parametrize(
    ("text", "position"),
    [
        pytest.param("", 1, id="empty"),
        pytest.param(" \n", 3, id="blank"),
        pytest.param("A", 2, id="a name alone"),
        pytest.param("A(", 3, id="an open call"),
        pytest.param("A(`a`", 6, id="an open call with an argument"),
        pytest.param("A(`a`, , `b`)", 8, id="a missing argument"),
        pytest.param("A(,)", 3, id="only a comma"),
        pytest.param("A(`a` `b`)", 7, id="a missing comma"),
        pytest.param("A(`a`..., `b`)", 11, id="an argument after a spread"),
        pytest.param("A(...)", 3, id="a spread of nothing"),
        pytest.param("A(1)", 3, id="a number"),
        pytest.param("A('a')", 3, id="single quotes"),
        pytest.param("A(B())", 3, id="a call as argument"),
        pytest.param("A((`a`))", 3, id="an argument in parentheses"),
        pytest.param('A("a" + "b")', 7, id="a sum"),
        pytest.param("A(`a)", 3, id="an open raw string"),
        pytest.param('A("a)', 3, id="an open string"),
        pytest.param('A("a\n")', 3, id="a newline in a string"),
        pytest.param('A("\\")', 3, id="an escaped end"),
        pytest.param(r'A("\d")', 3, id="an unknown escape"),
        pytest.param(r"""A("\'")""", 3, id="an escaped single quote"),
        pytest.param(r'A("\x6")', 3, id="a short number"),
        pytest.param(r'A("\400")', 3, id="a large octal number"),
        pytest.param(r'A("\udfff")', 3, id="a surrogate"),
        pytest.param(r'A("\U00110000")', 3, id="a number over Unicode"),
        pytest.param(r'A("\Uffffffff")', 3, id="the largest number"),
        pytest.param("A() &&", 7, id="no right side"),
        pytest.param("&& A()", 1, id="no left side"),
        pytest.param("A() B()", 5, id="no operator"),
        pytest.param("A() & B()", 5, id="one ampersand"),
        pytest.param("A() &&& B()", 7, id="three ampersands"),
        pytest.param("A() and B()", 5, id="a word as operator"),
        pytest.param("A() == B()", 5, id="a comparison"),
        pytest.param("A() ! B()", 5, id="not as operator"),
        pytest.param("A()()", 4, id="a call of a call"),
        pytest.param("(A)()", 3, id="a name in parentheses"),
        pytest.param("a.A()", 2, id="a selector"),
        pytest.param("`a`", 1, id="a string alone"),
        pytest.param("()", 2, id="empty parentheses"),
        pytest.param("(A()", 5, id="an open parenthesis"),
        pytest.param("A())", 4, id="a parenthesis too many"),
        pytest.param("A()\n&& B()", 4, id="a newline before an operator"),
        pytest.param("A() // first\n&& B()", 4, id="a comment before an operator"),
        pytest.param("A() /* \n */ && B()", 4, id="a newline in a comment before an operator"),
        pytest.param("A\n()", 2, id="a newline before the arguments"),
        pytest.param("A(`a`\n)", 6, id="a newline after the last argument"),
        pytest.param("(A()\n)", 5, id="a newline before a parenthesis"),
        pytest.param("A();", 4, id="a semicolon"),
        pytest.param("A() /*", 5, id="an open comment"),
        pytest.param("A() / B()", 5, id="a slash"),
        pytest.param("A(`\0`)", 4, id="a zero in a string"),
        pytest.param("A(`\ufeff`)", 4, id="a byte order mark in a string"),
        pytest.param("A()\xa0&& B()", 4, id="a no-break space"),
        pytest.param("A()\x1b[31m", 4, id="a terminal's escape"),
    ],
)
def test_a_rule_that_traefik_refuses_has_a_fault_with_its_position(text: str, position: int) -> None:
    with pytest.raises(BadRule, match=rf"^character {position} of the rule: ") as caught:
        parse_steps(text)
    assert str(caught.value).isprintable()
