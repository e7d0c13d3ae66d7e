"""The messages of `fuzz.py`: what a client could send and answer, from what the server lists and says, then spoilt."""

from __future__ import annotations

import copy
import json
import random
import re
from collections import defaultdict, deque
from typing import Any, cast

from mcp_batteries.testing.case import Case
from mcp_batteries.testing.wire import Message

__all__ = ["ABLE", "NASTY", "Maker", "is_question"]

NASTY: list[Any] = [
    *(None, True, False, 0, -1, 1.5, 2**31, 2**53 + 1, -(2**63), 2**200, 1e308, -0.0),
    *("", " ", "\0", "\n", "a" * 5000, "\ud800", "\u202e", "ﬃ", "%00", "../" * 9, "/etc/passwd", "file:///etc/passwd"),
    *("{}", "[]", "null", "NaN", "1e999", "';--", "$(id)", "${x}", "__proto__", "constructor", "*", "**/**", "(" * 500),
    *([], [[]], {}, {"": ""}, {"$ref": "#"}, {"type": "object"}, [None] * 50),
]
ABLE: Message = {"elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": True}, "sampling": {}}
"""What the client says of itself, so that servers ask it things."""
DEEP = {f"{depth} deep": b"[" * depth + b"1" + b"]" * depth for depth in (3, 60, 900, 20_000)}
"""Lists in lists, by what stands for them until a message is bytes."""

_LEARNED = 60
"""Values kept for each name."""
_LONGEST = 2_000
_REMEMBERED = 200
"""Requests that may still be answered with a question."""
_CURSORS = ("cursor", "nextCursor", "next_cursor")
_VARIABLE = re.compile(r"\{[+/?&#]?([A-Za-z_]+)[^}]*\}")


