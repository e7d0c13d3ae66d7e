"""The shipped contract, run over every workspace member that is a server; membership decides, not this file."""

import json
import tomllib
from pathlib import Path

import pytest

import markers
from contract.cases import CASES
from mcp_batteries.testing.case import Case
from mcp_batteries.testing.contract import *  # noqa: F403
from tools.docs import package_of

anyio_backend = markers.anyio_backend  # not the contract's own: on Windows psycopg needs another loop
ROOT = Path(__file__).parents[2]
WORKSPACE = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
FOLDERS = sorted(
    folder
    for pattern in WORKSPACE["tool"]["uv"]["workspace"]["members"]
    for folder in ROOT.glob(pattern)
    if (folder / "pyproject.toml").exists()
)
SERVERS = [package for folder in FOLDERS if (package := package_of(folder)) is not None]

# Each server keeps these once, in one of the two eras.
_share_of_servers = pytest.mark.share(len(SERVERS))
_share_of_servers(test_a_garbage_cursor_is_refused_everywhere)  # noqa: F405
_share_of_servers(test_a_missing_resource_has_the_code_of_its_revision)  # noqa: F405
_share_of_servers(test_resources_can_be_read_and_templates_are_described)  # noqa: F405
_share_of_servers(test_the_read_call_answers_in_one_text_block)  # noqa: F405
_share_of_servers(test_views_are_told_to_hosts_that_show_them_and_cost_little)  # noqa: F405
_share_of_servers(test_what_can_be_no_resource_is_not_subscribed_to)  # noqa: F405
# These take most; few servers are asked.
pytest.mark.share(1)(test_the_first_calls_may_come_all_at_once)  # noqa: F405
pytest.mark.share(4)(test_a_process_is_quiet_and_leaves_at_once)  # noqa: F405
pytest.mark.share(3)(test_the_operator_chooses_among_the_tools)  # noqa: F405


@pytest.fixture(params=SERVERS)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    return CASES[request.param](tmp_path)


def test_every_member_is_installed_for_the_tests() -> None:
    wanted = {item.partition("[")[0] for item in WORKSPACE["project"]["dependencies"]}
    members = {tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]["name"] for folder in FOLDERS}
    assert wanted == members


@pytest.mark.parametrize("argument", ["cursor", "database", "dry_run", "limit"])
def test_all_servers_describe_an_argument_in_the_same_words(argument: str) -> None:
    """Read off the snapshots, which have every tool of every server; a server may leave it to the name, everywhere."""
    described: dict[str, set[str | None]] = {}
    for path in sorted((ROOT / "tests/snapshots").glob("*.json")):
        for tool in json.loads(path.read_text("utf-8"))["tools"]:
            if found := tool["inputSchema"].get("properties", {}).get(argument):
                described.setdefault(path.stem, set()).add(found.get("description"))
    assert all(len(words) == 1 for words in described.values()), described
    assert described
    assert len(set[str | None]().union(*described.values()) - {None}) <= 1, described
