"""The server in this process, asked as a client asks."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequestParams, ElicitResult

from mcp_batteries.settings import load
from mcp_git.server import build
from mcp_git.settings import Settings

__all__ = ["Asking", "every_change", "everything", "gates", "serving"]


class Asking:
    """A client, and what its calls answer as text."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def __call__(self, tool: str, **arguments: Any) -> str:
        """The text of an answer; of a failure behind `failed: `."""
        result = await self.client.call_tool(tool, arguments)
        text = "".join(getattr(block, "text", "") for block in result.content)
        return f"failed: {text}" if result.is_error else text

    async def read(self, uri: str) -> str:
        try:
            [contents] = (await self.client.read_resource(uri)).contents
        except MCPError as error:
            return f"failed: {error.error.message}"
        return getattr(contents, "text", "") or getattr(contents, "blob", "")


@asynccontextmanager
async def serving(
    *arguments: str | Path, agrees: Callable[[str], bool] | None = None, mode: Any = "auto"
) -> AsyncGenerator[Asking]:
    """The server behind a client.

    Args:
        agrees: the user, who is given each question; None for a client that can't ask.
    """

    async def answer(context: Any, params: ElicitRequestParams) -> ElicitResult:
        assert agrees is not None
        return ElicitResult(action="accept" if agrees(params.message) else "decline", content={"confirm": True})

    server = build(load(Settings, list(map(str, arguments))))
    async with Client(server, mode=mode, elicitation_callback=answer if agrees else None) as client:
        yield Asking(client)


async def everything(asking: Asking, path: str = "notes.txt") -> str:
    """What all tools and resources say of a repository, one after the other."""
    said = [
        await asking("get_status"),
        await asking("list_commits", graph=True, all_branches=True),
        await asking("list_commits", path=path, text="o"),
        await asking("read_diff"),
        await asking("read_diff", only="staged"),
        await asking("read_diff", only="unstaged"),
        await asking("read_diff", rev="HEAD"),
        await asking("read_diff", rev="HEAD~1..HEAD"),
        await asking("get_blame", path=path),
        await asking("get_blame", path=path, rev="HEAD"),
        await asking("get_merge_base", one="HEAD~1"),
        await asking("read_file", path=path),
        await asking("list_files", recursive=True),
        await asking("search_text", pattern="one"),
    ]
    kinds = ("branches", "tags", "remotes", "stashes", "worktrees", "reflog")
    said += [await asking("list_refs", kind=kind) for kind in kinds]
    uris = [str(resource.uri) for resource in (await asking.client.list_resources()).resources]
    # What the operator has set is no word of a repository's.
    said += [await asking.read(uri) for uri in uris if not uri.startswith("config:")]
    return "\n".join(said)


def gates(folder: Path) -> list[str]:
    """Return the options that open every gate, with folders beside the repositories in `folder`."""
    return [
        "--write", "--fetch", "--push", f"--worktree-folder={folder / 'worktrees'}", f"--remote-folder={folder}",
    ]  # fmt: skip


async def every_change(asking: Asking, path: str = ".", repo: str = "") -> str:
    """Return what all tools that change something say, one after the other, of a repository with two commits.

    Args:
        path: What is named where a tool wants a path.
    """
    changes: list[tuple[str, dict[str, Any]]] = [
        ("stage_files", {"paths": [path]}),
        ("stage_files", {"paths": [path], "unstage": True}),
        ("create_commit", {"message": "with what is named", "paths": [path]}),
        ("create_commit", {"message": "with all that changed", "all_tracked": True}),
        ("create_branch", {"name": "side", "rev": "HEAD~1", "switch": True}),
        ("run_switch", {"rev": "main"}),
        ("run_stash", {"untracked": True}),
        ("run_stash", {"action": "pop"}),
        ("run_stash", {}),
        ("run_stash", {"action": "apply"}),
        ("run_restore", {"paths": [path]}),
        ("run_restore", {"paths": ["."], "rev": "HEAD~1"}),
        ("create_commit", {"message": "as it was", "all_tracked": True}),
        ("revert_commit", {"rev": "HEAD"}),
        ("run_reset", {"rev": "HEAD~1", "mode": "hard"}),
        ("run_reset", {"rev": "HEAD", "mode": "mixed"}),
        ("run_merge", {"rev": "side"}),
        ("run_rebase", {"rev": "side"}),
        ("create_tag", {"name": "v1", "message": "the first"}),
        ("create_worktree", {"name": "linked"}),
        ("delete_worktree", {"name": "linked", "force": True}),
        ("move_path", {"path": "notes.txt", "to": "moved.txt"}),
        ("create_branch", {"name": "renamed", "rename": "side"}),
        ("run_fetch", {}),
        ("run_pull", {}),
        ("run_push", {}),
    ]
    said: list[str] = []
    for tool, arguments in changes:
        if repo and tool != "delete_worktree":
            arguments["repo"] = repo
        said.append(await asking(tool, **arguments))
    return "\n".join(said)
