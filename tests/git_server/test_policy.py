"""What may be named, and what each gate opens, without a server: the table of `mcp_git.policy`."""

import logging
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from git_server.made import Made
from mcp_batteries.errors import Invalid, NotFound, Problem, Refused, Unavailable
from mcp_batteries.server.declaration.decorators import DeclaredTool, declarations
from mcp_git.policy import (
    RESOURCE_KINDS,
    GitResource,
    Policy,
    Range,
    Revision,
    parse_new_name,
    parse_path,
    parse_range,
    parse_ref,
    parse_remote_name,
    parse_revision,
)
from mcp_git.settings import Settings
from mcp_git.tools import read, remote, write

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it only reads there yet, and links need a right")


def policy(*repositories: Path, **options: Any) -> Policy:
    return Policy(Settings(repositories=tuple(map(str, repositories)), **options))


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "app")


def test_each_folder_has_a_name_of_its_own(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("app", "x/app", "y/app", "my repo!", ".git-")]
    for folder in folders:
        folder.mkdir(parents=True)
    served = policy(*folders)
    assert list(served.repositories) == ["app", "app-2", "app-3", "my-repo", "git"]
    assert [repository.path for repository in served.repositories.values()] == [*map(os.path.realpath, folders)]
    assert served.repository("app-3").path == os.path.realpath(folders[2])
    with pytest.raises(Invalid, match="`repo` says which"):
        served.repository("")
    with pytest.raises(NotFound, match=r"Use one of: `app`, `app-2`"):
        served.repository("other")


def test_what_cannot_be_opened_is_said_and_the_others_are_served(
    tmp_path: Path, made: Made, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "mcp_git"):
        served = policy(tmp_path / "gone", made.path)
    assert served.repository("").name == "app"
    (said,) = caplog.messages
    assert said.startswith("not served: ") and "gone` can't be opened: No such file" in said
    with pytest.raises(Unavailable, match=r"gone` can't be opened: .* `.*away` can't be opened"):
        policy(tmp_path / "gone", tmp_path / "away")
    with pytest.raises(Unavailable, match="There is no repository to serve"):
        policy()


def test_a_folder_in_the_place_of_another_is_not_served(tmp_path: Path, made: Made) -> None:
    served = policy(made.path)
    repository = served.repository("app")
    assert served.layout(repository).work_tree == repository.path
    made.path.rename(tmp_path / "moved")
    for again in (None, made.path):
        if again is not None:
            again.mkdir()
        with pytest.raises(Refused, match="moved or replaced"):
            served.layout(repository)
    # As long as it is open its number is its own: a folder that is deleted leaves it to the next.
    assert (os.fstat(repository.descriptor).st_dev, os.fstat(repository.descriptor).st_ino) == repository.identity


ASKING: dict[str, Callable[[Policy], object]] = {
    "write": lambda served: served.writable_repository(""),
    "fetch": lambda served: served.fetchable_repository(""),
    "push": lambda served: served.pushable_repository(""),
}


@pytest.mark.parametrize("opened", ASKING)
def test_a_gate_opens_what_it_says_and_read_only_closes_all(made: Made, opened: str) -> None:
    for closing in ({}, {"read_only": True}):
        served = policy(made.path, **{opened: True}, **closing)
        for gate, ask in ASKING.items():
            if gate == opened and not closing:
                assert ask(served)
            else:
                with pytest.raises(Refused, match=f"`--{gate}`"):
                    ask(served)


def test_worktrees_are_made_in_their_folder_only(tmp_path: Path, made: Made) -> None:
    made.commit("First")
    folder = tmp_path / "trees"
    folder.mkdir()
    made.git("worktree", "add", "--quiet", str(folder / "topic"))
    Made(folder / "strange").commit("First")
    (folder / "link").symlink_to(folder / "topic")
    (folder / "file").write_text("")
    with pytest.raises(Refused, match="`--worktree-folder`"):
        policy(made.path, write=True).new_worktree("new")
    with pytest.raises(Refused, match="`--worktree-folder`"):
        policy(made.path, worktree_folder=str(folder)).new_worktree("new")
    served = policy(made.path, write=True, worktree_folder=str(folder))
    assert list(served.repositories) == ["app", "topic"]
    assert (served.new_worktree("new").name, served.new_worktree("new").path) == ("new", str(folder / "new"))
    for taken in ("app", "topic", "strange", "file", "a/b", "..", "", "a b"):
        with pytest.raises(Invalid, match="is taken"):
            served.new_worktree(taken)
    for nothing in ("strange", "link", "file", "nothing", "../app"):
        assert served.adopt(nothing) is None
    with pytest.raises(Refused, match="was not made here"):
        served.removable_worktree("app")
    named = policy(made.path, folder / "strange", write=True, worktree_folder=str(folder))
    with pytest.raises(Refused, match="was not made here"):
        named.removable_worktree("strange")
    with pytest.raises(NotFound):
        served.removable_worktree("")
    linked = served.removable_worktree("topic")
    shutil.rmtree(folder / "topic")
    served.forget(linked)
    with pytest.raises(NotFound):
        served.removable_worktree("topic")


