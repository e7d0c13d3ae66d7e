"""Logs of jobs and artifacts as GitHub has them: long, coloured, gone, elsewhere, hostile."""

import io
import socket
import ssl
import struct
import tempfile
import threading
import tracemalloc
import zipfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from github_server.oracle import Oracle
from github_server.serving import call, refused, served
from github_server.world import sample
from mcp_github.listing.line_window import LineWindow
from mcp_github.requests.runs import artifacts

pytestmark = pytest.mark.anyio
ON = ("--toolsets", "actions")
JOB = {"repo": "octo/app", "job_id": 8}
STAMP = "2026-01-01T00:00:00.1234567Z "


def stored(oracle: Oracle, data: bytes, path: str = "/repos/octo/app/actions/jobs/8/logs") -> None:
    oracle.answer("GET", path, status=302, headers={"Location": f"{oracle.url}/_storage/x"})
    oracle.answer("GET", "/_storage/x", raw=data)


def log(*lines: str) -> bytes:
    return "\ufeff".encode() + "".join(f"{STAMP}{line}\r\n" for line in lines).encode()


async def test_a_log_is_read_as_a_terminal_would_show_it(oracle: Oracle) -> None:
    stored(
        oracle,
        log(
            "##[group]Run make", "\x1b[36;1mmake\x1b[0m", "##[endgroup]", "10%\r50%\r100%", "a\u202eb <b> &amp; {",
            "E  1 != 2", "##[error]Process completed with exit code 1.",
        ),
    )  # fmt: skip
    async with served(oracle, *ON) as client:
        text = await call(client, "read_job_log", **JOB)
        assert text.splitlines()[1:] == [
            "1: ##[group]Run make", "2: make", "3: ##[endgroup]", "4: 100%", "5: ab <b> &amp; {", "6: E  1 != 2",
            "7: ##[error]Process completed with exit code 1.",
        ]  # fmt: skip
        assert "7 lines; 1 invisible characters removed" in text
        assert "2: make" in await call(client, "read_job_log", **JOB, pattern="mak")


async def test_what_failed_is_shown_and_not_the_cleaning_up(oracle: Oracle) -> None:
    lines = [f"step {number}" for number in range(3000)]
    lines[2000] = "##[error]Process completed with exit code 1."
    lines[1999] = "AssertionError"
    stored(oracle, log(*lines))
    async with served(oracle, *ON) as client:
        text = await call(client, "read_job_log", **JOB)
        assert "2000: AssertionError\n2001: ##[error]" in text and "2012:" not in text
        head, _, rest = text.partition("\n")
        assert "after the last error 989 lines more, start_line=2012" in head and len(rest) < 11_000
        # The pages go on from one to the next, each line once.
        seen: list[str] = []
        start = 1
        while start:
            head, _, rest = (await call(client, "read_job_log", **JOB, start_line=start)).partition("\n")
            seen += [line.partition(": ")[2] for line in rest.rstrip("\n").split("\n")]
            start = int(head.partition("start_line=")[2].rstrip("]") or 0)
        assert seen == lines
        assert "No such lines." in await call(client, "read_job_log", **JOB, start_line=9999)
        matches = await call(client, "read_job_log", **JOB, pattern="step 29")
        assert "2999: step 2998" in matches and "AssertionError" not in matches


