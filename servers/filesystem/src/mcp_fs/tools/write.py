"""Tools that change files and folders; a read-only server offers none of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid
from mcp_batteries.server.declaration.call_origin import CallOrigin
from mcp_batteries.server.declaration.decorators import rename_arguments, tool
from mcp_batteries.server.declaration.fields import DryRun
from mcp_batteries.server.declaration.trusted import FreeText, consented, default, trusted
from mcp_fs.engine.changing import file_edits, folders, patching, writing
from mcp_fs.engine.changing.entries.batch import copy_all, move_all
from mcp_fs.engine.changing.entries.deleting import delete_all
from mcp_fs.engine.changing.folders import with_missing_folders
from mcp_fs.engine.changing.replacing.replace import replace_in_files
from mcp_fs.engine.changing.replacing.substitution import Substitution
from mcp_fs.engine.handles.named_entries import CopySource, accept_target
from mcp_fs.engine.journal.journal import ChangeRecorder
from mcp_fs.engine.listing.walk import WalkFilter
from mcp_fs.engine.text.edit import Replacement
from mcp_fs.engine.text.encodings import parse_conversion
from mcp_fs.models import BatchResult, EditResult, MoveResult, ReplaceResult, WriteResult
from mcp_fs.policy import ReadablePath, WritablePath
from mcp_fs.policy.path_arguments import PathArguments, TargetPath
from mcp_fs.tools.arguments import WritePath
from mcp_fs.tools.consent import (
    OPERATOR_FIX,
    PlannedDeletion,
    PlannedTransfer,
    plan_copies,
    plan_deletion,
    plan_moves,
)
from mcp_fs.tools.views import DIFF

__all__ = [
    "Edit",
    "copy_file",
    "create_directory",
    "delete_file",
    "edit_file",
    "edit_files",
    "move_file",
    "replace_text",
    "write_file",
]


class Edit(BaseModel):
    model_config = ConfigDict(extra="forbid")

    old_text: FreeText = Field(description="Exact and unique, with indentation.")
    new_text: FreeText
    replace_all: bool = False
    lookalike: bool = Field(False, description="Also match what only looks the same, as a no-break space.")


def _wrap_single_edit(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Accept one replacement without its list, as other servers take it."""
    names = {
        "old_text",
        "oldText",
        "old_string",
        "new_text",
        "newText",
        "new_string",
        "replace_all",
        "replaceAll",
        "lookalike",
    }
    if "edits" in arguments or not names & arguments.keys():
        return arguments
    edit = {name.replace("string", "text"): value for name, value in arguments.items() if name in names}
    return {**{name: value for name, value in arguments.items() if name not in names}, "edits": [edit]}


