"""What the user is asked, with `--confirm`, where a call's arguments do not show its effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import TooLarge, quote
from mcp_batteries.server.calling.confirmation import Question
from mcp_batteries.server.calling.confirmation_text import escape_invisible
from mcp_batteries.server.declaration.trusted import trusted
from mcp_fs.engine.listing.expand_glob import expand_glob
from mcp_fs.policy import WritablePath
from mcp_fs.policy.path_arguments import PathArguments, PathGlob
from mcp_fs.settings import Settings

__all__ = ["OPERATOR_FIX", "PlannedDeletion", "ask_about_targets", "plan_deletion"]

OPERATOR_FIX = "The operator can start the server without `--confirm`."
# Each has an open folder, so that all can be looked at before the first goes.
_MAX_DELETED = 200


@dataclass(frozen=True)
class PlannedDeletion:
    """What is deleted: what the user was shown, also if a file came while they thought.

    Attributes:
        notes: what globs leave out.
        question: what they are asked; None if the arguments name all of it.
    """

    paths: Sequence[WritablePath]
    notes: Sequence[str]
    has_globs: bool
    question: str | None


def plan_deletion(
    settings: Settings,
    cancel: CancelToken,
    *,
    paths: Annotated[
        list[WritablePath | PathGlob[WritablePath]], trusted(PathArguments.deletions), Field(min_length=1)
    ],
) -> PlannedDeletion:
    """Find what the paths and globs of a deletion mean.

    Raises:
        Problem: nothing fits, or too much does.
    """
    found_paths: list[WritablePath] = []
    notes: list[str] = []
    has_globs = False
    for path in paths:
        if isinstance(path, PathGlob):
            has_globs = True
            expanded, more_notes = expand_glob(path, _MAX_DELETED, cancel)
            found_paths += expanded
            notes += more_notes
        else:
            found_paths.append(path)
    if len(found_paths) > _MAX_DELETED:
        raise TooLarge(f"These are more than {_MAX_DELETED}.", "Delete a part at a time, or the folder they are in.")
    question = None
    if settings.confirm and has_globs:
        names = ", ".join(_quote_path(path.display) for path in found_paths)
        question = f"Allow delete_file? It removes {len(found_paths):,}: {names}."
    return PlannedDeletion(found_paths, notes, has_globs, question)


async def ask_about_targets(tool: str, values: Mapping[str, Any]) -> Question | None:
    """Return the question about the pairs of a copy or a move; None for any other call."""
    if "targets" not in values:
        return None
    names: list[str] = []
    for source, target in values["targets"].items():
        names.append(f"{_quote_path(source)} to {_quote_path(target)}")
    warning = " It can replace what is there." if values["overwrite"] else ""
    return Question(f"Allow {tool}? It puts {', '.join(names)}.{warning}", OPERATOR_FIX)


def _quote_path(path: str) -> str:
    return quote(escape_invisible(path), 1000)
