"""What a tool's signature says beside its types: which parser makes a trusted type, and what the person agrees to.

    Rev = Annotated[Revision, trusted(parse_revision), Field(description="Commit, branch, tag or `HEAD~2`.")]
    Repo = Annotated[Repository, trusted(Policy.repository)]

    @tool("Find text", work="The search")
    def find_text(
        git: Git, cancel: CancelToken, *, text: FreeText, repo: Repo, rev: Rev = default("HEAD")
    ) -> Answer: ...

What stands before the `*` is injected by its type, what stands behind it is sent by the caller. A text is either parsed
into a trusted type or declared free: a plain `str` is refused when the server is built, so that no name of a file or
repository can reach an engine unparsed because somebody forgot its parser.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

__all__ = ["Consented", "Default", "FreeText", "FreeTextMark", "Plan", "Trusted", "consented", "default", "trusted"]


class FreeTextMark:
    """Marks, inside `Annotated`, a text that names nothing; see `FreeText`."""


# Content, such as a message or a search text: any text is right, and no policy has to agree to it.
FreeText = Annotated[str, FreeTextMark()]


@dataclass(frozen=True)
class Trusted:
    """Metadata of an argument that is parsed before the call; see `trusted`."""

    parse: Callable[..., Any]


def trusted(parse: Callable[..., Any]) -> Trusted:
    """Have what the caller sends parsed into a trusted type before the call.

    Args:
        parse: a function, or a method of a class of which the server has one instance, such as its policy; it may be
            `async def`. The type of its argument is the one in the published schema; the type that it returns is that
            of the tool's argument. It does not get None, which stands for an argument that is left out.
    """
    return Trusted(parse)


@dataclass(frozen=True)
class Default:
    """The default of a trusted argument; see `default`."""

    value: Any


def default(value: Any) -> Any:
    """Return the default of a trusted argument: what is parsed where the caller leaves it out, as a caller sends it.

    Its type is `Any`, as that of pydantic's `Field`, because it stands where a trusted value would.
    """
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
    only_with_confirm: bool


def consented(
    make_plan: Callable[..., Plan | Awaitable[Plan]],
    *,
    fix: str,
    work: str = "The plan",
    only_with_confirm: bool = False,
) -> Consented:
    """Give a tool the plan to which the person agreed in this call; without their consent it is not called.

    Args:
        make_plan: returns the plan; its arguments are written and published like those of a tool.
        fix: one sentence on what to do if nobody can be asked.
        work: names the planning in the message of a deadline.
        only_with_confirm: whether the plan has a question only where the operator set `--confirm`; without it what is
            read need not be remembered for a question.
    """
    return Consented(make_plan, fix, work, only_with_confirm)