def _accept_parents(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Missing folders are made; who asks for it, as other servers want it, may."""
    renamed = rename_arguments(text="content", file_text="content", file_path="path", filename="path")(arguments)
    return {name: value for name, value in renamed.items() if (name, value) != ("parents", True)}


_SOURCE_NAMES = ("source", "sources", "path", "paths", "src", "from")
_TARGET_NAMES = ("target", "destination", "dest", "dst", "to")


def _wrap_sources(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Accept one source or several with their target, as other servers and shells take them."""
    source_names = [name for name in _SOURCE_NAMES if name in arguments]
    target_names = [name for name in _TARGET_NAMES if name in arguments]
    if len(source_names) != 1 or len(target_names) != 1 or "targets" in arguments:
        return arguments
    others = dict(arguments)
    sources = others.pop(source_names[0])
    target = others.pop(target_names[0])
    match sources, target:
        case str(source), str():
            return {**others, "targets": {source: target}}
        case [str(source)], str():
            return {**others, "targets": {source: target}}
        case [str(), *_], str() if all(isinstance(source, str) for source in sources):
            # Of several it can only be a folder. An empty one is refused as it is, and is not `/`.
            if target and not target.endswith("/"):
                target += "/"
            return {**others, "targets": dict.fromkeys(sources, target)}
        case _:
            return arguments


def _wrap_single_replacement(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Accept one text with its replacement, as other servers take them."""
    renamed = rename_arguments(pattern="old_text", query="old_text", replacement="new_text")(arguments)
    match renamed:
        case {"old_text": str(old), "new_text": str(new), **others} if "replacements" not in others:
            return {**others, "replacements": {old: new}}
        case _:
            return arguments


# A large tree takes its time: the caller hears that it goes on, and can cancel.
_LONG_SECONDS = 3600.0


@tool("Write file", effect="destroy", adapt=_accept_parents, long=False)
def write_file(
    recorder: ChangeRecorder,
    origin: CallOrigin,
    cancel: CancelToken,
    *,
    path: Annotated[TargetPath, trusted(PathArguments.file_target)],
    content: FreeText,
    overwrite: bool = False,
    append: Annotated[bool, Field(description="Add at the end, from a new line on.")] = False,
) -> WriteResult:
    """Create a text file; one that exists is refused, unless `overwrite` replaces it or `append` adds to it.

    To change a part use `edit_file`.
    """
    if append and overwrite:
        raise Invalid("`append` and `overwrite` can't be used together.", "Use one of them.")
    target = accept_target(path)
    if append:
        return recorder.record(origin, cancel, partial(writing.append_text, target, content))
    write = partial(writing.write_file, target, content, overwrite=overwrite)
    return recorder.record(origin, cancel, partial(with_missing_folders, [target], write))


@tool("Edit file", effect="destroy", view=DIFF, adapt=_wrap_single_edit, reads_in_dry_run=True)
def edit_file(
    recorder: ChangeRecorder,
    origin: CallOrigin,
    cancel: CancelToken,
    *,
    path: WritePath,
    edits: Annotated[list[Edit], Field(min_length=1)],
    dry_run: DryRun = False,
    expected_hash: Annotated[FreeText | None, Field(description="Fail if it differs.")] = None,
) -> EditResult:
    """Replace exact pieces of a text file, in order, all or none; says at which lines.

    Encoding and line ends are kept (write `\\n`); of a notebook it takes what `read_text` shows. Several files:
    `edit_files`.
    """
    replacements = [Replacement(edit.old_text, edit.new_text, edit.replace_all, edit.lookalike) for edit in edits]
    edit_pieces = partial(file_edits.replace_pieces, path, replacements, dry_run=dry_run, expected_hash=expected_hash)
    return recorder.record(origin, cancel, edit_pieces)


@tool(
    "Edit files",
    effect="destroy",
    view=DIFF,
    adapt=rename_arguments(diff="patch", input="patch", path="patch", patch_file="patch"),
    reads_in_dry_run=True,
)
def edit_files(
    arguments: PathArguments,
    recorder: ChangeRecorder,
    origin: CallOrigin,
    cancel: CancelToken,
    *,
    patch: Annotated[
        str | ReadablePath,
        trusted(PathArguments.patch),
        Field(description="Unified diff, or a file that holds one; /dev/null creates or deletes a file."),
    ],
    dry_run: DryRun = False,
) -> EditResult:
    """Apply a unified diff, renames too, to one or several files, all or none; its context must match exactly.

    For exact pieces use `edit_file`.
    """
    return recorder.record(origin, cancel, partial(patching.apply_patch, arguments, patch, dry_run=dry_run))


@tool("Create directory", effect="write", idempotent=True, long=False)
def create_directory(
    recorder: ChangeRecorder,
    origin: CallOrigin,
    cancel: CancelToken,
    *,
    path: Annotated[TargetPath, trusted(PathArguments.target)],
) -> MoveResult:
    """Create a folder and missing ones above it; one that exists is no error.

    For one that stays empty: all tools make missing folders.
    """
    target = accept_target(path)
    return recorder.record(origin, cancel, partial(folders.create_folder, target))


@tool(
    "Replace text",
    effect="destroy",
    seconds=_LONG_SECONDS,
    adapt=_wrap_single_replacement,
    reads_in_dry_run=True,
)
def replace_text(
    recorder: ChangeRecorder,
    origin: CallOrigin,
    cancel: CancelToken,
    *,
    replacements: Annotated[dict[FreeText, FreeText] | None, Field(description="New text by old text")] = None,
    glob: Annotated[FreeText, Field(description="A name at any depth, `*.py`, or a path, `src/**/*.{ts,tsx}`")],
    path: WritePath = default("."),
    by: Annotated[
        Literal["text", "word", "regex"],
        Field(
            description="`word`: not within a longer word. A regex (RE2) stays in a line, `\\s` too, unless it has "
            "`\\n`; its new text takes groups as `\\1`, `\\g<1>`."
        ),
    ] = "text",
    ignore_case: bool = False,
    include_hidden: bool = False,
    include_ignored: bool = False,
    encoding: Annotated[
        FreeText | None,
        Field(
            description="Convert text files not yet in it: `utf-8`, with BOM `utf-8-sig`; `cp1250>utf-8` (but for "
            "valid UTF-8)."
        ),
    ] = None,
    dry_run: DryRun = False,
) -> ReplaceResult:
    """Replace texts wherever they occur in many files, in one pass, all or none; says where.

    Without hidden and git-ignored files. Tells what is nearly alike. One file: `edit_file`.
    """
    walk_filter = WalkFilter(include_hidden, include_ignored)
    substitution = Substitution(replacements or {}, by, ignore_case)
    if encoding is not None:
        old_encoding, new_encoding = parse_conversion(encoding)
        substitution = replace(substitution, encoding=new_encoding, old_encoding=old_encoding)
    replace_all = partial(replace_in_files, path, glob, walk_filter, substitution, dry_run=dry_run)
    return recorder.record(origin, cancel, replace_all)


@tool("Copy file", effect="destroy", seconds=_LONG_SECONDS, adapt=_wrap_sources)
def copy_file(
    recorder: ChangeRecorder,
    origin: CallOrigin,
    cancel: CancelToken,
    plan: Annotated[PlannedTransfer[CopySource], consented(plan_copies, fix=OPERATOR_FIX, only_with_confirm=True)],
    *,
    overwrite: bool = False,
) -> BatchResult:
    """Copy files, or folders with all in them, hidden files too.

    Fails if a target exists, unless told to `overwrite` files or `skip_existing`. A source may be lines, `a.md:3-16`,
    or be unzipped, `a.zip!/b`; a target `a.zip!/` zips `dir` with its name, `dir/` without. To rename use `move_file`.
    """
    return recorder.record(origin, cancel, partial(copy_all, plan.destinations, overwrite=overwrite))


@tool("Move file", effect="destroy", seconds=_LONG_SECONDS, adapt=_wrap_sources)
def move_file(
    recorder: ChangeRecorder,
    origin: CallOrigin,
    cancel: CancelToken,
    plan: Annotated[PlannedTransfer[WritablePath], consented(plan_moves, fix=OPERATOR_FIX, only_with_confirm=True)],
    *,
    overwrite: bool = False,
) -> BatchResult:
    """Move or rename files or folders.

    Fails if a target exists, unless told to `overwrite` a file or an empty folder, or `skip_existing`. To keep the
    source use `copy_file`.
    """
    return recorder.record(origin, cancel, partial(move_all, plan.destinations, overwrite=overwrite))


@tool("Delete file", effect="destroy", seconds=_LONG_SECONDS, adapt=rename_arguments(path="paths"))
def delete_file(
    recorder: ChangeRecorder,
    origin: CallOrigin,
    cancel: CancelToken,
    plan: Annotated[PlannedDeletion, consented(plan_deletion, fix=OPERATOR_FIX, only_with_confirm=True)],
    *,
    recursive: bool = False,
    trash: bool = False,
) -> BatchResult:
    """Delete files, links (not targets), folders (`recursive` if not empty), or all that `**/*.bak` names.

    `undo_changes` brings them back, unless in the desktop's `trash`.
    """
    delete = partial(delete_all, plan.paths, recursive=recursive, trash=trash, tells_rest=plan.has_globs)
    result = recorder.record(origin, cancel, delete)
    return replace(result, notes=[*plan.notes, *result.notes], names_all=not plan.has_globs)
