"""Makes an animated picture of what a command really prints: `python -m tools.picture FILE TITLE
[WORDS...]`.

The command runs, and its output becomes an SVG with colours and without external resources. The lines appear one by
one, in a loop; with reduced motion all appear at once.
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
_LINE_SECONDS = 0.7
# All lines stay so long before they begin anew.
_REST_SECONDS = 6.0


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
    return _moving(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL))


def _moving(svg: str) -> str:
    """`svg` with the lines of its terminal appearing one by one."""
    lines = sorted({int(number) for number in re.findall(r'<text [^>]*-line-(\d+)\)"', svg)})
    seconds = len(lines) * _LINE_SECONDS + _REST_SECONDS
    style: list[str] = []
    for at, number in enumerate(lines):
        if at:  # the command itself is there from the beginning
            percent = 100 * at * _LINE_SECONDS / seconds
            hidden = f"0%, {percent:.2f}% {{ opacity: 0 }}"
            visible = f"{percent + 1:.2f}%, 100% {{ opacity: 1 }}"
            style.append(f"@keyframes line-{number} {{ {hidden} {visible} }}")
            style.append(f".line-{number} {{ animation: line-{number} {seconds:.1f}s infinite }}")
    without_motion = "@media (prefers-reduced-motion: reduce) { text { animation: none !important } }"
    svg = re.sub(r'<text class="([^"]*)"([^>]*-line-(\d+)\)")', r'<text class="\1 line-\3"\2', svg)
    return svg.replace("</style>", "\n".join([*style, without_motion, "</style>"]), 1)


def _main(target: str, title: str, *words: str) -> None:
    Path(target).write_text(picture(list(words) or shlex.split(title), title), "utf-8")


if __name__ == "__main__":
    _main(*sys.argv[1:])
