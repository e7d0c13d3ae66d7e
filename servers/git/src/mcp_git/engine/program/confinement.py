"""What each git may do: the confinement that the kernel enforces on it and on everything it starts.

A repository inside a repository has a configuration of its own, which git reads as soon as it enters, and links can lie
at any depth of a git directory. So a git can execute only itself: no shell, no interpreter, no program of anybody. It
reads only its installation and what is served, and writes only the repository at hand.

Git itself needs more for remotes. On this machine it starts its counterpart through the shell. For `ssh` and for
credential helpers it starts the operator's own programs, which lie anywhere but in what is served.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence

from mcp_batteries.executables import NO_WINDOW
from mcp_batteries.processes.confinement import Confinement, everything_but, real_paths
from mcp_batteries.processes.program_files import DEVICES, NAME_FILES, is_elf, program_files
from mcp_batteries.processes.sandbox import NoSandbox, Sandbox
from mcp_git import git_config
from mcp_git.repository_paths import Layout

__all__ = ["Confinements", "choose_program", "prove"]

_SHELL = "/bin/sh"
# On macOS the first only chooses one of the others.
_SHELLS = (_SHELL, "/bin/bash", "/bin/dash", "/bin/zsh") if sys.platform == "darwin" else (_SHELL,)
_HELPERS = ("git-remote-http", "git-remote-https")
# What TLS and Kerberos read of the system.
_CERTIFICATES = (
    "/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/usr/share/ca-certificates", "/usr/local/share", "/etc/pkcs11",
    "/etc/crypto-policies", "/etc/gnutls", "/etc/krb5.conf", "/etc/krb5.conf.d", "/etc/gss", "/private/etc/ssl",
)  # fmt: skip
_CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_CREDENTIAL_HELPER = re.compile(r"credential\.(?:.+\.)?helper", re.DOTALL)
_TIMEOUT_SECONDS = 10


class Confinements:
    """Composes what a git may do.

    Args:
        program: The git that is started.
        exec_path: The folder of its programs.
        served_paths: The real paths of all that is served.
    """

    def __init__(self, program: str, exec_path: str, served_paths: Sequence[str]) -> None:
        self.program = program
        self._exec_path = exec_path
        self._served_paths = frozenset(served_paths)
        self._git = program_files([program, os.path.join(exec_path, "git")])
        # What git reads of its installation lies beside its programs.
        self._readable = self._git.readable | real_paths([exec_path, *_installation(program), *NAME_FILES])
        self._devices = real_paths(DEVICES)

    def plain(self, readable: Iterable[str] = (), writable: Iterable[str] = ()) -> Confinement:
        """Return what a git may do that works on no repository, only on given files."""
        return Confinement(
            executable=self._git.executable,
            readable=self._readable | self._devices | frozenset(readable),
            writable=frozenset(writable),
        )

    def local(self, layout: Layout, *, writes: bool, readable: Iterable[str], writable: Iterable[str]) -> Confinement:
        """Return what a git may do that works on a repository.

        Args:
            writes: Whether it writes into the repository.
            readable: Files and folders of ours, or of the operator's, that it reads.
            writable: Folders of ours that it changes.
        """
        parts = _parts(layout)
        writable_paths = frozenset(writable)
        if writes:
            writable_paths |= parts
        return self.plain(self._served_paths | parts | frozenset(readable), writable_paths)

    def signing(self, layout: Layout, scratch: str) -> Confinement:
        """Return what a git may do that has the operator's own program sign what it makes."""
        return self._with_operators_programs(layout, scratch)

    def remote(
        self,
        layout: Layout,
        protocol: str,
        remote_layout: Layout | None,
        users: Sequence[git_config.Entry],
        remote_folders: Sequence[str],
        scratch: str,
    ) -> Confinement:
        """Return what a git may do that talks to a remote.

        Args:
            protocol: That git talks.
            remote_layout: Where the parts of a remote on this machine are.
            users: The operator's own configuration.
            remote_folders: The real paths of the folders that may have remotes.
            scratch: Our private folder.
        """
        if remote_layout is not None:
            return self._to_a_folder(layout, remote_layout, remote_folders, scratch)
        has_helper = any(_CREDENTIAL_HELPER.fullmatch(key) and value for key, value in users)
        if protocol == "ssh" or has_helper:
            return self._with_operators_programs(layout, scratch)
        return self._over_https(layout, users, scratch)

    def _to_a_folder(self, layout: Layout, other: Layout, remote_folders: Sequence[str], scratch: str) -> Confinement:
        local = self.local(layout, writes=True, readable=remote_folders, writable=[scratch, *_parts(other)])
        shell = program_files(_SHELLS)
        return Confinement(
            executable=local.executable | shell.executable,
            readable=local.readable | shell.readable,
            writable=local.writable,
        )

    def _over_https(self, layout: Layout, users: Sequence[git_config.Entry], scratch: str) -> Confinement:
        helpers = program_files(os.path.join(self._exec_path, name) for name in _HELPERS)
        named = [value for key, value in users if key.startswith("http.") and value.startswith(("/", "~"))]
        named += [os.environ[name] for name in _CERTIFICATE_VARIABLES if name in os.environ]
        own = [os.path.expanduser(path) for path in [*named, "~/.netrc"]]
        if sys.platform != "win32":
            own.append(f"/tmp/krb5cc_{os.getuid()}")
        local = self.local(layout, writes=True, readable=real_paths([*_CERTIFICATES, *own]), writable=[scratch])
        return Confinement(
            executable=local.executable | helpers.executable,
            readable=local.readable | helpers.readable,
            writable=local.writable,
            network=True,
        )

    def _with_operators_programs(self, layout: Layout, scratch: str) -> Confinement:
        """Return what ssh, credential helpers and programs that sign need: agents, keys, caches, and programs anywhere.

        The kernel still refuses to execute anything that is served.
        """
        home = os.path.realpath(os.path.expanduser("~"))
        places = [home, tempfile.gettempdir(), os.environ.get("XDG_RUNTIME_DIR", "")]
        writable: set[str] = set()
        for place in real_paths(filter(None, places)):
            writable |= everything_but(self._served_paths, place)
        local = self.local(layout, writes=True, readable=[], writable=[scratch])
        return Confinement(
            executable=local.executable | everything_but(self._served_paths | _parts(layout)),
            readable=frozenset([os.sep]),
            writable=local.writable | writable | real_paths(["/dev/tty"]),
            network=True,
        )


