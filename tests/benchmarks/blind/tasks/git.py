"""Tasks on a repository, each made from a seed with what should be left of it."""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path

from beside_shell import Place

from blind.ends import Ends, ends_of
from blind.history import HOUR, History, World, faults, make, run
from blind.task import Task, build_task, read_texts

_ANA = "Ana Ruiz <ana@shop.example>"
_BEN = "Ben Okafor <ben@shop.example>"
_CHEN = "Chen Wei <chen@shop.example>"
_DORA = "Dora Weiß <dora@shop.example>"
_TEAM = (_ANA, _BEN, _CHEN, _DORA)
_WORDS = ("cart", "price", "order", "parcel", "stock", "refund", "coupon", "report", "invoice", "basket", "filter")
_VERBS = ("Check", "Explain", "Sort", "Simplify", "Log", "Rename", "Cache", "Test", "Document", "Speed up")


def _subject(rng: random.Random) -> str:
    return f"{rng.choice(_VERBS)} the {rng.choice(_WORDS)} of a {rng.choice(_WORDS)}"


def _code(rng: random.Random, lines: int) -> str:
    calls = (f"{rng.choice(_WORDS)}_{number} = {rng.choice(_WORDS)}({rng.randint(1, 99)})" for number in range(lines))
    return "\n".join([*calls, ""])


def _files(rng: random.Random) -> dict[str, str | None]:
    """Return the files of a small shop."""
    files: dict[str, str | None] = {f"src/{word}.py": _code(rng, 30) for word in _WORDS}
    return files | {"README.md": "# Shop\n", "docs/guide.md": "# Guide\n\nSee the wiki.\n", ".gitignore": "build/\n"}


def _begin(rng: random.Random, files: Mapping[str, str | None]) -> History:
    history = History()
    history.commit("main", "A shop", _files(rng) | dict(files), _ANA)
    return history


def _grow(history: History, rng: random.Random, branch: str, commits: int) -> None:
    """Add commits that each change a line of some source."""
    sources = [path for path in history.files(branch) if path.startswith("src/")]
    for _ in range(commits):
        path = rng.choice(sources)
        lines = history.files(branch)[path].splitlines()
        lines[rng.randrange(len(lines))] = f"{rng.choice(_WORDS)} = {rng.choice(_WORDS)}({rng.randint(100, 999)})"
        history.commit(branch, _subject(rng), {path: "\n".join([*lines, ""])}, rng.choice(_TEAM))


def _name(author: str) -> str:
    return author.partition(" <")[0]


# A text is looked for through a merge, a rename and tags that sort badly.
@cache
def _introduced() -> World:
    rng = random.Random("introduced")
    net = _code(rng, 12)
    history = _begin(rng, {"net/client.py": net})
    _grow(history, rng, "main", 30)
    limits = f"{net}retry_limits = [1, 2, 5]\n"
    history.commit("main", "Several limits for retries", {"net/client.py": limits}, _ANA)
    history.point("refs/tags/v1.3.0", history.tips["main"])
    history.commit("main", "Plan the settings", {"docs/plans.md": "Then there is `retry_limit`.\n"}, _BEN)
    history.fork("retries", "main")
    _grow(history, rng, "main", 10)
    with_limit = f"{limits}retry_limit = 5\n"
    history.commit("retries", "Clients may say when to give up", {"net/client.py": with_limit}, _CHEN)
    history.commit("retries", "Test that clients give up", {"net/test_client.py": "assert retry_limit == 5\n"}, _DORA)
    _grow(history, rng, "main", 8)
    history.point("refs/tags/v1.4.0", history.tips["main"])
    history.fork("maintenance", "main")
    _grow(history, rng, "main", 5)
    history.merge("main", "retries", _BEN)
    history.point("refs/tags/v1.5.0-rc1", history.tips["main"])
    moved = {"net/client.py": None, "src/http.py": with_limit, "net/test_client.py": None}
    history.commit("main", "Move the client to src", {**moved, "src/test_http.py": "assert retry_limit == 5\n"}, _ANA)
    history.point("refs/tags/v1.5.0", history.tips["main"])
    _grow(history, rng, "main", 40)
    history.point("refs/tags/v1.10.0", history.tips["main"])
    _grow(history, rng, "maintenance", 3)
    history.point("refs/tags/v1.4.1", history.tips["maintenance"])
    wrong = ["Chen Wei, v1.5.0-rc1", "Chen Wei, v1.10.0", "Chen Wei, v1.4.1", "Ana Ruiz, v1.5.0", "Ben Okafor, v1.4.0"]
    return World(history, "Chen Wei, v1.5.0", wrong)