class Maker:
    """Messages for one server, from what it lists and answers, and from what its case knows of it."""

    def __init__(self, dice: random.Random, case: Case, lists: dict[str, list[Any]]) -> None:
        self._dice, self._lists, self._foreign = dice, lists, case.foreign
        self._known: defaultdict[str, deque[Any]] = defaultdict(lambda: deque(maxlen=_LEARNED))
        self._words: list[Any] = [case.uri]
        self._number = 0
        self._sent: dict[Any, Message] = {}
        self._again = deque[tuple[str, Message]](maxlen=20)
        """Calls whose result was a question (2026-07-28), with an answer."""
        for _, arguments in (case.read, *case.refused):
            self.learn(arguments)
        self._words += [word for values in self._known.values() for word in values]

    def hear(self, said: Message) -> None:
        """Use a result, and what it asks for."""
        self.learn(result := said.get("result"))
        asked = self._sent.get(said.get("id"))
        if asked is not None and isinstance(result, dict) and "inputRequests" in result:
            wanted = cast("Message", result)
            given = {key: self._answer(question) for key, question in wanted["inputRequests"].items()}
            params = {**asked["params"], "inputResponses": given, "requestState": wanted.get("requestState")}
            self._again.append((asked["method"], params))

    def answers(self, question: Message) -> list[bytes]:
        """Answers to a request of the server's, of which the last is always one."""
        made: Message = {"jsonrpc": "2.0", "id": question["id"], "result": self._answer(question)}
        if self._dice.random() < 0.6:
            return [json.dumps(made).encode()]
        if self._dice.random() < 0.2:
            del made["result"]
            made["error"] = {"code": self._dice.choice((-32601, -1, 0, *NASTY[:8])), "message": self._word()}
        for _ in range(self._dice.choice((1, 1, 2, 5))):
            made = self._spoilt(made)
        no: Message = {"jsonrpc": "2.0", "id": question["id"], "error": {"code": -32601, "message": "no"}}
        return [self.text(made), json.dumps(no).encode()]

    def learn(self, answer: Any, name: str = "") -> None:
        """Use what stands in `answer` where the same name is asked for: files, ids, pages to come."""
        if isinstance(answer, dict):
            for key, value in cast("dict[str, Any]", answer).items():
                self.learn(value, key)
        elif isinstance(answer, list):
            for value in cast("list[Any]", answer)[:20]:
                self.learn(value, name)
        elif name == "text" and str(answer).startswith("{"):
            try:
                self.learn(json.loads(str(answer)))
            except ValueError:
                return
        # What an answer may never have is not what it was asked with.
        elif answer is not None and not any(text in str(answer) for text in self._foreign):
            known = self._known["cursor" if name in _CURSORS else name]
            if len(str(answer)) <= _LONGEST and answer not in known:
                known.append(answer)

    def message(self, modern: bool) -> tuple[Message, bool]:
        """One message, and whether it is as it should be, so that it must be answered."""
        dice = self._dice
        self._number += 1
        method, params = self._request(modern)
        if dice.random() < 0.2:
            params = {**params, "_meta": {"progressToken": dice.choice((self._number, "token", *NASTY[:6]))}}
        made: Message = {"jsonrpc": "2.0", "id": f"fuzz-{self._number}", "method": method, "params": params}
        if method.startswith("notifications/"):
            del made["id"]
        self._sent[made.get("id")] = made
        if len(self._sent) > _REMEMBERED:
            del self._sent[next(iter(self._sent))]
        if dice.random() < 0.4:
            whole = "id" in made and method != "subscriptions/listen"
            if whole and dice.random() < 0.1:  # An id of another kind, or of a call under way.
                made["id"] = dice.choice((self._number, f"fuzz-{self._number - 1}", -1, 0, 2**40, 1.5, None, ""))
                return made, False
            return made, whole
        if dice.random() < 0.02:  # An answer to what nobody asked.
            return {"jsonrpc": "2.0", "id": dice.choice((0, 1, f"fuzz-{self._number}")), "result": {}}, False
        for _ in range(dice.choice((1, 1, 2, 5))):
            made = self._spoilt(made)
        return made, False

    def text(self, message: Any) -> bytes:
        """`message` as bytes, of which some may be others."""
        text = json.dumps(message).encode("ascii")
        for name, deep in DEEP.items():
            text = text.replace(f'"{name}"'.encode(), deep)
        data = bytearray(text)
        for _ in range(self._dice.choice((0, 0, 0, 1, 3))):
            at = self._dice.randrange(len(data) + 1)
            match self._dice.randrange(4):
                case 0:
                    data[at:at] = self._dice.choice(
                        (b"\0", b"\xff", b"\xed\xa0\x80", b"{", b"]", b'"', b"\\u", b"9" * 50)
                    )
                case 1:
                    del data[at : at + self._dice.randrange(1, 40)]
                case 2:
                    data[at : at + 1] = bytes([self._dice.randrange(256)])
                case _:
                    data[at:at] = data[: self._dice.randrange(len(data) + 1)]
        return bytes(data).replace(b"\n", b" ").replace(b"\r", b" ")

    def _request(self, modern: bool) -> tuple[str, Message]:
        dice, uri = self._dice, self._uri()
        page: Message = {"cursor": self._named("cursor")} if dice.random() < 0.3 else {}
        common: list[tuple[str, Message]] = [
            *[("tools/call", self._call()) for _ in range(8)],
            *[(f"{what}/list", page) for what in ("tools", "resources", "resources/templates", "prompts")],
            ("resources/read", {"uri": uri}), ("resources/read", {"uri": uri}), ("prompts/get", self._prompt()),
            ("completion/complete", self._completion()),
            ("notifications/cancelled", {"requestId": f"fuzz-{dice.randrange(1, self._number + 1)}"}),
            ("notifications/progress", {"progressToken": 1, "progress": 1}),
        ]  # fmt: skip
        modern_only: list[tuple[str, Message]] = [
            ("server/discover", {}),
            (
                "subscriptions/listen",
                {
                    "notifications": {
                        "resourceSubscriptions": [uri, self._uri()][: dice.randrange(3)],
                        "toolsListChanged": True,
                        "resourcesListChanged": True,
                    }
                },
            ),
        ]
        legacy_only: list[tuple[str, Message]] = [
            ("ping", {}), ("resources/subscribe", {"uri": uri}), ("resources/unsubscribe", {"uri": uri}),
            ("notifications/roots/list_changed", {}), ("logging/setLevel", {"level": dice.choice(("debug", "x"))}),
        ]  # fmt: skip
        if self._again and dice.random() < 0.5:
            return self._again.popleft()
        return dice.choice(common + (modern_only if modern else legacy_only))

    def _answer(self, question: Message) -> Message:
        """What a client says to `question`: mostly yes."""
        params: Message = question.get("params") or {}
        match question["method"]:
            case "elicitation/create":
                if self._dice.random() < 0.3:
                    return {"action": self._dice.choice(("decline", "cancel", "maybe"))}
                schema = params.get("requestedSchema")
                return {"action": "accept"} | ({"content": self._value("content", schema)} if schema else {})
            case "roots/list":
                folder = str(self._words[0]).rpartition("/")[0]
                return {"roots": [{"uri": self._dice.choice((folder, folder, self._uri()))}]}
            case "sampling/createMessage":
                text = {"type": "text", "text": self._word()}
                return {"role": "assistant", "content": text, "model": "chance", "stopReason": "endTurn"}
            case _:
                return {}

    def _call(self) -> Message:
        tool = self._dice.choice(self._lists["tools"])
        properties: dict[str, Any] = tool["inputSchema"].get("properties", {})
        required: list[str] = tool["inputSchema"].get("required", [])
        named = [name for name in properties if name in required or self._dice.random() < 0.3]
        call: Message = {
            "name": tool["name"],
            "arguments": {name: self._value(name, properties[name]) for name in named},
        }
        if self._dice.random() < 0.03:  # As if it had been asked something.
            call |= {"requestState": self._named("requestState"), "inputResponses": {"x": {"action": "accept"}}}
        return call

    def _value(self, name: str, schema: Any) -> Any:
        dice = self._dice
        if not isinstance(schema, dict) or dice.random() < 0.08:
            return dice.choice(NASTY)
        known = cast("dict[str, Any]", schema)
        if "enum" in known:
            return dice.choice(known["enum"])
        if "const" in known:
            return known["const"]
        for several in ("anyOf", "oneOf"):
            if several in known:
                return self._value(name, dice.choice(known[several]))
        if known.get("default") is not None and dice.random() < 0.3:
            return known["default"]
        match known.get("type"):
            case "integer" | "number":
                least, most = known.get("minimum", -1), known.get("maximum", 1000)
                learned = [value for value in self._known.get(name, ()) if isinstance(value, int)]
                return dice.choice((least, least + 1, 2, 10, most, most + 1, *learned))
            case "boolean":
                return dice.random() < 0.5
            case "array":
                times = dice.choice((0, 1, 1, 2, 5))
                return [self._value(name.removesuffix("s"), known.get("items", {})) for _ in range(times)]
            case "object":
                inner: dict[str, Any] = known.get("properties", {})
                return {each: self._value(each, inner[each]) for each in inner}
            case _:
                return self._named(name)

    def _named(self, name: str) -> Any:
        """What was called `name` before, or any word."""
        if (known := self._known.get(name)) and self._dice.random() < 0.7:
            return self._dice.choice(known)
        return self._word()

    def _word(self) -> Any:
        word = self._dice.choice(self._words)
        if isinstance(word, str) and self._dice.random() < 0.3:
            at = self._dice.randrange(len(word) + 1)
            return word[:at] + self._dice.choice([item for item in NASTY if isinstance(item, str)]) + word[at:]
        return word

    def _uri(self) -> Any:
        templates = [item["uriTemplate"] for item in self._lists["resourceTemplates"]]
        if templates and self._dice.random() < 0.4:
            # Each variable by what was called so, as a client fills it in.
            return _VARIABLE.sub(lambda found: str(self._named(found[1])), self._dice.choice(templates))
        return self._dice.choice([item["uri"] for item in self._lists["resources"]] + [self._named("uri")] * 3)

    def _prompt(self) -> Message:
        if not self._lists["prompts"]:
            return {"name": "nothing"}
        prompt = self._dice.choice(self._lists["prompts"])
        asked: list[Message] = prompt.get("arguments", [])
        given = [item["name"] for item in asked if item.get("required") or self._dice.random() < 0.5]
        return {"name": prompt["name"], "arguments": {name: self._named(name) for name in given}}

    def _completion(self) -> Message:
        templates = self._lists["resourceTemplates"]
        prompt = self._prompt()
        reference: Message = {"type": "ref/prompt", "name": prompt["name"]}
        names = list(prompt.get("arguments", ()))
        if templates and self._dice.random() < 0.5:
            reference = {"type": "ref/resource", "uri": self._dice.choice(templates)["uriTemplate"]}
            names = _VARIABLE.findall(reference["uri"])
        name = self._dice.choice([*names, "x"])
        value = self._named(name)
        begun = value[: self._dice.randrange(len(value) + 1)] if isinstance(value, str) else value
        asked: Message = {"ref": reference, "argument": {"name": name, "value": begun}}
        if names and self._dice.random() < 0.3:
            asked["context"] = {"arguments": {each: self._named(each) for each in names}}
        return asked

    def _spoilt(self, message: Message) -> Message:
        """A copy with something else in one place, wherever that is."""
        made = copy.deepcopy(message)
        if not made:
            return made
        node: Any = made
        key: Any = self._dice.choice(list(made))
        while isinstance(inner := node[key], dict | list) and inner and self._dice.random() < 0.8:
            node = cast("Any", inner)
            key = self._dice.choice(_keys(node))
        match self._dice.randrange(4):
            case 0:
                del node[key]
            case 1 if isinstance(node, dict):
                node[str(self._dice.choice(NASTY))[:100]] = self._dice.choice(NASTY)
            case 2:
                node[key] = self._dice.choice(list(DEEP))
            case _:
                node[key] = self._dice.choice(NASTY)
        return made


def is_question(said: Any) -> bool:
    """Whether a server's message wants an answer."""
    return isinstance(said, dict) and "method" in said and "id" in said


def _keys(node: Any) -> list[Any]:
    return list(cast("dict[str, Any]", node)) if isinstance(node, dict) else list(range(len(node)))
