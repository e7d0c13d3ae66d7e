"""Views: what is told to which host, and pages that are what their sources say, small, and closed to the world."""

import base64
import gzip
import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.extension import advertise
from mcp.shared.exceptions import MCPError
from mcp_types import TextResourceContents

from contract.cases import CASES
from e2e import npm
from mcp_batteries.server.assemble import Assembled, assemble
from mcp_batteries.server.calling.results import TextResult
from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.views import TABLE
from mcp_batteries.settings import Settings
from mcp_batteries.testing.wire import MODERN, StdioWire

ROOT = Path(__file__).parents[2]
VIEWS = ROOT / "shared" / "views"
BUILT = json.loads((VIEWS / "built.json").read_text("utf-8"))
MOST = 150_000
"""Bytes of a page, compressed."""
APPS = advertise("io.modelcontextprotocol/ui", {"mimeTypes": ["text/html;profile=mcp-app"]})
OTHER = advertise("io.modelcontextprotocol/ui", {"mimeTypes": ["text/html;profile=another"]})
HOSTS: dict[str, tuple[Sequence[Any], bool]] = {
    "without the extension": ([], False),
    "of other pages": ([OTHER], False),
    "that name no pages": ([advertise("io.modelcontextprotocol/ui")], False),
    "whose pages are no list": ([advertise("io.modelcontextprotocol/ui", {"mimeTypes": {"text/html": {}}})], False),
    "of another extension": ([advertise("io.modelcontextprotocol/tasks")], False),
    "of these and other pages": (
        [advertise("io.modelcontextprotocol/ui", {"mimeTypes": ["text/html", "text/html;profile=mcp-app"], "more": 1})],
        True,
    ),
}
GROWTH = 80
"""Bytes by which a tool with a view may grow `tools/list` for hosts with the extension."""


@dataclass(frozen=True)
class Rows(TextResult):
    @property
    def for_views(self) -> dict[str, list[int]]:
        return {"widths": [1, 2]}

    def text(self) -> str:
        return "[0 rows]"


@dataclass(frozen=True)
class Room:
    @tool("Get rows", view=TABLE)
    async def get_rows(self) -> Rows:
        """Get rows."""
        return Rows()

    @tool("Get details", app_only=True)
    async def get_details(self) -> str:
        """Get what only the view shows."""
        return "details"

    @tool("Get more", effect="write", view=TABLE, app_only=True)
    async def get_more(self) -> str:
        """Change what only the view may."""
        return "more"

    @tool("Get text")
    async def get_text(self) -> str:
        """Get text."""
        return "text"


def build(*, read_only: bool = False) -> Assembled:
    settings = Settings(read_only=read_only)
    return assemble("toy", settings, rooms=[Room()], title="Toy", version="1", instructions="")


async def tools(server: Assembled, mode: Any, extensions: Sequence[Any]) -> dict[str, Any]:
    async with Client(server, mode=mode, extensions=extensions) as client:
        listed = (await client.list_tools()).tools
    return {item.name: item.meta for item in listed if item.name != "run_script"}


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_views_are_told_only_to_hosts_that_show_them(mode: str) -> None:
    for extensions, shows in HOSTS.values():
        found = await tools(build(), mode, extensions)
        assert found == {"get_rows": None, "get_text": None, "call_tools": None} or (shows and found["get_rows"])
    table = {"resourceUri": "ui://mcp-batteries/table"}
    assert await tools(build(), mode, [APPS]) == {
        "get_rows": {"ui": table},
        "get_details": {"ui": {"visibility": ["app"]}},
        "get_more": {"ui": {**table, "visibility": ["app"]}},
        "get_text": None,
        "call_tools": None,
    }
    assert "get_more" not in await tools(build(read_only=True), mode, [APPS])


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_what_only_views_read_is_sent_only_to_hosts_that_show_them(mode: Any) -> None:
    for extensions, shows in HOSTS.values():
        async with Client(build(), mode=mode, extensions=extensions) as client:
            result = await client.call_tool("get_rows", {})
            assert ((result.meta or {}).get("widths") == [1, 2]) is shows
    within = await build().call_tool("get_rows", {})
    assert isinstance(within, dict) and "_meta" not in within


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_page_is_read_by_its_uri_and_listed_nowhere(mode: Any) -> None:
    async with Client(build(), mode=mode, extensions=[APPS]) as client:
        [contents] = (await client.read_resource(TABLE.uri)).contents
        assert isinstance(contents, TextResourceContents)
        assert contents.mime_type == "text/html;profile=mcp-app"
        assert contents.text == TABLE.page()
        assert contents.meta == {"ui": {"csp": {}, "permissions": {"clipboardWrite": {}}, "prefersBorder": True}}
        assert [item.uri for item in (await client.list_resources()).resources] == ["config://settings"]
        with pytest.raises(MCPError):
            await client.read_resource("ui://mcp-batteries/plan")


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_the_extension_is_found_where_each_revision_has_it(revision: str) -> None:
    """2025-11-25 in the handshake, for good; 2026-07-28 in the `_meta` of each request, for that one."""
    ui = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
    command = [sys.executable, "-m", "mcp_sqlite", "--demo"]

    async def shown(wire: StdioWire) -> bool:
        listed = (await wire.request("tools/list"))["tools"]
        return any("_meta" in tool for tool in listed)

    async with StdioWire(command, revision=revision, capabilities=ui) as wire:
        await wire.open()
        assert await shown(wire)
        wire.capabilities = {}
        assert await shown(wire) is (revision != MODERN)
    elsewhere = {"experimental": ui["extensions"], "io.modelcontextprotocol/ui": ui["extensions"]}
    async with StdioWire(command, revision=revision, capabilities=elsewhere) as wire:
        await wire.open()
        assert not await shown(wire)


