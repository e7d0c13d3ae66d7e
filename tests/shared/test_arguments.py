"""The argument check: what is refused, in which words, and what is let through."""

import re
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, WithJsonSchema, create_model

from mcp_batteries.errors import Invalid
from mcp_batteries.server.calling.arguments import check_arguments, publish_schema, slim_schema
from mcp_batteries.server.declaration.fields import EMPTY_COUNTS


class Edit(BaseModel):
    old_text: str = Field(description="Before.")
    new_text: str


MODEL: type[BaseModel] = create_model(
    "Arguments",
    path=(Annotated[str, Field(description="A path.", max_length=10)], ...),
    lines=(Annotated[int | None, Field(ge=1, le=9)], None),
    sort=(Literal["name", "size"], "name"),
    edits=(list[Edit], []),
    exact=(bool, False),
    day=(Annotated[str, Field(pattern=r"^\d+$")], "1"),
    tags=(list[str], []),
    values=(list[Any] | dict[str, Any], []),
    body=(Annotated[str | None, EMPTY_COUNTS], None),
)
SCHEMA = slim_schema(MODEL.model_json_schema())


def refusal(**arguments: Any) -> str:
    with pytest.raises(Invalid) as caught:
        check_arguments("read_text", MODEL, SCHEMA, arguments)
    return str(caught.value)


def test_the_schema_says_what_is_needed_and_no_more() -> None:
    assert SCHEMA == {
        "type": "object",
        "additionalProperties": False,
        "required": ["path"],
        "properties": {
            "path": {"type": "string", "description": "A path.", "maxLength": 10},
            "lines": {"type": "integer", "minimum": 1, "maximum": 9},
            "sort": {"type": "string", "enum": ["name", "size"], "default": "name"},
            "edits": {
                "type": "array",
                "items": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["old_text", "new_text"],
                    "properties": {
                        "old_text": {"type": "string", "description": "Before."},
                        "new_text": {"type": "string"},
                    },
                },
            },
            "exact": {"type": "boolean"},
            "day": {"type": "string", "pattern": r"^\d+$", "default": "1"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "values": {"anyOf": [{"type": "array", "items": {}}, {"type": "object"}]},
            "body": {"type": "string"},
        },
    }


def test_a_property_called_title_survives() -> None:
    model: type[BaseModel] = create_model("Arguments", title=(str, ...))
    assert slim_schema(model.model_json_schema())["properties"] == {"title": {"type": "string"}}


def test_a_page_longer_than_the_longest_is_the_longest() -> None:
    model = create_model("Arguments", limit=(Annotated[int, Field(ge=1, le=50)], 10), cursor=(str, ""))
    schema = slim_schema(model.model_json_schema())
    assert check_arguments("list", model, schema, {"limit": 100_000})["limit"] == 50
    model = create_model("Arguments", limit=(Annotated[int, Field(ge=1, le=50)], 10))
    with pytest.raises(Invalid, match="from 1 to 50"):
        check_arguments("list", model, slim_schema(model.model_json_schema()), {"limit": 100_000})


def test_clients_see_no_bound_that_nobody_comes_near_and_the_check_keeps_it() -> None:
    shown = publish_schema(SCHEMA)["properties"]["lines"]
    assert "minimum" not in shown and {"minimum": 1, **shown} == SCHEMA["properties"]["lines"]
    assert publish_schema(SCHEMA)["properties"]["path"] == {"type": "string", "description": "A path."}
    assert "at most 10" in refusal(path="x" * 11)
    model = create_model("Arguments", minimum=(Annotated[int, Field(ge=2, le=999)], ...), maxLength=(int, 5))
    assert publish_schema(found := slim_schema(model.model_json_schema())) == found
    far = slim_schema(create_model("Arguments", limit=(Annotated[int, Field(le=1000)], ...)).model_json_schema())
    assert publish_schema(far)["properties"] == {"limit": {"type": "integer"}}


