"""Pages that really go on, sizes that hold, files of every kind, resources, completions, prompts."""

import base64
import io
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    BlobResourceContents,
    ImageContent,
    PromptReference,
    ResourceTemplateReference,
    TextContent,
)
from PIL import Image

from github_server.oracle import Oracle
from github_server.oracle.server import Reply
from github_server.serving import call, data_of, refused, served
from github_server.world import SHA, changed, comment, file, issue, sample

O = {"repo": "octo/app"}  # noqa: E741


async def everything(client: Client, tool: str, **arguments: Any) -> tuple[list[list[Any]], int]:
    """All rows of a list, and in how many answers."""
    rows: list[list[Any]] = []
    answers, cursor = 0, None
    while True:
        found = await call(client, tool, **arguments, **({"cursor": cursor} if cursor else {}))
        rows += found["rows"]
        answers += 1
        cursor = found.get("cursor")
        if cursor is None:
            return rows, answers


@pytest.mark.anyio
async def test_a_blank_line_at_the_end_of_a_page_is_a_line(oracle: Oracle) -> None:
    oracle.answer("GET", "/repos/octo/app/contents/a.txt", file("a.txt", b"a\n\n"))
    async with served(oracle) as client:
        script = "return read_file.all({repo: 'octo/app', path: 'a.txt'})"
        answer = await call(client, "call_tools", script=script)
    assert answer.splitlines()[-1] == '["a",""]'


@pytest.mark.anyio
async def test_bytes_that_are_no_text_stay_bytes(oracle: Oracle) -> None:
    gzip = bytes.fromhex("1f8b0800000000000203") + bytes(range(256))
    for name, data in (("a.gz", gzip), ("a.mp3", b"\xff\xfe" + bytes(range(255, 0, -1))), ("a.bin", b"text\xff\x01")):
        oracle.answer("GET", f"/repos/octo/app/contents/{name}", file(name, data))
        async with served(oracle) as client:
            (block,) = (await client.call_tool("read_file", {**O, "path": name})).content
        assert block.type == "resource"


@pytest.mark.anyio
@pytest.mark.parametrize("limit", [1, 7, 30, 100])
async def test_no_row_is_lost_or_told_twice(limit: int, oracle: Oracle) -> None:
    items = [issue(n, **({"pull_request": {}} if n % 3 == 0 else {})) for n in range(1, 64)]
    oracle.pages("/repos/octo/app/issues", items)
    async with served(oracle) as client:
        rows, _ = await everything(client, "list_issues", **O, limit=limit, fields=["number"])
    assert [row[0] for row in rows] == [n for n in range(1, 64) if n % 3]


@pytest.mark.anyio
async def test_large_texts_make_more_pages_of_bounded_size(oracle: Oracle) -> None:
    oracle.pages("/repos/octo/app/issues/3/comments", [comment(n, body=f"{n} " + "x" * 5000) for n in range(1, 41)])
    async with served(oracle) as client:
        found = await call(client, "list_comments", **O, number=3)
        assert len(found["rows"]) < 30 and "more characters]" in found["rows"][0][-1]
        rows, answers = await everything(client, "list_comments", **O, number=3)
    assert [row[0] for row in rows] == list(range(1, 41)) and answers > 4


@pytest.mark.anyio
async def test_a_long_text_is_whole_on_its_own(oracle: Oracle) -> None:
    body = "".join(f"{number:05}" for number in range(4000))
    oracle.answer("GET", "/repos/octo/app/issues/3", issue(3, body=body))
    oracle.answer("GET", "/repos/octo/app/pulls/5", {**sample("pulls/get"), "number": 5, "body": body})
    oracle.pages("/repos/octo/app/issues/3/comments", [comment(n, body=f"{n}{body}") for n in (1, 2)])
    async with served(oracle) as client:
        for tool, number in (("get_issue", 3), ("get_pull_request", 5)):
            found = await call(client, tool, **O, number=number)
            assert len(found["data"]["body"]) < 8100 and "fields=body alone" in found["note"]
            assert (await call(client, tool, **O, number=number, fields="body"))["data"] == {"body": body}
        assert "fields=body alone" in (await call(client, "list_comments", **O, number=3))["note"]
        rows, answers = await everything(client, "list_comments", **O, number=3, fields="body")
        assert rows == [[f"1{body}"], [f"2{body}"]] and answers == 2


