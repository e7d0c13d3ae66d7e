"""What the tools changed is taken back exactly; what somebody changed since is not touched."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path

import anyio
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from filesystem.places import Told
from filesystem.tool_calls import Tools
from mcp_batteries.errors import Conflict, NotFound, Problem
from mcp_batteries.testing.wire import StdioWire
from mcp_fs.engine.changing.entries import renames
from mcp_fs.engine.journal import store
from mcp_fs.engine.journal.store import JournalStore
from mcp_fs.policy import Policy, WritablePath
from mcp_fs.tools.write import Edit

pytestmark = pytest.mark.anyio


class Ground:
    """A served folder with some files, and tools that keep what it changes."""

    def __init__(self, base: Path, store: Path | None = None, **bounds: float) -> None:
        self.root = base / "root"
        self.root.mkdir()
        self.files = {"f": "one\n", "g": "one two\n", "d/h": "one\n", "d/e/i": "i\n"}
        for name, text in self.files.items():
            (self.root / name).parent.mkdir(exist_ok=True, parents=True)
            (self.root / name).write_text(text)
        os.utime(self.root / "f", (1, 1))
        self.where = store or base / "mcp-fs-undo"
        self.store = JournalStore(
            str(self.where), most_bytes=int(bounds.get("most_bytes", 1_000_000)), days=bounds.get("days", 7)
        )
        self.policy = Policy(Told((str(self.root),)))
        self.tools = Tools(self.policy, self.store)

    def at(self, path: str) -> WritablePath:
        return self.policy.writable(path)

    def state(self) -> dict[str, tuple[object, ...]]:
        """All there is, with its mode and, but for folders, its time."""
        found: dict[str, tuple[object, ...]] = {}
        for path in self.root.rglob("*"):
            status = path.lstat()
            what = path.read_bytes() if path.is_file() else "folder"
            facts = (status.st_mode, status.st_mtime_ns if path.is_file() else 0)
            found[path.relative_to(self.root).as_posix()] = (what, *facts)
        return found

    def contents(self) -> dict[str, object]:
        return {path: what for path, (what, *_) in self.state().items()}

    async def write(self, path: str, text: str, overwrite: bool = True) -> None:
        await self.tools.write_file(path, text, overwrite=overwrite)

    async def edit(self, path: str, old: str, new: str) -> None:
        await self.tools.edit_file(path, [Edit(old_text=old, new_text=new)])

    async def last(self) -> str:
        return (await self.tools.undo_changes()).steps[0].id

    async def undo(self, step: str | None = None, later: bool = False) -> str:
        done = await self.tools.undo_changes(step or await self.last(), later=later, dry_run=False)
        return done.text()


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


@pytest.fixture
def far(tmp_path: Path) -> Generator[Ground]:
    """A ground whose old contents are kept on another file system."""
    if not os.path.isdir("/dev/shm") or os.stat("/dev/shm").st_dev == tmp_path.stat().st_dev:
        pytest.skip("has no second file system")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Ground(tmp_path, Path(folder) / "mcp-fs-undo")


PATCH = "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+n\n"

CHANGES: dict[str, Callable[[Ground], Awaitable[object]]] = {
    "create": lambda ground: ground.write("n", "new"),
    "create with folders": lambda ground: ground.tools.write_file("d/x/y/n", "n", overwrite=False),
    "overwrite": lambda ground: ground.write("f", "new"),
    "edit": lambda ground: ground.edit("g", "two", "three"),
    "append": lambda ground: ground.tools.write_file("f", "more", append=True),
    "patch": lambda ground: ground.tools.edit_files(PATCH),
    "replace": lambda ground: ground.tools.replace_text({"one": "uno"}, "**"),
    "create folders": lambda ground: ground.tools.create_directory("d/x/y/z"),
    "copy": lambda ground: ground.tools.copy_file({"f": "n"}, overwrite=False),
    "copy over": lambda ground: ground.tools.copy_file({"f": "g"}, overwrite=True),
    "copy folder": lambda ground: ground.tools.copy_file({"d": "n"}, overwrite=False),
    "move": lambda ground: ground.tools.move_file({"f": "d/n"}, overwrite=False),
    "move over": lambda ground: ground.tools.move_file({"f": "g"}, overwrite=True),
    "move folder": lambda ground: ground.tools.move_file({"d": "n"}, overwrite=False),
    "delete": lambda ground: ground.tools.delete_file(["f"], recursive=False),
    "copy into new folders": lambda ground: ground.tools.copy_file({"d": "x/y/n"}, overwrite=False),
    "move into new folders": lambda ground: ground.tools.move_file({"d": "x/y/n"}, overwrite=False),
    "patch into new folders": lambda ground: ground.tools.edit_files(PATCH.replace("b/n", "b/x/y/n")),
    "delete several": lambda ground: ground.tools.delete_file(["d/h", "f", "f", "d", "g"], recursive=True),
    "delete folder": lambda ground: ground.tools.delete_file(["d"], recursive=True),
}


@pytest.mark.share(25)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("where", ["ground", "far"])
async def test_each_change_is_taken_back_and_made_again(
    change: str, where: str, request: pytest.FixtureRequest
) -> None:
    ground: Ground = request.getfixturevalue(where)
    before = ground.state()
    await CHANGES[change](ground)
    after = ground.state()
    assert after != before and len((await ground.tools.undo_changes()).steps) == 1
    dry = await ground.tools.undo_changes(await ground.last(), later=False, dry_run=True)
    assert dry.lines and "repeat with dry_run=false" in dry.text()
    assert ground.state() == after
    assert "taken back" in await ground.undo()
    assert ground.state() == before
    for state in (after, before, after, before):
        await ground.undo()
        assert ground.state() == state


names = st.sampled_from(["f", "g", "n", "d/h", "d/n", "x"])
folders = st.sampled_from(["d", "d/e", "x", "d/x"])
changes = st.one_of(
    st.tuples(st.just("write"), names, st.text("ab\n", max_size=4)),
    st.tuples(st.just("copy"), names | folders, names | folders),
    st.tuples(st.just("move"), names | folders, names | folders),
    st.tuples(st.just("delete"), names | folders, st.just("")),
    st.tuples(st.just("folder"), folders, st.just("")),
)


@settings(max_examples=settings.default.max_examples * 3 // 5)
@example(made=[("folder", "x", ""), ("move", "d", "x")], back=1)
@example(made=[("copy", "g", "n"), ("move", "n", "f"), ("copy", "g", "f")], back=0)
@given(made=st.lists(changes, min_size=1, max_size=8), back=st.integers(0, 7))
def test_whatever_was_done_all_of_it_is_taken_back(made: list[tuple[str, str, str]], back: int) -> None:
    async def run(base: Path) -> None:
        ground = Ground(base)
        before: dict[str, dict[str, object]] = {}
        for what, path, other in made:
            state = ground.contents()
            try:
                match what:
                    case "write":
                        await ground.write(path, other)
                    case "copy":
                        await ground.tools.copy_file({path: other}, overwrite=True)
                    case "move":
                        await ground.tools.move_file({path: other}, overwrite=True)
                    case "delete":
                        await ground.tools.delete_file([path], recursive=True)
                    case _:
                        await ground.tools.create_directory(path)
            except Problem:
                assert ground.contents() == state
            for step in (await ground.tools.undo_changes()).steps[:1]:
                before.setdefault(step.id, state)
        steps = (await ground.tools.undo_changes()).steps
        if steps:
            step = steps[back % len(steps)]
            await ground.undo(step.id, later=True)
            assert ground.contents() == before.get(step.id, ground.contents())

    with tempfile.TemporaryDirectory() as folder:
        anyio.run(run, Path(folder))


async def test_what_changed_since_is_refused_with_the_way_on(ground: Ground) -> None:
    await ground.tools.replace_text({"one": "uno"}, "*")
    (ground.root / "g").write_text("somebody's")
    before = ground.state()
    with pytest.raises(Conflict, match=r"`g` changed since .* nothing was taken back\. Move what is there"):
        await ground.undo()
    assert ground.state() == before
    await ground.tools.move_file({"g": "mine"}, overwrite=False)
    step = (await ground.tools.undo_changes()).steps[1]
    await ground.undo(step.id)
    assert [(ground.root / name).read_text() for name in ("f", "g", "mine")] == ["one\n", "one two\n", "somebody's"]


@pytest.mark.parametrize("dry_run", [True, False])
async def test_what_somebody_wrote_between_two_steps_is_found_before_the_first_is_taken_back(
    ground: Ground, dry_run: bool
) -> None:
    await ground.write("f", "first")
    first = await ground.last()
    (ground.root / "f").write_text("somebody's")
    await ground.write("f", "second")
    second = await ground.last()
    await ground.write("g", "other")
    before = ground.state()
    with pytest.raises(Conflict, match=f"`f` was changed by somebody else .* Take back from step {second} on"):
        await ground.tools.undo_changes(first, later=True, dry_run=dry_run)
    assert ground.state() == before
    await ground.undo(second, later=True)
    assert (ground.root / "f").read_text() == "somebody's"


async def test_what_somebody_removed_between_two_steps_is_no_hindrance(ground: Ground) -> None:
    await ground.write("f", "first")
    first = await ground.last()
    (ground.root / "f").unlink()
    await ground.write("f", "second")
    await ground.undo(first, later=True)
    assert (ground.root / "f").read_text() == ground.files["f"]


async def test_a_later_step_in_the_way_is_named(ground: Ground) -> None:
    await ground.edit("f", "one", "two")
    first = await ground.last()
    await ground.edit("f", "two", "three")
    with pytest.raises(Conflict, match=f"Step {await ground.last()} came later"):
        await ground.undo(first)
    await ground.undo(first, later=True)
    assert (ground.root / "f").read_text() == "one\n"


async def test_a_folder_is_taken_back_only_with_what_was_copied_into_it(ground: Ground) -> None:
    await ground.tools.copy_file({"d": "n"}, overwrite=False)
    (ground.root / "n/e/mine").write_text("mine")
    with pytest.raises(Conflict, match="`n` changed since"):
        await ground.undo()
    await ground.tools.create_directory("x/y")
    (ground.root / "x/mine").write_text("mine")
    with pytest.raises(Conflict, match="`x` changed since"):
        await ground.undo()
    assert (ground.root / "n/e/mine").exists() and (ground.root / "x/y").is_dir()


async def test_a_folder_made_for_a_file_stays_for_others_in_it(ground: Ground) -> None:
    await ground.tools.write_file("x/y/a", "a", overwrite=False)
    step = await ground.last()
    await ground.write("x/b", "b")
    assert "delete x/y/a" in await ground.undo(step)
    assert sorted(path.name for path in (ground.root / "x").iterdir()) == ["b"]


@pytest.mark.parametrize("path", ["f/x/y", "x/y/" + "n" * 300])
async def test_what_fails_leaves_no_folder_and_no_step(ground: Ground, path: str) -> None:
    before = ground.state()
    for change in (
        ground.tools.write_file(path, "", overwrite=False),
        ground.tools.create_directory(path),
        ground.tools.copy_file({"d": "."}, overwrite=True),
        ground.tools.move_file({"d": "."}, overwrite=False),
    ):
        with pytest.raises(Problem):
            await change
    assert ground.state() == before and not (await ground.tools.undo_changes()).steps


async def test_new_folders_go_again_if_what_was_in_them_can_not_come_back(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ground.tools.write_file("d/x/y/n", "n", overwrite=False)
    await ground.undo()
    before, step = ground.state(), await ground.last()

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patched:
        patched.setattr(renames.Rename, "apply", fail)
        with pytest.raises(Problem, match="d/x/y/n` failed"):
            await ground.undo(step)
    assert ground.state() == before and await ground.last() == step
    await ground.undo(step)
    assert ground.contents()["d/x/y/n"] == b"n"


@pytest.mark.skipif(sys.platform != "linux", reason="needs another disk")
@pytest.mark.parametrize("kind", ["file", "folder"])
async def test_what_went_to_another_disk_and_back_is_known_again(ground: Ground, kind: str) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as other:
        if os.stat(other).st_dev == ground.root.stat().st_dev:
            pytest.skip("has one disk")
        policy = Policy(Told((str(ground.root), other)))
        tools = Tools(policy, ground.store)
        name = {"file": "f", "folder": "d"}[kind]
        before = ground.state()
        await tools.move_file({f"root/{name}": "root/renamed"})
        first = (await tools.undo_changes()).steps[0].id
        await tools.move_file({"root/renamed": f"{Path(other).name}/away"})
        for number in range(9):  # these get the inodes that are free now
            (ground.root.parent / f"taken{number}").touch()
        await tools.undo_changes(first, later=True, dry_run=False)
        assert ground.state() == before
        assert list(Path(other).iterdir()) == []


async def test_what_came_back_by_other_means_is_no_step_any_more(ground: Ground) -> None:
    await ground.tools.move_file({"f": "n"}, overwrite=False)
    (ground.root / "n").rename(ground.root / "f")
    assert (await ground.tools.undo_changes()).text() == "[no steps that could be taken back]"
    with pytest.raises(NotFound, match=r"no step `1234` to take back\. Call without `step` for the list"):
        await ground.undo("1234")
    await ground.edit("f", "one", "two")
    step, *_ = (await ground.tools.undo_changes()).steps
    await ground.undo(step.id)
    assert (ground.root / "f").read_text() == "one\n"


async def test_a_dry_run_shows_what_would_become_of_text(ground: Ground) -> None:
    await ground.edit("g", "two", "three")
    first = await ground.last()
    await ground.edit("g", "three", "four")
    await ground.write("n", "")
    await ground.write("n", "new\n")
    await ground.tools.edit_files(PATCH.split("--- /dev")[0])
    (ground.root / "d/h").write_bytes(b"\0\1")
    await ground.write("d/h", "text")
    said = (await ground.tools.undo_changes(first, later=True, dry_run=True)).text()
    diffs = said.partition("\n--- ")[2]
    assert diffs == (
        "/dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+one\n--- a/n\n+++ /dev/null\n@@ -1 +0,0 @@\n-new\n"
        "--- a/g\n+++ b/g\n@@ -1 +1 @@\n-one four\n+one two"
    )
    await ground.write("f", "x" * 30_000)
    large = (await ground.tools.undo_changes(await ground.last(), later=False, dry_run=True)).text()
    assert "[diff cut to 10,000 of" in large and len(large) < 11_000


async def test_steps_that_are_taken_back_are_not_forgotten_meanwhile(tmp_path: Path) -> None:
    ground = Ground(tmp_path, most_bytes=1000)
    before = ground.state()
    await ground.write("f", "x" * 900)
    first = await ground.last()
    await ground.write("g", "y")
    await ground.undo(first, later=True)  # keeps 900 bytes more, for which the oldest step would have to go
    assert ground.state() == before


async def test_hard_linked_and_executable_files_come_back_as_they_were(ground: Ground) -> None:
    if sys.platform == "win32":
        pytest.skip("has no such modes")
    os.link(ground.root / "f", ground.root / "other")
    (ground.root / "f").chmod(0o751)
    before = ground.state()
    await ground.write("f", "new")
    (ground.root / "other").write_text("written to by its other name")
    await ground.undo()
    os.utime(ground.root / "other", (1, 1))
    assert ground.state()["f"] == before["f"]


async def test_callers_and_other_servers_see_their_own_steps(ground: Ground, tmp_path: Path) -> None:
    ground.tools.address = "192.0.2.1"
    await ground.write("f", "ada's")
    step = await ground.last()
    ground.tools.address = "192.0.2.2"
    assert (await ground.tools.undo_changes()).total == 0
    with pytest.raises(NotFound):
        await ground.undo(step)
    ground.tools.address = "192.0.2.1"
    (tmp_path / "beside").mkdir()
    elsewhere = Tools(Policy(Told((str(tmp_path / "beside"),))), ground.store)
    elsewhere.address = ground.tools.address
    assert (await elsewhere.undo_changes()).total == 0
    inside = Tools(Policy(Told((str(ground.root / "d"),))), ground.store)
    inside.address = ground.tools.address
    assert (await inside.undo_changes()).total == 0
    above = Tools(Policy(Told((str(tmp_path),))), ground.store)
    above.address = ground.tools.address
    assert [step.paths for step in (await above.undo_changes()).steps] == [["root/f"]]


async def test_what_is_kept_is_private_and_within_its_bounds(tmp_path: Path) -> None:
    ground = Ground(tmp_path, most_bytes=1000)
    if sys.platform != "win32":
        await ground.write("n", "n")
        assert ground.where.stat().st_mode & 0o077 == 0
    for number in range(6):
        await ground.write("f", str(number) * 300)
    await anyio.to_thread.run_sync(ground.store.enforce_limits)
    kept = [path.stat().st_size for path in ground.where.rglob("*") if "." in path.name]
    assert sum(kept) <= 1000 and (await ground.tools.undo_changes()).total == 3
    await ground.write("f", "x" * 2000)
    result = await ground.tools.write_file("f", "y", overwrite=True)
    assert "undo_changes can't take this back: 2,000 bytes are more than the operator lets it keep" in result.text()
    assert (ground.root / "f").read_text() == "y"
    large = await ground.tools.delete_file(["d"], recursive=True)
    assert "can't take this back" in large.text() and not (ground.root / "d").exists()


async def test_a_full_store_is_not_looked_at_for_each_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ground = Ground(tmp_path, most_bytes=100_000)
    looks = list[int]()
    listed = store._sort_names
    monkeypatch.setattr(store, "_sort_names", lambda names: looks.append(len(names)) or listed(names))
    for number in range(200):
        await ground.write("f", f"{number:04}" * 250)
    assert (await ground.tools.undo_changes()).total > 80
    assert len(looks) < 40, looks


async def test_old_steps_are_forgotten(tmp_path: Path) -> None:
    ground = Ground(tmp_path, days=1e-9)
    await ground.write("f", "new")
    assert (await ground.tools.undo_changes()).total == 0
    assert [path.name for path in ground.where.iterdir()] == []


async def test_a_client_that_serves_less_has_its_old_contents_where_all_have_theirs(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    with ground.policy.use_narrowed(ground.policy.narrow_to_roots([(ground.root / "d").as_uri()])):
        await ground.write("h", "new")
        assert sorted(path.name for path in (ground.root / "d").iterdir()) == ["e", "h"]
        await ground.undo()
    assert ground.contents()["d/h"] == b"one\n"


async def test_what_was_never_written_down_is_no_step_and_goes_in_the_end(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    await ground.write("f", "new")
    (step,) = [path for path in ground.where.iterdir() if not path.suffix]
    step.write_bytes(step.read_bytes()[:-1])
    assert (await ground.tools.undo_changes()).text().count("can't be read") == 0
    step.unlink()
    old = ground.where / "00000000000000000001-4-00000000.0"
    old.write_text("old")
    ground.store.enforce_limits()
    assert [path.stem for path in ground.where.iterdir()] == [step.name]  # it may be about to be


async def test_a_store_of_others_is_not_used(tmp_path: Path) -> None:
    if sys.platform == "win32":
        pytest.skip("has no such modes")
    ground = Ground(tmp_path)
    ground.where.mkdir(mode=0o755)
    result = await ground.tools.write_file("f", "new", overwrite=True)
    assert "undo_changes can't take this back: The folder for old contents is not private" in result.text()
    ground.where.chmod(0o700)
    await ground.write("f", "newer")
    shutil.rmtree(ground.where)
    await ground.write("f", "newest")
    assert (await ground.tools.undo_changes()).total == 1


async def test_the_store_is_protected_where_it_is_served(tmp_path: Path) -> None:
    ground = Ground(tmp_path, tmp_path / "root" / ".local" / "state" / "mcp-fs-undo")
    await ground.write("f", "new")
    with pytest.raises(Problem, match="protected"):
        ground.policy.readable(".local/state/mcp-fs-undo")
    await ground.undo()
    assert (ground.root / "f").read_text() == "one\n"


def served(tmp_path: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "mcp_fs", *options, str(tmp_path / "root")]


@pytest.mark.slow
async def test_another_process_takes_back_what_a_killed_one_did(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    before = ground.state()
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "LOCALAPPDATA": str(tmp_path / "state")}
    async with StdioWire(served(tmp_path), env=environment) as wire:
        await wire.open()
        await wire.call("edit_file", path="f", edits=[{"old_text": "one", "new_text": "two"}])
        await wire.call("delete_file", path="d", recursive=True)
        wire.process.kill()
        await wire.wait()
    async with StdioWire(served(tmp_path), env=environment) as wire:
        await wire.open()
        (listed,) = (await wire.call("undo_changes"))["content"]
        lines = listed["text"].splitlines()
        assert [line.split("\t")[2:] for line in lines[1:]] == [["delete_file", "d"], ["edit_file", "f"]]
        await wire.call("undo_changes", step=lines[2].split("\t")[0], later=True, dry_run=False)
    assert ground.state() == before


@pytest.mark.share(1)
@pytest.mark.parametrize("option", ["--undo-megabytes=0", "--read-only"])
async def test_it_is_off_where_the_operator_says_so(tmp_path: Path, option: str) -> None:
    ground = Ground(tmp_path)
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "LOCALAPPDATA": str(tmp_path / "state")}
    async with StdioWire(served(tmp_path, option), env=environment) as wire:
        await wire.open()
        tools = {tool["name"] for tool in (await wire.request("tools/list"))["tools"]}
        assert "undo_changes" not in tools
        if option != "--read-only":
            await wire.call("write_file", path="f", content="new", overwrite=True)
            assert (ground.root / "f").read_text() == "new"
    # On Windows what is kept of first answers lies beside it.
    assert {path.name for path in (tmp_path / "state").glob("*/*")} <= {"first-answers"}
