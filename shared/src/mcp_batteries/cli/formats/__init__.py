"""Editors for the configuration files of hosts: one module a format.

Each editor changes the text of one value and leaves every other byte as it is. Libraries that write whole files do not:
tomlkit removes the comments before the next table with a table, and ruamel.yaml indents and spaces a file anew.
"""

from __future__ import annotations

from mcp_batteries.cli.formats.base import ConfigFormat, Malformed
from mcp_batteries.cli.formats.jsonc import Jsonc
from mcp_batteries.cli.formats.toml import Toml
from mcp_batteries.cli.formats.yaml import Yaml
from mcp_batteries.hosts.definition import load_host

__all__ = ["ConfigFormat", "Malformed", "format_of"]


def format_of(host: str) -> ConfigFormat:
    """Return the editor for the file of `host`, which reads as strictly as the host."""
    form = load_host(host).format
    match form.language:
        case "toml":
            return Toml()
        case "yaml":
            return Yaml()
        case "json":
            return Jsonc(allows_comments=form.comments, allows_trailing_commas=form.trailing_commas)
