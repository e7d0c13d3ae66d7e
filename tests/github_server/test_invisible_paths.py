"""Paths with characters that nobody can see: shown in a spelling that can be read, and read under that spelling."""

import io
import re
import sys
import unicodedata
import zipfile
from functools import cache
from typing import Any
from urllib.parse import quote as percent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from github_server.oracle import Oracle
from github_server.serving import EVERYTHING, call, refused, served
from github_server.world import SHA, branch, changed, file, sample
from mcp_batteries.settings import load
from mcp_github.invisible import escape_path, unescape_path
from mcp_github.policy import Policy
from mcp_github.settings import Settings

# Default_Ignorable_Code_Point of the Unicode Character Database, as far as categories don't tell.
IGNORABLE = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2065\u3164\uffa0\ufe00\ufe0f\U000e0000\U000e0100\U000e0fff"
)
BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI", "BN"}
VISIBLE = set("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
"""Signs of the category Cf that have a shape."""


def unseen(char: str) -> bool:
    """Whether Unicode says that `char` shows nothing, or turns the order of what follows."""
    if char == " " or char in VISIBLE or unicodedata.category(char) in ("Cs", "Cn"):
        return char in IGNORABLE
    kind = unicodedata.category(char)
    return kind in ("Cc", "Cf", "Co", "Zs", "Zl", "Zp") or char in IGNORABLE or unicodedata.bidirectional(char) in BIDI


@cache
def all_unseen() -> list[str]:
    return [char for number in range(sys.maxunicode + 1) if unseen(char := chr(number))]


@cache
def few_unseen() -> list[str]:
    """Those that are not in private use."""
    return [char for char in all_unseen() if unicodedata.category(char) != "Co"]


PATHS = st.text(
    st.one_of(
        st.deferred(lambda: st.sampled_from(few_unseen())),
        st.sampled_from("ab/\\u{}20क\u200dé❤\ufe0f"),
        st.characters(codec="utf-8"),
    )
)


def test_whatever_unicode_hides_is_spelt_out_and_meant() -> None:
    assert len(all_unseen()) > 137_000 and len(few_unseen()) > 150
    for char in all_unseen():
        path = f"src/a{char}b.py"
        shown = escape_path(path)
        assert shown == f"src/a\\u{{{ord(char):x}}}b.py", ascii(char)
        assert unescape_path(shown) == path


def test_whatever_ascii_shows_is_shown_as_it_is() -> None:
    shown = "".join(map(chr, range(0x20, 0x7F)))
    assert not any(map(unseen, shown)) and escape_path(shown) == shown


@given(PATHS)
def test_each_path_has_one_spelling_that_means_it(path: str) -> None:
    shown = escape_path(path)
    assert unescape_path(shown) == path
    # Nothing unseen is left between letters, and what is shown is shown alike wherever it stands.
    for before, char, after in zip(f" {shown}", shown, f"{shown[1:]} ", strict=False):
        assert not (unseen(char) and before.isascii() and after.isascii()), ascii(shown)


@pytest.mark.parametrize(
    "path", ["a b.py", "naïve.md", "日本語.txt", "می‌خواهم.txt", "❤️.png", "क्‍ष.py", "1️⃣.md", "👩‍👩‍👧.txt", "a\\b", "{u}"]
)
def test_what_can_be_seen_is_shown_as_it_is(path: str) -> None:
    assert escape_path(path) == path


@pytest.mark.parametrize("text", ["\\u{110000}", "\\u{d800}", "\\u{}", "\\u{xyz}", "\\u200b"])
def test_what_spells_nothing_stands_for_itself(text: str) -> None:
    assert unescape_path(text) == text


@pytest.mark.parametrize(
    "hidden", ["../x", "a/\\u{2e}\\u{2e}/x", "\\u{2f}\\u{2f}x\\u{2f}..", "a\\u{0}b", ".\\u{67}it/config"]
)
def test_no_spelling_gets_past_the_policy(hidden: str) -> None:
    policy = Policy(load(Settings, ["--write"]))
    with pytest.raises(Exception, match=r"part|can't be|git's own"):
        policy.write_file(hidden)
    with pytest.raises(Exception, match="Actions runs"):
        policy.write_file(".github/work\\u{66}lows/x.yml")


@pytest.mark.slow
@pytest.mark.anyio
async def test_such_a_path_is_listed_read_and_changed_under_its_spelling(oracle: Oracle) -> None:
    names = [*(f"a{char}b.py" for char in few_unseen()[1::9]), "a\\u{200b}b.py", "&#8203;.py"]
    branch(oracle)
    entries = [{**file(name, b""), "type": "file"} for name in names]
    oracle.answer("GET", "/repos/octo/app/contents/", {"type": "dir", "entries": entries})
    tree = [{"path": f"src/{name}", "type": "blob", "mode": "100644", "sha": SHA, "size": 1} for name in names]
    oracle.answer("GET", "/repos/octo/app/git/trees/HEAD", {"tree": tree, "truncated": False})
    oracle.answer("GET", "/repos/octo/app/pulls/5/files", [changed(name) for name in names])
    for name in names:
        oracle.answer("GET", f"/repos/octo/app/contents/{re.escape(name)}", file(name, b"it\n"))
    async with served(oracle, *EVERYTHING) as client:
        listed = await call(client, "list_files", repo="octo/app")
        assert [row[0] for row in listed["rows"]] == [escape_path(name) for name in names]
        found = await call(client, "list_files", repo="octo/app", path="src", recursive=True, limit=1000)
        assert [row[0] for row in found["rows"]] == [f"src/{escape_path(name)}" for name in names]
        diff = await call(client, "read_diff", repo="octo/app", number=5, summary=True)
        for name, (path, *_) in zip(names, listed["rows"], strict=True):
            assert path.isprintable() and f"=== {path} (" in diff
            oracle.seen.clear()
            text = await call(client, "read_file", repo="octo/app", path=path)
            assert f"octo/app:{path};" in text and text.endswith("it\n")
            assert oracle.sent("GET")[-1].target == f"/repos/octo/app/contents/{percent(name)}"
            uri = text.partition("\n")[0].rpartition("; ")[2].rstrip("]")
            assert "it\n" in (await client.read_resource(uri)).contents[0].text  # type: ignore[union-attr]
            one = await call(client, "read_diff", repo="octo/app", number=5, path=path)
            assert one.count("===") == 1 and f"=== {path} (" in one
        change = {"path": escape_path(names[0]), "sha": SHA, "content": "new\n"}
        await call(client, "write_files", repo="octo/app", branch="main", message="M", files=[change])
        sent: Any = oracle.sent("POST", "/graphql")[-1].json["variables"]["input"]["fileChanges"]["additions"]
        assert sent[0]["path"] == names[0]
        taken = {"path": escape_path(names[1]), "content": "new\n"}
        said = await refused(client, "write_files", repo="octo/app", branch="main", message="M", files=[taken])
        assert f"`{escape_path(names[1])}` exists already" in said


@pytest.mark.anyio
async def test_files_of_gists_and_artifacts_too(oracle: Oracle) -> None:
    name = "a\u202eb.txt"
    gist = sample("gists/get")
    gist["files"] = {name: {"filename": name, "content": "it"}, "ab.txt": {"filename": "ab.txt", "content": "other"}}
    oracle.answer("GET", "/gists/aa5a315d61ae9438b18d", gist)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("ab.txt", "other\n")
        archive.writestr(name, "it\n")
    where = {"Location": f"{oracle.url}/_storage/zip"}
    oracle.answer("GET", "/repos/octo/app/actions/artifacts/5/zip", status=302, headers=where)
    oracle.answer("GET", "/_storage/zip", raw=made.getvalue())
    shown = "a\\u{202e}b.txt"
    async with served(oracle, *EVERYTHING) as client:
        one = {"gist": "aa5a315d61ae9438b18d"}
        assert (await call(client, "get_gist", **one))["data"]["texts"] == {shown: "it", "ab.txt": "other"}
        assert (await call(client, "get_gist", **one, file=shown))["data"]["texts"] == {shown: "it"}
        await call(client, "write_gist", **one, texts={shown: "new"})
        assert oracle.sent("PATCH")[-1].json["files"] == {name: {"content": "new"}}
        assert shown in await call(client, "read_artifact", repo="octo/app", artifact=5)
        assert (await call(client, "read_artifact", repo="octo/app", artifact=5, path=shown)).endswith("it\n")
