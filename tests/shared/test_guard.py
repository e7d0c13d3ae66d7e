"""Who is let in and what each scope allows, rule by rule and without a socket; `test_access` goes the whole road."""

import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import httpx2
import pytest
from mcp.server.auth.middleware.auth_context import auth_context_var
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.tools import Tool
from mcp.shared.exceptions import MCPError
from mcp_types.jsonrpc import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
from starlette.responses import PlainTextResponse

from mcp_batteries.errors import Unavailable
from mcp_batteries.sdk import lowlevel
from mcp_batteries.server.calling.tool import StrictTool
from mcp_batteries.settings import Settings
from mcp_batteries.transports.http.auth import guard as module
from mcp_batteries.transports.http.auth import issuer
from mcp_batteries.transports.http.auth.guard import Guard
from mcp_batteries.transports.http.auth.scopes import Scopes

pytestmark = pytest.mark.anyio

RESOURCE = "https://files.example.org/mcp/"
METADATA = "/.well-known/oauth-protected-resource"


async def unmarked() -> str:
    return ""


TOOLS: dict[str, Tool] = {
    "find": StrictTool.model_construct(name="find", effect="read", toolset="search", toolsets=("fs", "fs_search")),
    "list": StrictTool.model_construct(name="list", effect="read", toolset="read"),
    "edit": StrictTool.model_construct(name="edit", effect="write", toolset="edit"),
    "drop": StrictTool.model_construct(name="drop", effect="destroy", toolset="edit"),
    "unmarked": Tool.from_function(unmarked),
}


def scopes(*names: str, prefix: str = "") -> Scopes:
    return Scopes(lambda: {name: TOOLS[name] for name in names or TOOLS}, prefix)


class Verifier:
    """Knows the tokens it was given, until it is ill."""

    def __init__(self, **known: AccessToken) -> None:
        self.known = known
        self.problem: Unavailable | None = None
        self.issuers: list[str] = []
        self.asks: list[str] = []

    async def verify_token(self, token: str) -> AccessToken | None:
        if self.problem is not None:
            raise self.problem
        return self.known.get(token)


def access(name: str, *held: str, seconds: float | None = None) -> AccessToken:
    until = None if seconds is None else int(time.time() + seconds)
    return AccessToken(token=name, client_id=name, scopes=list(held), expires_at=until)