@pytest.mark.anyio
async def test_a_cursor_is_for_its_list_only(oracle: Oracle) -> None:
    oracle.pages("/repos/octo/app/issues", [issue(n) for n in range(1, 40)])
    async with served(oracle) as client:
        cursor = (await call(client, "list_issues", **O))["cursor"]
        for more in ({"state": "closed"}, {"repo": "octo/other"}):
            assert "cursor" in await refused(client, "list_issues", **{**O, **more}, cursor=cursor)


@pytest.mark.anyio
async def test_fields_are_chosen_and_a_wrong_one_tells_all(oracle: Oracle) -> None:
    oracle.pages("/repos/octo/app/issues", [issue(1)])
    async with served(oracle) as client:
        found = await call(client, "list_issues", **O, fields=["number", "url"])
        assert found["columns"] == ["number", "url"] and found["rows"][0][0] == 1
        assert "`milestone`" in await refused(client, "list_issues", **O, fields=["stuff"])


@pytest.mark.anyio
async def test_a_text_file_comes_by_lines(oracle: Oracle) -> None:
    lines = [f"line {n} " + "y" * (n % 90) for n in range(1, 1501)]
    oracle.answer("GET", "/repos/octo/app/contents/a.txt", file("a.txt", "\n".join(lines).encode() + b"\n"))
    async with served(oracle) as client:
        found: list[str] = []
        start: int | None = 1
        while start is not None:
            text = await call(client, "read_file", **O, path="a.txt", start_line=start)
            head, _, body = text.partition("\n")
            assert len(text.encode()) < 11_000 and f"sha {SHA}" in head
            found += body.removesuffix("\n").split("\n")
            start = int(head.partition("start_line=")[2].partition(";")[0]) if "start_line=" in head else None
        assert found == lines
        text = await call(client, "read_file", **O, path="a.txt", start_line=3, lines=2)
        assert text.splitlines()[1:] == lines[2:4]
        assert "1500 lines" in await refused(client, "read_file", **O, path="a.txt", start_line=1501)


@pytest.mark.anyio
async def test_a_file_beyond_a_megabyte_comes_as_a_blob(oracle: Oracle) -> None:
    big = b"first\n" + b"z" * 1_500_000 + b"\nlast\n"
    entry = {**file("big.txt", b""), "size": len(big), "encoding": "none", "content": ""}
    oracle.answer("GET", "/repos/octo/app/contents/big.txt", entry)
    oracle.answer("GET", f"/repos/octo/app/git/blobs/{SHA}", raw=big)
    async with served(oracle) as client:
        assert "first" in await call(client, "read_file", **O, path="big.txt")
        assert "last" in await call(client, "read_file", **O, path="big.txt", start_line=3)
    assert len(oracle.sent("GET", "/git/blobs")) == 1


@pytest.mark.anyio
async def test_bytes_stay_bytes(oracle: Oracle) -> None:
    data = bytes(range(256)) * 4
    oracle.answer("GET", "/repos/octo/app/contents/x.bin", file("x.bin", data))
    oracle.answer("GET", "/repos/octo/app/contents/big.bin", file("big.bin", b"\0" * 1_200_000))
    async with served(oracle) as client:
        block = (await client.call_tool("read_file", {**O, "path": "x.bin"})).content[0]
        assert base64.b64decode(block.resource.blob) == data  # type: ignore[union-attr]
        assert "github://octo/app/contents/big.bin" in await refused(client, "read_file", **O, path="big.bin")
        read = await client.read_resource("github://octo/app/contents/x.bin")
        assert base64.b64decode(read.contents[0].blob) == data  # type: ignore[union-attr]


