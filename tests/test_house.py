"""The house's own rules: format, types, import directions, bounds, and generated documents that are true."""

import importlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from contract.test_contract import FOLDERS, ROOT
from mcp_batteries.settings import load
from mcp_batteries.testing.docs import filled, package_of, snapshot, tables

SERVERS = [folder for folder in FOLDERS if package_of(folder)]
PUBLISHED = [folder for folder in SERVERS if folder.parent.name == "servers"]


@pytest.mark.parametrize(
    "command",
    [["ruff", "format", "--check"], ["ruff", "check"], ["pyright"], ["lint-imports"]],
    ids=" ".join,
)
def test_a_checker_is_content(command: list[str]) -> None:
    program = shutil.which(command[0], path=str(Path(sys.executable).parent))
    assert program is not None
    done = subprocess.run([program, *command[1:]], cwd=ROOT, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("folder", [ROOT, *FOLDERS], ids=lambda folder: folder.name)
def test_every_dependency_is_bounded(folder: Path) -> None:
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    groups = [
        project["project"].get("dependencies", []),
        *project["project"].get("optional-dependencies", {}).values(),
        *project.get("dependency-groups", {}).values(),
        project.get("build-system", {}).get("requires", []),
    ]
    names = {tomllib.loads((item / "pyproject.toml").read_text("utf-8"))["project"]["name"] for item in FOLDERS}
    for requirement in [requirement for group in groups for requirement in group]:
        inside = folder == ROOT and requirement.partition("[")[0] in names
        assert inside or re.search(r">=[\w.]+,<[\w.]+", requirement), f"{folder.name}: {requirement} has no bounds"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_member_is_rebuilt_when_its_code_changes(folder: Path) -> None:
    keys = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["tool"]["uv"]["cache-keys"]
    pages = [{"file": "src/**/*.html"}] if any(folder.glob("src/**/*.html")) else []
    assert keys == [{"file": "pyproject.toml"}, {"file": "src/**/*.py"}, *pages]


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda folder: folder.name)
def test_readme_and_snapshot_are_current(
    folder: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    package = package_of(folder)
    kind = importlib.import_module(f"{package}.settings").Settings
    (tmp_path / "sample").mkdir()
    settings = load(kind, kind.documented(str(tmp_path / "sample")))
    seen = snapshot(importlib.import_module(f"{package}.server").build(settings))
    seen["resources"] = []
    record_property("bytes", f"{kind.COMMAND}: {seen['bytes']}")
    assert json.loads((ROOT / f"tests/snapshots/{kind.COMMAND}.json").read_text("utf-8")) == seen, "run `just docs`"
    readme = (folder / "README.md").read_text("utf-8")
    for place, table in tables(kind, seen).items():
        assert f"<!-- {place} -->\n{table}\n<!-- /{place} -->" in readme, f"{place}: run `just docs`"
    assert filled(readme, tables(kind, seen)) == readme


def test_documents_name_only_files_that_exist() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *(folder / "README.md" for folder in FOLDERS)]:
        for target in re.findall(r"\]\((?![a-z]+:|#)([^)#\s]+)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
