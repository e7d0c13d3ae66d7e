"""Tools that change files and folders; a read-only server offers none of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from mcp_batteries.errors import Invalid, Problem, quote
from mcp_batteries.server.declaration.decorators import rename_arguments, tool
from mcp_batteries.server.declaration.fields import DryRun
from mcp_fs.engine.changing.patch import FilePatch, parse_patch
from mcp_fs.engine.changing.replace import Substitution
from mcp_fs.engine.listing.walk import WalkFilter
from mcp_fs.engine.service import Engine
from mcp_fs.engine.text.edit import Replacement
from mcp_fs.models import BatchResult, EditResult, MoveResult, ReplaceResult, WriteResult
from mcp_fs.policy import Policy, ReadablePath, WritablePath
from mcp_fs.policy.path_arguments import LineRange
from mcp_fs.tools.paths import (
    consented_expansion,
    expand_deletions,
    limit_count,
    parse_line_range,
    path_exists,
)
from mcp_fs.tools.views import DIFF

__all__ = ["Edit", "WriteTools"]

Targets = Annotated[dict[str, str], Field(description="Target path by source")]


class Edit(BaseModel):
    model_config = ConfigDict(extra="forbid")

    old_text: str = Field(description="Exact and unique, with its indentation.")
    new_text: str
    replace_all: bool = False


def _wrap_single_edit(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Accept one replacement without its list, as other servers take it."""
    names = {"old_text", "oldText", "old_string", "new_text", "newText", "new_string", "replace_all", "replaceAll"}
    if "edits" in arguments or not names & arguments.keys():
        return arguments
    edit = {name.replace("string", "text"): value for name, value in arguments.items() if name in names}
    return {**{name: value for name, value in arguments.items() if name not in names}, "edits": [edit]}


