"""The `git` program, run so that nothing in a repository can make it run anything else or reach outside.

Each run gets an environment made from nothing and, as the common directory, a folder of ours: its configuration is what
`config.allowed` leaves of the repository's own, and links lead on to the refs and logs. The git directory proper stays
the repository's. This is how `git new-workdir` shares a repository, but for the configuration and the hooks.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property

from mcp_batteries.errors import Problem, Refused, Unavailable
from mcp_batteries.executables import find_executable
from mcp_batteries.limits import Stop
from mcp_git import config
from mcp_git.engine.process import Pipe, end, limit_memory
from mcp_git.layout import Layout, is_inside
from mcp_git.policy import Policy, Repository

__all__ = ["Failed", "Git", "Output"]

_OLDEST = (2, 32)
"""The first that can leave out the user's configuration (GIT_CONFIG_GLOBAL)."""
_MOST_OUTPUT = 64 * 1024 * 1024
_MOST_SAID = 4000
_INDEX_SECONDS = 60
_MOST_CONFIGURATION = 1024 * 1024
_BAD_INDEX = re.compile(rb"(?:^|\0)/|(?:^|[\0/])(?:\.\.?|\.git)?(?:/|\0)", re.I)
_KEPT_VARIABLES = ("SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "TEMP", "TMP", "TMPDIR")

_Signature = tuple[int, int, int, int]


class Failed(Problem):
    """Raised when git ends with an error; `said` is what it said."""

    def __init__(self, said: str, code: int) -> None:
        self.said, self.code = said, code
        words = re.sub(r"^(?:fatal|error): ", "", said.strip().partition("\n")[0]) or f"it ended with {code}"
        super().__init__(f"git: `{words[:300]}`.", "")


@dataclass(frozen=True, slots=True)
class Output:
    """What a run of git printed.

    Attributes:
        cut: whether there was more than was wanted.
    """

    out: bytes
    cut: bool = False

    @property
    def text(self) -> str:
        return self.out.decode("utf-8", "replace")


class _Shadow:
    """The common directory that git sees of one repository."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.turn = threading.Lock()
        self.configured: _Signature | str | None = ""
        self.entries: Sequence[config.Entry] = ()
        self.index: _Signature | None = None


class Git:
    """Runs git; every method blocks.

    Args:
        policy: says where a repository's parts are, before each run.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._shadows: dict[Layout, _Shadow] = {}
        self._turn = threading.Lock()

    @cached_property
    def scratch(self) -> str:
        """A private folder, made when it is needed, that goes away with the process."""
        # In a container whose root can't be written, this is what there is.
        memory = "/dev/shm"
        try:
            path = tempfile.mkdtemp(prefix="mcp-git-")
        except OSError:
            path = tempfile.mkdtemp(prefix="mcp-git-", dir=memory)
        weakref.finalize(self, shutil.rmtree, path, ignore_errors=True)
        os.mkdir(os.path.join(path, "nowhere"))
        return os.path.realpath(path)

    @cached_property
    def program(self) -> str:
        """The absolute path of a git that is new enough, and not one that a served repository brings along.

        Raises:
            Unavailable: there is none.
        """
        found = self.found()
        self.program = found
        version = re.search(r"(\d+)\.(\d+)", self._plain(["version"]).decode("utf-8", "replace"))
        if version is None or (int(version[1]), int(version[2])) < _OLDEST:
            del self.program
            raise Unavailable("This `git` is older than 2.32.", "The operator can install a newer one.")
        return found

    def found(self) -> str:
        """Where git is, whatever its version.

        Raises:
            Unavailable: there is none.
        """
        if found := find_executable("git", self._path.split(os.pathsep)):
            return found
        raise Unavailable("The program `git` was not found.", "The operator can install it: https://git-scm.com.")

    @cached_property
    def _path(self) -> str:
        served = [repository.path for repository in self._policy.repositories.values()]
        folders = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(folder)]
        return os.pathsep.join(
            folder for folder in folders if not any(is_inside(os.path.realpath(folder), root) for root in served)
        )

    @cached_property
    def _own(self) -> list[config.Entry]:
        """What of the operator's own configuration matters, with the ignored names that have no key."""
        entries: list[config.Entry] = []
        environment = {**os.environ, "GIT_DIR": os.path.join(self.scratch, "nowhere"), "PATH": self._path}
        for scope in ("--system", "--global"):
            with suppress(Failed):
                entries += _entries(self._plain(["config", scope, "--includes", "--list", "-z"], environment))
        found = dict(config.own(entries))
        usual = os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "git", "ignore")
        ignored = os.path.expanduser(found.get("core.excludesfile", usual))
        found["core.excludesfile"] = ignored if os.path.isfile(ignored) else os.devnull
        return list(found.items())

    # Running

    def run(
        self,
        repository: Repository,
        words: Sequence[str],
        stop: Stop,
        *,
        given: bytes = b"",
        most: int = _MOST_OUTPUT,
        fine: Iterable[int] = (0,),
        changes: bool = False,
        literal: bool = True,
    ) -> Output:
        """Run git and return what it prints, its first `most` bytes.

        Args:
            given: what it reads.
            fine: how it may end.
            changes: whether it writes, so that no link may lie where it does.
            literal: whether paths are no patterns; a pattern is never a caller's.

        Raises:
            Failed: it ended otherwise.
        """
        pieces: list[bytes] = []
        size = 0
        with self.pieces(repository, words, stop, given=given, fine=fine, changes=changes, literal=literal) as found:
            for piece in found:
                pieces.append(piece)
                size += len(piece)
                if size > most:
                    break
        out = b"".join(pieces)
        return Output(out[:most], len(out) > most)

    @contextmanager
    def pieces(
        self,
        repository: Repository,
        words: Sequence[str],
        stop: Stop,
        *,
        given: bytes = b"",
        fine: Iterable[int] = (0,),
        changes: bool = False,
        literal: bool = True,
    ) -> Generator[Generator[bytes]]:
        """Run git for a block that takes what it prints piece by piece, and may leave before its end.

        Raises:
            Failed: it ended otherwise than `fine`, and was read to its end.
        """
        layout = self._policy.layout(repository, changes=changes)
        environment = self._environment(layout, stop)
        with tempfile.TemporaryFile(dir=self.scratch) as said, tempfile.TemporaryFile(dir=self.scratch) as reads:
            if given:
                reads.write(given)
                reads.seek(0)
            process = subprocess.Popen(
                [self.program, *(["--literal-pathspecs"] if literal else []), *words],
                cwd=layout.work_tree or layout.git_dir,
                env=environment,
                stdin=reads if given else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                start_new_session=True,
            )
            assert process.stdout is not None
            pipe, ended = Pipe(process.stdout), False

            def found() -> Generator[bytes]:
                nonlocal ended
                yield from pipe.pieces(stop)
                ended = True

            try:
                limit_memory(process.pid)
                yield found()
                if ended and process.wait() not in fine:
                    said.seek(0)
                    raise Failed(self._without_places(said.read(_MOST_SAID), layout), process.returncode)
            finally:
                end(process)
                pipe.leave()

    def _without_places(self, said: bytes, layout: Layout) -> str:
        text = said.decode("utf-8", "replace")
        for place in (self._shadows[layout].folder, layout.git_dir, layout.common_dir, layout.work_tree, self.scratch):
            text = text.replace(place, ".") if place else text
        return text

    def _plain(self, words: Sequence[str], environment: Mapping[str, str] | None = None) -> bytes:
        """Run git where there is no repository."""
        nowhere = os.path.join(self.scratch, "nowhere")
        made = subprocess.run(
            [self.program, *words],
            cwd=nowhere,
            env=environment or {**self._common, "GIT_DIR": nowhere},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10,
            check=False,
        )
        if made.returncode:
            raise Failed(made.stderr.decode("utf-8", "replace"), made.returncode)
        return made.stdout

    # The environment

    @cached_property
    def _common(self) -> dict[str, str]:
        """All that git finds in its environment whatever it does; nothing is passed on unseen."""
        return {
            **{name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
            "PATH": self._path,
            "HOME": self.scratch,
            "XDG_CONFIG_HOME": self.scratch,
            "LC_ALL": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_ALLOW_PROTOCOL": "none",
            "GIT_PROTOCOL_FROM_USER": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_PAGER": "cat",
            "GIT_EDITOR": ":",
            "GIT_SEQUENCE_EDITOR": ":",
            "GIT_ADVICE": "0",
        }

    def _environment(self, layout: Layout, stop: Stop) -> dict[str, str]:
        with self._turn:
            shadow = self._shadows.get(layout)
            if shadow is None:
                shadow = self._shadows[layout] = _Shadow(os.path.join(self.scratch, str(len(self._shadows))))
        environment = {
            **self._common,
            "GIT_DIR": layout.git_dir,
            "GIT_COMMON_DIR": shadow.folder,
            "GIT_OBJECT_DIRECTORY": layout.objects,
            **({"GIT_WORK_TREE": layout.work_tree} if layout.work_tree else {}),
        }
        shallow = os.path.join(layout.common_dir, "shallow")
        if os.path.lexists(shallow):
            environment["GIT_SHALLOW_FILE"] = shallow
        with shadow.turn:
            self._link(shadow, layout)
            self._configure(shadow, layout)
            if layout.work_tree:
                self._check_index(shadow, layout, environment)
        return environment

    def _link(self, shadow: _Shadow, layout: Layout) -> None:
        if not os.path.isdir(shadow.folder):
            os.mkdir(shadow.folder)
        for name in ("refs", "logs", "info", "packed-refs", "reftable"):
            target, place = os.path.join(layout.common_dir, name), os.path.join(shadow.folder, name)
            if sys.platform == "win32":
                _link_on_windows(target, place)
            elif not os.path.lexists(place) and (name != "reftable" or os.path.isdir(target)):
                os.symlink(target, place)

    def configuration(self, repository: Repository) -> Sequence[config.Entry]:
        """What git is told of the repository's configuration."""
        layout = self._policy.layout(repository)
        self._environment(layout, Stop())
        return self._shadows[layout].entries

    def _configure(self, shadow: _Shadow, layout: Layout) -> None:
        path = os.path.join(layout.common_dir, "config")
        now = _signature(path)
        if now == shadow.configured:
            return
        if now is not None and now[1] > _MOST_CONFIGURATION:
            raise Refused("The configuration of this repository is larger than 1 MB.", "The operator can shorten it.")
        entries: list[config.Entry] = []
        if now is not None:
            try:
                entries = _entries(self._plain(["config", "--file", path, "--no-includes", "--list", "-z"]))
            except Failed:
                raise Refused(
                    "The configuration of this repository can't be read (`config`).", "The operator can mend it."
                ) from None
        shadow.entries = config.allowed(entries)
        bare = [("core.bare", "false" if layout.work_tree else "true")]
        text = config.written([*self._own, *shadow.entries, *config.HARDENED.items(), *bare])
        with open(os.path.join(shadow.folder, "config.new"), "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        os.replace(os.path.join(shadow.folder, "config.new"), os.path.join(shadow.folder, "config"))
        shadow.configured = now

    def _check_index(self, shadow: _Shadow, layout: Layout, environment: Mapping[str, str]) -> None:
        """Return if all names in the index lie in the work tree: git checks them when they come in, not when it reads.

        Raises:
            Refused: one of them leads out, so that a diff would show what is there.
        """
        now = _signature(os.path.join(layout.git_dir, "index"))
        if now is None or now == shadow.index:
            return
        try:
            listed = subprocess.run(
                [self.program, "ls-files", "-z", "--cached"],
                cwd=layout.work_tree,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_INDEX_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Unavailable("The index of this repository takes too long to read.", "Call again later.") from None
        names = listed.stdout if sys.platform != "win32" else listed.stdout.replace(b"\\", b"/").replace(b":", b"/..")
        if listed.returncode == 0 and _BAD_INDEX.search(names):
            raise Refused(
                "The `index` of this repository names files outside of it.", "`git read-tree HEAD` renews it."
            )
        shadow.index = now


def _entries(listed: bytes) -> list[config.Entry]:
    found: list[config.Entry] = []
    for item in listed.decode("utf-8", "surrogateescape").split("\0")[:-1]:
        key, line_end, value = item.partition("\n")
        found.append((key, value if line_end else "true"))
    return found


def _signature(path: str) -> _Signature | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns


def _link_on_windows(target: str, place: str) -> None:
    """A junction, which needs no right; of a file a copy, which is renewed before each run."""
    if os.path.isdir(target):
        if not os.path.lexists(place):
            import _winapi

            _winapi.CreateJunction(target, place)  # pyright: ignore
    elif os.path.isfile(target):
        shutil.copy2(target, place)
    elif os.path.isfile(place):
        os.unlink(place)
