"""Generated documents are current, and documents name only files that exist."""

import importlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from contract.test_contract import FOLDERS, ROOT
from mcp_batteries.settings import load
from mcp_batteries.testing.docs import filled, package_of, snapshot, tables

PUBLISHED = [folder for folder in FOLDERS if package_of(folder) and folder.parent.name == "servers"]


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
