"""Random sequences of installations, changes by hosts and people, and removals: after each the host reads its file."""

from __future__ import annotations

import copy
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from mcp_batteries.cli.host_entry.launch_command import find_launch_command
from mcp_batteries.cli.install import install
from mcp_batteries.cli.places import Places
from mcp_batteries.cli.uninstall import uninstall
from mcp_batteries.errors import NotFound
from mcp_batteries.settings import Settings, load
from mcp_fs.settings import Settings as Files
from mcp_git.settings import Settings as Git
from mcp_github.settings import Settings as Github
from mcp_postgres.settings import Settings as Postgres
from mcp_sqlite.settings import Settings as Sqlite
from mcp_weather.settings import Settings as Weather
from shared.host_files import HOSTS, Writer, comments, container, encoded, foreign_server, foreign_value, read

SERVERS: dict[str, list[Settings]] = {
    "fs": [load(Files, [os.sep + "served"]), load(Files, ["--read-only", os.sep + 'a "quoted" one'])],
    "git": [
        load(Git, [os.sep + "repository"]),
        load(Git, ["--transport", "http", os.sep + "repository"]),
        load(Git, ["--transport", "http", "--auth-file", os.sep + "tokens", os.sep + "repository"]),
    ],
    "github": [load(Github, []), load(Github, ["--write"])],
    "postgres": [
        load(Postgres, ["postgresql://reader:secret@db.example.org/shop"]),
        load(Postgres, ["postgresql://reader@db.example.org/shop"]),
    ],
    "sqlite": [load(Sqlite, [os.sep + "a.db"])],
    "weather": [load(Weather, []), load(Weather, ["--units", "us"])],
}


@pytest.fixture(autouse=True)
def _paths_of_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the entries serve need not be there: this is about the hosts' files."""
    monkeypatch.setattr("mcp_batteries.cli.install.refuse_unusable", lambda host, settings: None)


def places(folder: Path) -> Places:
    home = folder / "home"
    data = home / "AppData"
    return Places(home, "linux", home / ".config", data / "Roaming", data / "Local", folder / "notes")


