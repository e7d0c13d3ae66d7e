"""What the user is asked, with `--confirm`, where a call's arguments do not show its effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar

from pydantic import AfterValidator, Field

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, TooLarge, quote
from mcp_batteries.server.calling.confirmation_text import escape_invisible
from mcp_batteries.server.declaration.trusted import trusted
from mcp_fs.engine.changing.entries.all_or_none import all_or_none
from mcp_fs.engine.changing.entries.destinations import (
    DestinationRules,
    Destinations,
    find_copy_destinations,
    find_move_destinations,
)
from mcp_fs.engine.handles.named_entries import CopySource
from mcp_fs.engine.handles.open_entries import max_open_entries
from mcp_fs.engine.listing.expand_glob import expand_glob
from mcp_fs.engine.listing.walk import Skipped, display_path
from mcp_fs.policy import WritablePath
from mcp_fs.policy.path_arguments import CopyPair, MovePair, PathArguments, PathGlob
from mcp_fs.settings import Settings

__all__ = ["OPERATOR_FIX", "PlannedDeletion", "PlannedTransfer", "plan_copies", "plan_deletion", "plan_moves"]

_S = TypeVar("_S", bound=CopySource)

OPERATOR_FIX = "The operator can start the server without `--confirm`."


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
        list[WritablePath | PathGlob[WritablePath]],
        trusted(PathArguments.deletions),
        Field(
            min_length=1,
            description="`./*.bak` is in the folder itself, `**/*.bak` at any depth, `.*` what is hidden",
        ),
    ],
) -> PlannedDeletion:
    """Find what the paths and globs of a deletion mean.

    Raises:
        Problem: nothing fits, or too much does.
    """
    found_paths: list[WritablePath] = []
    skipped = Skipped()
    has_globs = False
    limit = max_open_entries()
    for path in paths:
        if isinstance(path, PathGlob):
            has_globs = True
            with all_or_none(len(paths), "deleted"):
                expanded = expand_glob(path, limit, cancel, for_change=True)
            found_paths += expanded.paths
            skipped.merge(expanded.skipped)
        else:
            found_paths.append(path)
    if len(found_paths) > limit:
        raise TooLarge(f"These are more than {limit:,}.", "Delete a part at a time, or the folder they are in.")
    question = None
    if settings.confirm and has_globs:
        names = ", ".join(_quote_path(path.display) for path in found_paths)
        question = f"Allow delete_file? It removes {len(found_paths):,}: {names}."
    skipped.drop(set(map(display_path, found_paths)))
    notes = [*skipped.notes(), *skipped.describe_links()]
    return PlannedDeletion(found_paths, notes, has_globs, question)


@dataclass(frozen=True)
class PlannedTransfer(Generic[_S]):
    """What is copied or moved, and where to: what the user was shown.

    Attributes:
        question: what they are asked; None if nobody has to be.
    """

    destinations: Destinations[_S]
    question: str | None


def _limit_count(targets: dict[str, str]) -> dict[str, str]:
    # A bound in the schema would say less of what to do.
    limit = max_open_entries()
    if not 0 < len(targets) <= limit:
        raise Invalid(f"`targets` names {len(targets):,} sources.", f"Name 1 to {limit:,} with their targets.")
    return targets


Copies = Annotated[
    list[CopyPair],
    trusted(PathArguments.copy_pairs),
    AfterValidator(_limit_count),
    Field(description="`{source: target}`; a target `dir/` takes one source, or all that `./*.pdf` means"),
]
Moves = Annotated[
    list[MovePair],
    trusted(PathArguments.move_pairs),
    AfterValidator(_limit_count),
    Field(description="`{source: target}`; a target `dir/` takes one source, or all that `./*.pdf` means"),
]


def plan_copies(
    settings: Settings,
    cancel: CancelToken,
    *,
    targets: Copies,
    overwrite: bool = False,
    skip_existing: bool = False,
) -> PlannedTransfer[CopySource]:
    """Find what the sources and targets of a copy mean.

    Raises:
        Problem: one can't be meant, or too much is.
    """
    rules = _destination_rules(overwrite=overwrite, skip_existing=skip_existing)
    with all_or_none(len(targets), "done"):
        destinations = find_copy_destinations(targets, rules, cancel)
    return PlannedTransfer(destinations, _ask_about(destinations, "copy_file", settings, overwrite=overwrite))


def plan_moves(
    settings: Settings,
    cancel: CancelToken,
    *,
    targets: Moves,
    overwrite: bool = False,
    skip_existing: bool = False,
    ignore_case: bool = False,
) -> PlannedTransfer[WritablePath]:
    """Find what the sources and targets of a move mean.

    Raises:
        Problem: one can't be meant, or too much is.
    """
    rules = _destination_rules(overwrite=overwrite, skip_existing=skip_existing, ignore_case=ignore_case)
    with all_or_none(len(targets), "done"):
        destinations = find_move_destinations(targets, rules, cancel)
    return PlannedTransfer(destinations, _ask_about(destinations, "move_file", settings, overwrite=overwrite))


def _destination_rules(*, overwrite: bool, skip_existing: bool, ignore_case: bool = False) -> DestinationRules:
    if overwrite and skip_existing:
        raise Invalid("`overwrite` and `skip_existing` can't be used together.", "Use one of them.")
    return DestinationRules(max_open_entries(), skip_existing, ignore_case)


def _ask_about(destinations: Destinations[_S], tool: str, settings: Settings, *, overwrite: bool) -> str | None:
    """Return the question about the pairs of a copy or a move."""
    if not settings.confirm or not destinations.pairs:
        return None
    names: list[str] = []
    for source, target in destinations.pairs:
        names.append(f"{_quote_path(source.display)} to {_quote_path(target.display)}")
    warning = " It can replace what is there." if overwrite else ""
    return f"Allow {tool}? It puts {', '.join(names)}.{warning}"


def _quote_path(path: str) -> str:
    return quote(escape_invisible(path), 1000)
