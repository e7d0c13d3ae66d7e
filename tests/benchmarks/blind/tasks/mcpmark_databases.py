"""Tasks of MCPMark on PostgreSQL, where the server's role is a superuser as there."""

import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from beside_shell import Place

from blind.mcpmark import Variables, data_folder, find_tasks, name_of, read_text, run_script, verify_with
from blind.task import Task
from postgres.serving import Base, cluster, make


def _data_of(task: Path) -> Path:
    return data_folder() / "databases" / f"{task.parent.name}.sql"


def _script_of(task: Path) -> Path:
    return task / "prepare_environment.py"


def _make(task: Path, folder: Path) -> Place:
    base = make("")
    connection = _connection_of(base)
    if _script_of(task).is_file():
        run_script(_script_of(task), _for_scripts(connection)).check_returncode()
    else:
        psql = ["psql", "--quiet", "--file", str(_data_of(task))]
        # Dumps name roles that are not here.
        subprocess.run(psql, env={**os.environ, **connection}, capture_output=True, check=True)
    base.run("ANALYZE")
    served = folder / "data"
    served.mkdir()
    command = [sys.executable, "-m", "mcp_postgres", "--write", "--ddl", "--admin", base.url("postgres")]
    return Place(served, {"postgres": command}, {"XDG_STATE_HOME": str(folder / "state"), **connection})


def _connection_of(base: Base) -> dict[str, str]:
    running = cluster()
    return {
        "PGHOST": "127.0.0.1",
        "PGPORT": str(running.wait_until_ready()),
        "PGUSER": "postgres",
        "PGPASSWORD": running.password,
        "PGDATABASE": base.name,
    }


def _for_scripts(connection: Variables) -> Variables:
    names = {
        "PGHOST": "HOST",
        "PGPORT": "PORT",
        "PGUSER": "USERNAME",
        "PGPASSWORD": "PASSWORD",
        "PGDATABASE": "DATABASE",
    }
    return {f"POSTGRES_{theirs}": connection[ours] for ours, theirs in names.items()}


def _variables(place: Place) -> Variables:
    return _for_scripts(place.variables)


TASKS: Sequence[Task] = [
    Task(name_of(task), read_text(task), partial(_make, task), verify_with(task, _variables))
    for task in find_tasks("postgres")
    if _data_of(task).is_file() or _script_of(task).is_file()
]
