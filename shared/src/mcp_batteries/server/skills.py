"""Skills over MCP (`io.modelcontextprotocol/skills`, SEP-2640): how to do a piece of work well, for a model to read.

A skill is a folder with a `SKILL.md`, as agentskills.io describes it; each of its files is a resource. Clients that do
not know the extension do not notice it: it has separate methods, and its resources are in no other list.
"""

from __future__ import annotations

import hashlib
import json
import mimetypes
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast
from urllib.parse import unquote

from mcp.server.context import ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, PaginatedRequestParams, RequestParams, TextResourceContents

from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.errors import quote
from mcp_batteries.server.list_pages import page_of

__all__ = ["ENTRY", "PackagedSkills", "Skill", "SkillSource", "SkillsExtension", "skill_of"]

ENTRY = "SKILL.md"
_FOLDER_MIME_TYPE = "inode/directory"
_MAX_FRONT_MATTER = 16 * 1024
_FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_MAX_NAME = 64
_MAX_DESCRIPTION = 1024


@dataclass(frozen=True)
class SkillFile:
    """One file of a skill; `path` is relative to the skill's folder."""

    path: str
    uri: str
    digest: str
    size: int

    @property
    def mime_type(self) -> str:
        if self.path.endswith(".md"):
            return "text/markdown"
        return mimetypes.guess_type(self.path, strict=False)[0] or "application/octet-stream"


@dataclass(frozen=True)
class Skill:
    """A skill as `skills/list` shows it.

    Attributes:
        root: the URI of its folder, without a slash at the end.
        front_matter: the front matter of its `SKILL.md`, as JSON.
    """

    root: str
    front_matter: Mapping[str, Any]
    files: tuple[SkillFile, ...]

    @property
    def uri(self) -> str:
        return f"{self.root}/{ENTRY}"

    def entry(self) -> dict[str, Any]:
        resources = [{"uri": file.uri, "digest": file.digest, "size": file.size} for file in self.files]
        return {"uri": self.uri, "frontmatter": dict(self.front_matter), "resources": resources}

    def children(self, uri: str) -> list[dict[str, Any]] | None:
        """Return the entries directly in the folder at `uri`; None if it is not a folder of this skill."""
        if uri != self.root and not uri.startswith(f"{self.root}/"):
            return None
        entries: dict[str, dict[str, Any]] = {}
        for file in self.files:
            if not file.uri.startswith(f"{uri}/"):
                continue
            name, in_folder, _ = file.uri.removeprefix(f"{uri}/").partition("/")
            entry: dict[str, Any] = {"uri": f"{uri}/{name}", "name": unquote(name)}
            if in_folder:
                entry["mimeType"] = _FOLDER_MIME_TYPE
            else:
                entry["mimeType"] = file.mime_type
                entry["size"] = file.size
            entries.setdefault(name, entry)
        return [entries[name] for name in sorted(entries)] or None


class SkillSource(Protocol):
    """Where skills come from.

    Attributes:
        seconds: how long the answers certainly stay true.
    """

    @property
    def seconds(self) -> float: ...

    async def skills(self, around: str | None = None) -> Sequence[Skill]:
        """Return all skills; if `around` is given, at least those whose folder contains that URI."""
        ...

    async def contents(self, uri: str) -> TextResourceContents | None:
        """Return the file at `uri`; None if it is not a skill's file, or already a resource of the server."""
        ...


def skill_of(root: str, files: Mapping[str, tuple[str, bytes]]) -> Skill | None:
    """Return the skill in the folder `root`; None if its `SKILL.md` is not valid.

    Args:
        files: the URI and the bytes of each file, by its path in the folder.
    """
    if ENTRY not in files:
        return None
    _, entry_data = files[ENTRY]
    front_matter = _front_matter(entry_data)
    if front_matter is None:
        return None
    skill_files: list[SkillFile] = []
    for path in sorted(files, key=lambda path: (path != ENTRY, path)):
        uri, data = files[path]
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        skill_files.append(SkillFile(path, uri, digest, len(data)))
    return Skill(root, front_matter, tuple(skill_files))


def _front_matter(data: bytes) -> dict[str, Any] | None:
    """Return the front matter of a `SKILL.md`; None if it is not valid."""
    import yaml

    match = _FRONT_MATTER.match(data.decode("utf-8", "replace"))
    if match is None or len(match[1]) > _MAX_FRONT_MATTER:
        return None
    try:
        # Aliases let a few lines become any number of values.
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(match[1])):  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            return None
        values: Any = json.loads(json.dumps(yaml.safe_load(match[1]), default=str, allow_nan=False))
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return None
    if not isinstance(values, dict):
        return None
    front_matter = cast("dict[str, Any]", values)
    if not _is_name(front_matter.get("name")) or not _is_description(front_matter.get("description")):
        return None
    return front_matter


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _MAX_NAME and _NAME.fullmatch(value) is not None


