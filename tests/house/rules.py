"""Rules of the house that are read off the syntax trees.

A trusted type is a class that a policy exports, `policy.py` or a module of a folder `policy`, other than the policy
itself and protocols. Whoever holds one may rely on policy having said yes, so nothing else makes one. Where tools are
functions, the common package parses what callers send before the call, so no tool calls a parser of a policy; it may
ask whether what it found is allowed.
"""

import ast
import functools
import importlib
import re
from collections.abc import Collection, Iterator
from pathlib import Path

__all__ = [
    "find_stale_docstrings",
    "made_elsewhere",
    "never_read",
    "parsed_elsewhere",
    "private_imports",
    "shown_as_windows",
]

_ASKS = ("isinstance", "issubclass", "cast", "TypeVar")
"""Calls that may name a trusted type without making one."""
_STARTS = (
    "Popen",
    "subprocess.run",
    "check_output",
    "check_call",
    "open_process",
    "run_process",
    "create_subprocess_exec",
)
"""Calls that start a process."""


_PARSERS = {"Policy", "PathArguments"}
"""The classes of policies that make trusted types and are none."""


def made_elsewhere(root: Path) -> list[str]:
    """Each place below `root`, outside of every policy, where a trusted type is made or handed on to be made."""
    modules = {path: _tree(path) for path in sorted(root.rglob("*.py"))}
    trusted = {
        name for path, tree in modules.items() if _is_policy(path) for name in _trusted(path.relative_to(root), tree)
    }
    return [
        f"{path.relative_to(root).as_posix()}: {name}"
        for path, tree in modules.items()
        if not _is_policy(path)
        for name in _made(tree, trusted)
    ]


def parsed_elsewhere(root: Path) -> list[str]:
    """Each place in a folder `tools` below `root`, if its tools are functions, where they call a parser themselves."""
    found: list[str] = []
    for folder in sorted(root.rglob("tools")):
        modules = {path: _tree(path) for path in sorted(folder.rglob("*.py"))}
        if any(_declares_functions(tree) for tree in modules.values()):
            checks = _policy_checks(folder.parent)
            for path, tree in modules.items():
                calls = [name for name in _policy_calls(tree) if name.rpartition(".")[2] not in checks]
                found += [f"{path.relative_to(root).as_posix()}: {name}" for name in calls]
    return found


def _policy_checks(member: Path) -> set[str]:
    """The names of a policy's functions and methods that by their annotations make no trusted type."""
    policies = {path: _tree(path) for path in sorted(member.rglob("*.py")) if _is_policy(path)}
    trusted = {
        name.rpartition(".")[2] for path, tree in policies.items() for name in _trusted(path.relative_to(member), tree)
    }
    checks: set[str] = set()
    parsers: set[str] = set()
    for tree in policies.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                made = (
                    {item.id for item in ast.walk(node.returns) if isinstance(item, ast.Name)} if node.returns else None
                )
                (parsers if made is None or made & trusted else checks).add(node.name)
    return checks - parsers


def _declares_functions(tree: ast.Module) -> bool:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and _dotted(decorator.func) == "tool":
                    return True
    return False


def _policy_calls(tree: ast.Module) -> Iterator[str]:
    """The functions and methods of a policy that a module calls, or hands on to another than `trusted`."""
    functions: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and "policy" in str(node.module).split("."):
            functions |= {item.asname or item.name for item in node.names if item.name[0].islower()}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or _dotted(node.func) == "trusted":
            continue
        for item in (node.func, *node.args, *(keyword.value for keyword in node.keywords)):
            name = _dotted(item)
            holder = name.rpartition(".")[0].rpartition(".")[2]
            if name in functions or holder.lstrip("_").lower() == "policy":
                yield name


def _is_policy(path: Path) -> bool:
    return path.name == "policy.py" or path.parent.name == "policy"


def _trusted(path: Path, policy: ast.Module) -> Iterator[str]:
    """The full names of the trusted types of one module of policy, those it passes on by both names."""
    module = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    room = module if path.name == "policy.py" else ".".join(path.parent.parts)
    exported = {word.value for word in ast.walk(_all(policy)) if isinstance(word, ast.Constant)}
    for node in policy.body:
        if isinstance(node, ast.ClassDef) and node.name in exported - _PARSERS:
            if not any(ast.unparse(base) == "Protocol" for base in node.bases):
                yield from {f"{module}.{node.name}", f"{room}.{node.name}"}
        elif isinstance(node, ast.ImportFrom) and not f"{node.module}.".startswith(f"{room}."):
            for item in node.names:
                if (name := item.asname or item.name) in exported:
                    yield from (f"{node.module}.{item.name}", f"{module}.{name}")


