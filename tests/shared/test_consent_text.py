"""What is said of a text before it leaves: secrets and links in every disguise that a page or a reader undoes."""

import base64
import time
from collections.abc import Callable
from urllib.parse import quote

import pytest

from mcp_batteries.server.calling.confirmation_text import find_warnings

SECRETS = {
    "a GitHub token": "ghp_" + "a1B2" * 9,
    "an AWS key": "AKIA" + "Q7R8" * 4,
    "a Slack token": "xoxb-" + "123456789012-" * 2 + "AbCdEf",
    "a JSON web token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl",
    "an API key": "sk-live-" + "Zz09" * 8,
}
DISGUISES: dict[str, Callable[[str], str]] = {
    "bare": str,
    "far down": lambda text: f"{'word ' * 40_000}{text}",
    "bold in the middle": lambda text: f"**{text[:9]}**{text[9:]}",
    "a comment in the middle": lambda text: f"{text[:9]}<!-- x -->{text[9:]}",
    "a tag in the middle": lambda text: f"{text[:9]}<b></b>{text[9:]}",
    "escaped": lambda text: "".join(f"\\{char}" if char in "_-." else char for char in text),
    "an entity": lambda text: text[:3] + "".join(f"&#{ord(char)};" for char in text[3:6]) + text[6:],
    "percent signs": lambda text: "".join(f"%{ord(char):02x}" for char in text[:8]) + quote(text[8:]),
    "a gap nobody sees": lambda text: f"{text[:9]}\u200b{text[9:]}",
    "full width": lambda text: "".join(chr(ord(char) + 0xFEE0) if char.isalnum() else char for char in text),
    "two lines": lambda text: f"{text[:14]}\n{text[14:]}",
    "letters apart": " ".join,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 behind something": lambda text: "x" + base64.urlsafe_b64encode(f"ab{text}".encode()).decode(),
    "hexadecimal": lambda text: text.encode().hex(),
}
LINKS = [
    "https://evil.example/x", "HTTPS://EVIL.example", "[x](//evil.example/x)", "![](//evil.example/x.png)",
    "see www.evil.example/x", "[x](&#104;ttps://evil.example/x)", "[x](https&colon;//evil.example/x)",
    "<img src=//evil.example/x>", "<img src='//evil.example/x'>", "[a]: //evil.example/x",
    "[x](https:\\\\evil.example)",
    "[x](https:/evil.example)", "[x](https:///evil.example)", "mailto:thief@evil.example", "ｈｔｔｐｓ://evil.example/",
    "h\u200bttps://evil.example", "https://github.com@evil.example/", "https%3A//evil.example",
    "//evil.example/at/once",
]  # fmt: skip
ORDINARY = [
    "int x = 1; // see foo.bar and a//b", "C:/Users/me and path:/usr/bin", "write to me@host.example", "and//or",
    "6dcb09b5b57875f334f61aebed695e2e4193db5e", "data: none; javascript is fine",
    "a risk-free list of task-items-that-are-long-enough", "The secret of a good sentence is its length.",
    "| a | b |\n| --- | --- |\n" * 50, "sha512-" + base64.b64encode(bytes(range(64))).decode(),
]  # fmt: skip


@pytest.mark.share(25)
@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("what", SECRETS)
def test_a_secret_is_noted_however_it_is_written(what: str, disguise: str) -> None:
    text = DISGUISES[disguise](SECRETS[what])
    assert f"it holds what looks like {what}" in find_warnings({"files": [{"path": "a", "content": f"see: {text}."}]})


def test_a_token_that_is_glued_to_a_word_is_noted() -> None:
    assert find_warnings({"body": f"x{SECRETS['a GitHub token']}"}) == ["it holds what looks like a GitHub token"]


@pytest.mark.parametrize("text", LINKS)
def test_a_link_is_noted_however_it_is_written(text: str) -> None:
    assert any("evil.example" in note for note in find_warnings({"body": text})), find_warnings({"body": text})


def test_an_address_that_does_something_is_noted() -> None:
    for text in ("[x](javascript:alert(1))", "[x](data:text/html;base64,AAAA)", "&#106;avascript:alert(1)"):
        assert "it has an address that begins with" in "; ".join(find_warnings({"body": text})), text


@pytest.mark.parametrize("text", ORDINARY, ids=range(len(ORDINARY)))
def test_ordinary_text_is_not_remarkable(text: str) -> None:
    assert find_warnings({"body": text}) == []


@pytest.mark.share(3)
@pytest.mark.parametrize(
    "piece", ["<!--", "<a ", "*", "&#", "%4", "A" * 27 + " ", "//a", "www.", "https:", "ghp_a ", "\u200b"]
)
def test_no_text_takes_long(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    start = time.process_time()
    find_warnings({"body": text})
    assert time.process_time() - start < 3
