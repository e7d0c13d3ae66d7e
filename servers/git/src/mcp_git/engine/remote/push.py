"""Fetches and pushes: to the one address that was checked, and without the repository's own configuration.

For each run git gets a remote of ours with an unused name, so that no other addresses or refspecs of the repository's
configuration apply.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence

from mcp_batteries.errors import Conflict, Invalid, NotFound, Problem, Refused, Unavailable, quote
from mcp_batteries.limits import Stop
from mcp_batteries.progress import tell
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.output import clip, split_lines
from mcp_git.engine.program.revisions import find_commits
from mcp_git.engine.remote.push_request import PlannedPush, PushRequest
from mcp_git.models import Answer, count
from mcp_git.path_quoting import escape_line_breaks
from mcp_git.policy import FetchableRepository, NewName, Policy, PushableRepository, Remote, Repository
from mcp_git.remote_addresses import hide_password
from mcp_git.tool_calls import format_call

__all__ = ["Remotes"]

_ROWS = 20
_ROW = 120
_SAID = 5
_PHASE = re.compile(r"(?:^|[\r\n])(?:remote: )?([A-Z][a-z]+ [a-z]+): +(\d{1,3})% \(([\d/]{1,25})\)")
_WHY: Sequence[tuple[str, type[Problem], str, str]] = (
    (r"could not read (?:Username|Password)|Authentication failed|Permission denied \(|HTTP 40[13]|error: 40[13]",
     Refused, "The remote {0} does not let in whoever the server runs as",
     "The operator's own credential helper or ssh agent has to know who they are; try `git fetch` in a terminal."),
    (r"Host key verification failed|authenticity of host", Refused, "The host of the remote {0} is not known to ssh",
     "The operator can connect to it once in a terminal."),
    (r"unable to update url base|redirect", Refused, "The remote {0} answers from another address, which is not "
     "followed", "The operator can set the new one: `git remote set-url`."),
    (r"(?i)couldn't find remote ref|no such remote ref", NotFound, "The remote {0} has no such branch",
     "Fetch without `branch`, then `list_refs`."),
    (r"fsck|badly formed|index-pack (?:failed|died)|invalid index-pack", Refused, "What the remote {0} sent is not "
     "sound, and was not taken", "The operator can ask who runs it."),
    (r"not found|does not appear to be a git repository|does not exist|HTTP 404|error: 404", NotFound,
     "There is no repository at the address of the remote {0}, or none for whoever the server runs as",
     "`list_refs` of `remotes` has the address."),
    (r"(?i)could not resolve|unable to access|connection (?:refused|reset|timed)|could not read from remote|hung up"
     r"|early EOF|unable to connect|timed out",
     Unavailable, "The remote {0} can't be reached", "Call again later."),
)  # fmt: skip


class Remotes:
    """Talks to remotes; every method blocks."""

    def __init__(self, git: Git, policy: Policy) -> None:
        self._git, self._policy = git, policy

    def fetch(
        self, fetchable: FetchableRepository, name: str, branch: NewName | None, tags: bool, prune: bool, stop: Stop
    ) -> Answer:
        """Bring what a remote has that is not here: its branches as `refs/remotes/`, and tags of what comes.

        Raises:
            Problem: the remote or git refused.
        """
        repository = fetchable.repository
        remote = self._remote(repository, name)
        refs = [f"+refs/heads/{branch.text}:refs/remotes/{remote.name}/{branch.text}"] if branch else []
        before = self._refs(repository, remote, stop)
        words = ["fetch", "--progress", "--atomic", "--no-recurse-submodules", "--no-auto-maintenance"]
        words += ["--tags"] * tags + ["--prune"] * prune
        said, _ = self._talk(repository, remote, words, "upload-pack", refs, stop)
        after = self._refs(repository, remote, stop)
        rows = list(self._moved(repository, before, after, stop))
        facts = [f"fetched from {remote.name}, {remote.address.display}"]
        facts.append(f"{count(len(rows), 'ref')} changed" if rows else "nothing new")
        if len(rows) > _ROWS * 10:
            rows = [*rows[: _ROWS * 10], f"… and {len(rows) - _ROWS * 10:,} more"]
        return Answer(facts, [*rows, *_remarks(said)])

    def plan(self, pushable: PushableRepository, wanted: PushRequest, stop: Stop) -> PlannedPush:
        """What a push would be, from what is known here.

        Raises:
            Problem: it can't be made so.
        """
        repository = pushable.repository
        remote = self._remote(repository, wanted.remote, push=True)
        if wanted.delete:
            return self._deletion(repository, remote, wanted, stop)
        source, branch, oid = self._source(repository, wanted, stop)
        self._refuse_large_files(repository, oid, stop)
        if wanted.target is None and not wanted.is_tag and not branch:
            raise Invalid(f"{quote(source)} is not a branch, so it needs a name there.", "Give it as `to`.")
        if wanted.sets_upstream and not branch:
            raise Invalid(f"Only a branch can follow another, and {quote(source)} is none.", "Leave `upstream` out.")
        short = wanted.target.text if wanted.target else self._usual(repository, branch, remote) if branch else source
        ref = f"refs/{'tags' if wanted.is_tag else 'heads'}/{short}"
        known = "" if wanted.is_tag else f"refs/remotes/{remote.name}/{short}"
        before = self._oid(repository, known, stop) if known else ""
        if wanted.force and not before:
            why = "A tag is not replaced." if wanted.is_tag else f"What the remote has as {quote(short)} is not known."
            raise Conflict(why, "Use another name." if wanted.is_tag else "`run_fetch` first, or leave `force` out.")
        theirs = ["--not", f"--remotes={remote.name}"]
        new = self._listed(repository, "New there", [oid, *theirs], stop)
        lost = self._listed(repository, "Lost there", [before, "--not", oid], stop) if wanted.force else []
        follows = branch if wanted.sets_upstream else ""
        return PlannedPush(remote, source, follows, oid, ref, before, wanted.force, new, lost)

    def _deletion(self, repository: Repository, remote: Remote, wanted: PushRequest, stop: Stop) -> PlannedPush:
        if wanted.force or wanted.sets_upstream:
            raise Invalid("`delete` goes with neither `force` nor `upstream`.", "Leave them out.")
        if wanted.target is None and wanted.revision is None:
            raise Invalid("It is not said what is to be deleted there.", "Name it as `to`.")
        named = wanted.target or self._policy.parse_new_name(wanted.revision.text if wanted.revision else "")
        short, theirs = named.text, f"{remote.name}/{named.text}"
        ref = f"refs/tags/{short}" if wanted.is_tag else f"refs/heads/{short}"
        before = self._oid(repository, ref if wanted.is_tag else f"refs/remotes/{theirs}", stop)
        if not before:
            why = f"What the remote {quote(remote.name)} has as {quote(short)} is not known here."
            raise Conflict(why, f"`run_fetch`{' with `tags`' if wanted.is_tag else ''} first.")
        span = [before, "--not", f"--exclude={theirs}", f"--remotes={remote.name}"]
        lost = [] if wanted.is_tag else self._listed(repository, "In no other branch there", span, stop)
        return PlannedPush(remote, short, "", "", ref, before, False, [], lost)

    def push(self, pushable: PushableRepository, plan: PlannedPush, stop: Stop) -> Answer:
        """Make a push that was agreed to.

        Raises:
            Conflict: the remote has something else than was known.
            Problem: the remote or git refused.
        """
        repository, remote = pushable.repository, plan.remote
        words = ["push", "--porcelain", "--progress", "--no-verify", "--no-signed", "--no-follow-tags"]
        words += ["--no-recurse-submodules", *plan.lease_options]
        refs = [f"{plan.commit}:{plan.target_ref}"]
        said, printed = self._talk(repository, remote, words, "receive-pack", refs, stop, fine=(0, 1))
        flag, _, summary = next(
            (line.split("\t", 2) for line in printed.split("\n") if line.count("\t") == 2), ["", "", ""]
        )
        if flag not in (" ", "+", "*", "=", "-"):
            raise _rejected(summary, said, remote)
        if not plan.commit:
            again = {"rev": plan.target_name, "tag": True} if plan.kind == "tag" else {"rev": plan.known_commit[:12]}
            undo = format_call(
                "run_push", **again, **({} if plan.kind == "tag" else {"to": plan.target_name}), remote=remote.name
            )
            facts = [f"deleted the {plan.kind} {plan.target_name} of {remote.name}, {remote.address.display}"]
            return Answer(facts, [*plan.lost_commits, *_remarks(said), f"undo: {undo}"])
        if plan.following_branch:
            self._git.configure(repository, ["--replace-all", f"branch.{plan.following_branch}.remote", remote.name])
            merged = f"refs/heads/{plan.target_ref.removeprefix('refs/heads/')}"
            self._git.configure(repository, ["--replace-all", f"branch.{plan.following_branch}.merge", merged])
        did = {"*": "new there", "=": "was there already", "+": "replaced what was there"}.get(flag, "done")
        facts = [
            f"pushed {escape_line_breaks(plan.source)} to {remote.name}/{plan.target_name}, {remote.address.display}",
            did,
        ]
        if plan.following_branch:
            facts.append(f"{escape_line_breaks(plan.following_branch)} follows it")
        rows = [*plan.new_commits, *_remarks(said)] if flag != "=" else []
        if plan.known_commit and flag in (" ", "+"):
            undo = format_call(
                "run_push", rev=plan.known_commit[:12], to=plan.target_name, remote=remote.name, force=True
            )
            rows.append(f"undo: {undo}")
        return Answer(facts, rows)

    def _remote(self, repository: Repository, name: str, *, push: bool = False) -> Remote:
        if self._git.is_partial(repository):
            raise Refused(
                "This is a partial clone, for which git asks its remote for one object after the other.",
                "Use `git` itself to fetch and push.",
            )
        layout = self._git.layout(repository, writes=True)
        entries = self._git.read_allowed_configuration(repository)
        return self._policy.remote(name, layout, entries, self._git.binary.user_configuration, push=push)

    def _talk(
        self,
        repository: Repository,
        remote: Remote,
        words: Sequence[str],
        program: str,
        refs: Sequence[str],
        stop: Stop,
        fine: Sequence[int] = (0,),
    ) -> tuple[str, str]:
        address = remote.address
        name = f"mcp-git-{secrets.token_hex(8)}"
        entries = [(f"remote.{name}.url", address.url), *((f"remote.{name}.fetch", ref) for ref in remote.refspecs)]
        if address.layout is not None:
            entries.append(
                (f"remote.{name}.{program.replace('-', '')}", self._git.serving_command(address.layout, program))
            )
        try:
            made = self._git.run_remote(
                repository,
                [*words, name, *refs],
                stop,
                address=address,
                entries=entries,
                on_stderr=_progress(),
                exit_codes=fine,
            )
        except GitFailed as failure:
            raise _explained(failure, remote) from None
        return made.stderr, made.text

    # What is here

    def _refs(self, repository: Repository, remote: Remote, stop: Stop) -> dict[str, str]:
        words = ["for-each-ref", "--format=%(objectname) %(refname)", f"refs/remotes/{remote.name}", "refs/tags"]
        listed = self._git.run(repository, words, stop).stdout.decode("utf-8", "surrogateescape")
        return {name: oid for oid, _, name in (line.partition(" ") for line in listed.split("\n")) if name}

    def _moved(self, repository: Repository, before: dict[str, str], after: dict[str, str], stop: Stop) -> list[str]:
        rows: list[str] = []
        for name in sorted(before.keys() | after.keys()):
            old, new = before.get(name, ""), after.get(name, "")
            if old == new or name.endswith("/HEAD"):
                continue
            shown = escape_line_breaks(name.removeprefix("refs/").removeprefix("remotes/"))
            if not old or not new:
                rows.append(clip(f"new {shown} {new[:9]}" if new else f"gone {shown}, was {old[:9]}", _ROW))
                continue
            words = ["merge-base", "--is-ancestor", old, new]
            forced = len(rows) < _ROWS and self._fails(repository, words, stop)
            rows.append(clip(f"{shown} {old[:9]}..{new[:9]}{' (rewritten)' if forced else ''}", _ROW))
        return rows

    def _source(self, repository: Repository, wanted: PushRequest, stop: Stop) -> tuple[str, str, str]:
        """What it is called here, the branch that it is if it is one, and its hash."""
        if wanted.revision is None:
            words = ["symbolic-ref", "--quiet", "--short", "HEAD"]
            current = self._git.run(repository, words, stop, exit_codes=(0, 1, 128)).text.strip()
            if not current or wanted.is_tag:
                raise Invalid("It is not said what is to be pushed.", "Name it as `rev`.")
            source = current
        else:
            source = wanted.revision.text
        kind = "tags" if wanted.is_tag else "heads"
        if oid := self._oid(repository, f"refs/{kind}/{source}", stop):
            return source, "" if wanted.is_tag else source, oid
        named = wanted.revision if not wanted.is_tag else None
        found = find_commits(self._git, repository, named, stop) if named else []
        if len(found) != 1:
            what = "tag" if wanted.is_tag else "revision" if wanted.revision else "commit of the branch"
            raise NotFound(f"There is no {what} {quote(source)}.", "`list_refs` has branches and tags.")
        return source, "", found[0]

    def _usual(self, repository: Repository, branch: str, remote: Remote) -> str:
        """Where a branch goes if nothing is said: to what it follows there, or else to its own name."""
        entries = dict(self._git.read_allowed_configuration(repository))
        if entries.get(f"branch.{branch}.remote") == remote.name:
            followed = entries.get(f"branch.{branch}.merge", "")
            if followed.startswith("refs/heads/"):
                return self._policy.parse_new_name(followed.removeprefix("refs/heads/")).text
        return branch

    def _oid(self, repository: Repository, ref: str, stop: Stop) -> str:
        words = ["rev-parse", "--verify", "--quiet", "--end-of-options", ref]
        return self._git.run(repository, words, stop, exit_codes=(0, 1, 128)).text.strip()

    def _listed(self, repository: Repository, title: str, span: Sequence[str], stop: Stop) -> list[str]:
        number = int(self._git.run(repository, ["rev-list", "--count", *span, "--"], stop).text)
        words = ["log", "--format=%h %s", f"--max-count={_ROWS}", *span, "--"]
        rows = split_lines(self._git.run(repository, words, stop)) if number else []
        more = [f"| … and {number - _ROWS:,} more"] if number > _ROWS else []
        return [
            f"{title}: {count(number, 'commit')}",
            *(f"| {clip(escape_line_breaks(row), _ROW)}" for row in rows),
            *more,
        ]

    def _refuse_large_files(self, repository: Repository, oid: str, stop: Stop) -> None:
        words = ["grep", "-l", "--no-color", "-E", "-e", "(^|[[:space:]])filter=lfs", oid]
        if self._git.run(repository, [*words, "--", ":(top,glob)**/.gitattributes"], stop, exit_codes=(0, 1, 128),
                         literal_paths=False).stdout:  # fmt: skip
            raise Refused(
                "Files of this repository are in Git LFS, which a hook would upload, and none is run here.",
                "Use `git` itself for this push.",
            )

    def _fails(self, repository: Repository, words: Sequence[str], stop: Stop) -> bool:
        try:
            self._git.run(repository, words, stop)
        except GitFailed:
            return True
        return False


def _progress() -> Callable[[str], None]:
    """Tells how far git is, by what it says."""
    phases: list[str] = []

    def heard(said: str) -> None:
        found = _PHASE.findall(said)
        for phase, percent, count in found[-1:]:
            if phase not in phases:
                phases.append(phase)
            tell(100 * phases.index(phase) + int(percent), None, f"{phase}: {percent} % ({count})")

    return heard


def _explained(failure: GitFailed, remote: Remote) -> Problem:
    """What a failure means; what the remote said itself is shown as its words."""
    said = hide_password(failure.stderr)
    lines = [line for line in re.split(r"[\r\n]+", said) if line.startswith(("fatal:", "error:", "ERROR:"))]
    words = escape_line_breaks(re.sub(r"mcp-git-[0-9a-f]{16}", remote.name, " ".join(lines) or said[-300:].strip()))[
        :300
    ]
    name = f"{quote(remote.name)}, {remote.address.display},"
    for pattern, kind, text, fix in _WHY:
        if re.search(pattern, said):
            return kind(f"{text.format(name)}. Git: {quote(words, 320)}.", fix)
    return Conflict(f"The remote {name} gave no answer that git takes: {quote(words, 320)}.", "Call again later.")


def _rejected(summary: str, said: str, remote: Remote) -> Problem:
    words = escape_line_breaks(hide_password(summary))[:300] or "no answer"
    if "stale info" in summary:
        return Conflict(
            f"The remote {quote(remote.name)} has something else now than at the last fetch; nothing was replaced.",
            "`run_fetch`, look at what came, then ask again.",
        )
    if "fetch first" in summary or "non-fast-forward" in summary:
        return Conflict(
            f"The remote {quote(remote.name)} has commits that are not in what was pushed ({words}).",
            "`run_fetch`, then merge or rebase; to replace them, `force`.",
        )
    told = "; ".join(_remarks(said))
    return Refused(f"The remote {quote(remote.name)} refused: {words}.{' ' + told if told else ''}", "Ask who runs it.")


def _remarks(said: str) -> list[str]:
    """What the remote itself said, which is the text of a stranger; without how far it was."""
    found = [line[8:].strip() for line in re.split(r"[\r\n]+", said) if line.startswith("remote: ")]
    shown = [line for line in found if line and not re.search(r"\d+% \(|^(?:Enumerating|Total) ", line)]
    return [clip(f"remote says: {escape_line_breaks(hide_password(line))}", 2 * _ROW) for line in shown[:_SAID]]