@pytest.mark.anyio
async def test_a_picture_leaves_only_in_a_type_that_models_take(oracle: Oracle) -> None:
    files: dict[str, bytes] = {"junk.png": bytes(range(256)) * 4}
    for name, kind in (("a.png", "PNG"), ("photo.png", "JPEG"), ("logo.bmp", "BMP"), ("film", "GIF")):
        output = io.BytesIO()
        Image.effect_noise((64, 48), 90).save(output, kind)
        files[name] = output.getvalue()
    files["cut.jpg"] = files["photo.png"][:-300]
    for name, data in files.items():
        oracle.answer("GET", f"/repos/octo/app/contents/{name}", file(name, data))
    kinds: dict[str, str] = {}
    async with served(oracle) as client:
        for name, data in files.items():
            block = (await client.call_tool("read_file", {**O, "path": name})).content[0]
            kinds[name] = block.type
            if isinstance(block, ImageContent):
                kinds[name] = block.mime_type
                with Image.open(io.BytesIO(base64.b64decode(block.data))) as picture:
                    picture.load()
                    assert picture.format is not None and Image.MIME[picture.format] == block.mime_type
            if isinstance(block, TextContent):
                assert "image/jpeg" in block.text and f"sha {SHA}" in block.text and "it is damaged" in block.text
            read = (await client.read_resource(f"github://octo/app/contents/{name}")).contents[0]
            assert isinstance(read, BlobResourceContents) and base64.b64decode(read.blob) == data
            assert read.mime_type == "application/octet-stream"
    assert kinds == {
        "junk.png": "resource", "a.png": "image/png", "photo.png": "image/jpeg", "logo.bmp": "image/png",
        "film": "image/png", "cut.jpg": "text",
    }  # fmt: skip


@pytest.mark.anyio
async def test_what_is_no_file_is_said(oracle: Oracle) -> None:
    oracle.answer("GET", "/repos/octo/app/contents/dir", {"type": "dir", "entries": []})
    oracle.answer("GET", "/repos/octo/app/contents/link", {"type": "symlink", "target": "a.txt", "sha": SHA})
    oracle.answer("GET", "/repos/octo/app/contents/sub", {"type": "submodule", "submodule_git_url": "u", "sha": SHA})
    async with served(oracle) as client:
        for path, words in (("dir", "`list_files`"), ("link", "link to `a.txt`"), ("sub", "submodule")):
            assert words in await refused(client, "read_file", **O, path=path)


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_diff_comes_file_by_file_and_whole(oracle: Oracle) -> None:
    patches = {
        f"src/{n:03}.py": "\n".join([f"@@ -1,{n} +1 @@", *(f"+line {n}.{k}" for k in range(n * 7))])
        for n in range(1, 131)
    }
    oracle.pages("/repos/octo/app/pulls/5/files", [changed(name, patch) for name, patch in patches.items()])
    async with served(oracle) as client:
        found: dict[str, list[str]] = {}
        cursor, answers = None, 0
        while True:
            text = await call(client, "read_diff", **O, number=5, **({"cursor": cursor} if cursor else {}))
            assert len(text.encode()) < 12_000
            answers += 1
            head, _, body = text.removesuffix("\n").partition("\n")
            lines = []  # what the author says of it, before the first file
            for line in body.split("\n"):
                if line.startswith("=== "):
                    lines = found.setdefault(line[4:].partition(" ")[0], [])
                else:
                    lines.append(line)
            if "cursor=" not in head:
                break
            cursor = head.partition("cursor=")[2].rstrip("]")
        assert {name: "\n".join(lines) for name, lines in found.items()} == patches and answers > 50
        one = await call(client, "read_diff", **O, number=5, path="src/003.py")
        assert one.count("===") == 1 and "line 3.20" in one
        assert "differs" in await refused(client, "read_diff", **O, number=5, path="nothing")
        summary = await call(client, "read_diff", **O, number=5, summary=True)
        assert summary.count("===") == 130


@pytest.mark.anyio
async def test_what_has_no_text_difference_is_named(oracle: Oracle) -> None:
    oracle.pages("/repos/octo/app/pulls/5/files", [changed("logo.png", None, status="added"), changed("b.py")])
    async with served(oracle) as client:
        text = await call(client, "read_diff", **O, number=5)
        assert "no text difference" in text and "b.py" in text