async def test_why_a_job_failed_comes_first_where_it_is_far_before_the_last_error(oracle: Oracle) -> None:
    lines = [f"cleaning {number} " + "x" * 80 for number in range(500)]
    lines[3:5] = ["FAILED tests/test_cart.py::test_round - assert 1 == 2", "1 failed, 20 passed in 3.2s"]
    lines[400] = "##[error]Process completed with exit code 1."
    stored(oracle, log(*lines))
    job = {**sample("actions/get-job-for-workflow-run"), "id": 8, "conclusion": "failure"}
    stamp = "2026-01-01T00:00:00Z"
    step = {"number": 4, "name": "Run tests", "conclusion": "failure", "started_at": stamp, "completed_at": stamp}
    oracle.pages("/repos/octo/app/actions/runs/9/jobs", [{**job, "steps": [step]}], "jobs")
    async with served(oracle, *ON) as client:
        text = await call(client, "read_job_log", **JOB)
        head, first, *rest = text.splitlines()
        assert "it seems to fail at line 4" in head and "failed in step" not in head
        assert first == "4: FAILED tests/test_cart.py::test_round - assert 1 == 2"
        assert "..." in rest and "401: ##[error]Process completed" in text
        assert len(text.encode()) < 11_000
        of_run = await call(client, "read_job_log", repo="octo/app", run_id=9)
        assert ", failed in step 4 Run tests;" in of_run and of_run.splitlines()[1] == first
        # Of the lines with a pattern, those of the failure come first, though others precede them.
        lines[1] = "PASSED tests/test_cart.py::test_add"
        stored(oracle, log(*lines))
        head, *matches = (await call(client, "read_job_log", **JOB, pattern="::test")).splitlines()
        failure = "4: FAILED tests/test_cart.py::test_round - assert 1 == 2"
        assert "it seems to fail at line 4" in head
        assert matches == [failure, "...", "2: PASSED tests/test_cart.py::test_add", failure]
        # Without an error of the job, and from a line on, they keep their order.
        from_start = await call(client, "read_job_log", **JOB, pattern="::test", start_line=1)
        assert from_start.splitlines()[1:] == [matches[2], failure]
        stored(oracle, log(*lines[:400]))
        without_error = await call(client, "read_job_log", **JOB, pattern="::test")
        assert without_error.splitlines()[1:] == [matches[2], failure]
        # Where other lines are asked for, nothing stands before them.
        assert "seems" not in await call(client, "read_job_log", **JOB, pattern="cleaning 7 ")
        lines[3:5] = ["fine", "fine"]
        lines[399] = "E   AssertionError: assert 1 == 2"
        stored(oracle, log(*lines))
        near = await call(client, "read_job_log", **JOB)
        assert "it seems to fail at line" in near and "\n...\n" not in near


async def test_why_a_job_failed_is_shown_where_it_comes_after_the_last_error(oracle: Oracle) -> None:
    lines = [f"cleaning {number} " + "x" * 80 for number in range(700)]
    lines[300] = "##[error]Process completed with exit code 1."
    lines[650] = "tar: cache.tar: No space left on device"
    stored(oracle, log(*lines))
    async with served(oracle, *ON) as client:
        text = await call(client, "read_job_log", **JOB)
        assert "it seems to fail at line 651" in text and text.splitlines()[1] == f"651: {lines[650]}"
        assert "301: ##[error]Process completed" in text
        # The last line counts as well if nothing ends it.
        lines[300], lines[650] = "fine", "E   assert 1 == 2"
        stored(oracle, log(*lines, "##[error]Process completed with exit code 1.").removesuffix(b"\r\n"))
        text = await call(client, "read_job_log", **JOB)
        assert "it seems to fail at line" in text


def test_of_lines_longer_than_the_page_one_is_shown() -> None:
    window = LineWindow(start_line=None, pattern=None)
    window.feed(log("E   short", "##[error]" + "ü" * 1900))
    assert window.render("log", 1000).body.startswith("2: ##[error]ü")


def test_a_hundred_megabytes_are_read_in_no_more_than_a_page() -> None:
    line = (STAMP + "x" * 170 + "\n").encode()
    piece = line * 500
    tracemalloc.start()
    for start, pattern, words in ((None, None, "500000: x"), (400_000, None, "400000: x"), (None, "xyz", "No such")):
        window = LineWindow(start_line=start, pattern=pattern)
        for _ in range(1000):
            if window.feed(piece):
                break
        else:
            assert start is None
        assert words in window.render("log").text()
    # Nor is it held where it has no lines, or an error early on.
    for head in (b"", b"##[error] early\n"):
        window = LineWindow(start_line=None, pattern=None)
        window.feed(head)
        for _ in range(1000):
            window.feed(b"y" * 100_000)
        assert len(window.render("log").text()) < 20_000
    assert tracemalloc.get_traced_memory()[1] < 3_000_000
    tracemalloc.stop()


