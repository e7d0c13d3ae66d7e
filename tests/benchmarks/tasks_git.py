"""Eight everyday tasks on a repository, most of them with writes, by an expert with git and with mcp-git and mcp-fs.

python tests/benchmarks/tasks_git.py [--show] [--only PART]...
"""

import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import click
from beside_shell import Place, Task, run

_PRICES = """from decimal import Decimal

VAT = Decimal("0.19")
REDUCED = Decimal("0.07")


def net(price, quantity):
    return price * quantity


def tax(price, reduced=False):
    rate = REDUCED if reduced else VAT
    return (price * rate).quantize(Decimal("0.01"))


def gross(price, quantity, reduced=False):
    total = net(price, quantity)
    return total + tax(total, reduced)


def discount(price, percent):
    return price * (100 - percent) / 100


def shipping(weight):
    if weight < 2:
        return Decimal("4.90")
    return Decimal("4.90") + (weight - 2) * Decimal("1.10")
"""
_ORDERS = """from shop.prices import gross

STATES = ["open", "paid", "shipped"]


def total(lines):
    return sum(gross(line.price, line.quantity) for line in lines)


def advance(order):
    order.state = STATES[STATES.index(order.state) + 1]
"""
_REPORT = "def report(orders):\n    for order in orders:\n        print(order.number, order.total)\n"
_PEOPLE = ["Ada Moss", "Ben Ortiz", "Chen Wei"]


def _git(folder: Path, *words: str, hours: int = 0, by: str = _PEOPLE[0]) -> str:
    date = f"{1790812800 + hours * 3600} +0000"
    mail = f"{by.split()[0].lower()}@shop.example"
    variables = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
                 for what, value in (("NAME", by), ("EMAIL", mail), ("DATE", date))}  # fmt: skip
    env = {**os.environ, **variables, "GIT_CONFIG_GLOBAL": os.devnull}
    return subprocess.run(["git", *words], cwd=folder, env=env, check=True, capture_output=True, text=True).stdout


@cache
def _template() -> Path:
    """A shop's repository: 22 commits of three people on `main`, two on `feature`, one on `report`."""
    folder = Path(tempfile.mkdtemp(prefix="shop"))
    _git(folder, "init", "--quiet", "--initial-branch=main")
    for name, value in (("user.name", _PEOPLE[0]), ("user.email", "ada@shop.example")):
        _git(folder, "config", name, value)
    (folder / "shop").mkdir()
    files = {"shop/prices.py": _PRICES, "shop/orders.py": _ORDERS, "shop/report.py": _REPORT, "README.md": "# Shop\n"}
    number = 0

    def commit(subject: str, **changes: tuple[str, str]) -> None:
        nonlocal number
        for name, (old, new) in changes.items():
            path = folder / ("README.md" if name == "readme" else f"shop/{name}.py")
            text = path.read_text()
            assert old in text, (subject, old)
            path.write_text(text.replace(old, new, 1))
        _git(folder, "add", "--all")
        _git(folder, "commit", "--quiet", f"--message={subject}", hours=number * 31, by=_PEOPLE[number % 3])
        number += 1

    for name, text in files.items():
        (folder / name).write_text(text)
    commit("A shop with prices, orders and a report")
    for at in range(6):
        commit(
            f"Explain point {at + 1} of the set-up", readme=("# Shop\n", f"# Shop\n\nPoint {at + 1}: see the wiki.\n")
        )
    _git(folder, "branch", "report")
    commit("Ship heavy parcels cheaper", prices=('* Decimal("1.10")', '* Decimal("0.95")'))
    commit("Orders can be returned", orders=('"shipped"]', '"shipped", "returned"]'))
    commit("Round the tax down to whole cents", prices=('(Decimal("0.01"))', '(Decimal("0.01"), "ROUND_DOWN")'))
    _git(folder, "branch", "feature")
    commit(
        "Discounts in percent of the net price",
        prices=("price, percent):\n", "price, percent):\n    # of the net price\n"),
    )
    commit("The report says the state", report=("order.total)", "order.total, order.state)"))
    commit("Reduced rate is 7.5 % for the season", prices=('"0.07"', '"0.075"'))
    for at in range(8):
        commit(f"Answer question {at + 1} of the customers", readme=("# Shop\n", f"# Shop\n\nQuestion {at + 1}.\n"))
    commit(
        "Free shipping above 20 kg",
        prices=("    if weight < 2:\n", "    if weight > 20:\n        return 0\n    if weight < 2:\n"),
    )
    _git(folder, "switch", "--quiet", "feature")
    commit("Season rate is 5 %", prices=('"0.07"', '"0.05"'))
    commit("Orders can be cancelled", orders=('["open"', '["cancelled", "open"'))
    _git(folder, "switch", "--quiet", "report")
    commit("The report has a head", report=("    for order", '    print("Orders")\n    for order'))
    _git(folder, "switch", "--quiet", "main")
    return folder


