"""Modules out of one file, for the Python that runs under Wine: there each file that is opened takes milliseconds.

`leg.py` installs this as `sitecustomize` and runs it once with names of packages: what they import, compiled from the
files that are installed, goes into `modules.bin`. Paths, sources and data of a module stay where they are. Without it
a server starts in three times the time, and most of what a test that starts one takes is its imports.
"""

import marshal
import mmap
import sys
from collections.abc import Container
from contextlib import suppress
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType

KEPT = __file__.rpartition("\\")[0] + r"\modules.bin"


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        start, end, *_ = _index[fullname]
        return marshal.loads(_kept[start:end])


class _Finder:
    @staticmethod
    def find_spec(name: str, path: Container[str] | None = None, _target: object = None) -> ModuleSpec | None:
        if name not in _index:
            return None
        *_, file, package = _index[name]
        if (package or file).rpartition("\\")[0] not in (sys.path if path is None else path):
            return None  # the same name, but somewhere else
        spec = ModuleSpec(name, _Loader(name, file), origin=file, is_package=bool(package))
        if package:
            spec.submodule_search_locations = [package]
        spec.has_location = True
        return spec


def write(names: list[str]) -> None:
    """Keep what `names` import; of ours also what is imported later, or only by a test."""
    import importlib
    import pkgutil

    for name in names:
        package = importlib.import_module(name)
        for part in pkgutil.walk_packages(package.__path__, f"{name}.") if name.startswith("mcp_") else ():
            if not part.name.endswith("__main__"):
                with suppress(ImportError, AttributeError):  # what is for other systems
                    importlib.import_module(part.name)
    index: dict[str, tuple[int, int, str, str]] = {}
    code = bytearray()
    for name, module in sorted(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        if spec is None or spec.name != name or type(spec.loader).__name__ not in ("SourceFileLoader", "zipimporter"):
            continue
        package = (spec.submodule_search_locations or [""])[0]
        start = len(code)
        code += marshal.dumps(spec.loader.get_code(name))
        index[name] = (start, len(code), spec.origin, package)
    head = marshal.dumps(index)
    with open(KEPT, "wb") as file:
        file.write(len(head).to_bytes(8) + head + code)


_index: dict[str, tuple[int, int, str, str]] = {}
with suppress(FileNotFoundError), open(KEPT, "rb") as _file:
    _kept = memoryview(mmap.mmap(_file.fileno(), 0, access=mmap.ACCESS_READ))
    _start = 8 + int.from_bytes(_kept[:8])
    _index = marshal.loads(_kept[8:_start])
    _kept = _kept[_start:]
    sys.meta_path.insert(2, _Finder)  # behind what is built in and frozen, before what looks at folders

if __name__ == "__main__":
    write(sys.argv[1:])
