"""How the process of a git is started and waited for."""

import os
import sys
from pathlib import Path

import pytest

from git_server.made import GIT
from mcp_git.engine.program.process import Command, open_unnamed_file, start


@pytest.mark.skipif(sys.platform == "win32", reason="there is no status that somebody else could take")
def test_an_end_that_nobody_learns_is_a_failure(tmp_path: Path) -> None:
    with open_unnamed_file(str(tmp_path)) as said:
        process = start(Command(GIT, ["version"], str(tmp_path), {}), stdin=None, stderr=said, new_session=False)
        assert process.stdout is not None and process.stdout.read(4) == b"git "
        os.waitpid(process.pid, 0)
        process.stdout.close()
        assert process.wait() not in (0, 1, 128)
