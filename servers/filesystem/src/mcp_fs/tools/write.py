"""What changes files and folders; none of it is offered by a read-only server."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from mcp_batteries.errors import Invalid, Problem, quote
from mcp_batteries.limits import Stop, in_thread
from mcp_batteries.server.declare import tool
from mcp_fs.engine.files import tree
from mcp_fs.engine.files.edit import Replacement, replace
from mcp_fs.engine.files.handles import status
from mcp_fs.engine.files.patch import FilePatch, apply_hunks, parse
from mcp_fs.engine.files.transaction import Change, change_files
from mcp_fs.engine.files.write import write_file
from mcp_fs.models import Edited, Moved, Written
from mcp_fs.policy import Policy, Writable
from mcp_fs.tools.arguments import DryRun, Overwrite, RelativePath
from mcp_fs.tools.views import DIFF

__all__ = ["Edit", "WriteTools"]


class Edit(BaseModel):
    """One replacement."""

    model_config = ConfigDict(extra="forbid")

    old_text: str = Field(description="Exact text with its indentation, enough of it to be unique.")
    new_text: str
    replace_all: bool = False


@dataclass(frozen=True)
class WriteTools:
    policy: Policy

    @tool("Write file", effect="destroy", idempotent=True)
    async def write_file(self, path: RelativePath, content: str, overwrite: Overwrite = False) -> Written:
        """Create a text file; its folder must exist.

        To change a part of a file use `edit_file`.
        """
        if path.endswith("/"):
            raise Invalid(f"{quote(path)} ends as folders do.", "Leave out the last slash, or use `create_directory`.")
        place = self.policy.writable(path)
        return await in_thread(lambda stop: write_file(place, content, overwrite=overwrite, stop=stop), what="Writing")

    @tool("Edit file", effect="destroy", view=DIFF)
    async def edit_file(
        self,
        path: RelativePath,
        edits: Annotated[list[Edit], Field(min_length=1)],
        dry_run: DryRun = False,
        expected_hash: Annotated[str | None, Field(description="Fail unless the file has this hash.")] = None,
    ) -> Edited:
        """Replace exact pieces of a text file, in order, all or none; returns the diff.

        Encoding and line ends are kept.
        """
        place = self.policy.writable(path)
        wanted = [Replacement(edit.old_text, edit.new_text, edit.replace_all) for edit in edits]

        def work(stop: Stop) -> Edited:
            revise = partial(replace, replacements=wanted, shown=quote(place.display), stop=stop)
            return change_files([Change(place, revise, expected_hash=expected_hash)], dry_run=dry_run, stop=stop)

        return await in_thread(work, what="Editing", long=True)

    @tool("Edit files", effect="destroy", view=DIFF)
    async def edit_files(
        self,
        patch: Annotated[str, Field(description="Unified diff; /dev/null creates or deletes a file.")],
        dry_run: DryRun = False,
    ) -> Edited:
        """Apply a unified diff to one or several files, all or none, context matched exactly."""
        return await in_thread(lambda stop: self._apply(parse(patch), dry_run, stop), what="Patching", long=True)

    @tool("Create directory", effect="write", idempotent=True)
    async def create_directory(self, path: RelativePath) -> Moved:
        """Create a folder and those above it that are missing."""
        place = self.policy.writable(path)
        return await in_thread(lambda stop: tree.create_folder(place, stop), what="Creating the folder")

    @tool("Copy file", effect="destroy")
    async def copy_file(self, source: RelativePath, target: RelativePath, overwrite: Overwrite = False) -> Moved:
        """Copy a file or a whole folder to a new path."""
        start, end = self.policy.readable(source), self.policy.writable(target)
        return await in_thread(
            lambda stop: tree.copy(start, end, overwrite=overwrite, stop=stop), what="Copying", long=True
        )

    @tool("Move file", effect="destroy")
    async def move_file(self, source: RelativePath, target: RelativePath, overwrite: Overwrite = False) -> Moved:
        """Move or rename a file or folder; `target` is its new path."""
        start, end = self.policy.writable(source), self.policy.writable(target)
        return await in_thread(
            lambda stop: tree.move(start, end, overwrite=overwrite, stop=stop), what="Moving", long=True
        )

    @tool("Delete file", effect="destroy")
    async def delete_file(
        self,
        path: RelativePath,
        recursive: Annotated[bool, Field(description="Delete a folder with all that is in it.")] = False,
        trash: Annotated[bool, Field(description="Move to the desktop's trash instead.")] = False,
    ) -> Moved:
        """Delete a file, an empty folder, or a link (not its target)."""
        place = self.policy.writable(path)
        return await in_thread(
            lambda stop: tree.delete(place, recursive=recursive, trash=trash, stop=stop), what="Deleting", long=True
        )

    def _apply(self, patches: list[FilePatch], dry_run: bool, stop: Stop) -> Edited:
        changes: list[Change] = []
        for patch in patches:
            place = self._patched(patch)
            revise = partial(apply_hunks, patch=patch, shown=quote(place.display), stop=stop)
            changes.append(Change(place, revise, creates=patch.creates, deletes=patch.deletes))
        return change_files(changes, dry_run=dry_run, stop=stop)

    def _patched(self, patch: FilePatch) -> Writable:
        """The file of a patch: git puts `a/` before its name, other tools do not."""
        if patch.path != patch.written and not patch.creates:
            try:
                literal = self.policy.writable(patch.written)
                status(literal)
            except Problem:
                pass
            else:
                return literal
        if not patch.path:
            raise Invalid("The patch names no file.")
        return self.policy.writable(patch.path)
