"""Every limit and switch, declared once: flags, environment, help, messages and documentation follow from it.

A server subclasses `Settings` with its own fields; each field's description is one sentence for people. A
flag beats the environment, the environment beats the default. An unknown flag, an unknown variable with the
server's prefix and a value out of range each stop the start with one line that says so.
"""

from __future__ import annotations

from mcp_batteries.settings.command_line import ONLY_OVER_HTTP, load
from mcp_batteries.settings.declared import (
    ALL_HOSTS,
    SETTINGS_URI,
    Dependencies,
    Host,
    InstallQuestion,
    Positional,
    Secret,
    Settings,
    file_variable,
    is_unreplaced,
    mask_passwords,
    passwords,
    placeholder,
    variable,
)
from mcp_batteries.settings.paths import ABSOLUTE, explain_missing_path, to_absolute_path
from mcp_batteries.settings.text_files import open_text

__all__ = [
    "ABSOLUTE",
    "ALL_HOSTS",
    "ONLY_OVER_HTTP",
    "SETTINGS_URI",
    "Dependencies",
    "Host",
    "InstallQuestion",
    "Positional",
    "Secret",
    "Settings",
    "explain_missing_path",
    "file_variable",
    "is_unreplaced",
    "load",
    "mask_passwords",
    "open_text",
    "passwords",
    "placeholder",
    "to_absolute_path",
    "variable",
]
