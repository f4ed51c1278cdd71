"""The mutants of one source text: each is one small fault at one place.

The law: the same source has the same mutants, and a mutant keeps its name (function, operator, index) while its
function is unchanged. Annotations have none, nor have docstrings, log lines, messages of exceptions and help.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeGuard

MODULE: Final = "<module>"
"""The function of a statement outside all functions and classes."""

_COMPARE: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_LOGGERS: Final = frozenset({"log", "_log", "logger", "_logger"})
_TEXTS: Final = frozenset({"help", "short_help", "epilog", "metavar", "description"})
"""Keywords whose values only people read."""
_DECLARATIONS: Final = frozenset({"Literal", "TypeVar", "NewType", "ParamSpec", "get_logger", "getLogger"})

_Found = tuple[str, ast.expr | ast.stmt, str]
"""Operator, the node that is replaced, and its replacement."""


@dataclass(frozen=True)
class Mutant:
    function: str
    """The qualified name inside the module, or MODULE."""
    operator: str
    index: int
    """Counts the mutants of this operator in this function, in the order of the source."""
    line: int
    start: int
    """The first byte of the UTF-8 source that is replaced; `end` is the byte after the last one."""
    end: int
    after: str

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.after.encode() + source[self.end :]


def mutants_of(source: bytes) -> list[Mutant]:
    """All mutants, in the order of the source. Raises SyntaxError."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    counts: Counter[tuple[str, str]] = Counter()
    mutants = []
    for function, (operator, node, after) in _walk(ast.parse(source), ""):
        key = function or MODULE, operator
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        mutants.append(Mutant(*key, counts[key], node.lineno, start, end, after))
        counts[key] += 1
    return mutants


def _walk(node: ast.AST, function: str) -> Iterator[tuple[str, _Found]]:
    """`function` is the qualified name around the node; empty outside functions and classes."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        function = f"{function}.{node.name}" if function else node.name
    elif function and _is_removable(node):
        yield function, ("statement", node, "pass")
    yield from ((function, found) for found in (*_in_expression(node), *_in_statement(node)))
    for child in _children(node):
        yield from _walk(child, function)


def _is_removable(node: ast.AST) -> TypeGuard[ast.stmt]:
    """Whether the program still has all its names without this statement."""
    if isinstance(node, ast.Expr):
        called = node.value.value if isinstance(node.value, ast.Await) else node.value
        return isinstance(called, ast.Call) and not _is_log_line(called)
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
    return isinstance(node, ast.AugAssign | ast.Delete)


def _in_expression(node: ast.AST) -> Iterator[_Found]:
    match node:
        case ast.Compare(ops=[only]) if type(only) in _COMPARE:
            yield "compare", node, _changed(node, ops=[_COMPARE[type(only)]()])
        case ast.BoolOp(op=op):
            yield "boolop", node, _changed(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not", node, f"({ast.unparse(operand)})"
        case ast.BinOp(op=op) if type(op) in _ARITHMETIC and not (_is_text(node.left) or _is_text(node.right)):
            yield "arithmetic", node, _changed(node, op=_ARITHMETIC[type(op)]())
        case ast.Constant(value=bool(value)):
            yield "constant", node, str(not value)
        case ast.Constant(value=int(value)):
            yield "constant", node, "0" if value == 1 else str(value + 1)
        case ast.Constant(value=str(text)) if text:
            yield "string", node, '""'
        case ast.Constant(value=bytes(octets)) if octets:
            yield "string", node, 'b""'
        case ast.IfExp(test=test):
            yield from (("condition", test, forced) for forced in ("True", "False"))


def _in_statement(node: ast.AST) -> Iterator[_Found]:
    match node:
        case ast.If(test=test) if not _is_never_run(node):
            yield from (("condition", test, forced) for forced in ("True", "False"))
        case ast.While(test=test) if not isinstance(test, ast.Constant):
            yield "condition", test, "False"
        case ast.comprehension(ifs=tests):
            yield from (("condition", test, "True") for test in tests)
        case ast.match_case(guard=ast.expr() as guard):
            yield from (("condition", guard, forced) for forced in ("True", "False"))
        case ast.AugAssign(op=op) if type(op) in _ARITHMETIC and not _is_text(node.value):
            yield "arithmetic", node, ast.unparse(_copy(node, op=_ARITHMETIC[type(op)]()))
        case ast.Return(value=ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()) as value):
            yield "return", value, f"(not ({ast.unparse(value)}))"
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield "return", value, "None"


def _changed(node: ast.expr, **changes: object) -> str:
    return f"({ast.unparse(_copy(node, **changes))})"


def _copy(node: ast.expr | ast.stmt, **changes: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in changes.items():
        setattr(changed, name, value)
    return changed


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """The parts that may hold mutants."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from (*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults), *node.body)
        case ast.Lambda():
            yield node.body
        case ast.ClassDef():
            yield from node.body
        case ast.AnnAssign(value=value):
            yield from [value] if value else []
        case ast.If() if _is_never_run(node):
            yield from node.orelse
        case ast.Raise(exc=ast.Call() as error):
            # An f-string has no mutants: before Python 3.12 its parts have no places.
            yield from (part for part in (*error.args, *error.keywords) if not _is_text(part))
        case ast.Call() if not _is_log_line(node) and _last_name(node.func) not in _DECLARATIONS:
            keywords = [keyword for keyword in node.keywords if keyword.arg not in _TEXTS]
            yield from (node.func, *node.args, *keywords)
        case ast.Expr(value=ast.Constant()) | ast.JoinedStr() | ast.Call() | ast.Raise():
            pass
        case ast.Assign(targets=[ast.Name(id="__all__" | "__slots__" | "__match_args__")]):
            pass
        case ast.Subscript() if _last_name(node.value) in _DECLARATIONS:
            pass
        case ast.Assert(test=test):
            yield test
        case _:
            yield from ast.iter_child_nodes(node)


def _is_never_run(node: ast.If) -> bool:
    """Whether this is for the type checker, or for a module that runs as a program."""
    return _last_name(node.test) == "TYPE_CHECKING" or ast.unparse(node.test) == "__name__ == '__main__'"


def _is_log_line(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and _last_name(call.func.value) in _LOGGERS


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _last_name(node: ast.AST) -> str:
    """`c` of `a.b.c` and of `a().c`; empty for other expressions."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
