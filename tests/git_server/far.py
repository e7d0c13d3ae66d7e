"""Remotes on loopback: a bare repository in a folder, behind HTTPS by git's own CGI program, and behind ssh."""

import asyncio
import base64
import contextlib
import os
import ssl
import subprocess
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncssh

from git_server.made import GIT, Made
from shared.certificates import certificate

__all__ = ["Far", "bare", "https", "ssh"]


def bare(made: Made, path: Path) -> Made:
    """A bare copy of a repository, which is its `origin` from then on."""
    made.git("clone", "--quiet", "--bare", str(made.path), str(path))
    made.git("remote", "add", "origin", str(path))
    made.git("fetch", "--quiet", "origin")
    return Made(path)


@dataclass
class Far:
    """A server of repositories.

    Attributes:
        url: of the folder that it serves.
        asked: what it was asked for, with the header that says who asks.
    """

    url: str
    asked: list[tuple[str, str]]


@contextlib.contextmanager
def https(
    folder: Path, home: Path, *, password: str = "", answers: Callable[[Any], bool] = lambda handler: False
) -> Generator[Far]:
    """`git http-backend` for the repositories in `folder`.

    Args:
        home: gets `cert.pem`, by which it is trusted.
        password: what has to be known, of whomever.
        answers: may answer in the place of git, and says whether it did.
    """
    asked: list[tuple[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def do_GET(self) -> None:
            said = self.headers.get("Authorization", "")
            asked.append((self.path, said))
            self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if answers(self):
                return
            if password and base64.b64decode(said.removeprefix("Basic ")).partition(b":")[2] != password.encode():
                self.reply(401, {"WWW-Authenticate": 'Basic realm="far"'})
                return
            parts = urlsplit(self.path)
            environment = {
                "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": str(folder), "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": parts.path, "QUERY_STRING": parts.query, "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(self.body)),
                "REMOTE_USER": "ada", "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "GIT_CONFIG_GLOBAL": os.devnull,
                "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http.receivepack", "GIT_CONFIG_VALUE_0": "true",
            }  # fmt: skip
            done = subprocess.run(
                [GIT, "http-backend"], env=environment, input=self.body, capture_output=True, check=False
            )
            head, _, text = done.stdout.partition(b"\r\n\r\n")
            lines = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            self.reply(int(lines.pop("Status", "200").split(" ")[0]), lines, text)

        def reply(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            pass

    certificate(home, "localhost")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(home / "cert.pem", home / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield Far(f"https://localhost:{server.server_port}", asked)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextlib.asynccontextmanager
async def ssh(home: Path) -> AsyncGenerator[Far]:
    """An ssh server that runs `git-upload-pack` and `git-receive-pack`; `home` gets the key of whom it lets in."""
    make: Any = getattr(asyncssh, "generate_private_key")  # noqa: B009 - it is typed in part
    own, theirs = make("ssh-ed25519"), make("ssh-ed25519")
    theirs.write_private_key(str(home / "id"))
    (home / "id").chmod(0o600)
    theirs.write_public_key(str(home / "known"))
    asked: list[tuple[str, str]] = []

    async def handle(process: asyncssh.SSHServerProcess[bytes]) -> None:
        command = process.command or ""
        asked.append((command, process.get_extra_info("username")))
        pipe = asyncio.subprocess.PIPE
        there = await asyncio.create_subprocess_exec(
            "sh", "-c", command, env={"PATH": os.environ["PATH"]}, stdin=pipe, stdout=pipe, stderr=pipe
        )
        assert there.stdin and there.stdout and there.stderr

        async def relay(read: Any, write: Any) -> None:
            while data := await read.read(65536):
                write.write(data)
                await write.drain()

        inwards = asyncio.create_task(relay(process.stdin, there.stdin))
        await asyncio.gather(relay(there.stdout, process.stdout), relay(there.stderr, process.stderr))
        code = await there.wait()
        inwards.cancel()
        process.exit(code)

    server = await asyncssh.listen(
        "127.0.0.1", 0, server_host_keys=[own], authorized_client_keys=str(home / "known"),
        process_factory=handle, encoding=None,
    )  # fmt: skip
    port = server.get_port()
    (home / "hosts").write_text(f"[127.0.0.1]:{port} {own.export_public_key().decode()}", "utf-8")
    async with server:
        yield Far(f"ssh://ada@127.0.0.1:{port}", asked)
