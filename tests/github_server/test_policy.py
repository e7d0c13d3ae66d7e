"""What a caller's words may name, word by word: each case is taken, or refused with what to do instead."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from mcp_batteries.errors import Invalid, Problem, Refused, Unavailable
from mcp_batteries.settings import load
from mcp_github.policy import Change, Gate, Head, LineComment, Policy, Repo, ReviewComment, WriteRepo, flow
from mcp_github.policy.file_changes import Edit
from mcp_github.settings import Settings


def policy(*arguments: str) -> Policy:
    return Policy(load(Settings, [*arguments]))


@pytest.mark.parametrize(
    ("text", "repo"),
    [
        ("octo/site", "octo/site"), (" octo/site.git ", "octo/site"), ("https://github.com/octo/site", "octo/site"),
        ("https://www.github.com/octo/site/issues/7?q=1#c", "octo/site"), ("github.com/octo/site", "octo/site"),
        ("www.github.com/octo/site.git", "octo/site"), ("git@github.com:octo/site.git", "octo/site"),
        ("ssh://git@github.com:22/octo/site.git", "octo/site"), ("https://api.github.com/repos/octo/site", "octo/site"),
        ("HTTPS://GitHub.com/octo/site", "octo/site"), ("a/.github", "a/.github"),
    ],
)  # fmt: skip
def test_what_names_a_repository(text: str, repo: str) -> None:
    found = policy().repo(text)
    assert (found.full_name, found.uri) == (repo, f"github://{repo}")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "names no repository"), ("octo", "names no repository"), ("octo/", "names no repository"),
        ("/site", "names no repository"), ("octo/..", "names no repository"), ("octo/.", "names no repository"),
        ("octo/a b", "names no repository"), ("-octo/site", "names no repository"),
        ("octo/" + "x" * 101, "no repository"),
        ("https://gitlab.com/octo/site", "is not on `github.com`"),
        ("git@gitlab.com:octo/site", "is not on `github.com`"),
        ("gitlab.com/octo/site", "names no repository"), ("octo/site/issues", "names no repository"),
    ],
)  # fmt: skip
def test_what_names_none(text: str, reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        policy().repo(text)


def test_people_are_logins() -> None:
    Policy.require_logins(["octocat", "a-b"])
    for text in ("", "@octocat", "octo/app", "a b", "a@example.org"):
        with pytest.raises(Invalid, match="is not a login"):
            Policy.require_logins(["octocat", text])


def test_an_enterprise_server_has_its_own_addresses() -> None:
    served = policy("--api-url", "https://ghe.example.org")
    assert served.repo("https://ghe.example.org/api/v3/repos/octo/site").full_name == "octo/site"
    with pytest.raises(Invalid, match=r"is not on `ghe\.example\.org`"):
        served.repo("https://github.com/octo/site")


def test_the_allow_list_ignores_case_and_takes_all_of_an_owner() -> None:
    served = policy("--repos", "Octo/Site", "--repos", "team/*")
    for text in ("octo/site", "OCTO/SITE", "team/any", "Team/other"):
        assert served.repo(text).full_name == text
    for text in ("octo/other", "other/site", "teams/any"):
        with pytest.raises(Refused, match=r"Served are: `octo/site`, `team/\*`"):
            served.repo(text)
    assert served.named_repos == ["octo/site"]
    assert served.only_served(["octo/site", "octo/x", "team/x"], key=str) == ["octo/site", "team/x"]
    assert served.only_owners_served(["Octo", "team", "other"], key=str) == ["Octo", "team"]
    assert policy().only_owners_served(["other"], key=str) == ["other"]
    assert served.owner("@octo").login == "octo" and policy().owner("other").login == "other"
    with pytest.raises(Refused):
        served.owner("other")
    served.require_served("octo/site", "run")
    with pytest.raises(Refused, match="The run is of a repository"):
        served.require_served("octo/other", "run")
    policy().require_no_allow_list("Gists")
    with pytest.raises(Refused, match="Gists are outside"):
        served.require_no_allow_list("Gists")


@pytest.mark.parametrize(
    "name", ["main", "refs/heads/main", "release/1.x", "a-b_c", "v1.0", "0a1b2c3d", "x" * 250, "é", "a@b", "a/@"]
)
def test_what_a_branch_can_be_called(name: str) -> None:
    assert policy().ref(name).name == name.removeprefix("refs/heads/")


@pytest.mark.parametrize(
    "name",
    [
        "", "/a", "-a", ".a", "a/", "a.", "a..b", "a//b", "a@{1}", "@", "a.lock", "a/.b", "x" * 251, "a\ud800",
        *(f"a{char}b" for char in " ~^:?*[\\\0\t\n\x1f\x7f"),
    ],
)  # fmt: skip
def test_what_no_branch_can_be_called(name: str) -> None:
    with pytest.raises(Invalid, match="can't be a branch"):
        policy().ref(name)


def test_of_many_repositories_three_are_named() -> None:
    assert [flow._quote_some([*"abcde"][:count]) for count in (3, 5)] == ["`a, b, c`", "`a, b, c` and 2 more"]


def test_a_branch_of_a_pull_request_is_asked_for_with_its_owner() -> None:
    served = policy()
    repo = served.repo("octo/site")
    assert [served.head_filter(text).text_for(repo) for text in ("main", "me:main")] == ["octo:main", "me:main"]
    for text in ("me&x:main", "me:..", ":"):
        with pytest.raises(Invalid):
            served.head_filter(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a/b.txt", "a/b.txt"),
        ("/a/", "a"),
        ("./a", "a"),
        ("", ""),
        ("/", ""),
        ("x" * 4000, "x" * 4000),
        ("a\\u{200b}b", "a\u200bb"),
    ],
)
def test_what_a_path_in_a_repository_is(text: str, name: str) -> None:
    assert policy().file(text).name == name


@pytest.mark.parametrize(
    "text",
    ["../a", "a/../b", "a/./b", "a//b", "..", "a\0b", "a\ud800", "x" * 4001, "https://github.com/o/r/blob/main/a"],
)
def test_what_no_path_in_a_repository_is(text: str) -> None:
    with pytest.raises(Invalid):
        policy().file(text)


@pytest.mark.parametrize(
    "name",
    [".github/workflows/x.yml", ".GitHub/Workflows/deep/x", "action.yml", "a/b/action.yaml", "./.github/workflows/x"],
)
def test_what_actions_runs_has_a_gate(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refused, match="--workflow-files"):
        policy("--write").write_file(name)
    assert policy("--write", "--workflow-files").write_file(name).name == name.removeprefix("./")
    shut = policy("--write")
    with pytest.raises(Refused, match="It is not merged"):
        shut.require_mergeable(["a.txt", name])
    with pytest.raises(Refused):
        shut.require_no_workflows(["a.txt", name], "it", complete=True)
    monkeypatch.setenv("MCP_GITHUB_WORKFLOW_FILES", "1")
    with pytest.raises(Refused, match="--workflow-files"):
        policy().write_file(name)


def test_other_files_have_none() -> None:
    served = policy("--write")
    for name in (".github/x.yml", "workflows/x.yml", "x/.github/workflows/y", "action.yml/x", "reaction.yml"):
        assert served.write_file(name).name == name
    served.require_mergeable(["a.txt"])
    served.require_no_workflows(["a.txt"], "it", complete=True)
    with pytest.raises(Refused, match="can't all be told"):
        served.require_no_workflows(["a.txt"], "it", complete=False)
    for name in (".git", ".git/config", ".GIT/hooks/x"):
        with pytest.raises(Refused, match="git's own"):
            served.write_file(name)
    with pytest.raises(Invalid, match="is empty"):
        served.write_file("/")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--auth", "caller"], "Give --transport http"),
        (["--auth", "caller", "--transport", "sse"], "Give --transport http"),
        (["--auth", "login", "--transport", "http", "--login-client-id", "x"], "--auth caller"),
        (["--auth", "login"], "--login-client-id"),
    ],
)
def test_a_way_in_that_nobody_could_take_is_refused(arguments: list[str], words: str) -> None:
    with pytest.raises(Unavailable, match=words):
        policy(*arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--auth", "caller", "--transport", "http"], ["--auth", "login", "--login-client-id", "x"],
        ["--auth", "env"], ["--auth", "gh", "--transport", "http"],
    ],
)  # fmt: skip
def test_other_ways_in_are_taken(arguments: list[str]) -> None:
    assert policy(*arguments).allowed_actions == ["read"]


@pytest.mark.parametrize(
    ("gate", "parse"),
    [
        ("merge", Policy.merge_repo),
        ("delete", Policy.delete_repo),
        ("runs", Policy.run_repo),
        ("releases", Policy.release_repo),
        ("force", Policy.force_repo),
    ],
)
def test_each_switch_opens_its_gate(gate: Gate, parse: Callable[[Policy, str], WriteRepo]) -> None:
    opened = policy("--write", f"--{gate}")
    assert opened.allowed_actions == ["read", "write", gate]
    assert parse(opened, "octo/site").full_name == "octo/site"
    with pytest.raises(Refused, match=f"`--{gate}`, which is not open"):
        parse(policy("--write"), "octo/site")
    with pytest.raises(Refused, match="is not served"):
        parse(policy("--write", f"--{gate}", "--repos", "octo/other"), "octo/site")


def test_an_owners_projects_are_written_to_with_the_switch() -> None:
    with pytest.raises(Refused, match="--write"):
        policy().write_owner("octo")
    assert policy("--write").write_owner("@octo").login == "octo"


def test_outsiders_are_hidden_in_a_lockdown_only() -> None:
    for arguments, outsider in (([], True), ([], False), (["--lockdown"], False)):
        policy(*arguments).require_insider("issue", outsider=outsider)
    with pytest.raises(Refused, match="`--lockdown` hides it"):
        policy("--lockdown").require_insider("issue", outsider=True)


@pytest.mark.parametrize(
    ("flags", "effect", "toolset", "gates", "token", "missing", "why"),
    [
        ("", "read", "repos", [], False, [], ""),
        ("", "write", "repos", ["workflow_files"], True, ["--write", "--workflow-files"], ""),
        ("--write", "write", "repos", ["merge"], False, ["--merge"], "`GITHUB_TOKEN`"),
        ("--write --merge", "destroy", "repos", ["merge"], True, [], ""),
        ("--lockdown", "read", "repos", [], False, [], ""),
        ("--lockdown", "read", "gists", [], False, [], "`--lockdown`"),
        ("", "read", "gists", [], True, [], ""),
    ],
)
def test_what_a_tool_lacks_is_told(
    flags: str, effect: str, toolset: str, gates: list[str], token: bool, missing: list[str], why: str
) -> None:
    tool = SimpleNamespace(effect=effect, toolsets=[toolset], gates=gates)
    found = policy(*flags.split()).missing_for(tool, token=token)
    assert found.flags == missing and (why in found.reason if why else not found.reason)


def test_writing_needs_its_switch_and_each_gate_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_GITHUB_MERGE", "1")
    merges = policy()
    monkeypatch.delenv("MCP_GITHUB_MERGE")
    for closed in (policy(), merges, policy("--write", "--read-only", "--merge")):
        with pytest.raises(Refused, match="--write"):
            closed.write_repo("octo/site")
        assert closed.allowed_actions == ["read"]
    assert policy("--write", "--merge").allowed_actions == ["read", "write", "merge"]
    with pytest.raises(Refused, match="`--delete`"):
        policy("--write", "--releases").delete_release_repo("octo/site")
    with pytest.raises(Refused, match="`--releases`"):
        policy("--write", "--delete").delete_release_repo("octo/site")


@pytest.mark.parametrize(
    "url",
    ["https://evil.example.org/repos/a/b", "http://api.github.com/repos/a/b", "https://api.github.com/a/../b",
     "https://api.github.com/a/%2e%2e/b", "https://api.github.com:444/x", "https://api.github.com"],
)  # fmt: skip
def test_the_token_follows_no_redirect_elsewhere(url: str) -> None:
    with pytest.raises(Refused):
        policy().api_url.redirect(url, "it")
    assert policy().api_url.redirect("https://API.github.com/repositories/7?x=1", "it") == "/repositories/7"
    below = policy("--api-url", "https://ghe.example.org")
    assert below.api_url.redirect("https://ghe.example.org/api/v3/repos/a/b", "it") == "/repos/a/b"
    for out in ("https://ghe.example.org/login", "https://ghe.example.org/api/v35/x"):
        with pytest.raises(Refused, match="no API"):
            below.api_url.redirect(out, "it")


def test_a_redirect_to_another_repository_is_for_the_allow_list() -> None:
    served = policy("--repos", "octo/site")
    served.require_redirect_served("octo%2Fsite".replace("%2F", "/"), "it")
    for full in ("octo", "octo/other"):
        with pytest.raises(Refused, match="not served here"):
            served.require_redirect_served(full, "it")
    with pytest.raises(Refused):
        policy().require_redirect_served("octo", "it")


@pytest.mark.parametrize(
    ("url", "taken"),
    [
        ("https://objects.example.org/x?sig=1", True), ("http://objects.example.org/x", False),
        ("https://localhost/x", False), ("https://127.0.0.1/x", False), ("https://[::1]/x", False),
        ("https://10.0.0.8/x", False), ("https://printer.local/x", False), ("https://meta.internal/x", False),
        ("https://intranet/x", False), ("https:///x", False), ("https://api.github.com/x", True),
        ("ftp://a.org/x", False),
    ],
)  # fmt: skip
def test_a_download_comes_from_a_public_host(url: str, taken: bool) -> None:
    if taken:
        assert policy().api_url.download(url, "it").url == url
    else:
        with pytest.raises(Refused):
            policy().api_url.download(url, "it")
    here = policy("--api-url", "http://127.0.0.1:9")
    assert here.api_url.download("http://127.0.0.1:9/x", "it").url == "http://127.0.0.1:9/x"


def test_an_enterprise_server_has_its_services_below_its_own_host() -> None:
    server = policy("--api-url", "https://ghe.corp.local/api/v3").api_url
    for url in ("https://ghe.corp.local/_services/x", "https://pipelines.ghe.corp.local/x?sig=1"):
        assert server.download(url, "it").url == url
    for url in ("http://pipelines.ghe.corp.local/x", "https://evilghe.corp.local/x", "https://corp.local/x"):
        with pytest.raises(Refused):
            server.download(url, "it")


@pytest.mark.parametrize(
    ("method", "taken", "wrong"),
    [
        ("workflow", ["7", "ci.yml", ".github/workflows/ci.yaml", "a b.yml"], ["", "ci", "../ci.yml", "a/b.yml", "7x"]),
        ("gist", ["0a1B", "https://gist.github.com/octo/0a1b/"], ["", "a-b", "a/b", "x" * 65, "https://x.org/0a"]),
        ("node", ["PR_kwDO", "MDU6", "a=-_"], ["", "abc", "a b c d", "x" * 201, "a/bcd"]),
        ("team", ["a-b_c", "x" * 100], ["", "a b", "a/b", "x" * 101]),
    ],
)
def test_ids_stay_in_their_place(method: str, taken: list[str], wrong: list[str]) -> None:
    for text in taken:
        assert getattr(policy(), method)(text)
    for text in wrong:
        with pytest.raises(Invalid):
            getattr(policy(), method)(text)


def test_each_path_of_many_is_checked() -> None:
    served = policy("--write")
    sent = Change(path="./a", sha="s", content="c", base64=True, edits=[Edit(old="o", new="n")], delete=True)
    (change,) = served.file_changes([sent])
    assert change.path.name == "a" and change.is_base64 and change.delete
    assert (change.sha, change.content) == ("s", "c")
    assert [(edit.old, edit.new) for edit in change.edits] == [("o", "n")]
    (plain,) = served.file_changes([Change(path="a", content="c")])
    assert (plain.sha, plain.is_base64, list(plain.edits), plain.delete) == (None, False, [], False)
    with pytest.raises(Refused, match="--workflow-files"):
        served.file_changes([sent, Change(path=".github/workflows/x.yml")])
    on_lines = LineComment(path="./a", body="b", line=3, start_line=1, side="LEFT", start_side="RIGHT")
    (comment,) = served.review_comments([on_lines])
    assert comment == ReviewComment("a", "b", 3, "LEFT", 1, "RIGHT")
    (comment,) = served.review_comments([LineComment(path="a", body="b")])
    assert comment == ReviewComment("a", "b", None, "RIGHT", None, None)
    with pytest.raises(Invalid, match=r"or `\.\.` part"):
        served.review_comments([on_lines, LineComment(path="../a", body="b")])


def test_names_stand_in_a_path_as_themselves() -> None:
    assert policy().label("a/b c").path == "a%2Fb%20c"
    for text in (".", ".."):
        with pytest.raises(Invalid, match="is not a label"):
            policy().label(text)
    assert policy().workflow(".github/workflows/a b.yml").path == "a%20b.yml"


def test_one_may_be_named_as_oneself() -> None:
    served = policy("--repos", "octo/site")
    assert served.other_user("@ME") is None
    octo = served.other_user("octo")
    assert octo is not None and octo.login == "octo"
    for parse in (served.gist_owner, served.gist):
        with pytest.raises(Refused, match="Gists are outside"):
            parse("octo")
    assert policy().gist_owner("@me") is None and policy().gist("aa5a").id == "aa5a"


def test_where_a_pull_request_comes_from() -> None:
    served = policy("--repos", "octo/site")
    repo = served.repo("octo/site")
    assert served.head("topic") == Head("topic") and served.head("OCTO:topic").candidates_for(repo) is None
    assert policy().head("fork:topic") == Head("fork:topic")
    assert policy().head("fork/mine:topic") == Head("fork:topic", "mine")
    some = policy("--repos", "octo/site,fork/mine,fork/other,all/*")
    assert some.head("all:topic") == Head("all:topic")
    forks = (Repo("Fork", "mine"), Repo("Fork", "other"))
    assert some.head("Fork:topic") == Head("Fork:topic", None, forks, "Fork")
    assert some.head("Fork:topic").candidates_for(repo) == forks
    assert some.head("fork/mine:topic") == Head("fork:topic", "mine", (Repo("fork", "mine"),))
    # One that is named may be another than the owner's repository that the pull request is for.
    assert some.head("octo/site:topic").candidates_for(repo) == (Repo("octo", "site"),)
    with pytest.raises(Refused):
        some.head("fork/site:topic")
    for text in ("fork:topic", "octo:a b", "a b", "-x:topic", ":topic", "octo/:topic", "/site:topic"):
        with pytest.raises(Problem):
            served.head(text)
    with pytest.raises(Refused, match="is the default branch"):
        served.require_deletable(served.ref("main"), "main", repo)
    served.require_deletable(served.ref("topic"), "main", repo)


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("repo:a/b", "repo:"), ("x (repo:a/b", "repo:"), ("-user:a", "user:"), ("x org:a", "org:"),
        ('"team:a', "team:"),
        ("REPO:a/b", "REPO:"), ("owner:a", "owner:"), ("props.x:y", "props.x:"), ("enterprise:a", "enterprise:"),
        ("a OR b", "OR"), ("NOT a", "NOT"), ("a AND b", "AND"), ("(a)", "brackets"), ("a)", "brackets"),
    ],
)  # fmt: skip
def test_under_an_allow_list_a_query_reaches_nothing_else(query: str, word: str) -> None:
    served = policy("--repos", "octo/site", "--repos", "team/*")
    with pytest.raises(Refused, match=word.replace(".", r"\.")):
        served.restrict_query(query, None)
    with pytest.raises(Refused):
        served.restrict_query(query, served.repo("octo/site"))
    assert served.restrict_query(query, None, bound=False) == query
    assert policy().restrict_query(query, None) == query


def test_a_query_is_bound_to_what_is_served() -> None:
    served = policy("--repos", "octo/site", "--repos", "team/*")
    assert served.restrict_query("bug is:open", None) == "bug is:open repo:octo/site user:team"
    assert served.restrict_query("bug", None, has_logic=True) == "bug (repo:octo/site OR user:team)"
    # GitHub takes five operators, so of more repositories it searches their owners, and what is not served is hidden.
    repos = [f"octo/r{number}" for number in range(7)]
    many = policy(*(argument for repo in (*repos, "team/x") for argument in ("--repos", repo)))
    assert many.restrict_query("bug", None, has_logic=True) == "bug (user:octo OR user:team)"
    assert many.restrict_query("bug", None).count("repo:") == 8
    assert served.restrict_query("bug", served.repo("team/x")) == "bug repo:team/x"
    assert (
        policy().restrict_query("bug", policy().repo("team/x")) == "bug repo:team/x"
        and policy().restrict_query("", policy().repo("a/b")) == "repo:a/b"
    )
    with pytest.raises(Invalid, match="half of a character"):
        policy().restrict_query("a\ud800", None)


@pytest.mark.parametrize(
    ("run", "refused"),
    [
        ({"status": "action_required"}, True), ({"conclusion": "action_required"}, True),
        ({"event": "pull_request_target"}, True), ({"event": "workflow_run"}, True), ({"event": "push"}, False),
        ({}, False),
    ],
)  # fmt: skip
def test_a_run_with_secrets_on_what_others_sent_is_not_run_again(run: dict[str, str], refused: bool) -> None:
    if refused:
        with pytest.raises(Refused):
            policy("--write", "--runs").require_rerunnable(run, "run 7")
    else:
        policy("--write", "--runs").require_rerunnable(run, "run 7")
    if "event" in run:
        policy("--write", "--runs", "--workflow-files").require_rerunnable(run, "run 7")


def test_what_a_release_and_a_merge_need_to_know() -> None:
    served = policy("--write", "--releases")
    for status in ("behind", "identical"):
        served.require_own_commit(status, "commit")
    for status in ("ahead", "diverged", None):
        with pytest.raises(Refused, match="may be a fork's"):
            served.require_own_commit(status, "commit")
    served.require_all_listed(5, 5, "it")
    with pytest.raises(Refused, match="lists 5 of the 6 files"):
        served.require_all_listed(5, 6, "it")
    served.require_token(True)
    with pytest.raises(Refused, match="without a token"):
        served.require_token(False)


PUBLIC, PRIVATE, OWN = {"x/pub": True}, {"x/priv": False}, {"o/r": True}


@pytest.mark.parametrize(
    ("seen", "public", "acts", "why"),
    [
        ({}, True, True, None), (PUBLIC, False, False, "public text of `x/pub`"), (PUBLIC, True, True, "public text"),
        (PRIVATE, True, False, "text of the private `x/priv`"), (PRIVATE, False, True, None), (OWN, True, False, None),
        (OWN, True, True, "it runs or publishes something"), (OWN, False, True, None),
        ({"o/r": False}, True, True, None),
        ({"kin/pub": True}, True, False, None), ({"kin/priv": False}, True, False, "the private `kin/priv`"),
        ({f"x/{n}": True for n in range(3)}, True, False, "`x/0, x/1, x/2` was"),
        ({f"x/{n}": True for n in range(5)}, True, False, "`x/0, x/1, x/2` and 2 more was"),
    ],
)  # fmt: skip
def test_text_that_was_read_makes_a_write_a_question(
    seen: dict[str, bool], public: bool, acts: bool, why: str | None
) -> None:
    trusting = ["--write", "--trusted-owner", "@Kin"]
    question = policy(*trusting).flow_question("o/r", seen, public=public, acts=acts)
    assert (question is None) == (why is None)
    assert policy(*trusting, "--flow", "off").flow_question("o/r", seen, public=public, acts=acts) is None
    strict = policy(*trusting, "--flow", "strict")
    if why is None:
        assert strict.flow_question("o/r", seen, public=public, acts=acts) is None
        return
    assert question is not None and why.lower() in question.lower() and question.startswith("Allow a write to `o/r`? ")
    with pytest.raises(Refused, match="Writing to `o/r` is refused"):
        strict.flow_question("o/r", seen, public=public, acts=acts)


def test_a_repository_on_the_list_may_be_written_as_it_is_cloned() -> None:
    """Taken literally, `octo/app.git` would serve nothing: no repository has such a name."""
    assert (
        policy("--repos", "octo/app.git").repo("octo/app").full_name
        == policy("--repos", "octo/app").repo("octo/app").full_name
    )
