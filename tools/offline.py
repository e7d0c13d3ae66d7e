"""Collects what a machine without a network needs: wheels, requirements with hashes, entries for hosts, images.

    uv build --all-packages --out-dir dist
    uv run python -m tools.offline dist offline --for windows --python 3.13

Run it on a machine with a network; the options select the system and Python of the target.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from packaging.markers import Marker

from mcp_batteries.cli.host_entry.text import make_start_entry
from mcp_batteries.hosts import HOST_NAMES
from mcp_batteries.hosts.definition import load_host
from tools.members import Member, members

__all__ = ["LINUX", "SYSTEMS", "System", "collect", "download", "locked"]


class System(NamedTuple):
    """The tags of its wheels, and its values for the markers of requirements."""

    platforms: Sequence[str]
    name: str
    kind: str
    machine: str

    def takes(self, requirement: str, python: str) -> bool:
        """Whether the marker in a line of a requirements file is true for `python` on this system."""
        marker = requirement.partition(" ;")[2].partition(" --hash")[0]
        inside = {"python_version": python, "python_full_version": f"{python}.0", "platform_machine": self.machine}
        inside |= {"sys_platform": self.kind, "platform_system": self.name}
        inside |= {"os_name": "nt" if self.kind == "win32" else "posix", "implementation_name": "cpython"}
        return not marker or Marker(marker).evaluate({**inside, "platform_python_implementation": "CPython"})


def _linux(machine: str) -> System:
    glibc = ("_2_34", "_2_31", "_2_28", "_2_17", "2014", "_2_12", "_2_5")
    return System([f"manylinux{version}_{machine}" for version in glibc], "Linux", "linux", machine)


LINUX = _linux("x86_64")
SYSTEMS = {
    "linux": LINUX,
    "linux-arm64": _linux("aarch64"),
    "macos": System(["macosx_14_0_arm64"], "Darwin", "darwin", "arm64"),
    "windows": System(["win_amd64"], "Windows", "win32", "AMD64"),
}

_FOLDER = {"windows": ("C:\\mcp", "\\Scripts\\{0}.exe"), "": ("/opt/mcp", "/bin/{0}")}
_README = """# {servers}, without a network

For Python {python} on {system}. What is installed is checked by its hash.

    python -m venv {folder}
    {pip} install --no-index --find-links wheels --require-hashes -r mcp-fs.txt

`entries/` has what each host's configuration needs, for that folder; any other folder's comes from the server itself:

    {example} --print-config vscode /path/to/folder
{images}"""
_IMAGES = """
All images, which share most of their layers:

    docker load --input images.tar
"""


def locked(root: Path, *words: str) -> list[str]:
    """The locked requirements of the packages that `words` name for `uv export`, one per line."""
    export = [_uv(), "export", "--quiet", "--frozen", "--no-dev", "--no-emit-workspace", "--no-header", "--no-annotate"]
    requirements = subprocess.run([*export, *words], cwd=root, capture_output=True, text=True, check=True).stdout
    return [" ".join(line.split()) for line in requirements.replace("\\\n", " ").splitlines()]


def download(requirements: Sequence[str], folder: Path, system: System, python: str) -> None:
    """Download the wheels of `requirements` into `folder`, from the index, and check their hashes.

    Raises:
        subprocess.CalledProcessError: pip failed and printed the reason.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "asked.txt"
    # pip would judge markers by the Python that it runs on.
    requirement_lines = [" --hash".join([line.partition(" ;")[0].partition(" --hash")[0], *line.split(" --hash")[1:]])
            for line in requirements if system.takes(line, python)]  # fmt: skip
    file.write_text("\n".join(requirement_lines), "utf-8")
    pip = [_uv(), "run", "--quiet", "--no-project", "--with", "pip", "python", "-m", "pip", "download", "--quiet"]
    words = ["--dest", str(folder), "--require-hashes", "--only-binary=:all:", "--no-deps", "--python-version", python]
    for platform in (*system.platforms, "any"):
        words += ["--platform", platform]
    subprocess.run([*pip, *words, "--disable-pip-version-check", "-r", str(file)], check=True)
    file.unlink()