# Two branches are compared by what their commits change.
@cache
def _unported() -> World:
    rng = random.Random("unported")
    modules: dict[str, str | None] = {f"fixes/part{number:02}.py": _code(rng, 8) for number in range(44)}
    history = _begin(rng, modules)
    history.fork("stable", "main")
    missing = list[int]()
    same_subject = list[int]()
    renamed = list[int]()
    for number, path in enumerate(sorted(modules)):
        subject = f"{_subject(rng)}, part {number}"
        text = f"{modules[path]}fixed = {number}\n"
        commit = history.commit("stable", subject, {path: text}, rng.choice(_TEAM))
        match rng.choice(["ported", "ported", "ported", "renamed", "other", "missing"]):
            case "ported":
                history.commit("main", subject, {path: text}, rng.choice(_TEAM))
            case "renamed":
                renamed.append(commit)
                history.commit("main", f"Mend part {number}", {path: text}, rng.choice(_TEAM))
            case "other":
                same_subject.append(commit)
                history.commit("main", subject, {path: f"{modules[path]}fixed = {number + 1}\n"}, rng.choice(_TEAM))
            case _:
                missing.append(commit)
        if number % 9 == 0:
            _grow(history, rng, "main", 4)
    history.fork("hotfix", "stable")
    last = history.commit("hotfix", "Close the refund's file", {"src/refund.py": _code(rng, 31)}, _DORA)
    history.commit("stable", "Version 2.3.9", {"VERSION": "2.3.9\n"}, _BEN)
    version = history.tips["stable"]
    merge = history.merge("stable", "hotfix", _ANA)
    right = [*missing, *same_subject, last, version]

    def lines(commits: Sequence[int]) -> str:
        return "\n".join(history.hashes[number][:10] for number in commits)

    wrong = [[*missing, last, version], [*right, merge], [*right, *renamed], [*missing, *renamed, last, version]]
    return World(history, lines(right), [lines(commits) for commits in wrong])


# A commit is made into two.
@cache
def _split() -> World:
    rng = random.Random("split")
    history = _begin(rng, {"src/table.py": _code(rng, 20), "src/old.py": _code(rng, 5)})
    _grow(history, rng, "main", 12)
    table = history.files("main")["src/table.py"]
    export = f"# Export\n\n{_code(rng, 17)}"
    changes: dict[str, str | None] = {
        "src/table.py": None, "src/export/table.py": f"{table}csv = True\n", "src/old.py": None,
        "README.md": "# Shop\n\nIt exports orders.\n", "docs/export.md": export,
        "docs/guide.md": "# Guide\n\nSee the wiki.\nExports have a page.\n", "src/docs.py": "pages = 2\n",
    }  # fmt: skip
    history.commit("main", "Export orders as CSV\n\nThe accountant asked for it.", changes, _CHEN)
    prepare = "echo 'draft = True' >> src/cart.py; echo 'ask Chen' > notes.txt; echo 'See below.' >> docs/guide.md"
    solve = """
git stash -q
old=$(git rev-parse HEAD)
git reset -q --soft HEAD~1
git reset -q -- docs
git commit -q -C $old
git add docs
git commit -q -m 'Describe the export' --author='Chen Wei <chen@shop.example>'
git stash pop -q
"""
    wrong = [
        solve.replace(" --author='Chen Wei <chen@shop.example>'", ""),
        solve.replace("git stash -q\n", "").replace("git stash pop -q\n", ""),
        solve.replace("-C $old", "-m 'Export orders as CSV' --author='Chen Wei <chen@shop.example>'"),
        f"{solve}git checkout -q -- src/cart.py",
        f"{solve}git commit -qam 'The rest'",
    ]
    lines = export.count("\n") + 1
    return World(history, str(lines), [str(lines + 1), str(lines - 1)], prepare, solve, wrong)


