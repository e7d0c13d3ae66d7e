"""Ends of a task that its verifier must tell apart: the right one, and wrong ones."""

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from beside_shell import Place

from blind.task import Task, tasks_of

Work = TypeVar("Work")
End = Callable[[Place], str]
"""Brings an end about in a new place, and returns the answer."""
_LEAST_SPOILS = 2


@dataclass(frozen=True)
class Ends:
    """What a task's verifier must accept and refuse.

    Attributes:
        solve: brings about the right end.
        spoil: each brings about a wrong one.
    """

    solve: End
    spoil: Sequence[End]


def ends_of(
    finish: Callable[[Work, str, Place], str],
    solution: Work,
    answer: str,
    wrong_answers: Sequence[str],
    wrong_works: Sequence[Work],
) -> Ends:
    """Return the ends of a task that is done by one piece of work and an answer.

    Args:
        finish: does the work in a place, and returns the answer.
    """
    spoils = [partial(finish, solution, wrong) for wrong in wrong_answers]
    spoils += [partial(finish, wrong, answer) for wrong in wrong_works]
    return Ends(partial(finish, solution, answer), spoils)


def lines_of(answer: str) -> list[str]:
    """Return an answer's lines without what only decorates them."""
    lines = (line.strip().strip("`").strip() for line in answer.splitlines())
    return [line for line in lines if line]


def answer_faults(answer: str, expected: str) -> list[str]:
    """Compare an answer with the right one; what sorts first depends on the locale, so the order doesn't count."""
    if sorted(lines_of(answer)) == sorted(lines_of(expected)):
        return []
    return [f"the answer is {answer[:400]!r}, not {expected[:400]!r}"]


def folder_faults(folder: Path, expected: Mapping[str, bytes]) -> list[str]:
    """Compare the files in a folder with what should be there."""
    actual = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    missing = [f"{path} is missing" for path in sorted(expected.keys() - actual.keys())]
    extra = [f"{path} should not be there" for path in sorted(actual.keys() - expected.keys())]
    common = sorted(expected.keys() & actual.keys())
    return [*missing, *extra, *(f"{path} has other contents" for path in common if actual[path] != expected[path])]


def check(group: str) -> Iterable[str]:
    """Try the verifiers of a group; yield what they accept or refuse wrongly."""
    all_ends: Mapping[str, Callable[[], Ends]] = import_module(f"blind.tasks.{group}").ENDS
    for task in tasks_of(group):
        ends = all_ends[task.name]()
        for fault in _verify(task, ends.solve):
            yield f"{task.name}: refuses the right end: {fault}"
        if len(ends.spoil) < _LEAST_SPOILS:
            yield f"{task.name}: knows fewer than {_LEAST_SPOILS} wrong ends"
        for number, spoil in enumerate(ends.spoil):
            if not _verify(task, spoil):
                yield f"{task.name}: accepts wrong end {number}"


def _verify(task: Task, end: End) -> Sequence[str]:
    with tempfile.TemporaryDirectory(prefix="task") as folder:
        place = task.make(Path(folder))
        return task.verify(place, end(place))