class App:
    """What is behind the guard."""

    def __init__(self) -> None:
        self.callers: list[str] = []
        self.waits = anyio.Event()
        self.scopes: list[dict[str, Any]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scopes.append(scope)
        if scope["type"] == "http":
            self.callers.append(scope["user"].username)
            if scope["path"] == "/waits":
                self.waits.set()
                await anyio.sleep_forever()
            await PlainTextResponse("let in")(scope, receive, send)


def guard(*verifiers: Verifier, issuers: list[str] | None = None, prefix: str = "") -> tuple[Guard, App]:
    app = App()
    rules = scopes(prefix=prefix)
    return Guard(list(verifiers), rules, resource=RESOURCE, issuers=issuers or [], title="Files").protect(app), app


@asynccontextmanager
async def client(guard: Guard, states: list[dict[str, Any]] | None = None) -> AsyncGenerator[httpx2.AsyncClient]:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await guard(scope, receive, send)
        if states is not None:
            states.append(scope.get("state", {}))

    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://localhost") as made:
        yield made


@asynccontextmanager
async def deadline() -> AsyncGenerator[None]:
    with anyio.fail_after(10):
        yield


def reader() -> Verifier:
    return Verifier(bob=access("bob", "read"), nobody=access("nobody", "other"))


NO_TOKEN = 'Bearer scope="read write destroy"'
WRONG_FORM = (
    'Bearer error="invalid_token", error_description="Send `Authorization: Bearer TOKEN`: the word once, no quotes, '
    'every variable filled in.", scope="read write destroy"'
)
UNKNOWN = (
    'Bearer error="invalid_token", error_description="The token is unknown, expired, or not for this server.", '
    'scope="read write destroy"'
)

BEYOND = 'Bearer error="insufficient_scope", error_description="The scope read is needed.", scope="read"'


@pytest.mark.reported("labring/FastGPT#6375")
@pytest.mark.reported("microsoft/vscode#336232")
@pytest.mark.reported("anthropics/claude-code#51581")
@pytest.mark.parametrize(
    ("given", "status", "challenge"),
    [
        ([], 401, NO_TOKEN), (["Bearer bob"], 200, None), (["bEARER  bob "], 200, None),
        (["Basic bob"], 401, WRONG_FORM), (["bob"], 401, WRONG_FORM), (["Bearer"], 401, WRONG_FORM),
        (["Bearer  "], 401, WRONG_FORM), (["Bearer bob", "Bearer bob"], 401, WRONG_FORM),
        (["Bearer " + "x" * 16_385], 401, WRONG_FORM), (["Bearer " + "x" * 16_384], 401, UNKNOWN),
        (["Bearer Bearer bob"], 401, WRONG_FORM), (["Bearer bob, Bearer bob"], 401, WRONG_FORM),
        (['Bearer "bob"'], 401, WRONG_FORM), (["Bearer ${env:TOKEN}"], 401, WRONG_FORM),
        (["Bearer bob=="], 401, UNKNOWN),
        (["Bearer stranger"], 401, UNKNOWN),
        (["Bearer nobody"], 403, BEYOND),
    ],
)  # fmt: skip
async def test_a_token_or_a_challenge_that_says_what_is_missing(
    given: list[str], status: int, challenge: str | None
) -> None:
    front, app = guard(reader())
    async with client(front) as http:
        answer = await http.get("/mcp", headers=[("authorization", value) for value in given])
    assert (answer.status_code, answer.headers.get("www-authenticate")) == (status, challenge)
    assert app.callers == (["bob"] if status == 200 else [])
    if challenge:
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()["jsonrpc"] == "2.0" and answer.json()["id"] is None
        assert answer.json()["error"]["code"] == -32600 and answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("headers", "reason"),
    [({}, "no token"), ({"authorization": "Bearer x"}, None), ({"authorization": "Bearer nobody"}, "scope read")],
)
async def test_the_log_learns_why_somebody_was_turned_away(headers: dict[str, str], reason: str | None) -> None:
    states: list[dict[str, Any]] = []
    async with client(guard(reader())[0], states) as http:
        await http.post("/mcp", headers=headers)
    assert states[0].get("refusal") == reason


async def test_verifiers_are_asked_in_turn_and_an_end_is_an_end() -> None:
    over = Verifier(eve=access("over", "read", seconds=-5), old=access("over", "read", seconds=-5))
    front, app = guard(over, Verifier(eve=access("eve", "read", seconds=60)))
    async with client(front) as http:
        assert (await http.post("/mcp", headers={"authorization": "Bearer eve"})).status_code == 200
        assert (await http.post("/mcp", headers={"authorization": "Bearer old"})).status_code == 401
    assert app.callers == ["eve"]


@pytest.mark.parametrize(("seconds", "header"), [(None, "5"), (7.4, "7")])
async def test_an_issuer_that_is_away_is_no_wrong_token(seconds: float | None, header: str) -> None:
    states: list[dict[str, Any]] = []
    verifier = reader()
    verifier.problem = Unavailable("The issuer is away.", "Try again.", retry_after=seconds)
    async with client(guard(verifier)[0], states) as http:
        answer = await http.post("/mcp", headers={"authorization": "Bearer bob"})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, header)
    assert "The issuer is away." in answer.text and states[0]["refusal"] == "issuer"