# Commits that no branch has are found again.
@cache
def _lost() -> World:
    rng = random.Random("lost")
    history = _begin(rng, {"config.ini": "[shop]\nopen = yes\n"})
    _grow(history, rng, "main", 25)
    prepare = """
git switch -qc tax-old main~8
seq 1 9 > tax.csv; git add tax.csv; git commit -qm 'Add the tax table'
seq 1 31 > tax.csv; git commit -qam 'Tax for food'
git switch -q main
git switch -qc tax
seq 1 12 > tax.csv; git add tax.csv; git commit -qm 'Add the tax table'
seq 1 20 > tax.csv; git commit -qam 'Tax for books'
seq 1 24 > tax.csv; git commit -qam 'Tax for food'
seq 1 27 > tax.csv; git commit -q --amend -a -m 'Tax for food'
git switch -q main
git branch -qD tax
echo x > try.txt; git add try.txt; git commit -qm 'Try'; git reset -q --hard HEAD~1
git switch -q tax-old; seq 1 33 > tax.csv; git commit -q --amend -am 'Tax for food'; git switch -q main
git branch -qD tax-old
echo 'closed = no' >> config.ini
"""
    amended = "git log -g --format='%H %gs' | awk '/commit \\(amend\\): Tax for food/ {print $1}'"
    find = f"git branch tax $({amended} | sed -n 2p)"
    wrong = [find.replace("2p", "1p"), f"{find}~1", f"{find}; git switch -q tax", f"{find}; git checkout -q config.ini"]
    wrong.append(find.replace("commit \\(amend\\)", "commit"))
    return World(history, "27", ["24", "33", "31"], prepare, find, wrong)


# Commits move to another branch.
@cache
def _misplaced() -> World:
    rng = random.Random("misplaced")
    orders = _code(rng, 40)
    history = _begin(rng, {"src/orders.py": orders, "config.ini": "[shop]\nopen = yes\n"})
    _grow(history, rng, "main", 15)
    history.fork("export", "main")
    history.commit("export", "Orders have a folder", {"src/orders.py": None, "src/shop/orders.py": orders}, _BEN)
    _grow(history, rng, "export", 3)
    _grow(history, rng, "main", 4)
    history.point("refs/remotes/origin/main", history.tips["main"])
    history.point("refs/remotes/origin/export", history.tips["export"])
    first = orders.replace("\n", "\nexported = False\n", 1)
    history.commit("main", "Orders know whether they are exported", {"src/orders.py": first}, _ANA)
    history.commit("main", "Name the columns", {"src/columns.py": _code(rng, 6)}, _ANA)
    last = f"{first}columns = True\n"
    columns = {"src/orders.py": last, "docs/guide.md": "# Guide\n\nSee the wiki. Columns have names.\n"}
    history.commit("main", "Orders name their columns\n\nAs in the mail of Monday.", columns, _ANA)
    prepare = "echo 'closed = no' >> config.ini; echo 'ask Ben' > notes.txt"
    solve = """
git stash -q
git switch -q export
git cherry-pick main~3..main
git switch -q main
git reset -q --hard origin/main
git stash pop -q
"""
    wrong = [
        solve.replace("main~3..main", "main~2..main"),
        solve.replace("git stash pop -q", ""),
        solve.replace("git reset -q --hard origin/main", ""),
        solve.replace("git cherry-pick main~3..main", "git merge -q main"),
        f"{solve}git switch -q export",
    ]
    return World(history, "7", ["3", "8", "4"], prepare, solve, wrong)


# Conflicts are resolved file by file.
_PRICES = ("lamp", "desk", "chair", "shelf", "sofa", "bench", "table", "stool", "bed", "rug", "clock", "vase")


def _prices(cents: Mapping[str, int]) -> str:
    """Return a table of prices, with so much between them that only changes of the same price meet."""
    return "".join(f"# {name}\n# per piece\n{name} = {price}\n# end of {name}\n\n" for name, price in cents.items())


def _timeouts(upload: int, retries: int) -> str:
    return f"[upload]\ntimeout = {upload}\n\n# how often\n# at most\n\n[retry]\ncount = {retries}\n"