def _place(folder: Path, *dirty: tuple[str, str, str]) -> Place:
    """A copy of the shop in which `dirty` files have other text, at their end where `old` is empty."""
    shop = folder / "shop"
    shutil.copytree(_template(), shop)
    for name, old, new in dirty:
        path = shop / name
        text = path.read_text() if path.exists() else ""
        path.write_text(text.replace(old, new, 1) if old else text + new)
    hashes = _git(shop, "log", "--format=%h").split()
    subjects = _git(shop, "log", "--format=%s").splitlines()
    words = {name: hashes[subjects.index(subject)] for name, subject in {
        "broke": "Round the tax down to whole cents", "free": "Free shipping above 20 kg",
        "season": "Reduced rate is 7.5 % for the season"}.items()}  # fmt: skip
    python = [sys.executable, "-m"]
    servers = {"git": [*python, "mcp_git", "--write", str(shop)], "fs": [*python, "mcp_fs", str(shop)]}
    state = {"XDG_STATE_HOME": str(folder / "state"), "XDG_CACHE_HOME": str(folder / "cache")}
    servers["both"] = [*python, "mcp_batteries.mount", "--tools", "default,call_tools"]
    servers["both"] += ["git", "--write", str(shop), "--", "fs", str(shop)]
    return Place(shop, servers, {**state, "GIT_CONFIG_GLOBAL": os.devnull, "PAGER": "cat"}, words)


_FIX = ("shop/prices.py", "    return price * quantity\n", "    return Decimal(price) * quantity\n")
_DEBUG = (
    "shop/prices.py",
    "    total = net(price, quantity)\n",
    "    total = net(price, quantity)\n    print(total)\n",
)
_NOTES = ("notes.txt", "", "ask Chen about the season\n")
_HUNK = """--- a/shop/prices.py
+++ b/shop/prices.py
@@ -5,7 +5,7 @@


 def net(price, quantity):
-    return price * quantity
+    return Decimal(price) * quantity


 def tax(price, reduced=False):
""".replace("\n\n", "\n \n").replace("\n\n", "\n \n")
_WEEK = "--since=2026-10-12 --until=2026-10-19"


def _several(**calls: dict[str, object]) -> tuple[str, dict[str, object]]:
    return "both:call_tools", {"calls": [{"name": name, "arguments": given} for name, given in calls.items()]}