@pytest.mark.anyio
async def test_a_log_is_read_from_its_end_without_the_token(oracle: Oracle) -> None:
    log = "".join(f"2026-01-01T00:00:00.0Z \x1b[3{n % 8}mstep {n}\x1b[0m\r\n" for n in range(1, 3001))
    jobs = [{"id": 7, "name": "ok", "conclusion": "success"}, {"id": 8, "name": "tests", "conclusion": "failure"}]
    oracle.answer("GET", "/repos/octo/app/actions/runs/9/jobs", {"total_count": 2, "jobs": jobs})
    oracle.answer(
        "GET", "/repos/octo/app/actions/jobs/8/logs", status=302, headers={"Location": f"{oracle.url}/_storage/8"}
    )
    oracle.answer("GET", "/_storage/8", raw=log.encode())
    async with served(oracle, "--toolsets", "actions") as client:
        text = await call(client, "read_job_log", **O, run_id=9)
        assert "(tests)" in text and text.endswith("3000: step 3000\n") and "\x1b" not in text and "2026" not in text
        text = await call(client, "read_job_log", **O, job_id=8, start_line=10)
        assert "\n10: step 10\n" in text and "continue with start_line=" in text
        text = await call(client, "read_job_log", **O, job_id=8, pattern="step 77")
        assert "77: step 77\n" in text and "step 78" not in text
    assert oracle.sent("GET", "_storage") and all(
        "authorization" not in s.headers for s in oracle.sent("GET", "_storage")
    )


@pytest.mark.anyio
@pytest.mark.parametrize(
    "where",
    [
        "http://10.0.0.5/x",
        "https://169.254.169.254/x",
        "http://metadata/x",
        "file:///etc/passwd",
        "https://box.internal/x",
        "",
    ],
)
async def test_a_download_goes_to_no_inner_address(where: str, oracle: Oracle) -> None:
    oracle.answer("GET", "/repos/octo/app/actions/jobs/8/logs", status=302, headers={"Location": where})
    async with served(oracle, "--toolsets", "actions") as client:
        assert "not followed" in await refused(client, "read_job_log", **O, job_id=8)


@pytest.mark.anyio
async def test_resources_are_read(oracle: Oracle) -> None:
    oracle.answer("GET", "/repos/octo/app/readme", raw="# Hi\u200b".encode())
    oracle.answer("GET", "/repos/octo/app/contents/a b/ü.txt", file("a b/ü.txt", b"text\n"))
    oracle.pages("/repos/octo/app/pulls/5/files", [changed("a.py")])
    async with served(oracle, "--repos", "octo/app") as client:
        assert data_of(await client.read_resource("github://octo/app"))["data"]["repo"] == "octo/app"
        assert (await client.read_resource("github://octo/app/readme")).contents[0].text == "# Hi"  # type: ignore[union-attr]
        uri = "github://octo/app/contents/a%20b/%C3%BC.txt?ref=v1.0"
        assert (await client.read_resource(uri)).contents[0].text == "text\n"  # type: ignore[union-attr]
        assert oracle.seen[-1].query == {"ref": "v1.0"}
        assert data_of(await client.read_resource("github://octo/app/pulls/5"))["data"]["number"] == 5
        assert "=== a.py" in (await client.read_resource("github://octo/app/pulls/5/diff")).contents[0].text  # type: ignore[union-attr]
        assert data_of(await client.read_resource("github://octo/app/releases/v1.0"))["data"]["tag_name"]
        assert data_of(await client.read_resource("github://octo/app/runs/9"))["data"]["jobs"]
        listed = {item.uri for item in (await client.list_resources()).resources}
        assert "github://octo/app" in listed
        for uri in ("github://octo/app/issues/0", "github://octo/app/issues/x", "github://octo/app/nothing/1"):
            with pytest.raises(MCPError):
                await client.read_resource(uri)


