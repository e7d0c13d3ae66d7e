"""Where a user's files are, including the configuration file of each host."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
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
        """The places of the user who runs this process."""
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
        """A file of a desktop program, in the system's folder for such files."""
        if self.platform == "win32":
            return self.roaming.joinpath(*names)
        if self.platform == "darwin":
            return self.home.joinpath("Library", "Application Support", *names)
        return self.config.joinpath(*names)

    def _packaged(self, package: str) -> Path | None:
        """Where Windows keeps what a program that was installed as a package (MSIX) takes for `%APPDATA%\\NAME`."""
        if self.platform != "win32":
            return None
        found = sorted(self.local.glob(f"Packages/{package}"))
        return found[0] / "LocalCache" / "Roaming" / package.partition("_")[0] if found else None

    def file(self, host: str) -> Path:
        """The configuration file of `host` for this user.

        Raises:
            Invalid: the host has no file that we can write.
        """
        windows = self.platform == "win32"
        match host:
            case "vscode":
                return self.application("Code", "User", "mcp.json")
            case "claude-desktop":
                return (self._packaged("Claude_*") or self.application("Claude")) / "claude_desktop_config.json"
            case "claude-code":
                return self.home / ".claude.json"
            case "cursor":
                return self.home / ".cursor" / "mcp.json"
            case "windsurf":
                return self.home / ".codeium" / "windsurf" / "mcp_config.json"
            case "copilot-cli":
                return self.home / ".copilot" / "mcp-config.json"
            case "codex":
                return self.home / ".codex" / "config.toml"
            case "gemini-cli":
                return self.home / ".gemini" / "settings.json"
            case "zed":
                return self.roaming / "Zed" / "settings.json" if windows else self.config / "zed" / "settings.json"
            case "goose":
                folder = self.roaming / "Block" / "goose" / "config" if windows else self.config / "goose"
                return folder / "config.yaml"
            case "opencode":
                return self.home / ".config" / "opencode" / "opencode.json"
            case "visual-studio":
                return self.home / ".mcp.json"
            case "lm-studio":
                return self.home / ".lmstudio" / "mcp.json"
            case "cline":
                storage = ("Code", "User", "globalStorage", "saoudrizwan.claude-dev")
                return self.application(*storage, "settings", "cline_mcp_settings.json")
            case "continue":
                return self.home / ".continue" / "mcpServers" / "mcp.json"
            case _:
                raise Invalid(
                    f"{host} has no configuration file for servers.",
                    f"Import what --print-config {host} prints, in its settings.",
                )