async def test_metadata_are_found_where_an_issuer_can_be_asked() -> None:
    front, app = guard(reader(), issuers=["https://login.example.org"])
    async with client(front) as http:
        for path in (METADATA, METADATA + "/mcp"):
            answer = await http.get(path)
            assert answer.json() == {
                "resource": RESOURCE,
                "authorization_servers": ["https://login.example.org"],
                "scopes_supported": ["read", "write", "destroy"],
                "bearer_methods_supported": ["header"],
                "resource_name": "Files",
            }
            assert answer.headers["access-control-allow-origin"] == "*"
            assert answer.headers["cache-control"] == "max-age=300"
            assert (await http.head(path)).status_code == 200
            assert (await http.post(path)).status_code == 401
        challenge = (await http.get("/mcp")).headers["www-authenticate"]
        assert challenge.endswith(f'resource_metadata="https://files.example.org{METADATA}/mcp"')
    async with client(guard(reader())[0]) as http:
        for path in (METADATA, METADATA + "/mcp"):
            assert (await http.get(path)).status_code == 401
    assert app.callers == []


@pytest.mark.parametrize(
    ("login", "issuers", "asks"),
    [
        (None, ["https://service.example.org"], ["repo"]),
        ("https://login.example.org", ["https://login.example.org"], ["read", "write", "destroy"]),
    ],
)
async def test_a_servers_own_verifier_is_asked_and_names_who_issues_its_tokens(
    login: str | None, issuers: list[str], asks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "tool_table", lambda server: TOOLS)
    service = reader()
    service.issuers, service.asks = ["https://service.example.org"], ["repo"]
    for title, shown in (("Files", "Files"), (None, "mcp-files")):
        server = MCPServer("mcp-files", title=title)
        front = module.build_guard(server, Settings(auth_issuer=login), RESOURCE, service).protect(App())
        assert len(server.middleware) == len(MCPServer("mcp-files").middleware) + 1
        # Only an issuer of the operator's gives tokens to programs.
        assert list(lowlevel(server).extensions) == (["io.modelcontextprotocol/oauth-client-credentials"] * bool(login))
        async with client(front) as http:
            found = (await http.get(METADATA)).json()
            assert (await http.get("/mcp", headers={"authorization": "Bearer bob"})).text == "let in"
        assert (found["authorization_servers"], found["scopes_supported"], found["resource_name"]) == (
            issuers,
            asks,
            shown,
        )


