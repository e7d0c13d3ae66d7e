"""Make small mistakes in the modules that decide what is allowed and who is told, and see whether their tests notice.

    uv run python tests/mutants/run.py [--sample N] [--seed S] [--jobs N] [MODULE ...]

Each mistake is made in a copy of the project with an environment of its own, so that servers and workers which tests
start as processes make it too. A mistake that no test notices is a survivor: it gets a test, or a row with the reason
in README.md beside this file. The command fails when a survivor has neither.
"""

from __future__ import annotations

import os
import queue
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests")]

from mutants.modules import MODULES  # noqa: E402
from mutants.mutations import Mutation, mutations  # noqa: E402

README = Path(__file__).with_name("README.md")


@dataclass(frozen=True)
class Job:
    module: str
    mutation: Mutation

    def __str__(self) -> str:
        mutation = self.mutation
        return f"{self.module}:{mutation.line} in `{mutation.place or 'the module'}`: {mutation}"


def known() -> set[tuple[str, str, str]]:
    """(module, place, mutation) of the survivors that README.md explains."""
    rows = re.findall(r"^\| `(.+?)` \| `(.+?)` \| (`.+` → .+?) \| .+ \|$", README.read_text("utf-8"), re.MULTILINE)
    return {(module, place, change.replace("\\|", "|")) for module, place, change in rows}


def key(job: Job) -> tuple[str, str, str]:
    return job.module, job.mutation.place or "the module", str(job.mutation)


class Copy:
    """A copy of the project, in which one mistake at a time is made and judged."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
        for name in filter(None, names):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, folder / name)
        self._environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
        uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
        subprocess.run([uv, "sync", "--locked", "--quiet"], cwd=folder, env=self._environment, check=True)
        self._python = folder / ".venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        self._scratch = folder / "tmp"
        self._scratch.mkdir()
        self._environment["TMPDIR"] = str(self._scratch)

    def judge(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, str]]:
        """For each mutation, of modules with the same tests: "survived", "killed" by a test, or "killed by time"."""
        modules = list(dict.fromkeys(job.module for job in jobs))
        numbers = {
            Job(module, mutation): number
            for module in modules
            for number, mutation in enumerate(mutations((self._folder / module).read_bytes()))
        }
        command = [self._python, "tests/mutants/judge.py", *modules]
        with subprocess.Popen(
            command, cwd=self._folder, env=self._environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                for job in jobs:
                    print(job.module, numbers[job], file=process.stdin, flush=True)
                    verdict = process.stdout.readline().strip()
                    if not verdict:
                        raise RuntimeError(f"The judge of {', '.join(modules)} has ended.")
                    yield job, verdict
            finally:
                process.stdin.close()


def chosen(names: Sequence[str], sample: int | None, seed: int) -> list[Job]:
    modules = [module for module in MODULES if not names or any(name in module for name in names)]
    jobs: list[Job] = []
    for module in modules:
        found = [Job(module, mutation) for mutation in mutations((ROOT / module).read_bytes())]
        if sample is not None and sample < len(found):
            found = sorted(random.Random(f"{seed} {module}").sample(found, sample), key=lambda job: job.mutation.span)
        jobs += found
    return jobs


@click.command(help=__doc__)
@click.argument("names", nargs=-1, metavar="[MODULE ...]")
@click.option("--sample", type=int, help="So many mutations of each module; without it, all of them.")
@click.option("--seed", type=int, default=0, help="Which ones.")
@click.option("--jobs", type=int, default=os.cpu_count() or 1, help="Copies at work at once.")
def main(names: tuple[str, ...], sample: int | None, seed: int, jobs: int) -> None:
    planned, explained = chosen(names, sample, seed), known()
    if not planned:
        raise click.ClickException(f"No module is called so. There are: {', '.join(MODULES)}")
    results = {job: "known" for job in planned if key(job) in explained}
    together: dict[tuple[str, ...], list[Job]] = {}
    for job in planned:
        together.setdefault(MODULES[job.module], []).append(job)
    waiting: queue.SimpleQueue[list[Job]] = queue.SimpleQueue()
    for group in together.values():
        waiting.put(group)
    failures: list[str] = []

    def work(folder: Path) -> None:
        try:
            copy = Copy(folder)
            while True:
                group = waiting.get_nowait()
                try:
                    judge(copy, group)
                except RuntimeError as problem:
                    failures.append(str(problem))
        except queue.Empty:
            return
        except Exception as problem:
            failures.append(str(problem))

    def judge(copy: Copy, group: Sequence[Job]) -> None:
        left = [job for job in group if job not in results]
        for job, result in copy.judge(left) if left else ():
            results[job] = result
            if result == "survived":
                print(f"SURVIVED {job}", flush=True)
        for module in dict.fromkeys(job.module for job in group):
            counts = Counter(results[job] for job in group if job.module == module)
            what = ", ".join(f"{count} {result}" for result, count in counts.items())
            print(f"{module}: {counts.total()} mutations, {what}", flush=True)

    with tempfile.TemporaryDirectory(prefix="m-") as folder:
        os.chmod(folder, 0o711)  # PostgreSQL, which refuses to be root, passes through as another user
        workers = [threading.Thread(target=work, args=(Path(folder) / str(number),)) for number in range(jobs)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    if failures:
        raise click.ClickException("\n".join(failures))
    if "survived" in results.values():
        sys.exit("Survivors without a test or a reason: see tests/mutants/README.md.")


if __name__ == "__main__":
    main()
