"""A string is a place beneath a served folder, or a refusal that says what to do."""

from __future__ import annotations

import gc
import logging
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filesystem.places import Ground, Told, ground
from mcp_batteries.errors import Invalid, NotFound, Problem, Refused, Unavailable
from mcp_batteries.settings import load
from mcp_fs.paths import file_uri, path_of_uri, to_native, to_system_path
from mcp_fs.policy import Policy, ReadablePath, WritablePath
from mcp_fs.secrets import Secrets
from mcp_fs.settings import Settings

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX names")


@pytest.fixture
def here(tmp_path: Path) -> Ground:
    return ground(tmp_path)


@pytest.mark.parametrize("path", ["a/b.txt", "./a//b.txt", "a/./b.txt", "x/../a/b.txt", "a/b.txt/"])
def test_relative_spellings_of_one_place(here: Ground, path: str) -> None:
    assert here.readable(path).parts == ("a", "b.txt")


@pytest.mark.parametrize("path", ["", ".", "./", "a/.."])
def test_the_folder_itself(here: Ground, path: str) -> None:
    place = here.readable(path)
    assert (place.parts, place.display, place.uri) == ((), ".", here.root.as_uri())


def test_absolute_paths_and_uris(here: Ground) -> None:
    path = here.root / "a" / "b c.txt"
    spellings = [str(path), path.as_uri(), path.as_uri().replace("file:///", "file://localhost/")]
    assert [here.readable(each).parts for each in spellings] == [("a", "b c.txt")] * 3


def test_both_spellings_of_a_linked_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    policy = Policy(Told((str(tmp_path / "link"),)))
    for name in ("real", "link"):
        place = policy.readable(str(tmp_path / name / "f"))
        assert (place.parts, place.uri) == (("f",), (tmp_path / "link" / "f").as_uri())


@pytest.mark.parametrize("path", ["..", "../x", "a/../../x", "../root_evil/x", "../outside/secret.txt"])
def test_relative_paths_that_leave(here: Ground, path: str) -> None:
    with pytest.raises(Refused, match="outside the served folders"):
        here.readable(path)


@pytest.mark.parametrize("suffix", ["_evil", " ", "'", '"', "\t", "\n", "/../outside", "/../root_evil", "."])
def test_siblings_that_look_like_the_folder(here: Ground, suffix: str) -> None:
    with pytest.raises(Refused, match="outside"):
        here.readable(f"{here.root}{suffix}/x")


def test_a_refusal_does_not_tell_whether_the_file_exists(here: Ground) -> None:
    texts = list[str]()
    for name in ("secret.txt", "nothing.txt"):
        with pytest.raises(Refused) as refusal:
            here.readable(str(here.outside / name))
        texts.append(str(refusal.value).replace(name, ""))
    assert texts[0] == texts[1]
    assert str(here.root) in texts[0]


@posix
@pytest.mark.parametrize(
    ("uri", "kind"),
    [
        ("file://elsewhere/etc/passwd", Refused),
        ("file:///etc/passwd", Refused),
        ("file:///%2e%2e/etc/passwd", Refused),
        ("file:/etc/passwd", Refused),
        ("FILE:///etc/passwd", Refused),
        ("file:///x%00y", Invalid),
        ("file:///x?y", Invalid),
        ("file:///x#y", Invalid),
    ],
)
def test_uris_that_are_refused(here: Ground, uri: str, kind: type[Problem]) -> None:
    with pytest.raises(kind):
        here.readable(uri)


@posix
def test_dots_and_slashes_encoded_in_a_uri_mean_what_they_mean_decoded(here: Ground) -> None:
    with pytest.raises(Refused):
        here.readable(f"{here.root.as_uri()}/%2e%2e%2foutside/secret.txt")
    assert here.readable(f"{here.root.as_uri()}/a%2fb").parts == ("a", "b")


@pytest.mark.parametrize("path", ["a\0b", "\0", "a/\ud800"])
def test_strings_that_are_no_paths(here: Ground, path: str) -> None:
    with pytest.raises(Invalid):
        here.readable(path)