def _accept_parents(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Missing folders are made; who asks for it, as other servers want it, may."""
    renamed = rename_arguments(text="content", file_text="content", file_path="path")(arguments)
    return {name: value for name, value in renamed.items() if (name, value) != ("parents", True)}


def _wrap_single_target(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Accept one source with its target, as other servers take them."""
    renamed = rename_arguments(destination="target")(arguments)
    match renamed:
        case {"source": str(source), "target": str(target), **others} if "targets" not in others:
            return {**others, "targets": {source: target}}
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


@dataclass(frozen=True)
class WriteTools:
    policy: Policy
    engine: Engine

    @tool("Write file", effect="destroy", adapt=_accept_parents)
    async def write_file(
        self,
        path: str,
        content: str,
        overwrite: bool = False,
        append: Annotated[bool, Field(description="To the end, in its encoding.")] = False,
    ) -> WriteResult | EditResult:
        """Create a text file; one that exists is refused, unless `overwrite` replaces it or `append` adds to it.

        All tools make missing folders. To change a part use `edit_file`.
        """
        if append and overwrite:
            raise Invalid("`append` and `overwrite` can't be used together.", "Use one of them.")
        if path.endswith(("/", os.sep)):
            raise Invalid(f"{quote(path)} ends as folders do.", "Leave out the last slash, or use `create_directory`.")
        writable_path = await self._resolve_target(path)
        if append:
            return await self.engine.append_text(writable_path, content)
        return await self.engine.write_file(writable_path, content, overwrite=overwrite)

    @tool("Edit file", effect="destroy", view=DIFF, adapt=_wrap_single_edit)
    async def edit_file(
        self,
        path: str,
        edits: Annotated[list[Edit], Field(min_length=1)],
        dry_run: DryRun = False,
        expected_hash: Annotated[str | None, Field(description="Fail unless the file has this hash.")] = None,
    ) -> EditResult:
        """Replace exact pieces of a text file, in order, all or none; says at which lines.

        Encoding and line ends are kept. Several files: `edit_files`.
        """
        writable_path = self.policy.writable(path)
        replacements = [Replacement(edit.old_text, edit.new_text, edit.replace_all) for edit in edits]
        return await self.engine.edit_file(writable_path, replacements, dry_run=dry_run, expected_hash=expected_hash)

    @tool("Edit files", effect="destroy", view=DIFF, adapt=rename_arguments(diff="patch", input="patch"))
    async def edit_files(
        self,
        patch: Annotated[str, Field(description="Unified diff; /dev/null creates or deletes a file.")],
        dry_run: DryRun = False,
    ) -> EditResult:
        """Apply a unified diff to one or several files, all or none; its context must match exactly.

        For exact pieces use `edit_file`.
        """
        files = [(await self._resolve_patched_file(file), file) for file in parse_patch(patch)]
        return await self.engine.apply_patch(files, dry_run=dry_run)

    @tool("Create directory", effect="write", idempotent=True)
    async def create_directory(self, path: str) -> MoveResult:
        """Create a folder and missing ones above it; one that exists is no error.

        Only for empty ones.
        """
        return await self.engine.create_folder(await self._resolve_target(path))

    @tool(
        "Replace text",
        effect="destroy",
        seconds=_LONG_SECONDS,
        adapt=_wrap_single_replacement,
    )
    async def replace_text(
        self,
        replacements: Annotated[dict[str, str], Field(description="New text by old text")],
        glob: Annotated[str, Field(description="`*.py`, `src/**/*.{ts,tsx}`")],
        path: str = ".",
        by: Annotated[
            Literal["text", "word", "regex"],
            Field(description="Regex (RE2) groups: `\\1`, `\\g<1>`."),
        ] = "text",
        ignore_case: bool = False,
        include_hidden: bool = False,
        include_ignored: bool = False,
        dry_run: DryRun = False,
    ) -> ReplaceResult:
        """Replace texts wherever they occur in many files, in one pass, all or none; says where.

        For one file use `edit_file`.
        """
        start = self.policy.writable(path)
        walk_filter = WalkFilter(include_hidden, include_ignored)
        substitution = Substitution(replacements, by, ignore_case)
        return await self.engine.replace_text(start, glob, walk_filter, substitution, dry_run=dry_run)

    @tool("Copy file", effect="destroy", seconds=_LONG_SECONDS, adapt=_wrap_single_target)
    async def copy_file(self, targets: Targets, overwrite: bool = False) -> BatchResult:
        """Copy files or folders. Fails if a target exists; `overwrite` replaces files.

        Only lines: `a.md:3-16`. To rename use `move_file`.
        """
        pairs = [
            (await self._resolve_source(source), await self._resolve_target(targets[source]))
            for source in limit_count(targets)
        ]
        return await self.engine.copy(pairs, overwrite=overwrite)

    @tool("Move file", effect="destroy", seconds=_LONG_SECONDS, adapt=_wrap_single_target)
    async def move_file(self, targets: Targets, overwrite: bool = False) -> BatchResult:
        """Move or rename files or folders.

        Fails if a target exists; `overwrite` replaces a file or an empty folder. To keep the source use `copy_file`.
        """
        pairs = [
            (self.policy.writable(source), await self._resolve_target(targets[source]))
            for source in limit_count(targets)
        ]
        return await self.engine.move(pairs, overwrite=overwrite)

    @tool("Delete file", effect="destroy", seconds=_LONG_SECONDS, adapt=rename_arguments(path="paths"))
    async def delete_file(
        self,
        paths: Annotated[list[str], Field(min_length=1)],
        recursive: bool = False,
        trash: Annotated[bool, Field(description="To the desktop's trash instead.")] = False,
    ) -> BatchResult:
        """Delete files, links (not targets), folders (`recursive` if not empty), or all that `**/*.bak` names.

        `undo_changes` brings them back, unless in the `trash`.
        """
        writable_paths, notes = consented_expansion(paths) or await expand_deletions(self.policy, paths)
        result = await self.engine.delete(writable_paths, recursive=recursive, trash=trash)
        return replace(result, notes=[*notes, *result.notes], names_all=not any("*" in path for path in paths))

    async def _resolve_source(self, path: str) -> ReadablePath | LineRange:
        """Resolve what a copy is of: the entry of that name if there is one, else lines if it names some."""
        line_range = parse_line_range(path)
        if line_range is None:
            return self.policy.readable(path)
        with suppress(Problem):
            if await path_exists(entry := self.policy.readable(path)):
                return entry
        file, first, last = line_range
        return LineRange(self.policy.readable(file), first, last, path)

    async def _resolve_patched_file(self, patch: FilePatch) -> WritablePath:
        """Resolve the file of a patch: git puts `a/` before its name, other tools do not."""
        if patch.path != patch.written_path and not patch.creates:
            try:
                literal = self.policy.writable(patch.written_path)
            except Problem:
                pass
            else:
                if await path_exists(literal):
                    return literal
        if not patch.path:
            raise Invalid("The patch names no file.")
        return await self._resolve_target(patch.path) if patch.creates else self.policy.writable(patch.path)

    async def _resolve_target(self, path: str) -> WritablePath:
        """Resolve where something may be made.

        Raises:
            Invalid: a name on the way is not there, and nobody would give it.
        """
        writable_path = self.policy.writable(path)
        if (typo := self.policy.detect_typo(path, writable_path)) and not await path_exists(typo[0]):
            raise typo[1]
        return writable_path
