"""The loopback server. A request that GitHub's descriptions do not know is remembered and answered with a failure."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote

from github_server.oracle import description, echo, graph
from github_server.oracle.login import Devices

__all__ = ["Oracle", "Reply", "Seen", "violations"]

violations: list[str] = []
"""Of all oracles of this process."""

Respond = Callable[["Seen"], "Reply"]


@dataclass(frozen=True)
class Seen:
    """A request that arrived."""

    verb: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return unquote(self.target.partition("?")[0])

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(self.target.partition("?")[2], keep_blank_values=True))

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    """What is answered; `cut` sends half of it and hangs up, `held` waits for the oracle's end first."""

    status: int = 200
    data: Any = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    raw: bytes | None = None
    cut: bool = False
    held: bool = False


@dataclass
class _Rule:
    verb: str
    path: re.Pattern[str]
    respond: Respond
    times: int | None


class Oracle:
    """GitHub on loopback.

    Attributes:
        url: of the API.
        seen: the requests so far.
        private: full names, in lower case, of repositories that are private.
        people: logins by token; with it no other token is good for anything.
        devices: where people log in, if they can.
        violations: what of the requests GitHub's own description does not allow.
    """

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.violations: list[str] = []
        self.private: set[str] = set()
        self.scopes = "repo, read:org"
        self.people: dict[str, str] | None = None
        self.devices: Devices | None = None
        self._rules: list[_Rule] = []
        self._graph: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        oracle = self

        class Handler(_Handler):
            owner = oracle

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Oracle:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def answer(
        self, verb: str, path: str, data: Any = None, *, status: int = 200, headers: Mapping[str, str] | None = None,
        raw: bytes | None = None, cut: bool = False, held: bool = False, times: int | None = None,
    ) -> None:  # fmt: skip
        """Answer this to `verb` `path` (a regular expression) from now on, or the next `times`."""
        made = Reply(status, data, headers or {}, raw, cut, held)
        self.respond(verb, path, lambda seen: made, times=times)

    def respond(self, verb: str, path: str, respond: Respond, *, times: int | None = None) -> None:
        """Have a function answer; newer rules come first."""
        with self._lock:
            self._rules.insert(0, _Rule(verb, re.compile(path), respond, times))

    def pages(self, path: str, items: list[Any], inside: str | None = None, *, by: str = "page") -> None:
        """List `items` at `path` page by page, as GitHub does; pages are turned with the parameter `by`."""

        def respond(seen: Seen) -> Reply:
            size, page = int(seen.query.get("per_page", 30)), int(seen.query.get(by, 1))
            part = items[(page - 1) * size : page * size]
            headers = {}
            if page * size < len(items):
                where = f"{self.url}{seen.target.partition('?')[0]}"
                query = "&".join(f"{k}={v}" for k, v in {**seen.query, by: page + 1}.items() if "\n" not in str(v))
                last = f"<{where}?{by}={-(-len(items) // size)}>"
                headers["Link"] = f'<{where}?{query.replace(" ", "+")}>; rel="next", {last}; rel="last"'
            data = part if inside is None else {"total_count": len(items), "incomplete_results": False, inside: part}
            return Reply(200, data, headers)

        self.respond("GET", path, respond)

    def graphql(self, operation: str, known: Any) -> None:
        """Answer the GraphQL `operation` with `known` (or what it returns for the variables), filled up to shape."""
        self._graph[operation] = known

    def sent(self, verb: str, path: str = "") -> list[Seen]:
        """The requests of `verb` whose path matches."""
        return [seen for seen in self.seen if seen.verb == verb and re.search(path, seen.path)]

    def reply(self, seen: Seen) -> Reply:
        """The answer to `seen`, which is judged first, whatever comes of it."""
        with self._lock:
            self.seen.append(seen)
        if seen.path.startswith("/_storage/"):
            # Where downloads come from: not GitHub's API, so nobody's token has a business there.
            return (
                self._complain(seen, ["a token"])
                if "authorization" in seen.headers
                else self._ruled(seen) or Reply(404)
            )
        if seen.path.startswith("/login/") and self.devices is not None:
            if "authorization" in seen.headers:
                return self._complain(seen, ["a token"])
            return Reply(*self.devices.answer(seen.path, dict(parse_qsl(seen.body.decode()))))
        if self.people is not None:
            if (person := self.people.get(_bearer(seen))) is None:
                return Reply(401, {"message": "Bad credentials"})
            if seen.path == "/user":
                return self._ruled(seen) or Reply(200, {"login": person, "id": len(person), "type": "User"})
        if seen.path == "/graphql":
            return self._graphql(seen)
        verdict = description.judged(seen.verb, seen.target, seen.headers, seen.body)
        complaints = [] if re.fullmatch(r"/repositories/\d+.*", seen.path) else verdict.complaints
        if _is_gh(seen):
            # It is only looked at beside ours.
            complaints = []
        if seen.headers.get("user-agent", "").startswith("PyGithub"):
            # It takes whatever comes, which GitHub allows and we don't.
            complaints = [complaint for complaint in complaints if not complaint.startswith("accepts")]
        if complaints:
            return self._complain(seen, complaints)
        if (ruled := self._ruled(seen)) is not None:
            return ruled
        if verdict.operation is None:
            return Reply(404, {"message": "Not Found"})
        status, data = description.example(verdict.operation)
        return Reply(status, self._fitting(seen, verdict, data))

    def _ruled(self, seen: Seen) -> Reply | None:
        with self._lock:
            for rule in self._rules:
                if rule.verb == seen.verb and rule.path.fullmatch(seen.path) and rule.times != 0:
                    if rule.times is not None:
                        rule.times -= 1
                    break
            else:
                return None
        return rule.respond(seen)

    def _graphql(self, seen: Seen) -> Reply:
        asked = seen.json
        name = graph.operation_name(asked["query"])
        if (ruled := self._ruled(seen)) is not None:
            return ruled
        known = self._graph.get(name)
        known = known(asked["variables"]) if callable(known) else known
        if isinstance(known, Reply):
            return known
        data, complaints = graph.answered(asked["query"], asked.get("variables") or {}, known, strict=not _is_gh(seen))
        return self._complain(seen, complaints) if complaints else Reply(200, data)

    def _complain(self, seen: Seen, complaints: list[str]) -> Reply:
        said = [f"{seen.verb} {seen.target}: {complaint}" for complaint in complaints]
        self.violations += said
        violations.extend(said)
        return Reply(422, {"message": f"violates the description: {'; '.join(complaints)}"})

    def _fitting(self, seen: Seen, verdict: description.Verdict, data: Any) -> Any:
        """The example, of what was asked for."""
        if data is None:
            return None
        text = json.dumps(data).replace("https://api.github.com", self.url)
        owner, repo = verdict.values.get("owner"), verdict.values.get("repo")
        if owner and repo:
            text = text.replace("octocat/Hello-World", f"{owner}/{repo}")
        data = json.loads(text)
        if seen.verb != "GET" and seen.body:
            data = echo.shown(seen.verb, seen.json, data)
        if isinstance(data, dict):
            if verdict.operation and verdict.operation.template == "/repos/{owner}/{repo}":
                data |= {"private": f"{owner}/{repo}".lower() in self.private, "default_branch": "main"}
                data["visibility"] = "private" if data["private"] else "public"
            for name in ("issue_number", "pull_number"):
                if name in verdict.values and "number" in data:
                    data["number"] = int(verdict.values[name])
        return data


