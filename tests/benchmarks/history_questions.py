"""Eleven everyday questions about the history of known repositories, asked of plain git and of mcp-git.

python tests/benchmarks/history_questions.py [--show] [--only PART]... NAME=FOLDER...

NAME is one of requests, leveldb, curl and git, and FOLDER a checkout or a bare clone of it with its tags. What either
side says is compared fact by fact, such as the hashes of commits in their order; a difference ends the run with an
error. An expert asks git in one command line each; of ours each page counts as a call.
"""

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from beside_shell import Place, Task, by_shell, size
from driver import MODERN, Server
from rich.console import Console
from rich.table import Table

_MAX_PAGES = 20
# A hash at the beginning of a line, at the length that both sides show.
_COMMIT = r"(?m)^\^?([0-9a-f]{7})[0-9a-f]* "

WORDS = {
    "requests": {
        "old": "v2.30.0", "new": "v2.31.0", "file": "requests/sessions.py", "text": "should_strip_auth",
        "renamed_at": "v2.32.3", "renamed": "src/requests/sessions.py", "line": "303", "lines": "303-320",
        "comma_lines": "303,320", "commit": "ea9436a5", "tags": "v2.2*", "author": "Reitz", "since": "2013-01-01",
        "until": "2013-01-31", "gone": "requests/packages/urllib3/connectionpool.py", "pattern": "rebuild_proxies",
        "subject": "proxies", "branch": "v2.9.2",
    },
    "leveldb": {
        "old": "1.22", "new": "1.23", "file": "db/db_impl.cc", "text": "TEST_CompactMemTable", "renamed_at": "1.23",
        "renamed": "benchmarks/db_bench.cc", "line": "549", "lines": "549-575", "comma_lines": "549,575",
        "commit": "a0191e5", "tags": "1.*", "author": "costan", "since": "2019-05-01", "until": "2019-05-31",
        "gone": "Makefile", "pattern": "MaybeScheduleCompaction", "subject": "compaction", "branch": "v1.20",
    },
    "curl": {
        "old": "curl-8_5_0", "new": "curl-8_6_0", "file": "lib/url.c", "text": "Curl_conn_is_alive",
        "renamed_at": "curl-8_6_0", "renamed": "lib/vtls/vtls.c", "line": "227", "lines": "227-240",
        "comma_lines": "227,240", "commit": "71b7e01610", "tags": "curl-8_*", "author": "Stenberg",
        "since": "2024-01-01", "until": "2024-01-07", "gone": "lib/strtok.c", "pattern": "Curl_setup_conn",
        "subject": "happy eyeballs", "branch": "curl-8_4_0",
    },
    "git": {
        "old": "v2.43.0", "new": "v2.44.0", "file": "builtin/branch.c", "text": "reject_rebase_or_bisect_branch",
        "renamed_at": "v2.44.0", "renamed": "builtin/bisect.c", "line": "508", "lines": "508-525",
        "comma_lines": "508,525", "commit": "14ace5b77b", "tags": "v2.4*", "author": "Hamano", "since": "2024-01-01",
        "until": "2024-01-03", "gone": "builtin/bisect--helper.c", "pattern": "copy_or_rename_branch",
        "subject": "bisect--helper", "branch": "v2.42.0",
    },
}  # fmt: skip


@dataclass(frozen=True)
class Question:
    """A question, and how either side is asked.

    Attributes:
        git: a command line.
        tool: what is called, with `arguments`.
        git_facts: a pattern of what the answer of git tells.
        facts: the same of ours; by default alike.
        is_ordered: whether the order of the facts is one.
        only_last: whether the last fact alone is the answer.
    """

    ask: str
    git: str
    tool: str
    arguments: dict[str, object]
    git_facts: str = _COMMIT
    facts: str = ""
    is_ordered: bool = True
    only_last: bool = False

    def find_facts(self, answer: str, *, is_ours: bool) -> list[object]:
        pattern = self.facts if is_ours and self.facts else self.git_facts
        text = _write_paths_in_full(answer) if is_ours and not self.is_ordered else answer
        found: list[object] = re.findall(pattern, text)
        if self.only_last:
            found = found[-1:]
        return found if self.is_ordered else sorted(found, key=repr)


