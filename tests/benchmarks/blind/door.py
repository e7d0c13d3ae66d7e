"""The only way of an agent to its task: it holds the servers, notes each call and judges each answer.

An agent of today runs commands, each a new process. So the door is a process of its own with a socket in the session's
folder, and each command asks it one thing.
"""

import json
import socket
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from beside_shell import Place, size
from driver import MODERN, Failed, Server

from blind.task import Task, shell_hint_of, tasks_of

# As in the shells of agents, which cut the middle of a longer answer.
_MOST_CHARACTERS = 30_000
_HOW = {
    "tools": "`tools` shows the tools; `call TOOL ARGUMENTS` calls one; ARGUMENTS is a JSON object.",
    "shell": "`sh COMMAND` runs a command line of bash in the task's folder.",
}


@dataclass(frozen=True)
class Call:
    """One call, as the log has it.

    Attributes:
        sent: bytes of the tool's name and its arguments, or of the command line.
        received: bytes of the answer's text.
    """

    task: str
    tool: str
    arguments: Mapping[str, Any]
    sent: int
    received: int
    is_error: bool


@dataclass(frozen=True)
class Verdict:
    """How a task ended.

    Attributes:
        faults: what is wrong; empty if the task is done.
    """

    task: str
    answer: str
    faults: list[str]