def test_a_uri_stands_for_one_thing_and_is_made_of_it(made: Made) -> None:
    served = policy(made.path)
    repository = served.repository("app")
    assert RESOURCE_KINDS == ("status", "head", "branches", "log", "diff", "stash")
    for kind in RESOURCE_KINDS:
        assert served.resource(f"git://app/{kind}") == GitResource(repository, kind)
        assert GitResource(repository, kind).uri == f"git://app/{kind}"
    uri = "git://app/files/origin%2Fmain/a%20b/%FF.txt"
    found = served.resource(uri)
    assert found is not None and found.uri == uri
    assert (found.kind, found.revision.text, os.fsencode(found.path.text)) == ("files", "origin/main", b"a b/\xff.txt")
    assert served.resource("GIT://app/log") == GitResource(repository, "log")
    assert served.resource("file://app/log") is None
    for wrong in (
        "git://app/",
        "git://app/logs",
        "git://app/files/HEAD",
        "git://app/files/HEAD/",
        "git://app/file/a/b",
    ):
        with pytest.raises(NotFound, match="no resource"):
            served.resource(wrong)
    for nobody in ("git://", "git:///log", "git://other/log"):
        with pytest.raises(NotFound, match="No repository"):
            served.resource(nobody)


GOOD = [
    "HEAD",
    "HEAD~2",
    "main",
    "a/b",
    "v1.0^{}",
    "stash@{1}",
    "main@{12:30}",
    "main@{2 days ago}",
    ":0",
    ":3",
    "x" * 250,
]
BAD = {
    "-x": "begins with a dash", "": "is not a revision", "a..b": "is a range", "^a": "is a range", "a:b": "as `path`",
    ":4": "is not a revision", ":0x": "is not a revision", "x" * 251: "is not a revision", "a\nb": "is not a revision",
    "a\x7f": "is not a revision", "\udcff": "is not text",
}  # fmt: skip


@pytest.mark.parametrize("text", GOOD)
def test_what_is_a_revision(text: str) -> None:
    assert parse_revision(text) == Revision(text)
    assert Revision(text).is_conflict_side == text.startswith(":")


@pytest.mark.parametrize("text", BAD)
def test_what_is_no_revision(text: str) -> None:
    with pytest.raises(Invalid, match=re.escape(BAD[text])):
        parse_revision(text)


@pytest.mark.parametrize(
    ("text", "start", "dots", "end"),
    [("a..b", "a", "..", "b"), ("a...b", "a", "...", "b"), ("..b", "HEAD", "..", "b"), ("a...", "a", "...", "HEAD")],
)
def test_what_is_a_range(text: str, start: str, dots: str, end: str) -> None:
    found = parse_range(text)
    assert found == Range(Revision(start), dots, Revision(end))
    assert isinstance(found, Range) and found.text == f"{start}{dots}{end}"
    assert parse_range("a") == Revision("a")
    for wrong in ("-a..b", "a..b..c", "a..^b", "a" * 251):
        with pytest.raises(Invalid):
            parse_range(wrong)


PLACES: dict[str, str | None] = {
    "": "", ".": "", "a/b": "a/b", "./a//b/": "a/b", "a.git": "a.git", ".gitignore": ".gitignore", "/a": None,
    "C:/a": None, "file:/a": None, "FILE:/a": None, "../a": None, "a/../b": None, "a/..": None, ".git/config": None,
    "a/.GIT": None, ".git. ": None, "git~1/x": None, "a\0b": None,
}  # fmt: skip


@pytest.mark.parametrize("path", PLACES)
def test_what_is_a_path_of_a_repository(path: str) -> None:
    wanted = PLACES[path]
    if wanted is None:
        with pytest.raises(Problem):
            parse_path(path)
    else:
        place = parse_path(path)
        assert (place.text, place.display) == (wanted, wanted or ".")


