"""Generated documents are current, and documents name only files that exist."""

import importlib
import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from contract.test_contract import FOLDERS, ROOT
from mcp_batteries.settings import load
from tools.docs import filled, generated, package_of, reference_of, snapshot, tables
from tools.languages import MISSING, Language, chinese, page_digest
from tools.members import REPOSITORY

PUBLISHED = [folder for folder in FOLDERS if package_of(folder) and folder.parent.name == "servers"]


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda folder: folder.name)
def test_reference_and_snapshot_are_current(
    folder: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    package = package_of(folder)
    kind = importlib.import_module(f"{package}.settings").Settings
    (tmp_path / "sample").mkdir()
    settings = load(kind, kind.documented_arguments(str(tmp_path / "sample")))
    seen = snapshot(importlib.import_module(f"{package}.server").build(settings))
    seen["resources"] = []
    record_property("bytes", f"{kind.COMMAND}: {seen['bytes']}")
    assert json.loads((ROOT / f"tests/snapshots/{kind.COMMAND}.json").read_text("utf-8")) == seen, "run `just docs`"
    reference = reference_of(ROOT, kind.COMMAND).read_text("utf-8")
    for place, table in tables(kind, seen).items():
        assert f"<!-- {place} -->\n{table}\n<!-- /{place} -->" in reference, f"{place}: run `just docs`"
    assert filled(reference, tables(kind, seen)) == reference


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda folder: folder.name)
def test_no_description_names_a_tool_that_is_turned_off(folder: Path, tmp_path: Path) -> None:
    package = package_of(folder)
    kind = importlib.import_module(f"{package}.settings").Settings
    (tmp_path / "sample").mkdir()
    words = kind.documented_arguments(str(tmp_path / "sample"))
    everything = load(kind, words)
    gates = [name for name in everything.origins if getattr(everything, name) is True and name != "demo"]
    ways = [{}, {"read_only": True}, *({gate: False} for gate in gates)]
    for way in ways:
        server = importlib.import_module(f"{package}.server").build(everything.model_copy(update=way))
        for tool in server.catalog.tools:
            named = set(re.findall(r"`(\w+)`", json.dumps(tool.model_dump(mode="json"))))
            assert not named & server.withheld.keys(), (way, tool.name)


def test_documents_name_only_files_that_exist() -> None:
    ours = re.escape(f"{REPOSITORY}/blob/main/")
    for page in [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *(page for folder in FOLDERS for page in folder.glob("*.md")),
    ]:
        text = page.read_text("utf-8")
        for target in re.findall(r"\]\((?![a-z]+:|#)([^)#\s]+)", text):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
        for target in re.findall(rf"\]\({ours}([^)#\s]+)", text):
            assert (ROOT / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("folder", [*PUBLISHED, ROOT / "shared"], ids=lambda folder: folder.name)
def test_a_package_says_what_an_index_shows(folder: Path) -> None:
    """On an index there is no repository around the README: its links are whole, and the rest is in the metadata."""
    assert re.findall(r"\]\((?!https?:|#)[^)]+", (folder / "README.md").read_text("utf-8")) == []
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["authors"] and {"mcp", "model-context-protocol"} <= set(project["keywords"])
    assert {"Homepage", "Documentation", "Changelog", "Issues", "Source"} <= project["urls"].keys()
    for url in project["urls"].values():
        assert url.startswith(REPOSITORY)
        assert (ROOT / url.partition("/blob/main/")[2]).exists()
    allowed = SpecifierSet(project["requires-python"])
    versions = [item.rpartition(" ")[2] for item in project["classifiers"] if re.search(r":: 3\.\d+$", item)]
    assert versions == [f"3.{minor}" for minor in range(30) if f"3.{minor}" in allowed]


def test_every_room_of_the_common_package_is_described() -> None:
    text = (ROOT / "AGENTS.md").read_text("utf-8")
    package = ROOT / "shared/src/mcp_batteries"
    rooms = [path.name for path in package.glob("[a-z]*.py")] + [
        f"{path.parent.name}/" for path in package.glob("*/__init__.py")
    ]
    assert len(rooms) > 10
    assert [room for room in sorted(rooms) if f"`{room}`" not in text] == []


@pytest.mark.weekly
def test_everything_is_translated() -> None:
    language = chinese(ROOT)
    lines = generated(ROOT, language)[MISSING].splitlines()[1:]
    assert lines == [], f"{MISSING} says what to translate"


def test_what_nobody_has_translated_drops_out_of_the_chinese_and_is_listed() -> None:
    complete = chinese(ROOT)
    generated(ROOT, complete)
    forgotten = [
        "The entry goes into {place}. What it shows: {shows}",
        "Start it once, for as many clients as you like:",
        "{command}: over HTTP",
        "Replace the paths with your own",
    ]
    sentences = {key: text for key, text in complete.sentences.items() if not key.startswith(tuple(forgotten))}
    files = generated(ROOT, Language(".zh-CN", {**sentences, "An old sentence.": "x"}))
    page = files["docs/hosts/cursor.zh-CN.md"]
    assert forgotten[1] not in page and "Replace the paths" not in page and "The entry goes into" not in page
    assert "### mcp-fs: over HTTP" in page, "a heading stays"
    listed = files[MISSING].splitlines()
    assert [f"translate: {key}" in listed for key in forgotten[:3]] == [True] * 3
    assert "remove: An old sentence." in listed


def test_a_translation_of_an_older_page_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    digests: list[str] = []
    for text in ("Old words.\n", "New words.\n", "New\nwords.\n<!-- badges x -->\nx\n<!-- /badges x -->\n"):
        page.write_text(text, "utf-8")
        digests.append(page_digest(page))
    assert digests[0] != digests[1] == digests[2]


def test_each_decision_has_a_number_of_its_own() -> None:
    numbers = sorted(page.name.partition("-")[0] for page in ROOT.glob("docs/decisions/*.md"))
    assert numbers == [f"{number:04}" for number in range(1, len(numbers) + 1)]


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda folder: folder.name)
def test_a_servers_page_is_for_people_who_start(folder: Path) -> None:
    """It fits on a screen or two and says how to start, what to ask and what is safe; the rest is the reference."""
    text = (folder / "README.md").read_text("utf-8")
    assert re.findall(r"^## (.+)", text, re.MULTILINE) == ["What to ask", "Safety", "Reference", "Privacy"]
    assert len(text.encode()) < 4_000
    assert re.findall(r".*\b(?:above|below)\b.*", text) == [], "what was there is in the reference"
    kind = importlib.import_module(f"{package_of(folder)}.settings").Settings
    assert f"]({REPOSITORY}/blob/main/docs/reference/{kind.COMMAND}.md)" in text
    anchors = re.findall(rf"docs/reference/{kind.COMMAND}\.md#([\w-]+)", text)
    headings = re.findall(r"^## (.+)", reference_of(ROOT, kind.COMMAND).read_text("utf-8"), re.MULTILINE)
    assert set(anchors) <= {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
