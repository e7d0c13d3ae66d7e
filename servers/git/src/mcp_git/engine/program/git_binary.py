"""The `git` of this machine, a folder for our files that it reads, and the relevant part of the user's
configuration."""

from __future__ import annotations

import logging
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property

from mcp_batteries.errors import Problem, Unavailable, quote
from mcp_batteries.executables import NO_WINDOW, find_executable
from mcp_batteries.processes.confinement import Confinement
from mcp_batteries.processes.sandbox import NoSandbox, find_sandbox
from mcp_batteries.scratch import Scratch
from mcp_git import git_config
from mcp_git.engine.program.confinement import Confinements, choose_program, prove
from mcp_git.repository_paths import is_inside_any

__all__ = ["GitBinary", "GitFailed", "missing_contents"]

logger = logging.getLogger(__name__)

# The first that can leave out the user's configuration (GIT_CONFIG_GLOBAL).
_OLDEST_VERSION = (2, 32)
PASSED_VARIABLES = (
    "SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "TEMP", "TMP", "TMPDIR", "TZ",
    # Who commits, where the environment says so: it counts before every configuration.
    "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
)  # fmt: skip
# What ssh, the user's credential helpers and HTTPS need.
_REMOTE_VARIABLES = (
    "HOME", "USER", "LOGNAME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTPS_PROXY", "NO_PROXY",
    "ALL_PROXY",
)  # fmt: skip


class GitFailed(Problem):
    """Raised when git ends with an error.

    Attributes:
        stderr: what it said.
        is_in_nested_repository: whether a git failed that had entered a repository inside the one at hand.
    """

    def __init__(self, stderr: str, exit_code: int) -> None:
        self.stderr = stderr
        self.exit_code = exit_code
        entered = re.search(r"failed in submodule (.+?)'?$", stderr, re.MULTILINE)
        self.is_in_nested_repository = entered is not None
        if entered:
            # What it says of programs names paths outside.
            super().__init__(
                f"Git does not get through {quote(entered[1])}, a repository inside this one: it runs no program that "
                "the configuration there names, and reads nothing outside.",
                "Use `git` itself for changes around it.",
            )
            return
        # Advice and warnings come first where there are any, such as that grafts are deprecated.
        message = re.search(r"(?m)^(?:fatal|error): (.*)", stderr) or re.search(
            r"(?m)^(?!hint:|warning:)(.*\S)", stderr
        )
        words = message[1] if message else f"it ended with {exit_code}"
        super().__init__(f"git: `{words[:300]}`.", "")


def missing_contents() -> Unavailable:
    """Return the problem of a partial clone in which an object is missing."""
    return Unavailable(
        "This is a partial clone, and contents that this needs are not here.",
        "Names, dates and messages are. `run_fetch` with `contents` gets them, if the server runs with --fetch.",
    )


