"""The `git` program, run so that nothing in a repository can make it run anything else or reach outside."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Literal

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.processes.confinement import Confinement
from mcp_git import git_config
from mcp_git.engine.program.git_binary import GitBinary, GitFailed
from mcp_git.engine.program.operator_programs import OperatorPrograms
from mcp_git.engine.program.output import Output
from mcp_git.engine.program.private_git_dir import FUNCTION_ATTRIBUTES, PrivateGitDir, PrivateGitDirs
from mcp_git.engine.program.process import Command
from mcp_git.engine.program.running_git import GitSlots, RunningGit, start_git
from mcp_git.policy import Policy, Repository
from mcp_git.remote_addresses import Address
from mcp_git.repository_paths import Layout, refuse_links_below, refuse_nested_repositories

__all__ = ["Git", "GitFailed"]

_MAX_OUTPUT_BYTES = 64 * 1024 * 1024
_MAX_STDERR_BYTES = 16_000
_POLL_SECONDS = 0.05
# Of a git that packs or unpacks what a remote gets or has, or runs other programs.
_MAX_REMOTE_MEMORY_BYTES = 4 * 1024**3
_DENIED = "ermission denied"
_COMMANDS_WITHOUT_PATTERNS = frozenset(
    {"cat-file", "for-each-ref", "log", "ls-files", "ls-tree", "merge-base", "rev-list", "rev-parse", "status"}
)
# With which the path of a setting begins where git has a folder of its own in mind, or one that need not be there.
_SIGNS_OF_PATHS = ("%(", ":(")
_PATTERN_OPTIONS = ("--author=", "--grep=", "-G")


class Git:
    """Runs git; every method blocks.

    Args:
        policy: says where a repository's parts are, before each run.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.binary = GitBinary(policy.served_paths)
        self.programs = OperatorPrograms(policy.runs_hooks, policy.signs)
        self._private_git_dirs = PrivateGitDirs(self.binary)
        self._slots = GitSlots()

    def layout(self, repository: Repository, *, writes: bool = False) -> Layout:
        """Return where the parts of a repository are now, looked at before each run.

        Args:
            writes: whether git will write, for which more is looked at.

        Raises:
            Refused: something leads out of it.
            NotFound: it is not a repository now.
        """
        # Where the kernel does not confine git, links are looked for at every depth before each run.
        deep = writes or self.binary.confinements is None
        return self._private_git_dirs.apply_configured_work_tree(self._policy.layout(repository, writes=deep))

    def refuse_to_enter(self, layout: Layout, command: str) -> None:
        """Check that a change enters no repository inside this one, or the kernel keeps git inside of it.

        A git that signs may start the operator's programs, such as a shell to which that repository has given words.

        Raises:
            Refused: there is such a repository, whose configuration could have git run anything.
        """
        private_git_dir, _ = self._private_git_dirs.prepare(layout)
        signs = self._limit_programs(layout, private_git_dir).only_sign(command)
        if signs or self.binary.confinements is None:
            refuse_nested_repositories(layout, signs=signs)

    def run(
        self,
        repository: Repository,
        arguments: Sequence[str],
        cancel: CancelToken,
        *,
        stdin: bytes = b"",
        max_bytes: int = _MAX_OUTPUT_BYTES,
        exit_codes: Iterable[int] = (0,),
        writes: bool = False,
        literal_paths: bool = True,
        scratch_index: str = "",
        common_dir: str = "",
        runs_programs: bool = False,
    ) -> Output:
        """Run git and return what it prints, at most `max_bytes` of it, and what it says besides.

        Args:
            stdin: what it reads.
            exit_codes: how it may end.
            writes: whether it writes, so that no link may lie where it does.
            literal_paths: whether paths are not patterns; one of a caller begins with the `:(glob)` of the policy.
            scratch_index: a folder with an `index` and `objects` that it uses and writes in the place of the
                repository's, as `copy_index` makes one. `git diff` with the work tree writes the index whatever the
                environment says, so it gets one.
            common_dir: a folder in the place of our common directory, as `hide_worktrees` makes one.
            runs_programs: whether it runs the programs that the operator allows.

        Raises:
            GitFailed: it ended otherwise.
        """
        pieces: list[bytes] = []
        remarks: list[str] = []
        size = 0
        with self.stream(
            repository,
            arguments,
            cancel,
            stdin=stdin,
            exit_codes=exit_codes,
            writes=writes,
            literal_paths=literal_paths,
            scratch_index=scratch_index,
            common_dir=common_dir,
            remarks=remarks,
            runs_programs=runs_programs,
        ) as stream:
            for piece in stream:
                pieces.append(piece)
                size += len(piece)
                if size > max_bytes:
                    break
        out = b"".join(pieces)
        return Output(out[:max_bytes], len(out) > max_bytes, "".join(remarks))

    def find_hash(self, repository: Repository, name: str, cancel: CancelToken) -> str:
        """Return the hash of what a name stands for now; empty where it stands for nothing."""
        arguments = ["rev-parse", "--verify", "--quiet", name]
        return self.run(repository, arguments, cancel, exit_codes=(0, 1)).text.strip()

    def find_branch(self, repository: Repository, name: str, cancel: CancelToken) -> str:
        """Return the hash of the commit of a branch; empty for what is none, such as `main~1`."""
        arguments = ["show-ref", "--verify", "--hash", f"refs/heads/{name}"]
        return self.run(repository, arguments, cancel, exit_codes=(0, 1, 128)).text.strip()

    def shorten_ref(
        self, repository: Repository, name: str, folder: Literal["heads", "tags", "remotes"], cancel: CancelToken
    ) -> str:
        """Return the short name of a branch or tag, which lists have as `heads/main` where another ref is `main` too.

        What names no branch or tag like that is returned as it is.
        """
        for prefix in (f"refs/{folder}/", f"{folder}/"):
            if not name.startswith(prefix) or self.find_hash(repository, f"refs/{folder}/{name}", cancel):
                continue
            short_name = name.removeprefix(prefix)
            if self.find_hash(repository, f"refs/{folder}/{short_name}", cancel):
                return short_name
        return name

    @contextmanager
    def stream(
        self,
        repository: Repository,
        arguments: Sequence[str],
        cancel: CancelToken,
        *,
        stdin: bytes = b"",
        exit_codes: Iterable[int] = (0,),
        writes: bool = False,
        literal_paths: bool = True,
        layout: Layout | None = None,
        scratch_index: str = "",
        common_dir: str = "",
        remarks: list[str] | None = None,
        runs_programs: bool = False,
    ) -> Generator[Generator[bytes]]:
        """Run git for a block that takes what it prints piece by piece, and may leave before its end.

        Args:
            layout: of the repository, if the policy has just told it.
            remarks: gets what git said besides, once all is read.
            runs_programs: whether it runs the programs that the operator allows.

        Raises:
            GitFailed: it ended otherwise than `exit_codes`, and was read to its end.
        """
        layout = layout or self.layout(repository, writes=writes)
        invocation = self._prepare(layout, arguments, stdin)
        invocation.writes = writes
        if _needs_no_locale(arguments, stdin):
            invocation.environment.pop("LC_CTYPE")
        if scratch_index:
            invocation.environment |= {
                "GIT_INDEX_FILE": f"{scratch_index}/index",
                "GIT_OBJECT_DIRECTORY": f"{scratch_index}/objects",
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": git_config.quote_value(layout.objects),
            }
        if common_dir:
            invocation.environment["GIT_COMMON_DIR"] = common_dir
        if literal_paths and ("--" in arguments[:-1] or "--stdin" in arguments):
            # Git hands it on to what it runs itself, such as the `git clean :/` of a stash, so only where paths follow.
            invocation.arguments = ["--literal-pathspecs", *arguments]
        invocation.confinement = self._private_git_dirs.confinement(
            layout, invocation.private_git_dir, writes=writes, scratch_folder=scratch_index or common_dir
        )
        if runs_programs:
            self._let_run_programs(invocation)
        with self._slots.hold(cancel) as memory_bytes:
            invocation.memory_bytes = invocation.memory_bytes or memory_bytes
            # One that writes gets time to end, so none is begun for nobody.
            cancel.check()
            with self._start(invocation, cancel, exit_codes) as run:
                yield run.read_stdout()
                if remarks is not None:
                    remarks.append(run.read_stderr())

    def _prepare(self, layout: Layout, arguments: Sequence[str], stdin: bytes) -> _Invocation:
        """Return a run of git that is not confined yet, with its environment."""
        private_git_dir, environment = self._private_git_dirs.prepare(layout)
        return _Invocation(layout, private_git_dir, arguments, environment, stdin)

    def _let_run_programs(self, invocation: _Invocation) -> None:
        """Let a run of git run the programs that the operator allows."""
        layout = invocation.layout
        private_git_dir = invocation.private_git_dir
        programs = self._limit_programs(layout, private_git_dir)
        invocation.arguments = programs.permit(invocation.arguments)
        invocation.environment = self._add_operators_environment(
            programs, layout, private_git_dir, invocation.environment
        )
        invocation.confinement = self._confine_programs(programs, layout)
        # What a hook runs may be of any size.
        invocation.memory_bytes = _MAX_REMOTE_MEMORY_BYTES
        invocation.new_session = True

    def find_programs(self, repository: Repository) -> OperatorPrograms:
        """Return which programs the operator lets a change of a repository run, and it has."""
        layout = self.layout(repository, writes=True)
        return self._limit_programs(layout, self._private_git_dirs.prepare(layout)[0])

    def _limit_programs(self, layout: Layout, private: PrivateGitDir) -> OperatorPrograms:
        return self.programs.limit_to(layout, self._find_hooks_folder(layout, private))

    def _find_hooks_folder(self, layout: Layout, private: PrivateGitDir) -> str:
        """Return the folder of the hooks, as git finds it where hooks may run."""
        entries = [*private.user_configuration.all_entries, *private.own_entries]
        configured = dict(entries).get("core.hookspath")
        if configured is None or not self.programs.hooks:
            return os.path.join(layout.common_dir, "hooks")
        if not configured.startswith(_SIGNS_OF_PATHS):
            return os.path.expanduser(configured)
        path = self.binary.expand_path(configured, layout.work_tree or layout.git_dir)
        return path or os.path.join(layout.common_dir, "hooks")

    def _add_operators_environment(
        self, programs: OperatorPrograms, layout: Layout, private: PrivateGitDir, environment: Mapping[str, str]
    ) -> dict[str, str]:
        """Return an environment with that of the operator around it, whose home their programs need."""
        user = private.user_configuration.all_entries
        own = programs.environment(self._find_hooks_folder(layout, private), user, private.own_entries)
        homes = {name: own[name] for name in ("HOME", "XDG_CONFIG_HOME") if name in own}
        without_homes = {name: value for name, value in environment.items() if name != "XDG_CONFIG_HOME"}
        # Git hands what is to be signed over in a file.
        return {**own, **without_homes, **homes, "TMPDIR": self.binary.scratch_folder}

    def _confine_programs(self, programs: OperatorPrograms, layout: Layout) -> Confinement | None:
        """Return what a git may do that runs the operator's programs; None for hooks, which may do anything."""
        if programs.hooks or self.binary.confinements is None:
            return None
        return self.binary.confinements.signing(layout, self.binary.scratch_folder)

    def run_remote(
        self,
        repository: Repository,
        arguments: Sequence[str],
        cancel: CancelToken,
        *,
        address: Address,
        entries: Sequence[git_config.Entry],
        on_stderr: Callable[[str], None],
        exit_codes: Iterable[int] = (0,),
        stdin: bytes = b"",
    ) -> Output:
        """Run git to talk to a remote at one address, with `entries` as configuration for this run.

        Args:
            on_stderr: is given the latest of what git says meanwhile.
            stdin: what it reads.

        Raises:
            GitFailed: it ended otherwise than `exit_codes`.
        """
        layout = self.layout(repository, writes=True)
        invocation = self._prepare(layout, arguments, stdin)
        invocation.environment |= self.binary.remote_environment(address.protocol, entries)
        invocation.memory_bytes = _MAX_REMOTE_MEMORY_BYTES
        invocation.new_session = True
        if self.binary.confinements is not None:
            invocation.confinement = self.binary.confinements.remote(
                layout,
                address.protocol,
                address.layout,
                self.binary.user_configuration,
                self._policy.remote_folders,
                self.binary.scratch_folder,
            )
        with self._start(invocation, cancel, exit_codes, on_stderr) as run:
            out = b"".join(run.read_stdout())
            return Output(out, stderr=run.read_stderr())

    @contextmanager
    def _start(
        self,
        invocation: _Invocation,
        cancel: CancelToken,
        exit_codes: Iterable[int],
        on_stderr: Callable[[str], None] | None = None,
    ) -> Generator[_Run]:
        layout = invocation.layout
        command = Command(
            self.binary.program,
            invocation.arguments,
            layout.work_tree or layout.git_dir,
            invocation.environment,
            invocation.confinement,
        )
        running = start_git(
            command,
            invocation.stdin,
            self.binary.scratch_folder,
            memory_bytes=invocation.memory_bytes,
            writes=invocation.writes,
            new_session=invocation.new_session,
        )
        hidden_paths = (
            invocation.private_git_dir.folder,
            layout.git_dir,
            layout.common_dir,
            layout.work_tree,
            self.binary.scratch_folder,
        )
        run = _Run(running, cancel, exit_codes, on_stderr, hidden_paths)
        try:
            yield run
            failure = run.find_failure()
            if failure is not None:
                if invocation.confinement is not None and _DENIED in failure.stderr:
                    # What the kernel refused was most likely behind a link.
                    refuse_links_below(layout)
                raise failure
        finally:
            run.running.close()

    @contextmanager
    def copy_index(self, layout: Layout) -> Generator[str]:
        """Make a folder for `scratch_index` with a copy of the repository's index, and no objects yet.

        Raises:
            FileNotFoundError: it has no index.
        """
        with self.make_scratch_index() as folder:
            shutil.copy2(os.path.join(layout.git_dir, "index"), os.path.join(folder, "index"))
            yield folder

    @contextmanager
    def make_scratch_index(self) -> Generator[str]:
        """Make a folder for `scratch_index` without an index or objects."""
        with tempfile.TemporaryDirectory(dir=self.binary.scratch_folder) as folder:
            os.mkdir(os.path.join(folder, "objects"))
            yield folder

    @contextmanager
    def hide_worktrees(self, repository: Repository) -> Generator[str]:
        """Make a folder for `common_dir` in which git finds refs, and neither a HEAD nor worktrees.

        In our common directory `git branch --move` would put a HEAD in the place of the link to it.
        """
        layout = self.layout(repository, writes=True)
        private_git_dir, _ = self._private_git_dirs.prepare(layout)
        with tempfile.TemporaryDirectory(dir=self.binary.scratch_folder) as folder:
            for name in ("refs", "logs", "packed-refs"):
                os.symlink(os.path.join(layout.common_dir, name), os.path.join(folder, name))
            if layout.has_reftable:
                os.symlink(os.path.join(layout.common_dir, "reftable"), os.path.join(folder, "reftable"))
            shutil.copy2(private_git_dir.config_path, os.path.join(folder, "config"))
            yield folder

    def read_allowed_configuration(self, repository: Repository) -> Sequence[git_config.Entry]:
        """Return what git is told of the repository's configuration."""
        return self._private_git_dir(repository).configuration

    def read_unheeded_configuration(self, repository: Repository) -> dict[str, str]:
        """Return the operator's configuration and the repository's over it, of which git is told a part here."""
        private = self._private_git_dir(repository)
        return dict([*private.user_configuration.all_entries, *private.own_entries])

    def find_function_attributes(self, repository: Repository) -> str:
        """Return the path of a file of attributes by which git knows functions in the usual languages."""
        return os.path.join(self._private_git_dir(repository).folder, FUNCTION_ATTRIBUTES)

    def find_user_attributes(self, repository: Repository) -> str:
        """Return the path of the file of attributes that the operator's configuration names for a repository."""
        return self._private_git_dir(repository).user_configuration.attributes_file

    def list_submodules(self, layout: Layout) -> list[str]:
        """Return the submodules that are checked out."""
        private_git_dir, _ = self._private_git_dirs.prepare(layout)
        top = layout.work_tree or ""
        return [path for path in private_git_dir.submodules if os.path.lexists(os.path.join(top, path, ".git"))]

    def describe_disbelieved(self, repository: Repository) -> str:
        """Return which keys of the repository's own configuration could say who commits or what is ignored, and are
        not believed; empty where none is there."""
        keys = git_config.list_disbelieved(self._private_git_dir(repository).own_entries)
        if not keys:
            return ""
        return f"not read here: {', '.join(keys)} of this repository's configuration"

    @contextmanager
    def writable_shallow_file(self, repository: Repository, cancel: CancelToken) -> Generator[None]:
        """Let the gits of a block change which commits are the first ones of a shallow clone, one block at a time.

        Git writes that file in our directory, from where a link leads on, and removes it once nothing is cut.

        Raises:
            WorkCancelled: nobody waits for it any more.
        """
        layout = self.layout(repository, writes=True)
        private_git_dir, _ = self._private_git_dirs.prepare(layout)
        shallow_file = os.path.join(layout.common_dir, "shallow")
        link_path = os.path.join(private_git_dir.folder, "shallow")
        while not private_git_dir.shallow_lock.acquire(timeout=_POLL_SECONDS):
            cancel.check()
        try:
            os.symlink(shallow_file, link_path)
            yield
            if not os.path.lexists(link_path):
                os.unlink(shallow_file)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(link_path)
            private_git_dir.shallow_lock.release()

    def is_partial(self, repository: Repository) -> bool:
        """Whether a repository lacks objects that its remote has."""
        return self._private_git_dir(repository).is_partial

    def configure(self, repository: Repository, words: Sequence[str]) -> None:
        """Change the repository's own configuration, which git otherwise neither reads nor writes here."""
        layout = self.layout(repository, writes=True)
        self.binary.run_config(words, f"{layout.common_dir}/config", writes=True)

    def read_own_entries(self, repository: Repository, start: str) -> Sequence[git_config.Entry]:
        """Return what the repository's own configuration has below `start`, by the rest of the key; git is told none
        of it."""
        layout = self.layout(repository, writes=True)
        output = self.binary.run_config(["--no-includes", "--list", "-z"], f"{layout.common_dir}/config")
        return [(key[len(start) :], value) for key, value in git_config.parse_entries(output) if key.startswith(start)]

    def serving_command(self, layout: Layout, program: str) -> str:
        """Return the command that serves a repository beside to another git: as little of it is run as of one that is
        served.

        Args:
            program: `upload-pack` or `receive-pack`.
        """
        import shlex

        _, environment = self._private_git_dirs.prepare(layout)
        shown = ("GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_SHALLOW_FILE")
        given = [f"{name}={shlex.quote(environment[name])}" for name in shown if name in environment]
        return " ".join([*given, shlex.quote(self.binary.program), program])

    def _private_git_dir(self, repository: Repository) -> PrivateGitDir:
        return self._private_git_dirs.prepare(self.layout(repository))[0]