NAMES = {
    "main": True, "a/b": True, "é": True, "": False, "-a": False, "a b": False, "a..b": False, "a@{1}": False,
    "a:b": False, "a?": False, "a*": False, "a[": False, "a\\b": False, "a\x7f": False, "a\n": False,
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_what_can_be_the_name_of_a_branch(name: str) -> None:
    if NAMES[name]:
        assert (parse_ref(name).text, parse_new_name(name).text) == (name, name)
    else:
        for ask in (parse_ref, parse_new_name):
            with pytest.raises(Invalid, match="can't be the name"):
                ask(name)


def test_git_keeps_some_names_for_itself() -> None:
    for name in ("HEAD", "refs/heads/main"):
        assert parse_ref(name).text == name
        with pytest.raises(Invalid, match="git keeps for itself"):
            parse_new_name(name)
    assert parse_new_name("HEAD2").text == "HEAD2"


def test_a_remote_is_one_of_the_repositorys_own(tmp_path: Path, made: Made) -> None:
    far = Made(tmp_path / "far/app.git", "--bare")
    served = policy(made.path, fetch=True, remote_folder=(str(tmp_path / "far"),))
    layout = served.layout(served.repository(""))
    entries = [("remote.origin.url", str(far.path)), ("remote.two.url", str(far.path)), ("branch.x.remote", "origin")]

    def fetched(*more: str, users: tuple[tuple[str, str], ...] = ()) -> Any:
        return served.remote(
            parse_remote_name("origin"), layout, [*entries, *(("remote.origin.fetch", item) for item in more)], users
        )

    usual = "+refs/heads/*:refs/remotes/origin/*"
    some = "refs/heads/main:refs/remotes/origin/main"
    assert (fetched().name, fetched().refspecs) == ("origin", [usual])
    # What would write elsewhere than below its own name is left out.
    elsewhere = ["+refs/heads/*:refs/heads/*", "+refs/heads/*:refs/remotes/originals/*", "+refs/tags/*:refs/tags/*"]
    assert fetched(some, *elsewhere).refspecs == [some] and fetched(*elsewhere).refspecs == [usual]
    with pytest.raises(NotFound, match=r"There are: `origin`, `two`\."):
        served.remote(parse_remote_name("nobody"), layout, entries, ())
    with pytest.raises(NotFound, match=r"There is none\."):
        served.remote(parse_remote_name("nobody"), layout, entries[2:], ())
    with pytest.raises(Invalid):
        parse_remote_name("-x")


@pytest.mark.parametrize("bare", [(), ("--bare",)])
def test_a_remote_by_a_relative_path_lies_beside_the_repository(tmp_path: Path, bare: tuple[str, ...]) -> None:
    far, near = (Made(tmp_path / "far" / name, *bare) for name in ("far", "near"))
    served = policy(near.path, fetch=True, remote_folder=(str(tmp_path / "far"),))
    layout = served.layout(served.repository(""))
    found = served.remote(parse_remote_name("o"), layout, [("remote.o.url", "../far")], ()).address
    assert found == served.remote(parse_remote_name("o"), layout, [("remote.o.url", str(far.path))], ()).address


def test_every_tool_that_pushes_asks_first() -> None:
    pushing = [
        function
        for room in (read, write, remote)
        for declared, function in declarations(room)
        if isinstance(declared, DeclaredTool) and "push" in declared.gates
    ]
    assert pushing
    for function in pushing:
        assert "consented" in repr(get_type_hints(function, include_extras=True)["plan"]).lower(), function


def test_a_push_has_one_address(tmp_path: Path, made: Made) -> None:
    near, far = (Made(tmp_path / f"far/{name}.git", "--bare").path for name in ("near", "far"))
    served = policy(made.path, push=True, remote_folder=(str(tmp_path / "far"),))
    layout = served.layout(served.repository(""))
    one = [("remote.o.url", str(near))]
    own = [*one, ("remote.o.pushurl", str(far))]

    def address(entries: list[tuple[str, str]], *, push: bool, users: Sequence[tuple[str, str]] = ()) -> Any:
        return served.remote(parse_remote_name("o"), layout, entries, users, push=push).address

    assert address(one, push=True) == address(one, push=False) == address(own, push=False)
    assert address(own, push=True) == address([("remote.o.url", str(far))], push=False) != address(one, push=True)
    for several in ([*own, own[1]], [*one, one[0]]):
        assert address(several, push=False) == address(one, push=False)
        with pytest.raises(Refused, match="several addresses to push to"):
            address(several, push=True)
    # What the operator has pushed elsewhere is what has no address of its own for pushing.
    elsewhere = [(f"url.{near}.pushinsteadof", str(far)), (f"url.{far}.pushinsteadof", str(near))]
    assert address(one, push=True, users=elsewhere) == address(own, push=True, users=elsewhere)
    assert address(own, push=True, users=elsewhere) == address(own, push=True)
    # Own addresses for pushing stand by themselves, however many there are to fetch from.
    assert address([*one, one[0], own[1]], push=True) == address(own, push=True)
