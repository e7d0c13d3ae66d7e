"""One change of many issues: shown first, then made of each, with what became of each."""

from typing import Any

import anyio
import pytest

from github_server.oracle import Oracle, Seen
from github_server.oracle.server import Reply
from github_server.serving import call, refused, served
from github_server.world import issue, sample

O = {"repo": "octo/app"}  # noqa: E741
HERE = "/repos/octo/app/issues"
NUMBERS: dict[str, Any] = {**O, "number": 3, "numbers": [4, 5, 4]}


def world(oracle: Oracle) -> dict[int, dict[str, Any]]:
    """Issues 3, 4 and 5 that change as they are asked to; 4 has the label `old`. There are milestones 1 and 2."""
    oracle.answer(
        "GET", "/repos/octo/app/milestones", [{**sample("issues/get-milestone"), "number": n} for n in (1, 2)]
    )
    issues = {number: issue(number, labels=[], assignees=[], milestone=None, state="open") for number in (3, 4, 5)}
    issues[4]["labels"] = [{"name": "old"}]

    def change(seen: Seen) -> Reply:
        found = issues[int(seen.path.rpartition("/")[2])]
        for name, value in seen.json.items():
            found[name] = [{"name": label} for label in value] if name == "labels" else value
        return Reply(200, found)

    def change_labels(seen: Seen) -> Reply:
        number, _, name = seen.path.removeprefix(f"{HERE}/").replace("/labels", "").partition("/")
        labels = issues[int(number)]["labels"]
        if seen.verb == "POST":
            labels += [{"name": name} for name in seen.json["labels"]]
        else:
            labels.remove({"name": name})
        return Reply(200, labels)

    oracle.respond("PATCH", f"{HERE}/[345]", change)
    oracle.respond("POST", f"{HERE}/[345]/labels", change_labels)
    oracle.respond("DELETE", f"{HERE}/[345]/labels/.*", change_labels)
    oracle.respond("GET", f"{HERE}/[345]", lambda seen: Reply(200, issues[int(seen.path.rpartition("/")[2])]))
    return issues


@pytest.mark.anyio
async def test_the_first_call_only_shows_what_would_change(oracle: Oracle) -> None:
    world(oracle)
    async with served(oracle, "--write") as client:
        wishes: dict[str, Any] = {"labels": ["+bug", "-old"], "state": "closed", "milestone": 2}
        shown = await call(client, "edit_issue", **NUMBERS, **wishes)
        assert shown["data"]["columns"] == ["number", "title", "would_change"]
        assert shown["data"]["rows"] == [
            [3, "Issue 3", "state: open -> closed; labels: +bug; milestone: none -> v1.0"],
            [4, "Issue 4", "state: open -> closed; labels: +bug -old; milestone: none -> v1.0"],
            [5, "Issue 5", "state: open -> closed; labels: +bug; milestone: none -> v1.0"],
        ]
        assert "dry_run=false" in shown["done"] and not oracle.sent("PATCH")
        done = await call(client, "edit_issue", **NUMBERS, **wishes, dry_run=False)
        assert done["done"] == "Changed 3 of 3 issues."
        # What was done as it was asked is only counted.
        assert "data" not in done
        assert {seen.json["state"] for seen in oracle.sent("PATCH")} == {"closed"}
        assert [seen.json["labels"] for seen in oracle.sent("POST", "/labels$")] == [["bug"]] * 3
        assert [seen.path for seen in oracle.sent("DELETE")] == [f"{HERE}/4/labels/old"]
        again = await call(client, "edit_issue", **NUMBERS, labels=["+bug"], state="closed")
        assert {row[2] for row in again["data"]["rows"]} == {"nothing"}


