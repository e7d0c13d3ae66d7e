"""Paths as people write them into a command or the configuration file of a host."""

from __future__ import annotations

import os
import re
import sys

__all__ = ["absolute"]

_VARIABLE = re.compile("%([^%]+)%")


def absolute(path: str) -> str:
    r"""The absolute path of what `path` means, with `~` in it and on Windows `%USERPROFILE%`.

    A shell would replace them, but hosts start servers without one, in folders of their own.
    """
    if sys.platform == "win32":
        # Of `"C:\my folder\"` the last quote arrives too, and no name can hold one.
        path = _VARIABLE.sub(lambda found: os.environ.get(found[1], found[0]), path.removesuffix('"'))
    return os.path.abspath(os.path.expanduser(path))
