"""Where GitHub is, and where the token is from."""

import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from mcp.shared.exceptions import MCPError

from github_server.oracle import Oracle
from github_server.serving import TOKEN, call, fake_gh, refused, served
from mcp_batteries.cli.host_entry.text import make_entry
from mcp_batteries.errors import Unavailable
from mcp_batteries.settings import load
from mcp_github.client import credentials
from mcp_github.policy import Policy
from mcp_github.settings import DEFAULT_TOOLSETS, Settings

# What a server gets of hosts that do not replace a variable.
UNREPLACED = (
    "${GITHUB_PAT}",
    "$GITHUB_TOKEN",
    "${env:GITHUB_TOKEN}",
    "${input:github_token}",
    "{env:TOKEN}",
    "%TOKEN%",
)


@pytest.mark.parametrize(
    ("given", "base", "host"),
    [
        ("https://api.github.com", "https://api.github.com", "github.com"),
        ("https://github.com/", "https://api.github.com", "github.com"),
        ("github.com", "https://api.github.com", "github.com"),
        ("https://www.github.com", "https://api.github.com", "github.com"),
        ("https://api.git.example.org", "https://api.git.example.org", "api.git.example.org"),
        ("https://octo.ghe.com", "https://api.octo.ghe.com", "octo.ghe.com"),
        ("https://api.octo.ghe.com", "https://api.octo.ghe.com", "octo.ghe.com"),
        ("https://git.example.org", "https://git.example.org/api/v3", "git.example.org"),
        ("https://git.example.org/api/graphql", "https://git.example.org/api/v3", "git.example.org"),
        ("https://api.github.com/graphql", "https://api.github.com", "github.com"),
        ("https://git.example.org:8443/api/v3/", "https://git.example.org:8443/api/v3", "git.example.org"),
        ("https://example.org/github", "https://example.org/github", "example.org"),
        ("http://127.0.0.1:99", "http://127.0.0.1:99", "127.0.0.1"),
        ("http://localhost:99/", "http://localhost:99", "localhost"),
        ("http://[::1]:99", "http://[::1]:99", "::1"),
    ],
)
def test_the_address_is_understood(given: str, base: str, host: str) -> None:
    api = Policy(load(Settings, ["--api-url", given])).api_url
    assert (api.base, api.host) == (base, host)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--api-url", "http://git.example.org"], ["--api-url", "https://u:p@x.org"], ["--api-url", "ftp://x.org"],
        ["--api-url", ""], ["--api-url", "https://x.org?a=1"], ["--api-url", "https://x.org#a"],
        ["--api-url", "https://u@x.org"], ["--api-url", "https://x.org:port"], ["--repos", "octo"],
        ["--repos", "octo/../x"],
        ["--toolsets", "nothing"],
    ],
)  # fmt: skip
def test_what_cannot_be_used_stops_the_start(arguments: list[str]) -> None:
    with pytest.raises(Unavailable):
        Policy(load(Settings, arguments))


def test_lists_may_be_written_with_commas() -> None:
    settings = load(Settings, ["--toolsets", "repos,issues", "--toolsets", "gists", "--repos", "a/b, c/*"])
    assert settings.toolsets == ("repos", "issues", "gists") and settings.repos == ("a/b", "c/*")
    # As GitHub's own server names them.
    theirs = load(Settings, ["--toolsets", "default,actions,issues,stargazers,dependabot,code_security"])
    assert theirs.toolsets == (*DEFAULT_TOOLSETS, "actions", "stars", "security")