@pytest.mark.anyio
async def test_one_issue_can_be_shown_first_too(oracle: Oracle) -> None:
    world(oracle)
    oracle.answer("GET", f"{HERE}/8", issue(8, id=88))
    async with served(oracle, "--write") as client:
        shown = await call(client, "edit_issue", **O, number=4, duplicate_of=8, labels="only", dry_run=True)
        assert shown["data"]["rows"][0][2] == (
            "labels: +only -old; state: open -> closed; state_reason: completed -> duplicate; duplicate_of: #8"
        )
        shown = await call(client, "edit_issue", **O, number=4, title="New", body="B" * 99, dry_run=True)
        assert shown["data"]["rows"][0][2].startswith("title: Issue 4 -> New; body: ")
        assert not oracle.sent("PATCH")


@pytest.mark.anyio
async def test_what_fails_for_one_is_told_and_the_others_go_on(oracle: Oracle) -> None:
    issues = world(oracle)
    oracle.answer("PATCH", f"{HERE}/3", {"message": "Not Found"}, status=404)
    oracle.answer("PATCH", f"{HERE}/4", {**issues[4], "labels": [], "title": "T"})
    oracle.answer("GET", f"{HERE}/3", {"message": "Not Found"}, status=404)
    async with served(oracle, "--write") as client:
        shown = await call(client, "edit_issue", **NUMBERS, labels=["bug"], state="open")
        assert "does not find" in shown["data"]["rows"][0][2]
        done = await call(client, "edit_issue", **NUMBERS, labels=["bug"], state="open", dry_run=False)
        assert done["data"]["columns"] == ["number", "result"]
        first, second = done["data"]["rows"]
        assert done["done"] == "Changed 2 of 3 issues."
        assert first[0] == 3 and first[1].startswith("failed: GitHub does not find")
        # What GitHub left out stands beside its issue, and is not said of the others.
        assert second[0] == 4 and "GitHub did not set: labels `bug`" in second[1] and "note" not in done


