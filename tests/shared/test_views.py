"""Views: what is told to which host, and pages that are what their sources say, small, and closed to the world."""

import base64
import gzip
import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.extension import advertise
from mcp.shared.exceptions import MCPError
from mcp_types import TextResourceContents

from e2e import npm
from mcp_batteries.assemble import Assembled, assemble
from mcp_batteries.declare import tool
from mcp_batteries.settings import Settings
from mcp_batteries.views import TABLE

ROOT = Path(__file__).parents[2]
VIEWS = ROOT / "shared" / "views"
BUILT = json.loads((VIEWS / "built.json").read_text("utf-8"))
MOST = 150_000
"""Bytes of a page, compressed."""
APPS = advertise("io.modelcontextprotocol/ui", {"mimeTypes": ["text/html;profile=mcp-app"]})
OTHER = advertise("io.modelcontextprotocol/ui", {"mimeTypes": ["text/html;profile=another"]})


@dataclass(frozen=True)
class Room:
    @tool("Get rows", view=TABLE)
    async def get_rows(self) -> str:
        """Get rows."""
        return "[0 rows]"

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
        return {item.name: item.meta for item in (await client.list_tools()).tools}


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_views_are_told_only_to_hosts_that_show_them(mode: str) -> None:
    for extensions in ([], [OTHER]):
        assert await tools(build(), mode, extensions) == {"get_rows": None, "get_text": None}
    table = {"resourceUri": "ui://mcp-batteries/table"}
    assert await tools(build(), mode, [APPS]) == {
        "get_rows": {"ui": table},
        "get_details": {"ui": {"visibility": ["app"]}},
        "get_more": {"ui": {**table, "visibility": ["app"]}},
        "get_text": None,
    }
    assert "get_more" not in await tools(build(read_only=True), mode, [APPS])


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_page_is_read_by_its_uri_and_listed_nowhere(mode: Any) -> None:
    async with Client(build(), mode=mode, extensions=[APPS]) as client:
        [contents] = (await client.read_resource(TABLE.uri)).contents
        assert isinstance(contents, TextResourceContents)
        assert contents.mime_type == "text/html;profile=mcp-app"
        assert contents.text == TABLE.page()
        assert contents.meta == {"ui": {"csp": {}, "permissions": {"clipboardWrite": {}}, "prefersBorder": True}}
        assert (await client.list_resources()).resources == []
        with pytest.raises(MCPError):
            await client.read_resource("ui://mcp-batteries/plan")


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
    # Names of XML vocabularies are no addresses.
    assert not re.findall(r"(?:https?:)?//(?!www\.w3\.org/)[\w-]+\.[a-z]{2,}", script.replace("\\/", "/") + style)


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


def test_a_build_gives_the_same_bytes(tmp_path: Path) -> None:
    copy = tmp_path / "shared" / "views"
    shutil.copytree(VIEWS, copy, ignore=shutil.ignore_patterns("node_modules"))
    npm.run("ci", "--omit=dev", "--prefer-offline", cwd=copy)
    out = tmp_path / "out"
    subprocess.run([npm.NODE, "build.mjs", str(out)], cwd=copy, env=npm.environment(), check=True, timeout=120)
    for name in [*BUILT["pages"], "shared/views/built.json"]:
        assert (out / name).read_text("utf-8") == (ROOT / name).read_text("utf-8"), f"{name}: build again"
