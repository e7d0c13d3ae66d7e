"""Installed as users install it: wheels in a clean environment, and the README's first command in a fresh clone."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from email.parser import HeaderParser
from pathlib import Path
from zipfile import ZipFile

import pytest

from mcp_batteries.testing.wire import REVISIONS, StdioWire, WireClosed

ROOT = Path(__file__).parents[2]
# `uv run` names itself in UV; started otherwise, it is on the path, as the README asks.
UV = os.environ.get("UV") or shutil.which("uv") or "uv"
SERVERS = {"mcp_fs": "mcp-fs"}


def clean_environment() -> dict[str, str]:
    """Ours without the environment these tests run in."""
    hidden = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "UV_PROJECT", "COVERAGE", "MCP_")
    return {name: value for name, value in os.environ.items() if not name.startswith(hidden)}


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """What a command prints; its failure shows everything it said."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
    )
    if done.returncode:
        raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stderr.decode(errors='replace')}")
    return done.stdout.decode()


async def reads(command: Sequence[str], *, cwd: Path | None = None) -> None:
    """`command`, which serves a folder with notes in it, shakes hands in the oldest and newest way and reads them."""
    for revision in (REVISIONS[0], REVISIONS[-1]):
        wire = StdioWire(command, revision=revision, env=clean_environment(), cwd=cwd and str(cwd))
        async with wire:
            try:
                await wire.open()
            except WireClosed:
                raise AssertionError(f"{command} ended:\n{wire.stderr}") from None
            result = await wire.call("read_text", path="notes.txt")
            assert "one\n" in result["content"][0]["text"]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    run(UV, "build", "--all-packages", "--out-dir", folder, cwd=ROOT)
    return folder


@pytest.fixture
def served(tmp_path: Path) -> Path:
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "notes.txt").write_text("one\n", "utf-8")
    return folder


def test_wheels_ask_for_bounded_versions_and_carry_no_checkout(wheels: Path) -> None:
    found = {wheel.name.partition("-")[0]: wheel for wheel in wheels.glob("*.whl")}
    for name in ("mcp_batteries", *SERVERS):
        with ZipFile(found[name]) as archive:
            names = archive.namelist()
            [metadata] = [item for item in names if item.endswith(".dist-info/METADATA")]
            headers = HeaderParser().parsestr(archive.read(metadata).decode())
        asked = headers.get_all("Requires-Dist") or []
        assert not [requirement for requirement in asked if not re.search(r">=[\w.]+", requirement)]
        assert not [requirement for requirement in asked if "<" not in requirement or "@" in requirement]
        assert [item for item in names if "/licenses/" in item], f"{name} carries no licence"
        pages = {f"{name}/pages/{path.name}" for path in ROOT.glob(f"s*/**/src/{name}/pages/*")}
        assert pages <= set(names), f"{name} lacks {pages - set(names)}"
        if name in SERVERS:
            bound = [requirement for requirement in asked if re.match(r"mcp-batteries\b", requirement)]
            assert [set(re.split(r"[ ,]", item.removeprefix("mcp-batteries"))) for item in bound] == [{">=0.1", "<0.2"}]
            assert f"{name}/py.typed" in names


@pytest.mark.anyio
@pytest.mark.parametrize("package", SERVERS)
async def test_a_wheel_installed_alone_serves(package: str, wheels: Path, served: Path, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    run(UV, "venv", "--python", sys.executable, environment)
    folder = environment / ("Scripts" if os.name == "nt" else "bin")
    # By path: on the public index the name is somebody else's.
    [wheel] = wheels.glob(f"{package}-*.whl")
    run(UV, "pip", "install", "--python", environment, "--find-links", wheels, wheel)
    command = str(folder / SERVERS[package])
    assert run(command, "--version") == f"{SERVERS[package]} {wheel.name.split('-')[1]}\n"
    where = f"import {package}, mcp_batteries; print({package}.__file__, mcp_batteries.__file__)"
    assert run(folder / "python", "-c", where).count(str(environment.resolve())) == 2
    await reads([command, str(served)])


@pytest.mark.anyio
async def test_the_first_command_of_the_readme_in_a_fresh_clone(served: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    run("git", "clone", "--quiet", "--depth", "1", ROOT.as_uri(), clone)
    readme = (clone / "README.md").read_text("utf-8")
    documented = next(line.strip() for line in readme.splitlines() if line.startswith("    uvx "))
    program, *words = shlex.split(documented)
    assert (program, words[-1]) == ("uvx", "/path")
    command = [UV, "tool", "run", "--python", sys.executable, *words[:-1], str(served)]
    await reads(command, cwd=clone)


@pytest.mark.anyio
async def test_straight_from_a_repository(served: Path, tmp_path: Path) -> None:
    # With a history of its own: from a shallow clone, as CI has it, git fetches nothing.
    repository, archive = tmp_path / "repository", tmp_path / "archive.zip"
    run("git", "archive", "--output", archive, "HEAD", cwd=ROOT)
    shutil.unpack_archive(archive, repository)
    author = ("-c", "user.name=tests", "-c", "user.email=tests@example.org", "-c", "commit.gpgsign=false")
    run("git", "init", "--quiet", cwd=repository)
    run("git", "add", "--all", "--force", cwd=repository)
    run("git", *author, "commit", "--quiet", "--message", "everything", cwd=repository)
    source = f"git+{repository.as_uri()}#subdirectory=servers/filesystem"
    await reads([UV, "tool", "run", "--python", sys.executable, "--from", source, "mcp-fs", str(served)], cwd=tmp_path)
