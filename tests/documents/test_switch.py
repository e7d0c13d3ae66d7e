"""The pages for people who come from another server name what is there."""

import json
import re
from pathlib import Path

import pytest

from contract.test_contract import ROOT

PAGES = sorted((ROOT / "docs/switch").glob("*.md"))
COMMANDS = {"server-filesystem": "mcp-fs"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_our_side_of_the_table_exists(page: Path) -> None:
    command = COMMANDS.get(page.stem, page.stem.replace("server", "mcp"))
    tools = json.loads((ROOT / f"tests/snapshots/{command}.json").read_text("utf-8"))["tools"]
    known = {tool["name"] for tool in tools}
    known |= {argument for tool in tools for argument in tool["inputSchema"].get("properties", {})}
    rows = [line for line in page.read_text("utf-8").splitlines() if line.startswith("| ")][2:]
    named = {word for row in rows for word in re.findall(r"`([a-z_]+)`", row.split("|")[2])}
    # `destination` is their word, which is understood.
    assert len(named) > 5 and named - known <= {"destination", "sha"}


def test_every_official_server_has_a_page() -> None:
    official = ("filesystem", "git", "github", "postgres", "sqlite")
    assert {page.stem for page in PAGES} == {f"server-{name}" for name in official}