@pytest.mark.anyio
async def test_what_is_refused_for_one_is_done_of_the_others(oracle: Oracle) -> None:
    issues = world(oracle)
    oracle.answer("PATCH", f"{HERE}/3", {"message": "Issue is locked"}, status=403)
    oracle.answer("PATCH", f"{HERE}/4", {"message": "Resource not accessible by integration"}, status=403)
    async with served(oracle, "--write") as client:
        done = await call(client, "edit_issue", **NUMBERS, state="closed", dry_run=False)
    assert done["done"] == "Changed 1 of 3 issues." and issues[5]["state"] == "closed"
    first, second = done["data"]["rows"]
    assert first[0] == 3 and "locked" in first[1]
    assert second[0] == 4 and second[1].startswith("failed: The token may not")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "headers", "tried"), [(403, {}, 3), (429, {"Retry-After": "50"}, 1)], ids=["rights", "limit"]
)
async def test_what_fails_for_all_ends_it(status: int, headers: dict[str, str], tried: int, oracle: Oracle) -> None:
    oracle.answer("PATCH", f"{HERE}/[0-9]+", {"message": "Resource not accessible"}, status=status, headers=headers)
    async with served(oracle, "--write") as client:
        done = await call(client, "edit_issue", **O, number=1, numbers=list(range(2, 9)), state="closed", dry_run=False)
    results = [row[1] for row in done["data"]["rows"]]
    assert all(result.startswith("failed") for result in results[:tried])
    assert set(results[tried:]) == {"not tried"} and len(results) == 8
    assert len(oracle.sent("PATCH")) == tried


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("A" * 80 + "x" + "B" * 80, "A" * 80 + "y" + "B" * 80, f"…{'A' * 15}x{'B' * 44}… -> …{'A' * 15}y{'B' * 44}…"),
        ("A" * 80, "A" * 80 + " more", f"…{'A' * 15} -> …{'A' * 15} more"),
        ("short", "Short", "short -> Short"),
        ("two\nlines", "two lines", "other white space"),
        ("", "B" * 61, f"none -> {'B' * 60}…"),
    ],
)
async def test_long_texts_are_shown_where_they_differ(old: str, new: str, shown: str, oracle: Oracle) -> None:
    issues = world(oracle)
    issues[4]["body"] = old
    async with served(oracle, "--write") as client:
        preview = await call(client, "edit_issue", **O, number=4, body=new, dry_run=True)
    assert preview["data"]["rows"][0][2] == f"body: {shown}"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("timeout", "at_first", "later", "changed"),
    [(30, 290, 55, 2), (30, 290, 65, 3), (5, 290, 36, 3), (300, 290, 280, 1)],
)
async def test_the_end_of_the_time_leaves_an_answer_that_says_what_was_changed(
    timeout: int, at_first: float, later: float, changed: int, oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    issues = world(oracle)

    def find_deadline() -> float:
        seconds = at_first
        if issues[4]["state"] == "closed":
            seconds = later
        return anyio.current_time() + seconds

    monkeypatch.setattr(anyio, "current_effective_deadline", find_deadline)
    async with served(oracle, "--write", "--timeout", str(timeout)) as client:
        done = await call(client, "edit_issue", **NUMBERS, state="closed", dry_run=False)
    assert done["done"] == f"Changed {changed} of 3 issues."
    remaining = [3, 4, 5][changed:]
    rows = done.get("data", {}).get("rows", [])
    assert rows == [[number, "not tried, as too little time is left"] for number in remaining]
    assert [issues[number]["state"] for number in (3, 4, 5)] == ["closed"] * changed + ["open"] * (3 - changed)


@pytest.mark.anyio
async def test_forms_of_several_numbers(oracle: Oracle) -> None:
    world(oracle)
    async with served(oracle, "--write") as client:
        for numbers in ("4,5", "#4 #5", ["octo/app#4", "https://github.com/octo/app/issues/5"], [4, 5]):
            shown = await call(client, "edit_issue", **O, number=3, numbers=numbers, state="closed")
            assert [row[0] for row in shown["data"]["rows"]] == [3, 4, 5]
        said = await refused(client, "edit_issue", **NUMBERS, title="T")
        assert "`title` and `body` are those of one issue. Give them in `each`" in said
        assert "One of `number`, `numbers` and `each`" in await refused(client, "edit_issue", **O, state="open")
        assert "100" in await refused(client, "edit_issue", **O, number=3, numbers=list(range(1, 102)), state="open")
        assert "1 or more" in await refused(client, "edit_issue", **O, number=3, numbers=[0], state="open")


@pytest.mark.anyio
async def test_a_comment_goes_with_the_change_or_alone(oracle: Oracle) -> None:
    world(oracle)
    close: dict[str, Any] = {"state": "closed", "state_reason": "not_planned"}
    async with served(oracle, "--write") as client:
        done = await call(client, "edit_issue", **O, number=3, **close, add_comment="Duplicate of #1")
        assert done["done"] == "Changed and commented on #3."
        assert done["data"]["state"] == "closed" and done["data"]["state_reason"] == "not_planned"
        shown = await call(client, "edit_issue", **NUMBERS, add_comment="Thanks!")
        assert [row[2] for row in shown["data"]["rows"]] == ["comment: Thanks!"] * 3
        assert len(oracle.sent("POST")) == 1
        done = await call(client, "edit_issue", **NUMBERS, add_comment="Thanks!", dry_run=False)
        assert done["done"] == "Commented on 3 of 3 issues."
        assert "data" not in done
        done = await call(client, "edit_issue", **O, number=4, add_comment="Alone", labels=[])
        assert done["done"] == "Changed and commented on #4."
        done = await call(client, "edit_issue", **O, number=4, add_comment="Alone")
        assert done["done"] == "Commented on #4." and "issuecomment" in done["url"]
    assert [seen.path for seen in oracle.sent("POST")][:2] == [f"{HERE}/3/comments", f"{HERE}/3/comments"]
    assert len(oracle.sent("PATCH")) == 2


@pytest.mark.anyio
async def test_a_comment_that_fails_leaves_the_issue_as_it_was(oracle: Oracle) -> None:
    world(oracle)
    oracle.answer("POST", f"{HERE}/3/comments", {"message": "Issue is locked"}, status=403)
    async with served(oracle, "--write") as client:
        assert "locked" in await refused(client, "edit_issue", **O, number=3, state="closed", add_comment="C")
        oracle.answer("POST", f"{HERE}/4/comments", status=502)
        said = await refused(client, "edit_issue", **O, number=4, state="closed", add_comment="C")
        assert "look before you try again" in said and len(oracle.sent("POST", "/4/comments")) == 1
    assert not oracle.sent("PATCH")


@pytest.mark.anyio
async def test_a_change_that_fails_after_its_comment_is_made_without_another(oracle: Oracle) -> None:
    issues = world(oracle)
    oracle.answer("PATCH", f"{HERE}/3", {"message": "Validation Failed"}, status=422)
    oracle.answer("PATCH", f"{HERE}/4", status=502)
    async with served(oracle, "--write") as client:
        said = await refused(client, "edit_issue", **O, number=3, state="closed", add_comment="C")
        assert "#3 has the comment, the rest is not" in said and "Call again without `add_comment`." in said
        said = await refused(client, "edit_issue", **O, number=4, state="closed", add_comment="C")
        assert "#4 has the comment, the rest perhaps not" in said and "Call again" not in said
        oracle.respond("PATCH", f"{HERE}/3", lambda seen: Reply(200, {**issues[3], **seen.json}))
        assert (await call(client, "edit_issue", **O, number=3, state="closed"))["data"]["state"] == "closed"
    assert [seen.verb for seen in oracle.seen if seen.verb != "GET"][:2] == ["POST", "PATCH"]
    assert len(oracle.sent("POST", "/3/comments")) == 1


@pytest.mark.anyio
async def test_a_comment_without_words_changes_nothing(oracle: Oracle) -> None:
    world(oracle)
    async with served(oracle, "--write") as client:
        assert "empty" in await refused(client, "edit_issue", **O, number=3, state="closed", add_comment=" \n")
    assert not oracle.sent("PATCH")


@pytest.mark.anyio
async def test_a_milestone_goes_by_its_title(oracle: Oracle) -> None:
    world(oracle)
    milestones = [{**sample("issues/get-milestone"), "number": n, "title": f"2.{n}"} for n in range(1, 121)]
    oracle.pages("/repos/octo/app/milestones", milestones)
    oracle.pages(HERE, [issue(7, labels=[]), issue(8, labels=[{"name": "Bug"}])])
    async with served(oracle, "--write") as client:
        await call(client, "edit_issue", **O, number=3, milestone="2.110")
        await call(client, "edit_issue", **O, number=3, milestone=4)
        await call(client, "edit_issue", **O, number=3, milestone="none")
        assert [seen.json["milestone"] for seen in oracle.sent("PATCH")] == [110, 4, None]
        await call(client, "create_issue", **O, title="T", milestone="2.5")
        assert oracle.sent("POST")[-1].json["milestone"] == 5
        for text, sent in (("2.6", "6"), ("6", "6"), ("none", "none"), ("*", "*")):
            await call(client, "list_issues", **O, milestone=text)
            assert oracle.sent("GET", "/issues$")[-1].query["milestone"] == sent
        # A year is a title, too.
        milestones += [
            {**milestones[0], "number": 121, "title": "2026"},
            {**milestones[0], "number": 122, "title": "5"},
        ]
        oracle.pages("/repos/octo/app/milestones", milestones)
        for text, sent in (("2026", "121"), (4, "4"), ("#5", "5"), ("#122", "122")):
            await call(client, "list_issues", **O, milestone=text)
            assert oracle.sent("GET", "/issues$")[-1].query["milestone"] == sent
        said = await refused(client, "edit_issue", **O, number=3, milestone=5)
        assert (
            "`5` is the title of milestone #122 and the number of `2.5`. Name it by its number: `#122` or `#5`" in said
        )
        assert "no milestone `2027`" in await refused(client, "edit_issue", **O, number=3, milestone="2027")
        said = await refused(client, "list_issues", **O, milestone="2.999")
        assert "`octo/app` has no milestone `2.999`. There are: `2.1`, `2.2`," in said
        found = await call(client, "list_issues", **O, labels="none", fields="number")
        assert found["rows"] == [[7]] and "labels" not in oracle.sent("GET", "/issues$")[-1].query


@pytest.mark.anyio
async def test_each_issue_may_have_values_of_its_own(oracle: Oracle) -> None:
    issues = world(oracle)
    each = {
        "#4": {"labels": "+wish, -old", "add_comment": "Thanks!"},
        "https://github.com/octo/app/issues/5": {"labels": ["question"], "state": "Closed", "milestone": 1},
    }
    async with served(oracle, "--write") as client:
        wishes: dict[str, Any] = {**O, "number": 3, "each": each, "labels": "+bug", "add_comment": "Sorted."}
        shown = await call(client, "edit_issue", **wishes)
        assert [row[2] for row in shown["data"]["rows"]] == [
            "labels: +bug; comment: Sorted.",
            "labels: +wish -old; comment: Thanks!",
            "state: open -> closed; labels: +question; milestone: none -> v1.0; comment: Sorted.",
        ]
        assert {seen.verb for seen in oracle.seen} == {"GET"}
        done = await call(client, "edit_issue", **wishes, dry_run=False)
    assert done["done"] == "Changed and commented on 3 of 3 issues."
    assert "data" not in done
    assert {number: [label["name"] for label in found["labels"]] for number, found in issues.items()} == {
        3: ["bug"], 4: ["wish"], 5: ["question"],
    }  # fmt: skip
    assert issues[5]["milestone"] == 1 and issues[5]["state"] == "closed"
    assert [seen.json["body"] for seen in oracle.sent("POST", "/comments$")] == ["Sorted.", "Thanks!", "Sorted."]
    assert [seen.verb for seen in oracle.seen if seen.verb != "GET"] == [
        "POST", "POST", "POST", "POST", "DELETE", "POST", "PATCH",
    ]  # fmt: skip


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("each", "said"),
    [
        ({"4": {"label": ["bug"]}}, "`each.4` has no field `label`"),
        ({"4": {"state": "shut"}}, "`each.4.state` must be 'open' or 'closed', not `\"shut\"`"),
        ({"4": {}}, "Nothing was given to change."),
        ({"four": {"state": "open"}}, "`each.four` must be a valid integer"),
        ({"0": {"state": "open"}}, "1 or more"),
        ({"4": {"milestone": "-1"}}, "must be a title"),
        ({"4": {"add_comment": " "}}, "must not be empty"),
        ({str(number): {"state": "open"} for number in range(1, 102)}, "at most 100"),
        ({"4": {"title": "One"}, "#4": {"title": "Other"}}, "must name each issue once"),
        ({"4": {"duplicate_of": True}}, "`each.4.duplicate_of`: must be a number"),
        ({"4": {"duplicate_of": "octo/other#3"}}, "`each.4.duplicate_of`: must be the number alone"),
        ({"octo/other#4": {"state": "closed"}}, "is of `octo/other`"),
    ],
    ids=[
        "name",
        "value",
        "nothing",
        "number",
        "zero",
        "milestone",
        "comment",
        "many",
        "twice",
        "boolean",
        "other",
        "elsewhere",
    ],
)
async def test_values_of_one_issue_are_checked_before_any_is_changed(
    each: dict[str, Any], said: str, oracle: Oracle
) -> None:
    world(oracle)
    async with served(oracle, "--write") as client:
        ask = {**O, "each": {"3": {"state": "closed"}, **each}, "dry_run": False}
        assert said in await refused(client, "edit_issue", **ask)
    assert not oracle.sent("PATCH") and not oracle.sent("POST")


