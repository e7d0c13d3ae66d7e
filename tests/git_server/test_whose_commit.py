"""Who commits, what is ignored, which line ends files get: as plain git would have it with the user's configuration."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from git_server.made import Made
from git_server.serving import serving

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="it only reads there yet"),
]


def by_folder(home: Path, made: Made) -> str:
    return f'[includeIf "gitdir:{home}/work/"]\n\tpath = {home}/other\n'


def by_home(home: Path, made: Made) -> str:
    return '[includeIf "gitdir:~/work/"]\n\tpath = ~/other\n'


def by_case(home: Path, made: Made) -> str:
    return f'[includeIf "gitdir/i:{str(home).upper()}/WORK/"]\n\tpath = other\n'


def by_branch(home: Path, made: Made) -> str:
    return '[includeIf "onbranch:main"]\n\tpath = other\n'


def by_remote(home: Path, made: Made) -> str:
    made.git("remote", "add", "origin", "https://example.org/app")
    return '[includeIf "hasconfig:remote.*.url:https://example.org/**"]\n\tpath = other\n'


def always(home: Path, made: Made) -> str:
    return "[include]\n\tpath = other\n"


def for_others(home: Path, made: Made) -> str:
    return f'[includeIf "gitdir:{home}/elsewhere/"]\n\tpath = other\n'


def made_user(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Made]:
    """Return a home folder with another configuration to include, and a repository below it."""
    home = folder / "home"
    made = Made(home / "work" / "app")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / "gitconfig"))
    (home / "other").write_text(
        f"[user]\n\tname = Other\n\temail = other@work\n[core]\n\texcludesFile = {home}/ignored\n\tautocrlf = input\n"
    )
    (home / "ignored").write_text("*.log\n")
    made.commit("first", {"a.txt": "a\n"})
    return home, made


def plainly(made: Made, *words: str) -> str:
    """Return what plain git says with the user's configuration."""
    return made.git(*words, HOME=os.environ["HOME"], GIT_CONFIG_GLOBAL=os.environ["GIT_CONFIG_GLOBAL"])


@pytest.mark.share(3)
@pytest.mark.parametrize(
    "include",
    [by_folder, by_home, by_case, by_branch, by_remote, always, for_others],
    ids=lambda include: include.__name__,
)
async def test_what_the_user_includes_counts_as_in_git(
    include: Callable[[Path, Made], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, made = made_user(tmp_path, monkeypatch)
    own = "[user]\n\tname = Grace\n\temail = grace@home\n"
    (home / "gitconfig").write_text(own + include(home, made))
    made.write("crlf.txt", "one\r\n")
    made.write("new.log", "log\n")
    expected = plainly(made, "config", "user.email").strip()
    assert (expected == "other@work") is (include is not for_others), "the case is not armed"
    async with serving("--write", made.path) as asking:
        assert ("new.log" in await asking("get_status")) is (include is for_others)
        assert not (await asking("create_commit", message="x", paths=["crlf.txt"])).startswith("failed")
    assert made.git("log", "-1", "--format=%ae %ce").split() == [expected, expected]
    assert ("\r" in made.git("show", "HEAD:crlf.txt")) is (include is for_others)


async def test_the_configuration_is_read_afresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, made = made_user(tmp_path, monkeypatch)
    (home / "gitconfig").write_text("[user]\n\tname = Grace\n\temail = grace@home\n")
    changes: list[tuple[str, str, str]] = [
        ("gitconfig", "[user]\n\tname = Grace\n\temail = moved@home\n[include]\n\tpath = late\n", "moved@home"),
        ("late", "[user]\n\temail = late@home\n", "late@home"),
        ("late", "[author]\n\temail = author@home\n", "author@home"),
    ]
    async with serving("--write", made.path) as asking:
        for number, (name, text, address) in enumerate(changes):
            assert not (await asking("get_status")).startswith("failed")
            (home / name).write_text(text)
            made.write("a.txt", f"{number}\n")
            await asking("create_commit", message="x", all_tracked=True)
            assert made.git("log", "-1", "--format=%ae").strip() == address


async def test_what_of_a_repository_is_not_believed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, made = made_user(tmp_path, monkeypatch)
    (home / "gitconfig").write_text("[user]\n\tname = Grace\n\temail = grace@home\n")
    made.write("shared", "[user]\n\temail = shared@app\n")
    async with serving("--write", made.path) as asking:
        assert "not read here" not in await asking("get_status")
        made.git("config", "include.path", "../shared")
        made.git("config", "core.excludesFile", "../ignored")
        told = "not read here: `core.excludesfile`, `include` of this repository's configuration"
        assert told in await asking("get_status")
        answer = await asking("create_commit", message="x", paths=["shared"])
        assert f"{told}; committed as Grace <grace@home>" in answer


async def test_who_commits_may_stand_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, made = made_user(tmp_path, monkeypatch)
    (home / "gitconfig").write_text("[user]\n\tname = Grace\n\temail = grace@home\n")
    variables = {"GIT_AUTHOR_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@environment", "TZ": "JST-9"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    async with serving("--write", made.path) as asking:
        await asking("create_commit", message="x", amend=True)
    names = made.git("log", "-1", "--format=%an %ae %cn %ce %cd", "--date=format:%z").split()
    # The author of an amended commit stays.
    assert names == ["Ada", "Lovelace", "ada@example.org", "Grace", "ada@environment", "+0900"]


async def test_an_address_may_be_the_one_of_the_mailer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, made = made_user(tmp_path, monkeypatch)
    (home / "gitconfig").write_text("[user]\n\tname = Grace\n")
    monkeypatch.setenv("EMAIL", "grace@mail")
    made.write("a.txt", "b\n")
    async with serving("--write", made.path) as asking:
        await asking("create_commit", message="x", all_tracked=True)
    assert made.git("log", "-1", "--format=%ae").strip() == "grace@mail"


@pytest.mark.parametrize("is_named", [True, False], ids=["named", "usual"])
async def test_the_attributes_of_the_user_count(
    is_named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, made = made_user(tmp_path, monkeypatch)
    text = "[user]\n\tname = Grace\n\temail = grace@home\n"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "xdg"))
    path = home / "xdg" / "git" / "attributes"
    if is_named:
        text += "[core]\n\tattributesFile = ~/attributes\n\texcludesFile = ~/late\n"
        path = home / "attributes"
    (home / "gitconfig").write_text(text)
    made.write("crlf.txt", "one\r\n")
    made.write("picture.dat", "one\n")
    async with serving("--write", made.path) as asking:
        assert not (await asking("get_status")).startswith("failed")
        # Neither was there when the server looked first.
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("*.txt text eol=lf\n*.dat -diff\n*.bin filter=lfs\n")
        await asking("create_commit", message="x", paths=["crlf.txt", "picture.dat"])
        assert made.git("show", "HEAD:crlf.txt") == "one\n"
        made.write("picture.dat", "two\n")
        assert "two" not in await asking("read_diff")
        made.write("large.bin", "large\n")
        assert "would go through Git LFS" in await asking("stage_files", paths=["large.bin"])
        if is_named:
            (home / "late").write_text("large.bin\n")
            assert "large.bin" not in await asking("get_status")
