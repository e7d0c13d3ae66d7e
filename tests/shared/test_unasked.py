"""Where nobody can be asked, the caller reads why, and how it can be otherwise."""

import sys
from pathlib import Path
from typing import Any

import pytest

from mcp_batteries.testing.wire import MODERN, HttpWire, Message
from shared.http_subject import running

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

FORMS: Message = {"elicitation": {}}
PAGES: Message = {"elicitation": {"url": {}}}


async def answer(folder: Path, revision: str, capabilities: Message, options: list[str], **headers: str) -> Message:
    """The result of a call that needs the user's consent, from mcp-fs over HTTP."""
    (folder / "it.txt").write_text("kept", "utf-8")
    command = [sys.executable, "-m", "mcp_fs", "--transport", "http", "--port", "0", "--confirm", *options]
    async with running([*command, str(folder)]) as subject:
        wire = HttpWire(subject.url, revision=revision, headers=headers, capabilities=capabilities)
        async with wire:
            await wire.open()
            result = await wire.call("delete_file", paths=["it.txt"])
    assert (folder / "it.txt").exists()
    return result


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
@pytest.mark.parametrize(
    ("capabilities", "said"),
    [({}, "this client cannot ask for it."), (PAGES, "this client can open pages but shows no form to ask for it.")],
    ids=["nothing", "pages"],
)
async def test_a_client_without_forms_reads_that_it_has_none(
    revision: str, capabilities: Message, said: str, tmp_path: Path
) -> None:
    result = await answer(tmp_path, revision, capabilities, [])
    text = result["content"][0]["text"]
    assert result["isError"] and said in text
    assert text.endswith("The operator can start the server without `--confirm`.")


@pytest.mark.parametrize(
    ("options", "headers"),
    [(["--json-response"], {}), ([], {"accept": "application/json"})],
    ids=["server without streams", "client without streams"],
)
async def test_where_no_question_can_come_before_the_answer_nobody_is_told_to_ask(
    options: list[str], headers: dict[str, Any], tmp_path: Path
) -> None:
    result = await answer(tmp_path, "2025-11-25", FORMS, options, **headers)
    text = result["content"][0]["text"]
    assert result["isError"] and "no question can come before the answer" in text
    assert "Ask the user" not in text and "--json-response" in text


async def test_a_question_that_is_the_answer_needs_no_stream(tmp_path: Path) -> None:
    """Clients of 2026-07-28 are asked by a result, and call again."""
    result = await answer(tmp_path, MODERN, FORMS, ["--json-response"])
    assert result["resultType"] != "complete" and "it.txt" in str(result["inputRequests"])
