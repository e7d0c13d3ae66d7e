"""Talks to a remote: to the one address that was checked, and without the repository's own configuration.

For each run git gets a remote of ours with an unused name, so that no other addresses or refspecs of the repository's
configuration apply.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from typing import Literal, NamedTuple

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, NotFound, Problem, Refused, Unavailable, quote
from mcp_batteries.progress import report_progress
from mcp_git import git_config
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.output import Output, clip
from mcp_git.path_quoting import escape_line_breaks
from mcp_git.policy import Policy, Remote, RemoteName, Repository, Revision, parse_remote_name
from mcp_git.remote_addresses import hide_password

__all__ = ["exchange", "list_remarks", "resolve_remote"]

_MAX_REMARKS = 5
_MAX_REMARK_BYTES = 240
_MAX_WORDS_LENGTH = 300
_PHASE = re.compile(r"(?:^|[\r\n])(?:remote: )?([A-Z][a-z]+ [a-z]+): +(\d{1,3})% \(([\d/]{1,25})\)")
# What git says of a failure, and of a ref that it did not change.
_REFUSAL = re.compile(r"(?:fatal|error|ERROR): \S| ! \[rejected\]")
_REMARK_PREFIX = "remote: "
# What a remote says of how far it is.
_PROGRESS_REMARK = re.compile(r"\d+% \(|^(?:Enumerating|Total) ")


class _Explanation(NamedTuple):
    """What a failure means.

    Attributes:
        pattern: of what git says.
        message: with a place for the name and the address of the remote.
    """

    pattern: str
    kind: type[Problem]
    message: str
    fix: str


_EXPLANATIONS = (
    _Explanation(
        "would clobber existing tag",
        Conflict,
        "The remote {0} has moved tags that are here too, and git replaces none",
        "`delete_ref` with kind=tag forgets one here; without `tags` branches come, with new tags of theirs.",
    ),
    _Explanation(
        "exists; cannot create 'refs/remotes/",
        Conflict,
        "The remote {0} has a branch whose name can't be beside that of one which may be gone there",
        "`run_fetch` with prune=true and without `branch` forgets those that are gone.",
    ),
    _Explanation(
        r"could not read (?:Username|Password)|Authentication failed|Permission denied \(|HTTP 40[13]|error: 40[13]",
        Refused,
        "The remote {0} does not let in whoever the server runs as",
        "The operator's own credential helper or ssh agent has to know who they are; try `git fetch` in a terminal.",
    ),
    _Explanation(
        r"Host key verification failed|authenticity of host",
        Refused,
        "The host of the remote {0} is not known to ssh",
        "The operator can connect to it once in a terminal.",
    ),
    _Explanation(
        r"(?i)certificate (?:problem|verif|subject|signer|issuer)",
        Refused,
        "The certificate of the remote {0} is not one that git trusts",
        "The operator can name its authority: `git config --global http.sslCAInfo`.",
    ),
    _Explanation(
        r"unable to update url base|redirect",
        Refused,
        "The remote {0} answers from another address, which is not followed",
        "The operator can set the new one: `git remote set-url`.",
    ),
    _Explanation(
        r"(?i)couldn't find remote ref|no such remote ref",
        NotFound,
        "The remote {0} has no such branch",
        "Fetch without `branch`, then `list_refs`.",
    ),
    _Explanation(
        r"fsck|badly formed|index-pack (?:failed|died)|invalid index-pack",
        Refused,
        "What the remote {0} sent is not sound, and was not taken",
        "The operator can ask who runs it.",
    ),
    _Explanation(
        r"not found|does not appear to be a git repository|does not exist|HTTP 404|error: 404",
        NotFound,
        "There is no repository at the address of the remote {0}, or none for whoever the server runs as",
        "`list_refs` of `remotes` has the address.",
    ),
    _Explanation(
        r"(?i)could not resolve|unable to access|connection (?:refused|reset|timed)|could not read from remote|hung up"
        r"|early EOF|unable to connect|timed out",
        Unavailable,
        "The remote {0} can't be reached",
        "Call again later.",
    ),
)


def resolve_remote(
    git: Git,
    policy: Policy,
    repository: Repository,
    name: RemoteName | None,
    cancel: CancelToken,
    *,
    for_push: bool = False,
    pushed: Revision | None = None,
) -> Remote:
    """Return a remote by its name, or that of a branch, by an address that git may talk to.

    Args:
        pushed: what is pushed; where it is no branch, the current one counts.

    Raises:
        NotFound: there is none of that name.
        Refused: the repository is a partial clone of another remote, or one that is to be pushed, or the address is
            refused.
    """
    if name is None:
        branch = _find_branch(git, repository, pushed, cancel)
        name = _choose_remote(git, repository, branch, for_push=for_push)
    if git.is_partial(repository) and (for_push or not _find_filter(git, repository, name.text)):
        raise Refused(
            "This is a partial clone, for which git asks the remote that it is a clone of for what is missing.",
            "Use `git` itself for that, and to push.",
        )
    layout = git.layout(repository, writes=True)
    entries = git.read_allowed_configuration(repository)
    return policy.remote(name, layout, entries, git.binary.user_configuration, push=for_push)


def _find_branch(git: Git, repository: Repository, revision: Revision | None, cancel: CancelToken) -> str:
    """Return the branch that a revision is, or else the current one; empty if HEAD is on none."""
    if revision is not None:
        branch = git.shorten_ref(repository, revision.text, "heads", cancel)
        if git.find_branch(repository, branch, cancel):
            return branch
    # With `--short` it would be `heads/main` where a tag is called `main` too.
    arguments = ["symbolic-ref", "--quiet", "HEAD"]
    return git.run(repository, arguments, cancel, exit_codes=(0, 1, 128)).text.strip().removeprefix("refs/heads/")


def _choose_remote(git: Git, repository: Repository, branch: str, *, for_push: bool) -> RemoteName:
    """Return the remote that git takes for a branch where none is named.

    Raises:
        NotFound: the configuration names an address, or a remote that is not there.
    """
    entries = git.read_unheeded_configuration(repository)
    remotes = git_config.list_remotes(entries.items())
    keys = [f"branch.{branch}.remote"]
    if for_push:
        keys = [f"branch.{branch}.pushremote", "remote.pushdefault", *keys]
    configured = [entries[key] for key in keys if entries.get(key, ".") != "."]
    if configured and configured[0] not in remotes:
        name = quote(hide_password(configured[0]))
        raise NotFound(f"The branch is of {name}, which is no remote here.", "Name one as `remote`.")
    if not configured and len(remotes) == 1:
        configured = list(remotes)
    return parse_remote_name(next(iter(configured), "origin"))


def _find_filter(git: Git, repository: Repository, remote: str) -> str:
    return git_config.find_promised_filter(remote, git.read_unheeded_configuration(repository))


def exchange(
    git: Git,
    repository: Repository,
    remote: Remote,
    arguments: Sequence[str],
    program: Literal["upload-pack", "receive-pack"],
    refspecs: Sequence[str],
    cancel: CancelToken,
    exit_codes: Sequence[int] = (0,),
    stdin: bytes = b"",
) -> Output:
    """Run a command of git with a remote and refspecs, and report meanwhile how far it is.

    Args:
        program: what git starts where the remote is a folder of this machine.
        stdin: what git reads.
    """
    address = remote.address
    name = f"mcp-git-{secrets.token_hex(8)}"
    entries = [(f"remote.{name}.url", address.url)]
    entries += [(f"remote.{name}.fetch", refspec) for refspec in remote.refspecs]
    promised_filter = _find_filter(git, repository, remote.name)
    if promised_filter:
        entries += [(f"remote.{name}.promisor", "true"), (f"remote.{name}.partialclonefilter", promised_filter)]
    if address.layout is not None:
        entries.append((f"remote.{name}.{program.replace('-', '')}", git.serving_command(address.layout, program)))
    try:
        return git.run_remote(
            repository,
            [*arguments, name, *refspecs],
            cancel,
            address=address,
            entries=entries,
            on_stderr=_Progress().report,
            exit_codes=exit_codes,
            stdin=stdin,
        )
    except GitFailed as failure:
        raise _explain_failure(failure, remote) from None


class _Progress:
    """Reports how far git is, by what it says; each of its phases counts 100."""

    def __init__(self) -> None:
        self._phases: list[str] = []

    def report(self, stderr: str) -> None:
        reports = _PHASE.findall(stderr)
        if not reports:
            return
        phase, percent, numbers = reports[-1]
        if phase not in self._phases:
            self._phases.append(phase)
        report_progress(100 * self._phases.index(phase) + int(percent), None, f"{phase}: {percent} % ({numbers})")


def _explain_failure(failure: GitFailed, remote: Remote) -> Problem:
    """Return what a failure means; what the remote said itself is shown as its words."""
    stderr = hide_password(failure.stderr)
    lines = [line.strip() for line in re.split(r"[\r\n]+", stderr) if _REFUSAL.match(line)]
    message = " ".join(lines) or stderr[-_MAX_WORDS_LENGTH:].strip()
    message = re.sub(r"mcp-git-[0-9a-f]{16}", remote.name, message)
    words = quote(escape_line_breaks(message)[:_MAX_WORDS_LENGTH], 320)
    name = f"{quote(remote.name)}, {remote.address.display},"
    for explanation in _EXPLANATIONS:
        if re.search(explanation.pattern, stderr):
            return explanation.kind(f"{explanation.message.format(name)}. Git: {words}.", explanation.fix)
    return Conflict(
        f"The remote {name} gave no answer that git takes: {words}.", "The operator can try `git fetch` in a terminal."
    )


def list_remarks(stderr: str) -> list[str]:
    """Return what the remote itself said, which is the text of a stranger; without how far it was."""
    lines = re.split(r"[\r\n]+", stderr)
    remarks = [line.removeprefix(_REMARK_PREFIX).strip() for line in lines if line.startswith(_REMARK_PREFIX)]
    texts = [remark for remark in remarks if remark and not _PROGRESS_REMARK.search(remark)]
    return [_format_remark(text) for text in texts[:_MAX_REMARKS]]


def _format_remark(text: str) -> str:
    return clip(f"remote says: {escape_line_breaks(hide_password(text))}", _MAX_REMARK_BYTES)