class GitBinary:
    """Git as it is installed here; every method blocks.

    Attributes:
        served_paths: the real paths of all that is served.
        why_unconfined: why nothing confines git here, if so.
    """

    def __init__(self, served_paths: Sequence[str]) -> None:
        self.served_paths = served_paths
        self._scratch = Scratch("mcp-git")
        self.why_unconfined = ""

    @cached_property
    def scratch_folder(self) -> str:
        """A private folder, made when it is needed, that goes away with the process."""
        path = self._scratch.path
        os.mkdir(os.path.join(path, "nowhere"))
        return path

    def renew_scratch_folder(self) -> None:
        """Have another private folder made: a system may clean up what was not used for days."""
        self._scratch.renew()
        for name in ("scratch_folder", "environment", "_remote_configuration_file"):
            self.__dict__.pop(name, None)

    @cached_property
    def program(self) -> str:
        """The absolute path of a git that is new enough, and not one that a served repository brings along.

        Raises:
            Unavailable: there is none.
        """
        found = self.find()
        self.program = found
        try:
            known = self.version >= _OLDEST_VERSION
        except GitFailed:
            known = False
        if not known:
            del self.program
            raise Unavailable("This `git` is older than 2.32.", "The operator can install a newer one.")
        if self.confinements is not None:
            self.program = self.confinements.program
        return self.program

    @cached_property
    def version(self) -> tuple[int, int]:
        """The first two numbers of it."""
        match = re.search(r"(\d+)\.(\d+)", self.run_without_repository(["version"]).decode("utf-8", "replace"))
        return (int(match[1]), int(match[2])) if match else (0, 0)

    def find(self) -> str:
        """Return where git is, whatever its version.

        Raises:
            Unavailable: there is none.
        """
        if program := find_executable("git", self._path.split(os.pathsep)):
            return program
        raise Unavailable("The program `git` was not found.", "The operator can install it: https://git-scm.com.")

    @cached_property
    def _path(self) -> str:
        """The folders of programs, without those that are served."""
        folders = filter(os.path.isabs, os.environ.get("PATH", os.defpath).split(os.pathsep))
        return os.pathsep.join(
            folder for folder in folders if not is_inside_any(os.path.realpath(folder), self.served_paths)
        )

    # What confines it

    @cached_property
    def confinements(self) -> Confinements | None:
        """What each git may do, enforced by the kernel; None where nothing does that, as `why_unconfined` says."""
        try:
            sandbox = find_sandbox()
            exec_path = os.fsdecode(self.run_without_repository(["--exec-path"]).rstrip(b"\n"))
            confinements = Confinements(choose_program(self.program, exec_path), exec_path, self.served_paths)
            prove(sandbox, confinements, self.environment)
        except NoSandbox as problem:
            self.why_unconfined = str(problem)
        except GitFailed:
            self.why_unconfined = "this git does not say where its programs are"
        else:
            return confinements
        logger.info("Git runs without a sandbox, so less is served: %s", self.why_unconfined)
        return None

    def run(
        self, arguments: Sequence[str], folder: str, environment: Mapping[str, str], seconds: float,
        confinement: Confinement | None,
    ) -> subprocess.CompletedProcess[bytes]:  # fmt: skip
        """Run git to its end.

        Args:
            confinement: what it may do; None where it works on nothing of a repository.

        Raises:
            TimeoutExpired: it took longer than so many seconds.
        """

        def spawn(words: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
            return subprocess.run(
                words,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=seconds,
                check=False,
                creationflags=NO_WINDOW,
            )

        command = [self.program, *arguments]
        return spawn(command) if confinement is None else find_sandbox().start(confinement, command, spawn)

    def run_without_repository(self, arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> bytes:
        """Run git where there is no repository.

        Raises:
            GitFailed: it ended with an error.
        """
        return self._plain(arguments, environment, None)

    def expand_path(self, value: str, folder: str) -> str:
        """Return the path that a setting names for a git that runs in a folder; empty where it is one to be ignored.

        Git itself says so, as its versions know different beginnings of a path.
        """
        arguments = ["config", "--file", os.devnull, "--type=path", "--default", value, "--get", "a.path"]
        result = self.run(arguments, folder, {**self.environment, "GIT_DIR": self.scratch_folder}, 10, None)
        return os.fsdecode(result.stdout.removesuffix(b"\n"))

    def run_config(self, arguments: Sequence[str], path: str, *, writes: bool = False) -> bytes:
        """Run `git config` with words for the file at `path`.

        Raises:
            GitFailed: it ended with an error.
        """
        confinement = None
        if self.confinements is not None:
            # Git writes another file beside it, which then takes its place.
            writable = [os.path.dirname(path)] if writes else []
            nowhere = os.path.join(self.scratch_folder, "nowhere")
            confinement = self.confinements.plain([path, nowhere], writable)
        return self._plain(["config", "--file", path, *arguments], None, confinement)

    def _plain(
        self, arguments: Sequence[str], environment: Mapping[str, str] | None, confinement: Confinement | None
    ) -> bytes:
        nowhere = os.path.join(self.scratch_folder, "nowhere")
        result = self.run(arguments, nowhere, environment or {**self.environment, "GIT_DIR": nowhere}, 10, confinement)
        if result.returncode:
            raise GitFailed(result.stderr.decode("utf-8", "replace"), result.returncode)
        return result.stdout

    # What of the user's own reaches git

    @cached_property
    def user_configuration(self) -> list[git_config.Entry]:
        """The configuration of the one who started the server, which no repository can write."""
        entries: list[git_config.Entry] = []
        environment = {**os.environ, "GIT_DIR": os.path.join(self.scratch_folder, "nowhere"), "PATH": self._path}
        for scope in ("--system", "--global"):
            with suppress(GitFailed):
                entries += git_config.parse_entries(
                    self.run_without_repository(["config", scope, "--includes", "--list", "-z"], environment)
                )
        return entries

    @cached_property
    def environment(self) -> dict[str, str]:
        """All that git finds in its environment whatever it does; nothing is passed on unseen."""
        return {
            **{name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ},
            "PATH": self._path,
            "HOME": self.scratch_folder,
            "XDG_CONFIG_HOME": self.scratch_folder,
            "LC_CTYPE": "C.UTF-8",
            "GIT_FLUSH": "0",
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

    def remote_environment(self, protocol: str, entries: Sequence[git_config.Entry]) -> dict[str, str]:
        """Return what is added to the environment of a run that talks to a remote by `protocol`.

        Who the user is to that remote is the user's own affair: their credential helpers, their ssh with its agent,
        their proxies and certificates. Nobody can be asked for a password.

        Args:
            entries: configuration for this run alone.
        """
        ssh = dict(self.user_configuration).get("core.sshcommand", "ssh -o BatchMode=yes")
        environment = {
            **{name: os.environ[name] for name in _REMOTE_VARIABLES if name in os.environ},
            "GIT_CONFIG_GLOBAL": self._remote_configuration_file,
            "GIT_ALLOW_PROTOCOL": protocol,
            "GIT_SSH_COMMAND": ssh,
            "GIT_ASKPASS": "",
            "GCM_INTERACTIVE": "never",
            # Objects are missing only in a partial clone, and this remote has them.
            "GIT_NO_LAZY_FETCH": "0",
        }
        return environment | git_config.format_environment(entries)

    @cached_property
    def _remote_configuration_file(self) -> str:
        path = os.path.join(self.scratch_folder, "afar")
        entries = [*git_config.filter_remote_user_entries(self.user_configuration), ("safe.directory", "*")]
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(git_config.format_entries(entries))
        return path
