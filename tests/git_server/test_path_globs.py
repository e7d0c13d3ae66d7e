"""Globs in the place of a path, as git itself matches them."""

import re
import sys
from pathlib import Path

import pytest

from git_server.made import Made
from git_server.serving import Asking, serving

pytestmark = pytest.mark.anyio

# Each glob of a caller, and the pathspec by which git means the same.
GLOBS = [
    ("*.py", ":(glob)**/*.py"),
    ("?.py", ":(glob)**/?.py"),
    ("src/*", ":(glob)src/*"),
    ("src/*.py", ":(glob)src/*.py"),
    ("src/**/*.py", ":(glob)src/**/*.py"),
    ("src/**", ":(glob)src/**"),
    ("**/deep/*", ":(glob)**/deep/*"),
    ("web/[id]/*.js", r":(glob)web/\[id]/*.js"),
    ("./src/*.py", ":(glob)src/*.py"),
]
FILES = ("a.py", "src/b.py", "src/deep/c.py", "src/deep/d.txt", "web/[id]/e.js", "web/i/f.js", "notes.md")


def made_files(folder: Path) -> Made:
    """Return a repository with a commit for each file."""
    made = Made(folder / "app")
    for name in FILES:
        made.commit(f"Add {name}", {name: "word one\n"})
    return made


async def subjects(asking: Asking, path: str, **arguments: object) -> list[str]:
    return re.findall(r"Add (\S+)", await asking("list_commits", path=path, **arguments))


@pytest.mark.parametrize(("glob", "pathspec"), GLOBS)
async def test_a_glob_means_what_it_means_to_git(glob: str, pathspec: str, tmp_path: Path) -> None:
    made = made_files(tmp_path)
    listed = re.findall(r"Add (\S+)", made.git("log", "--format=%s", "--", pathspec))
    assert listed
    root = made.git("rev-list", "--max-parents=0", "HEAD").strip()
    changed = made.git("diff", "--name-only", root, "HEAD", "--", pathspec).split()
    found = [line.partition(":")[2] for line in made.git("grep", "-l", "word", "HEAD", "--", pathspec).split()]
    for name in FILES:
        made.write(name, "word two\n")
    async with serving(made.path) as asking:
        assert await subjects(asking, glob) == listed
        assert await subjects(asking, glob, text="word") == listed
        assert await subjects(asking, glob, author="ada", limit=500) == listed
        diff = await asking("read_diff", rev=f"{root}..HEAD", path=glob)
        assert sorted(re.findall(r"(?m)^\+\+\+ b/(\S+)", diff)) == sorted(changed)
        status = await asking("get_status", path=glob)
        assert sorted(re.findall(r"(?m)^ M (\S+)", status)) == sorted(found)
        uncommitted = await asking("read_diff", path=glob)
        assert sorted(re.findall(r"(?m)^\+\+\+ b/(\S+)", uncommitted)) == sorted(found)
        script = f"print(search_text({{pattern: 'word', path: {glob!r}}}))"
        matches = await asking("call_tools", script=script)
        assert sorted(re.findall(r"(?m)^(\S+):1:word", matches)) == sorted(found)


async def test_braces_in_a_glob_are_each_of_their_choices(tmp_path: Path) -> None:
    made = made_files(tmp_path)
    made.commit("Add web/{{x}}.py", {"web/{{x}}.py": "word one\n"})
    for name in FILES:
        made.write(name, "word two\n")
    cases = {
        "src/**/*.{py,txt}": ["src/b.py", "src/deep/c.py", "src/deep/d.txt"],
        "{a,src/b}.py": ["a.py", "src/b.py"],
        "{*.md,src/{b.py,deep/*}}": ["notes.md", "src/b.py", "src/deep/c.py", "src/deep/d.txt"],
        "web/{{x}}.p?": ["web/{{x}}.py"],
    }
    async with serving(made.path) as asking:
        for glob, names in cases.items():
            assert sorted(await subjects(asking, glob)) == names
            assert sorted(await subjects(asking, glob, text="word")) == names
            found = await asking("call_tools", script=f"print(search_text({{pattern: 'word', path: {glob!r}}}))")
            assert sorted(re.findall(r"(?m)^(\S+):1:word", found)) == names
            changed = [name for name in names if name in FILES]
            if changed:
                status = await asking("get_status", path=glob)
                assert sorted(re.findall(r"(?m)^ M (\S+)", status)) == changed
                diff = await asking("read_diff", path=glob)
                assert sorted(re.findall(r"(?m)^\+\+\+ b/(\S+)", diff)) == changed
        assert "Nothing matches `{x,y}.py`" in await asking("search_text", pattern="word", path="{x,y}.py")
        for glob in ("{0,1,2,3}" * 4, "{a,b}" * 1000, "{a," * 2000 + "b" + "}" * 2000):
            many = await asking("get_status", path=glob)
            assert many.startswith("failed: The braces of ") and "at most 100" in many


async def test_a_folder_among_the_choices_is_all_that_is_in_it(tmp_path: Path) -> None:
    made = made_files(tmp_path)
    made.commit("Add old/web/g.js", {"old/web/g.js": "word one\n"})
    cases = {
        "{notes.md,src}": ["notes.md", "src/b.py", "src/deep/c.py", "src/deep/d.txt"],
        "{src/deep,web}": ["old/web/g.js", "src/deep/c.py", "src/deep/d.txt", "web/[id]/e.js", "web/i/f.js"],
        "src/{deep/,b.py}": ["src/b.py", "src/deep/c.py", "src/deep/d.txt"],
    }
    async with serving(made.path) as asking:
        for glob, names in cases.items():
            assert sorted(await subjects(asking, glob)) == names
            found = await asking("call_tools", script=f"print(search_text({{pattern: 'word', path: {glob!r}}}))")
            assert sorted(re.findall(r"(?m)^(\S+):1:word", found)) == names


