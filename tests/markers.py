"""Which tests start processes, databases or browsers: read off their code, so that nobody has to keep a list.

A test is marked if it, a fixture it uses, or a function of ours that one of them calls has to do with the thing.
"""

import asyncio
import sys
import types
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

__all__ = ["COLLECTED", "anyio_backend", "mark", "named"]

COLLECTED = pytest.StashKey[list[str]]()
"""Names of the tests that pytest found, whichever it runs."""

TESTS = Path(__file__).parent
SIGNS = {
    "process": {
        "Popen", "StdioWire", "create_subprocess_exec", "multiprocessing", "open_process", "run_process",
        "stdio_client", "subprocess",
    },
    "browser": {"Chromium", "chromium", "playwright"},
}  # fmt: skip
"""Names in code that mean it."""


def mark(items: list[pytest.Item]) -> None:
    """Give each of `items` the markers `process`, `postgres`, `browser` and `house` that it deserves."""
    for item in items:
        room = _room_of(item.path)
        if room in ("house", "mutants", "documents"):
            item.add_marker("house")
        if room == "postgres" or "postgres" in getattr(item, "fixturenames", ()):
            item.add_marker("postgres")
        found = _names_of(tuple(_work(item)))
        for marker, signs in SIGNS.items():
            if found & signs or (marker == "process" and room == "e2e"):
                item.add_marker(marker)


@cache
def _room_of(path: Path) -> str:
    """Return the folder of `tests` that a module lies in."""
    return path.relative_to(TESTS).parts[0]


@cache
def _names_of(work: tuple[Callable[..., Any], ...]) -> frozenset[str]:
    """Return all names in the code of a test and of its fixtures, which its other cases share."""
    return frozenset[str]().union(*map(named, work))


def _work(item: pytest.Item) -> Iterator[Callable[..., Any]]:
    if isinstance(item, pytest.Function):
        yield item.function
        for definitions in item._fixtureinfo.name2fixturedefs.values():
            yield from (definition.func for definition in definitions)


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    """What runs a test: on Windows psycopg needs another loop than asyncio's own, and that one starts no processes."""
    item = request.node
    parameters = (
        item.callspec.params.values() if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
    )
    # A test of several servers starts processes for the others.
    starts = item.get_closest_marker("process") and "postgres" not in parameters
    if sys.platform != "win32" or "postgres" not in item.nodeid or starts:
        return "asyncio"
    return "asyncio", {"loop_factory": asyncio.SelectorEventLoop}


@cache
def named(work: Callable[..., Any]) -> frozenset[str]:
    """All names in the code of `work` and of what it calls, as far as these are tests or their tools."""
    seen: set[Any] = set()
    names: set[str] = set()
    todo: list[Any] = [work]
    while todo:
        found = todo.pop()
        found = getattr(found, "__wrapped__", found)
        if isinstance(found, type):
            todo += [item for item in vars(found).values() if isinstance(item, types.FunctionType)]
            continue
        code = getattr(found, "__code__", None)
        if code is None or code in seen or not _is_ours(code.co_filename):
            continue
        seen.add(code)
        names |= _names(code)
        todo += _called(found)
    return frozenset(names)


@cache
def _called(function: types.FunctionType) -> list[types.FunctionType | type]:
    """Return the functions and classes of its module that a function names."""
    reached = function.__globals__
    called = (reached.get(name) for name in _names(function.__code__))
    return [thing for thing in called if isinstance(thing, types.FunctionType | type)]


@cache
def _is_ours(file: str) -> bool:
    """Whether `file` holds tests; those of the contract are part of the common package."""
    return file.startswith(str(TESTS)) or Path(file).parts[-2:] == ("testing", "contract.py")


@cache
def _names(code: types.CodeType) -> frozenset[str]:
    """Return the names in some code, and in the functions that are defined in it."""
    inner = (_names(constant) for constant in code.co_consts if isinstance(constant, types.CodeType))
    return frozenset(code.co_names).union(*inner)
