"""Small mistakes that a programmer could make: each a replacement of one expression or statement of a module's text."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

__all__ = ["Mutation", "mutations"]

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
_LOGGERS = ("_log", "logger", "log")


@dataclass(frozen=True)
class Mutation:
    """One replacement.

    Attributes:
        place: the function or class that holds it, such as `Hub.close`; empty for the module itself.
        line: its first line, from 1.
        span: offsets of the bytes to replace.
        before: what stands there, on one line; of a list only the entry that is left out.
        after: what replaces it.
        shown: the same for people, empty where an entry is left out.
        turn: which of several that read alike in one place.
    """

    place: str
    line: int
    span: tuple[int, int]
    before: str
    after: str
    shown: str
    turn: int = 1

    def __str__(self) -> str:
        return f"`{self.before}` → `{self.shown or 'nothing'}`" + (f" ({self.turn})" if self.turn > 1 else "")

    def apply(self, source: bytes) -> bytes:
        start, end = self.span
        return source[:start] + self.after.encode() + source[end:]


def mutations(source: bytes) -> list[Mutation]:
    """Every mutation of a module, in the order of its text. None of them changes a message, a log line or a type."""
    tree = ast.parse(source)
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found: dict[tuple[tuple[int, int], str], Mutation] = {}
    for place, node, replaced, left_out in _Finder().visit(tree, ""):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        span = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        after = replaced if isinstance(replaced, str) else ast.unparse(replaced)
        if isinstance(node, ast.expr):
            # The brackets keep a replacement in one piece, whatever stands around it.
            after = f"({after})"
        shown = (ast.unparse(node), after) if left_out is None else (ast.unparse(left_out), "")
        found[span, after] = Mutation(place, node.lineno, span, shown[0], after, shown[1])
    turns = Counter[tuple[str, str]]()
    ordered: list[Mutation] = []
    for mutation in sorted(found.values(), key=lambda mutation: (mutation.span, mutation.after)):
        alike = mutation.place, str(mutation)
        turns[alike] += 1
        ordered.append(replace(mutation, turn=turns[alike]))
    return ordered


_Found = tuple[str, ast.expr | ast.stmt | ast.pattern, "ast.AST | str", "ast.AST | None"]


class _Finder:
    def visit(self, node: ast.AST, place: str) -> Iterator[_Found]:
        match node:
            case ast.ClassDef():
                if any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases):
                    return
                place = f"{place}.{node.name}".lstrip(".")
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                place = f"{place}.{node.name}".lstrip(".")
            case ast.JoinedStr():  # words; and Python 3.11 does not know where in the text they stand
                return
            case ast.Expr(value=ast.Constant()) | ast.Import() | ast.ImportFrom() | ast.Raise(exc=None):
                return
            case ast.Expr(value=call) if _is_log(call):
                return
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                return
            case ast.Assign(targets=[ast.Name(id=name)]) if name in ("__all__", "__slots__"):
                return
            case ast.Assign(value=ast.Constant(value=int() | float())) if not place:  # how much, not whether
                return
            case ast.Assign(value=ast.Subscript()) if not place:  # a type
                return
            case _:
                pass
        yield from ((place, node, replaced, None) for node, replaced in self._of(node))
        yield from ((place, node, replaced, left_out) for node, replaced, left_out in self._without(node))
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params", "exc", "cause", "ctx"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self.visit(child, place)

    def _of(self, node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt | ast.pattern, ast.AST | str]]:
        match node:
            case ast.Compare(ops=[operator]) if type(operator) in _COMPARISONS:
                yield node, ast.Compare(node.left, [_COMPARISONS[type(operator)]()], node.comparators)
            case ast.Compare():
                for index in range(len(node.ops)):
                    left = node.left if index else node.comparators[0]
                    ops = [op for at, op in enumerate(node.ops) if at != index]
                    others = [side for at, side in enumerate(node.comparators) if at != index]
                    yield node, ast.Compare(left, ops, others)
            case ast.BoolOp():
                for index in range(len(node.values)):
                    rest = [value for at, value in enumerate(node.values) if at != index]
                    yield node, rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
            case ast.UnaryOp(op=ast.Not()):
                yield node, node.operand
            case ast.BinOp() if type(node.op) in _OPERATORS and not _is_words(node):
                yield node, ast.BinOp(node.left, _OPERATORS[type(node.op)](), node.right)
            case ast.Constant(value=bool()):
                yield node, ast.Constant(not node.value)
            case ast.Constant(value=int()):
                yield node, ast.Constant(node.value + 1)
            case ast.Constant(value=float()):
                yield node, ast.Constant(node.value * 10 or 1.0)
            case ast.MatchOr():
                for index in range(len(node.patterns)):
                    rest = [pattern for at, pattern in enumerate(node.patterns) if at != index]
                    yield node, rest[0] if len(rest) == 1 else ast.MatchOr(rest)
            case ast.If() | ast.IfExp():
                yield node.test, "False"
                yield node.test, "True"
            case ast.While() if not isinstance(node.test, ast.Constant):
                yield node.test, "False"
            case ast.comprehension():
                for test in node.ifs:
                    yield test, "True"
            case ast.Return() if node.value is not None and not isinstance(node.value, ast.Constant):
                yield node, "return None"
            case ast.Raise() | ast.Delete() | ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign():
                yield node, "pass"
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
                yield node, "pass"
            case ast.Break():
                yield node, "continue"
            case ast.Continue():
                yield node, "break"
            case _:
                pass

    def _without(self, node: ast.AST) -> Iterator[tuple[ast.expr, ast.AST, ast.AST | None]]:
        """`node` with one of its entries left out, and that entry."""
        match node:
            case ast.Set() | ast.List() | ast.Tuple() if len(node.elts) > 1 and all(map(_is_constant, node.elts)):
                for index in range(len(node.elts)):
                    yield (
                        node,
                        type(node)(elts=[item for at, item in enumerate(node.elts) if at != index]),
                        node.elts[index],
                    )
            case ast.Dict() if len(node.keys) > 1 and all(key is not None and _is_constant(key) for key in node.keys):
                for index in range(len(node.keys)):
                    rest = [at for at in range(len(node.keys)) if at != index]
                    yield (
                        node,
                        ast.Dict([node.keys[at] for at in rest], [node.values[at] for at in rest]),
                        node.keys[index],
                    )
            case _:
                pass


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant | ast.Attribute | ast.Name)


def _is_words(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(isinstance(side, ast.JoinedStr) or isinstance(getattr(side, "value", None), str) for side in sides)


def _is_log(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name))):
            return name in _LOGGERS
        case _:
            return False
