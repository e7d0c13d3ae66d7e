"""What is taken out of texts, and what stays."""

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

from github_server.oracle import Oracle
from github_server.serving import call, served
from github_server.world import changed, comment, file, issue
from mcp_github.safety.scrub import scrub, scrub_text

HIDDEN = [
    "\u200b", "\u200e", "\u202e", "\u2066", "\u2060", "\ufeff", "\u00ad", "\U000e0041", "\U000e0100", "\u3164",
    "\x00", "\x1b", "\x85"[:0] + "\x9b", "&#8203;", "&#x202E;", "&ZeroWidthSpace;", "&amp;#8203;", "&amp;amp;#x200b;",
    "&lrm;", "&shy;", "&#917569;",
]  # fmt: skip


@pytest.mark.parametrize("hidden", HIDDEN, ids=ascii)
def test_what_cannot_be_seen_goes(hidden: str) -> None:
    text, removed = scrub_text(f"a{hidden}b{hidden}")
    assert text == "ab" and removed >= 2


@pytest.mark.parametrize(
    "text",
    ["naïve café", "日本語のテキスト", "👩‍👩‍👧‍👦 ❤️ 1️⃣", "می‌خواهم", "क्‍ष",
     "a < b && c &amp; d &lt;x&gt; &nbsp;", "\ttabs\r\nlines\n",
     "&notanentity;", "🏳️‍🌈", "עברית", "x & y"],
)  # fmt: skip
def test_what_scripts_and_emoji_need_stays(text: str) -> None:
    assert scrub_text(text) == (text, 0)


def test_smuggled_bytes_go_where_one_selector_stays() -> None:
    smuggled = (
        "❤\ufe0f" + "".join(chr(0xFE00 + n % 16) for n in range(20)) + "".join(chr(0xE0100 + n) for n in range(20))
    )
    text, removed = scrub_text(smuggled)
    assert text == "❤\ufe0f" and removed == 40


def test_taking_one_out_puts_none_together() -> None:
    assert scrub_text("&#82\u200b03;&#&#8203;8203;")[0] == ""


def test_code_keeps_its_entities() -> None:
    data, removed = scrub({"patch": "+<p>&#8203;\u202e</p>", "body": "<p>&#8203;</p>", "na\u200bme": [1, None, True]})
    assert data == {"patch": "+<p>&#8203;</p>", "body": "<p></p>", "na\\u{200b}me": [1, None, True]} and removed == 2


@given(st.text())
def test_scrubbing_is_idempotent_and_leaves_nothing(text: str) -> None:
    once, _ = scrub_text(text)
    assert scrub_text(once) == (once, 0)
    again = html.unescape(once)
    assert not any(0xE0000 <= ord(char) <= 0xE007F for char in again)


@given(st.text(alphabet=st.characters(max_codepoint=126, min_codepoint=32)))
def test_plain_text_without_entities_is_untouched(text: str) -> None:
    plain = text.replace("&", "+")
    assert scrub_text(plain) == (plain, 0)


@pytest.mark.anyio
async def test_every_road_is_scrubbed_and_counted(oracle: Oracle) -> None:
    bad = "a\u200bb&#x202e;c"
    oracle.answer("GET", "/repos/octo/app/issues/3", issue(3, title=bad, body=bad, labels=[{"name": bad}]))
    oracle.pages("/repos/octo/app/issues/3/comments", [comment(1, body=bad)])
    oracle.answer("GET", "/repos/octo/app/contents/x.py", file("x.py", "a\u202eb &#8203;\n".encode()))
    oracle.answer("GET", "/repos/octo/app/pulls/5/files", [changed("a\u202eb.py", patch="+a\u202eb &#8203;")])
    threads = {"nodes": [{"comments": {"nodes": [{"body": bad}], "totalCount": 1}}], "totalCount": 1}
    oracle.graphql("Threads", {"repository": {"pullRequest": {"reviewThreads": threads}}})
    async with served(oracle) as client:
        found = await call(client, "get_issue", repo="octo/app", number=3)
        assert found["data"]["title"] == found["data"]["body"] == found["data"]["labels"][0] == "abc"
        assert found["removed"] == 6
        found = await call(client, "list_comments", repo="octo/app", number=3)
        assert found["rows"][0][-1] == "abc" and found["removed"] == 2
        text = await call(client, "read_file", repo="octo/app", path="x.py")
        assert "ab &#8203;" in text and "1 invisible characters removed" in text
        text = await call(client, "read_diff", repo="octo/app", number=5)
        assert "=== a\\u{202e}b.py" in text and "+ab &#8203;" in text and "1 invisible" in text
        found = await call(client, "list_reviews", repo="octo/app", number=5, kind="threads")
        assert found["rows"][0][-1][0][-1] == "abc" and found["removed"] == 2