@posix
def test_bytes_that_are_not_utf8_travel_as_a_uri(here: Ground) -> None:
    place = here.readable(f"{here.root.as_uri()}/%FF%fe.txt")
    assert os.fsencode(place.parts[0]) == b"\xff\xfe.txt"
    assert place.display == place.uri == f"{here.root.as_uri()}/%FF%FE.txt"
    assert here.readable(place.display) == place


@posix
@given(st.lists(st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1), max_size=4))
def test_what_is_displayed_and_its_uri_name_the_place_again(names: list[str]) -> None:
    policy = _at_root()
    place = policy.readable("/" + "/".join(names))
    assert policy.readable(place.uri) == place
    assert policy.readable(place.display) == place or place.display.lower().startswith("file:/")


@posix
@given(st.text(st.characters(exclude_characters="\0"), max_size=60))
def test_no_string_names_a_place_with_dots(text: str) -> None:
    try:
        place = _at_root().readable(text)
    except Problem:
        return
    assert not set(place.parts) & {"", ".", ".."}
    assert not any("/" in part or "\0" in part for part in place.parts)


_roots: list[Policy] = []


def _at_root() -> Policy:
    if not _roots:
        _roots.append(Policy(Told(("/",), allow_secrets=("*",))))
    return _roots[0]


def test_several_folders_begin_with_their_names(tmp_path: Path) -> None:
    for name in ("a/src", "b/src", "docs"):
        (tmp_path / name).mkdir(parents=True)
    policy = Policy(Told(tuple(str(tmp_path / name) for name in ("a/src", "b/src", "docs"))))
    assert [root.name for root in policy.roots] == ["src", "src-2", "docs"]
    place = policy.readable("src-2/x")
    assert (place.root, place.parts, place.display) == (policy.roots[1], ("x",), "src-2/x")
    assert policy.readable("docs").display == "docs"
    with pytest.raises(NotFound, match="`src`, `src-2`, `docs`"):
        policy.readable("other/x")
    with pytest.raises(Invalid, match="Several folders"):
        policy.readable(".")
    with pytest.raises(Refused):
        policy.readable("docs/../../x")


def test_a_search_begins_in_every_folder_or_where_it_is_told(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    both = Policy(Told((str(tmp_path / "a"), str(tmp_path / "b"))))
    for path in ("", ".", "./", "/"):
        assert [place.display for place in both.search_roots(path)] == ["a", "b"]
    assert [place.display for place in both.search_roots("b/x")] == ["b/x"]
    one = Policy(Told((str(tmp_path / "a"),)))
    assert [place.parts for path in ("", ".", "x/y") for place in one.search_roots(path)] == [(), (), ("x", "y")]
    with pytest.raises(Refused):
        one.search_roots(os.path.abspath("/"))


def test_a_list_names_what_it_does_not_open(here: Ground) -> None:
    folder = here.readable("a")
    assert folder.uri_of(".env") == (here.root / "a" / ".env").as_uri()
    assert here.policy.is_protected((".env",)) and not here.policy.is_protected(("a",))
    assert (
        here.policy.is_secret_folder((".aws",))
        and not here.policy.is_secret_folder(("a",))
        and not here.policy.is_secret_folder(())
    )
    assert not Secrets([".aws/*"]).is_secret_folder((".AWS",))
    assert Secrets().is_secret((".aws", "credentials", "old"))
    assert not Secrets(["credentials"]).is_secret((".aws", "credentials", "old"))


def test_a_client_root_that_is_of_no_use_does_not_cost_the_others(here: Ground) -> None:
    for name in ("good", ".aws", "file"):
        (here.root / name).mkdir() if name != "file" else (here.root / name).write_text("")
    useless = ["http://x/", here.outside.as_uri(), (here.root / ".aws").as_uri(), (here.root / "file").as_uri()]
    good = (here.root / "good").as_uri()
    for uri in useless:
        assert [root.name for root in here.policy.narrow_to_roots([uri, good]).roots] == ["good"]
        with pytest.raises(Refused, match="outside the served folders"):
            here.policy.narrow_to_roots([uri])
    wider = here.root.parent.as_uri()
    assert [root.name for root in here.policy.narrow_to_roots([wider, good]).roots] == ["root"]
    assert here.policy.narrow_to_roots([]) is here.policy


@posix
def test_a_folder_that_is_not_served_any_more_is_closed(here: Ground) -> None:
    (here.root / "good").mkdir()
    narrowed = here.policy.narrow_to_roots([(here.root / "good").as_uri()])
    descriptor = narrowed.roots[0].fd
    os.fstat(descriptor)
    del narrowed
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_the_inner_of_two_nested_folders_answers(tmp_path: Path) -> None:
    (tmp_path / "out" / "in").mkdir(parents=True)
    policy = Policy(Told((str(tmp_path / "out"), str(tmp_path / "out" / "in"))))
    assert policy.readable(str(tmp_path / "out" / "in" / "x")).root.name == "in"
    assert policy.readable(str(tmp_path / "out" / "x")).root.name == "out"


def test_missing_folders_are_reported_and_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.WARNING):
        policy = Policy(Told((str(tmp_path / "gone"), str(tmp_path), str(tmp_path / "file"))))
    assert [root.path for root in policy.roots] == [str(tmp_path)]
    assert [str(tmp_path / name) in text for name, text in zip(("gone", "file"), caplog.messages, strict=True)]
    with pytest.raises(Unavailable, match="gone` can't be opened: No such file"):
        Policy(Told((str(tmp_path / "gone"),)))
    with pytest.raises(Unavailable, match="file` can't be opened: Not a directory"):
        Policy(Told((str(tmp_path / "file"),)))
    with pytest.raises(Unavailable, match="There is no folder to serve"):
        Policy(Told(()))


