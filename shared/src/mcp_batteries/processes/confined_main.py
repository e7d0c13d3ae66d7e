"""The side of the child in `python_child`. It imports little, since each process pays for that."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from mcp_batteries.processes.confinement import Confinement
from mcp_batteries.processes.landlock import OLDEST_ABI, Landlock, landlock_abi
from mcp_batteries.processes.seccomp import forbid_sockets

__all__ = ["run_confined"]


def run_confined(module: str, readable: Sequence[str], writable: Sequence[str]) -> None:
    """Import a module, confine this process as far as the system can, and call the module's `main`.

    Raises:
        OSError: The kernel offers confinement, and refuses it to this process.
    """
    main = import_module(module).main
    if sys.platform == "linux":
        abi = landlock_abi()
        if abi >= OLDEST_ABI:
            # Parquet limits its memory by what the process has of it already.
            own_memory = os.path.realpath("/proc/self/statm")
            # No program may be executed.
            confinement = Confinement(frozenset(), frozenset([*readable, own_memory]), frozenset(writable))
            Landlock(abi).confine_thread(confinement)
        forbid_sockets()
    main()
