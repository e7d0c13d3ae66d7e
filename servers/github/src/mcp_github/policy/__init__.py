"""The only place that refuses before GitHub does: turns a caller's text into a trusted type, or refuses it.

A `Repo` is on the allow-list, a `WriteRepo` is one that may be written to, and whatever becomes part of a request's
path can't leave its place there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeVar

from mcp_batteries.errors import Refused, Unavailable, quote
from mcp_batteries.server.tool_filter import ClosedGate
from mcp_github.policy.addresses import ApiUrl, DownloadUrl
from mcp_github.policy.allow_list import RepositoryAllowList
from mcp_github.policy.file_changes import Change, FileChange, TextEdit, to_file_change
from mcp_github.policy.flow import FlowRules
from mcp_github.policy.gates import Gate, Gates, gate_option, require_deletable, require_own_commit
from mcp_github.policy.names import (
    HEAD,
    FilePath,
    Gist,
    LabelName,
    NodeId,
    Ref,
    TeamSlug,
    Workflow,
    file,
    gist,
    label,
    node,
    ref,
    refs,
    require_logins,
    team,
    workflow,
)
from mcp_github.policy.repositories import (
    DeleteReleaseRepo,
    DeleteRepo,
    ForceRepo,
    Head,
    HeadFilter,
    MergeRepo,
    Owner,
    ReleaseRepo,
    Repo,
    RunRepo,
    WriteOwner,
    WriteRepo,
)
from mcp_github.policy.review_comments import LineComment, ReviewComment, Side, review_comments
from mcp_github.settings import TOOLSETS

__all__ = [
    "HEAD",
    "ApiUrl",
    "Change",
    "DeleteReleaseRepo",
    "DeleteRepo",
    "DownloadUrl",
    "FileChange",
    "FilePath",
    "ForceRepo",
    "Gate",
    "Gist",
    "Head",
    "HeadFilter",
    "LabelName",
    "LineComment",
    "MergeRepo",
    "NodeId",
    "Owner",
    "Policy",
    "PolicySettings",
    "Ref",
    "ReleaseRepo",
    "Repo",
    "ReviewComment",
    "RunRepo",
    "Side",
    "TeamSlug",
    "TextEdit",
    "Workflow",
    "WriteOwner",
    "WriteRepo",
]  # fmt: skip

W = TypeVar("W", bound=WriteRepo)

_NO_TOKEN = "The operator can set `GITHUB_TOKEN`, or the user can run `gh auth login`."


class PolicySettings(Protocol):
    """The settings that the policy needs."""

    @property
    def toolsets(self) -> Sequence[str]: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def write(self) -> bool: ...
    @property
    def merge(self) -> bool: ...
    @property
    def delete(self) -> bool: ...
    @property
    def workflow_files(self) -> bool: ...
    @property
    def runs(self) -> bool: ...
    @property
    def releases(self) -> bool: ...
    @property
    def force(self) -> bool: ...
    @property
    def repos(self) -> Sequence[str]: ...
    @property
    def flow(self) -> Literal["ask", "strict", "off"]: ...
    @property
    def lockdown(self) -> bool: ...
    @property
    def trusted_owner(self) -> Sequence[str]: ...
    @property
    def api_url(self) -> str: ...
    @property
    def auth(self) -> str: ...
    @property
    def transport(self) -> str: ...
    @property
    def login_client_id(self) -> str | None: ...
    @property
    def token_file(self) -> str | None: ...
    @property
    def app_id(self) -> str | None: ...
    @property
    def app_installation(self) -> int: ...
    @property
    def app_key_file(self) -> str | None: ...


class ToolDeclaration(Protocol):
    """What a tool declares about itself."""

    @property
    def effect(self) -> str: ...
    @property
    def toolsets(self) -> Sequence[str]: ...
    @property
    def gates(self) -> Sequence[str]: ...


class Policy(RepositoryAllowList, Gates, FlowRules):
    """What callers may reach under these settings.

    Raises:
        Unavailable: a setting can't be used.
    """

    ref = staticmethod(ref)
    refs = staticmethod(refs)
    file = staticmethod(file)
    workflow = staticmethod(workflow)
    team = staticmethod(team)
    label = staticmethod(label)
    node = staticmethod(node)
    review_comments = staticmethod(review_comments)
    require_logins = staticmethod(require_logins)
    require_deletable = staticmethod(require_deletable)
    require_own_commit = staticmethod(require_own_commit)

    def __init__(self, settings: PolicySettings) -> None:
        open_gates: dict[Gate, bool] = {
            "merge": settings.merge, "delete": settings.delete, "workflow_files": settings.workflow_files,
            "runs": settings.runs, "releases": settings.releases, "force": settings.force,
        }  # fmt: skip
        RepositoryAllowList.__init__(self, settings.api_url, settings.repos)
        Gates.__init__(self, settings.write and not settings.read_only, open_gates)
        FlowRules.__init__(self, settings.flow, settings.trusted_owner, lockdown=settings.lockdown)
        _require_usable_auth(settings)
        unknown = [name for name in settings.toolsets if name not in (*TOOLSETS, "all")]
        if unknown:
            raise Unavailable(
                f"There is no toolset {quote(unknown[0])}.", f"There are: {', '.join(TOOLSETS)}; or all of them: all."
            )
        self.toolsets = frozenset(settings.toolsets)
        if "all" in settings.toolsets:
            self.toolsets = frozenset(TOOLSETS)

    def missing_for(self, tool: ToolDeclaration, *, token: bool) -> ClosedGate:
        """Return what a disabled tool lacks, apart from its toolset.

        Args:
            token: whether there may be a token.
        """
        options: list[str] = []
        reasons: list[str] = []
        if tool.effect != "read" and not self.can_write:
            options.append("--write")
        options += [gate_option(gate) for gate in tool.gates if gate not in self.allowed_actions]
        if self.lockdown and "gists" in tool.toolsets:
            reasons.append("The server was started with `--lockdown`, and anybody may write gists.")
        if tool.effect != "read" and not token:
            reasons.append(_NO_TOKEN)
        return ClosedGate(options, " ".join(reasons))

    def require_token(self, token: bool) -> None:
        """Raise `Refused` for a write without a token."""
        if not token:
            raise Refused("Nothing can be changed without a token.", _NO_TOKEN)

    def write_repo(self, text: str) -> WriteRepo:
        """Return the repository that `text` names, for writing.

        Raises:
            Refused: the operator has not allowed writes, or it is not on the allow-list.
        """
        return self._open_repo(WriteRepo, text)

    def merge_repo(self, text: str) -> MergeRepo:
        """Return the repository that `text` names, to merge a pull request of it; see `write_repo`."""
        return self._open_repo(MergeRepo, text, "merge")

    def delete_repo(self, text: str) -> DeleteRepo:
        """Return the repository that `text` names, to delete it or something in it; see `write_repo`."""
        return self._open_repo(DeleteRepo, text, "delete")

    def run_repo(self, text: str) -> RunRepo:
        """Return the repository that `text` names, to run a workflow of it; see `write_repo`."""
        return self._open_repo(RunRepo, text, "runs")

    def release_repo(self, text: str) -> ReleaseRepo:
        """Return the repository that `text` names, to make or change a release; see `write_repo`."""
        return self._open_repo(ReleaseRepo, text, "releases")

    def delete_release_repo(self, text: str) -> DeleteReleaseRepo:
        """Return the repository that `text` names, to delete a release; see `write_repo`."""
        return self._open_repo(DeleteReleaseRepo, text, "releases", "delete")

    def force_repo(self, text: str) -> ForceRepo:
        """Return the repository that `text` names, to move a branch; see `write_repo`."""
        return self._open_repo(ForceRepo, text, "force")

    def write_owner(self, text: str) -> WriteOwner:
        """Return the user or organisation that `text` names, to write to their projects.

        Raises:
            Refused: the operator has not allowed writes, or no repository of theirs is on the allow-list.
        """
        self.require_write()
        return WriteOwner(self.owner(text).login)

    def file_changes(self, changes: list[Change]) -> list[FileChange]:
        """Return `changes` with their paths checked; see `write_file`."""
        return [to_file_change(change, self.write_file(change.path)) for change in changes]

    def other_user(self, text: str) -> Owner | None:
        """Return the user that `text` names; None for `@me`, the one of the token."""
        if text.lower() == "@me":
            return None
        return self.owner(text)

    def gist_owner(self, text: str) -> Owner | None:
        """Return the user whose gists are meant, None for the one of the token; with an allow-list there are none."""
        self.require_no_allow_list("Gists")
        return self.other_user(text)

    def gist(self, text: str) -> Gist:
        """Return the gist with this id or address; with an allow-list there are none."""
        self.require_no_allow_list("Gists")
        return gist(text)

    def _open_repo(self, kind: type[W], text: str, *gates: Gate) -> W:
        """Return the repository that `text` names, if it is served and these gates are open."""
        repo = self.repo(text)
        self.require_write()
        for gate in gates:
            self.require_gate(gate)
        return kind(repo.owner, repo.name)


def _require_usable_auth(settings: PolicySettings) -> None:
    """Raise `Unavailable` if `--auth` cannot work with the other settings."""
    if settings.auth == "caller" and settings.transport != "http":
        raise Unavailable("Only over HTTP do callers bring tokens.", "Give --transport http, or another --auth.")
    if settings.auth == "login" and settings.transport != "stdio":
        raise Unavailable("One login over HTTP would be everybody's.", "Give --auth caller instead of login.")
    if settings.auth == "login" and not settings.login_client_id:
        raise Unavailable("Nobody can log in without an app.", "Give its client ID with --login-client-id.")
    if settings.login_client_id and settings.auth != "login":
        raise Unavailable("`--login-client-id` does nothing where nobody logs in.", "Give --auth login too.")
    _require_one_source(settings)


def _require_one_source(settings: PolicySettings) -> None:
    """Raise `Unavailable` if an option about the token would be ignored."""
    source_options = {
        "--app-id": settings.app_id,
        "--token-file": settings.token_file,
        "--app-key-file": settings.app_key_file,
        "--app-installation": settings.app_installation,
    }
    names = [name for name, value in source_options.items() if value]
    if names and settings.auth != "auto":
        raise Unavailable(f"`--auth {settings.auth}` and `{names[0]}` name two sources.", "Leave one of them out.")
    if settings.app_id and settings.token_file:
        raise Unavailable("`--app-id` and `--token-file` name two sources of the token.", "Leave one of them out.")
    if settings.app_id and not settings.app_key_file:
        raise Unavailable("A GitHub App needs its key.", "Name its PEM file with --app-key-file.")
    if names and names[-1].startswith("--app") and not settings.app_id:
        raise Unavailable(f"`{names[-1]}` does nothing without a GitHub App.", "Give --app-id too.")