@pytest.mark.anyio
async def test_names_are_completed(oracle: Oracle) -> None:
    tag = {"name": "v1", "commit": {"sha": SHA}}
    oracle.answer("GET", "/repos/octo/app/branches", [{"name": "main"}, {"name": "feature/x"}])
    oracle.answer("GET", "/repos/octo/app/tags", [tag])
    oracle.answer("GET", "/repos/octo/app/issues", [issue(12), issue(13), issue(2)])
    oracle.answer(
        "GET",
        "/repos/octo/app/contents/src",
        [{"path": "src/a.py", "type": "file"}, {"path": "src/lib", "type": "dir"}],
    )
    async with served(oracle, "--repos", "octo/app", "--repos", "labs/tool") as client:
        contents = ResourceTemplateReference(type="ref/resource", uri="github://{owner}/{repo}/contents/{+path}{?ref}")
        here = {"owner": "octo", "repo": "app"}

        async def complete(name: str, typed: str, others: dict[str, str], ref: Any = contents) -> list[str]:
            found = await client.complete(ref, {"name": name, "value": typed}, context_arguments=others)
            return found.completion.values

        assert await complete("owner", "", {}) == ["octo", "labs"]
        assert await complete("repo", "a", {"owner": "octo"}) == ["app"]
        assert await complete("ref", "", here) == ["main", "feature/x", "v1"]
        assert await complete("path", "src/", here) == ["src/a.py", "src/lib/"]
        assert await complete("path", "../", here) == []
        assert await complete("ref", "", {"owner": "other", "repo": "secret"}) == []
        one = ResourceTemplateReference(type="ref/resource", uri="github://{owner}/{repo}/issues/{number}")
        assert await complete("number", "1", here, one) == ["12", "13"]
        prompt = PromptReference(type="ref/prompt", name="write_release_notes")
        assert await complete("repo", "l", {}, prompt) == ["labs/tool"]
        assert await complete("since", "", {"repo": "octo/app"}, prompt) == ["v1"]


@pytest.mark.anyio
async def test_prompts_name_what_they_are_about(oracle: Oracle) -> None:
    async with served(oracle, "--repos", "octo/app") as client:
        for name, arguments in (
            ("review_pull_request", {"number": "5"}), ("triage_issues", {"since": "2026-01-01"}),
            ("write_release_notes", {"since": "v1"}), ("investigate_failed_run", {"ref": "main"}),
        ):  # fmt: skip
            shown = await client.get_prompt(name, {**O, **arguments})
            text = shown.messages[0].content.text  # type: ignore[union-attr]
            assert "octo/app" in text and "never an instruction" in text
            with pytest.raises(MCPError):
                await client.get_prompt(name, {**arguments, "repo": "other/secret"})
    assert oracle.seen == []


@pytest.mark.anyio
async def test_threads_are_paged_and_chosen(oracle: Oracle) -> None:
    def answer(given: dict[str, Any]) -> dict[str, Any]:
        start = int(given["after"] or 0)
        nodes = [
            {"id": f"PRRT_{n:04}", "isResolved": n % 2 == 0, "path": "a.py", "line": n}
            for n in range(start, start + 20)
        ]
        more = {"hasNextPage": start < 40, "endCursor": str(start + 20)}
        return {"repository": {"pullRequest": {"reviewThreads": {"nodes": nodes, "totalCount": 60, "pageInfo": more}}}}

    oracle.graphql("Threads", answer)
    async with served(oracle) as client:
        rows, _ = await everything(client, "list_reviews", **O, number=5, kind="threads")
        assert [row[2] for row in rows] == list(range(60))
        rows, _ = await everything(client, "list_reviews", **O, number=5, kind="threads", unresolved=True)
        assert [row[2] for row in rows] == list(range(1, 60, 2))


@pytest.mark.anyio
async def test_items_of_boards_and_inboxes_stay_within_the_list(oracle: Oracle) -> None:
    items = [
        {"id": n, "content_type": "Issue", "content": {"number": n, "repository_url": f"x/repos/{full}", "title": full}}
        for n, full in ((1, "octo/app"), (2, "other/secret"))
    ]
    oracle.answer("GET", "/users/octo/projectsV2/1/items", items)
    note = {"id": "1", "subject": {"title": "T", "type": "Issue", "url": "x/7"}, "reason": "mention"}
    notes = [{**note, "repository": {"full_name": full, "private": True}} for full in ("octo/app", "other/secret")]
    oracle.answer("GET", "/notifications", notes)
    oracle.answer("GET", "/notifications/threads/1", notes[1])
    only = ("--toolsets", "all", "--repos", "octo/app", "--write")
    async with served(oracle, *only) as client:
        rows = (await call(client, "list_projects", owner="octo", kind="items", project=1))["rows"]
        assert [row[2] for row in rows] == ["octo/app"]
        rows = (await call(client, "list_notifications"))["rows"]
        assert [(row[1], row[3]) for row in rows] == [("octo/app", 7)]
        await refused(client, "edit_notification", notification=1, action="done")
        await refused(client, "edit_notification", action="read")
        for name, arguments in (
            ("list_gists", {}),
            ("get_gist", {"gist": "a1"}),
            ("write_gist", {"texts": {"a": "b"}}),
        ):
            await refused(client, name, **arguments)
        await refused(client, "list_projects", owner="other")
    assert oracle.sent("PUT") == oracle.sent("DELETE") == oracle.sent("GET", "/gists") == []


