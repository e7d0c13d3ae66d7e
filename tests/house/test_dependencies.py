"""Every dependency has bounds, and every member is built again when its code changes."""

import re
import tomllib
from pathlib import Path

import pytest

from contract.test_contract import FOLDERS, ROOT


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
        assert inside or re.search(r">=[\w.!]+,<[\w.!]+", requirement), f"{folder.name}: {requirement} has no bounds"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_member_is_rebuilt_when_its_code_changes(folder: Path) -> None:
    keys = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["tool"]["uv"]["cache-keys"]
    data = [{"file": f"src/**/*.{kind}"} for kind in ("html", "toml") if any(folder.glob(f"src/**/*.{kind}"))]
    assert keys == [{"file": "pyproject.toml"}, {"file": "src/**/*.py"}, *data]