def choose_program(program_on_path: str, exec_path: str) -> str:
    """Return the git to start: the one of its own folder, where what is on the path only leads to it.

    Managers of versions put a script there, and macOS a stub.
    """
    own = os.path.join(exec_path, "git")
    if is_elf(program_on_path) or not os.access(own, os.X_OK):
        return program_on_path
    return own


def prove(sandbox: Sandbox, confinements: Confinements, environment: Mapping[str, str]) -> None:
    """Check that git runs in the sandbox, and a shell does not.

    Raises:
        NoSandbox: The sandbox does not do its work here.
    """
    confinement = confinements.plain()

    def run(words: Sequence[str]) -> subprocess.CompletedProcess[bytes] | None:
        try:
            return subprocess.run(
                words,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TIMEOUT_SECONDS,
                check=False,
                creationflags=NO_WINDOW,
            )
        except PermissionError:
            return None

    try:
        version = sandbox.start(confinement, [confinements.program, "version"], run)
        shell = sandbox.start(confinement, [os.path.realpath(_SHELL), "-c", "exit 0"], run)
    except (OSError, subprocess.SubprocessError) as error:
        raise NoSandbox(f"{sandbox.name} does not work here: {error}") from None
    if version is None or version.returncode != 0:
        raise NoSandbox(f"git does not run in {sandbox.name}")
    if shell is not None and shell.returncode == 0:
        raise NoSandbox(f"{sandbox.name} is not enforced here")


def _parts(layout: Layout) -> frozenset[str]:
    return frozenset(part for part in (layout.work_tree, layout.git_dir, layout.common_dir) if part)


def _installation(program: str) -> Sequence[str]:
    """Return the folders with the texts and templates of a git that is not installed with the system."""
    prefix = os.path.dirname(os.path.dirname(os.path.realpath(program)))
    return [os.path.join(prefix, folder) for folder in ("lib", "lib64", "libexec", "share/git-core", "share/locale")]
