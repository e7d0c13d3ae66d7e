"""Repositories made by the `git` of this machine, with nothing of its user's configuration."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

__all__ = ["GIT", "Made"]

GIT = shutil.which("git") or "git"
_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Ada Lovelace"), ("EMAIL", "ada@example.org"), ("DATE", "2026-01-31T12:00:00+00:00"))
}
# Each commit would start two more processes, to see that nothing has to be packed.
_NO_MAINTENANCE = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "maintenance.auto",
    "GIT_CONFIG_VALUE_0": "false",
}


class Made:
    """A repository in a folder, made unless it is there."""

    def __init__(self, path: Path, *words: str) -> None:
        self.path = path
        if not path.exists():
            path.mkdir(parents=True)
            self.git("init", "--quiet", "--initial-branch=main", *words)

    def git(self, *words: str, given: bytes | None = None, **variables: str) -> str:
        """What git prints; plain git, as its user runs it."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.path.parent),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            **_IDENTITY,
            **_NO_MAINTENANCE,
            **variables,
        }
        if "SYSTEMROOT" in os.environ:
            environment["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
        done = subprocess.run([GIT, *words], cwd=self.path, env=environment, input=given, capture_output=True)
        assert done.returncode == 0, (words, done.stderr.decode("utf-8", "replace"))
        return done.stdout.decode("utf-8", "replace")

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def commit(self, subject: str, files: Mapping[str, str | bytes] | None = None) -> str:
        """Commit everything, with these files; its hash."""
        for name, text in (files or {}).items():
            self.write(name, text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", subject)
        return self.git("rev-parse", "HEAD").strip()
