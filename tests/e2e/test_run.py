"""What a person meets: the command line, the terminal greeting, the self-test, the audit log."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

from e2e.services import free_port, serving
from mcp_batteries.cli import check
from mcp_batteries.cli.check_http import answers_over_http, bus_answers
from mcp_batteries.observability.audit import Audit
from mcp_batteries.program import program_of
from mcp_batteries.settings import load
from mcp_batteries.testing.wire import StdioWire
from mcp_batteries.transports.http.auth.tokens import create_token
from shared.certificates import certificate


def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MCP_FS")} | more
    return subprocess.run(
        [sys.executable, "-m", "mcp_fs", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        stdin=subprocess.DEVNULL,
        timeout=60,
        env=environment,
    )


def test_version() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, "mcp-fs 0.1.0\n", "")


@pytest.mark.parametrize("option", ["--version", "--print-config=vscode"])
def test_a_reader_that_has_enough_is_no_error(option: str, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "mcp_fs", option, str(tmp_path)], stdout=closed, stderr=subprocess.PIPE, timeout=60
        )
    assert (done.returncode, b"Traceback" in done.stderr, b"BrokenPipe" in done.stderr) == (141, False, False)


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX closes it")
def test_no_standard_output_is_no_error() -> None:
    command = ["/bin/sh", "-c", '"$0" -m mcp_fs --version >&-', sys.executable]
    done = subprocess.run(command, stderr=subprocess.PIPE, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_unknown_option_stops_the_start(tmp_path: Path) -> None:
    done = run("--reed-only", str(tmp_path))
    assert done.returncode == 2 and "Did you mean one of: '--read-only'" in done.stderr and done.stdout == ""


def test_an_unknown_variable_stops_the_start(tmp_path: Path) -> None:
    done = run(str(tmp_path), MCP_FS_READONLY="1")
    assert done.returncode == 2 and "Did you mean MCP_FS_READ_ONLY?" in done.stderr


@pytest.mark.slow
def test_no_folder_left_is_an_error_in_one_line(tmp_path: Path) -> None:
    done = run(str(tmp_path / "missing"))
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith("mcp-fs: ") and "Traceback" not in done.stderr


def test_a_missing_folder_is_reported_and_skipped(tmp_path: Path) -> None:
    done = run(str(tmp_path / "missing"), str(tmp_path))
    assert done.returncode == 0 and "missing" in done.stderr and done.stdout == ""


@pytest.mark.slow
def test_print_config_prints_the_entry_alone_on_stdout(tmp_path: Path) -> None:
    done = run("--print-config", "vscode", "--read-only", str(tmp_path))
    assert done.returncode == 0 and "mcp.json" in done.stderr
    entry = json.loads(done.stdout)["servers"]["fs"]
    assert entry["args"][-2:] == ["--read-only", str(tmp_path)]
    probe = subprocess.run(
        [entry["command"], *entry["args"][:-2], "--version"], capture_output=True, text=True, timeout=60
    )
    assert probe.stdout == "mcp-fs 0.1.0\n"


@pytest.mark.slow
def test_check_tells_the_truth(tmp_path: Path) -> None:
    folder = tmp_path / "my files"
    folder.mkdir()
    good = run("--check", str(folder))
    assert good.returncode == 0, good.stdout + good.stderr
    command, *steps, end = good.stdout.splitlines()
    quotation = '"' if sys.platform == "win32" else "'"
    assert command == f"mcp-fs {quotation}{folder}{quotation}" and end.startswith("Everything works.")
    assert [line.split()[:2] for line in steps] == [
        ["✓", step] for step in ("start", "tools", "resources", "prompts", "call", "subscribe")
    ]
    bad = run("--check", str(tmp_path / "missing"))
    assert bad.returncode == 1
    _, line, end = bad.stdout.splitlines()
    assert line.startswith("✗ start") and f"`{tmp_path / 'missing'}` can't be opened" in line
    detailed = run("--check", "-v", str(tmp_path), FORCE_COLOR="1").stdout
    assert detailed.count("start") == 1, "what waits is for terminals"
    assert "read_text, read_files" in detailed and "file:///{+path}" in detailed


@pytest.mark.slow
def test_check_does_not_call_a_step_tried_that_was_not() -> None:
    words = [sys.executable, "-m", "mcp_sqlite", "--check", "--demo"]
    done = subprocess.run(words, capture_output=True, encoding="utf-8", timeout=60, check=True)
    (step,) = (line for line in done.stdout.splitlines() if "subscribe" in line)
    end = done.stdout.splitlines()[-1]
    assert step.startswith("– subscribe") and end.startswith("Everything that was tried works."), done.stdout


@pytest.mark.anyio
async def test_check_does_not_believe_a_notice_of_what_cannot_be_read() -> None:
    """A slow upstream is told of by a notice before anybody knows that it fails."""

    class Announcing:
        @asynccontextmanager
        async def listen(self, **_: Any) -> AsyncGenerator[AsyncGenerator[str]]:
            async def events() -> AsyncGenerator[str]:
                yield "changed"

            yield events()

        async def read_resource(self, uri: str) -> None:
            await anyio.wait_all_tasks_blocked()
            raise ConnectionError(f"nothing behind {uri}")

    program = SimpleNamespace(demonstration=lambda settings: ("test://one", lambda: None))
    with pytest.raises(ExceptionGroup) as failed:
        await check._watch(cast(Any, Announcing()), cast(Any, program), cast(Any, None))
    assert check._reason(failed.value) == "nothing behind test://one"


@pytest.mark.slow
def test_what_is_printed_into_a_pipe_is_utf8_whatever_the_code_page(tmp_path: Path) -> None:
    folder = tmp_path / "ملفات"
    folder.mkdir()
    old = {"PYTHONIOENCODING": "cp1252", "COLUMNS": "200"}
    done = run("--print-config", "claude-desktop", str(folder), **old)
    assert done.returncode == 0 and folder.name in done.stdout
    assert "✓ start" in run("--check", str(folder), **old).stdout


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no pty module on Windows")
def test_in_a_terminal_it_says_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pty

    monkeypatch.delenv("MCP_FS_TEXT_MEGABYTES", raising=False)
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "mcp_fs", str(tmp_path)]
    process = subprocess.Popen(command, stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.close(slave)
    try:
        assert process.stderr is not None and process.stdout is not None
        said = b""
        while b"\n}\n" not in said:
            said += process.stderr.readline()
        text = said.decode()
        assert text.startswith("mcp-fs 0.1.0 — ") and text.index("{") > 0
        assert text[: text.index("\n\n")].count("\n") == 2
        entry = json.loads(text[text.index("{") :])
        assert entry["mcpServers"]["fs"]["args"] == [str(tmp_path)]
        os.write(master, b"\x04")  # end of input, as Ctrl-D sends it
        assert process.wait(20) == 0
        assert process.stdout.read() == b""
    finally:
        process.kill()
        process.communicate()
        os.close(master)


@pytest.mark.slow
@pytest.mark.anyio
async def test_the_audit_log_holds_names_and_sizes_only(tmp_path: Path) -> None:
    served, log = tmp_path / "served", tmp_path / "audit.jsonl"
    served.mkdir()
    (served / "diary.txt").write_text("dear diary\n", "utf-8")
    command = [sys.executable, "-m", "mcp_fs", "--audit-file", str(log), str(served)]
    async with StdioWire(command, revision="2025-11-25") as wire:
        await wire.open()
        await wire.call("read_text", path="diary.txt")
        await wire.call("read_text", path="private-name.txt")
        await wire.request("resources/read", {"uri": (served / "diary.txt").as_uri()})
    text = log.read_text("utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    assert [(line["method"], line["name"], line["outcome"]) for line in lines] == [
        ("tools/call", "read_text", "ok"),
        ("tools/call", "read_text", "error"),
        ("resources/read", None, "ok"),
    ]
    assert lines[0]["arguments"] == ["path"] and lines[0]["client"] == "wire"
    assert lines[0]["bytes_out"] > 0 and lines[0]["ms"] >= 0
    assert "diary" not in text and "private-name" not in text
    assert os.name == "nt" or (log.stat().st_mode & 0o777) == 0o600


@pytest.mark.anyio
@pytest.mark.skipif(os.name == "nt", reason="a file that is open cannot be moved away there")
async def test_the_audit_log_goes_on_in_a_new_file_once_its_own_is_moved_away(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    async with Audit(str(log), lambda method, name: None) as audit:
        audit.record_refusal({"status": 401})
        log.rename(tmp_path / "old")
        audit.record_refusal({"status": 403})
    for file, status in ((tmp_path / "old", 401), (log, 403)):
        assert [json.loads(line)["status"] for line in file.read_text("utf-8").splitlines()] == [status]


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_call_is_answered_also_when_the_audit_log_takes_no_line(tmp_path: Path) -> None:
    done = run("--audit-file", str(tmp_path / "missing" / "audit"), str(tmp_path))
    assert done.returncode == 1 and "The audit file" in done.stderr and "Traceback" not in done.stderr
    if sys.platform == "linux":
        command = [sys.executable, "-m", "mcp_fs", "--audit-file", "/dev/full", str(tmp_path)]
        async with StdioWire(command, revision="2025-11-25") as wire:
            await wire.open()
            for _ in range(2):
                assert not (await wire.call("create_directory", path="new")).get("isError")
        assert wire.stderr.count("a line is missing in the audit file: No space left on device") == 1


@pytest.mark.slow
@pytest.mark.anyio
async def test_the_self_test_tries_what_http_alone_has(tmp_path: Path) -> None:
    certificate(tmp_path, "mine")
    tls = ["--tls-certificate", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem")]
    tokens, program = ["--auth-tokens", create_token("alice")[1]], program_of("mcp_example")

    async def tried(*words: str) -> str:
        return await answers_over_http(program, load(program.settings(), ["--transport", "http", *words]), [])

    assert await tried() == "http, asks nobody for a token"
    assert await tried(*tls, *tokens, "--host", "0.0.0.0") == "https, asks for a token"
    if sys.platform != "win32":
        assert await tried("--socket", str(tmp_path / "s"), *tokens) == "http, asks for a token"
    for words, why in (
        (["--auth-file", str(tmp_path / "none")], "tokens cannot be read"),
        (["--host", "0.0.0.0"], "everybody who can reach it"),
        (["--auth-issuer", f"http://127.0.0.1:{free_port()}"], "keys of .* cannot be fetched"),
    ):
        with pytest.raises(RuntimeError, match=why):
            await tried(*words)
    with pytest.raises(
        RuntimeError, match=r"redis://x:\*{3}@127.0.0.1:\d+ is not there \(ConnectionError\): check its"
    ):
        await bus_answers(f"redis://x:secret@127.0.0.1:{free_port()}")
    if sys.platform != "win32":
        async with serving("redis") as service:
            assert "brings back" in await bus_answers(service.url)
    done = run("--check", "--transport", "http", "--auth-file", str(tmp_path / "none"), str(tmp_path))
    assert done.returncode == 1 and "✗ http" in done.stdout


@pytest.mark.slow
def test_the_self_test_hands_on_the_environment_but_for_what_it_decides(tmp_path: Path) -> None:
    """Tokens and proxies come as variables; a server that found `CHECK` there would check itself for ever."""
    held = {"MCP_FS_FOLDERS": str(tmp_path), "MCP_FS_CHECK": "1", "MCP_FS_READ_ONLY": "1"}
    (tmp_path / "sitecustomize.py").write_text(
        f"import os\nif os.environ.get('SOME_TOKEN'):\n    open({str(tmp_path / 'seen')!r}, 'a').write('x')\n", "utf-8"
    )
    done = run("-v", **held, SOME_TOKEN="t", PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "read_text, read_files" in done.stdout and "write_file" not in done.stdout
    assert (tmp_path / "seen").read_text("utf-8") == "xx"
