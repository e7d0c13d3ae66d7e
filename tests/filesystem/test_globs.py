"""What globs mean, in finding names and in narrowing searches."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from filesystem.conftest import RIPGREP
from filesystem.places import Told
from filesystem.reading import Grep, fill, on_linux, served
from filesystem.test_replace import call
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid
from mcp_fs.engine.changing.replacing.replace import replace_in_files
from mcp_fs.engine.changing.replacing.substitution import Substitution
from mcp_fs.engine.listing import selection
from mcp_fs.engine.listing.walk import WalkFilter
from mcp_fs.engine.patterns.glob import path_glob, translate
from mcp_fs.engine.patterns.regex import compile_path_set
from mcp_fs.engine.search.find import find_files
from mcp_fs.engine.search.query import Query
from mcp_fs.engine.search.text_search import search_text
from mcp_fs.policy import Policy


def test_globs_and_types(tmp_path: Path, grep: Grep) -> None:
    fill(tmp_path, {"a.py": "x", "b.ts": "x", "src/c.py": "x", "src/d.tsx": "x", ".e.py": "x"})
    assert grep("x", glob="*.py") == ["a.py:1:x", "src/c.py:1:x"]
    assert grep("x", glob="!*.py") == ["b.ts:1:x", "src/d.tsx:1:x"]
    assert grep("x", glob="src/**") == ["src/c.py:1:x", "src/d.tsx:1:x"]
    assert grep("x", glob="*.{ts,tsx}") == ["b.ts:1:x", "src/d.tsx:1:x"]
    assert grep("x", file_type="py") == ["a.py:1:x", "src/c.py:1:x"]
    assert grep("x", file_type="py", walk_filter=WalkFilter(hidden=True)) == [".e.py:1:x", "a.py:1:x", "src/c.py:1:x"]
    with pytest.raises(Invalid, match="not a known file type"):
        grep("x", file_type="python3000")


_KEPT = ["lib/x.py", "lib/deep/y.py", "src/lib/z.py", "src/m.py", "top.py", "a/lib"]


@pytest.mark.skipif(RIPGREP is None, reason="ripgrep is not installed")
@pytest.mark.parametrize(
    "glob", ["lib", "lib/", "lib/**", "src/lib", "src/lib/", "/lib", "**/lib/**", "{lib,src}", "src/*.py", "*/*.py"]
)
def test_what_a_glob_leaves_out_is_what_ripgrep_does(tmp_path: Path, grep: Grep, glob: str) -> None:
    fill(tmp_path, dict.fromkeys(_KEPT, "x"))
    found = subprocess.run(
        [str(RIPGREP), "--no-config", "-l", "x", "-g", f"!{glob}"], cwd=tmp_path, capture_output=True
    )
    assert sorted(line.partition(":")[0] for line in grep("x", glob=f"!{glob}")) == sorted(
        found.stdout.decode().split()
    )


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("lib/", ["lib/deep/y.py", "lib/x.py", "src/lib/z.py"]),
        ("src/lib/", ["src/lib/z.py"]),
        ("./lib/", ["lib/deep/y.py", "lib/x.py"]),
        ("{deep,src}/", ["lib/deep/y.py", "src/lib/z.py", "src/m.py"]),
        ("./top.py", ["top.py"]),
        ("./m.py", []),
    ],
)
def test_a_glob_of_folders_means_the_files_in_them(tmp_path: Path, grep: Grep, glob: str, found: list[str]) -> None:
    fill(tmp_path, dict.fromkeys(_KEPT, "x"))
    assert sorted(line.partition(":")[0] for line in grep("x", glob=glob)) == found
    place = Policy(Told((str(tmp_path),))).writable(".")
    changed = replace_in_files(place, glob, WalkFilter(), Substitution({"x": "y"}), dry_run=True, cancel=CancelToken())
    assert sorted(file.path for file in changed.files) == found


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("*.py", ["a.py", "src/b.py", "src/deep/c.py"]),
        ("src/*.py", ["src/b.py"]),
        ("src/**/*.py", ["src/b.py", "src/deep/c.py"]),
        ("**/deep/**", ["src/deep/c.py", "src/deep/d.{x}"]),
        ("*.{py,md}", ["a.py", "e.md", "src/b.py", "src/deep/c.py"]),
        ("[ae].*", ["a.py", "e.md"]),
        ("[!a].??", ["e.md", "src/b.py", "src/deep/c.py"]),
        *([] if sys.platform == "win32" else [(r"*.\{x\}", ["src/deep/d.{x}"])]),
        ("é*", ["été"]),
        ("?t?", ["été"]),
        ("????", ["a.py", "e.md", "src/b.py", "src/deep/c.py"]),
        ("deep/", ["src/deep/"]),
        ("./", ["src/", "src/deep/"]),
        ("./src/", ["src/"]),
        ("./a.py", ["a.py"]),
        ("/a.py", ["a.py"]),
        ("nothing", []),
    ],
)
def test_names_by_glob(tmp_path: Path, glob: str, found: list[str]) -> None:
    fill(tmp_path, dict.fromkeys(["a.py", "e.md", "src/b.py", "src/deep/c.py", "src/deep/d.{x}", "été"], ""))
    answer = find_files([served(tmp_path).readable(".")], glob, CancelToken())
    assert list(answer.paths) == found
    assert answer.total == len(found)


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("**/[id]/*.tsx", ["app/[id]/a.tsx", "app/i/a.tsx"]),
        ("[id]/", ["app/[id]/", "app/i/"]),
        ("app/[[...all]]/**", ["app/[[...all]]/a.tsx"]),
        ("app/[i,d]/*", ["app/[i,d]/a.tsx", "app/i/a.tsx"]),
        ("app/{[id],x}/a.tsx", ["app/[id]/a.tsx", "app/i/a.tsx"]),
        ("app/[[]id]/*", ["app/[id]/a.tsx"]),
        ("app/[id]/*.[jt]sx", ["app/[id]/a.tsx", "app/i/a.tsx"]),
        ("app/[!x]/a.tsx", ["app/i/a.tsx"]),
        *([] if sys.platform == "win32" else [(r"app/\[id\]/*", ["app/[id]/a.tsx"])]),
    ],
)
def test_brackets_in_a_glob_are_also_those_of_a_name(tmp_path: Path, glob: str, found: list[str]) -> None:
    fill(tmp_path, dict.fromkeys([f"app/{name}/a.tsx" for name in ("[id]", "i", "[[...all]]", "[i,d]", "id")], ""))
    assert list(find_files([served(tmp_path).readable(".")], glob, CancelToken()).paths) == found


_NAMES = ["a", "b.c", "é", "b.é", "c"]


@given(
    glob=st.lists(st.sampled_from(["a", "b.c", "é", ".c", "*", "**", "?", "/", "[ab]", "{a,b.c}", "{a,}"]), max_size=5),
    path=st.lists(st.sampled_from(_NAMES), min_size=1, max_size=3),
)
def test_what_a_glob_means_ends_as_its_names_do(glob: list[str], path: list[str]) -> None:
    text = "".join(glob)
    assume(text.strip("/"))
    if selection.compile_chooser([text])("/".join(path)) and path[-1].isascii():
        assert path[-1].endswith(selection.name_ending(text))


@pytest.mark.parametrize("glob", ["[a", "{a", "a\\", "[z-a]"])
def test_what_is_no_glob_is_refused(glob: str) -> None:
    with pytest.raises(Invalid):
        path_glob(glob)


@pytest.mark.parametrize(
    ("glob", "found"),
    [(r"src\*.py", ["src/b.py"]), (r"**\c.py", ["src/deep/c.py"]), (r"src\deep\**", ["src/deep/c.py"])],
)
def test_a_backslash_parts_names_on_windows(
    tmp_path: Path, glob: str, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "_WINDOWS", True)
    fill(tmp_path, dict.fromkeys(["a.py", "src/b.py", "src/deep/c.py"], ""))
    top = served(tmp_path).readable(".")
    assert list(find_files([top], glob, CancelToken()).paths) == found
    with pytest.raises(Invalid):
        find_files([top], r"Q:\nowhere\*.py", CancelToken())


@pytest.mark.parametrize("glob", ["", "/", "../*", "a/../b", "/no-such-folder/**", "file:///etc/*", "/\0", "a\0b"])
def test_a_glob_that_means_nothing_below_the_folder_is_refused(tmp_path: Path, grep: Grep, glob: str) -> None:
    fill(tmp_path, {"a": "x"})
    with pytest.raises(Invalid) as raised:
        find_files([served(tmp_path).readable(".")], glob, CancelToken())
    assert raised.value.fix
    for asked in (glob, f"!{glob}"):
        with pytest.raises(Invalid):
            grep("x", glob=asked)


def test_a_glob_may_begin_with_the_path_of_the_searched_folder(tmp_path: Path, grep: Grep) -> None:
    fill(tmp_path, {"a.py": "x", "sub/b.py": "x", "sub/c/d.py": "x"})
    policy = served(tmp_path)
    for glob, path, found in (
        (f"{tmp_path}/**", ".", ["a.py", "sub/b.py", "sub/c/d.py"]),
        (f"{tmp_path}/*.py", ".", ["a.py"]),
        (f"{tmp_path}/sub/*.py", ".", ["sub/b.py"]),
        (f"{tmp_path}/sub/**", "sub", ["sub/b.py", "sub/c/d.py"]),
        ("/sub/*.py", ".", ["sub/b.py"]),
        ("sub/*.py", "sub", ["sub/b.py"]),
        ("sub/c/**", "sub", ["sub/c/d.py"]),
        ("./sub/c/*.py", "sub/c", ["sub/c/d.py"]),
    ):
        assert list(find_files([policy.readable(path)], glob, CancelToken()).paths) == found
        assert grep("x", path, glob=glob, files_only=True) == found
    assert grep("x", glob=f"!{tmp_path}/sub/**", files_only=True) == ["a.py"]
    with pytest.raises(Invalid, match="searched folder"):
        find_files([policy.readable("sub")], f"{tmp_path}/other/*", CancelToken())


def test_a_glob_may_begin_with_the_name_of_a_served_folder(tmp_path: Path) -> None:
    fill(tmp_path, {"one/a": "x", "two/a": "x", "two/one/a": "x"})
    policy = served(tmp_path / "one", tmp_path / "two")
    tops = [policy.root_path(root) for root in policy.roots]
    assert list(find_files(tops, "one/*", CancelToken()).paths) == ["one/a", "two/one/a"]
    assert list(find_files(tops, f"{tmp_path}/two/a", CancelToken()).paths) == ["two/a"]
    assert [path for path, _, _ in search_text(tops, Query("x", glob="two/a"), None, CancelToken()).files] == ["two/a"]


@on_linux
@pytest.mark.parametrize("glob", ["café*", "cafe\u0301*", "caf?.txt", "**/cafe\u0301.txt", "sub/{café.txt,b}"])
def test_a_glob_finds_a_name_however_it_is_composed(tmp_path: Path, grep: Grep, glob: str) -> None:
    fill(tmp_path, {"sub/cafe\u0301.txt": "x", "sub/café.md": "x", "other": "x"})
    expected = ["sub/cafe\u0301.txt"] + ["sub/café.md"] * glob.endswith("*")
    assert sorted(find_files([served(tmp_path).readable(".")], glob, CancelToken()).paths) == sorted(expected)
    assert sorted(grep("x", glob=glob, files_only=True)) == sorted(expected)
    assert grep("x", glob=f"!{glob}", files_only=True)[0] == "other"


@on_linux
@pytest.mark.parametrize("blank", [" ", "\u202f", "\u00a0"])
def test_a_glob_finds_the_blanks_of_screenshots(tmp_path: Path, grep: Grep, blank: str) -> None:
    names = ["at 1.23 PM.png", "at 1.23\u00a0PM.png", "at 1.23\u202fPM.png"]
    fill(tmp_path, dict.fromkeys([*names, "at 1.23-PM.png"], "x"))
    glob = f"*1.23{blank}PM.png"
    assert list(find_files([served(tmp_path).readable(".")], glob, CancelToken()).paths) == names
    assert grep("x", glob=glob, files_only=True) == names


def test_a_set_of_globs_tells_all_that_match() -> None:
    matching = compile_path_set([translate(glob) for glob in ("**/*.py", "a/**", "b")])
    assert sorted(matching(b"a/x.py")) == [0, 1]
    assert not matching(b"c")


@pytest.mark.anyio
@pytest.mark.skipif(os.name == "nt", reason="links need a right there")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("find_files", {"glob": "*.js"}),
        ("search_text", {"pattern": "needle"}),
        ("replace_text", {"replacements": {"needle": "pin"}, "glob": "*.js"}),
    ],
)
async def test_links_to_folders_are_named_where_nobody_follows_them(
    tmp_path: Path, tool: str, arguments: dict[str, object]
) -> None:
    served_folder = tmp_path / "served"
    (served_folder / "store/pkg").mkdir(parents=True)
    (served_folder / "store/pkg/a.js").write_text("needle")
    (served_folder / "modules").mkdir()
    (served_folder / "modules/pkg").symlink_to("../store/pkg")
    (served_folder / "modules/file.js").symlink_to("../store/pkg/a.js")
    (served_folder / "modules/outside").symlink_to(tmp_path)
    (served_folder / "modules/nowhere").symlink_to("none")
    note = "did not follow 1 link to a folder (modules/pkg): a link named as path is followed"
    _, said = await call(served_folder, tool, path="modules", **arguments)
    assert note in said and "a.js" not in said, said
    _, said = await call(served_folder, tool, path="modules/pkg", **arguments)
    assert "did not follow" not in said and "a.js" in said, said


@pytest.mark.skipif(os.name != "posix", reason="has no links for everybody")
@pytest.mark.anyio
@pytest.mark.parametrize(("glob", "named"), [("app/**/*.js", True), ("app/*.js", False)])
async def test_a_glob_that_finds_nothing_names_links_that_it_does_not_follow(
    tmp_path: Path, glob: str, named: bool
) -> None:
    fill(tmp_path, {"store/index.js": "x", "app/.keep": ""})
    (tmp_path / "app/lib").symlink_to("../store")
    for tool in ("read_files", "delete_file"):
        _, said = await call(tmp_path, tool, paths=[glob])
        assert "means no file" in said and ("did not follow 1 link to a folder (app/lib)" in said) == named, said