@pytest.mark.parametrize("empty", ["", " "])
def test_an_empty_name_is_not_the_current_folder(empty: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        load(Settings, [empty])
    assert caught.value.code == 2 and "a path is empty" in capsys.readouterr().err


SECRETS = [
    ".env", ".ENV", "a/.env.local", "server.pem", "x/server.KEY", ".ssh/config", ".ssh", "id_rsa", "id_ed25519",
    ".npmrc", ".netrc", ".pgpass", ".aws/credentials", ".git-credentials", ".kube/config", "kubeconfig",
    ".gnupg/secring.gpg", ".config/gcloud/access_tokens.db", ".azure/accessTokens.json", ".docker/config.json",
]  # fmt: skip
HARMLESS = [
    ".env.example", "a/.env.template", "id_rsa.pub", ".ssh/id_rsa.pub", ".aws/config", "config", "credentials",
    ".config/other", "keys.txt", "environment", "monkey", ".envoy",
]  # fmt: skip


@pytest.mark.parametrize("path", SECRETS)
def test_secrets_are_refused(here: Ground, path: str) -> None:
    for mint in (here.readable, here.writable):
        with pytest.raises(Refused, match="protected"):
            mint(path)
    assert here.policy.is_protected(tuple(path.split("/")))


@pytest.mark.parametrize("path", HARMLESS)
def test_names_like_secrets_are_not(here: Ground, path: str) -> None:
    assert here.readable(path).parts == tuple(path.split("/"))


@pytest.mark.parametrize(
    ("pattern", "allowed"),
    [(".env", ".env"), ("*.pem", "a/b.pem"), (".ssh", ".ssh/config"), (".aws/*", ".aws/credentials"), (".ENV", ".env")],
)
def test_secrets_can_be_allowed(tmp_path: Path, pattern: str, allowed: str) -> None:
    policy = Policy(Told((str(tmp_path),), allow_secrets=(pattern,)))
    assert policy.readable(allowed)
    with pytest.raises(Refused):
        policy.readable("id_rsa")


def test_a_path_that_is_allowed_does_not_open_what_lies_beside_or_below(tmp_path: Path) -> None:
    policy = Policy(Told((str(tmp_path),), allow_secrets=(".ssh/x",)))
    assert policy.readable(".ssh/x")
    for path in (".ssh", ".ssh/y", ".ssh/x/y"):
        with pytest.raises(Refused):
            policy.readable(path)


def test_an_entry_that_is_a_secret_can_not_be_reached_from_its_folder(here: Ground) -> None:
    with pytest.raises(Refused):
        here.readable("a") / ".env"
    assert here.readable("a") / "b" == here.readable("a/b")


def test_read_only_mints_nothing_to_write(tmp_path: Path) -> None:
    policy = Policy(Told((str(tmp_path),), read_only=True))
    assert isinstance(policy.readable("x"), ReadablePath)
    with pytest.raises(Refused, match="read-only"):
        policy.writable("x")


def test_what_may_be_written_may_be_read(here: Ground) -> None:
    place = here.writable("a/b")
    assert isinstance(place, WritablePath)
    assert isinstance(place.parent, WritablePath)
    assert place.parent.parts == ("a",)


class TestNarrowed:
    """A client's roots can only take away."""

    def test_no_roots_are_no_information(self, here: Ground) -> None:
        assert here.policy.narrow_to_roots([]) is here.policy

    def test_a_folder_inside(self, here: Ground) -> None:
        (here.root / "a" / "b").mkdir(parents=True)
        narrowed = here.policy.narrow_to_roots([(here.root / "a").as_uri()])
        assert narrowed.readable("b").uri == (here.root / "a" / "b").as_uri()
        with pytest.raises(Refused):
            narrowed.readable(str(here.root / "other"))

    def test_a_folder_around_gives_what_is_served(self, here: Ground) -> None:
        narrowed = here.policy.narrow_to_roots([here.root.parent.as_uri(), "file:///"])
        assert [root.path for root in narrowed.roots] == [str(here.root)]
        with pytest.raises(Refused):
            narrowed.readable(str(here.outside / "secret.txt"))

    @pytest.mark.parametrize(
        "uri", ["outside", "gone", "root/gone", "root/link", "root/.ssh", "root/.aws", "root_evil"]
    )
    def test_nothing_in_common(self, here: Ground, uri: str) -> None:
        (here.root / "link").symlink_to(here.outside)
        for secret in (".ssh", ".aws"):
            (here.root / secret).mkdir()
        with pytest.raises(Refused, match="roots lie outside"):
            here.policy.narrow_to_roots([(here.root.parent / uri).as_uri()])

    def test_what_is_no_file_uri_counts_for_nothing(self, here: Ground) -> None:
        with pytest.raises(Refused):
            here.policy.narrow_to_roots(["https://example.org/", "not a uri", "file://elsewhere/x"])


@pytest.mark.parametrize(
    ("path", "given"),
    [
        (r"C:\short", r"C:\short"),
        ("C:\\" + "x" * 244, "C:\\" + "x" * 244),
        ("C:\\" + "x" * 245, "\\\\?\\C:\\" + "x" * 245),
        ("\\\\host\\share\\" + "x" * 250, "\\\\?\\UNC\\host\\share\\" + "x" * 250),
        ("\\\\?\\C:\\" + "x" * 250, "\\\\?\\C:\\" + "x" * 250),
    ],
    ids=["short", "longest", "long", "on a share", "as it is"],
)
def test_windows_gets_a_long_path_in_the_form_it_takes(path: str, given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_fs.paths._WINDOWS", True)
    assert to_system_path(path) == given


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        (r"C:\Users\Ann Müller", "file:///C:/Users/Ann%20M%C3%BCller"),
        ("D:\\", "file:///D:/"),
        (r"\\server\share\plan 1.txt", "file:////server/share/plan%201.txt"),
    ],
    ids=["a folder", "a drive", "a share"],
)
def test_the_uri_of_a_path_of_windows_leads_back_to_it(path: str, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_fs.paths._WINDOWS", True)
    assert file_uri(path) == uri and path_of_uri(uri) == path
    assert path_of_uri("file://server/share/plan%201.txt") == r"\\server\share\plan 1.txt"


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/c/Users/me", "c:/Users/me"),
        ("/mnt/d/x", "d:/x"),
        ("/cygdrive/C", "C:/"),
        ("/tmp/x", "E:/tmp/x"),
        (r"\Windows", r"E:\Windows"),
        ("/", "E:/"),
        (r"\\server\share\x", r"\\server\share\x"),
        (r"\\?\C:\x", r"\\?\C:\x"),
        ("c/Users", "c/Users"),
        (r"C:\x", r"C:\x"),
        (".", "."),
    ],
)
def test_a_path_without_a_drive_is_of_the_drive_it_names_or_the_served_one(
    path: str, meant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_fs.paths._WINDOWS", True)
    assert to_native(path, ["E:", "E:"]) == meant
    assert to_native(path, ["E:", "F:"]) == (path if meant.startswith("E:") else meant)