@pytest.mark.anyio
async def test_a_secret_that_was_found_is_not_shown(oracle: Oracle) -> None:
    alert = {"number": 2, "state": "open", "secret": "AKIAsecretsecret", "secret_type_display_name": "AWS"}
    oracle.respond(
        "GET",
        "/repos/octo/app/secret-scanning/alerts.*",
        lambda seen: Reply(200, alert if "/2" in seen.path else [alert]),
    )
    async with served(oracle, "--toolsets", "security") as client:
        for name, more in (("list_alerts", {}), ("get_alert", {"number": 2})):
            assert "AKIA" not in str(await call(client, name, **O, kind="secret_scanning", **more))
            assert oracle.seen[-1].query["hide_secret"] == "true"


@pytest.mark.anyio
async def test_pages_of_what_is_not_shown_do_not_look_like_the_end(oracle: Oracle) -> None:
    items = [issue(n, **({"pull_request": {}} if n % 100 else {})) for n in range(1, 301)]
    oracle.pages("/repos/octo/app/issues", items)
    async with served(oracle) as client:
        found = await call(client, "list_issues", **O, limit=20)
        assert [row[0] for row in found["rows"]] == [100, 200] and len(oracle.seen) == 10
        rows, answers = await everything(client, "list_issues", **O, limit=20)
        assert [row[0] for row in rows] == [100, 200, 300] and answers == 2

        def resolved(given: dict[str, Any]) -> dict[str, Any]:
            page = int(given["after"] or 0)
            nodes = [{"id": f"PRRT_{page}{n:02}", "isResolved": (page, n) != (2, 7), "comments": {"nodes": []}}
                     for n in range(20)]  # fmt: skip
            about = {"endCursor": str(page + 1), "hasNextPage": page < 3}
            threads = {"totalCount": 80, "nodes": nodes, "pageInfo": about}
            return {"repository": {"pullRequest": {"reviewThreads": threads}}}

        oracle.graphql("Threads", resolved)
        ask = {**O, "number": 5, "kind": "threads", "unresolved": True}
        found = await call(client, "list_reviews", **ask)
        assert [row[0] for row in found["rows"]] == ["PRRT_207"]
        assert (await call(client, "list_reviews", **ask, cursor=found["cursor"]))["rows"] == []


LISTS: list[tuple[str, dict[str, Any], str, str | None, str]] = [
    ("list_pull_requests", {}, "/repos/octo/app/pulls", None, "pulls/list"),
    ("list_reviews", {"number": 5}, "/repos/octo/app/pulls/5/reviews", None, "pulls/list-reviews"),
    ("list_commits", {}, "/repos/octo/app/commits", None, "repos/list-commits"),
    ("list_commits", {"number": 5}, "/repos/octo/app/pulls/5/commits", None, "pulls/list-commits"),
    ("list_refs", {}, "/repos/octo/app/branches", None, "repos/list-branches"),
    ("list_refs", {"kind": "tags"}, "/repos/octo/app/tags", None, "repos/list-tags"),
    ("list_releases", {}, "/repos/octo/app/releases", None, "repos/list-releases"),
    ("list_people", {}, "/repos/octo/app/collaborators", None, "repos/list-collaborators"),
    ("list_issue_options", {"kind": "labels"}, "/repos/octo/app/labels", None, "issues/list-labels-for-repo"),
    ("list_actions", {}, "/repos/octo/app/actions/runs", "workflow_runs", "actions/list-workflow-runs-for-repo"),
    ("list_actions", {"kind": "artifacts"}, "/repos/octo/app/actions/artifacts", "artifacts",
     "actions/list-artifacts-for-repo"),
    ("list_alerts", {"kind": "dependabot"}, "/repos/octo/app/dependabot/alerts", None,
     "dependabot/list-alerts-for-repo"),
    ("list_alerts", {"kind": "code_scanning"}, "/repos/octo/app/code-scanning/alerts", None,
     "code-scanning/list-alerts-for-repo"),
    ("list_alerts", {"kind": "code_quality"}, "/repos/octo/app/code-quality/findings", None,
     "code-quality/list-findings-for-repo"),
    ("list_gists", {"repo": None}, "/gists", None, "gists/list"),
    ("list_notifications", {"repo": None}, "/notifications", None,
     "activity/list-notifications-for-authenticated-user"),
    ("search_github", {"repo": None, "kind": "code", "query": "x"}, "/search/code", "items", "search/code"),
]  # fmt: skip


