"""What a tool's signature says beside its types: which parser makes a trusted type, and what the person agrees to.

    Rev = Annotated[Revision, trusted(parse_revision), Field(description="Commit, branch, tag or `HEAD~2`.")]
    Repo = Annotated[Repository, trusted(Policy.repository)]

    @tool("Read file", work="Reading")
    def read_file(git: Git, cancel: CancelToken, *, repo: Repo, rev: Rev = default("HEAD")) -> Answer: ...

What stands before the `*` is injected by its type, what stands behind it is sent by the caller.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["Consented", "Default", "Plan", "Trusted", "consented", "default", "trusted"]


@dataclass(frozen=True)
class Trusted:
    """Metadata of an argument that is parsed before the call; see `trusted`."""

    parse: Callable[..., Any]
    empty_is_none: bool


def trusted(parse: Callable[..., Any], *, empty_is_none: bool = False) -> Trusted:
    """Have what the caller sends parsed into a trusted type before the call.

    Args:
        parse: a function, or a method of a class of which the server has one instance, such as its policy. The type of
            its argument is the one in the published schema; the type that it returns is that of the tool's argument.
        empty_is_none: whether an empty text stands for an argument that is left out.
    """
    return Trusted(parse, empty_is_none)


@dataclass(frozen=True)
class Default:
    """The default of a trusted argument; see `default`."""

    value: Any


def default(value: Any) -> Any:
    """Return the default of a trusted argument: what is parsed where the caller leaves it out, as a caller sends it."""
    return Default(value)


class Plan(Protocol):
    """What a tool is going to do, found out before the person is asked about it."""

    @property
    def question(self) -> str | None:
        """What the person is asked; None if nobody has to be."""
        ...


@dataclass(frozen=True)
class Consented:
    """Metadata of an argument that is a plan to which the person agreed; see `consented`."""

    make_plan: Callable[..., Plan | Awaitable[Plan]]
    fix: str
    work: str


def consented(make_plan: Callable[..., Plan | Awaitable[Plan]], *, fix: str, work: str = "The plan") -> Consented:
    """Give a tool the plan to which the person agreed in this call; without their consent it is not called.

    Args:
        make_plan: returns the plan; its arguments are written and published like those of a tool.
        fix: one sentence on what to do if nobody can be asked.
        work: names the planning in the message of a deadline.
    """
    return Consented(make_plan, fix, work)