@pytest.mark.anyio
async def test_values_of_one_issue_alone_are_shown_first_too(oracle: Oracle) -> None:
    world(oracle)
    async with served(oracle, "--write") as client:
        shown = await call(client, "edit_issue", **O, each={"4": {"title": "New", "body": "B"}})
        assert shown["data"]["rows"][0][2].startswith("title: Issue 4 -> New; body: ") and not oracle.sent("PATCH")
        done = await call(client, "edit_issue", **O, each={"4": {"title": "New"}}, dry_run=False)
    assert done["done"] == "Changed 1 of 1 issues." and oracle.sent("PATCH")[0].json == {"title": "New"}


@pytest.mark.anyio
async def test_none_takes_all_names_away(oracle: Oracle) -> None:
    issues = world(oracle)
    issues[4]["assignees"] = [{"login": "ada"}]
    async with served(oracle, "--write") as client:
        shown = await call(client, "edit_issue", **O, number=4, labels="none", assignees="None", dry_run=True)
        assert shown["data"]["rows"][0][2] == "labels: -old; assignees: -ada"
        await call(client, "edit_issue", **O, number=4, labels="none")
        assert oracle.sent("PATCH")[-1].json == {"labels": []}
        # A label may be called so, too.
        await call(client, "edit_issue", **O, number=3, labels="+none")
        assert oracle.sent("POST")[-1].json == {"labels": ["none"]}