def test_a_recursive_model_becomes_a_plain_object() -> None:
    class Node(BaseModel):
        children: list["Node"]

    schema = slim_schema(create_model("Arguments", node=(Node, ...)).model_json_schema())
    assert schema["properties"]["node"]["properties"]["children"]["items"] == {"type": "object"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"path": "a", "pth": 1}, "there is no argument `pth` (did you mean `path`?)"),
        ({}, "`path` is required (a string, at most 10 characters)"),
        ({"path": "a", "lines": True}, "`lines` must be an integer from 1 to 9, not `true`"),
        ({"path": "a", "lines": -1}, "`lines` must be an integer from 1 to 9, not `-1`"),
        ({"path": "a", "lines": 1.5}, "`lines` must be an integer from 1 to 9, not `1.5`"),
        ({"path": "a", "lines": "many"}, '`lines` must be an integer from 1 to 9, not `"many"`'),
        ({"path": 5.5}, "`path` must be a string, at most 10 characters, not `5.5`"),
        ({"path": ["a", "b"]}, "`path` must be a string, at most 10 characters, not an array"),
        ({"path": "a", "PATH": "b"}, "there is no argument `PATH`"),
        ({"path": "a", "day": "soon"}, '`day` must be a string matching `^\\d+$`, not `"soon"`'),
        ({"path": "a", "edits": "foo"}, '`edits` must be an array of objects, not `"foo"`'),
        ({"path": "x" * 11}, "`path` must be a string, at most 10 characters"),
        ({"path": "a", "sort": "age"}, '`sort` must be one of `name`, `size`, not `"age"`'),
        ({"path": "a", "edits": [{"old_text": "x"}]}, "`edits[0].new_text` is required (a string)"),
        ({"path": None}, "`path` must be a string, at most 10 characters, not null"),
    ],
)
def test_a_mistake_is_named_in_our_words(arguments: dict[str, Any], words: str) -> None:
    said = refusal(**arguments)
    assert words in said
    assert said.startswith("`read_text` was not run: ")
    assert said.endswith(
        "Its arguments are: `path`, `lines`, `sort`, `edits`, `exact`, `day`, `tags`, `values`, `body`."
    )
    assert "\n" not in said and "pydantic" not in said


@pytest.mark.reported("erikdarlingdata/PerformanceMonitor#3870")
@pytest.mark.parametrize("name", ["action", "tool", "session"])
def test_a_name_that_only_hosts_add_beside_others_is_refused_alone(name: str) -> None:
    assert f"there is no argument `{name}`" in refusal(path="a", **{name: "x"}, task_progress="- [x] read")


def test_every_mistake_is_named_at_once() -> None:
    said = refusal(lines=-1, sort="age")
    assert "`path` is required" in said and "`lines` must be" in said and "`sort` must be" in said


def test_what_clients_really_send_is_taken() -> None:
    taken = check_arguments(
        "read_text",
        MODEL,
        SCHEMA,
        {"path": "a", "lines": "4", "edits": '[{"old_text": "x", "new_text": "y"}]', "exact": True},
    )
    assert taken == {
        "path": "a",
        "lines": 4,
        "sort": "name",
        "edits": [Edit(old_text="x", new_text="y")],
        "exact": True,
        "day": "1",
        "tags": [],
        "values": [],
        "body": None,
    }


