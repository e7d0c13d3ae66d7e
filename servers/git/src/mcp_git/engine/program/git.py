"""The `git` program, run so that nothing in a repository can make it run anything else or reach outside."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from mcp_batteries.limits import Stop
from mcp_batteries.processes.confinement import Confinement
from mcp_git import git_config
from mcp_git.engine.program.git_binary import Failed, Installed
from mcp_git.engine.program.prespawn import Starter
from mcp_git.engine.program.private_git_dir import Shadow, Shadows
from mcp_git.engine.program.process import Command
from mcp_git.policy import Policy, Repository
from mcp_git.remote_addresses import Address
from mcp_git.repository_paths import Layout, refuse_links_below, refuse_nested_repositories

__all__ = ["Failed", "Git", "Output"]

_MOST_OUTPUT = 64 * 1024 * 1024
_MOST_SAID = 16_000
_DENIED = "ermission denied"
_MATCH_NOTHING = frozenset(
    {"cat-file", "for-each-ref", "log", "ls-files", "ls-tree", "merge-base", "rev-list", "rev-parse", "status"}
)
_PATTERNS = ("--author=", "--grep=", "-G")


@dataclass(frozen=True, slots=True)
class Output:
    """What a run of git printed.

    Attributes:
        cut: whether there was more than was wanted.
        said: what it said beside that, such as how far it is.
    """

    out: bytes
    cut: bool = False
    said: str = ""

    @property
    def text(self) -> str:
        return self.out.decode("utf-8", "replace")


class Git:
    """Runs git; every method blocks.

    Args:
        policy: says where a repository's parts are, before each run.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.installed = Installed(policy)
        self._shadows = Shadows(self.installed)
        self._starter = Starter(self.installed)

    def layout(self, repository: Repository, *, changes: bool = False) -> Layout:
        """Where the parts of a repository are now, looked at before each run.

        Args:
            changes: whether git will write, for which more is looked at.

        Raises:
            Refused: something leads out of it.
            NotFound: it is not a repository now.
        """
        # Where the kernel does not confine git, links are looked for at every depth before each run.
        deep = changes or self.installed.confinements is None
        return self._shadows.settled(self._policy.layout(repository, changes=deep))

    def refuse_to_enter(self, layout: Layout) -> None:
        """Return if a change enters no repository inside this one, or the kernel keeps git inside of it.

        Raises:
            Refused: there is such a repository, whose configuration could have git run anything.
        """
        if self.installed.confinements is None:
            refuse_nested_repositories(layout)

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
        beside: str = "",
    ) -> Output:
        """Run git and return what it prints, its first `most` bytes.

        Args:
            given: what it reads.
            fine: how it may end.
            changes: whether it writes, so that no link may lie where it does.
            literal: whether paths are not patterns; a pattern is never a caller's.
            beside: a folder with an `index` and `objects` that it uses and writes in the place of the repository's, as
                `own_index` makes one.

        Raises:
            Failed: it ended otherwise.
        """
        pieces: list[bytes] = []
        size = 0
        with self.pieces(
            repository, words, stop, given=given, fine=fine, changes=changes, literal=literal, beside=beside
        ) as found:
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
        layout: Layout | None = None,
        beside: str = "",
        remarks: list[str] | None = None,
        again: bool = False,
    ) -> Generator[Generator[bytes]]:
        """Run git for a block that takes what it prints piece by piece, and may leave before its end.

        Args:
            layout: of the repository, if the policy has just told it.
            remarks: gets what git said besides, once all is read.
            again: whether the same words are likely to be run again, so that a git for them is started ahead.

        Raises:
            Failed: it ended otherwise than `fine`, and was read to its end.
        """
        layout = layout or self.layout(repository, changes=changes)
        shadow, environment = self._shadows.environment(layout)
        if _matches_nothing(words, given):
            environment.pop("LC_CTYPE")
        if beside:
            environment |= {"GIT_INDEX_FILE": f"{beside}/index", "GIT_OBJECT_DIRECTORY": f"{beside}/objects"}
            environment["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = git_config.in_quotes(layout.objects)
        if literal and ("--" in words[:-1] or "--stdin" in words):
            # Git hands it on to what it runs itself, such as the `git clean :/` of a stash, so only where paths follow.
            words = ["--literal-pathspecs", *words]
        confinement = self._shadows.confinement(layout, shadow, changes=changes, beside=beside)
        with self._started(layout, shadow, words, environment, confinement, stop, given, fine, again=again) as (
            pieces,
            said,
        ):
            yield pieces
            if remarks is not None:
                remarks.append(said())

    def afar(
        self,
        repository: Repository,
        words: Sequence[str],
        stop: Stop,
        *,
        address: Address,
        entries: Sequence[git_config.Entry],
        hears: Callable[[str], None],
        fine: Iterable[int] = (0,),
    ) -> Output:
        """Run git to talk to a remote at one address, with `entries` as configuration for this run.

        Args:
            hears: is given the latest of what git says meanwhile.

        Raises:
            Failed: it ended otherwise than `fine`.
        """
        layout = self.layout(repository, changes=True)
        shadow, environment = self._shadows.environment(layout)
        environment |= self.installed.afar(address.protocol, entries)
        confinement = None
        if self.installed.confinements is not None:
            confinement = self.installed.confinements.remote(
                layout, address, self.installed.users, self._policy.remote_folders, self.installed.scratch
            )
        with self._started(layout, shadow, words, environment, confinement, stop, b"", fine, hears) as (pieces, said):
            out = b"".join(pieces)
            return Output(out, said=said())

    @contextmanager
    def _started(
        self,
        layout: Layout,
        shadow: Shadow,
        words: Sequence[str],
        environment: Mapping[str, str],
        confinement: Confinement | None,
        stop: Stop,
        given: bytes,
        fine: Iterable[int],
        hears: Callable[[str], None] | None = None,
        again: bool = False,
    ) -> Generator[tuple[Generator[bytes], Callable[[], str]]]:
        scratch, starter = self.installed.scratch, self._starter
        folder = layout.work_tree or layout.git_dir
        command = Command(self.installed.program, words, folder, environment, confinement)
        run = (starter.take(command, given) if again else None) or starter.start(command, given, apart=bool(hears))
        ended = False

        def text() -> str:
            size = run.said.seek(0, 2)
            run.said.seek(max(0, size - _MOST_SAID))
            return _without(run.said.read(_MOST_SAID), shadow, layout, scratch)

        meanwhile = None if hears is None else lambda: hears(text())

        def found() -> Generator[bytes]:
            nonlocal ended, run
            if again:
                starter.prepare(command, fed=bool(given))
            silent = True
            for piece in run.pieces(stop, meanwhile):
                silent = False
                yield piece
            if silent and run.link and run.wait() not in fine:
                # Whatever was the matter, one that was not started ahead tells it.
                run.close()
                run = starter.start(command, given)
                yield from run.pieces(stop)
            ended = True

        try:
            yield found(), text
            if ended and (code := run.wait()) not in fine:
                failure = Failed(text(), code)
                if confinement is not None and _DENIED in failure.said:
                    # What the kernel refused was most likely behind a link.
                    refuse_links_below(layout)
                raise failure
        finally:
            run.close()

    @contextmanager
    def own_index(self, layout: Layout) -> Generator[str]:
        """A folder for `beside` with a copy of the repository's index, and no objects yet.

        Raises:
            FileNotFoundError: it has no index.
        """
        with tempfile.TemporaryDirectory(dir=self.installed.scratch) as folder:
            os.mkdir(os.path.join(folder, "objects"))
            shutil.copy2(os.path.join(layout.git_dir, "index"), os.path.join(folder, "index"))
            yield folder

    def configuration(self, repository: Repository) -> Sequence[git_config.Entry]:
        """What git is told of the repository's configuration."""
        return self._shadow(repository).entries

    def is_partial(self, repository: Repository) -> bool:
        """Whether a repository lacks objects that its remote has."""
        return self._shadow(repository).partial

    def configure(self, repository: Repository, words: Sequence[str]) -> None:
        """Change the repository's own configuration, which git otherwise neither reads nor writes here."""
        layout = self.layout(repository, changes=True)
        self.installed.of_a_file(words, f"{layout.common_dir}/config", changes=True)

    def own_entries(self, repository: Repository, start: str) -> Sequence[git_config.Entry]:
        """What the repository's own configuration has below `start`, by the rest of the key; git is told none of it."""
        layout = self.layout(repository, changes=True)
        listed = self.installed.of_a_file(["--no-includes", "--list", "-z"], f"{layout.common_dir}/config")
        return [(key[len(start) :], value) for key, value in git_config.entries(listed) if key.startswith(start)]

    def served_by(self, layout: Layout, program: str) -> str:
        """The command that serves a repository beside to another git: as little of it is run as of one that is served.

        Args:
            program: `upload-pack` or `receive-pack`.
        """
        import shlex

        _, environment = self._shadows.environment(layout)
        shown = ("GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_SHALLOW_FILE")
        given = [f"{name}={shlex.quote(environment[name])}" for name in shown if name in environment]
        return " ".join([*given, shlex.quote(self.installed.program), program])

    def _shadow(self, repository: Repository) -> Shadow:
        return self._shadows.environment(self.layout(repository))[0]


def _matches_nothing(words: Sequence[str], given: bytes) -> bool:
    """Whether git needs no locale, which takes long to load, as only regular expressions have to do with one."""
    if words[0] not in _MATCH_NOTHING or b"{/" in given:
        return False
    return not any(word.startswith(_PATTERNS) or "{/" in word for word in words)


def _without(said: bytes, shadow: Shadow, layout: Layout, scratch: str) -> str:
    text = said.decode("utf-8", "replace")
    for place in (shadow.folder, layout.git_dir, layout.common_dir, layout.work_tree, scratch):
        text = text.replace(place, ".") if place else text
    return text