@pytest.mark.parametrize(
    ("options", "judges"),
    [
        ({}, []),
        ({"auth_file": "tokens"}, [(str(Path("tokens").absolute()), None, "")]),
        ({"auth_tokens": "alice:1", "auth_scope_prefix": "files:"}, [(None, "alice:1", "files:")]),
        ({"auth_issuer": "https://a.example.org"}, [("https://a.example.org", RESOURCE, issuer.ALGORITHMS)]),
        (
            {"auth_issuer": "https://a.example.org", "auth_audience": "files", "auth_algorithm": ("ES256",)},
            [("https://a.example.org", "files", ("ES256",))],
        ),
    ],
)
def test_settings_say_who_judges_tokens_and_by_what(
    options: dict[str, Any], judges: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    for place, name in ((module, "Tokens"), (issuer, "Issuer")):
        monkeypatch.setattr(place, name, lambda *given: made.append(given) or reader())
    module.build_guard(MCPServer("files"), Settings(**options), RESOURCE)
    assert made == judges


async def test_words_of_a_challenge_cannot_leave_their_quotes() -> None:
    prefix = 'p"\\é\r\n:'
    front, _ = guard(Verifier(bob=access("bob", f"{prefix}other")), prefix=prefix)
    async with client(front) as http:
        challenge = (await http.get("/mcp", headers={"authorization": "Bearer bob"})).headers["www-authenticate"]
    assert challenge.endswith('error_description="The scope p:read is needed.", scope="p:read"')


async def test_metrics_have_a_scope_of_their_own() -> None:
    front, _ = guard(Verifier(bob=access("bob", "read"), meter=access("meter", "metrics")))
    async with client(front) as http:
        for name, path, status in (
            ("bob", "/metrics", 403), ("meter", "/metrics", 200), ("bob", "/mcp", 200), ("meter", "/mcp", 403),
        ):  # fmt: skip
            answer = await http.get(path, headers={"authorization": f"Bearer {name}"})
            assert answer.status_code == status
            if status == 403:
                missing = "read metrics" if path == "/metrics" else "read"
                assert f'scope="{missing}"' in answer.headers["www-authenticate"]


async def test_what_is_no_request_passes() -> None:
    front, app = guard()
    await front({"type": "lifespan"}, None, None)  # pyright: ignore[reportArgumentType]
    assert app.scopes == [{"type": "lifespan"}]


async def test_a_guard_before_nothing_says_so() -> None:
    front = Guard([reader()], scopes(), resource=RESOURCE, issuers=[], title="Files")
    async with client(front) as http:
        with pytest.raises(RuntimeError, match="`before`"):
            await http.post("/mcp", headers={"authorization": "Bearer bob"})


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("change", ["gone", "other scopes", "over", "issuer away", "none"])
async def test_a_stream_lasts_as_long_as_its_token(method: str, change: str) -> None:
    verifier = Verifier(bob=access("bob", "read", seconds=1 if change == "over" else 60))
    front, app = guard(verifier)
    headers = {"authorization": "Bearer bob"} | ({"mcp-method": "subscriptions/listen"} if method == "POST" else {})
    statuses: list[int] = []
    async with client(front) as http, deadline(), anyio.create_task_group() as tasks:

        async def listen() -> None:
            statuses.append((await http.request(method, "/waits", headers=headers)).status_code)

        tasks.start_soon(listen)
        await app.waits.wait()
        if change == "gone":
            verifier.known.clear()
        elif change == "other scopes":
            verifier.known["bob"] = access("bob", "read", "write")
        elif change == "issuer away":
            verifier.problem = Unavailable("The issuer is away.", "Try again.")
        await front.recheck()
        if change in ("issuer away", "none"):
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            assert len(front._streams) == 1
            tasks.cancel_scope.cancel()
    assert statuses == ([] if change in ("issuer away", "none") else [401])
    assert front._streams == set()


async def test_one_token_that_nobody_can_judge_now_does_not_save_the_others() -> None:
    verifier = Verifier(a=access("a", "read"), b=access("b", "read"))
    front, app = guard(verifier)
    ended = anyio.Event()
    async with client(front) as http, deadline(), anyio.create_task_group() as tasks:

        async def listen(name: str) -> None:
            await http.get("/waits", headers={"authorization": f"Bearer {name}"})
            ended.set()

        for name in verifier.known:
            tasks.start_soon(listen, name)
            await app.waits.wait()
            app.waits = anyio.Event()
        problems = [Unavailable("The issuer is away.", "Try again.")]

        async def verify(token: str) -> None:
            if problems:
                raise problems.pop()

        verifier.verify_token = verify
        await front.recheck()
        await ended.wait()
        assert len(front._streams) == 1
        tasks.cancel_scope.cancel()


async def test_a_stream_that_ends_by_itself_has_not_lost_its_token(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with client(guard(reader())[0]) as http:
        assert (await http.get("/mcp", headers={"authorization": "Bearer bob"})).text == "let in"
    assert "token" not in caplog.text


async def test_a_call_is_no_stream() -> None:
    front, app = guard(Verifier(bob=access("bob", "read", seconds=60)))
    async with client(front) as http, deadline(), anyio.create_task_group() as tasks:

        async def call() -> None:
            await http.post("/waits", headers={"authorization": "Bearer bob", "mcp-method": "tools/call"})

        tasks.start_soon(call)
        await app.waits.wait()
        assert front._streams == set()
        tasks.cancel_scope.cancel()


def test_a_message_beyond_the_callers_scopes_is_answered_before_it_is_read_on() -> None:
    front, _ = guard()
    edit = {"name": "edit", "arguments": {}}
    scope: dict[str, Any] = {"user": AuthenticatedUser(access("bob", "other", "search.read", "read"))}
    refused = front.authorize(scope, JSONRPCRequest(jsonrpc="2.0", id=7, method="tools/call", params=edit))
    assert refused is not None and refused.status_code == 403
    assert refused.headers["www-authenticate"].endswith('scope="search.read read write"')
    assert json.loads(bytes(refused.body))["id"] == 7 and scope["state"]["refusal"] == "scope write"
    note = front.authorize(scope, JSONRPCNotification(jsonrpc="2.0", method="tools/call", params=edit))
    assert note is not None and json.loads(bytes(note.body))["id"] is None
    listing = JSONRPCRequest(jsonrpc="2.0", id=8, method="tools/call", params={"name": "list"})
    assert front.authorize(scope, listing) is None
    answer = JSONRPCResponse(jsonrpc="2.0", id=9, result={})
    assert front.authorize(scope, answer) is None
    assert front.authorize({}, JSONRPCRequest(jsonrpc="2.0", id=7, method="tools/call", params=edit)) is None


@pytest.mark.parametrize(
    ("tools", "every"),
    [
        (["find"], ["read"]), (["find", "edit"], ["read", "write"]), (["drop"], ["read", "destroy"]),
        (["unmarked"], ["read", "destroy"]), (["find", "edit", "drop"], ["read", "write", "destroy"]),
    ],
)  # fmt: skip
def test_a_scope_is_offered_for_each_effect_there_is(tools: list[str], every: list[str]) -> None:
    assert scopes(*tools).all == every
    assert scopes(*tools, prefix="x:").all == [f"x:{effect}" for effect in every]


def test_scopes_of_others_are_none_of_ours() -> None:
    rules = scopes(prefix="files:")
    for held in (["files:read"], ["files:search.read"], ["a", "files:destroy"], ["files:write"]):
        assert rules.knows(held)
    for held in ([], ["read"], ["files:"], ["files:metrics"], ["mail:read"], ["files:read.search"]):
        assert not rules.knows(held)
    assert rules.for_path("/metrics") == "files:metrics" and rules.for_path("/mcp") is None


CALL, READ, LISTEN = "tools/call", "resources/read", "subscriptions/listen"
SETTINGS = {"uri": "config://settings"}
FIND, EDIT, DROP = {"name": "find"}, {"name": "edit"}, {"name": "drop"}


@pytest.mark.parametrize(
    ("held", "method", "params", "missing"),
    [
        (["read"], CALL, FIND, None), (["read"], CALL, EDIT, "write"), (["read"], CALL, DROP, "destroy"),
        (["write"], CALL, DROP, "destroy"), (["write"], CALL, EDIT, None), (["write"], CALL, FIND, None),
        (["destroy"], CALL, EDIT, None), ([], CALL, FIND, "read"),
        (["write"], CALL, {"name": "unmarked"}, "destroy"), (["destroy"], CALL, {"name": "unmarked"}, None),
        (["fs_search.read"], CALL, FIND, None), (["fs.read"], CALL, FIND, None), (["fs_edit.read"], CALL, FIND, "read"),
        (["search.read"], CALL, FIND, None), (["search.read"], CALL, {"name": "list"}, "read"),
        (["edit.write"], CALL, EDIT, None), (["edit.write"], CALL, DROP, "destroy"),
        (["edit.destroy"], CALL, EDIT, None), (["search.write"], CALL, EDIT, "write"),
        ([], CALL, {"name": "unknown"}, None), ([], CALL, None, None),
        ([], "tools/list", None, None), ([], "ping", None, None), ([], "resources/list", None, None),
        ([], READ, {}, "read"), (["search.read"], READ, {}, "read"), (["read"], READ, {}, None),
        (["destroy"], READ, SETTINGS, "settings"), (["settings"], READ, SETTINGS, "read"),
        (["read", "settings"], READ, SETTINGS, None),
        (["read"], "resources/subscribe", {"uri": "CONFIG://settings"}, "settings"),
        (["write"], READ, {}, None), ([], "resources/subscribe", {}, "read"), ([], "prompts/get", {}, "read"),
        ([], "completion/complete", {}, "read"),
        ([], LISTEN, None, None), ([], LISTEN, {"notifications": 3}, None),
        ([], LISTEN, {"notifications": {"toolsListChanged": True}}, None),
        ([], LISTEN, {"notifications": {"resourcesListChanged": False}}, None),
        ([], LISTEN, {"notifications": {"resourcesListChanged": True}}, "read"),
        ([], LISTEN, {"notifications": {"resourceSubscriptions": ["x:a"]}}, "read"),
        (["read"], LISTEN, {"notifications": {"resourceSubscriptions": ["x:a"]}}, None),
        ([], "tools/list", {"notifications": {"resourcesListChanged": True}}, None),
    ],
)  # fmt: skip
def test_what_a_scope_allows(held: list[str], method: str, params: dict[str, Any] | None, missing: str | None) -> None:
    assert scopes().missing(held, method, params) == missing
    prefixed = [f"x:{scope}" for scope in held]
    assert scopes(prefix="x:").missing(prefixed, method, params) == (missing and f"x:{missing}")
    if missing is None and held:
        assert scopes(prefix="y:").missing(prefixed, method, params) is not None


async def through(token: AccessToken | None, method: str, result: Any, params: Any = None) -> Any:
    """What the middleware makes of `result` for who holds `token`."""

    async def call_next(ctx: Any) -> Any:
        return result

    mark = auth_context_var.set(None if token is None else AuthenticatedUser(token))
    try:
        return await scopes()(SimpleNamespace(method=method, params=params), call_next)  # pyright: ignore
    finally:
        auth_context_var.reset(mark)


async def test_lists_show_what_may_be_used() -> None:
    tools = {"tools": [{"name": name} for name in TOOLS], "nextCursor": "more", "ttlMs": 5}
    for token, names in (
        (None, list(TOOLS)), (access("a", "destroy"), list(TOOLS)), (access("b", "read"), ["find", "list"]),
        (access("c", "search.read"), ["find"]), (access("d", "edit.write"), ["edit"]), (access("e"), []),
    ):  # fmt: skip
        shown = await through(token, "tools/list", tools)
        assert [item["name"] for item in shown["tools"]] == names and shown["nextCursor"] == "more"
        # Another token of the same person's may open more.
        assert shown["ttlMs"] == (0 if token else 5)
    for method, key in (
        ("resources/list", "resources"), ("resources/templates/list", "resourceTemplates"), ("prompts/list", "prompts"),
    ):  # fmt: skip
        there = {key: [{"name": "x"}], "nextCursor": "more", "ttlMs": 5}
        assert await through(access("a", "read"), method, there) == there
        assert await through(access("b", "search.read"), method, there) == {key: [], "ttlMs": 5}
    listed = {"resources": [{"uri": "x:a"}, SETTINGS]}
    assert await through(access("a", "read", "settings"), "resources/list", listed) == listed
    assert await through(access("b", "destroy"), "resources/list", listed) == {"resources": [{"uri": "x:a"}]}
    for result in ({"other": 1}, None):
        assert await through(access("b", "search.read"), "ping", result) == result
    assert await through(access("e"), "tools/list", None) is None
    assert await through(access("e"), "prompts/list", None) is None


async def test_a_transport_that_asked_nothing_before_is_asked_here() -> None:
    with pytest.raises(MCPError, match="lacks the scope `write`") as caught:
        await through(access("b", "read"), "tools/call", {}, {"name": "edit"})
    assert caught.value.error.code == -32600
    assert await through(access("b", "read"), "tools/call", {"done": 1}, {"name": "find"}) == {"done": 1}
    assert await through(None, "tools/call", {"done": 1}, {"name": "edit"}) == {"done": 1}
