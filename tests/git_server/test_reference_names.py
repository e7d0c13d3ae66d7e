"""A model that knows the reference server's tools can call ours by those names, with those arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from git_server.serving import serving
from git_server.test_writes import made_app

pytestmark = pytest.mark.anyio

CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("git_status", {}, "1 changed"),
    ("git_diff", {"target": "HEAD", "context_lines": 0}, "+later"),
    ("git_diff", {"target": "main~1"}, "main~1..HEAD"),
    ("git_diff", {"base": "main~1", "head": "main", "name_only": True}, "main~1..main"),
    ("git_diff", {"cached": True}, "staged changes; no changes"),
    ("git_diff", {"staged": False, "cached": False}, "+later"),
    ("git_diff", {"staged": True, "cached": True}, "staged changes; no changes"),
    ("git_log", {"grep": "seco", "all": True}, "second"),
    ("git_blame", {"path": "notes.txt", "lines": "2-3"}, "lines 2-3"),
    ("list_refs", {"kind": "branch"}, "topic"),
    ("git_diff_unstaged", {"context_lines": 1}, "changes that are not staged; 1 file"),
    ("git_diff_staged", {}, "staged changes; no changes"),
    ("git_add", {"files": ["side.txt"]}, "stage_files"),
    ("git_diff_unstaged", {}, "changes that are not staged; no changes"),
    ("git_diff_staged", {"context_lines": 1}, "staged changes; 1 file"),
    ("git_reset", {}, "stage_files"),
    ("git_diff_staged", {}, "staged changes; no changes"),
    ("git_log", {"max_count": 1}, "second"),
    ("git_show", {"revision": "HEAD"}, "second"),
    ("git_branch", {"branch_type": "local"}, "main"),
    ("git_add", {"files": ["side.txt"]}, "stage_files"),
    ("git_commit", {"message": "Third"}, "Third"),
    ("git_create_branch", {"branch_name": "fresh", "base_branch": "main~1"}, "fresh"),
    ("git_checkout", {"branch_name": "fresh"}, "[fresh "),
]


async def test_the_names_and_arguments_of_the_reference_server_work(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.commit("second", {"side.txt": "more\n"})
    made.write("side.txt", "later\n")
    async with serving("--write", made.path) as asking:
        for tool, arguments, part in CALLS:
            answer = await asking(tool, repo_path=str(made.path.resolve()), **arguments)
            assert not answer.startswith("failed") and part in answer, (tool, answer)
    assert made.git("log", "-1", "--format=%s", "main") == "Third\n"


@pytest.mark.parametrize("kind", [["branch"], {"branch": 1}, 1])
async def test_a_kind_of_refs_that_is_no_text_is_refused_with_those_there_are(kind: Any, tmp_path: Path) -> None:
    made = made_app(tmp_path)
    async with serving(made.path) as asking:
        answer = await asking("list_refs", kind=kind)
    assert "`kind`" in answer and "branches" in answer, answer


async def test_two_names_of_an_argument_that_say_different_things_are_refused(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.commit("second", {"side.txt": "more\n"})
    made.git("switch", "--quiet", "topic")
    async with serving("--write", made.path) as asking:
        refused = await asking("run_cherry_pick", commit="main", revision="main~1")
        assert refused.startswith("failed: ") and "no argument `revision`" in refused, refused
        assert "second" in await asking("run_cherry_pick", commit="main", revision="main")