async def test_a_name_with_braces_is_found_as_answers_show_it(tmp_path: Path) -> None:
    made = made_files(tmp_path)
    made.commit("Add src/{x,y}.txt", {"src/{x,y}.txt": "word one\n"})
    made.commit("Add {x,y}/z.txt", {"{x,y}/z.txt": "word one\n"})
    async with serving(made.path) as asking:
        assert await subjects(asking, "src/{x,y}.txt") == ["src/{x,y}.txt"]
        assert await subjects(asking, "{x,y}") == ["{x,y}/z.txt"]


async def test_each_choice_is_kept_to_the_repository(tmp_path: Path) -> None:
    made = made_files(tmp_path)
    outside = {
        "..": "`..` may lead out",
        "../app": "`../app` may lead out",
        str(made.path): "is absolute",
        ".git/config": "is inside of the git directory",
    }
    async with serving(made.path) as asking:
        for choice, reason in outside.items():
            for tool, arguments in (("get_status", {}), ("list_commits", {}), ("search_text", {"pattern": "word"})):
                answer = await asking(tool, path=f"{{a.py,{choice}}}", **arguments)
                assert answer.startswith("failed: ") and reason in answer, answer
        assert "Nothing matches `{,zz}`" in await asking("list_commits", path="{,zz}")


async def test_a_long_path_with_braces_takes_no_square_of_its_length(tmp_path: Path) -> None:
    made = made_files(tmp_path)
    async with serving(made.path) as asking:
        # With the square of their number it would take days.
        assert "failed" in await asking("get_status", path="{" + "," * 1_000_000)
        long = await asking("get_status", path="{a,b}" + "c" * 20_000)
        assert "longer than a path with braces may be. Use at most 10,000 characters." in long


@pytest.mark.skipif(sys.platform == "win32", reason="names of files are a Linux file system's")
async def test_a_name_in_quotes_and_one_without_signs_are_no_globs(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.commit("Add :(glob)one", {"[ab].txt": "", ":(top)x": ""})
    made.commit("Add another", {"a.txt": ""})
    async with serving(made.path) as asking:
        assert await subjects(asking, "[ab].txt") == [":(glob)one"]
        assert await subjects(asking, ":(top)x") == [":(glob)one"]
        assert await subjects(asking, ":(icase)A.TXT") == []
        assert "There is no `*.txt`" in await asking("list_commits", path='"*.txt"')


@pytest.mark.skipif(sys.platform == "win32", reason="names of files are a Linux file system's")
@pytest.mark.parametrize("name", ["*star", "src/wh?t.md", "{a,b}.txt", 'a*"b', "back*\\slash"])
async def test_where_git_takes_one_file_a_name_with_signs_is_that_file(name: str, tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.commit("Add old", {"old": "one\ntwo\n" * 9})
    (made.path / "src").mkdir()
    made.git("mv", "old", name)
    made.commit("Add renamed")
    made.commit("Add others", {"a star": "", "src/what.md": "", "a.txt": "", 'a+"b': "", "back+\\slash": ""})
    async with serving(made.path) as asking:
        assert await subjects(asking, name, lines="1-2") == ["old"]
        assert await subjects(asking, name, follow=True) == ["renamed", "old"]
        # Elsewhere a pathspec of git's is a glob, whatever is called like it, so the answer says which name is none.
        matches = await asking("list_commits", path=name)
        assert re.findall(r"Add (\S+)", matches) == ["others", "renamed"]
        [quoted] = re.findall(r"has that name alone is `(.*?)`[;\]]", matches)
        assert await subjects(asking, quoted) == ["renamed"]
        assert "alone is" not in await asking("list_commits", path="src/*")


async def test_a_glob_that_matches_nothing_is_refused_and_one_of_deleted_files_is_not(tmp_path: Path) -> None:
    made = made_files(tmp_path)
    (made.path / "notes.md").unlink()
    made.commit("Delete the notes")
    made.write("src/deep/new.txt", "")
    made.write("src/deep/other.txt", "")
    async with serving(made.path) as asking:
        for tool, arguments in (
            ("get_status", {}),
            ("list_commits", {}),
            ("read_diff", {}),
            ("search_text", {"pattern": "word"}),
        ):
            answer = await asking(tool, path="src/*.rs", **arguments)
            assert answer.startswith("failed: Nothing matches `src/*.rs` in the work tree"), answer
            assert "`**` does not, and `[` means itself" in answer
        assert "no commits of HEAD" in await asking("list_commits", path="*.md", author="nobody")
        assert "*.py is clean" in await asking("get_status", path="*.py")
        many = await asking("get_status", path="src/**/*.txt", limit=1)
        assert "?? src/deep/new.txt" in many and "folded" in many, many
        assert "0 matches" in await asking("search_text", pattern="word", path="*.md")
        for one_file in ({"follow": True}, {"lines": "1-2"}):
            answer = await asking("list_commits", path="*.py", **one_file)
            assert answer.startswith("failed: There is no ") and "`*.py`" in answer
            assert "A path is no pattern: name a file" in answer


async def test_pages_of_a_glob_go_on_and_belong_to_it(tmp_path: Path) -> None:
    made = made_files(tmp_path)
    async with serving(made.path) as asking:
        first = await asking("list_commits", path="*.py", limit=2)
        [cursor] = re.findall(r'cursor="([^"]+)"', first)
        assert await subjects(asking, "*.py", limit=2, cursor=cursor) == ["a.py"]
        assert (await asking("list_commits", path='"*.py"', limit=2, cursor=cursor)).startswith("failed")
