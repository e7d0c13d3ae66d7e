"""A picture of what a command really prints in a terminal: `python -m mcp_batteries.testing.picture FILE WORDS...`.

The command runs now; its output, colours and all, becomes an SVG without anything fetched from elsewhere.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

__all__ = ["picture"]

_COLUMNS = 110


def picture(words: list[str], title: str) -> str:
    """The SVG of a terminal after `words`.

    Raises:
        subprocess.CalledProcessError: the command failed.
    """
    environment = {**os.environ, "COLUMNS": str(_COLUMNS), "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    console = Console(record=True, width=_COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ {title}", style="bold"))
    console.print(Text.from_ansi(done.stdout.rstrip()))
    svg = console.export_svg(title=title)
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


def _main(target: str, title: str, *words: str) -> None:
    Path(target).write_text(picture(list(words) or shlex.split(title), title), "utf-8")


if __name__ == "__main__":
    _main(*sys.argv[1:])
