"""Tools that change files and folders; a read-only server offers none of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from mcp_batteries.errors import Invalid, Problem, quote
from mcp_batteries.server.declare import renames, tool
from mcp_batteries.server.fields import DryRun
from mcp_fs.engine.changing.patch import FilePatch, parse
from mcp_fs.engine.changing.replace import Substitution
from mcp_fs.engine.listing.walk import WalkFilter
from mcp_fs.engine.reading.line_range import LineRange
from mcp_fs.engine.service import Engine
from mcp_fs.engine.text.edit import Replacement
from mcp_fs.models import Edited, Moved, MovedAll, Replaced, Written
from mcp_fs.policy import Policy, Readable, Writable
from mcp_fs.tools.consent import agreed
from mcp_fs.tools.paths import deleted, few, lines_in
from mcp_fs.tools.views import DIFF

__all__ = ["Edit", "WriteTools"]

Targets = Annotated[dict[str, str], Field(description="Target path by source")]


class Edit(BaseModel):
    model_config = ConfigDict(extra="forbid")

    old_text: str = Field(description="Exact and unique, with its indentation.")
    new_text: str
    replace_all: bool = False


def _flat(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """One replacement given without its list, as other servers take it."""
    names = {"old_text", "oldText", "old_string", "new_text", "newText", "new_string", "replace_all", "replaceAll"}
    if "edits" in arguments or not names & arguments.keys():
        return arguments
    edit = {name.replace("string", "text"): value for name, value in arguments.items() if name in names}
    return {**{name: value for name, value in arguments.items() if name not in names}, "edits": [edit]}


def _with_folders(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Missing folders are made; who asks for it, as other servers want it, may."""
    taken = renames(text="content", file_text="content", file_path="path")(arguments)
    return {name: value for name, value in taken.items() if (name, value) != ("parents", True)}


