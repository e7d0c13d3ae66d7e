"""Lines of a file copied into files of their own: as reading shows them, byte for byte, all or none."""

from __future__ import annotations

import json
import os
import random
import re
import sys
from pathlib import Path

import pytest

from filesystem.places import Ground, ground
from filesystem.test_replace import call

pytestmark = pytest.mark.anyio


@pytest.fixture
def here(tmp_path: Path) -> Ground:
    place = ground(tmp_path)
    (place.root / "a.md").write_bytes(b"# A\n\n## 1\none\n\n## 2\ntwo\n")
    return place


@pytest.mark.share(1)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
async def test_what_is_copied_is_what_reading_shows(here: Ground, encoding: str) -> None:
    chance = random.Random(encoding)
    for number in range(12):
        end = chance.choice(["\n", "\r\n"])
        lines = [
            chance.choice(["", "é ü", "x" * chance.randrange(9), "two words"]) for _ in range(chance.randrange(1, 9))
        ]
        text = end.join(lines) + chance.choice(["", end])
        data = (text or "x").encode(encoding)
        (here.root / "f").write_bytes(data)
        first, last = sorted(chance.choices(range(1, 11), k=2))
        spec = chance.choice([f"{first}-{last}", f"{first}", f"{first}-", f"-{last}", "1-"])
        failed, said = await call(here.root, "copy_file", targets={f"f:{spec}": f"g{number}"})
        _, whole = await call(here.root, "read_files", paths=[f"f:{spec}"])
        body = whole.partition("\n")[2]
        if re.match(r"=== \S+ \[(no line \d|empty file)", whole):
            assert failed and f"there is no `f:{spec}`" in said and not (here.root / f"g{number}").exists(), said
            continue
        assert not failed and said.startswith(f"copied f:{spec} to g{number}"), said
        _, copied = await call(here.root, "read_files", paths=[f"g{number}"])
        assert copied.partition("\n")[2] == body, (spec, data)
        assert (here.root / f"g{number}").read_bytes() in data or encoding in ("utf-8-sig", "utf-16")
        if spec == "1-":
            assert (here.root / f"g{number}").read_bytes() == data


async def test_a_file_is_split_in_one_call_that_is_one_step(here: Ground) -> None:
    targets = {"a.md:3-5": "n/1.md", "a.md:6-99": "n/2.md", "./a.md:-1": "last"}
    failed, said = await call(here.root, "copy_file", targets=targets)
    assert (failed, said) == (False, "[copied 3; new folder n]\na.md:6-99, lines 6-7"), said
    made = {name: (here.root / name).read_bytes() for name in targets.values()}
    assert made == {"n/1.md": b"## 1\none\n\n", "n/2.md": b"## 2\ntwo\n", "last": b"two\n"}
    _, steps = await call(here.root, "undo_changes")
    (line,) = steps.splitlines()[1:]
    failed, said = await call(here.root, "undo_changes", step=line.split("\t")[0], dry_run=False)
    assert not failed and os.listdir(here.root) == ["a.md"], said


@pytest.mark.share(12)
@pytest.mark.parametrize(
    ("spec", "numbers"),
    [
        ("2", "lines 2-7"), ("6-", "lines 6-7"), ("7", "line 7"), ("6-99", "lines 6-7"), ("7-99", "line 7"),
        ("-99", "lines 1-7"), ("0", "lines 1-7"), ("-2", ""), ("6-7", ""), ("3-3", ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["", "\n"])
async def test_the_answer_says_which_lines_where_their_name_does_not(
    here: Ground, spec: str, numbers: str, encoding: str, end: str
) -> None:
    (here.root / "a.md").write_bytes(("\n".join("1234567") + end).encode(encoding))
    failed, said = await call(here.root, "copy_file", targets={f"a.md:{spec}": "g"})
    assert not failed and said.strip() == f"copied a.md:{spec} to g" + f", {numbers}" * bool(numbers), said


@pytest.mark.skipif(sys.platform == "win32", reason="has no such names")
async def test_a_link_whose_name_reads_like_lines_is_itself(here: Ground) -> None:
    for number, target in enumerate(("none", here.outside, "a.md")):
        (here.root / f"a.md:{number}").symlink_to(target)
        await call(here.root, "copy_file", targets={f"a.md:{number}": f"g{number}"})
    assert [os.readlink(here.root / f"g{number}") for number in (0, 1)] == ["none", str(here.outside)]
    assert (here.root / "g2").read_bytes() == (here.root / "a.md").read_bytes()


@pytest.mark.parametrize(
    ("targets", "why"),
    [
        ({"a.md:8-9": "g"}, "`a.md` has 7 lines, so there is no `a.md:8-9`"),
        ({"a.md:3-5": "g", "a.md:9": "h"}, "there is no `a.md:9`"),
        ({"a.md:5-3": "g"}, "ends before it begins"),
        ({"a.md:1-2": "a.md"}, "are one file"),
        ({"a.md:1-2": "g", "a.md:3-4": "a.md"}, "is named twice"),
        ({"a.md:1-2": "g", "a.md:3-4": "g"}, "`a.md:1-2` and `a.md:3-4` would both be `g`"),
        ({"a.md:1-2": "taken"}, "`taken` exists already"),
        ({"a.md:1-2": "g", "a.md:3-4": "taken"}, "`taken` exists already"),
        ({"binary:1-2": "g"}, "is binary"),
        ({"n.ipynb:1-2": "g"}, "is taken out of it"),
        ({"none:1-2": "g"}, "`none` does not exist"),
        ({"folder:1-2": "g"}, "`folder` is a folder"),
        ({".env:1-2": "g"}, "protected"),
        ({"../outside/secret.txt:1-2": "g"}, "outside"),
    ],
)
@pytest.mark.parametrize("overwrite", [False, True])
async def test_what_can_not_be_copied_copies_nothing(
    here: Ground, targets: dict[str, str], why: str, overwrite: bool
) -> None:
    (here.root / "taken").write_text("taken\n")
    (here.root / "binary").write_bytes(b"\0\1\2" * 99)
    (here.root / ".env").write_text("KEY=1\n")
    (here.root / "folder").mkdir()
    (here.root / "n.ipynb").write_text(
        json.dumps({"cells": [{"cell_type": "markdown", "source": ["x"]}], "nbformat": 4, "nbformat_minor": 5})
    )
    before = {path.name: path.is_dir() or path.read_bytes() for path in here.root.iterdir()}
    failed, said = await call(here.root, "copy_file", targets=targets, overwrite=overwrite)
    if overwrite and "exists already" in why:
        assert not failed and (here.root / "taken").read_bytes() in (b"# A\n\n", b"## 1\none\n"), said
        return
    assert failed and why in said, said
    assert {path.name: path.is_dir() or path.read_bytes() for path in here.root.iterdir()} == before


@pytest.mark.skipif(sys.platform == "win32", reason="a colon is in no name there")
async def test_a_file_of_that_name_is_meant_first_and_links_are_followed(here: Ground) -> None:
    (here.root / "l").symlink_to("a.md")
    (here.root / "a.md").chmod(0o600)
    failed, said = await call(here.root, "copy_file", targets={"l:3-3": "g"})
    assert not failed and (here.root / "g").read_bytes() == b"## 1\n", said
    assert (here.root / "g").stat().st_mode & 0o777 == 0o600
    (here.root / "a.md:3-3").write_text("whole")
    failed, said = await call(here.root, "copy_file", source="a.md:3-3", target="h")
    assert not failed and (here.root / "h").read_text() == "whole", said
