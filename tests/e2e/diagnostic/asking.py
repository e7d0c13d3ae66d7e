"""Tools that ask the client for something, in the ways of both eras."""

import json
from typing import Any, Literal

from mcp.server.mcpserver import Context
from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequest,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
)
from pydantic import BaseModel, Field

from mcp_batteries.errors import Unavailable
from mcp_batteries.server.declaration.decorators import tool


class Reply(BaseModel):
    username: str = Field(description="User's response")
    email: str = Field(description="User's email address")


class Defaults(BaseModel):
    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


def titled(*names: str) -> list[dict[str, str]]:
    return [{"const": name, "title": name.title()} for name in names]


class Choices(BaseModel):
    untitledSingle: str = Field(json_schema_extra={"enum": ["option1", "option2", "option3"]})
    titledSingle: str = Field(json_schema_extra={"oneOf": titled("value1", "value2", "value3")})
    legacyEnum: str = Field(
        json_schema_extra={"enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]}
    )
    untitledMulti: list[str] = Field(
        json_schema_extra={"items": {"type": "string", "enum": ["option1", "option2", "option3"]}}
    )
    titledMulti: list[str] = Field(json_schema_extra={"items": {"anyOf": titled("value1", "value2", "value3")}})


def question(words: str, name: str, kind: str = "string") -> ElicitRequest:
    schema: dict[str, Any] = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    return ElicitRequest(params=ElicitRequestFormParams(message=words, requested_schema=schema))


def sample(words: str) -> CreateMessageRequest:
    said = SamplingMessage(role="user", content=TextContent(type="text", text=words))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[said], max_tokens=50))


async def elicited(ctx: Context, words: str, model: type[BaseModel]) -> str:
    try:
        answer = await ctx.elicit(words, model)
    except Exception as problem:
        raise Unavailable(f"The client cannot ask: {problem}.") from problem
    content = answer.data.model_dump_json() if answer.action == "accept" else "{}"
    return f"action={answer.action}, content={content}"


class Asking:
    @tool("Sampling")
    async def test_sampling(self, prompt: str, ctx: Context) -> str:
        """Have the client's model say something."""
        said = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
        try:
            answer = await ctx.session.create_message([said], max_tokens=100)
        except Exception as problem:
            raise Unavailable(f"The client cannot sample: {problem}.") from problem
        return f"LLM response: {answer.content.text if answer.content.type == 'text' else ''}"

    @tool("Elicitation")
    async def test_elicitation(self, message: str, ctx: Context) -> str:
        """Ask the user."""
        return f"User response: {await elicited(ctx, message, Reply)}"

    @tool("Defaults")
    async def test_elicitation_sep1034_defaults(self, ctx: Context) -> str:
        """Ask with defaults."""
        return f"Elicitation completed: {await elicited(ctx, 'Who?', Defaults)}"

    @tool("Choices")
    async def test_elicitation_sep1330_enums(self, ctx: Context) -> str:
        """Ask with choices."""
        return f"Elicitation completed: {await elicited(ctx, 'Which?', Choices)}"

    @tool("Elicitation after progress")
    async def test_streaming_elicitation(self, ctx: Context) -> InputRequiredResult:
        """Tell how far it is, then ask."""
        await ctx.report_progress(1, 2, "half")
        return InputRequiredResult(input_requests={"user_name": question("What is your name?", "name")})

    @tool("Input: a question")
    async def test_input_required_result_elicitation(self, ctx: Context) -> str | InputRequiredResult:
        """Ask for a name."""
        answer = (ctx.input_responses or {}).get("user_name")
        if isinstance(answer, ElicitResult) and answer.content and "name" in answer.content:
            return f"Hello, {answer.content['name']}!"
        return InputRequiredResult(input_requests={"user_name": question("What is your name?", "name")})

    @tool("Input: a sample")
    async def test_input_required_result_sampling(self, ctx: Context) -> str | InputRequiredResult:
        """Ask the client's model."""
        if "capital_question" in (ctx.input_responses or {}):
            return "The model answered."
        return InputRequiredResult(input_requests={"capital_question": sample("What is the capital of France?")})

    @tool("Input: the roots")
    async def test_input_required_result_list_roots(self, ctx: Context) -> str | InputRequiredResult:
        """Ask for the roots."""
        if "client_roots" in (ctx.input_responses or {}):
            return "The roots are known."
        return InputRequiredResult(input_requests={"client_roots": ListRootsRequest()})

    @tool("Input: a state")
    async def test_input_required_result_request_state(self, ctx: Context) -> str | InputRequiredResult:
        """Give the client something to keep."""
        if "confirm" in (ctx.input_responses or {}) and ctx.request_state == "kept":
            return "state-ok: confirmed"
        ask = question("Please confirm", "ok", "boolean")
        return InputRequiredResult(input_requests={"confirm": ask}, request_state="kept")

    @tool("Input: three at once")
    async def test_input_required_result_multiple_inputs(self, ctx: Context) -> str | InputRequiredResult:
        """Ask for three things."""
        if (ctx.input_responses or {}).keys() >= {"user_name", "greeting", "client_roots"}:
            return "All of them came."
        requests: dict[str, InputRequest] = {
            "user_name": question("What is your name?", "name"),
            "greeting": sample("Generate a greeting"),
            "client_roots": ListRootsRequest(),
        }
        return InputRequiredResult(input_requests=requests, request_state="three")

    @tool("Input: two rounds")
    async def test_input_required_result_multi_round(self, ctx: Context) -> str | InputRequiredResult:
        """Ask twice, one after the other."""
        known: dict[str, Any] = json.loads(ctx.request_state or "{}")
        for step, (words, name) in enumerate(
            (("Step 1: What is your name?", "name"), ("Step 2: What is your favorite color?", "color")), 1
        ):
            answer = (ctx.input_responses or {}).get(f"step{step}")
            if isinstance(answer, ElicitResult) and answer.content:
                known[name] = answer.content.get(name)
            if name not in known:
                ask = {f"step{step}": question(words, name)}
                return InputRequiredResult(input_requests=ask, request_state=json.dumps({**known, "round": step}))
        return f"{known['name']} likes {known['color']}."

    @tool("Input: a state that was changed")
    async def test_input_required_result_tampered_state(self, ctx: Context) -> str | InputRequiredResult:
        """Give the client something it must not change."""
        if ctx.request_state is not None:
            return f"state-ok: {ctx.request_state}"
        ask = question("Please confirm", "ok", "boolean")
        return InputRequiredResult(input_requests={"confirm": ask}, request_state="kept")

    @tool("Input: what the client can")
    async def test_input_required_result_capabilities(self, ctx: Context) -> InputRequiredResult:
        """Ask for what the client can give."""
        can, requests = ctx.client_capabilities, dict[str, InputRequest]()
        if can is not None and can.sampling is not None:
            requests["sample"] = sample("Say hello")
        if can is not None and can.elicitation is not None:
            requests["ask"] = question("What is your name?", "name")
        return InputRequiredResult(input_requests=requests, request_state="asked")