def _paired(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """One source with its target, as other servers take them."""
    taken = renames(destination="target")(arguments)
    match taken:
        case {"source": str(source), "target": str(target), **others} if "targets" not in others:
            return {**others, "targets": {source: target}}
        case _:
            return arguments


def _replaced(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """One text with its replacement, as other servers take them."""
    taken = renames(pattern="old_text", query="old_text", replacement="new_text")(arguments)
    match taken:
        case {"old_text": str(old), "new_text": str(new), **others} if "replacements" not in others:
            return {**others, "replacements": {old: new}}
        case _:
            return arguments


_LONG = 3600.0
"""A large tree takes its time: the caller hears that it goes on, and can cancel."""


@dataclass(frozen=True)
class WriteTools:
    policy: Policy
    engine: Engine

    @tool("Write file", effect="destroy", adapt=_with_folders)
    async def write_file(
        self,
        path: str,
        content: str,
        overwrite: bool = False,
        append: Annotated[bool, Field(description="To the end, in its encoding.")] = False,
    ) -> Written | Edited:
        """Create a text file; one that exists is refused, unless `overwrite` replaces it or `append` adds to it.

        All tools make missing folders. To change a part use `edit_file`.
        """
        if append and overwrite:
            raise Invalid("`append` and `overwrite` can't be used together.", "Use one of them.")
        if path.endswith(("/", os.sep)):
            raise Invalid(f"{quote(path)} ends as folders do.", "Leave out the last slash, or use `create_directory`.")
        place = await self._target(path)
        if append:
            return await self.engine.append_text(place, content)
        return await self.engine.write_file(place, content, overwrite=overwrite)

    @tool("Edit file", effect="destroy", view=DIFF, adapt=_flat)
    async def edit_file(
        self,
        path: str,
        edits: Annotated[list[Edit], Field(min_length=1)],
        dry_run: DryRun = False,
        expected_hash: Annotated[str | None, Field(description="Fail unless the file has this hash.")] = None,
    ) -> Edited:
        """Replace exact pieces of a text file, in order, all or none; says at which lines.

        Encoding and line ends are kept. Several files: `edit_files`.
        """
        place = self.policy.writable(path)
        wanted = [Replacement(edit.old_text, edit.new_text, edit.replace_all) for edit in edits]
        return await self.engine.edit_file(place, wanted, dry_run=dry_run, expected_hash=expected_hash)

    @tool("Edit files", effect="destroy", view=DIFF, adapt=renames(diff="patch", input="patch"))
    async def edit_files(
        self,
        patch: Annotated[str, Field(description="Unified diff; /dev/null creates or deletes a file.")],
        dry_run: DryRun = False,
    ) -> Edited:
        """Apply a unified diff to one or several files, all or none; its context must match exactly.

        For exact pieces use `edit_file`.
        """
        files = [(await self._patched(file), file) for file in parse(patch)]
        return await self.engine.apply_patch(files, dry_run=dry_run)

    @tool("Create directory", effect="write", idempotent=True)
    async def create_directory(self, path: str) -> Moved:
        """Create a folder and missing ones above it; one that exists is no error.

        Only for empty ones.
        """
        return await self.engine.create_folder(await self._target(path))

    @tool(
        "Replace text",
        effect="destroy",
        seconds=_LONG,
        adapt=_replaced,
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
    ) -> Replaced:
        """Replace texts wherever they occur in many files, in one pass, all or none; says where.

        For one file use `edit_file`.
        """
        start, wanted = self.policy.writable(path), WalkFilter(include_hidden, include_ignored)
        substitution = Substitution(replacements, by, ignore_case)
        return await self.engine.replace_text(start, glob, wanted, substitution, dry_run=dry_run)

    @tool("Copy file", effect="destroy", seconds=_LONG, adapt=_paired)
    async def copy_file(self, targets: Targets, overwrite: bool = False) -> MovedAll:
        """Copy files or folders. Fails if a target exists; `overwrite` replaces files.

        Only lines: `a.md:3-16`. To rename use `move_file`.
        """
        pairs = [(await self._source(source), await self._target(targets[source])) for source in few(targets)]
        return await self.engine.copy(pairs, overwrite=overwrite)

    @tool("Move file", effect="destroy", seconds=_LONG, adapt=_paired)
    async def move_file(self, targets: Targets, overwrite: bool = False) -> MovedAll:
        """Move or rename files or folders.

        Fails if a target exists; `overwrite` replaces a file or an empty folder. To keep the source use `copy_file`.
        """
        pairs = [(self.policy.writable(source), await self._target(targets[source])) for source in few(targets)]
        return await self.engine.move(pairs, overwrite=overwrite)

    @tool("Delete file", effect="destroy", seconds=_LONG, adapt=renames(path="paths"))
    async def delete_file(
        self,
        paths: Annotated[list[str], Field(min_length=1)],
        recursive: bool = False,
        trash: Annotated[bool, Field(description="To the desktop's trash instead.")] = False,
    ) -> MovedAll:
        """Delete files, links (not targets), folders (`recursive` if not empty), or all that `**/*.bak` names.

        `undo_changes` brings them back, unless in the `trash`.
        """
        places, notes = agreed(paths) or await deleted(self.policy, self.engine, paths)
        done = await self.engine.delete(places, recursive=recursive, trash=trash)
        return replace(done, notes=[*notes, *done.notes], asked=not any("*" in path for path in paths))

    async def _source(self, path: str) -> Readable | LineRange:
        """What a copy is of: the entry of that name if there is one, else lines if it names some."""
        named = lines_in(path)
        if named is None:
            return self.policy.readable(path)
        with suppress(Problem):
            if await self.engine.exists(place := self.policy.readable(path)):
                return place
        file, first, last = named
        return LineRange(self.policy.readable(file), first, last, path)

    async def _patched(self, patch: FilePatch) -> Writable:
        """The file of a patch: git puts `a/` before its name, other tools do not."""
        if patch.path != patch.written and not patch.creates:
            try:
                literal = self.policy.writable(patch.written)
            except Problem:
                pass
            else:
                if await self.engine.exists(literal):
                    return literal
        if not patch.path:
            raise Invalid("The patch names no file.")
        return await self._target(patch.path) if patch.creates else self.policy.writable(patch.path)

    async def _target(self, path: str) -> Writable:
        """Where something may be made.

        Raises:
            Invalid: a name on the way is not there, and nobody would give it.
        """
        place = self.policy.writable(path)
        if (found := self.policy.slip(path, place)) and not await self.engine.exists(found[0]):
            raise found[1]
        return place
