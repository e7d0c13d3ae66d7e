"""A stand-in for a model on loopback, in the four protocols that hosts speak: it calls one tool, then it is done.

    with StandIn("list_directory") as model:
        ... a host with http://127.0.0.1:{model.port} as its provider
        model.offered, model.answer

Told is what the host sent: the names of the tools it offered, and the text it handed back for the call.
"""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Json = dict[str, Any]


class StandIn:
    """Serves until the block ends.

    Args:
        tool: the tool to call, by the name that the MCP server gives it; hosts put theirs before it.
        arguments: what to call it with.
    """

    def __init__(self, tool: str, arguments: Json | None = None) -> None:
        self.tool, self.arguments = tool, arguments or {}
        self.offered: set[str] = set()
        self.called: str | None = None
        self.answer: str | None = None
        self.requests: list[str] = []

    def __enter__(self) -> Self:
        handler = type("Handler", (_Handler,), {"model": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    def chosen(self, names: list[str]) -> str | None:
        """The offered tool to call now; None once there is an answer."""
        self.offered |= set(names)
        ours = [name for name in names if name.endswith(self.tool)]
        # A host may have a tool of that very name; ours has something before it.
        if not ours or self.answer is not None:
            return None
        self.called = max(ours, key=len)
        return self.called


class _Handler(BaseHTTPRequestHandler):
    model: StandIn
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self.model.requests.append(f"GET {self.path}")
        self._json({"object": "list", "data": [{"id": "stand-in", "object": "model"}], "models": []})

    def do_HEAD(self) -> None:
        self._send(b"", "text/plain")

    def do_POST(self) -> None:
        self.model.requests.append(f"POST {self.path}")
        asked: Json = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        path = self.path.partition("?")[0]
        if path.endswith("/messages"):
            self._reply(asked, _anthropic(self.model, asked), named=True)
        elif path.endswith("/responses"):
            self._reply(asked, _responses(self.model, asked), named=True)
        elif path.endswith("/chat/completions"):
            self._reply(asked, _chat(self.model, asked), last=b"data: [DONE]\n\n")
        elif "generateContent" in path.replace("streamGenerateContent", "generateContent"):
            said = list(_gemini(self.model, asked))
            if "stream" in path:
                self._stream(said)
            else:
                self._json(said[0])
        elif path.endswith(("count_tokens", ":countTokens")):
            self._json({"input_tokens": 10, "totalTokens": 10})
        else:
            self._json({})

    def _reply(self, asked: Json, said: Iterator[Json], *, named: bool = False, last: bytes = b"") -> None:
        if asked.get("stream"):
            self._stream(list(said), named=named, last=last)
        else:
            self._json(_whole(list(said)))

    def _json(self, data: Any) -> None:
        self._send(json.dumps(data).encode(), "application/json")

    def _stream(self, events: list[Json], *, named: bool = False, last: bytes = b"") -> None:
        lines = [(f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n" for event in events]
        self._send("".join(lines).encode() + last, "text/event-stream")

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _whole(events: list[Json]) -> Json:
    """What the events of a stream add up to, for those who asked for no stream; they are never asked to call."""
    first = events[0]
    if first.get("type") == "message_start":
        return {**first["message"], "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"}
    if first.get("type") == "response.created":
        return events[-1]["response"]
    message = {"role": "assistant", "content": "Done."}
    return {
        **first,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }


def _texts(content: Any) -> str:
    """All text in a result, however deep the host's protocol puts it."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, (_texts(item) for item in content)))
    if isinstance(content, dict):
        return "\n".join(filter(None, (_texts(content.get(key)) for key in ("text", "content", "output", "response"))))
    return ""


def _anthropic(model: StandIn, asked: Json) -> Iterator[Json]:
    for message in asked.get("messages", []):
        for block in message["content"] if isinstance(message["content"], list) else []:
            if block.get("type") == "tool_result":
                model.answer = _texts(block.get("content"))
    name = model.chosen([tool["name"] for tool in asked.get("tools", [])]) if asked.get("stream") else None
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": asked.get("model", "stand-in"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    yield {"type": "message_start", "message": message}
    if name:
        block: Json = {"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}
        delta: Json = {"type": "input_json_delta", "partial_json": json.dumps(model.arguments)}
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "Done."}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    stop = {"stop_reason": "tool_use" if name else "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


def _responses(model: StandIn, asked: Json) -> Iterator[Json]:
    for item in asked.get("input", []) if isinstance(asked.get("input"), list) else []:
        if item.get("type") == "function_call_output":
            model.answer = _texts(item.get("output"))
    offered: dict[str, Json] = {}
    for tool in asked.get("tools", []):
        if tool.get("type") == "namespace":
            for inner in tool.get("tools", []):
                offered[f"{tool['name']}.{inner['name']}"] = {"name": inner["name"], "namespace": tool["name"]}
        elif tool.get("name"):
            offered[tool["name"]] = {"name": tool["name"]}
    name = model.chosen(list(offered))
    response: Json = {"id": "resp_1", "object": "response", "status": "in_progress", "output": []}
    yield {"type": "response.created", "response": response}
    if name:
        called = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "arguments": json.dumps(model.arguments)}
        item = called | offered[name]
    else:
        content = [{"type": "output_text", "text": "Done.", "annotations": []}]
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
    yield {"type": "response.output_item.added", "output_index": 0, "item": item}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    yield {
        "type": "response.completed",
        "response": response | {"status": "completed", "output": [item], "usage": usage},
    }


def _chat(model: StandIn, asked: Json) -> Iterator[Json]:
    for message in asked.get("messages", []):
        if message.get("role") == "tool":
            model.answer = _texts(message.get("content"))
    name = model.chosen([tool["function"]["name"] for tool in asked.get("tools", []) if "function" in tool])
    if not asked.get("stream"):
        name = None
    common = {"id": "chat_1", "object": "chat.completion.chunk", "created": 1, "model": asked.get("model", "stand-in")}

    def chunk(delta: Json, reason: str | None = None) -> Json:
        return {**common, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    if name:
        function = {"name": name, "arguments": json.dumps(model.arguments)}
        call = {"index": 0, "id": "call_1", "type": "function", "function": function}
        yield chunk({"role": "assistant", "tool_calls": [call]})
    else:
        yield chunk({"role": "assistant", "content": "Done."})
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    yield chunk({}, "tool_calls" if name else "stop") | {"usage": usage}


def _gemini(model: StandIn, asked: Json) -> Iterator[Json]:
    for content in asked.get("contents", []):
        for part in content.get("parts", []):
            if "functionResponse" in part:
                model.answer = _texts(part["functionResponse"].get("response"))
    declared = [item for tool in asked.get("tools", []) for item in tool.get("functionDeclarations", [])]
    name = model.chosen([item["name"] for item in declared])
    part: Json = {"functionCall": {"name": name, "args": model.arguments}} if name else {"text": "Done."}
    if not declared:
        part = {"text": "{}"}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    yield {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "stand-in"}
