"""The table of contents: builds the server."""

from __future__ import annotations

from importlib.metadata import version

from mcp_batteries.descriptors import raise_descriptor_limit
from mcp_batteries.server.assemble import Assembled, assemble
from mcp_batteries.server.list_changes import ChangeFeedConfig
from mcp_batteries.server.skills import PackagedSkills
from mcp_batteries.user_folders import cache_folder, undo_folder
from mcp_fs.changes import folder_watcher
from mcp_fs.client_roots import ClientRoots
from mcp_fs.completions import Completions
from mcp_fs.engine.documents.converter import keep_texts_in
from mcp_fs.engine.documents.text_store import TextStore
from mcp_fs.engine.handles.open_entries import DESIRED_DESCRIPTORS
from mcp_fs.engine.handles.temp_files import clean_in_background
from mcp_fs.engine.journal.journal import ChangeRecorder
from mcp_fs.engine.journal.store import JournalStore
from mcp_fs.engine.reading.text_page import LineIndex
from mcp_fs.policy import Policy
from mcp_fs.policy.path_arguments import PathArguments
from mcp_fs.prompts import Prompts
from mcp_fs.resources import Resources
from mcp_fs.settings import Settings
from mcp_fs.skills import FolderSkills
from mcp_fs.tools import read, search, undo, write
from mcp_fs.tree_changes import TreeWatcher

__all__ = ["build"]


def build(settings: Settings) -> Assembled:
    """Return the server for the folders in `settings`.

    Raises:
        Unavailable: none of the folders can be served.
    """
    policy = Policy(settings)
    store = _create_journal_store(settings)
    dependencies: list[object] = [policy, PathArguments(policy), settings, LineIndex(), ChangeRecorder(store)]
    rooms: list[object] = [read, search, write]
    if store is not None:
        dependencies.append(store)
        rooms.append(undo)
    rooms += [Resources(policy), Prompts(policy), Completions(policy)]
    raise_descriptor_limit(DESIRED_DESCRIPTORS)
    opens = [clean_in_background(policy)]
    if settings.text_megabytes:
        opens.append(keep_texts_in(TextStore(str(cache_folder(settings.COMMAND)), settings.text_megabytes * 1_000_000)))
    return assemble(
        settings.COMMAND,
        settings,
        rooms=rooms,
        dependencies=dependencies,
        opens=opens,
        sources=[TreeWatcher(policy, settings), folder_watcher(policy, settings)],
        middleware=[ClientRoots(policy)] if settings.client_roots == "narrow" else [],
        follows=ChangeFeedConfig(
            "files",
            ", with the changed lines",
            "To compare two files use `read_diff`.",
            "Paths, globs, URIs. Default: your subscriptions, else all.",
            lambda: [root.uri for root in policy.roots],
        ),
        skills=[PackagedSkills(settings.COMMAND, __file__), FolderSkills(policy)],
        title="Files",
        version=version(settings.COMMAND),
        instructions=_instructions(policy, has_undo=store is not None),
    )


def _create_journal_store(settings: Settings) -> JournalStore | None:
    if settings.read_only or not settings.undo_megabytes:
        return None
    return JournalStore(str(undo_folder()), most_bytes=settings.undo_megabytes * 1_000_000, days=settings.undo_days)


def _instructions(policy: Policy, *, has_undo: bool) -> str:
    # The second of two folders of one name has another, which only this tells.
    folders = ", ".join(
        root.path if root.path.endswith(root.name) else f"{root.path} (as {root.name})" for root in policy.roots
    )
    relative = "it" if len(policy.roots) == 1 else "one of them, beginning with its name"
    instructions = (
        f"Serves {folders}. Paths are relative to {relative}; absolute paths and file:// URIs inside work too, nothing "
        "outside exists here. Search before reading; answers that were cut begin with how to continue."
    )
    if has_undo:
        instructions += " `undo_changes` takes back what the other tools changed."
    return instructions
