"""Any sequence of changes does to the disk what it does to a dictionary, and refuses what the dictionary refuses."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from filesystem.places import Told, delete, stop
from mcp_batteries.errors import Problem
from mcp_fs.engine.changing import folders, writing
from mcp_fs.engine.changing.entries import copying, moving
from mcp_fs.engine.changing.file_edits import FileChange, change_files
from mcp_fs.engine.text.edit import Replacement, apply_replacements
from mcp_fs.policy import Policy

paths = st.lists(st.sampled_from(["a", "b", "é", "c d"]), min_size=1, max_size=3).map("/".join)
texts = st.text(st.sampled_from("xy\n"), max_size=5)

Tree = dict[str, str | None]
"""Paths to texts, and to None for folders."""


class No(Exception):
    """The model refuses."""


class Changes(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.policy = Policy(Told((str(self.root),)))
        self.model: Tree = {}

    def teardown(self) -> None:
        shutil.rmtree(self.root)

    @rule(path=paths, text=texts, overwrite=st.booleans())
    def write(self, path: str, text: str, overwrite: bool) -> None:
        def change(model: Tree) -> None:
            self.parent_is_a_folder(model, path)
            if path in model and (not overwrite or model[path] is None):
                raise No
            model[path] = text

        place = self.policy.writable(path)
        self.both(change, lambda: writing.write_file(place, text, overwrite=overwrite, cancel=stop()))

    @rule(path=paths, old=texts, new=texts, everywhere=st.booleans())
    def edit(self, path: str, old: str, new: str, everywhere: bool) -> None:
        def change(model: Tree) -> None:
            text = model.get(path)
            found = 0 if not text or not old else sum(text.startswith(old, start) for start in range(len(text)))
            if text is None or not found or old == new or (found > 1 and not everywhere):
                raise No
            model[path] = text.replace(old, new)

        def revise(text: str) -> str:
            return apply_replacements(text, [Replacement(old, new, everywhere)], path, stop())

        place = self.policy.writable(path)
        self.both(change, lambda: change_files([FileChange(place, revise)], dry_run=False, cancel=stop()))

    @rule(path=paths)
    def create_folder(self, path: str) -> None:
        def change(model: Tree) -> None:
            parts = path.split("/")
            for depth in range(1, len(parts) + 1):
                if model.setdefault("/".join(parts[:depth])) is not None:
                    raise No

        self.both(change, lambda: folders.create_folder(self.policy.writable(path), stop()))

    @rule(source=paths, to=paths, overwrite=st.booleans())
    def move(self, source: str, to: str, overwrite: bool) -> None:
        def change(model: Tree) -> None:
            if source == to and source in model:
                return
            self.can_arrive(model, source, to)
            if to in model:
                empty = not any(path.startswith(to + "/") for path in model)
                same_kind = (model[source] is None) == (model[to] is None)
                if not overwrite or not same_kind or not empty:
                    raise No
            for path in [path for path in model if path == source or path.startswith(source + "/")]:
                model[to + path[len(source) :]] = model.pop(path)

        start, end = self.policy.writable(source), self.policy.writable(to)
        self.both(change, lambda: moving.move_entry(start, end, overwrite=overwrite, cancel=stop()))

    @rule(source=paths, to=paths, overwrite=st.booleans())
    def copy(self, source: str, to: str, overwrite: bool) -> None:
        def change(model: Tree) -> None:
            self.can_arrive(model, source, to)
            if to in model and not (overwrite and model[source] is not None and model[to] is not None):
                raise No
            if source == to:
                raise No
            for path in [path for path in model if path == source or path.startswith(source + "/")]:
                model[to + path[len(source) :]] = model[path]

        start, end = self.policy.readable(source), self.policy.writable(to)
        self.both(change, lambda: copying.copy_entry(start, end, overwrite=overwrite, cancel=stop()))

    @rule(path=paths, recursive=st.booleans())
    def delete(self, path: str, recursive: bool) -> None:
        def change(model: Tree) -> None:
            below = [other for other in model if other.startswith(path + "/")]
            if path not in model or (below and not recursive):
                raise No
            for other in (path, *below):
                del model[other]

        place = self.policy.writable(path)
        self.both(change, lambda: delete(place, recursive=recursive))

    @invariant()
    def the_disk_is_the_model(self) -> None:
        found = {
            path.relative_to(self.root).as_posix(): path.read_bytes().decode() if path.is_file() else None
            for path in self.root.rglob("*")
        }
        assert found == self.model

    def both(self, change: Callable[[Tree], None], act: Callable[[], object]) -> None:
        model: Tree | None = dict(self.model)
        try:
            change(model)
        except No:
            model = None
        try:
            act()
        except Problem as problem:
            assert model is None, problem
        else:
            assert model is not None, "the model refuses this"
            self.model = model

    @staticmethod
    def parent_is_a_folder(model: Tree, path: str) -> None:
        parent = path.rpartition("/")[0]
        if parent and model.get(parent, "missing") is not None:
            raise No

    def can_arrive(self, model: Tree, source: str, target: str) -> None:
        self.parent_is_a_folder(model, target)
        if source not in model or target.startswith(source + "/"):
            raise No


TestChanges = Changes.TestCase
TestChanges.settings = settings(
    max_examples=settings.default.max_examples * 3 // 5,
    stateful_step_count=30,
)