@cache
def _conflict() -> World:
    rng = random.Random("conflict")
    base = {name: rng.randint(10, 900) for name in _PRICES}
    log = "# Changes\n\n- A shop\n"
    history = _begin(rng, {"prices.toml": _prices(base), "config.ini": _timeouts(30, 3), "CHANGES.md": log})
    _grow(history, rng, "main", 6)
    history.fork("season", "main")
    season = base | {"lamp": 11, "bed": 22, "rug": 33}
    files = {"prices.toml": _prices(season), "CHANGES.md": log.replace("\n\n", "\n\n- Prices of the season\n", 1)}
    history.commit("season", "Prices of the season", {**files, "config.ini": _timeouts(60, 5)}, _BEN)
    _grow(history, rng, "main", 5)
    ours = base | {"lamp": 500, "rug": 600, "desk": 700}
    files = {"prices.toml": _prices(ours), "CHANGES.md": log.replace("\n\n", "\n\n- Desks cost more\n", 1)}
    history.commit("main", "Desks cost more", {**files, "config.ini": _timeouts(45, 3)}, _CHEN)
    _grow(history, rng, "main", 3)
    solve = """
git merge season > /dev/null || true
for entry in --theirs:prices.toml --ours:config.ini --union:CHANGES.md; do
    path=${entry#*:}
    for stage in 1 2 3; do git show :$stage:$path > ../stage$stage; done
    git merge-file -p ${entry%%:*} ../stage2 ../stage1 ../stage3 > $path
done
git commit -qam "Merge branch 'season'"
"""
    right = sum((ours | {"lamp": 11, "bed": 22, "rug": 33}).values())
    theirs = sum(season.values())
    wrong = [
        "git merge season > /dev/null || true\n"
        "git checkout -q --theirs prices.toml; git checkout -q --ours config.ini\n"
        "git merge-file -p --union <(git show :2:CHANGES.md) <(git show :1:CHANGES.md) <(git show :3:CHANGES.md) > c;"
        "mv c CHANGES.md; git commit -qam 'Merge'",
        "git merge -q --no-edit -X theirs season",
        "git merge -q --no-edit -X ours season",
        solve.replace("../stage2 ../stage1 ../stage3", "../stage3 ../stage1 ../stage2").replace("--theirs:", "--ours:"),
        f"{solve}git reset -q --soft HEAD~1; git commit -qm 'Merge the season'",
    ]
    return World(history, str(right), [str(theirs), str(sum(ours.values()))], "", solve, wrong)


# The commit that set a value is found behind others that only look like it.
def _settings(upload: str, download: int, *, is_sorted: bool = False) -> str:
    sections = [f"[upload]\n{upload}\nparts = 4\n", f"[download]\ntimeout = {download}\nparts = 8\n"]
    sections.append("[search]\ntimeout = 45\n")
    return "\n".join(sorted(sections) if is_sorted else sections)


@cache
def _first_bad() -> World:
    rng = random.Random("first bad")
    history = _begin(rng, {"settings.ini": _settings("timeout = 30", 20)})
    _grow(history, rng, "main", 15)
    history.commit("main", "Try longer uploads", {"settings.ini": _settings("timeout = 45", 20)}, _DORA)
    early = history.tips["main"]
    _grow(history, rng, "main", 10)
    history.commit("main", "Shorter uploads again", {"settings.ini": _settings("timeout = 30", 20)}, _DORA)
    _grow(history, rng, "main", 10)
    history.commit("main", "Downloads may be slow", {"settings.ini": _settings("timeout = 30", 45)}, _CHEN)
    _grow(history, rng, "main", 10)
    moved = {"settings.ini": None, "config/app.ini": _settings("timeout = 30", 45, is_sorted=True)}
    history.commit("main", "Settings have a folder", moved, _CHEN)
    history.fork("large-files", "main")
    _grow(history, rng, "main", 10)
    changed = _settings("timeout=45", 45, is_sorted=True)
    history.commit("large-files", "Large files need parts", {"docs/parts.md": "Parts.\n"}, _ANA)
    culprit = history.commit("large-files", "Tune the settings", {"config/app.ini": changed}, _BEN)
    history.commit("large-files", "Large files have a page", {"docs/large.md": "Large.\n"}, _ANA)
    merge = history.merge("main", "large-files", _DORA)
    _grow(history, rng, "main", 10)
    formatted = history.commit(
        "main", "Format the settings", {"config/app.ini": _settings("timeout = 45", 45, is_sorted=True)}, _ANA
    )
    _grow(history, rng, "main", 10)

    def line(commit: int, author: str) -> str:
        return f"{history.hashes[commit][:10]} {_name(author)}"

    wrong = [line(early, _DORA), line(merge, _DORA), line(formatted, _ANA), line(culprit, _ANA)]
    return World(history, line(culprit, _BEN), wrong)


