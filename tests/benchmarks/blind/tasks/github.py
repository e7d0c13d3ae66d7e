"""Tasks on GitHub, each with a repository made from a seed and with what should be left of it."""

import copy
import json
import os
import random
import re
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any

from beside_shell import Place

from blind.ends import Ends, answer_faults, ends_of
from blind.hub import Hub
from blind.hub_state import REPOSITORY, Branch, Issue, Job, Pull, Release, Repository, Review, Run, is_bot
from blind.task import Task, build_task, read_texts
from github_server.oracle import Seen
from github_server.serving import TOKEN

Request = tuple[str, str, Mapping[str, Any]]
"""The verb, the path below the repository, and the body."""

_PEOPLE = ("ada", "ben", "chen", "dora", "eve-l", "farid", "grace")
_BOTS = ("renovate[bot]", "dependabot[bot]")
_LABELS = (
    "bug", "enhancement", "question", "docs", "good first issue", "backport 2.x", "backported", "skip-notes",
    "duplicate", "help wanted", "Bug-old",
)  # fmt: skip
_WORDS = (
    "cart", "price", "order", "parcel", "stock", "refund", "coupon", "report", "invoice", "basket", "filter", "search",
    "import", "theme", "login", "export",
)  # fmt: skip
_VERBS = ("Crash in", "Slow", "Wrong total of", "Sort", "Allow", "Fix", "Add", "Show", "Missing", "Fixture for", "fix")
_START = datetime(2026, 3, 1, 8, tzinfo=UTC)


@dataclass(frozen=True)
class World:
    """A task's repository, and the right answer.

    Attributes:
        solve: the requests that bring about the right end.
        wrong: requests that each bring about a wrong end instead.
    """

    repository: Repository
    answer: str
    wrong_answers: Sequence[str]
    solve: Sequence[Request] = ()
    wrong: Sequence[Sequence[Request]] = ()


_HUBS: dict[str, Hub] = {}
"""Those of this process, by their address."""


def _make(folder: Path, world: World) -> Place:
    """Make a folder with a hub of its own, which gh takes for its proxy, since gh speaks no plain HTTP otherwise."""
    hub = Hub(copy.deepcopy(world.repository))
    _HUBS[hub.url] = hub
    served = folder / "work"
    served.mkdir()
    host = "github.localhost"
    variables = {
        "GITHUB_API_URL": hub.url, "GITHUB_REPOSITORY": REPOSITORY, "GH_TOKEN": TOKEN, "GH_HOST": host,
        "GH_REPO": f"{host}/{REPOSITORY}", "GH_CONFIG_DIR": str(folder / "gh"), "GH_NO_UPDATE_NOTIFIER": "1",
        "GH_PROMPT_DISABLED": "1", "HTTP_PROXY": hub.url, "NO_PROXY": "", "no_proxy": "", "NO_COLOR": "1",
        "XDG_STATE_HOME": str(folder / "state"), "XDG_CACHE_HOME": str(folder / "cache"),
    }  # fmt: skip
    command = ["env", "-u", "HTTP_PROXY", f"GITHUB_TOKEN={TOKEN}", sys.executable, "-m", "mcp_github"]
    command += [
        "--api-url",
        hub.url,
        "--write",
        "--releases",
        "--delete",
        "--toolsets",
        "default,actions,releases,labels",
    ]
    return Place(served, {"github": [*command, "--flow", "off", "--write-interval", "0"]}, variables)


def _hub(place: Place) -> Hub:
    return _HUBS[place.variables["GITHUB_API_URL"]]


def _send(hub: Hub, requests: Sequence[Request]) -> None:
    for verb, path, body in requests:
        seen = Seen(verb, f"/repos/{REPOSITORY}{path}", {}, json.dumps(body).encode())
        reply = hub.reply(seen)
        assert reply.status < 300, (verb, path, reply)


def _faults(place: Place, answer: str, world: World) -> list[str]:
    """Compare an answer and a repository with the right answer and what the right end leaves of another one."""
    right = Hub(copy.deepcopy(world.repository))
    _send(right, world.solve)
    right.close()
    expected, actual = right.repository.state(), _hub(place).repository.state()
    found = answer_faults(answer, world.answer)
    for name in expected.keys() | actual.keys():
        if actual.get(name) != expected.get(name):
            found.append(f"{name} is {actual.get(name, 'missing')}, not {expected.get(name, 'there')}")
    return found