@pytest.mark.anyio
async def test_every_list_ends_and_has_all(oracle: Oracle) -> None:
    oracle.answer("GET", "/repos/octo/app/commits/main/status", {"statuses": []})
    async with served(oracle, "--toolsets", "all") as client:
        for tool, arguments, path, inside, operation in LISTS:
            whole = sample(operation)
            one = (whole if inside is None else whole[inside])[0]
            by = "after" if "dependabot" in path or "code-quality" in path else "page"
            oracle.pages(path, [one] * 7, inside, by=by)
            before = len(oracle.seen)
            given = {name: value for name, value in {**O, **arguments}.items() if value is not None}
            rows, answers = await everything(client, tool, **given, limit=3)
            assert (len(rows), answers) == (7, 3), tool
            asked = [seen.query.get(by, "1") for seen in oracle.seen[before:] if seen.path == path]
            assert asked == ["1", "2", "3"], tool


@pytest.mark.anyio
async def test_a_first_page_says_what_is_to_come(oracle: Oracle) -> None:
    patch = "@@ -1 +1 @@\n" + "-old\n+new\n" * 900
    files = [changed(f"f{number}.py", patch) for number in range(120)]
    counts = {"number": 5, "changed_files": 120, "additions": 700, "deletions": 600}
    oracle.pages("/repos/octo/app/pulls/5/files", files)
    oracle.answer("GET", "/repos/octo/app/pulls/5", {**sample("pulls/get"), **counts})
    whole = {**sample("repos/get-commit"), "sha": SHA, "files": files[:9]}
    oracle.answer("GET", f"/repos/octo/app/commits/{SHA}", whole)
    oracle.pages("/repos/octo/app/branches", [{"name": f"b{n}", "commit": {"sha": SHA}} for n in range(95)])
    async with served(oracle) as client:
        text = await call(client, "read_diff", **O, number=5)
        assert "; 120 files, +700 -600 in all; truncated" in text.partition("\n")[0]
        more = text.partition("cursor=")[2].partition("]")[0]
        assert "in all" not in (await call(client, "read_diff", **O, number=5, cursor=more)).partition("\n")[0]
        assert "; 9 files, +9 -9 in all; truncated" in await call(client, "read_diff", **O, ref=SHA)
        first = await call(client, "list_refs", **O)
        assert first["note"] == "At least 61 more."


@pytest.mark.anyio
async def test_labels_with_commas_are_asked_for_as_what_they_are(oracle: Oracle) -> None:
    """GitHub would look for issues with both halves."""
    labelled = [issue(1, labels=[{"name": "Needs: docs, tests"}, {"name": "bug"}]), issue(2, labels=[{"name": "bug"}])]
    oracle.pages("/repos/octo/app/issues", labelled)
    async with served(oracle) as client:
        for labels in (["bug", "needs: docs, tests"], 'bug, "Needs: docs, tests"'):
            found = await call(client, "list_issues", repo="octo/app", labels=labels)
            assert [row[0] for row in found["rows"]] == [1]
            assert oracle.seen[-1].query.get("labels") == "bug"
        assert len((await call(client, "list_issues", repo="octo/app", labels="bug"))["rows"]) == 2
