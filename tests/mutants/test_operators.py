from __future__ import annotations

import ast

import pytest

from tests.mutants.operators import MODULE, mutants_of


def mutated(source: str, operator: str) -> list[str]:
    octets = source.encode()
    return [one.apply(octets).decode() for one in mutants_of(octets) if one.operator == operator]


EXPRESSIONS = [
    ("a < b", "compare", ["(a <= b)"]),
    ("a >= b", "compare", ["(a > b)"]),
    ("a == b", "compare", ["(a != b)"]),
    ("a in b", "compare", ["(a not in b)"]),
    ("a is not None", "compare", ["(a is None)"]),
    ("a and b", "boolop", ["(a or b)"]),
    ("not a", "not", ["(a)"]),
    ("not (a or b)", "not", ["(a or b)"]),
    ("a + b - c", "arithmetic", ["(a + b + c)", "(a - b) - c"]),
    ("a * b", "arithmetic", ["(a // b)"]),
    ("f(0)", "constant", ["f(1)"]),
    ("f(1)", "constant", ["f(0)"]),
    ("f(53)", "constant", ["f(54)"]),
    ("f(True)", "constant", ["f(False)"]),
    ("f('é', b'x')", "string", ["f(\"\", b'x')", "f('é', b\"\")"]),
    ("b if a else c", "condition", ["b if True else c", "b if False else c"]),
    ("[b for b in c if a]", "condition", ["[b for b in c if True]"]),
    ("lambda a=1: a > b", "compare", ["lambda a=1: (a >= b)"]),
]


@pytest.mark.parametrize(("expression", "operator", "expected"), EXPRESSIONS, ids=[row[0] for row in EXPRESSIONS])
def test_an_expression_has_these_mutants(expression: str, operator: str, expected: list[str]) -> None:
    assert sorted(mutated(f"x = {expression}\n", operator)) == sorted(f"x = {one}\n" for one in expected)


STATEMENTS = [
    ("if a: b()", "condition", ["if True: b()", "if False: b()"]),
    ("while a: b()", "condition", ["while False: b()"]),
    ("while True: b()", "condition", []),
    ("return a", "return", ["return None"]),
    ("return a == b", "return", ["return (not (a == b))"]),
    ("return None", "return", []),
    ("return", "return", []),
    ("a.b = c", "statement", ["pass"]),
    ("a[b] = c", "statement", ["pass"]),
    ("a += c", "statement", ["pass"]),
    ("a += c", "arithmetic", ["a -= c"]),
    ("await a()", "statement", ["pass"]),
    ("del a[b]", "statement", ["pass"]),
    ("a = b()", "statement", []),
    ("yield a", "statement", []),
]


@pytest.mark.parametrize(("statement", "operator", "expected"), STATEMENTS)
def test_a_statement_has_these_mutants(statement: str, operator: str, expected: list[str]) -> None:
    head = "async def f(a, b, c):\n    "
    assert sorted(mutated(f"{head}{statement}\n", operator)) == sorted(f"{head}{one}\n" for one in expected)


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring."""\nX: "Final" = y\n"""About it."""',
        'def f(a: "int | None", *, b: Literal["x"]) -> "str":\n    """A docstring."""',
        "def f() -> None:\n    log.info('started', port=53)\n    self._log.warning('1' + str(2 + 3))",
        "log = structlog.get_logger('dnsproxy.tcp')",
        "if TYPE_CHECKING:\n    X = 1",
        "if __name__ == '__main__':\n    main(1)",
        "raise BadName('no name')",
        "f(help='Seconds.', metavar='ADDR')",
        "__all__ = ['a']",
        "Mode = Literal['a', 'b']",
        "T = TypeVar('T')",
        "@dataclass(frozen=True, slots=True)\nclass A(Struct, kw_only=True):\n    pass",
        "x = f'{a + 1:>3} {b!r}' + c",
        "x = ''",
        "x = 1.5",
        "x = None",
    ],
)
def test_these_have_no_mutants(source: str) -> None:
    assert mutants_of(source.encode()) == []


@pytest.mark.parametrize("source", ["x = 'a' + b", "x = b + f'{a}'", "def f(a):\n    a += 'b'"])
def test_texts_are_not_subtracted(source: str) -> None:
    """Any test would notice it, and the share would say nothing."""
    assert mutated(source, "arithmetic") == []


def test_a_mutant_is_named_by_its_function_and_counted_there() -> None:
    source = b"A = 1\nclass B:\n    C = 2\n    def d(self):\n        def e(): f(3, 4)\n        g(5)\n"
    names = [(one.function, one.index, one.line) for one in mutants_of(source) if one.operator == "constant"]
    assert names == [(MODULE, 0, 1), ("B", 0, 3), ("B.d.e", 0, 5), ("B.d.e", 1, 5), ("B.d", 0, 6)]


def test_a_change_of_another_function_renames_nothing() -> None:
    function = b"def f(a):\n    return a + 1 < 2\n"
    alone = {(one.function, one.operator, one.index, one.after) for one in mutants_of(function)}
    later = mutants_of(b"def g():\n    return h(1, 2)\n\n\n" + function)
    assert {(one.function, one.operator, one.index, one.after) for one in later if one.function == "f"} == alone


def test_lines_outside_ascii_and_conditions_of_several_lines_are_replaced_where_they_are() -> None:
    source = 'def f(a):\n    "ä"; x = "ö"; return (\n        a\n        < 2\n    )\n'
    assert mutated(source, "compare") == ['def f(a):\n    "ä"; x = "ö"; return (\n        (a <= 2)\n    )\n']


def test_each_mutant_of_a_real_module_is_python() -> None:
    with open(__file__, "rb") as file:
        source = file.read()
    mutants = mutants_of(source)
    assert len(mutants) > 50
    for mutant in mutants:
        assert ast.dump(ast.parse(mutant.apply(source))) != ast.dump(ast.parse(source)), mutant


def test_what_is_no_python_is_refused() -> None:
    with pytest.raises(SyntaxError):
        mutants_of(b"def f(:\n")