# What every repository has
def _time(hours: float) -> str:
    return (_START + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _title(rng: random.Random) -> str:
    return f"{rng.choice(_VERBS)} {rng.choice(_WORDS)} {rng.choice(_WORDS)} {rng.randint(100, 9999)}"


def _sha(rng: random.Random) -> str:
    return f"{rng.getrandbits(160):040x}"


def _text(rng: random.Random) -> str:
    return " ".join(rng.choices(_WORDS, k=rng.randint(8, 30))).capitalize() + "."


def _repository(seed: str, issues: int = 220, pulls: int = 130) -> tuple[random.Random, Repository]:
    """Return a shop's repository with issues and pull requests among each other, about an hour apart."""
    rng = random.Random(seed)
    repository = Repository(labels=list(_LABELS))
    repository.milestones = dict.fromkeys(["2.3", "2.4", "2.4.1", "2.5"], "open") | {"2.3": "closed"}
    kinds = ["issue"] * issues + ["pull"] * pulls
    rng.shuffle(kinds)
    step = 24 * 262 / len(kinds)
    for number, kind in enumerate(kinds, 1):
        author = rng.choice([*_PEOPLE, *_PEOPLE, *_BOTS])
        issue = Issue(number, _title(rng), author, _time(number * step), _text(rng))
        issue.milestone = rng.choice(["", "", *repository.milestones])
        issue.labels = rng.sample(_LABELS[:5], rng.choice([0, 0, 1, 1, 2]))
        if rng.random() < 0.35:
            issue.closed, issue.reason = _time(number * step + 5), "completed"
        if kind == "pull":
            issue.reason = ""
            issue.pull = _pull(rng, issue)
        repository.issues[number] = issue
    for number in range(5):
        published = _time(number * 24 * 45)
        repository.releases.append(Release(f"v2.{number}.0", f"2.{number}.0", "Notes.", published))
    repository.branches = [Branch("main", _sha(rng), _time(24 * 270), "ada", is_protected=True)]
    return rng, repository


def _pull(rng: random.Random, issue: Issue) -> Pull:
    pull = Pull(f"{rng.choice(_WORDS)}-{issue.number}", _sha(rng), rng.choice(["main", "main", "main", "release/2.x"]))
    if rng.random() < 0.3:
        issue.closed = issue.closed or issue.created
    if issue.closed and rng.random() < 0.8:
        pull.merged_at = issue.closed
    pull.is_draft = not issue.closed and rng.random() < 0.2
    for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
        reviewer = rng.choice([*_PEOPLE, "reviewer[bot]"])
        pull.reviews.append(Review(reviewer, rng.choice(["APPROVED", "CHANGES_REQUESTED", "COMMENTED"]), _text(rng)))
    return pull


def _only_issues(repository: Repository) -> list[Issue]:
    return [issue for issue in repository.issues.values() if issue.pull is None]


def _pulls(repository: Repository) -> list[tuple[Issue, Pull]]:
    return [(issue, issue.pull) for issue in repository.issues.values() if issue.pull is not None]


def _numbers(numbers: Sequence[int]) -> str:
    return "\n".join(str(number) for number in sorted(numbers))


def _close(number: int, reason: str) -> Request:
    return "PATCH", f"/issues/{number}", {"state": "closed", "state_reason": reason}


def _add_label(number: int, label: str) -> Request:
    return "POST", f"/issues/{number}/labels", {"labels": [label]}


# Labels are given by what stands in the text.
_KINDS = {"crash": "bug", "wish": "enhancement", "question": "question"}


@cache
def _triage() -> World:
    rng, repository = _repository("triage")
    chosen = dict[int, str]()
    others = dict[int, str]()
    for issue in repository.issues.values():
        kind = rng.choice([*_KINDS])
        spelled = rng.choice([f"Kind: {kind}", f"kind: {kind.upper()}", f"Kind: {kind.capitalize()}"])
        issue.body = f"{_text(rng)} A {rng.choice([*_KINDS])}?\n\n{spelled}\n\n{_text(rng)}"
        if issue.closed or issue.labels:
            continue
        if is_bot(issue.author) or issue.pull:
            others[issue.number] = _KINDS[kind]
        else:
            chosen[issue.number] = _KINDS[kind]
    solve = [_add_label(number, label) for number, label in chosen.items()]
    trapped = [_add_label(number, label) for number, label in others.items()]
    counts, more = Counter(chosen.values()), Counter([*chosen.values(), *others.values()])
    answers = [" ".join(str(found[label]) for label in _KINDS.values()) for found in (counts, more)]
    wrong = [solve[:-1], [*solve, trapped[0]], [*solve[1:], ("PUT", solve[0][1], {"labels": ["question", "bug"]})]]
    return World(repository, answers[0], answers[1:], solve, wrong)


# Pull requests without a review that decides
def _waits(issue: Issue, pull: Pull) -> bool:
    decided = any(review.state != "COMMENTED" for review in pull.reviews)
    return not (issue.closed or pull.is_draft or decided or is_bot(issue.author)) and pull.base == "main"


@cache
def _waiting() -> World:
    _, repository = _repository("waiting", 120, 330)
    right = [issue.number for issue, pull in _pulls(repository) if _waits(issue, pull)]
    unreviewed = [number for number in right if not _reviews(repository, number)]
    opened = [issue.number for issue, pull in _pulls(repository) if not issue.closed and pull.base == "main"]
    wrong = [_numbers(numbers) for numbers in (unreviewed, opened, right[:-1])]
    return World(repository, _numbers(right), wrong)


def _reviews(repository: Repository, number: int) -> Sequence[Review]:
    pull = repository.issues[number].pull
    return pull.reviews if pull else []


# The one failure that matters is found in a log.
def _log(rng: random.Random, failed: str, flaky: str) -> str:
    """Return the log of a job, which failed if a test did; a flaky test failed only at first."""
    lines = [f"##[group]Run uv run pytest {' '.join(rng.choices(_WORDS, k=3))}", "##[endgroup]"]
    for number in range(500):
        module, test = rng.choice(_WORDS), rng.choice(_WORDS)
        lines.append(f"tests/test_{module}.py::test_{test}_{number} PASSED [{number // 5:3}%]")
    lines.insert(150, f"{flaky} RERUN [ 29%]")
    lines.insert(151, f"{flaky} FAILED [ 29%] (will be run again)")
    lines.insert(152, f"{flaky} PASSED [ 30%]")
    if failed:
        lines.insert(300, f"{failed} FAILED [ 60%]")
        lines += ["=== FAILURES ===", "    def test():", ">       assert refund(cart) == 1994",
                  "E       assert 1995 == 1994", "=== short test summary info ===",
                  f"FAILED {failed} - assert 1995 == 1994", "=== 1 failed, 500 passed, 1 rerun in 61.02s ===",
                  "##[error]Process completed with exit code 1."]  # fmt: skip
    return "".join(f"2026-11-20T10:00:{number % 60:02}.0000000Z {line}\n" for number, line in enumerate(lines))


@cache
def _red_check() -> World:
    rng, repository = _repository("red check")
    opened = [issue for issue, pull in _pulls(repository) if not issue.closed and pull.base == "main"]
    subject, other = opened[-3], opened[-9]
    subject.title, other.title = "Round refunds to whole cents", "Round refunds to whole cents in reports"
    right, old, flaky = (f"tests/test_{name}.py::test_{name}_rounds" for name in ("refund", "coupon", "stock"))
    assert subject.pull and other.pull
    commits = [(subject.pull, _sha(rng), "test (3.11)", old), (subject.pull, subject.pull.sha, "test (3.13)", right),
               (other.pull, other.pull.sha, "test (3.12)", old)]  # fmt: skip
    names = [*(f"test (3.{minor})" for minor in range(11, 15)), "test (3.13, windows)", "lint", "types", "build"]
    for place, (pull, sha, red, test) in enumerate(commits):
        jobs = [Job(name, "failure" if name == red else "success", _log(rng, test if name == red else "", flaky))
                for name in names]  # fmt: skip
        links = _log(rng, "", flaky) + "2026-11-20T10:09:00.0000000Z ##[error]docs/guide.md: link to example.org: 404\n"
        jobs.insert(2, Job("docs links", "failure", links))
        repository.runs.append(Run(7001 + place, pull.head, sha, jobs, f"2026-11-2{place}T10:00:00Z"))
    wrong = [f"test (3.11), {old}", f"test (3.13), {flaky}", f"test (3.12), {old}", f"docs links, {right}"]
    return World(repository, f"test (3.13), {right}", wrong)


# Labels are given by a milestone and a title.
@cache
def _backports() -> World:
    rng, repository = _repository("backports", 200, 260)
    right = list[int]()
    trapped = list[int]()
    for issue, pull in _pulls(repository):
        if rng.random() < 0.4:
            issue.title = f"{rng.choice(['Fix', 'Fix', 'Fix', 'Fixture for', 'Prefix'])} {_title(rng)}"
        if rng.random() < 0.15:
            issue.labels = [*issue.labels, "backported"]
        if issue.milestone != "2.4.1" or not issue.title.startswith("Fix") or not issue.closed:
            continue
        is_right = bool(pull.merged_at) and pull.base == "main" and "backported" not in issue.labels
        if is_right and re.match(r"Fix\b", issue.title):
            right.append(issue.number)
        else:
            trapped.append(issue.number)
    solve = [_add_label(number, "backport 2.x") for number in right]
    replaced: Request = ("PUT", f"/issues/{right[0]}/labels", {"labels": ["backport 2.x", "docs", "bug"]})
    wrong = [solve[:-1], [*solve, _add_label(trapped[0], "backport 2.x")], [replaced, *solve[1:]]]
    return World(repository, str(len(right)), [str(len(right) + len(trapped))], solve, wrong)


# A release is drafted from what was merged.
@cache
def _release_draft() -> World:
    rng, repository = _repository("release draft", 120, 300)
    published = repository.releases[-1].published
    repository.releases.append(Release("v2.4.1-rc.1", "2.4.1 rc", "For tests.", _time(24 * 200), prerelease=True))
    lines = list[str]()
    trapped = list[str]()
    for issue, pull in _pulls(repository):
        if rng.random() < 0.15:
            issue.labels = [*issue.labels, "skip-notes"]
        if not issue.closed and rng.random() < 0.5:
            issue.closed = issue.created
        # Some are merged long after they were opened.
        if pull.merged_at and rng.random() < 0.3:
            pull.merged_at = issue.closed = _time(24 * rng.randint(170, 265))
        line = f"- {issue.title} (#{issue.number}) by @{issue.author}"
        if pull.merged_at > published and pull.base == "main" and not is_bot(issue.author):
            trapped.append(line)
            if "skip-notes" not in issue.labels:
                lines.append(line)
    release = {
        "tag_name": "v2.5.0",
        "target_commitish": "main",
        "name": "2.5.0",
        "body": "\n".join(lines),
        "draft": True,
    }
    solve: Sequence[Request] = [("POST", "/releases", release)]

    def changed(**values: Any) -> Sequence[Request]:
        return [("POST", "/releases", {**release, **values})]

    wrong = [
        changed(draft=False), changed(body="\n".join(trapped)), changed(body="\n".join(lines[:-1])),
        changed(name="v2.5.0"), changed(body="\n".join(reversed(lines))),
    ]  # fmt: skip
    return World(repository, str(len(lines)), [str(len(trapped))], solve, wrong)


# Issues with the same title are closed but for one.
@cache
def _duplicates() -> World:
    rng, repository = _repository("duplicates", 320, 60)
    issues = list(repository.issues.values())
    for issue in rng.sample(issues[60:], 45):
        title = rng.choice(issues[: issue.number - 1]).title
        issue.title = rng.choice([title, title.upper(), title.replace(" ", "  "), f" {title.lower()}", f"{title}0"])
    same: dict[str, list[int]] = defaultdict(list)
    for issue in _only_issues(repository):
        if not issue.closed:
            same[" ".join(issue.title.lower().split())].append(issue.number)
    pairs = [(number, numbers[0]) for numbers in same.values() for number in numbers[1:]]
    exact = [pair for pair in pairs if repository.issues[pair[0]].title == repository.issues[pair[1]].title]

    def requests(pairs: Sequence[tuple[int, int]], reason: str = "not_planned") -> list[Request]:
        made = list[Request]()
        for number, first in pairs:
            made.append(("POST", f"/issues/{number}/comments", {"body": f"Duplicate of #{first}"}))
            made.append(_close(number, reason))
        return made

    solve = requests(pairs)
    without_comment = [request for request in solve if request[0] == "PATCH"]
    wrong = [
        without_comment,
        requests(exact),
        requests(pairs, "completed"),
        requests([(first, number) for number, first in pairs]),
    ]
    return World(repository, str(len(pairs)), [str(len(exact)), str(2 * len(pairs))], solve, wrong)


# Issues move to another milestone.
@cache
def _milestone() -> World:
    rng, repository = _repository("milestone", 360, 90)
    for issue in repository.issues.values():
        if rng.random() < 0.12:
            issue.milestone = "2.4"
    inside = [issue for issue in repository.issues.values() if issue.milestone == "2.4"]
    right = [issue.number for issue in inside if not issue.pull and not issue.closed]
    pulls = [issue.number for issue in inside if issue.pull and not issue.closed]
    closed = [issue.number for issue in inside if not issue.pull and issue.closed]
    moves: list[Request] = [("PATCH", f"/issues/{number}", {"milestone": 4}) for number in right]
    end: Request = ("PATCH", "/milestones/2", {"state": "closed"})
    wrong: list[Sequence[Request]] = [
        moves,
        [*moves[1:], end],
        [*moves, ("PATCH", f"/issues/{pulls[0]}", {"milestone": 4}), end],
        [*moves, ("PATCH", f"/issues/{closed[0]}", {"milestone": 4}), end],
        [*moves, ("PATCH", "/milestones/3", {"state": "closed"})],
    ]
    return World(repository, str(len(right)), [str(len(right) + len(pulls)), str(len(inside))], [*moves, end], wrong)


# Reviews of a month are counted.
@cache
def _reviewers() -> World:
    rng, repository = _repository("reviewers", 150, 260)
    right: Counter[str] = Counter()
    every: Counter[str] = Counter()
    # The busy ones differ from those who only write much.
    weights = dict(zip(_PEOPLE, (5, 9, 3, 1, 2, 7, 1), strict=True))
    for issue, pull in _pulls(repository):
        pull.reviews = [
            Review(rng.choices(list(weights), list(weights.values()))[0],
                   rng.choice(["APPROVED", "CHANGES_REQUESTED", "COMMENTED"]), _text(rng))
            for _ in range(rng.randint(0, 4))
        ]  # fmt: skip
        pull.reviews += [Review("reviewer[bot]", "APPROVED")] * rng.randint(0, 1)
        if pull.merged_at and rng.random() < 0.2:
            pull.merged_at = issue.closed = f"2026-10-{rng.randint(1, 31):02}T{rng.choice(['00', '12', '23'])}:30:00Z"
        if not pull.merged_at.startswith("2026-10"):
            continue
        deciding = [review.author for review in pull.reviews if review.state != "COMMENTED"]
        right.update({author for author in deciding if author != issue.author and not is_bot(author)})
        every.update(review.author for review in pull.reviews)

    def lines(counts: Counter[str]) -> str:
        return "\n".join(f"{login} {count}" for login, count in counts.most_common(3))

    third, fourth = [count for _, count in right.most_common(4)][2:]
    assert third > fourth, right
    return World(repository, lines(right), [lines(every), "\n".join(reversed(lines(every).splitlines()))])


# Branches are deleted by their age.
@cache
def _stale_branches() -> World:
    rng, repository = _repository("stale branches", 60, 130)
    heads = {pull.head: bool(issue.closed) for issue, pull in _pulls(repository)}
    limit = "2026-06-01"
    # The branches of most pull requests are gone.
    for head in rng.sample([*heads], 25):
        repository.branches.append(Branch(head, _sha(rng), _time(rng.randint(0, 24 * 260)), rng.choice(_PEOPLE)))
    for number in range(24):
        name = f"{rng.choice(['wip', 'release', 'Release', 'try', 'releases'])}/{rng.choice(_WORDS)}-{number}"
        when = rng.choice(
            [_time(rng.randint(0, 24 * 260)), f"2026-05-31T23:{number % 60:02}:00Z", "2026-06-01T00:10:00Z"]
        )
        protected = rng.random() < 0.2
        repository.branches.append(Branch(name, _sha(rng), when, rng.choice(_PEOPLE), is_protected=protected))
    old = [branch for branch in repository.branches if branch.committed < limit and not branch.is_protected]
    kept = [branch.name for branch in old if branch.name.startswith("release/")]
    in_review = [branch.name for branch in old if not heads.get(branch.name, True)]
    right = [branch.name for branch in old if branch.name not in kept and branch.name not in in_review]
    solve: list[Request] = [("DELETE", f"/git/refs/heads/{name}", {}) for name in right]
    extra: list[Request] = [("DELETE", f"/git/refs/heads/{names[0]}", {}) for names in (kept, in_review)]
    wrong = [solve[1:], [*solve, extra[0]], [*solve, extra[1]]]
    return World(repository, str(len(right)), [str(len(old)), str(len(right) + len(in_review))], solve, wrong)


# Issues are closed that a merged pull request fixes.
@cache
def _fixed_issues() -> World:
    rng, repository = _repository("fixed issues", 300, 200)
    opened = [issue.number for issue in _only_issues(repository) if not issue.closed]
    fixed = set[int]()
    trapped = set[int]()
    for issue, pull in _pulls(repository):
        number = rng.choice([rng.choice(opened), rng.choice(opened), rng.choice(_only_issues(repository)).number])
        word = rng.choice(["Fixes", "fixes", "Closes", "CLOSES", "See", "Part of", "Undoes the fix of"])
        if rng.random() < 0.5:
            continue
        issue.body = f"{_text(rng)}\n\n{word} #{number}\n\n{_text(rng)}"
        is_fix = word.lower() in ("fixes", "closes")
        if pull.merged_at and pull.base == "main" and is_fix:
            fixed.add(number)
        else:
            trapped.add(number)
    right = sorted(fixed & {*opened})
    more = sorted((trapped - fixed) & {*opened})
    solve = [_close(number, "completed") for number in right]
    wrong = [
        solve[1:],
        [*solve, _close(more[0], "completed")],
        [_close(number, "not_planned") for number in right],
        [*solve, ("POST", f"/issues/{right[0]}/comments", {"body": "Fixed."})],
    ]
    return World(repository, _numbers(right), [_numbers([*right, *more]), _numbers(sorted(fixed))], solve, wrong)


_BUILDERS: Mapping[str, Callable[[], World]] = {
    "triage": _triage,
    "waiting": _waiting,
    "red-check": _red_check,
    "backports": _backports,
    "release-draft": _release_draft,
    "duplicates": _duplicates,
    "milestone": _milestone,
    "reviewers": _reviewers,
    "stale-branches": _stale_branches,
    "fixed-issues": _fixed_issues,
}
_TEXTS = read_texts(Path(__file__).with_suffix(".toml"))


def shell_hint() -> str:
    """Return what an agent with a shell is told beside the task."""
    # gh would prefer it to the token of the place.
    os.environ.pop("GITHUB_TOKEN", None)
    program = "`gh` is logged in" if shutil.which("gh") else "There is no gh"
    return f"{program}; for curl the REST API is at $GITHUB_API_URL, with the token in $GH_TOKEN."


def _ends(build: Callable[[], World]) -> Ends:
    world = build()

    def finish(requests: Sequence[Request], answer: str, place: Place) -> str:
        _send(_hub(place), requests)
        return answer

    first = min(world.repository.issues)
    chat: Request = ("POST", f"/issues/{first}/comments", {"body": "Hello"})
    rename: Request = ("PATCH", f"/issues/{first}", {"title": "Another"})
    wrong = [[*world.solve, chat], [*world.solve, rename], *world.wrong]
    return ends_of(finish, world.solve, world.answer, world.wrong_answers, wrong)


TASKS: Sequence[Task] = [build_task(name, _TEXTS[name], build, _make, _faults) for name, build in _BUILDERS.items()]
ENDS: Mapping[str, Callable[[], Ends]] = {name: partial(_ends, build) for name, build in _BUILDERS.items()}