QUESTIONS = [
    Question(
        "who introduced a text", "git log -S'@text' --format='%h %as %an %s' @new -- @file | tail -1", "list_commits",
        {"text": "@text", "path": "@file", "rev": "@new"}, only_last=True,
    ),
    Question(
        "which files changed between releases", "git diff --numstat @old @new", "read_diff",
        {"rev": "@old..@new", "files_only": True}, r"(?m)^(\d+)\t(\d+)\t((?:(?!=>)[^{}\n])+)$",
        r"(?m)^(?:new |deleted )?\+(\d+) -(\d+) ((?:(?! -> )[^\n])+)$", is_ordered=False,
    ),
    Question(
        "what was committed to a file since a release", "git log --format='%h %as %an %s' @branch..@new -- @file",
        "list_commits", {"rev": "@branch..@new", "path": "@file"},
    ),
    Question(
        "who wrote a line", "git blame -L@line,@line @new -- @file", "get_blame",
        {"path": "@file", "rev": "@new", "start_line": "@line", "end_line": "@line"}, r"(?m)^\^?([0-9a-f]{7})",
        r"(?m)^\^?([0-9a-f]{7})[0-9a-f]*\b",
    ),
    Question(
        "the history of a file through renames", "git log --follow --format='%h %as %an %s' @renamed_at -- @renamed",
        "list_commits", {"path": "@renamed", "rev": "@renamed_at", "follow": True, "limit": 500},
    ),
    Question(
        "which releases have a commit", "git tag --contains @commit --list '@tags' --sort=-creatordate", "list_refs",
        {"kind": "tags", "contains": "@commit", "pattern": "@tags"}, r"(?m)^(\S+)$", r"(?m)^([\w.-]+) [0-9]{4}-",
        is_ordered=False,
    ),
    Question(
        "which commits changed some lines", "git log -L@comma_lines:@file --no-patch --format='%h %as %an %s' @new",
        "list_commits", {"path": "@file", "lines": "@lines", "rev": "@new"},
    ),
    Question(
        "where a name is used in a release", "git grep -n '@pattern' @new -- @file", "search_text",
        {"pattern": "@pattern", "rev": "@new", "path": "@file"}, r"(?m)^[^:\n]+:[^:\n]+:(\d+):",
        r"(?m)^(?:[^:\n]+:)?(\d+):",
    ),
    Question(
        "where two releases parted", "git merge-base @branch @new; git rev-list --left-right --count @branch...@new",
        "get_merge_base", {"one": "@branch", "other": "@new"}, r"(?m)^([0-9a-f]{7})[0-9a-f]{33}",
        r"(?m)^([0-9a-f]{7})[0-9a-f]* ",
    ),
    Question(
        "what somebody did in a month", "git log -i --format='%h %as %an %s' --author=@author --since='@since 00:00'"
        " --until='@until 23:59:59' @new", "list_commits",
        {"author": "@author", "since": "@since", "until": "@until", "rev": "@new"},
    ),
    Question(
        "who deleted a file", "git log -1 --format='%h %as %an %s' @new -- @gone", "list_commits",
        {"path": "@gone", "rev": "@new", "limit": 1},
    ),
]  # fmt: skip


def _write_paths_in_full(answer: str) -> str:
    """Write the folder before the names that stand below it."""
    lines: list[str] = []
    folder = ""
    for line in answer.splitlines():
        if line.endswith("/"):
            folder = line
            continue
        below = re.match(r" (\+\d+ -\d+ )?(?=\S)", line)
        lines.append(f"{below[1] or ''}{folder}{line[below.end() :]}" if below and folder else line)
    return "\n".join(lines)


def _ask_git(question: Question, place: Place, show: bool) -> tuple[int, str]:
    return by_shell(Task(question.ask, lambda folder: place, [question.git], []), place, show)


def _ask_ours(question: Question, server: Server, place: Place, show: bool) -> tuple[int, int, str]:
    """Return the calls, the bytes and the texts of all pages, or of one where one item is asked for."""
    arguments: dict[str, object] = json.loads(place.filled(json.dumps(question.arguments)))
    for name in ("start_line", "end_line"):
        if name in arguments:
            arguments[name] = int(str(arguments[name]))
    spent = 0
    answers: list[str] = []
    for _ in range(_MAX_PAGES):
        result, _ = server.ask("tools/call", {"name": question.tool, "arguments": arguments})
        answer = "".join(item.get("text", "") for item in result["content"])
        spent += size(question.tool) + size(arguments) + size(answer)
        answers.append(answer)
        if show:
            click.echo(f"> {question.tool} {json.dumps(arguments)}\n{answer}\n")
        cursor = re.search(r'cursor="([^"]+)"', answer.partition("\n")[0])
        if cursor is None or arguments.get("limit") == 1:
            break
        arguments["cursor"] = cursor[1]
    return len(answers), spent, "\n".join(answers)


@click.command(help=__doc__)
@click.argument("checkouts", nargs=-1, required=True, metavar="NAME=FOLDER...")
@click.option("--only", multiple=True, metavar="PART", help="Only questions with this in them.")
@click.option("--show", is_flag=True, help="Print what is asked and answered.")
def main(checkouts: Sequence[str], only: Sequence[str], show: bool) -> None:
    table = Table("calls, bytes", "git", "ours", "ratio", "facts")
    differences: list[str] = []
    sums = [0, 0, 0]
    for checkout in checkouts:
        name, _, path = checkout.partition("=")
        if name not in WORDS or not Path(path).is_dir():
            raise click.UsageError(f"{checkout} is not one of {', '.join(WORDS)} with a folder behind `=`.")
        folder = Path(path).resolve()
        place = Place(folder, {}, {"GIT_PAGER": "cat", "LC_ALL": "C.UTF-8"}, WORDS[name])
        with Server(
            [sys.executable, "-m", "mcp_git", "--timeout=600", str(folder)], revision=MODERN, seconds=300
        ) as server:
            server.open()
            for question in QUESTIONS:
                if only and not any(part in question.ask for part in only):
                    continue
                git_bytes, git_answer = _ask_git(question, place, show)
                calls, our_bytes, our_answer = _ask_ours(question, server, place, show)
                theirs = question.find_facts(git_answer, is_ours=False)
                ours = question.find_facts(our_answer, is_ours=True)
                title = f"{name}: {question.ask}"
                if ours != theirs or not theirs:
                    sides = f"ours {ours[:8]} ({len(ours)}), git {theirs[:8]} ({len(theirs)})"
                    differences.append(f"{title}: {sides}")
                sums = [sums[0] + git_bytes, sums[1] + calls, sums[2] + our_bytes]
                cells = [f"1, {git_bytes:,}", f"{calls}, {our_bytes:,}", f"{our_bytes / git_bytes:.2f}"]
                table.add_row(title, *cells, str(len(theirs)))
    table.add_section()
    table.add_row("all", f"{table.row_count}, {sums[0]:,}", f"{sums[1]}, {sums[2]:,}", f"{sums[2] / sums[0]:.2f}", "")
    Console(width=130).print(table)
    for difference in differences:
        click.echo(f"WRONG {difference}")
    sys.exit(bool(differences))


if __name__ == "__main__":
    main()
