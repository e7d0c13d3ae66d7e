"""Random repositories, asked by every reading tool and resource and by plain git.

Each difference comes with the seed and the number of its repository, which `asked` plants again in a folder.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from git_server.made import GIT
from git_server.serving import Asking, serving
from git_server.states import Planted, list_worlds, plant
from mcp_git.path_quoting import escape_hidden, escape_line_breaks, quote_path
from proofs.tally import Tally

_LONG = 1900
_SUBMODULES = "--ignore-submodules=dirty"


class Asker:
    """Questions about one repository.

    Attributes:
        differences: where the server's answer is another than git's.
    """

    def __init__(self, made: Planted, asking: Asking, chance: random.Random) -> None:
        self.made, self.asking, self.chance = made, asking, chance
        self.questions = 0
        self.differences: list[str] = []
        self.bare = self.plain("rev-parse", "--is-bare-repository") == b"true\n"

    # What both say

    def plain(self, *words: str) -> bytes | None:
        """What git prints; None if it refuses."""
        import subprocess

        environment = {
            "PATH": os.environ["PATH"], "HOME": str(self.made.path.parent), "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull, "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C.UTF-8",
            "GIT_ALLOW_PROTOCOL": "none",
        }  # fmt: skip
        words = ("-c", "core.quotepath=false", "-c", "i18n.logOutputEncoding=UTF-8", *words)
        done = subprocess.run([GIT, *words], cwd=self.made.path, env=environment, capture_output=True, check=False)
        return done.stdout if done.returncode == 0 else None

    async def pages(self, tool: str, **arguments: Any) -> list[str] | None:
        """The lines of all pages without their first, None for a failure; `head` is the first line of all."""
        lines: list[str] = []
        cursor: dict[str, str] = {}
        for number in range(200):
            said = await self.asking(tool, **arguments, **cursor)
            assert "inside the server" not in said, (tool, arguments, said)
            if said.startswith("failed: "):
                self.head = said
                return None
            head, *more = said.removesuffix("\n").split("\n")
            self.head = head if number == 0 else self.head
            lines += more
            found = re.search(r'cursor="([^"]+)"', head)
            if not found:
                return _whole(lines)
            cursor = {"cursor": found[1]}
        raise AssertionError((tool, arguments, "has no last page"))

    def same(self, what: str, ours: Sequence[Any] | None, theirs: Sequence[Any] | None) -> None:
        self.questions += 1
        # At a path that is nowhere git finds nothing, without a word, and the server says that there is no such path.
        is_nowhere = ours is None and theirs == [] and self.head.startswith("failed: There is no `")
        if ours == theirs or is_nowhere:
            return
        if ours is None or theirs is None:
            self.differences.append(f"{what}: ours {_short(ours)} ({self.head[:160]}), git {_short(theirs)}")
            return
        pairs = enumerate(zip(ours, theirs, strict=False))
        at = next((number for number, (one, other) in pairs if one != other), min(len(ours), len(theirs)))
        sides = [_short(side[at : at + 2]) for side in (ours, theirs)]
        self.differences.append(f"{what}: item {at}: ours {sides[0]}, git {sides[1]} ({len(ours)} and {len(theirs)})")

    # What there is to ask about

    def some(self, words: Sequence[str], usual: str) -> str:
        found = _texts(self.plain(*words), b"\n")
        return self.chance.choice(found) if found else usual

    def revision(self) -> str:
        names = ["HEAD", "HEAD~1", "HEAD~2", "stash@{0}", "HEAD^2", "nothing", "HEAD^{tree}", "@{1}"]
        refs = _texts(self.plain("for-each-ref", "--format=%(refname:short)"), b"\n")
        hashes = _texts(self.plain("rev-list", "--all", "--max-count=40"), b"\n")
        return self.chance.choice([*names, *self.chance.sample(refs, min(4, len(refs))), *hashes[:6]])

    def path(self, revision: str = "HEAD") -> str:
        listed = _texts(self.plain("ls-tree", "-r", "-z", "--name-only", "-t", revision), b"\0")
        return self.chance.choice([*listed, "nothing.txt"]) if listed else "a.txt"

    def _is_submodule(self, path: str, revision: str) -> bool:
        return (self.plain("ls-tree", revision, "--", path) or b"").startswith(b"160000")

    # Questions

    async def status(self) -> None:
        ours = await self.pages("get_status", limit=5000)
        said = self.plain("status", "--porcelain=v1", "-z", _SUBMODULES)
        if said is None and self.bare:
            return
        items = (said or b"").split(b"\0")[:-1]
        rows: list[str] = []
        while items:
            item = items.pop(0)
            before = f"{quote_path(items.pop(0))} -> " if item[:1] in b"RC" or item[1:2] in b"RC" else ""
            rows.append(f"{item[:2].decode()} {before}{quote_path(item[3:])}")
        # The newer form has what is in conflict at the end.
        self.same("status", None if ours is None else sorted(ours), None if said is None else sorted(rows))
        long = (self.plain("status", _SUBMODULES) or b"").decode("utf-8", "replace")
        theirs = [word for phrase, word in _UNDER_WAY.items() if re.search(phrase, long)]
        self.same("under way", re.findall(r"([\w-]+) under way", self.head), theirs)
        ahead = re.search(rb"# branch.ab \+(\d+) -(\d+)", self.plain("status", "--porcelain=v2", "--branch") or b"")
        counted = [int(number) for number in ahead.groups()] if ahead else [0, 0]
        found = [re.search(rf"(\d+) {what}\b", self.head) for what in ("ahead", "behind")]
        ours_counted = [int(number[1]) if number else 0 for number in found]
        self.same("ahead and behind", ours_counted, counted)
        stashes = re.search(r"(\d+) stash", self.head)
        there = len(_texts(self.plain("stash", "list", "--format=%H"), b"\n"))
        self.same("stashes", [int(stashes[1]) if stashes else 0], [there])

    async def log(self) -> None:
        arguments, words = dict[str, Any](), list[str]()
        kind = self.chance.randrange(9)
        rev = self.revision() if self.chance.random() < 0.5 else "HEAD"
        start = [rev]
        if kind == 0:
            dots = self.chance.choice(["..", "...", "not picked"])
            other = self.revision()
            start = [f"{rev}{dots}{other}"]
            if dots == "not picked":
                arguments["not_picked"] = True
                start = ["--cherry-pick", "--right-only", f"{rev}...{other}"]
                dots = ".."
            rev = f"{rev}{dots}{other}"
        elif kind == 1:
            arguments["path"] = _as_no_glob(path := self.path())
            words = ["--", path]
        elif kind == 2:
            arguments |= {"regex": True}
            arguments["author"] = author = self.chance.choice(["ada", "GRACE", "old.example", "A\\. L"])
            words = ["-i", "-E", f"--author={author}"]
        elif kind == 3:
            arguments |= {"regex": True}
            arguments["message"] = message = self.chance.choice(["add", "^Fix", "again", "é"])
            words = ["-i", "-E", f"--grep={message}"]
        elif kind == 4:
            arguments["text"] = content = self.chance.choice(["needle", "x=1", "(a)", "line 5"])
            words = [f"-S{content}"]
        elif kind == 5:
            arguments |= {"text": "n..dle|x=1", "regex": True}
            words = ["-Gn..dle|x=1"]
        elif kind == 6:
            day, (name, hour) = (
                self.chance.choice(["2023-11-{}", "2023/11/{}", "{} November 2023", "Nov {}, 2023"]),
                self.chance.choice([("since", "00:00:00"), ("until", "23:59:59")]),
            )
            arguments |= {name: (date := day.format(self.chance.randrange(14, 25)))}
            words = [f"--{name}={date} {hour}"]
        elif kind == 7:
            arguments["all_branches"] = True
            words, rev, start = ["--branches", "--tags", "--remotes"], "HEAD", []
            if self.plain("rev-parse", "--verify", "--quiet", "HEAD") is not None:
                start = ["HEAD"]
        graph = self.chance.random() < 0.3
        form = "--format=%x01%h%x00%cs%x00%aN%x00%s"
        at = words.index("--") if "--" in words else len(words)
        given = [*(["--graph"] * graph), form, *words[:at], *start, "--", *words[at + 1 :]]
        said = self.plain("--literal-pathspecs", "log", *given)
        ours = await self.pages("list_commits", rev=rev, graph=graph, limit=self.chance.choice([3, 500]), **arguments)
        theirs: list[tuple[str, str]] | None = None if said is None else []
        for line in (said or b"").decode("utf-8", "replace").split("\n"):
            if theirs is not None and "\x01" in line:
                drawn, _, fields = line.partition("\x01")
                theirs.append((drawn, fields.split("\0")[0]))
        found = None
        if ours is not None:
            rows = (re.fullmatch(r"(?s)([*|\\/_. -]*)([0-9a-f]{7,}) .*", row) for row in ours)
            found = [(row[1], row[2]) for row in rows if row]
        if graph and ours is not None and theirs is not None and len(theirs) > 3:
            found = [(("", row[1])) for row in found or []]  # a page draws its own lines only
            theirs = [(("", row[1])) for row in theirs]
        self.same(f"log {rev!r} {arguments} graph={graph}", found, theirs)

    async def rows_for_scripts(self) -> None:
        rev = self.revision()
        script = (
            f"for (const row of list_commits.all({json.dumps({'rev': rev})})) print(JSON.stringify(Object.values(row)))"
        )
        said = await self.asking("call_tools", script=script)
        self.head = said.partition("\n")[0]
        rows = [json.loads(line) for line in said.split("\n") if line.startswith('["')]
        ours = None if "[the script failed" in said else rows
        form = "--format=%H%x00%P%x00%ct%x00%at%x00%aN%x00%D%x00%s"
        output = self.plain("log", form, rev, "--")
        theirs: list[list[Any]] | None = None if output is None else []
        for line in (output or b"").decode("utf-8", "replace").split("\n")[:-1]:
            oid, parents, *seconds, author, refs, subject = line.split("\0", 6)
            times = [datetime.fromtimestamp(int(item), UTC).strftime("%Y-%m-%dT%H:%M:%SZ") for item in seconds]
            assert theirs is not None
            names = escape_hidden(refs.replace(" -> ", ", ")).split(", ") if refs else []
            theirs.append(
                [
                    oid[:12],
                    [parent[:12] for parent in parents.split()],
                    *times,
                    escape_hidden(author),
                    names,
                    escape_hidden(subject),
                ]
            )
        self.same(f"rows for scripts {rev!r}", ours, theirs)

    async def diff(self) -> None:
        arguments, words = dict[str, Any](), list[str]()
        kind = self.chance.randrange(3 * self.bare, 7)
        if kind < 3:
            only = ("all", "staged", "unstaged")[kind]
            arguments["only"] = only
            unborn = self.plain("rev-parse", "--verify", "HEAD") is None
            tree = (self.plain("hash-object", "-t", "tree", os.devnull) or b"").decode().strip()
            head = [tree] if unborn else ["HEAD"]
            words = {"all": ["diff", *head], "staged": ["diff", "--cached", *head], "unstaged": ["diff"]}[only]
        elif kind < 5:
            arguments["rev"] = rev = self.revision()
            words = ["show", "-m", "--first-parent", "--format=", f"{rev}^{{commit}}"]
        else:
            one, other = self.revision(), self.revision()
            dots = self.chance.choice(["..", "..."])
            arguments["rev"] = f"{one}{dots}{other}"
            words = ["diff", *([one, other] if dots == ".." else [f"{one}...{other}"])]
        words[1:1] = [_SUBMODULES, "--find-renames"]
        if self.chance.random() < 0.25:
            arguments["path"] = _as_no_glob(path := self.path())
            words += ["--", path]
        else:
            words += ["--"]
        if self.chance.random() < 0.2:
            arguments["context"] = context = self.chance.choice([0, 1, 9])
            words[1:1] = [f"--unified={context}"]
        said = self.plain("--literal-pathspecs", *words)
        ours = await self.pages("read_diff", **arguments)
        if kind < 3:
            said_of_conflicts = self.plain(
                "--literal-pathspecs", "diff", "--name-only", "--diff-filter=U", "-z", *words[words.index("--") :]
            )
            if said_of_conflicts is None:
                return  # Git itself stumbles, as over a `.gitmodules` that is in conflict.
            conflicts = _texts(said_of_conflicts, b"\0")
            found = re.search(r"; (\d+) in conflict:", self.head)
            self.same("in conflict", [int(found[1]) if found else 0], [len(set(conflicts))])
        alone = await self.pages("read_diff", **arguments, files_only=True)
        listed = None if ours is None or alone is None else [line for line in alone if line not in ours]
        self.same(f"files of diff {arguments}", listed, None if ours is None else [])
        self.same(f"diff {arguments}", None if ours is None else _changed(ours), None if said is None else _patch(said))

    async def blame(self) -> None:
        rev = self.chance.choice([None, None, "HEAD", self.revision()])
        path = self.path(rev or "HEAD")
        said = self.plain("--literal-pathspecs", "blame", "--line-porcelain", *([rev] if rev else []), "--", path)
        given = {"rev": rev} if rev else {}
        named = quote_path(os.fsencode(path))
        ours = await self.pages("get_blame", path=named, end_line=5000, **given)
        while ours and (more := re.search(r"for more, start_line=(\d+)", self.head)):
            ours += await self.pages("get_blame", path=named, start_line=int(more[1]), end_line=5000, **given) or []
        theirs: list[tuple[str, str]] | None = None
        if said is not None:
            heads = re.finditer(rb"(?ms)^([0-9a-f]{40,}) \d+ (\d+)(?: \d+)?\n.*?^\t([^\n]*)\n", said)
            theirs = [(head[1][:9].decode() if head[1].strip(b"0") else "", _line(head[3])) for head in heads]
        found: list[tuple[str, str]] | None = None if ours is None else []
        oid = ""
        for row in ours or []:
            line = re.fullmatch(r"(?s)\d+: (.*)", row)
            if line and found is not None:
                found.append((oid, line[1][:60]))
            else:
                oid = "" if row == "not committed yet" else row[:9]
        self.same(f"blame {path!r} {rev}", found, theirs)

    async def lines(self) -> None:
        rev = self.chance.choice(["HEAD", self.revision(), f"{self.revision()}..{self.revision()}"])
        path = self.path(rev.rpartition("..")[2])
        first = self.chance.randrange(1, 8)
        last = first + self.chance.randrange(30)
        if self._is_submodule(path, rev.rpartition("..")[2]):
            return  # Of a submodule git counts the line that names its commit.
        said = self.plain("log", f"-L{first},{last}:{path}", "--no-patch", "--format=%h", rev, "--")
        ours = await self.pages(
            "list_commits", path=quote_path(os.fsencode(path)), lines=f"{first}-{last}", rev=rev,
            limit=self.chance.choice([1, 2, 500]),
        )  # fmt: skip
        found = None if ours is None else [row.split(" ")[0] for row in ours]
        self.same(f"lines {first}-{last} {path!r} {rev}", found, None if said is None else said.decode().split())

    async def refs(self) -> None:
        for kind, words in _REFS.items():
            ours = await self.pages("list_refs", kind=kind, limit=self.chance.choice([2, 500]))
            theirs = self.plain(*words)
            unborn = self.plain("rev-parse", "--verify", "HEAD") is None
            if (kind == "stashes" and self.bare) or (kind == "reflog" and unborn):
                continue
            rows = None if theirs is None else [row.split(b"\0") for row in theirs.split(b"\n")[:-1]]
            if kind == "reflog":
                rows = rows and [_numbered(number, row) for number, row in enumerate(rows)]
            texts = [b" ".join(row).decode("utf-8", "replace") for row in rows or []]
            expected = None if rows is None else [escape_line_breaks(text)[:100].rstrip() for text in texts]
            taken = None if ours is None else [_taken(kind, row) for row in ours]
            self.same(f"refs {kind}", taken, expected)
        remotes = await self.pages("list_refs", kind="remotes")
        self.same("remotes", [row.split(" ")[0] for row in remotes or []], _texts(self.plain("remote"), b"\n"))
        trees = await self.pages("list_refs", kind="worktrees")
        listed = (self.plain("worktree", "list", "--porcelain") or b"").decode().split("\n\n")[:-1]
        theirs_at = sorted(_at(entry) for entry in listed)
        self.same("worktrees", sorted(row.split(" ", 1)[1] for row in trees or []), theirs_at)

    async def files(self) -> None:
        rev = self.revision()
        path = self.path(rev)
        said = self.plain("cat-file", "blob", f"{rev}:{path}")
        name = quote_path(os.fsencode(path))
        ours: list[str] | None = []
        start = 1
        while True:
            answer = await self.asking("read_file", path=name, rev=rev, start_line=start)
            head, *lines = answer.removesuffix("\n").split("\n")
            self.head = head
            if answer.startswith("failed"):
                ours = None
                break
            ours += lines if not head.endswith("lines]") and "has " not in head else []
            more = re.search(r"continue with start_line=(\d+)", head)
            if not more:
                break
            start = int(more[1])
        binary = said is not None and b"\0" in said[:8000]
        if binary:
            self.same(f"file {rev}:{path!r}", ["is binary" in self.head], [True])
        else:
            theirs = (
                None if said is None else [_line(line) for line in said.removesuffix(b"\n").split(b"\n")] * bool(said)
            )
            self.same(
                f"file {rev}:{path!r}",
                None if ours is None else _full([line[:60] for line in ours]),
                None if theirs is None else _full(theirs),
            )
        recursive = self.chance.random() < 0.5
        above = "" if self.chance.random() < 0.6 else os.path.dirname(path)
        arguments = {"path": quote_path(os.fsencode(above))} if above else {}
        listed = await self.pages(
            "list_files", rev=rev, recursive=recursive, limit=self.chance.choice([3, 500]), **arguments
        )
        said = self.plain("ls-tree", "-z", *(["-r"] * recursive), f"{rev}:{above}")
        names = None if said is None else [quote_path(item.partition(b"\t")[2]) for item in said.split(b"\0")[:-1]]
        found = listed and [
            re.sub(r"^\d+ |/$| \((?:link|submodule)\)$", "", re.sub(r"^\d+ ", "", row)) for row in listed
        ]
        self.same(f"files of {rev}:{above}", listed if not listed else found, names)
        uri = f"git://{self.served}/files/{rev.replace('/', '%2F')}/{path}"
        if said is not None and re.fullmatch(r"[\w~/.-]+", rev + path):
            blob = self.plain("cat-file", "blob", f"{rev}:{path}")
            read = await self.asking.read(uri)
            text = _utf8(blob)
            if blob is not None and text is not None:
                self.same(f"resource {uri}", [read], [text])

    async def search(self) -> None:
        rev = self.revision()
        pattern = self.chance.choice(["needle", "^one", "two$", "x=[0-9]", "(a)", "line 5|theirs", "é"])
        literal, ignoring = self.chance.random() < 0.3, self.chance.random() < 0.3
        options = ["-F" if literal else "-E", *(["-i"] * ignoring)]
        words = ["grep", "-I", "-n", "-z", "--full-name", *options, "-e", pattern, rev, "--"]
        ours = await self.pages(
            "search_text", pattern=pattern, rev=rev, literal=literal, ignore_case=ignoring, limit=50
        )
        said = self.plain(*words)
        if said is None and "partial" in self.made.told:
            return  # There git stops at the first file that is not here.
        if said is None:
            said = b"" if self.plain("rev-parse", "--verify", f"{rev}^{{tree}}") is not None else None
        theirs: list[str] | None = None if said is None else []
        rest = said or b""
        while theirs is not None and rest:
            name, number, rest = rest.split(b"\0", 2)
            _, _, rest = rest.partition(b"\n")
            theirs.append(f"{quote_path(name.partition(b':')[2])}:{number.decode()}")
        found: list[str] | None = None if ours is None else []
        above = ""
        for at, row in enumerate(ours or []):
            number = re.match(r"(\d+):", row)
            single = re.match(r'((?:"(?:[^"\\]|\\.)*"|.*?)):(\d+):', row)
            if found is not None and number:
                found.append(f"{above}:{number[1]}")
            elif ours and at + 1 < len(ours) and re.match(r"\d+:", ours[at + 1]):
                above = row.removeprefix("./")
            elif found is not None and single:
                found.append(f"{single[1].removeprefix('./')}:{single[2]}")
        self.same(f"search {pattern!r} {rev} {options}", found, theirs)

    async def base(self) -> None:
        one, other = self.revision(), self.revision()
        said = self.plain("merge-base", "--all", one, other)
        counts = self.plain("rev-list", "--left-right", "--count", f"{one}...{other}", "--")
        if not all(self.plain("rev-parse", "--verify", f"{each}^{{commit}}") for each in (one, other)):
            counts = None  # Git finds nothing between some things that are no commits.
        ours = await self.pages("get_merge_base", one=one, other=other)
        if counts is None:
            self.same(f"merge base {one} {other}", ours, None)
            return
        bases = sorted(line[:7] for line in _texts(said, b"\n"))
        self.same(f"merge base {one} {other}", sorted(row[:7] for row in ours or []), bases[:5])
        numbers = [int(number) for number in counts.split()]
        found = re.search(r" has ([\d,]+) commits? of its own, .*? ([\d,]+)[\];]", self.head)
        self.same("apart", [int(number.replace(",", "")) for number in found.groups()] if found else None, numbers)

    async def resources(self) -> None:
        name = self.served
        for kind, (tool, arguments) in _RESOURCES.items():
            by_tool = await self.asking(tool, **arguments)
            self.head = by_tool
            read = await self.asking.read(f"git://{name}/{kind}")
            if by_tool.startswith("failed") or read.startswith("failed"):
                self.same(f"resource {kind}", [by_tool.startswith("failed")], [read.startswith("failed")])
                continue
            cut = [re.sub(r"; continue with cursor=\S+?\]", "]", text.rstrip("\n")) for text in (by_tool, read)]
            self.same(f"resource {kind}", [cut[1]], [cut[0]])
        head = await self.asking.read(f"git://{name}/head")
        branch = (self.plain("symbolic-ref", "--short", "HEAD") or b"").decode().strip()
        oid = (self.plain("rev-parse", "--short", "HEAD") or b"").decode().strip()
        has = [
            not branch or f"HEAD is {branch}]" in head,
            oid in head if self.plain("rev-parse", "--verify", "HEAD") else True,
        ]
        self.same("resource head", has, [True, True])

    @property
    def served(self) -> str:
        return re.sub(r"[^\w.+-]", "-", self.made.path.name)

    async def all(self) -> None:
        """Each question, those with much to choose from several times."""
        self.head = ""
        asked: list[Callable[[], Any]] = [
            self.status, self.rows_for_scripts, *[self.log] * 7, *[self.diff] * 8, *[self.blame] * 4, self.refs,
            *[self.files] * 5, *[self.search] * 3, *[self.base] * 3, self.resources, *[self.lines] * 4,
        ]  # fmt: skip
        for question in asked:
            await question()


_UNDER_WAY = {
    r"rebase in progress|currently (?:editing|splitting).* while rebasing|currently rebasing": "rebase",
    r"middle of an am session": "am",
    r"have unmerged paths\.\n  \(fix conflicts and run \"git commit\"|still merging": "merge",
    r"currently cherry-picking|Cherry-pick currently in progress": "cherry-pick",
    r"currently reverting|Revert currently in progress": "revert",
    r"currently bisecting": "bisect",
}  # fmt: skip


def _numbered(number: int, row: list[bytes]) -> list[bytes]:
    """An entry of a reflog by its number, and behind its hash its date, which git has in the place of the number."""
    name, _, date = row[0].rstrip(b"}").partition(b"@{")
    return [b"%s@{%d}" % (name, number), row[1], date, *row[2:]]


_REFS = {
    "branches": [
        "for-each-ref", "--sort=-committerdate", "refs/heads", "refs/remotes",
        "--format=%(refname:short)%00%(if)%(symref)%(then)->%(else)%(objectname:short)%(end)",
    ],
    "tags": [
        "for-each-ref", "--sort=-creatordate", "refs/tags",
        "--format=%(refname:short)%00%(if)%(*objectname)%(then)%(*objectname:short)%(else)%(objectname:short)%(end)"
        "%00%(creatordate:short)",
    ],
    "stashes": ["stash", "list", "--format=%gd%x00%h%x00%cs%x00%gs"],
    "reflog": ["log", "--walk-reflogs", "--date=short", "--format=%gd%x00%h%x00%gs", "HEAD", "--"],
}  # fmt: skip

_RESOURCES: dict[str, tuple[str, dict[str, Any]]] = {
    "status": ("get_status", {"limit": 200}),
    "log": ("list_commits", {}),
    "diff": ("read_diff", {}),
    "branches": ("list_refs", {"kind": "branches", "limit": 200}),
    "stash": ("list_refs", {"kind": "stashes", "limit": 200}),
}


def _whole(lines: list[str]) -> list[str]:
    """`lines` with the paths that stand below their folder made whole."""
    folder, whole = "", list[str]()
    for line, next_line in zip(lines, [*lines[1:], ""], strict=False):
        below = re.match(r" (\d+ )?(?=\S)", line)
        if line.endswith("/") and re.match(r" (\d+ )?\S", next_line):
            folder = line
        else:
            whole.append(f"{below[1] or ''}{folder}{line[below.end() :]}" if below and folder else line)
            folder = folder if below else ""
    return whole


def _taken(kind: str, row: str) -> str:
    """What of a row is compared."""
    if kind == "branches":
        name, _, rest = row.removeprefix("* ").partition(" ")
        return f"{name} {rest.split(' ')[0]}"
    if kind == "tags":
        return " ".join(row.split(" ")[:3] if re.match(r"\S+ \S+ \d{4}-\d\d-\d\d", row) else row.split(" ")[:2])[
            :100
        ].rstrip()
    return row[:100].rstrip()


def _as_no_glob(path: str) -> str:
    """`path` as answers have it, and in quotes where it would be taken for a glob."""
    name = quote_path(os.fsencode(path))
    return f'"{name}"' if re.search(r"[*?]", name) and not name.startswith('"') else name


def _at(entry: str) -> str:
    found = re.search(r"(?m)^branch refs/heads/(.*)$", entry)
    oid = re.search(r"(?m)^HEAD (\S+)", entry)
    return found[1] if found else f"detached at {oid[1][:9]}" if oid and "\ndetached" in entry else "bare"


def _texts(said: bytes | None, end: bytes) -> list[str]:
    return [os.fsdecode(item) for item in (said or b"").split(end) if item]


def _utf8(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None


def _full(lines: Sequence[str]) -> list[str]:
    """Without the empty lines at the end, which an answer may lack."""
    return "\n".join(lines).rstrip("\n").split("\n")


def _line(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r")[:60]


def _patch(said: bytes) -> list[bytes]:
    lines = said.decode("utf-8", "replace").removesuffix("\n").split("\n")
    return [
        _cut(line)
        for line in lines
        if line and not re.match(r"diff --git |index |Binary files |\* Unmerged path ", line)
    ]


_KIND = "(?:new |deleted )?"


def _changed(ours: list[str]) -> list[bytes]:
    """The patch of an answer, without the message, the list of files and what names a file whose patch does not."""
    first = next((at for at, line in enumerate(ours) if re.match(rf" ?{_KIND}(?:binary|\+\d+ -\d+) ", line)), len(ours))
    rest = ours[first:]
    begin = rest.index("") + 1 if "" in rest else len(rest)
    lines = [re.sub(r" \[[\d,]+ bytes\]$", "", line) for line in rest[begin:]]
    omitted = re.compile(rf"{_KIND}(?:binary |\+0 -0 )|Binary files |index ")
    return [_cut(line) for line in lines if line and not omitted.match(line)]


def _cut(line: str) -> bytes:
    return line.encode("utf-8", "replace")[:_LONG]


def _short(what: Any) -> str:
    text = repr(what)
    return text if len(text) < 300 else f"{text[:300]}…"


async def asked(folder: Path, world: str, seed: int, number: int) -> tuple[int, list[str]]:
    """How many questions one repository of a world was asked, and the differences."""
    chance = random.Random(f"{seed} {number}")
    made = plant(folder / "app", chance, world)
    # What a worktree or a copy takes its objects from is there too; the questions are about the first.
    async with serving(made.path) as asking:
        asker = Asker(made, asking, chance)
        await asker.all()
    return asker.questions, [f"{world} {seed} {number} {' '.join(made.told)}: {each}" for each in asker.differences]


async def differences(repositories: range, seed: int = 0, worlds: Sequence[str] = ()) -> tuple[Counter[str], list[str]]:
    """How many questions were asked, and what differed; one world after the other."""
    worlds = worlds or list_worlds()
    tally, found = Counter[str](), list[str]()
    for number in repositories:
        world = worlds[number % len(worlds)]
        with tempfile.TemporaryDirectory() as folder:
            questions, differing = await asked(Path(folder), world, seed, number)
        tally.update({"repositories": 1, "questions": questions, f"questions in the world `{world}`": questions})
        found += differing
        for line in differing:
            print(line, file=sys.stderr, flush=True)
    return tally, found


async def prove(count: int, seed: int, worlds: Sequence[str] = ()) -> Tally:
    """Ask about so many repositories."""
    return Tally.of(*await differences(range(count), seed, worlds))