# Commits are counted by author.
_MAILMAP = """Ana Ruiz <ana@shop.example> <ana.ruiz@old.example>
Ben Okafor <ben@shop.example> Benny <ben@home.example>
Dora Weiß <dora@shop.example> Dora White <dora@shop.example>
"""
_AUTHORS = {
    _ANA: "Ana Ruiz", "Ana <ana.ruiz@old.example>": "Ana Ruiz", _BEN: "Ben Okafor",
    "Benny <ben@home.example>": "Ben Okafor", "Ben Okafor <b.okafor@other.example>": "Ben Okafor 2", _CHEN: "Chen Wei",
    _DORA: "Dora Weiß", "Dora White <dora@shop.example>": "Dora Weiß", "renovate[bot] <bot@shop.example>": "",
}  # fmt: skip
_QUARTER = (datetime(2025, 7, 1, tzinfo=UTC), datetime(2025, 10, 1, tzinfo=UTC))


@cache
def _authors() -> World:
    rng = random.Random("authors")
    history = _begin(rng, {".mailmap": _MAILMAP})
    history.seconds = int(datetime(2025, 6, 20, tzinfo=UTC).timestamp())
    authored: Counter[str] = Counter()
    committed: Counter[str] = Counter()
    raw: Counter[str] = Counter()
    people = [author for author in _AUTHORS if "b.okafor" not in author]
    for number in range(420):
        history.seconds += rng.randint(3, 8) * HOUR
        author = rng.choice(people)
        zone = rng.choice([-7, 0, 0, 2, 9])
        when = datetime.fromtimestamp(history.seconds, UTC) - timedelta(hours=rng.choice([0, 1, 5, 300]))
        written = f"{int(when.timestamp())} {'-' if zone < 0 else '+'}{abs(zone):02}00"
        branch = "main"
        if number % 20 == 19:
            history.fork(f"topic-{number}", "main")
            branch = f"topic-{number}"
        text = f"{number}\n"
        history.commit(branch, _subject(rng), {f"log/{number:03}.txt": text}, author, written=written)
        if branch != "main":
            history.merge("main", branch, rng.choice(_TEAM))
        name = _AUTHORS[author]
        if name and _QUARTER[0] <= when < _QUARTER[1]:
            authored[name] += 1
            raw[_name(author)] += 1
        if name and _QUARTER[0] <= datetime.fromtimestamp(history.seconds, UTC) < _QUARTER[1]:
            committed[name] += 1

    def lines(counts: Counter[str]) -> str:
        return "\n".join(f"{count} {name}" for name, count in counts.most_common())

    return World(history, lines(authored), [lines(committed), lines(raw)])


# Notes are written from the subjects between two tags.
def _notes(features: Sequence[str], fixes: Sequence[str]) -> str:
    lines = [f"- {text}" for text in sorted(features)], [f"- {text}" for text in sorted(fixes)]
    return "\n".join(["## Features", "", *lines[0], "", "## Fixes", "", *lines[1], ""])


