"""What changes files and folders; none of it is offered by a read-only server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from mcp_batteries.errors import Invalid, Problem, quote
from mcp_batteries.server.declare import tool
from mcp_fs.engine.files.edit import Replacement
from mcp_fs.engine.files.patch import FilePatch, parse
from mcp_fs.engine.service import Engine
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
    engine: Engine

    @tool("Write file", effect="destroy", idempotent=True)
    async def write_file(self, path: RelativePath, content: str, overwrite: Overwrite = False) -> Written:
        """Create a text file; its folder must exist.

        To change a part of a file use `edit_file`.
        """
        if path.endswith("/"):
            raise Invalid(f"{quote(path)} ends as folders do.", "Leave out the last slash, or use `create_directory`.")
        return await self.engine.write(self.policy.writable(path), content, overwrite=overwrite)

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
        return await self.engine.edit(place, wanted, dry_run=dry_run, expected_hash=expected_hash)

    @tool("Edit files", effect="destroy", view=DIFF)
    async def edit_files(
        self,
        patch: Annotated[str, Field(description="Unified diff; /dev/null creates or deletes a file.")],
        dry_run: DryRun = False,
    ) -> Edited:
        """Apply a unified diff to one or several files, all or none, context matched exactly."""
        files = [(await self._patched(file), file) for file in parse(patch)]
        return await self.engine.patch(files, dry_run=dry_run)

    @tool("Create directory", effect="write", idempotent=True)
    async def create_directory(self, path: RelativePath) -> Moved:
        """Create a folder and those above it that are missing."""
        return await self.engine.create_folder(self.policy.writable(path))

    @tool("Copy file", effect="destroy")
    async def copy_file(self, source: RelativePath, target: RelativePath, overwrite: Overwrite = False) -> Moved:
        """Copy a file or a whole folder to a new path."""
        return await self.engine.copy(self.policy.readable(source), self.policy.writable(target), overwrite=overwrite)

    @tool("Move file", effect="destroy")
    async def move_file(self, source: RelativePath, target: RelativePath, overwrite: Overwrite = False) -> Moved:
        """Move or rename a file or folder; `target` is its new path."""
        return await self.engine.move(self.policy.writable(source), self.policy.writable(target), overwrite=overwrite)

    @tool("Delete file", effect="destroy")
    async def delete_file(
        self,
        path: RelativePath,
        recursive: Annotated[bool, Field(description="Delete a folder with all that is in it.")] = False,
        trash: Annotated[bool, Field(description="Move to the desktop's trash instead.")] = False,
    ) -> Moved:
        """Delete a file, an empty folder, or a link (not its target)."""
        return await self.engine.delete(self.policy.writable(path), recursive=recursive, trash=trash)

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
        return self.policy.writable(patch.path)