def collect(
    servers: Sequence[Member], wheels: Path, target: Path, *, root: Path, system: str, python: str, engine: str | None
) -> None:
    """Write the folder.

    Args:
        wheels: holds the wheels of `servers` and of the common package.
        target: the new folder; must not exist.
        root: the workspace with the lock for the versions.
        engine: `docker` or `podman`, which has the servers' images; None leaves images out.

    Raises:
        subprocess.CalledProcessError: uv, pip or the engine failed and printed the reason.
    """
    target.mkdir(parents=True)
    requirements: dict[str, None] = {}
    base, program = _FOLDER.get(system, _FOLDER[""])
    for server in servers:
        extras = ",".join(server.project.get("optional-dependencies", {}))
        needed = locked(root, "--package", server.command, "--all-extras")
        requirements |= dict.fromkeys(needed)
        ours = [_ours(wheels, name, target / "wheels") for name in (server.command, "mcp-batteries")]
        ours[0] = ours[0].replace("==", f"[{extras}]==", 1)
        (target / f"{server.command}.txt").write_text("\n".join([*needed, *ours]) + "\n", "utf-8")
        words = [base + program.format(server.command), *server.examples()]
        for host in HOST_NAMES:
            file = target / "entries" / server.command / f"{host}.{load_host(host).format.language}"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(make_start_entry(host, server.name, words, server.variables) + "\n", "utf-8")
    download(list(requirements), target / "wheels", SYSTEMS[system], python)
    if engine:
        several = ["--multi-image-archive"] if "podman" in engine else []
        images = [server.image for server in servers]
        subprocess.run([engine, "save", *several, "--output", str(target / "images.tar"), *images], check=True)
    commands = [server.command for server in servers]
    text = _README.format(
        servers=", ".join(commands), python=python, system=system, folder=base, pip=base + program.format("pip"),
        example=base + program.format(commands[0]), images=_IMAGES if engine else "",
    )  # fmt: skip
    (target / "README.md").write_text(text.replace("mcp-fs.txt", f"{commands[0]}.txt"), "utf-8")


def _ours(wheels: Path, name: str, target: Path) -> str:
    """The requirement line for the wheel of `name`, which is copied to `target`."""
    [wheel] = wheels.glob(f"{name.replace('-', '_')}-*.whl")
    target.mkdir(exist_ok=True)
    shutil.copy(wheel, target)
    return f"{name}=={wheel.name.split('-')[1]} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}"


def _uv() -> str:
    return os.environ.get("UV") or shutil.which("uv") or "uv"


def _main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("wheels", type=Path, help="folder with our wheels")
    parser.add_argument("target", type=Path, help="folder to make")
    parser.add_argument("servers", nargs="*", help="commands such as mcp-fs; without any, all")
    parser.add_argument("--for", dest="system", choices=SYSTEMS, default="linux")
    parser.add_argument("--python", default=f"{sys.version_info[0]}.{sys.version_info[1]}", help="such as 3.13")
    parser.add_argument("--images", metavar="ENGINE", help="docker or podman, to add the images that it has")
    arguments = parser.parse_args()
    root = Path.cwd()
    servers = [server for server in members(root) if not arguments.servers or server.command in arguments.servers]
    collect(
        servers,
        arguments.wheels,
        arguments.target,
        root=root,
        system=arguments.system,
        python=arguments.python,
        engine=arguments.images,
    )
    size = sum(file.stat().st_size for file in arguments.target.rglob("*") if file.is_file())
    print(f"{arguments.target}: {', '.join(server.command for server in servers)}, {size / 1e6:.0f} MB")


if __name__ == "__main__":
    _main()