class Sequence:
    """One host's file, what belongs into it, and what happens to it."""

    def __init__(self, host: str, seed: int, folder: Path) -> None:
        self.host = host
        self.rng = random.Random(f"{host} {seed}")
        self.writer = Writer(host, self.rng)
        self.writer.ours = tuple(SERVERS)
        self.places = places(folder)
        self.path = self.places.file(host)
        self.path.parent.mkdir(parents=True)
        self.foreign = foreign_value(host, self.rng)
        self.steps: list[str] = []
        self.installed: dict[str, dict[str, Any]] = {}
        self.edited = False
        if self.rng.random() < 0.1:
            self.foreign = {}
            self.first = None
        else:
            self.first = encoded(self.writer.document(self.foreign), self.rng)
            self.path.write_bytes(self.first)
            assert read(host, self.first) is not None
        self.foreign = self.without_ours(read(host, self.first))

    @property
    def data(self) -> bytes | None:
        return self.path.read_bytes() if self.path.exists() else None

    def without_ours(self, value: dict[str, Any]) -> dict[str, Any]:
        value = copy.deepcopy(value)
        key = container(self.host)
        value[key] = {name: item for name, item in (value.get(key) or {}).items() if name not in SERVERS}
        inputs = [item for item in value.get("inputs") or [] if item["id"] == "mine"]
        value["inputs"] = inputs
        return {name: item for name, item in value.items() if item or name not in (key, "inputs")}

    def check(self, kept: list[str]) -> dict[str, Any]:
        data = self.data
        value = read(self.host, data)
        assert json.dumps(self.without_ours(value)) == json.dumps(self.foreign), self.steps
        ours = {name: item for name, item in (value.get(container(self.host)) or {}).items() if name in SERVERS}
        assert ours.keys() == self.installed.keys(), self.steps
        lost = [comment for comment in kept if comment not in comments(data)]
        assert not lost, (lost, self.steps)
        return ours

    def install(self) -> None:
        name = self.rng.choice(list(SERVERS))
        settings = self.rng.choice(SERVERS[name])
        if self.host == "claude-desktop" and settings.transport != "stdio":
            settings = SERVERS[name][0]
        self.steps.append(f"install {name} {settings.arguments()}")
        kept = comments(self.data)
        install(self.host, settings, self.places)
        before = self.installed.get(name, {})
        self.installed[name] = {}
        entry = self.check(kept)[name]
        for key, value in before.items():
            # What the person has added.
            assert (entry.get("env") or {}).get(key) == value, self.steps
        self.installed[name] = before

    def uninstall(self, name: str | None = None) -> None:
        name = name or self.rng.choice(list(SERVERS))
        settings = self.rng.choice(SERVERS[name])
        self.steps.append(f"uninstall {name}")
        kept = comments(self.data)
        if name not in self.installed:
            before = self.data
            with pytest.raises(NotFound):
                uninstall(self.host, settings, self.places)
            assert self.data == before
            return
        uninstall(self.host, settings, self.places)
        del self.installed[name]
        self.check(kept)

    def rewrite(self) -> None:
        """The host or a person opens the file, changes something and saves it in another form."""
        value = read(self.host, self.data)
        servers = value.setdefault(container(self.host), {})
        if servers is None:
            servers = value[container(self.host)] = {}
        kind = self.rng.choice(["form", "env", "server", "setting", "away"])
        self.steps.append(f"rewrite {kind}")
        if kind == "env" and self.installed:
            name = self.rng.choice(list(self.installed))
            key = f"MINE_{len(self.steps)}"
            servers[name].setdefault("env", {})[key] = "x"
            self.installed[name] = {**self.installed[name], key: "x"}
        elif kind == "server":
            servers[f"new {len(self.steps)}"] = foreign_server(self.host, self.rng)
        elif kind == "setting":
            value[f"new{len(self.steps)}"] = self.rng.choice([1, "x", [], ["a"]])
        elif kind == "away" and "theme" in value:
            del value["theme"]
        text = self.writer.document(value, plain=self.rng.random() < 0.5)
        self.path.write_bytes(encoded(text, self.rng))
        self.edited = True
        self.foreign = self.without_ours(read(self.host, self.data))
        self.check([])

    def run(self) -> int:
        for _ in range(self.rng.randrange(2, 8)):
            step = self.rng.choice([self.install, self.install, self.install, self.uninstall, self.rewrite])
            step()
        names = list(self.installed)
        self.rng.shuffle(names)
        for name in names:
            self.uninstall(name)
        if not self.edited:
            assert self.data == self.first, self.steps
        return len(self.steps)


def tried(host: str, seeds: range, folder: Path) -> int:
    steps = 0
    for seed in seeds:
        sequence = Sequence(host, seed, folder / str(seed))
        try:
            steps += sequence.run()
        except BaseException as error:
            raise AssertionError(
                f"{host}, seed {seed}: {sequence.steps}, of {sequence.first!r}, now {sequence.data!r}"
            ) from error
    return steps


@pytest.fixture(autouse=True)
def found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """How this installation is started is the same each time, and takes longer than all else."""
    known = {kind[0].COMMAND: find_launch_command(kind[0].COMMAND) for kind in SERVERS.values()}
    for module in ("launch_command", "text"):
        name = f"mcp_batteries.cli.host_entry.{module}.find_launch_command"
        monkeypatch.setattr(name, lambda command, *_: known[command])


@pytest.mark.share(1, slow=5)
@pytest.mark.parametrize("host", HOSTS)
def test_sequences_leave_a_file_that_its_host_reads(host: str, tmp_path: Path) -> None:
    assert tried(host, range(12), tmp_path) > 12


@pytest.mark.weekly
@pytest.mark.parametrize("host", HOSTS)
def test_many_sequences_leave_a_file_that_its_host_reads(host: str, tmp_path: Path) -> None:
    assert tried(host, range(12, 1500), tmp_path) > 1000
