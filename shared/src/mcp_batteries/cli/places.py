"""Where a user's files are, including the configuration file of each host."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mcp_batteries.errors import Invalid
from mcp_batteries.user_folders import notes_folder

__all__ = ["Places"]


@dataclass(frozen=True)
class Places:
    """Where a user's files are on one machine.

    Attributes:
        platform: a value of `sys.platform`.
        roaming, local: `%APPDATA%` and `%LOCALAPPDATA%` on Windows.
        notes: the folder for notes on what was installed.
    """

    home: Path
    platform: str
    config: Path
    roaming: Path
    local: Path
    notes: Path

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
        )

    def application(self, *names: str) -> Path:
        """Return a file of a desktop program, in the system's folder for such files."""
        if self.platform == "win32":
            return self.roaming.joinpath(*names)
        if self.platform == "darwin":
            return self.home.joinpath("Library", "Application Support", *names)
        return self.config.joinpath(*names)

    def _packaged(self, package: str) -> Path | None:
        """Return where Windows keeps what a program that was installed as a package (MSIX) takes for its folder.

        The program itself sees this folder as `%APPDATA%\\NAME`.
        """
        if self.platform != "win32":
            return None
        folders = sorted(self.local.glob(f"Packages/{package}"))
        if not folders:
            return None
        return folders[0] / "LocalCache" / "Roaming" / package.partition("_")[0]

    def file(self, host: str) -> Path:
        """Return the configuration file of `host` for this user.

        Raises:
            Invalid: the host has no file that we can write.
        """
        if host in _FILES_IN_HOME:
            return self.home.joinpath(*_FILES_IN_HOME[host])
        match host:
            case "vscode":
                return self.application("Code", "User", "mcp.json")
            case "claude-desktop":
                folder = self._packaged("Claude_*") or self.application("Claude")
                return folder / "claude_desktop_config.json"
            case "cline":
                storage = ("Code", "User", "globalStorage", "saoudrizwan.claude-dev")
                return self.application(*storage, "settings", "cline_mcp_settings.json")
            case "zed":
                return self._roaming_or_config(("Zed",), ("zed",)) / "settings.json"
            case "goose":
                return self._roaming_or_config(("Block", "goose", "config"), ("goose",)) / "config.yaml"
            case _:
                raise Invalid(
                    f"{host} has no configuration file for servers.",
                    f"Import what --print-config {host} prints, in its settings.",
                )

    def _roaming_or_config(self, on_windows: Sequence[str], elsewhere: Sequence[str]) -> Path:
        """Return a folder of a program that uses `~/.config` everywhere but on Windows."""
        if self.platform == "win32":
            return self.roaming.joinpath(*on_windows)
        return self.config.joinpath(*elsewhere)


# These hosts have their file in the same place below the home folder on every system.
_FILES_IN_HOME = {
    "claude-code": (".claude.json",),
    "codex": (".codex", "config.toml"),
    "continue": (".continue", "mcpServers", "mcp.json"),
    "copilot-cli": (".copilot", "mcp-config.json"),
    "cursor": (".cursor", "mcp.json"),
    "gemini-cli": (".gemini", "settings.json"),
    "lm-studio": (".lmstudio", "mcp.json"),
    "opencode": (".config", "opencode", "opencode.json"),
    "visual-studio": (".mcp.json",),
    "windsurf": (".codeium", "windsurf", "mcp_config.json"),
}