@pytest.mark.share(4)
@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("package", CASES)
async def test_a_host_without_views_loses_nothing_and_one_with_them_pays_little(
    package: str, mode: Any, tmp_path: Path
) -> None:
    case = CASES[package](tmp_path)

    async def seen(extensions: Sequence[Any]) -> tuple[list[dict[str, Any]], str, Any]:
        async with Client(case.build(), mode=mode, extensions=extensions) as client:
            listed = [tool.model_dump(by_alias=True, exclude_none=True) for tool in (await client.list_tools()).tools]
            result = await client.call_tool(case.read[0], dict(case.read[1]))
            # How old data is changes between two calls.
            said = re.sub(r'\d+ s old|"age_s":\d+', "", result.model_dump_json(exclude_none=True, exclude={"meta"}))
            return listed, said, result

    plain, said, _ = await seen([])
    rich, told, result = await seen([APPS])
    assert said == told
    assert not any("_meta" in tool for tool in plain)
    assert [{key: value for key, value in tool.items() if key != "_meta"} for tool in rich] == plain
    assert len(compact(rich)) - len(compact(plain)) <= GROWTH * sum("_meta" in tool for tool in rich)
    # Nothing is said to views alone: what they draw is what the model reads.
    assert [block.type for block in result.content] == ["text"]


def compact(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def test_the_page_of_views_says_what_they_may_cost() -> None:
    said = " ".join((ROOT / "docs/views.md").read_text("utf-8").split())
    assert f"at most {GROWTH} bytes for each tool" in said and f"at most {MOST // 1000} kB compressed" in said


@pytest.mark.parametrize("name", BUILT["pages"])
def test_a_page_is_small_and_lets_nothing_in(name: str) -> None:
    page = (ROOT / name).read_bytes()
    assert len(gzip.compress(page, 9)) <= MOST
    text = page.decode()
    [policy] = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]+)">', text)
    [script] = re.findall(r"<script>(.+?)</script>", text, re.DOTALL)
    [style] = re.findall(r"<style>(.+?)</style>", text, re.DOTALL)

    def allowed(part: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()}'"

    assert policy.split("; ") == [
        "default-src 'none'", f"script-src {allowed(script)}", f"style-src {allowed(style)}",
        "img-src data:", "media-src data:", "font-src data:", "base-uri 'none'", "form-action 'none'",
        "require-trusted-types-for 'script'", "trusted-types 'none'",
    ]  # fmt: skip
    assert text.index("Content-Security-Policy") < text.index("<style>") < text.index("<script>")
    around = text.replace(script, "").replace(style, "")
    assert not re.search(r"\b(?:src|href|on\w+)=", around)
    # Names of XML vocabularies are no addresses, and neither is what libraries say in a message where to read on.
    assert not re.findall(
        r"(?:https?:)?//(?!www\.w3\.org/|github\.com/(?:highlightjs|markedjs)/)[\w-]+\.[a-z]{2,}",
        script.replace("\\/", "/") + style,
    )


def test_no_source_makes_markup_or_code_of_data() -> None:
    for path in (VIEWS / "src").rglob("*.ts*"):
        found = re.findall(
            r"dangerouslySetInnerHTML|\b(?:innerHTML|outerHTML|insertAdjacentHTML|srcdoc|eval|Function|import)\(?\s*[=(]",
            path.read_text("utf-8"),
        )
        assert not found, f"{path.name}: {found}"


def test_pages_are_of_these_sources() -> None:
    files = [path for path in (VIEWS / "src").rglob("*") if path.is_file()]
    files += [VIEWS / name for name in ("build.mjs", "package.json", "package-lock.json")]
    lines = {
        path.relative_to(VIEWS).as_posix(): hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n")).hexdigest()
        for path in files
    }
    listed = "".join(f"{lines[name]}  {name}\n" for name in sorted(lines))
    assert hashlib.sha256(listed.encode()).hexdigest() == BUILT["sources"], "run `npm ci && npm run build` there"
    for name, digest in BUILT["pages"].items():
        assert hashlib.sha256((ROOT / name).read_bytes()).hexdigest() == digest, f"{name} is not as built"
    found = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.glob("s*/**/pages/*.html")
        if "node_modules" not in path.parts
    }
    assert found == set(BUILT["pages"])


def test_the_lock_names_no_registry() -> None:
    for folder in (VIEWS, ROOT / "tests" / "e2e" / "views"):
        lock = json.loads((folder / "package-lock.json").read_text("utf-8"))
        assert not [name for name, package in lock["packages"].items() if "resolved" in package]
        assert all(package.get("integrity") for name, package in lock["packages"].items() if name)
        wanted = json.loads((folder / "package.json").read_text("utf-8"))
        versions = {**wanted["dependencies"], **wanted.get("devDependencies", {})}.values()
        assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions)


@pytest.mark.slow
def test_a_build_gives_the_same_bytes(tmp_path: Path) -> None:
    copy = tmp_path / "shared" / "views"
    shutil.copytree(VIEWS, copy, ignore=shutil.ignore_patterns("node_modules"))
    npm.run("ci", "--omit=dev", "--prefer-offline", cwd=copy)
    # Twice, in another place and zone each: neither a path nor the time may be in a page.
    for out, zone in ((tmp_path / "out", "UTC"), (tmp_path / "another" / "one", "Pacific/Auckland")):
        environment = {**npm.environment(), "TZ": zone, "LANG": "C"}
        subprocess.run([npm.NODE, "build.mjs", str(out)], cwd=copy, env=environment, check=True, timeout=120)
        for name in [*BUILT["pages"], "shared/views/built.json"]:
            assert (out / name).read_bytes() == (ROOT / name).read_bytes(), f"{name}: build again"
