"""Where a user's files are, including the configuration file of each host."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mcp_batteries.errors import Invalid, quote
from mcp_batteries.hosts import HOST_NAMES
from mcp_batteries.hosts.definition import HostLocation, load_host
from mcp_batteries.user_folders import notes_folder

__all__ = ["Places"]


@dataclass(frozen=True)
class Places:
    """Where a user's files are on one machine.

    Attributes:
        platform: a value of `sys.platform`.
        roaming, local: `%APPDATA%` and `%LOCALAPPDATA%` on Windows.
        notes: the folder for notes on what was installed.
        project: the folder of the project whose own files `--workspace` means; None is the current folder.
        variables: of the environment; some give a host another folder.
    """

    home: Path
    platform: str
    config: Path
    roaming: Path
    local: Path
    notes: Path
    project: Path | None = None
    variables: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def of_this_user(cls, environment: Mapping[str, str] = os.environ) -> Places:
        """Return the places of the user who runs this process."""
        home = Path.home()
        return cls(
            home,
            sys.platform,
            Path(environment.get("XDG_CONFIG_HOME") or home / ".config"),
            Path(environment.get("APPDATA") or home / "AppData" / "Roaming"),
            Path(environment.get("LOCALAPPDATA") or home / "AppData" / "Local"),
            notes_folder(),
            variables=environment,
        )

    def file(self, host: str) -> Path:
        """Return the configuration file of `host` for this user.

        Raises:
            Invalid: the host has no file that we can write, or would look for it somewhere else each time.
        """
        location = load_host(host).location
        if location.folder is not None:
            folder = self.variables.get(location.folder.variable, "").strip()
            if folder.startswith("~"):
                # The hosts look for a folder of this name where they are started, which differs each time.
                raise Invalid(
                    f"{location.folder.variable} is {quote(folder)}, and hosts do not know what `~` means.",
                    "Set it to an absolute path.",
                )
            if folder:
                return Path(os.path.abspath(folder)).joinpath(*location.folder.path.split("/"))
        system_paths = {"win32": location.windows, "darwin": location.macos}
        path = location.path or system_paths.get(self.platform, location.linux)
        if path is None:
            raise Invalid(
                f"{host} has no configuration file for servers.",
                f"Import what --print-config {host} prints, in its settings.",
            )
        if location.windows_package:
            packaged = self._package_folder(location.windows_package)
            if packaged is not None:
                return packaged / path.rpartition("/")[2]
        folder_name, _, relative = path.partition("/")
        folders = {"~": self.home, "%APPDATA%": self.roaming, "$XDG_CONFIG_HOME": self.config}
        return _file_in_use(folders[folder_name].joinpath(*relative.split("/")), location)

    def workspace_file(self, host: str) -> Path:
        """Return the configuration file of `host` in the project.

        Raises:
            Invalid: the host reads none that we know of, or the folder is no project.
        """
        path = load_host(host).location.workspace
        if path is None:
            hosts = [name for name in HOST_NAMES if load_host(name).location.workspace is not None]
            raise Invalid(
                f"{host} reads no file of a project.", f"Leave out --workspace, or name one of {', '.join(hosts)}."
            )
        project = self.project_folder()
        if os.path.realpath(project) == os.path.realpath(self.home):
            raise Invalid(
                "The current folder is your home folder, and --workspace is for a project.",
                "Change into the folder of the project, then try again.",
            )
        return _file_in_use(project.joinpath(*path.split("/")), load_host(host).location)

    def project_folder(self) -> Path:
        """Return the folder of the project.

        Raises:
            Invalid: it is the current folder, which somebody has removed.
        """
        try:
            return self.project or Path.cwd()
        except FileNotFoundError:
            raise Invalid(
                "The current folder does not exist any more, and --workspace is for a project.",
                "Change into the folder of the project, then try again.",
            ) from None

    def _package_folder(self, package: str) -> Path | None:
        """Return where Windows keeps what a program that was installed as a package (MSIX) takes for its folder.

        The program itself sees this folder as `%APPDATA%\\NAME`.
        """
        if self.platform != "win32":
            return None
        folders = sorted(self.local.glob(f"Packages/{package}"))
        if not folders:
            return None
        return folders[0] / "LocalCache" / "Roaming" / package.partition("_")[0]


def _file_in_use(path: Path, location: HostLocation) -> Path:
    """Return the file that a host reads: `path`, or what a person has in its place with the other ending.

    A second file beside that one would hide it, or be hidden by it.
    """
    other = path.with_suffix(".jsonc")
    if location.reads_jsonc and os.path.isfile(other) and not os.path.lexists(path):
        return other
    return path