@pytest.mark.parametrize("host", ["vscode", "cursor", "codex", "zed"])
@pytest.mark.parametrize(
    ("words", "is_asked"),
    [
        ("", True),
        ("--auth env", True),
        ("--auth gh", False),
        ("--auth none", False),
        ("--auth login --login-client-id x", False),
        ("--token-file token", False),
        ("--app-id 1 --app-key-file key", False),
    ],
)
def test_an_entry_asks_for_a_token_only_if_the_server_would_use_it(words: str, is_asked: bool, host: str) -> None:
    assert ("GITHUB_TOKEN" in make_entry(host, load(Settings, words.split()))) is is_asked


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("shell", "batch", "said"),
    [
        (None, "", "`gh` program is not in a folder of `PATH`. The operator can install it"),
        ("exit 1", "exit 1", "`gh` program has no token for `127.0.0.1`. The user can run `gh auth login --hostname"),
        ("exec sleep 60", ":again\ngoto again", "`gh` program does not answer (TimeoutExpired)"),
    ],
    ids=["missing", "not logged in", "silent"],
)
async def test_gh_that_gives_no_token_says_why(
    shell: str | None, batch: str, said: str, oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(credentials, "_GH_TIMEOUT_SECONDS", 5 if shell == "exit 1" else 0.1)
    if shell is not None:
        # The script's own programs are found by the PATH that is set there.
        path = "PATH=/bin:/usr/bin"
        fake_gh(tmp_path, f"{path}; {shell}", batch)
    async with served(oracle, "--auth", "gh") as client:
        assert said in await refused(client, "get_repository", repo="octo/app")
    monkeypatch.delenv("GITHUB_TOKEN")
    async with served(oracle) as client:
        await call(client, "get_repository", repo="octo/app")
    assert "authorization" not in oracle.seen[-1].headers


@pytest.mark.reported("github/copilot-cli#1403")
@pytest.mark.reported("1jehuang/jcode#789")
@pytest.mark.slow
@pytest.mark.anyio
async def test_the_token_is_taken_from_where_it_is(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("from-file\n", "utf-8")
    asked = "auth token --hostname 127.0.0.1"
    gh = fake_gh(tmp_path, f"[ \"$*\" = '{asked}' ] && echo from-gh", f'if "%*"=="{asked}" echo from-gh')
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    async def sent(*arguments: str) -> str | None:
        async with served(oracle, *arguments) as client:
            await call(client, "get_repository", repo="octo/app")
        return oracle.seen[-1].headers.get("authorization")

    assert await sent() == f"token {TOKEN}"
    assert await sent("--token-file", str(tmp_path / "token")) == "token from-file"
    assert await sent("--auth", "gh") == "token from-gh"
    assert await sent("--auth", "none") is None
    monkeypatch.setenv("GH_ENTERPRISE_TOKEN", "from-enterprise")
    assert await sent() == "token from-enterprise"
    for name in ("GH_ENTERPRISE_TOKEN", "GITHUB_TOKEN"):
        monkeypatch.delenv(name)
    assert await sent() == "token from-gh"
    # What an entry shows until somebody puts a token there.
    [asked] = Settings.INSTALL_QUESTIONS
    for blank in (asked.example, "***", *UNREPLACED):
        monkeypatch.setenv("GITHUB_TOKEN", blank)
        assert await sent() == "token from-gh"
    monkeypatch.delenv("GITHUB_TOKEN")
    gh.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert await sent() is None
    async with served(oracle, "--auth", "env") as client:
        assert "`GITHUB_TOKEN`" in await refused(client, "get_me")
    async with served(oracle) as client:
        found = await call(client, "get_me")
        assert "no token" in found["note"] and "login" not in found["data"]


@pytest.mark.anyio
@pytest.mark.reported("moby/moby#46773")
@pytest.mark.reported("docker/cli#4665")
@pytest.mark.parametrize("written", ["'{}'", '"{}"', ' "{}"\r\n'])
async def test_quotes_of_an_env_file_are_no_part_of_a_token(
    written: str, oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", written.format(TOKEN))
    async with served(oracle) as client:
        await call(client, "get_repository", repo="octo/app")
    assert oracle.seen[-1].headers.get("authorization") == f"token {TOKEN}"


@pytest.mark.anyio
async def test_a_token_may_come_while_the_server_runs(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_TOKEN")
    monkeypatch.setenv("PATH", str(tmp_path))
    oracle.people = {"new-token-of-octocat": "octocat"}
    file = tmp_path / "token"
    file.write_text("old-token-of-octocat", "utf-8")
    async with served(oracle, "--token-file", str(file)) as client:
        assert "does not accept the token" in await refused(client, "get_repository", repo="octo/app")
        file.write_text("new-token-of-octocat", "utf-8")
        await call(client, "get_repository", repo="octo/app")
    oracle.people = None
    async with served(oracle) as client:
        assert "no token" in (await call(client, "get_me"))["note"]
        fake_gh(tmp_path, "echo from-gh", "echo from-gh")
        monkeypatch.setattr(credentials, "_ABSENT_SECONDS", 0.0)
        assert (await call(client, "get_me"))["data"]["token_from"] == "gh"


@pytest.mark.slow
@pytest.mark.anyio
async def test_an_app_acts_as_its_installation(oracle: Oracle, tmp_path: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (tmp_path / "key.pem").write_bytes(key.private_bytes(*form))
    oracle.answer("GET", "/app/installations", [{"id": 77, "account": {"login": "octo"}}])
    made = {"token": "ghs_installationToken", "expires_at": "2100-01-01T00:00:00Z"}
    oracle.answer("POST", "/app/installations/77/access_tokens", made, status=201)
    app = ("--app-id", "123", "--app-key-file", str(tmp_path / "key.pem"))
    oracle.answer("GET", "/user", {"message": "Resource not accessible by integration"}, status=403)
    async with served(oracle, *app) as client:
        for _ in range(3):
            await call(client, "get_repository", repo="octo/app")
        found = await call(client, "get_me")
        assert found["data"]["token_from"] == "a GitHub App" and "no user" in found["note"]
    assert oracle.seen[-1].headers["authorization"] == "token ghs_installationToken"
    assert len(oracle.sent("POST", "access_tokens")) == 1
    for status, message, step in [
        (401, "A JSON web token could not be decoded", "of one App"),
        (404, "Integration not found", "--app-installation"),
        (403, "This installation has been suspended", "on GitHub"),
    ]:
        oracle.answer("POST", "/app/installations/77/access_tokens", {"message": message}, status=status)
        async with served(oracle, *app) as client:
            said = await refused(client, "get_me")
            assert f"({status}): `{message}`" in said and step in said
    async with served(oracle, *app, "--api-url", "http://127.0.0.1:9") as client:
        assert "can't be reached for the App's token" in await refused(client, "get_me")
    (tmp_path / "key.pem").write_text("no key")
    async with served(oracle, *app) as client:
        assert "no private key that signs" in await refused(client, "get_me")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--app-id 1", "needs its key"),
        ("--app-key-file key.pem", "`--app-key-file` does nothing"),
        ("--app-installation 7", "`--app-installation` does nothing"),
        ("--app-id 1 --app-key-file key.pem --token-file token", "`--app-id` and `--token-file` name two sources"),
        ("--auth gh --token-file token", "`--auth gh` and `--token-file` name two sources"),
        ("--auth none --app-id 1 --app-key-file key.pem", "`--auth none` and `--app-id` name two sources"),
        ("--login-client-id Iv1", "`--login-client-id` does nothing"),
    ],
)
def test_no_option_about_the_token_is_ignored(words: str, said: str) -> None:
    with pytest.raises(Unavailable) as refusal:
        Policy(load(Settings, words.split()))
    assert said in str(refusal.value)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("arguments", "tool", "words"),
    [
        ((), "create_issue", "`--write`"),
        (("--write",), "run_merge", "`--merge`"),
        (("--toolsets", "issues"), "delete_release", "`--tools default,delete_release --write --releases --delete`"),
        (("--write", "--read-only"), "create_issue", "`--read-only`"),
        ((), "create_isue", "Did you mean `create_issue`"),
    ],
)
async def test_a_tool_that_is_off_is_named_with_what_turns_it_on(
    arguments: tuple[str, ...], tool: str, words: str, oracle: Oracle
) -> None:
    async with served(oracle, *arguments) as client:
        with pytest.raises(MCPError) as refusal:
            await client.call_tool(tool, {})
        assert words in str(refusal.value), refusal.value
    assert oracle.seen == []
