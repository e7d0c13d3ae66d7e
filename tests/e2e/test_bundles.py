"""Bundles for Claude Desktop and entries for the registry: valid by the publishers' own programs, and they start."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from e2e import npm
from e2e.installing import ROOT, SERVERS, UV, answers, arguments, data
from tools.bundles import LOCALE, bundle, registry_entry
from tools.members import NAMESPACE, Member

MCPB = "@anthropic-ai/mcpb"
MCPB_VERSION = "2.1.2"
SCRIPTS = Path(sys.executable).parent

each = pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.command)


def mcpb(*words: str | Path) -> subprocess.CompletedProcess[str]:
    program = npm.program(npm.installed(f"{MCPB}@{MCPB_VERSION}"), MCPB)
    command = [npm.NODE, program, *map(str, words)]
    return subprocess.run(command, env=npm.environment(), capture_output=True, text=True, timeout=120)


def skillsaw(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [SCRIPTS / "skillsaw", "lint", folder]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120)


@pytest.mark.share(1)
@each
def test_a_bundle_is_valid_and_packs(server: Member, wheels: Path, tmp_path: Path) -> None:
    folder, packed = tmp_path / "bundle", tmp_path / f"{server.command}.mcpb"
    bundle(server, wheels, folder, root=ROOT)
    done = mcpb("validate", folder / "manifest.json")
    assert done.returncode == 0, done.stdout + done.stderr
    done = mcpb("pack", folder, packed)
    assert done.returncode == 0, done.stdout + done.stderr
    with ZipFile(packed) as archive:
        names = set(archive.namelist())
    assert {"manifest.json", "pyproject.toml", "server.py"} <= names
    assert {LOCALE.format(locale) for locale in ("en-US", "zh-CN")} <= names
    assert len([name for name in names if name.endswith(".whl")]) == 2
    shown = json.loads((folder / "manifest.json").read_text("utf-8"))["screenshots"]
    assert shown and names.issuperset(shown)


@pytest.mark.slow
@pytest.mark.anyio
async def test_an_unpacked_bundle_starts_as_its_manifest_says(wheels: Path, tmp_path: Path) -> None:
    server, folder = SERVERS[0], tmp_path / "bundle"
    bundle(server, wheels, folder, root=ROOT)
    data(tmp_path / "served")
    configuration = json.loads((folder / "manifest.json").read_text("utf-8"))["server"]["mcp_config"]
    assert configuration["command"] == "uv"
    assert [word for word in configuration["args"] if "user_config" in word] == ["${user_config.folder}"]
    words: list[str] = []
    for word in configuration["args"]:
        words += arguments(server, tmp_path / "served") if "user_config" in word else [word]
    # Only this machine's Python and not, as a host would, the newest that uv can download.
    command = [
        UV,
        words[0],
        "--python",
        sys.executable,
        *(word.replace("${__dirname}", str(folder)) for word in words[1:]),
    ]
    await answers(command, server, cwd=tmp_path)


@pytest.mark.share(4)
@each
@pytest.mark.parametrize("spoil", [{"manifest_version": "0.3"}, {"server": None}, {"sever": {}}], ids=str)
def test_a_wrong_manifest_is_found(server: Member, spoil: dict[str, Any], tmp_path: Path) -> None:
    if server is not SERVERS[0]:
        spoil = {"user_config": {"x": {"type": "folder", "title": "x", "description": "x"}}}
    told = json.loads((server.folder / "manifest.json").read_text("utf-8")) | spoil
    (tmp_path / "manifest.json").write_text(json.dumps(told), "utf-8")
    assert mcpb("validate", tmp_path / "manifest.json").returncode != 0


@pytest.mark.share(1)
@pytest.mark.diagonal
@each
@pytest.mark.parametrize("published", [None, True], ids=["as generated", "once published"])
def test_the_registry_takes_the_entry(server: Member, published: bool | None, tmp_path: Path) -> None:
    entry = registry_entry(server, published=published)
    (tmp_path / "server.json").write_text(json.dumps(entry), "utf-8")
    done = skillsaw(tmp_path)
    assert done.returncode == 0 and "mcp-registry" in done.stdout, done.stdout
    assert len(entry["description"]) <= 100


def test_no_entry_sends_anybody_to_a_package_that_is_not_ours() -> None:
    for server in SERVERS:
        entry = json.loads((server.folder / "server.json").read_text("utf-8"))
        assert [package["registryType"] for package in entry["packages"]] == ["oci"]


@pytest.mark.share(1)
@pytest.mark.parametrize(
    "spoil", [{"description": "x" * 101}, {"packages": [{}]}, {"name": "no namespace"}, {"version": None}], ids=str
)
def test_a_wrong_entry_is_found(spoil: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text(json.dumps(registry_entry(SERVERS[0]) | spoil), "utf-8")
    assert skillsaw(tmp_path).returncode != 0


@each
def test_the_package_and_the_image_say_whose_they_are(server: Member) -> None:
    """The registry reads a line of the package's README and a label of the image."""
    name = f"{NAMESPACE}/{server.command}"
    assert f"mcp-name: {name} " in (server.folder / "README.md").read_text("utf-8")
    label = re.search(r'io\.modelcontextprotocol\.server\.name="(.+)"', (ROOT / "docker/Dockerfile").read_text("utf-8"))
    assert label and label[1].replace("$SERVER", server.command) == name
