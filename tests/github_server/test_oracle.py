"""The oracle itself: what is right passes, and each kind of wrong is flagged."""

import json

import pytest

from github_server.oracle import Oracle, Seen
from github_server.oracle.description import judged
from github_server.oracle.graph import answered
from mcp_github.requests import graphql_queries

HEADERS = {
    "accept": "application/vnd.github+json", "user-agent": "x", "x-github-api-version": "2022-11-28",
    "content-type": "application/json",
}  # fmt: skip


def said(verb: str, target: str, body: object = None, headers: dict[str, str] = HEADERS) -> str:
    sent = b"" if body is None else json.dumps(body).encode()
    return "; ".join(judged(verb, target, headers, sent).complaints)


@pytest.mark.parametrize(
    ("verb", "target", "body", "complaint"),
    [
        ("POST", "/repos/o/r/issues", {"title": "T"}, ""),
        ("POST", "/repos/o/r/issues", {"titel": "T"}, "body has no `titel`"),
        ("POST", "/repos/o/r/issues", {}, "'title' is a required property"),
        ("POST", "/repos/o/r/issues", {"title": "T", "labels": "bug"}, "body.labels"),
        ("POST", "/repos/o/r/issues", None, "the body is missing"),
        ("POST", "/repos/o/r/pulls/1/reviews", {"comments": [{"path": "a", "body": "b", "x": 1}]}, "body.comments[]"),
        ("PUT", "/repos/o/r/pulls/1/merge", {"merge_method": "octopus"}, "body: "),
        ("GET", "/repos/o/r/issues?state=open&per_page=100", None, ""),
        ("GET", "/repos/o/r/issues?state=openish", None, "`state` in the query is 'openish'"),
        ("GET", "/repos/o/r/issues?colour=red", None, "there is no `colour`"),
        ("GET", "/repos/o/r/issues?per_page=101", None, "`per_page` is 101"),
        ("GET", "/repos/o/r/issues/first", None, "`issue_number` in the path is 'first'"),
        ("GET", "/search/issues", None, "`q` is required"),
        ("GET", "/repos/o/r/contents/a/b%20c.py", None, ""),
        ("GET", "/repos/o/r/contents/a/../../x", None, "`path` of the path is"),
        ("GET", "/repos/o/r/issues", {"title": "T"}, "a body where none is described"),
        ("GET", "/nothing/of/this", None, "no operation"),
    ],
)  # fmt: skip
def test_a_wrong_request_is_flagged(verb: str, target: str, body: object, complaint: str) -> None:
    found = said(verb, target, body)
    assert complaint in found if complaint else found == ""


def test_headers_are_judged() -> None:
    assert "version" in said("GET", "/user", headers={**HEADERS, "x-github-api-version": "1"})
    assert "accepts" in said("GET", "/user", headers={**HEADERS, "accept": "text/html"})
    assert "user agent" in said("GET", "/user", headers={**HEADERS, "user-agent": ""})


def test_a_wrong_query_is_flagged() -> None:
    given = {"owner": "o", "name": "r", "number": 1, "first": 20, "after": None}
    data, complaints = answered(graphql_queries.THREADS, given, None)
    assert complaints == [] and data["data"]["repository"]["pullRequest"]["reviewThreads"]["nodes"]
    assert answered(graphql_queries.THREADS.replace("isResolved", "isSolved"), given, None)[1]
    assert answered(graphql_queries.THREADS, {**given, "number": "one"}, None)[1]
    assert answered(graphql_queries.REPLY, {"input": {"body": "B", "thread": "x"}}, None)[1]


def test_the_oracle_remembers_and_fails_a_wrong_request() -> None:
    with Oracle() as oracle:
        body = json.dumps({"titel": "T"}).encode()
        reply = oracle.reply(Seen("POST", "/repos/o/r/issues", HEADERS, body))
        assert reply.status == 422 and len(oracle.violations) == 2
        # These were on purpose.
        from github_server.oracle import violations

        for complaint in oracle.violations:
            violations.remove(complaint)
