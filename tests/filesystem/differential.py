"""Random questions about random trees, asked of the engine and of rg, find, cat and git.

A difference counts unless the first line of the answer explains it.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

from filesystem.places import Told
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_fs.engine.changing.patch import apply_hunks, parse_patch
from mcp_fs.engine.listing.folder_tree import list_tree
from mcp_fs.engine.listing.walk import WalkFilter
from mcp_fs.engine.reading.text_page import LineIndex, PageRequest, read_page
from mcp_fs.engine.search import ripgrep
from mcp_fs.engine.search.find import find_files
from mcp_fs.engine.search.query import Query
from mcp_fs.engine.search.text_search import search_text
from mcp_fs.models import MatchCounts, Matches
from mcp_fs.policy import Policy
from proofs.tally import Tally

_NAMES = ["a", "b c", "Ü.txt", "x.py", "y.py", ".hidden", ".x.py", "build", "doc.md", "log.txt", "[z]", "node_modules"]
_RULES = ["build/\n", "*.md\n!doc.md\n", "/a\n", "**/x.py\n", "*.txt\n", "node_modules\nlog.*\n"]
_WORDS = ["one", "two", "needle", "Needle", "né", "x=1", "(a)", "", " ", "end"]
_PATTERNS = ["needle", "n..dle", "^one", "end$", r"x=\d", "two|né", "[a-z]+ needle", "^$", "(?i)NEEDLE", r"\bone\b"]
_ALL = WalkFilter(hidden=True, ignored=True)
_RG = [
    "--no-config",
    "--no-require-git",
    "--no-ignore-parent",
    "--no-ignore-global",
    "--color=never",
    "--crlf",
    "--sort=path",
]
RG = ripgrep.find_ripgrep()
_READ_ALL = 16 * 1024 * 1024


def plant(root: Path, chance: random.Random) -> dict[str, bytes]:
    """A random tree; its text files by path."""
    files: dict[str, bytes] = {}
    folders = [root]
    root.mkdir()
    for _ in range(chance.randrange(5, 40)):
        place = chance.choice(folders) / chance.choice(_NAMES)
        if place.exists():
            continue
        if chance.random() < 0.3 and len(place.relative_to(root).parts) < 5:
            place.mkdir()
            folders.append(place)
            continue
        lines = [" ".join(chance.choices(_WORDS, k=chance.randrange(4))) for _ in range(chance.randrange(30))]
        text = chance.choice(["\n", "\n", "\r\n"]).join(lines) + chance.choice(["", "\n"])
        files[str(place.relative_to(root))] = data = text.encode(
            chance.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16"])
        )
        place.write_bytes(data)
    for folder in folders:
        if chance.random() < 0.3:
            (folder / ".gitignore").write_text(chance.choice(_RULES))
            files[str((folder / ".gitignore").relative_to(root))] = (folder / ".gitignore").read_bytes()
    return files


def told(*command: str, cwd: Path) -> str:
    return subprocess.run(command, cwd=cwd, capture_output=True, check=False).stdout.decode("utf-8", "surrogateescape")


class Asker:
    def __init__(self, root: Path, chance: random.Random) -> None:
        self.root, self.chance = root, chance
        self.files = plant(root, chance)
        self.policy = Policy(Told((str(root),)))
        self.start = self.policy.readable(".")

    def ask(self) -> str | None:
        """What differs, if anything does."""
        questions: list[Callable[[], str | None]] = [
            self.search,
            self.search,
            self.find,
            self.tree,
            self.read,
            self.patch,
        ]
        return self.chance.choice(questions)()

    def search(self) -> str | None:
        pattern, wanted = self.chance.choice(_PATTERNS), self.chance.choice([_ALL, WalkFilter()])
        flags = ["--hidden", "--no-ignore"] if wanted == _ALL else []
        lines = told(RG or "rg", "-n", "--no-heading", *_RG, *flags, "-e", pattern, ".", cwd=self.root)
        expected = {tuple(line.removeprefix("./").split(":", 2)[:2]) for line in lines.splitlines()}
        program = self.chance.choice([None, RG])
        got, cursor, total = set[tuple[str, str]](), None, 0
        while True:
            query = Query(pattern, walk_filter=wanted, limit=self.chance.choice([7, 500]), max_per_file=1000)
            page = search_text([self.start], query, cursor, CancelToken(), program)
            assert isinstance(page, Matches)
            got |= {(path, str(match.line)) for path, matches, _ in page.files for match in matches}
            total = page.total[0]
            cursor = page.cursor
            if cursor is None:
                break
        counted = search_text(
            [self.start], Query(pattern, walk_filter=wanted, count_only=True), None, CancelToken(), program
        )
        assert isinstance(counted, MatchCounts)
        if got == expected and total == counted.total[0] == len(expected):
            return None
        return (
            f"search {pattern!r} {wanted}: {sorted(got ^ expected)[:5]}, {total} and {counted.total} of {len(expected)}"
        )

    def find(self) -> str | None:
        glob = self.chance.choice(["*", "*.py", "?", "*o*", ".*", "Ü*", "x.*"])
        got = set(find_files([self.start], glob, CancelToken(), walk_filter=_ALL, limit=5000).paths)
        every = told("find", ".", "!", "-type", "d", "-print0", cwd=self.root).split("\0")[:-1]
        expected = {path.removeprefix("./") for path in every if fnmatchcase(os.path.basename(path), glob)}
        if got != expected:
            return f"find {glob!r}: {sorted(got ^ expected)[:5]}"
        answer = find_files([self.start], glob, CancelToken(), limit=5000)
        seen = told(RG or "rg", "--files", *_RG, cwd=self.root).splitlines()
        expected = {path for path in seen if fnmatchcase(os.path.basename(path), glob)}
        if set(answer.paths) != expected:
            return f"find {glob!r} as rg: {sorted(set(answer.paths) ^ expected)[:5]}"
        if len(answer.paths) < len(got) and "left out" not in answer.text().partition("\n")[0]:
            return f"find {glob!r} does not say what it left out"
        return None

    def tree(self) -> str | None:
        depth = self.chance.randrange(1, 6)
        tree = list_tree(self.start, CancelToken(), walk_filter=_ALL, depth=depth)
        seen = () if tree.is_whole else ("-maxdepth", str(depth + 1))  # folders that are folded are listed, not walked
        files = told("find", ".", *seen, "!", "-type", "d", cwd=self.root).count("\n")
        folders = told("find", ".", *seen, "-mindepth", "1", "-type", "d", cwd=self.root).count("\n")
        if (tree.files, tree.folders) != (files, folders):
            return f"tree: {tree.files} files in {tree.folders} folders, not {files} in {folders}"
        return None

    def read(self) -> str | None:
        if not self.files:
            return None
        name = self.chance.choice(list(self.files))
        place, index = self.policy.readable(name), LineIndex()
        data = subprocess.run(["cat", "--", name], cwd=self.root, capture_output=True, check=True).stdout
        codec = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        lines = re.findall(r"[^\n]*\n|[^\n]+", data.decode(codec))
        first = self.chance.randrange(1, len(lines) + 3)
        last = first + self.chance.randrange(9)
        part = read_page(place, PageRequest(start_line=first, end_line=last, max_bytes=_READ_ALL), index, CancelToken())
        tail = read_page(place, PageRequest(tail=last, max_bytes=_READ_ALL), index, CancelToken())
        if part.body != "".join(lines[first - 1 : last]) or tail.body != "".join(lines[-last:]):
            return f"read {name!r} {first}-{last}: {part.text()!r:.200}"
        if first > len(lines) and first > 1 and "no line" not in part.status:
            return f"read {name!r} {first}: {part.status}"
        return None

    def patch(self) -> str | None:
        old = [self.chance.choice(_WORDS) for _ in range(self.chance.randrange(20))]
        new = [line for line in old if self.chance.random() > 0.1]
        for _ in range(self.chance.randrange(4)):
            new.insert(self.chance.randrange(len(new) + 1), self.chance.choice(_WORDS))
        texts = ["".join(line + "\n" for line in lines) for lines in (old, new)]
        with tempfile.TemporaryDirectory() as folder:
            for name, text in zip("ab", texts, strict=True):
                Path(folder, name).mkdir()
                Path(folder, name, "f").write_text(text)
            diff = told("git", "diff", "--no-index", "--no-color", "--no-prefix", "a/f", "b/f", cwd=Path(folder))
        if not diff or not all(texts):
            return None
        (patch,) = parse_patch(diff)
        made = apply_hunks(texts[0], patch, "`f`", CancelToken())
        return None if made == texts[1] else f"patch: {texts} gave {made!r}"


def differences(questions: int, seed: int = 0) -> list[str]:
    """What differed, of so many questions about trees of 20 questions each."""
    found: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for tree in range(-(-questions // 20)):
            root = Path(folder) / "root"
            asker = Asker(root, random.Random(f"{seed} {tree}"))
            answers = [asker.ask() for _ in range(min(20, questions - tree * 20))]
            found += [f"tree {seed} {tree}: {differs}" for differs in answers if differs is not None]
            shutil.rmtree(root)
    return found


def prove(count: int, seed: int) -> Tally:
    """Ask so many questions."""
    return Tally.of({"questions": count}, differences(count, seed))