async def test_a_log_that_is_not_there_says_why(oracle: Oracle) -> None:
    job, path = sample("actions/get-job-for-workflow-run"), "/repos/octo/app/actions/jobs/8"
    oracle.answer("GET", f"{path}/logs", {"message": "Not Found"}, status=404)
    async with served(oracle, *ON) as client:
        oracle.answer("GET", path, {**job, "id": 8, "status": "in_progress", "conclusion": None})
        assert "is `in_progress`; its log comes" in await refused(client, "read_job_log", **JOB)
        oracle.answer("GET", path, {**job, "id": 8, "status": "completed"})
        for status in (404, 410):
            oracle.answer("GET", f"{path}/logs", {"message": "gone"}, status=status)
            assert "kept for some weeks" in await refused(client, "read_job_log", **JOB)
        # What GitHub names, the storage has deleted.
        where = {"Location": f"{oracle.url}/_storage/gone"}
        oracle.answer("GET", f"{path}/logs", status=302, headers=where)
        assert "kept for some weeks" in await refused(client, "read_job_log", **JOB)
        oracle.answer("GET", "/_storage/gone", status=503)
        assert "503" in await refused(client, "read_job_log", **JOB)
        oracle.answer("GET", "/_storage/gone", raw=b"x" * 1000, cut=True)
        assert "broke off" in await refused(client, "read_job_log", **JOB)
        stored(oracle, log("here"))
        assert "here" in await call(client, "read_job_log", **JOB)


async def test_of_a_run_every_failed_job_is_read_and_others_are_named(oracle: Oracle) -> None:
    job = {**sample("actions/get-job-for-workflow-run"), "status": "completed", "conclusion": "success"}
    jobs = [{**job, "id": number, "name": f"job {number}"} for number in range(1, 121)]
    oracle.pages("/repos/octo/app/actions/runs/9/jobs", jobs, "jobs")
    stored(oracle, log("the reason"), "/repos/octo/app/actions/jobs/118/logs")
    ask = {"repo": "octo/app", "run_id": 9}
    async with served(oracle, *ON) as client:
        jobs[0] |= {"status": "in_progress", "conclusion": None}
        said = await refused(client, "read_job_log", **ask)
        assert "1 of its 120 jobs are still at work" in said and "2 job 2" in said
        # A matrix has more jobs than a page.
        jobs[117] |= {"conclusion": "failure"}
        jobs[119] |= {"conclusion": "timed_out"}
        text = await call(client, "read_job_log", **ask)
        assert "the reason" in text and "`118` (job 118)" in text and "(job 120)" in text
        assert len((await call(client, "get_run", **ask))["data"]["jobs"]) == 120


@contextmanager
def elsewhere(folder: Path, data: bytes) -> Generator[tuple[str, list[dict[str, str]]]]:
    """A storage of its own name behind https, and the headers of what it is asked."""
    import datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "storage.example.net")])
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now - day, now + day)
    alternative = x509.SubjectAlternativeName([x509.DNSName("storage.example.net")])
    certificate = made.add_extension(alternative, critical=False).sign(key, hashes.SHA256())
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    (folder / "cert.pem").write_bytes(certificate.public_bytes(pem))
    (folder / "key.pem").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    seen: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append({name.lower(): value for name, value in self.headers.items()} | {"path": self.path})
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"https://storage.example.net:{server.server_address[1]}", seen
    finally:
        server.shutdown()
        server.server_close()


