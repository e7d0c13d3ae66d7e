"""Skills over MCP: listed, got, read and digested by clients that know them, invisible for all others."""

import base64
import hashlib
import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_batteries.server.skills import ENTRY, PackagedSkills, skill_of
from mcp_batteries.testing.wire import MODERN, StdioWire, WireError
from thread_wire import wire_to

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"
SKILLS = "io.modelcontextprotocol/skills"
pytestmark = pytest.mark.anyio


def serving(folder: Path, revision: str = MODERN, *, among: bool = False) -> StdioWire:
    if not among:
        return wire_to("mcp_fs", [folder], revision=revision)
    command = [sys.executable, "-m", "mcp_batteries.mount", "fs", str(folder), "--", "weather"]
    return StdioWire(command, revision=revision)


def write_skill(folder: Path, name: str, description: str = "What it is for.", **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ENTRY).write_text(f"---\nname: {name}\ndescription: {description}\n---\n\nDo it.\n", "utf-8")
    for path, text in files.items():
        (folder / path).write_text(text, "utf-8")
    return folder


async def contents(wire: StdioWire, uri: str) -> bytes:
    [content] = (await wire.request("resources/read", {"uri": uri}))["contents"]
    return content["text"].encode() if "text" in content else base64.b64decode(content["blob"])


async def all_skills(wire: StdioWire) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        page = await wire.request("skills/list", cursor)
        found += page["skills"]
        if "nextCursor" not in page:
            return found
        cursor = {"cursor": page["nextCursor"]}


@pytest.mark.parametrize("snapshot", sorted(SNAPSHOTS.glob("mcp-*.json")), ids=lambda path: path.stem)
async def test_the_skills_of_every_server_name_tools_it_has(snapshot: Path) -> None:
    server = snapshot.stem
    module = importlib.import_module(f"{server.replace('-', '_')}.server")
    source = PackagedSkills(server, str(module.__file__))
    tools = {tool["name"]: tool for tool in json.loads(snapshot.read_text("utf-8"))["tools"]}
    arguments = {name for tool in tools.values() for name in tool["inputSchema"]["properties"]}
    skills = await source.skills()
    assert len(skills) == len(list(Path(str(module.__file__)).with_name("skills").iterdir())) > 0
    for skill in skills:
        content = await source.contents(skill.uri)
        assert content is not None
        # A name that nothing has would send a model nowhere.
        assert set(re.findall(r"`([a-z]+_[a-z_]+)`", content.text)) <= {*tools, *arguments}, skill.uri


@pytest.mark.diagonal
@pytest.mark.parametrize("among", [False, True], ids=["alone", "among others"])
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_a_client_lists_gets_reads_and_walks(revision: str, among: bool, tmp_path: Path) -> None:
    folder = write_skill(tmp_path / ".claude" / "skills" / "tidy up", "tidy-up", **{"notes ä.md": "# Notes\n"})
    (folder / "data").mkdir()
    (folder / "data" / "raw.bin").write_bytes(b"\x00\xff")
    async with serving(tmp_path, revision, among=among) as wire:
        opened = await wire.open()
        # Handshakes have no place for extensions; their methods work there as well.
        assert opened["capabilities"].get("extensions", {SKILLS: {"directoryRead": True}})[SKILLS] == {
            "directoryRead": True
        }
        entries = await all_skills(wire)
        own = next(item for item in entries if item["frontmatter"]["name"] == "tidy-up")
        assert any(item["uri"].startswith("skill://mcp-weather/") for item in entries) == among
        assert own["uri"] == (folder / ENTRY).as_uri()
        assert own["frontmatter"] == {"name": "tidy-up", "description": "What it is for."}
        assert (await wire.request("skills/get", {"uri": own["uri"]}))["skill"] == own
        for entry in entries:
            for file in entry["resources"]:
                data = await contents(wire, file["uri"])
                assert file == {
                    "uri": file["uri"], "digest": f"sha256:{hashlib.sha256(data).hexdigest()}", "size": len(data),
                }  # fmt: skip
        walked: list[str] = []
        folders = [folder.as_uri()]
        while folders:
            at = folders.pop()
            for child in (await wire.request("resources/directory/read", {"uri": at}))["resources"]:
                (folders if child["mimeType"] == "inode/directory" else walked).append(child["uri"])
        assert sorted(walked) == sorted(item["uri"] for item in own["resources"])


async def test_what_does_not_exist_is_said(tmp_path: Path) -> None:
    write_skill(tmp_path / "skills" / "one", "one")
    async with serving(tmp_path) as wire:
        await wire.open()
        for method, uri in (
            ("skills/get", "skill://mcp-fs/none/SKILL.md"),
            ("resources/directory/read", (tmp_path / "skills").as_uri()),
            ("resources/directory/read", (tmp_path / "skills" / "one").as_uri() + "/"),
            ("resources/read", "skill://mcp-fs/../../etc/passwd"),
        ):
            with pytest.raises(WireError) as error:
                await wire.request(method, {"uri": uri})
            assert error.value.code == -32602


async def test_an_edited_skill_is_heard_of_and_has_another_digest(tmp_path: Path) -> None:
    entry = write_skill(tmp_path / "skills" / "live", "live") / ENTRY
    async with serving(tmp_path) as wire:
        await wire.open()

        async def digest() -> str:
            skill = (await wire.request("skills/get", {"uri": entry.as_uri()}))["skill"]
            return skill["resources"][0]["digest"]

        before = await digest()
        await wire.subscribe(entry.as_uri())
        entry.write_text(entry.read_text("utf-8") + "Then check it.\n", "utf-8")
        await wire.notification("notifications/resources/updated")
        assert await digest() != before


@pytest.mark.parametrize(
    "text",
    [
        "no front matter",
        "---\nname: x\n---\n",
        "---\nname: Not A Name\ndescription: d\n---\n",
        "---\nname: x\ndescription: ''\n---\n",
        "---\nname: x\ndescription: &a d\nmore: *a\n---\n",
        "---\nname: [x\ndescription: d\n---\n",
        "---\n- name\n---\n",
        "---\nname: x\ndescription: d\nnumber: .nan\n---\n",
        "---\nname: x\ndescription: d\n",
    ],
)
def test_what_is_no_skill_is_left_out(text: str) -> None:
    assert skill_of("skill://a/x", {ENTRY: (f"skill://a/x/{ENTRY}", text.encode())}) is None


@given(
    st.binary(max_size=300) | st.text(max_size=300).map(lambda text: f"---\n{text}\n---\n".encode("utf-8", "replace"))
)
def test_no_front_matter_breaks_the_list(data: bytes) -> None:
    skill = skill_of("skill://a/x", {ENTRY: (f"skill://a/x/{ENTRY}", data)})
    assert skill is None or json.dumps(skill.entry())


async def test_a_skill_with_a_secret_or_a_link_out_tells_nothing_of_it(tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("private", "utf-8")
    served = tmp_path / "served"
    write_skill(served / "skills" / "keys", "keys", **{"id_rsa": "-----BEGIN"})
    try:
        (write_skill(served / "skills" / "linked", "linked") / "more.md").symlink_to(tmp_path / "outside.md")
    except OSError:
        pytest.skip("this system makes no links")
    async with serving(served) as wire:
        await wire.open()
        found = {item["frontmatter"]["name"]: item for item in await all_skills(wire)}
    assert "keys" not in found
    assert [item["uri"].rpartition("/")[2] for item in found["linked"]["resources"]] == [ENTRY]