@cache
def _release_notes() -> World:
    rng = random.Random("release notes")
    history = _begin(rng, {"notes/2.3.0.md": "## Features\n\n- all\n"})
    numbers = iter(range(1000))

    def add(branch: str, subject: str, body: str = "") -> int:
        path = f"parts/{next(numbers):03}.py"
        message = f"{subject}\n\n{body}" if body else subject
        return history.commit(branch, message, {path: _code(rng, 3)}, rng.choice(_TEAM))

    def some(branch: str, commits: int) -> list[tuple[str, str, int]]:
        made = list[tuple[str, str, int]]()
        for _ in range(commits):
            kind = rng.choice(["feat", "feat(api)", "feat!", "fix", "fix(cart)", "fix", "chore", "docs", "fixtures"])
            words = [rng.choice(_VERBS).lower(), *rng.choices(_WORDS, k=3), str(len(history.tips)), str(next(numbers))]
            text = " ".join(words)
            made.append((kind, text, add(branch, f"{kind}: {text}")))
        return made

    some("main", 20)
    history.fork("search", "main")
    late = some("search", 6)
    some("main", 10)
    history.point("refs/tags/v2.3.0", history.tips["main"])
    released = some("main", 30)
    history.merge("main", "search", _BEN, "fix: merge the search")
    released += some("main", 20)
    kinds = {"feat": "feat", "feat(api)": "feat", "feat!": "feat", "fix": "fix", "fix(cart)": "fix"}
    listed = [(kinds[kind], text, commit) for kind, text, commit in [*released, *late] if kind in kinds]
    reverted = [*rng.sample(listed, 3)]
    subjects = {commit: f"{kind}: {text}" for kind, text, commit in [*released, *late]}
    hashes = history.hashes
    # They are found anew when the history has grown.
    del history.hashes
    for _, _, commit in reverted:
        add("main", f'Revert "{subjects[commit]}"', f"This reverts commit {hashes[commit]}.")
    history.point("refs/tags/v2.4.0", history.tips["main"])
    later = some("main", 7)
    kept = [entry for entry in listed if entry not in reverted]

    def texts(entries: Sequence[tuple[str, str, int]], kind: str) -> list[str]:
        return [text for name, text, _ in entries if name == kind]

    def script(entries: Sequence[tuple[str, str, int]]) -> str:
        text = _notes(texts(entries, "feat"), texts(entries, "fix"))
        commit = "git add notes && git commit -qm 'Notes for 2.4.0'"
        return f"cat > notes/2.4.0.md <<'END'\n{text}END\n{commit}"

    after = [(kinds[kind], text, commit) for kind, text, commit in later if kind in kinds]
    without_search = [entry for entry in kept if all(entry[1] != text for _, text, _ in late)]
    answer = f"{len(texts(kept, 'feat'))} {len(texts(kept, 'fix'))}"
    trapped = f"{len(texts(listed, 'feat'))} {len(texts(listed, 'fix'))}"
    wrong = [script(listed), script([*kept, *after]), script(without_search)]
    wrong.append(script(kept).replace("git add notes && git commit", "true"))
    return World(history, answer, [trapped], "", script(kept), wrong)


# What is not committed is put aside, and a part of it brought back.
@cache
def _stash() -> World:
    rng = random.Random("stash")
    history = _begin(rng, {"config.ini": "[shop]\nopen = yes\n"})
    _grow(history, rng, "main", 10)
    prepare = """
echo 'older = 1' >> src/cart.py; git stash push -qm 'before lunch'
echo 'older = 2' >> src/price.py; git stash push -qm 'try prices'
echo 'half = True' >> src/cart.py; git add src/cart.py; echo 'half = False' >> src/cart.py
echo 'closed = no' >> config.ini; git rm -q docs/guide.md
mkdir build drafts; echo made > build/out.txt; echo 'ask Ben' > drafts/notes.txt
echo new > src/new.py; git add src/new.py
"""
    solve = """
git stash push -qu -m 'before lunch'
git checkout -q stash@{0} -- src/cart.py
"""
    wrong = [
        solve.replace("-qu", "-q"),
        solve.replace("-qu", "-qa"),
        solve.replace("stash@{0}", "stash@{2}"),
        solve.replace("stash@{0}", "stash@{0}^2"),
        f"{solve}git stash drop -q",
        f"{solve}git stash drop -q stash@{{2}}",
        "git stash push -qu -m 'before lunch' -- config.ini drafts src/new.py",
    ]
    return World(history, "5", ["4", "3", "6"], prepare, solve, wrong)


_BUILDERS: Mapping[str, Callable[[], World]] = {
    "introduced": _introduced,
    "unported": _unported,
    "split": _split,
    "lost": _lost,
    "misplaced": _misplaced,
    "conflict": _conflict,
    "first-bad": _first_bad,
    "authors": _authors,
    "release-notes": _release_notes,
    "stash": _stash,
}
_TEXTS = read_texts(Path(__file__).with_suffix(".toml"))


def _ends(build: Callable[[], World]) -> Ends:
    world = build()

    def finish(script: str, answer: str, place: Place) -> str:
        run(place, script)
        return answer

    commit_more = f"{world.solve}\ngit commit -q --allow-empty -m 'One more'"
    leave_a_file = f"{world.solve}\necho left > left.txt"
    wrong_scripts = [commit_more, leave_a_file, *world.wrong]
    return ends_of(finish, world.solve, world.answer, world.wrong_answers, wrong_scripts)


TASKS: Sequence[Task] = [build_task(name, _TEXTS[name], build, make, faults) for name, build in _BUILDERS.items()]
ENDS: Mapping[str, Callable[[], Ends]] = {name: partial(_ends, build) for name, build in _BUILDERS.items()}