@dataclass
class Door:
    """One agent's session: a group of tasks by one side.

    Attributes:
        side: "tools" or "shell".
        log: a file with one JSON object a line, of calls and verdicts.
        options: that every server gets, such as `--tools=call_tools`.
        is_mounted: whether all servers of a task are one process, where a script reaches all of them.
    """

    group: str
    side: str
    folder: Path
    log: Path
    options: Sequence[str] = ()
    is_mounted: bool = False
    _task: Task | None = None
    _place: Place | None = None
    _done: list[str] = field(default_factory=list[str])
    _open: dict[str, Server] = field(default_factory=dict[str, Server])
    _ends: ExitStack = field(default_factory=ExitStack)

    def serve(self, address: Path) -> None:
        """Answer commands until one says `end`."""
        with socket.socket(socket.AF_UNIX) as listener, self._ends:
            listener.bind(str(address))
            listener.listen()
            command = ""
            while command != "end":
                client, _ = listener.accept()
                with client, client.makefile("rw") as stream:
                    command, *words = json.loads(stream.readline()) or [""]
                    stream.write(json.dumps(self._answer(command, words)))

    def _answer(self, command: str, words: list[str]) -> str:
        """Return the answer to a command; one that can't be understood gets a list of those that can."""
        match command, words:
            case "next", []:
                return self._begin_next()
            case "tools", [] if self.side == "tools" and self._place:
                return self._describe_tools(self._place)
            case "call", [tool, arguments] if self.side == "tools" and self._task:
                return self._call(self._task, tool, arguments)
            case "sh", [line] if self.side == "shell" and self._task:
                return self._run(self._task, line)
            case "answer", [answer] if self._task:
                return self._end_task(self._task, answer)
            case "end", []:
                return "Ended."
            case _:
                return f"There is no such command here. `next` begins a task, `answer TEXT` ends it. {_HOW[self.side]}"

    def _begin_next(self) -> str:
        if self._task:
            return f"`answer` ends the task {self._task.name} first."
        waiting = [task for task in tasks_of(self.group) if task.name not in self._done]
        if not waiting:
            return "No task is left. `end` ends the session."
        self._task = waiting[0]
        folder = Path(tempfile.mkdtemp(prefix="task", dir=self.folder))
        self._place = self._task.make(folder)
        if self.is_mounted:
            self._place = _mount_servers(self._place, self.options)
        about = [f"The task's folder is {self._place.folder}.", _HOW[self.side]]
        if self.side == "shell":
            about.append(shell_hint_of(self.group))
            if "PGHOST" in self._place.variables:
                about.append("The database is one of PostgreSQL; `psql` reaches it without options.")
        about.append(_describe_waiting(len(waiting) - 1))
        return f"{self._task.text}\n\n{' '.join(filter(None, about))}"

    def _server(self, name: str, place: Place) -> Server:
        if name not in self._open:
            command = list(place.servers[name])
            if not self.is_mounted:
                command += self.options
            server = Server(command, revision=MODERN, seconds=120, variables=place.variables)
            self._open[name] = self._ends.enter_context(server)
            server.open()
        return self._open[name]

    def _describe_tools(self, place: Place) -> str:
        parts: list[str] = []
        for name in place.servers:
            server = self._server(name, place)
            about = server.ask("server/discover")[0].get("instructions", "")
            tools = server.ask("tools/list")[0]["tools"]
            shown = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in tools]
            prefix = f"Call its tools as {name}:TOOL.\n" if len(place.servers) > 1 else ""
            lines = [json.dumps(tool, ensure_ascii=False) for tool in shown]
            parts.append("\n".join([f"# {name}\n{prefix}{about}", *lines]))
        return "\n\n".join(parts)

    def _call(self, task: Task, named: str, text: str) -> str:
        assert self._place
        name, _, tool = named.rpartition(":")
        name = name or next(iter(self._place.servers))
        if name not in self._place.servers:
            return f"There is no server {name}."
        try:
            arguments = json.loads(text)
        except ValueError as error:
            return f"ARGUMENTS are no JSON: {error}"
        is_error = False
        try:
            result, _ = self._server(name, self._place).ask("tools/call", {"name": tool, "arguments": arguments})
            answer = "".join(item.get("text", f"[{item['type']}]") for item in result["content"])
        except Failed as failure:
            answer, is_error = str(failure), True
        self._note(Call(task.name, tool, arguments, size(tool) + size(arguments), size(answer), is_error))
        return answer

    def _run(self, task: Task, line: str) -> str:
        assert self._place
        answer = self._place.shell(line)
        if len(answer) > _MOST_CHARACTERS:
            half = _MOST_CHARACTERS // 2
            answer = f"{answer[:half]}\n[{len(answer) - 2 * half} characters left out]\n{answer[-half:]}"
        self._note(Call(task.name, "sh", {"command": line}, size({"command": line}), size(answer), is_error=False))
        return answer

    def _end_task(self, task: Task, answer: str) -> str:
        assert self._place
        self._ends.close()
        self._open.clear()
        self._note(Verdict(task.name, answer, list(task.verify(self._place, answer))))
        self._done.append(task.name)
        self._task = self._place = None
        if len(self._done) == len(tasks_of(self.group)):
            return "Noted. It was the last task: `end` ends the session."
        return "Noted. `next` begins the next task."

    def _note(self, entry: Call | Verdict) -> None:
        about = {"group": self.group, "side": self.side, "time": round(time.time())}
        with self.log.open("a") as file:
            file.write(json.dumps({**about, **asdict(entry)}, ensure_ascii=False) + "\n")


def _describe_waiting(count: int) -> str:
    match count:
        case 0:
            return "It is the last task."
        case 1:
            return "One more task waits after it, which `next` begins."
        case _:
            return f"{count} tasks wait after it."


def _mount_servers(place: Place, options: Sequence[str]) -> Place:
    """Return the place with all of its servers in one process, which has the options before the first one."""
    [first, *_] = place.servers.values()
    command = [*first[: first.index("-m")], "-m", "mcp_batteries.mount", *options]
    for name, words in place.servers.items():
        command += ["--", name, *words[words.index("-m") + 2 :]]
    return replace(place, servers={"mounted": command})


def ask(address: Path, words: list[str]) -> str:
    """Return what the door at `address` answers."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(str(address))
        with server.makefile("rw") as stream:
            stream.write(json.dumps(words) + "\n")
            stream.flush()
            return json.loads(stream.read())