def _is_description(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _MAX_DESCRIPTION


class PackagedSkills:
    """The skills in the folder `skills` of a server's package, at `skill://<server>/<skill>/`.

    Args:
        module: the `__file__` of a module beside that folder.
    """

    seconds = 3600.0

    def __init__(self, server: str, module: str) -> None:
        self._server = server
        self._folder = Path(module).with_name("skills")

    async def skills(self, around: str | None = None) -> Sequence[Skill]:
        package = await run_in_thread(lambda stop: self._package)
        return package.skills

    async def contents(self, uri: str) -> TextResourceContents | None:
        if not uri.startswith(f"skill://{self._server}/"):
            return None
        package = await run_in_thread(lambda stop: self._package)
        data = package.contents.get(uri)
        if data is None:
            return None
        mime_type = SkillFile(uri, uri, "", 0).mime_type
        return TextResourceContents(uri=uri, mime_type=mime_type, text=data.decode())

    @cached_property
    def _package(self) -> _Package:
        package = _Package([], {})
        for entry in sorted(self._folder.glob(f"*/{ENTRY}")):
            folder = entry.parent
            root = f"skill://{self._server}/{folder.name}"
            files: dict[str, tuple[str, bytes]] = {}
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    name = path.relative_to(folder).as_posix()
                    files[name] = (f"{root}/{name}", path.read_bytes())
            skill = skill_of(root, files)
            if skill is not None:
                package.skills.append(skill)
                package.contents.update(files.values())
        return package


class _Package(NamedTuple):
    """The skills of a package, and the contents of their files by URI."""

    skills: list[Skill]
    contents: dict[str, bytes]


class _Get(RequestParams):
    uri: str


class _ReadFolder(PaginatedRequestParams):
    uri: str


class SkillsExtension(Extension):
    """Serves `skills/list`, `skills/get` and `resources/directory/read` for the skills of `sources`."""

    identifier = "io.modelcontextprotocol/skills"

    def __init__(self, sources: Sequence[SkillSource]) -> None:
        self._sources = sources

    def settings(self) -> dict[str, Any]:
        return {"directoryRead": True}

    def methods(self) -> Sequence[MethodBinding]:
        return (
            MethodBinding("skills/list", PaginatedRequestParams, self._list),
            MethodBinding("skills/get", _Get, self._get),
            MethodBinding("resources/directory/read", _ReadFolder, self._read_folder),
        )

    async def _list(self, ctx: ServerRequestContext[Any, Any], params: PaginatedRequestParams) -> dict[str, Any]:
        skills = [skill.entry() for skill in await self._skills()]
        entries, next_cursor = page_of("skills", skills, params.cursor)
        return {"skills": entries, **_next(next_cursor), **self._cache_hint()}

    async def _get(self, ctx: ServerRequestContext[Any, Any], params: _Get) -> dict[str, Any]:
        for skill in await self._skills(params.uri):
            if skill.uri == params.uri:
                return {"skill": skill.entry(), **self._cache_hint()}
        raise MCPError(INVALID_PARAMS, f"There is no skill {quote(params.uri)}. `skills/list` has those there are.")

    async def _read_folder(self, ctx: ServerRequestContext[Any, Any], params: _ReadFolder) -> dict[str, Any]:
        for skill in await self._skills(params.uri):
            children = skill.children(params.uri)
            if children is not None:
                entries, next_cursor = page_of("skill folder", children, params.cursor, params.uri)
                return {"resources": entries, **_next(next_cursor)}
        raise MCPError(INVALID_PARAMS, f"{quote(params.uri)} is not a folder of a skill. `skills/list` has the skills.")

    async def _skills(self, around: str | None = None) -> Sequence[Skill]:
        skills: list[Skill] = []
        for source in self._sources:
            skills.extend(await source.skills(around))
        return skills

    def _cache_hint(self) -> dict[str, Any]:
        return {"ttlMs": int(min(source.seconds for source in self._sources) * 1000), "cacheScope": "private"}


def _next(cursor: str | None) -> dict[str, str]:
    if cursor is None:
        return {}
    return {"nextCursor": cursor}