def _needs_no_locale(arguments: Sequence[str], stdin: bytes) -> bool:
    """Whether git needs no locale, which takes long to load, as only regular expressions have to do with one."""
    if arguments[0] not in _COMMANDS_WITHOUT_PATTERNS or b"{/" in stdin:
        return False
    return not any(argument.startswith(_PATTERN_OPTIONS) or "{/" in argument for argument in arguments)


@dataclass
class _Invocation:
    """A git to start for a repository.

    Attributes:
        environment: all of it.
        stdin: what it reads.
        confinement: what it may do; None where nothing confines it.
        memory_bytes: what it may take.
        new_session: whether it has no terminal where somebody could be asked.
        writes: whether it writes into the repository.
    """

    layout: Layout
    private_git_dir: PrivateGitDir
    arguments: Sequence[str]
    environment: dict[str, str]
    stdin: bytes
    confinement: Confinement | None = None
    memory_bytes: int = 0
    new_session: bool = False
    writes: bool = False


@dataclass
class _Run:
    """One run of git.

    Attributes:
        exit_codes: how it may end.
        on_stderr: is given the latest of what it says meanwhile.
        hidden_paths: those of this machine that what it says may name.
        is_read: whether its output was read to the end.
    """

    running: RunningGit
    cancel: CancelToken
    exit_codes: Iterable[int]
    on_stderr: Callable[[str], None] | None
    hidden_paths: Sequence[str | None]
    is_read: bool = False

    def read_stdout(self) -> Generator[bytes]:
        """Return what git prints, until its end."""
        meanwhile = self._report_stderr if self.on_stderr else None
        yield from self.running.stream(self.cancel, meanwhile)
        self.is_read = True

    def read_stderr(self) -> str:
        """Return the latest of what git said besides, without paths of this machine."""
        stderr = self.running.stderr
        size = stderr.seek(0, os.SEEK_END)
        stderr.seek(max(0, size - _MAX_STDERR_BYTES))
        text = stderr.read(_MAX_STDERR_BYTES).decode("utf-8", "replace")
        for path in filter(None, self.hidden_paths):
            text = text.replace(path, ".")
        return text

    def _report_stderr(self) -> None:
        assert self.on_stderr is not None
        self.on_stderr(self.read_stderr())

    def find_failure(self) -> GitFailed | None:
        """Return how git failed; None if it ended as it may, or was left before its end."""
        if not self.is_read:
            return None
        exit_code = self.running.wait()
        if exit_code in self.exit_codes:
            return None
        return GitFailed(self.read_stderr(), exit_code)
