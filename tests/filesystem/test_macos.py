"""mcp-fs on a system like macOS, as far as Linux can stand in for it: see the plugin `like_macos`."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
SAMPLE = ("handles", "policy", "write")
"""Modules whose tests take a second or two; `pytest -p filesystem.like_macos tests/filesystem` runs them all."""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="macOS needs no stand-in, and Windows can't be one")
def test_what_macos_lacks_is_done_another_way() -> None:
    options = [
        "-o",
        "addopts=",
        "--import-mode=importlib",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "filesystem.like_macos",
    ]
    modules = [str(TESTS / "filesystem" / f"test_{name}.py") for name in SAMPLE]
    command = [sys.executable, "-m", "pytest", *options, *modules]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed and int(passed[1]) > 200


def test_a_served_folder_is_itself_in_another_letter_case(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The comparison of names that macOS and Windows need, on whatever file system this is."""
    from filesystem.reading import served
    from mcp_fs import paths

    monkeypatch.setattr(paths, "_FOLDS_CASE", True)
    root = tmp_path / "Projekt Ä"
    root.mkdir()
    policy = served(root)
    for other in (str(root).upper(), str(root).replace("Ä", "A\u0308"), str(root).lower()):
        place = policy.readable(other + "/notes.txt")
        assert place.root.real_path == str(root) and place.parts == ("notes.txt",)