def _is_gh(seen: Seen) -> bool:
    return seen.headers.get("user-agent", "").startswith("GitHub CLI")


def _bearer(seen: Seen) -> str:
    return seen.headers.get("authorization", "").partition(" ")[2]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up in the middle is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: Oracle
    disable_nagle_algorithm = True

    def _handle(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        # Who takes it for a proxy sends whole addresses.
        target = re.sub(r"^http://[^/]+", "", self.path)
        seen = Seen(self.command, target, headers, self._read_body())
        reply = self.owner.reply(seen)
        if reply.held:
            self.owner._ended.wait(60)
        body = reply.raw if reply.raw is not None else b"" if reply.data is None else json.dumps(reply.data).encode()
        etag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
        status = reply.status
        if status == 200 and seen.verb == "GET" and headers.get("if-none-match") == etag:
            status, body = 304, b""
        self.send_response(status)
        common = {
            "content-type": "application/json; charset=utf-8", "etag": etag, "x-ratelimit-limit": "5000",
            "x-ratelimit-remaining": "4999", "x-ratelimit-reset": "4102444800", "x-ratelimit-resource": "core",
            "x-oauth-scopes": self.owner.scopes,
        }  # fmt: skip
        for name, value in {**common, **{key.lower(): text for key, text in reply.headers.items()}}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if reply.cut:
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
        else:
            self.wfile.write(body)

    def _read_body(self) -> bytes:
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        body = b""
        while length := int(self.rfile.readline(), 16):
            body += self.rfile.read(length)
            self.rfile.readline()
        self.rfile.readline()
        return body

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _handle

    def log_message(self, *args: Any) -> None:
        pass