TASKS = [
    Task(
        "commit one hunk of two, and no other file",
        lambda folder: _place(folder, _FIX, _DEBUG, _NOTES),
        ["git status -s; git diff",
         "printf 'y\\nn\\n' | git add -p shop/prices.py && git commit -qm 'Prices may be text' && git status -s"],
        [("read_diff", {}),
         ("create_commit", {"message": "Prices may be text", "patch": _HUNK})],
        [r"notes\.txt"],
        "git show --format=%s HEAD; git status -s",
        [r"^Prices may be text.*\+    return Decimal\(price\)", r" M shop/prices.py\n\?\? notes.txt"],
    ),
    Task(
        "the last commit lacks a file, and its message a word: amend",
        lambda folder: _place(folder, ("shop/parcels.py", "", "LIMIT = 20\n"), _NOTES),
        ["git status -s; git log -1 --stat",
         "git add shop/parcels.py && git commit -q --amend -m 'Free shipping of parcels above 20 kg'"
         " && git show --stat --oneline; git status -s"],
        [("get_status", {}),
         ("create_commit", {"message": "Free shipping of parcels above 20 kg", "paths": ["shop/parcels.py"],
                            "amend": True})],
        [],
        "git log -2 --format=%s; git show --stat --format=; git status -s",
        ["^Free shipping of parcels above 20 kg\nAnswer.*parcels.py.*prices.py.*2 files", r"\?\? notes.txt"],
    ),
    Task(
        "taxes are a cent too low: which commit, whose, and what did it change",
        _place,
        ["git log -3 -L :tax:shop/prices.py"],
        [("get_blame", {"path": "shop/prices.py", "start_line": 10, "end_line": 16}), ("read_diff", {"rev": "@broke"})],
        ["@broke", "ROUND_DOWN"],
    ),
    Task(
        "merge feature, in a conflict take theirs",
        _place,
        ["git merge feature; git diff",
         "git checkout --theirs shop/prices.py && git commit -qa --no-edit && git log --oneline -3; git status -sb;"
         " grep -n REDUCED shop/prices.py"],
        [("run_merge", {"rev": "feature"}), ("continue_operation", {"action": "continue", "theirs": ["."]})],
        [r"0\.075.*0\.05"],
        "git log -1 --format='%s %p'; grep -n REDUCED shop/prices.py; git status -s",
        [r"^Merge branch 'feature' \w+ \w+\n4:REDUCED = Decimal\(.0.05.\)\n12:[^\n]*\n$"],
    ),
    Task(
        "on a branch of its own change the VAT to 21 %, commit it and merge it without fast-forward",
        _place,
        ["cat shop/prices.py",
         "git switch -qc vat && sed -i 's/VAT = Decimal(\"0.19\")/VAT = Decimal(\"0.21\")/' shop/prices.py"
         " && git commit -qam 'VAT is 21 %' && git switch -q main && git merge -q --no-ff --no-edit vat"
         " && git log --oneline --graph -4; git diff HEAD~1 --stat -p"],
        [("read_file", {"path": "shop/prices.py"}), ("create_branch", {"name": "vat", "switch": True}),
         ("fs:edit_file", {"path": "shop/prices.py", "edits": [{"old_text": 'VAT = Decimal("0.19")',
                                                                "new_text": 'VAT = Decimal("0.21")'}]}),
         ("create_commit", {"message": "VAT is 21 %", "all_tracked": True}),
         ("run_merge", {"rev": "vat", "message": "Merge branch 'vat'", "into": "main"})],
        [],
        "git log -2 --format=%s; git status -sb; grep ^VAT shop/prices.py",
        ["VAT is 21 %", "## main\n", r"0\.21"],
        [("both:git_read_file", {"path": "shop/prices.py"}),
         _several(git_create_branch={"name": "vat", "switch": True},
                  fs_edit_file={"path": "shop/prices.py", "edits": [{"old_text": 'VAT = Decimal("0.19")',
                                                                     "new_text": 'VAT = Decimal("0.21")'}]},
                  git_create_commit={"message": "VAT is 21 %", "all_tracked": True},
                  git_run_merge={"rev": "vat", "message": "Merge branch 'vat'", "into": "main"})],
    ),
    Task(
        "undo the commit on the season's rate, which others have",
        _place,
        ["git log --oneline -- shop/prices.py",
         "git revert --no-edit @season && git log -2 --format='%h %an %s' && git show --format= && git status -s"],
        [("list_commits", {"path": "shop/prices.py"}), ("revert_commit", {"rev": "@season"})],
        [],
        "git log -1 --format=%s; git show --format=",
        [r'^Revert "Reduced rate is 7.5 %.*\+REDUCED = Decimal\("0.07"\)'],
    ),
    Task(
        "the last commit of main belongs on report: move it there",
        _place,
        ["git status -sb; git log --oneline --graph -12 main report",
         "git switch -q report && git cherry-pick main && git branch -f main main~1 && git log --oneline -2;"
         " git log --oneline -2 main"],
        [("list_commits", {"all_branches": True, "graph": True, "limit": 12}), ("run_reset", {"rev": "main~1"}),
         ("run_cherry_pick", {"rev": "@free", "into": "report"})],
        ["@free"],
        "git log -2 --format=%s report; git log -1 --format=%s main; git status -sb",
        ["^Free shipping above 20 kg\nThe report has a head\nAnswer question 8 of the customers\n## report\n$"],
        [("both:git_list_commits", {"all_branches": True, "graph": True, "limit": 12}),
         _several(git_run_reset={"rev": "main~1"}, git_run_cherry_pick={"rev": "@free", "into": "report"})],
    ),
    Task(
        "what happened in the week from 12 October, by author",
        _place,
        [f"git shortlog {_WEEK} HEAD --format='%h %cs %s'; git diff --stat"
         f" $(git rev-list -1 --before=2026-10-12 HEAD) $(git rev-list -1 --before=2026-10-19 HEAD)"],
        [("list_commits", {"since": "2026-10-12", "until": "2026-10-19"})],
        ["Ada", "Ben", "Chen", "Discounts in percent"],
    ),
]  # fmt: skip


@click.command(help=__doc__)
@click.option("--show", is_flag=True, help="Each call with its answer, too.")
@click.option("--only", multiple=True, help="Tasks whose question holds this; repeatable.")
def main(show: bool, only: tuple[str, ...]) -> None:
    run("git", TASKS, only, show)


if __name__ == "__main__":
    main()