@pytest.mark.anyio
async def test_a_milestone_is_shown_by_its_title(oracle: Oracle) -> None:
    issues = world(oracle)
    milestones = [{**sample("issues/get-milestone"), "number": n, "title": f"2.{n}"} for n in (1, 2)]
    oracle.answer("GET", "/repos/octo/app/milestones", milestones)
    issues[4]["milestone"] = milestones[0]
    async with served(oracle, "--write") as client:
        for name, said in (
            ("2.2", "milestone: 2.1 -> 2.2"), (2, "milestone: 2.1 -> 2.2"), ("#2", "milestone: 2.1 -> #2"),
            ("none", "milestone: 2.1 -> none"), (0, "milestone: 2.1 -> none"), ("2.1", "nothing"),
        ):  # fmt: skip
            shown = await call(client, "edit_issue", **O, number=4, milestone=name, dry_run=True)
            assert shown["data"]["rows"][0][2] == said


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("tool", "several"),
    [
        ("edit_issue", {"number": 3, "numbers": [4], "state": "closed"}),
        ("edit_issue", {"each": {"4": {"state": "closed"}}}),
        ("delete_branch", {"branch": "a", "branches": ["b"]}),
    ],
    ids=["numbers", "each", "branches"],
)
async def test_who_reads_elsewhere_is_asked_before_the_change_and_not_before_the_preview(
    tool: str, several: dict[str, Any], oracle: Oracle
) -> None:
    world(oracle)
    async with served(oracle, "--write", "--delete") as client:
        await call(client, "get_issue", repo="octo/other", number=3)
        shown = await call(client, tool, **O, **several)
        assert shown["done"].startswith("Nothing was changed")
        assert "cannot ask" in await refused(client, tool, **O, **several, dry_run=False)
    assert {seen.verb for seen in oracle.seen} == {"GET"}
    async with served(oracle, "--write", "--delete", "--confirm") as client:
        shown = await call(client, tool, **O, **several)
        assert shown["done"].startswith("Nothing was changed")
        assert "cannot ask" in await refused(client, tool, **O, **several, dry_run=False)
    assert {seen.verb for seen in oracle.seen} == {"GET"}