def _all(tree: ast.Module) -> ast.AST:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return node.value
    return ast.Tuple([])


def _made(tree: ast.Module, trusted: Collection[str]) -> Iterator[str]:
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names |= {item.asname or item.name: f"{node.module}.{item.name}" for item in node.names}
        elif isinstance(node, ast.Import):
            names |= {item.asname or item.name: item.name for item in node.names}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or _dotted(node.func) in _ASKS:
            continue
        for item in (node.func, *node.args, *(keyword.value for keyword in node.keywords)):
            name = _dotted(item)
            first, dot, rest = name.rpartition(".")
            full = f"{names.get(first, first)}.{rest}" if dot else names.get(name, name)
            if full in trusted:
                yield name


def _dotted(node: ast.expr) -> str:
    """`a.b.c` as it is written; of another expression only what is behind it."""
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


@functools.cache
def _parsed(path: Path, changed: int) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def _tree(path: Path) -> ast.Module:
    return _parsed(path, path.stat().st_mtime_ns)


def never_read(settings: Collection[str], roots: Collection[Path]) -> list[str]:
    """Those of `settings` that nobody below `roots` reads: `settings.name`, and where they are declared `self.name`."""
    read: set[str] = set()
    for path in (path for root in roots for path in root.rglob("*.py")):
        holders = ("self", "cls") if "settings" in (path.stem, path.parent.name) else ()
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                holder = _dotted(node.value).rpartition(".")[2].lstrip("_")
                read |= {node.attr} if holder in ("settings", *holders) else set()
    return sorted(set(settings) - read)


def private_imports(root: Path, package: str) -> list[str]:
    """Names that modules below `root` import from modules of `package` which do not export them."""
    found: list[str] = []
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == package:
                module = importlib.import_module(str(node.module))
                exported = getattr(module, "__all__", None)
                # A module that is imported as a whole is not in any list.
                hidden = [item.name for item in node.names if exported is not None and item.name not in exported]
                found += [f"{path.relative_to(root).as_posix()}: {name}" for name in hidden]
    return found


def shown_as_windows(root: Path) -> list[str]:
    """Where modules below `root` start a process for which Windows may open a console, for lack of `creationflags`."""
    return [
        f"{path.relative_to(root).as_posix()}:{node.lineno}"
        for path in sorted(root.rglob("*.py"))
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Call)
        and _dotted(node.func).endswith(_STARTS)
        and all(keyword.arg != "creationflags" for keyword in node.keywords)
    ]


_SECTION = re.compile(r"^(?:Args|Attributes):\n(?P<entries>(?: {4}.*(?:\n|\Z)|\n)+)", re.MULTILINE)
_ENTRY = re.compile(r"^ {4}(?P<names>\*{0,2}\w+(?:, \w+)*):", re.MULTILINE)


def find_stale_docstrings(root: Path) -> list[str]:
    """Return each name below `Args:` or `Attributes:` in modules below `root` that its function or class has not."""
    stale: list[str] = []
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(_tree(path)):
            if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            names = _documented_names(node)
            if names:
                place = f"{path.relative_to(root).as_posix()}: {node.name}"
                stale += [f"{place}.{name}" for name in names if name not in _declared_names(node)]
    return stale


def _documented_names(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    names: list[str] = []
    for section in _SECTION.finditer(ast.get_docstring(node) or ""):
        for entry in _ENTRY.finditer(section["entries"]):
            names += [name.lstrip("*") for name in entry["names"].split(", ")]
    return names


def _declared_names(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Return the parameters of a function; of a class also its attributes and methods."""
    if not isinstance(node, ast.ClassDef):
        return {item.arg for item in ast.walk(node.args) if isinstance(item, ast.arg)}
    names: set[str] = set()
    for item in ast.walk(node):
        match item:
            case ast.Attribute(attr=name) | ast.arg(arg=name) | ast.FunctionDef(name=name):
                names.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case _:
                pass
    return names
