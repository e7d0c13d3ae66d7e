"""A task for an agent: what it is told, its place, and what must be so at the end."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from beside_shell import Place

World = TypeVar("World")
OWN_GROUPS = ("files", "databases", "git", "github")
GROUPS = (*OWN_GROUPS, "mcpmark_files", "mcpmark_databases")


@dataclass(frozen=True)
class Task:
    """What an agent is asked to do, or to find out.

    Attributes:
        text: what the agent is told, in a user's words.
        make: makes the task's place in an empty folder.
        verify: returns what is wrong, given the place and the agent's answer.
    """

    name: str
    text: str
    make: Callable[[Path], Place]
    verify: Callable[[Place, str], Sequence[str]]


def build_task(
    name: str,
    text: str,
    build: Callable[[], World],
    make: Callable[[Path, World], Place],
    verify: Callable[[Place, str, World], Sequence[str]],
) -> Task:
    """Return the task in a world that is built anew for its place and for its verifier."""
    return Task(name, text, lambda folder: make(folder, build()), lambda place, answer: verify(place, answer, build()))


def tasks_of(group: str) -> Sequence[Task]:
    """Return the tasks of `group`, which is the name of a module in `tasks/`."""
    return import_module(f"blind.tasks.{group}").TASKS


def shell_hint_of(group: str) -> str:
    """Return what an agent with a shell is told beside each task of `group`, if there is anything."""
    module = import_module(f"blind.tasks.{group}")
    return module.shell_hint() if hasattr(module, "shell_hint") else ""


def read_texts(path: Path) -> Mapping[str, str]:
    """Return by name what the user says in each task; line breaks don't count."""
    return {name: " ".join(text.split()) for name, text in tomllib.loads(path.read_text()).items()}
