"""Installed as users install it: wheels in a clean environment, and the README's first command in a fresh clone."""

import json
import os
import re
import shlex
import sys
from email.parser import HeaderParser
from pathlib import Path
from zipfile import ZipFile

import pytest

from e2e.installing import ROOT, SERVERS, UV, answers, arguments, data, run
from mcp_batteries.testing.wire import REVISIONS
from tools.members import Member


@pytest.fixture
def served(tmp_path: Path) -> Path:
    data(tmp_path / "served")
    return tmp_path / "served"


def test_wheels_ask_for_bounded_versions_and_carry_no_checkout(wheels: Path) -> None:
    found = {wheel.name.partition("-")[0]: wheel for wheel in wheels.glob("*.whl")}
    for name in ("mcp_batteries", *(server.package for server in SERVERS)):
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
        if name != "mcp_batteries":
            bound = [requirement for requirement in asked if re.match(r"mcp-batteries\b", requirement)]
            assert bound and all(
                set(re.findall(r"[<>=]+[\d.]+", item.partition(";")[0])) == {">=0.1", "<0.2"} for item in bound
            )
            assert f"{name}/py.typed" in names


@pytest.mark.weekly
@pytest.mark.anyio
@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.command)
async def test_a_wheel_installed_alone_serves(server: Member, wheels: Path, served: Path, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    run(UV, "venv", "--python", sys.executable, environment)
    folder = environment / ("Scripts" if os.name == "nt" else "bin")
    # By path: on the public index the name is somebody else's.
    [wheel] = wheels.glob(f"{server.package}-*.whl")
    run(UV, "pip", "install", "--python", environment, "--find-links", wheels, wheel)
    command = str(folder / server.command)
    assert run(command, "--version") == f"{server.command} {wheel.name.split('-')[1]}\n"
    where = f"import {server.package}, mcp_batteries; print({server.package}.__file__, mcp_batteries.__file__)"
    assert run(folder / "python", "-c", where).count(str(environment.resolve())) == 2
    await answers([command, *arguments(server, served)], server)
    # What that installation fetched is enough to run it from the wheels without any network.
    offline = [UV, "tool", "run", "--offline", "--python", sys.executable, "--find-links", str(wheels)]
    assert run(*offline, server.command, "--version") == run(command, "--version")
    await answers(
        [*offline, server.command, *arguments(server, served)], server, cwd=tmp_path, revisions=REVISIONS[-1:]
    )


@pytest.mark.slow
@pytest.mark.anyio
async def test_the_commands_of_the_readme_in_a_fresh_clone(
    served: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone, home = tmp_path / "clone", tmp_path / "home"
    monkeypatch.setenv("UV_CACHE_DIR", run(UV, "cache", "dir").strip())
    for name in ("HOME", "USERPROFILE", "APPDATA", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(home))
    run("git", "clone", "--quiet", "--depth", "1", ROOT.as_uri(), clone)
    readme = (clone / "README.md").read_text("utf-8")
    documented = [shlex.split(line) for line in readme.splitlines() if line.startswith("    uvx ")]
    installed, checked = documented
    assert (checked[0], checked[-1], installed[-1]) == ("uvx", "/path/to/folder", "/path/to/folder")

    def command(words: list[str]) -> list[str]:
        return [UV, "tool", "run", "--python", sys.executable, *words[1:-1], str(served)]

    said = run(*command(installed), cwd=clone)
    [file] = home.rglob("mcp.json")
    assert str(file) in said and str(served) in json.loads(file.read_text("utf-8"))["servers"]["fs"]["args"]
    assert "Everything works." in run(*command(checked), cwd=clone)
    # Without the option the same line serves the folder.
    await answers([word for word in command(checked) if word != "--check"], SERVERS[0], cwd=clone)
