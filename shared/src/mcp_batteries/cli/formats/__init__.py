"""Editors for the configuration files of hosts: one module a format.

Each editor changes the text of one value and leaves every other byte as it is. Libraries that write whole files do not:
tomlkit removes the comments before the next table with a table, and ruamel.yaml indents and spaces a file anew.
"""

from __future__ import annotations

from mcp_batteries.cli.formats.base import ConfigFormat, Malformed
from mcp_batteries.cli.formats.jsonc import Jsonc
from mcp_batteries.cli.formats.toml import Toml
from mcp_batteries.cli.formats.yaml import Yaml

__all__ = ["ConfigFormat", "Malformed", "format_of"]

# These hosts read with `JSON.parse`: one comment or trailing comma makes them lose every server.
_STRICT_JSON = ("claude-desktop", "claude-code", "cline")

# These hosts skip comments, but accept no trailing comma.
_NO_TRAILING_COMMAS = ("gemini-cli", "continue")


def format_of(host: str) -> ConfigFormat:
    """Return the editor for the file of `host`, which reads as strictly as the host.

    Of hosts that say nothing about comments, such as Windsurf, the editor assumes that they take them: it adds none.
    """
    if host == "codex":
        return Toml()
    if host == "goose":
        return Yaml()
    allows_comments = host not in _STRICT_JSON
    allows_trailing_commas = allows_comments and host not in _NO_TRAILING_COMMAS
    return Jsonc(allows_comments=allows_comments, allows_trailing_commas=allows_trailing_commas)