async def test_a_download_from_another_host_goes_without_the_token(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve: Callable[..., Any] = socket.getaddrinfo

    def found(host: Any, *args: Any, **more: Any) -> Any:
        return resolve("127.0.0.1" if host in ("storage.example.net", b"storage.example.net") else host, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", found)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    path = "/repos/octo/app/actions/jobs/8/logs"
    with elsewhere(tmp_path, log("from elsewhere")) as (url, seen):
        async with served(oracle, *ON) as client:
            oracle.answer("GET", path, status=302, headers={"Location": f"{url}/logs?sig=1"})
            assert "from elsewhere" in await call(client, "read_job_log", **JOB)
            assert seen[0]["path"] == "/logs?sig=1"
            assert "authorization" not in seen[0] and "cookie" not in seen[0]
            for address in (
                url.replace("https", "http"), "https://127.0.0.1:1/x", "https://169.254.169.254/x", "https://intern/x",
                "https://[::1]/x", "file:///etc/passwd", "https://db.internal/x", "",
            ):  # fmt: skip
                oracle.answer("GET", path, status=302, headers={"Location": address})
                assert "not followed" in await refused(client, "read_job_log", **JOB), address
        assert len(seen) == 1


# Artifacts


ARTIFACT = {"repo": "octo/app", "artifact": 5}
ZIP = "/repos/octo/app/actions/artifacts/5/zip"


def packed(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return made.getvalue()


async def test_an_artifact_is_listed_and_its_files_are_read(oracle: Oracle) -> None:
    report = "".join(f"line {number}\n" for number in range(5000)).encode()
    stored(
        oracle,
        packed({"a/report.txt": report, "logo.png": b"\x89PNG\0\0", "b\u202e.txt": b"x\n", "../up.txt": b"up\n"}),
        ZIP,
    )
    async with served(oracle, *ON) as client:
        text = await call(client, "read_artifact", **ARTIFACT)
        assert "48,890 a/report.txt" in text and "2 b\\u{202e}.txt" in text and "4 lines" in text
        first = await call(client, "read_artifact", **ARTIFACT, path="a/report.txt")
        assert "1: line 0\n" in first
        start = int(first.partition("start_line=")[2].partition("]")[0])
        assert f"{start}: line {start - 1}\n" in await call(
            client, "read_artifact", **ARTIFACT, path="a/report.txt", start_line=start
        )
        assert "4567: line 4566" in await call(
            client, "read_artifact", **ARTIFACT, path="a/report.txt", pattern="line 4566"
        )
        assert "1: x" in await call(client, "read_artifact", **ARTIFACT, path="b\\u{202e}.txt")
        assert "is not text" in await refused(client, "read_artifact", **ARTIFACT, path="logo.png")
        assert "There is no `nothing`" in await refused(client, "read_artifact", **ARTIFACT, path="nothing")
        oracle.answer("GET", ZIP, {"message": "Artifact has expired"}, status=410)
        assert "gone" in await refused(client, "read_artifact", **ARTIFACT)
    assert all("authorization" not in seen.headers for seen in oracle.sent("GET", "_storage"))


async def test_an_artifact_that_lies_costs_nothing(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    files: list[Any] = []
    make = tempfile.SpooledTemporaryFile

    def made(*args: Any, **more: Any) -> Any:
        files.append(make(*args, **more))
        return files[-1]

    monkeypatch.setattr(tempfile, "SpooledTemporaryFile", made)
    # A thousand times what it weighs.
    monkeypatch.setattr(artifacts, "_MAX_UNPACKED_BYTES", 20_000_000)
    bomb = packed({"bomb.txt": (b"0" * 999 + b"\n") * 30_000})
    async with served(oracle, *ON) as client:
        stored(oracle, bomb, ZIP)
        text = await call(client, "read_artifact", **ARTIFACT, path="bomb.txt")
        assert len(text) < 12_000
        far = {"path": "bomb.txt", "start_line": 29_000}
        assert "more than" in await refused(client, "read_artifact", **ARTIFACT, **far)
        many = bytearray(packed({"a": b""}))
        # Says of itself that it lists more than anybody wants to read.
        at = many.rfind(b"PK\x05\x06")
        many[at + 12 : at + 16] = struct.pack("<I", 500_000_000)
        stored(oracle, bytes(many), ZIP)
        assert "too many files" in await refused(client, "read_artifact", **ARTIFACT)
        whole = packed({"a.txt": b"hello\n" * 1000})
        for broken in (b"", b"<html>", whole[:-30], whole[30:], whole.replace(b"PK\x03\x04", b"XXXX"), b"PK\x05\x06"):
            stored(oracle, broken, ZIP)
            assert "not a zip" in await refused(client, "read_artifact", **ARTIFACT, path="a.txt"), broken[:9]
    assert files and all(file.closed for file in files)