@pytest.mark.parametrize(
    ("sent", "name", "meant"),
    [
        ({"Path": "a"}, "path", "a"),
        ({"path": ["a"]}, "path", "a"),
        ({"path": 5}, "path", "5"),
        ({"path": "a", "sort": "Size"}, "sort", "size"),
        ({"path": "a", "sort": None}, "sort", "name"),
        ({"path": "a", "exact": None}, "exact", False),
        ({"path": "a", "tags": "one"}, "tags", ["one"]),
        ({"path": "a", "tags": '["one", "two"]'}, "tags", ["one", "two"]),
        ({"path": "a", "edits": {"old_text": "x", "new_text": "y"}}, "edits", [Edit(old_text="x", new_text="y")]),
        ({"path": "a", "edits": [{"oldText": "x", "newText": "y"}]}, "edits", [Edit(old_text="x", new_text="y")]),
        ({"path": "a", "lines": 0}, "lines", None),
        ({"path": "a", "lines": ""}, "lines", None),
        ({"path": "a", "sort": ""}, "sort", "name"),
        ({"path": "a", "sort": "null"}, "sort", "name"),
        ({"path": "a", "day": ""}, "day", "1"),
        ({"path": "a", "day": "None"}, "day", "1"),
        ({"path": "a", "exact": ""}, "exact", False),
        ({"path": "a", "edits": {}}, "edits", []),
        ({"path": "a", "body": ""}, "body", ""),
        ({"path": "a", "body": "null"}, "body", "null"),
        ({"path": "a", "values": "[1, null]"}, "values", [1, None]),
        ({"path": "a", "values": 1}, "values", [1]),
        ({"path": "a", "values": "x"}, "values", ["x"]),
        ({"path": "a", "values": {"A": [1], "b": None}}, "values", {"A": [1], "b": None}),
    ],
)
def test_what_can_mean_one_thing_only_is_taken_as_that(sent: dict[str, Any], name: str, meant: Any) -> None:
    assert check_arguments("read_text", MODEL, SCHEMA, sent)[name] == meant


def test_an_argument_of_a_tool_is_kept_though_hosts_add_one_of_that_name() -> None:
    model = create_model("Arguments", session_id=(str, ""), action=(str, ""))
    schema = slim_schema(model.model_json_schema())
    sent = {"sessionId": "s", "action": "a", "toolCallId": "c", "tool": "t"}
    assert check_arguments("read_session", model, schema, sent) == {"session_id": "s", "action": "a"}


@pytest.mark.parametrize(("given", "meant"), [("Name", "name"), (" SIZE ", "size")])
def test_a_choice_is_taken_whatever_its_case(given: str, meant: str) -> None:
    assert check_arguments("read_text", MODEL, SCHEMA, {"path": "a", "sort": given})["sort"] == meant


def test_text_that_looks_like_json_stays_text() -> None:
    assert check_arguments("t", MODEL, SCHEMA, {"path": "[1, 2]"})["path"] == "[1, 2]"


def test_surrogates_in_a_mistake_are_harmless() -> None:
    assert "�" in refusal(path="a", **{"\ud83d": 1})


def test_a_wrong_name_beside_a_missing_argument_is_taken_for_that_one() -> None:
    said = refusal(file="a.txt")
    assert "there is no argument `file` (did you mean `path`?). Its" in said
    said = refusal(place="a.txt", other="b")
    assert "no argument `place`; there is no argument `other`; `path` is required (a string" in said
    # A name that is little alike is no better than none.
    assert "(did you mean" not in refusal(path="a", length=3)


class Tagged(Edit):
    tag: Annotated[str, Field(max_length=3)] = ""
    lines: Annotated[list[int], Field(max_length=1)] = []


def test_a_mistake_in_an_object_without_shown_members_is_told_with_its_place() -> None:
    model = create_model(
        "Hidden",
        edits=(Annotated[dict[int, Tagged], WithJsonSchema({"type": "object"})], {}),
    )
    schema = slim_schema(model.model_json_schema())
    edit = {"old_text": "a", "new_text": "b"}
    for edits, said in (
        ({"1": {**edit, "new_text": 5}}, "`edits.1.new_text` must be a valid string, not `5`"),
        ({"1": {**edit, "other": 5}, "x": edit}, "`edits.x` must be a valid integer"),
        ({"1": 7}, "`edits.1` must be "),
        ({"1": {"old_text": "a"}}, "`edits.1.new_text` is required"),
        ({"1": {**edit, "tag": "long"}}, "`edits.1.tag` must have at most 3 characters, not"),
        ({"1": {**edit, "lines": [1, 2]}}, "`edits.1.lines` must have at most 1 item, not an array"),
        (7, "`edits` must be an object, not `7`"),
    ):
        with pytest.raises(Invalid, match=re.escape(said)):
            check_arguments("edit", model, schema, {"edits": edits})
