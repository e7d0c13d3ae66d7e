"""Secrets by name and by shape in every form of a public corpus, and ordinary text that stays readable."""

import time
from random import Random

import pytest

from mcp_batteries.redaction.names import is_secret_name
from mcp_batteries.redaction.own import add_secrets, forget_secrets, mask_own
from mcp_batteries.redaction.text import redact, redact_json
from shared.secret_corpus import NAMES, ORDINARY, SHAPES, drawn, named_values, private_keys

SENTENCES = ("{}", "the value is {}.", '["{}"]', "x={}&y", "see\n{}\nbelow", "({})", "<a>{}</a>")
LONGEST_PIECE = 8
ROUNDS = [2, pytest.param(200, marks=pytest.mark.weekly)]


@pytest.mark.parametrize("rounds", ROUNDS)
def test_every_shape_of_a_token_is_hidden(rounds: int) -> None:
    dice = Random(rounds)
    for template in SHAPES:
        for _ in range(rounds):
            value = drawn(template, dice)
            for sentence in SENTENCES:
                left = redact(sentence.format(value))
                piece = max(value.split("/"), key=len)
                assert piece[-LONGEST_PIECE:] not in left, (template, value, left)


@pytest.mark.parametrize("rounds", [1, pytest.param(50, marks=pytest.mark.weekly)])
def test_every_value_of_a_secret_name_is_hidden(rounds: int) -> None:
    dice = Random(rounds)
    for _ in range(rounds):
        for form, text, value in named_values(dice):
            left = redact(text)
            assert value not in left and value[3:] not in left, (form, text, left)
            assert value not in redact(f"before\n{text}\nafter") and redact(left) == left, (form, text, left)


def test_private_keys_are_hidden_whole_cut_or_escaped() -> None:
    for text, line in private_keys(Random(1)):
        assert line not in redact(f"before {text} after")
    assert redact("a -----BEGIN PRIVATE KEY----- in a sentence, and more").endswith("in a sentence, and more")


@pytest.mark.parametrize("name", NAMES)
def test_a_member_of_a_secret_name_is_hidden(name: str) -> None:
    assert redact_json({name: "hunter2"}) == {name: "***"}


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays(text: str) -> None:
    assert redact(text) == text
    assert redact_json({"text": [text]}) == {"text": [text]}


def test_names_that_say_something_about_a_secret_are_none() -> None:
    ordinary = """
        author authority tokenizer token_type passwordFile max_tokens nextPageToken progressToken secretary keyboard
        monkey primary_key foreignKey keys id compass passenger password_policy token_url tokens_per_second
    """
    assert not [name for name in ordinary.split() if is_secret_name(name)]


@pytest.mark.share(10)
@pytest.mark.parametrize(
    "piece",
    ["-", "a:", "password=", "token: '", "://", "<token>", "-----BEGIN PRIVATE KEY-----", '"', "\\\"", "eyJaaaaaaaa.",
     "ey-",
     "A", "a@", "x://u:", "key name=a value=", "$", "--a ", "ghp_", "AAAAAAAAAAAAAAAAAAAAAAAA%", "0" * 16 + "|"],
)  # fmt: skip
def test_no_text_takes_long(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    start = time.process_time()
    redact(text)
    assert time.process_time() - start < 3


def test_a_secret_of_this_process_is_hidden_in_every_spelling_and_piece() -> None:
    secret = """p@ss:w/o#r?d%41 "'"""
    try:
        add_secrets([secret])
        for text in (
            secret,
            repr(secret),
            "failed to resolve host 'ss:w'",
            "invalid port: w/o#r",
            "p%40ss%3Aw%2Fo%23r%3Fd%2541%20%22%27",
            "pAss:w/o#r?dA",
            """d%41 \\"'""",
        ):
            left = mask_own(text)
            for start in range(len(secret) - 3):
                assert secret[start : start + 4] not in left, (text, left)
        assert mask_own("the host db.example.org has no password") == "the host db.example.org has no password"
    finally:
        forget_secrets()
