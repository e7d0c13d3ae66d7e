"""Compile what these packages import, the standard library's part too: `python compiled.py mcp-fs`.

Compiling everything that is installed would add some 30 MB that no server reads.
"""

import importlib
import importlib.util
import os
import pkgutil
import py_compile
import sys


def imported(package: str) -> None:
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        if ".testing" not in module.name and not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ImportError:  # what needs an extra that this image leaves out
                continue


for name in sys.argv[1:]:
    imported(name.replace("-", "_"))
for module in list(sys.modules.values()):
    source = getattr(module, "__file__", None) or ""
    # What an earlier layer compiled stays: a file written again would be in two layers.
    if source.endswith(".py") and not os.path.exists(importlib.util.cache_from_source(source)):
        # Times of files are not kept by every builder; a layer is never edited.
        py_compile.compile(source, doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
