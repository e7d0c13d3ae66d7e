"""The `git` of this machine, a folder for our files that it reads, and the relevant part of the user's
configuration."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property

from mcp_batteries.errors import Problem, Unavailable
from mcp_batteries.executables import NO_WINDOW, find_executable
from mcp_batteries.scratch import Scratch
from mcp_git import config
from mcp_git.layout import is_inside
from mcp_git.policy import Policy

__all__ = ["Failed", "Installed"]

_OLDEST = (2, 32)
"""The first that can leave out the user's configuration (GIT_CONFIG_GLOBAL)."""
KEPT = ("SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "TEMP", "TMP", "TMPDIR")
_KEPT_AFAR = (
    "HOME", "USER", "LOGNAME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTPS_PROXY", "NO_PROXY",
    "ALL_PROXY",
)  # fmt: skip
"""What ssh, the user's credential helpers and HTTPS need."""


class Failed(Problem):
    """Raised when git ends with an error; `said` is what it said."""

    def __init__(self, said: str, code: int) -> None:
        self.said, self.code = said, code
        # Advice and warnings come first where there are any, such as that grafts are deprecated.
        found = re.search(r"(?m)^(?:fatal|error): (.*)", said) or re.search(r"(?m)^(?!hint:|warning:)(.*\S)", said)
        words = found[1] if found else f"it ended with {code}"
        super().__init__(f"git: `{words[:300]}`.", "")


class Installed:
    """Git as it is installed here; every method blocks."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._scratch = Scratch("mcp-git")

    @cached_property
    def scratch(self) -> str:
        """A private folder, made when it is needed, that goes away with the process."""
        path = self._scratch.path
        os.mkdir(os.path.join(path, "nowhere"))
        return path

    def renew(self) -> None:
        """Have another private folder made: a system may clean up what was not used for days."""
        self._scratch.renew()
        for name in ("scratch", "common", "_configuration_afar"):
            self.__dict__.pop(name, None)

    @cached_property
    def program(self) -> str:
        """The absolute path of a git that is new enough, and not one that a served repository brings along.

        Raises:
            Unavailable: there is none.
        """
        found = self.found()
        self.program = found
        try:
            known = self.version >= _OLDEST
        except Failed:
            known = False
        if not known:
            del self.program
            raise Unavailable("This `git` is older than 2.32.", "The operator can install a newer one.")
        return found

    @cached_property
    def version(self) -> tuple[int, int]:
        """The first two numbers of it."""
        found = re.search(r"(\d+)\.(\d+)", self.plain(["version"]).decode("utf-8", "replace"))
        return (int(found[1]), int(found[2])) if found else (0, 0)

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

    def plain(self, words: Sequence[str], environment: Mapping[str, str] | None = None) -> bytes:
        """Run git where there is no repository.

        Raises:
            Failed: it ended with an error.
        """
        nowhere = os.path.join(self.scratch, "nowhere")
        made = subprocess.run(
            [self.program, *words],
            cwd=nowhere,
            env=environment or {**self.common, "GIT_DIR": nowhere},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10,
            check=False,
            creationflags=NO_WINDOW,
        )
        if made.returncode:
            raise Failed(made.stderr.decode("utf-8", "replace"), made.returncode)
        return made.stdout

    # What of the user's own reaches git

    @cached_property
    def users(self) -> list[config.Entry]:
        """The configuration of the one who started the server, which no repository can write."""
        entries: list[config.Entry] = []
        environment = {**os.environ, "GIT_DIR": os.path.join(self.scratch, "nowhere"), "PATH": self._path}
        for scope in ("--system", "--global"):
            with suppress(Failed):
                entries += config.entries(self.plain(["config", scope, "--includes", "--list", "-z"], environment))
        return entries

    @cached_property
    def own(self) -> list[config.Entry]:
        """What of that matters everywhere, with the ignored names that have no key."""
        found = dict(config.own(self.users))
        usual = os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "git", "ignore")
        ignored = os.path.expanduser(found.get("core.excludesfile", usual))
        found["core.excludesfile"] = ignored if os.path.isfile(ignored) else os.devnull
        return list(found.items())

    @cached_property
    def common(self) -> dict[str, str]:
        """All that git finds in its environment whatever it does; nothing is passed on unseen."""
        return {
            **{name: os.environ[name] for name in KEPT if name in os.environ},
            "PATH": self._path,
            "HOME": self.scratch,
            "XDG_CONFIG_HOME": self.scratch,
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

    def afar(self, protocol: str, entries: Sequence[config.Entry]) -> dict[str, str]:
        """What is added to the environment of a run that talks to a remote by `protocol`.

        Who the user is to that remote is the user's own affair: their credential helpers, their ssh with its agent,
        their proxies and certificates. Nobody can be asked for a password.

        Args:
            entries: configuration for this run alone.
        """
        ssh = dict(self.users).get("core.sshcommand", "ssh -o BatchMode=yes")
        found = {
            **{name: os.environ[name] for name in _KEPT_AFAR if name in os.environ},
            "GIT_CONFIG_GLOBAL": self._configuration_afar,
            "GIT_ALLOW_PROTOCOL": protocol,
            "GIT_SSH_COMMAND": ssh,
            "GIT_ASKPASS": "",
            "GCM_INTERACTIVE": "never",
            "GIT_CONFIG_COUNT": str(len(entries)),
        }
        for number, (key, value) in enumerate(entries):
            found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return found

    @cached_property
    def _configuration_afar(self) -> str:
        path = os.path.join(self.scratch, "afar")
        entries = [*config.own_afar(self.users), ("safe.directory", "*")]
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(config.written(entries))
        return path
