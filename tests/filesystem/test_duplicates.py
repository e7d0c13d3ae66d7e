"""Files of the same contents, beside a comparison of every pair."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from filesystem.reading import served
from filesystem.test_replace import call
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid
from mcp_fs.engine.search.find import find_files
from mcp_fs.models import FilePage


def found(folder: Path, glob: str = "**", limit: int = 200) -> FilePage:
    return find_files([served(folder).readable(".")], glob, CancelToken(), sort="duplicates", limit=limit)


@pytest.mark.share(1, slow=5)
@pytest.mark.parametrize("seed", range(20))
def test_all_that_are_alike_and_no_others(seed: int, tmp_path: Path) -> None:
    rng, contents = random.Random(seed), dict[str, bytes]()
    for number in range(40):
        path = f"d{rng.randrange(3)}/{number}.{rng.choice(['a', 'b'])}"
        contents[path] = bytes(rng.choice(b"xyz") for _ in range(rng.choice([0, 2, 3, 2_000_000 * (number == 7)])))
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(contents[path])
    groups: dict[str, set[str]] = {}
    answer = found(tmp_path, "*.a")
    for path, measure in zip(answer.paths, answer.measures, strict=True):
        groups.setdefault(measure, set()).add(path)
    chosen = {path: data for path, data in contents.items() if data and path.endswith(".a")}
    wanted = [{path for path, other in chosen.items() if other == data} for data in {*chosen.values()}]
    assert sorted(map(sorted, groups.values())) == sorted(sorted(one) for one in wanted if len(one) > 1)
    sizes = [int(measure.partition("\t")[2].replace(",", "")) for measure in answer.measures]
    assert sizes == sorted(sizes, reverse=True) and answer.total == len(answer.paths)


def test_what_is_no_duplicate(tmp_path: Path) -> None:
    for name in ("a", "b.pem", "ids", ".hidden", "e1", "e2"):
        (tmp_path / name).write_text("" if name[0] == "e" else "same")
    if os.name == "posix":
        os.link(tmp_path / "a", tmp_path / "linked")
        (tmp_path / "link").symlink_to("a")
    answer = found(tmp_path)
    assert list(answer.paths) == ["a", "ids"]
    said = answer.text()
    assert "[2 found; 1 content (#) that several have, 4 bytes too many; protected: b.pem" in said
    assert "1 hidden" in said
    with pytest.raises(Invalid, match="on one page"):
        found(tmp_path, "d/")
    assert "the first 1: raise `limit`" in found(tmp_path, limit=1).text()


@pytest.mark.anyio
async def test_a_tool_finds_them(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("same")
    failed, said = await call(tmp_path, "find_files", glob="*", sort="duplicates")
    assert not failed and said.splitlines()[1:] == ["a\t#1\t4", "b\t#1\t4"]


def test_the_case_of_a_glob_is_no_option_for_duplicates(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match=r"in the case of `glob`.*\*\.\[jJ\]\[pP\]\[gG\]"):
        find_files([served(tmp_path).readable(".")], "*.JPG", CancelToken(), sort="duplicates", ignore_case=True)
