"""The only place that says no before GitHub does: a caller's words become a trusted type here, or a refusal.

A `Repo` is on the allow-list, a `WriteRepo` is one that may be written to, and whatever becomes part of a request's
path can't leave its place there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar
from urllib.parse import quote as percent
from urllib.parse import unquote, urlsplit

from mcp_batteries.errors import Invalid, Refused, Unavailable, quote
from mcp_batteries.server.choice import Missing
from mcp_github.settings import TOOLSETS
from mcp_github.spelling import meant_path, shown_path

__all__ = [
    "HEAD", "ApiUrl", "DownloadUrl", "FilePath", "Gate", "Gist", "Owner", "Policy", "PolicySettings", "Ref", "Repo",
    "WriteRepo",
]  # fmt: skip

Gate = Literal["merge", "delete", "workflow_files", "runs", "releases", "force"]
T = TypeVar("T")

_OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}(?:\[bot\])?")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_PRIVILEGED = ("pull_request_target", "workflow_run")
_NO_TOKEN = "The operator can set `GITHUB_TOKEN`, or the user can run `gh auth login`."
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_REACHES = re.compile(
    r"""(?:^|[\s(\-"'])(repo|user|org|owner|team-review-requested|team|enterprise|props\.\S*?):""", re.I
)
_LOGIC = re.compile(r"(?:^|\s)(?:OR|AND|NOT)(?:\s|$)|[()]")


class PolicySettings(Protocol):
    """What the policy needs to be told."""

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


class Offered(Protocol):
    """What a tool says of itself where it is declared."""

    @property
    def effect(self) -> str: ...
    @property
    def toolsets(self) -> Sequence[str]: ...
    @property
    def gates(self) -> Sequence[str]: ...


@dataclass(frozen=True)
class Repo:
    """A repository on the allow-list; it may turn out not to exist."""

    owner: str
    name: str

    @property
    def full(self) -> str:
        return f"{self.owner}/{self.name}"

    @property
    def key(self) -> str:
        """The one spelling of it: GitHub ignores case."""
        return self.full.lower()

    @property
    def account(self) -> Owner:
        """The user or organisation it belongs to."""
        return Owner(self.owner)

    @property
    def path(self) -> str:
        return f"/repos/{percent(self.owner, safe='')}/{percent(self.name, safe='')}"

    @property
    def uri(self) -> str:
        return f"github://{self.full}"


@dataclass(frozen=True)
class WriteRepo(Repo):
    """A repository that may be written to."""


@dataclass(frozen=True)
class Owner:
    """A user or an organisation."""

    login: str

    def __str__(self) -> str:
        return percent(self.login, safe="")


@dataclass(frozen=True)
class Ref:
    """A branch, tag or commit."""

    name: str

    @property
    def path(self) -> str:
        return percent(self.name, safe="/")


HEAD = Ref("HEAD")
"""The tip of the default branch."""


@dataclass(frozen=True)
class FilePath:
    """A path inside a repository; empty for its top."""

    name: str

    @property
    def path(self) -> str:
        return percent(self.name, safe="/")

    @property
    def shown(self) -> str:
        """The path with what nobody can see written out."""
        return shown_path(self.name)


@dataclass(frozen=True)
class Gist:
    """A gist's id."""

    id: str


@dataclass(frozen=True)
class DownloadUrl:
    """Where GitHub keeps a log or an artifact: the API itself, or a public https host."""

    url: str


@dataclass(frozen=True)
class ApiUrl:
    """Where GitHub is: `base` for REST, without a slash at its end."""

    base: str

    @property
    def graphql(self) -> str:
        """The address of GraphQL: on an Enterprise Server beside the version of REST, not below it."""
        return f"{self.base.removesuffix('/v3')}/graphql"

    @property
    def web(self) -> str:
        """Where people log in, without a slash at its end."""
        parts = urlsplit(self.base)
        return f"{parts.scheme}://{parts.netloc.removeprefix('api.') if self.host != parts.hostname else parts.netloc}"

    @property
    def host(self) -> str:
        """The host as people know it, which is what the gh program stores tokens under."""
        name = urlsplit(self.base).hostname or ""
        return name.removeprefix("api.") if name == "api.github.com" or name.endswith(".ghe.com") else name


class Policy:
    """What may be reached under these settings.

    Raises:
        Unavailable: a setting can't be used.
    """

    def __init__(self, settings: PolicySettings) -> None:
        self.can_write = settings.write and not settings.read_only
        opened: dict[Gate, bool] = {
            "merge": settings.merge, "delete": settings.delete, "workflow_files": settings.workflow_files,
            "runs": settings.runs, "releases": settings.releases, "force": settings.force,
        }  # fmt: skip
        self._gates: dict[Gate, bool] = {name: self.can_write and is_open for name, is_open in opened.items()}
        self.flow, self.lockdown = settings.flow, settings.lockdown
        self._trusted = frozenset(self._owner(login, "--trusted-owner") for login in settings.trusted_owner)
        self.api_url = _api_url(settings.api_url)
        _require_way_in(settings)
        self.allowed = tuple(_pattern(item) for item in settings.repos)
        unknown = [name for name in settings.toolsets if name not in (*TOOLSETS, "all")]
        if unknown:
            raise Unavailable(
                f"There is no toolset {quote(unknown[0])}.", f"There are: {', '.join(TOOLSETS)}; or all of them: all."
            )
        self.toolsets = frozenset(TOOLSETS if "all" in settings.toolsets else settings.toolsets)

    def withholds(self, tool: Offered, *, token: bool) -> Missing:
        """What a tool lacks that is off, but for its toolset.

        Args:
            token: whether there may be one.
        """
        missing = ["--write"] if tool.effect != "read" and not self.can_write else []
        missing += [_flag(gate) for gate in tool.gates if gate not in self.may]
        why = _NO_TOKEN if tool.effect != "read" and not token else ""
        if self.lockdown and "gists" in tool.toolsets:
            why = f"The server was started with `--lockdown`, and anybody may write gists. {why}".strip()
        return Missing(missing, why)

    def require_token(self, token: bool) -> None:
        """Raise `Refused` for a write without a token."""
        if not token:
            raise Refused("Nothing can be changed without a token.", _NO_TOKEN)

    @property
    def may(self) -> list[str]:
        """What the operator has opened, by the names of the switches."""
        return [
            "read",
            *(["write"] if self.can_write else []),
            *(gate for gate, is_open in self._gates.items() if is_open),
        ]

    @property
    def named(self) -> list[str]:
        """The repositories of the allow-list that are named one by one."""
        return [f"{owner}/{name}" for owner, name in self.allowed if name != "*"]

    def only_served(self, items: Iterable[T], *, key: Callable[[T], str]) -> list[T]:
        """Those of `items` whose repository is on the allow-list.

        Args:
            key: the `owner/name` of an item's repository.
        """
        return [item for item in items if self._permits(key(item))]

    def only_owners_served(self, items: Iterable[T], *, key: Callable[[T], str]) -> list[T]:
        """Those of `items` of whose user or organisation some repository is on the allow-list.

        Args:
            key: the login an item belongs to.
        """
        owners = {owner for owner, _ in self.allowed}
        return [item for item in items if not owners or key(item).lower() in owners]

    def require_served(self, full: str, what: str) -> None:
        """Raise `Refused` unless `full`, the `owner/name` of the repository of `what`, is on the allow-list."""
        if not self._permits(full):
            raise Refused(f"The {what} is of a repository that is not served here.")

    def _permits(self, full: str) -> bool:
        owner, _, name = full.lower().partition("/")
        return not self.allowed or any(owner == allowed and match in ("*", name) for allowed, match in self.allowed)

    def redirect(self, url: str, what: str) -> str:
        """The API's path that a redirect to `url` means.

        Raises:
            Refused: it leads to another host, where the token is not sent, or out of the API.
        """
        base, target = urlsplit(self.api_url.base), urlsplit(url)
        if (target.scheme, target.netloc.lower()) != (base.scheme, base.netloc.lower()):
            raise Refused(f"GitHub redirects {what} to another host, where the token is not sent.")
        path = target.path[len(base.path) :]
        if not target.path.startswith(f"{base.path}/") or ".." in unquote(path).split("/"):
            raise Refused(f"GitHub redirects {what} to where there is no API.")
        return path

    def redirected_repo(self, full: str, what: str) -> None:
        """Raise `Refused` unless a redirect leads to a repository, `full` (`owner/name`), on the allow-list."""
        if "/" not in full or not self._permits(unquote(full)):
            raise Refused(f"GitHub redirects {what} to a repository that is not served here.")

    def download(self, url: str, what: str) -> DownloadUrl:
        """Where a download is redirected to.

        Raises:
            Refused: the other host is not one GitHub would send anybody to.
        """
        target, base = urlsplit(url), urlsplit(self.api_url.base)
        here = (target.scheme, target.netloc) == (base.scheme, base.netloc)
        if not here and (target.scheme != "https" or _is_internal(target.hostname or "")):
            raise Refused(f"GitHub redirects {what} to an address that is not followed.")
        return DownloadUrl(target.geturl())

    def repo(self, text: str) -> Repo:
        """The repository `text` (`owner/name`) names.

        Raises:
            Invalid: it is no name of a repository.
            Refused: it is not on the allow-list.
        """
        owner, _, name = self._plain(text.strip()).partition("/")
        name = name.removesuffix(".git")
        if not _OWNER.fullmatch(owner) or not _NAME.fullmatch(name) or name in (".", ".."):
            raise Invalid(f"{quote(text)} names no repository.", "Write it as `owner/name`.")
        if not self._permits(f"{owner}/{name}"):
            raise Refused(f"The repository {quote(text)} is not served here.", f"Served are: {self.listed}.")
        return Repo(owner, name)

    def _plain(self, text: str) -> str:
        """`owner/name` of an address of a repository, or of anything in one."""
        found = re.match(r"(?:[a-z+]+://)?(?:git@)?([^/:@]+)(?::\d+)?[/:](.*)", text, re.I | re.S)
        host = self.api_url.host
        if found is None or ("://" not in text and found[1].lower() not in (host, f"www.{host}") and "@" not in text):
            return text
        if found[1].lower().removeprefix("www.").removeprefix("api.") != host:
            raise Invalid(f"{quote(text)} is not on {quote(host)}.", "Only repositories there can be reached.")
        path = re.split("[?#]", found[2])[0].removeprefix("api/v3/").removeprefix("repos/")
        return "/".join(path.split("/")[:2])

    def write_repo(self, text: str, *gates: Gate) -> WriteRepo:
        """The repository `text` names, to be written to.

        Raises:
            Refused: the operator has not opened that, or it is not on the allow-list.
        """
        repo = self.repo(text)
        self.require_write()
        for gate in gates:
            self.require(gate)
        return WriteRepo(repo.owner, repo.name)

    def require(self, gate: Gate) -> None:
        """Raise `Refused` unless the operator has opened `gate`."""
        if not self._gates[gate]:
            flag = _flag(gate)
            raise Refused(
                f"This needs `{flag}`, which is not open.", f"The operator can start it with `--write {flag}`."
            )

    def require_write(self) -> None:
        """Raise `Refused` unless the operator has opened writing."""
        if not self.can_write:
            raise Refused("Nothing can be changed through this server.", "The operator can start it with `--write`.")

    def require_everything(self, what: str) -> None:
        """Raise `Refused` where an allow-list narrows what is served and `what` belongs to no repository."""
        if self.allowed:
            raise Refused(f"{what} are outside of `--repos`.", f"Served are only: {self.listed}.")

    @property
    def listed(self) -> str:
        """The allow-list for messages."""
        return ", ".join(f"`{owner}/{name}`" for owner, name in self.allowed) or "all repositories of the token"

    def owner(self, text: str) -> Owner:
        """A user or an organisation.

        Raises:
            Invalid: `text` is no login.
            Refused: no repository of theirs is on the allow-list.
        """
        login = text.strip().removeprefix("@")
        if not _OWNER.fullmatch(login):
            raise Invalid(f"{quote(text)} is no login of a user or an organisation.")
        if self.allowed and all(login.lower() != owner for owner, _ in self.allowed):
            raise Refused(f"{quote(text)} is not served here.", f"Served are: {self.listed}.")
        return Owner(login)

    def team(self, text: str) -> str:
        """A team's slug."""
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,100}", text):
            raise Invalid(f"{quote(text)} is no slug of a team.", "`list_people` without arguments shows yours.")
        return text

    def logins(self, texts: Sequence[str]) -> list[str]:
        """People to assign, request or mention; they need not own anything that is served."""
        for text in texts:
            if not _OWNER.fullmatch(text):
                raise Invalid(f"{quote(text)} is no login.")
        return list(texts)

    def ref(self, text: str) -> Ref:
        """A branch, tag or commit, by the rules of git-check-ref-format.

        Raises:
            Invalid: no such thing can have that name.
        """
        text = text.removeprefix("refs/heads/")
        wrong = (
            not text or len(text) > 250 or text[0] in "/-" or text[-1] in "/." or ".." in text or "//" in text
            or "@{" in text or text == "@" or text.endswith(".lock") or "/." in text or text[0] == "."
            or any(char in " ~^:?*[\\" or ord(char) < 32 or ord(char) == 127 for char in text)
        )  # fmt: skip
        if wrong or not _encodes(text):
            raise Invalid(f"{quote(text)} can't be a branch, tag or commit.", "Name one, such as `main`.")
        return Ref(text)

    def file(self, text: str, *, spelt: bool = True) -> FilePath:
        """A path inside a repository.

        Args:
            spelt: `text` has characters that nobody can see in the spelling that shows them.

        Raises:
            Invalid: it could leave its place in a request.
        """
        if "://" in text:
            raise Invalid(
                f"{quote(text)} is an address.", "Pass what follows the branch as `path`, the branch as `ref`."
            )
        name = (meant_path(text) if spelt else text).removeprefix("./").strip("/")
        if any(part in ("", ".", "..") for part in name.split("/")) and name:
            raise Invalid(f"The path {quote(text)} has an empty, `.` or `..` part.", "Write it from the top down.")
        if "\0" in name or not _encodes(name) or len(name) > 4000:
            raise Invalid(f"{quote(text)} can't be a path in a repository.")
        return FilePath(name)

    def write_file(self, text: str) -> FilePath:
        """A path that may be written to.

        Raises:
            Refused: Actions would run it, and that gate is closed.
        """
        file = self.file(text)
        parts = file.name.casefold().split("/")
        if not file.name:
            raise Invalid("`path` is empty.", "Name a file.")
        if parts[0] == ".git":
            raise Refused(f"{quote(text)} is git's own.")
        runs = parts[:2] == [".github", "workflows"] or parts[-1] in ("action.yml", "action.yaml")
        if runs and not self._gates["workflow_files"]:
            raise Refused(
                f"{quote(text)} is a file that Actions runs; changing it needs `--workflow-files`.",
                "The operator can start the server with `--write --workflow-files`.",
            )
        return file

    @property
    def guards_workflows(self) -> bool:
        """Whether it has to be known if a change touches files that Actions runs."""
        return not self._gates["workflow_files"]

    def require_no_workflows(self, names: Iterable[str], what: str, *, complete: bool) -> None:
        """Raise `Refused` for a branch or tag at `what` if Actions would run one of the changed files `names`.

        Args:
            complete: whether these are all the files that `what` changes.
        """
        if not complete:
            raise Refused(
                f"What {what} changes can't all be told, and files that Actions runs may be among it.",
                "Start from a branch with less, or the operator can open `--workflow-files`.",
            )
        for name in names:
            self.write_file(name)

    def require_mergeable(self, names: Iterable[str]) -> None:
        """Raise `Refused` for a pull request that changes a file of `names` which Actions would run."""
        for name in names:
            try:
                self.write_file(name)
            except Refused as problem:
                raise Refused(f"It is not merged: {problem.what}", problem.fix) from None

    def require_all_listed(self, listed: int, changed: int, what: str) -> None:
        """Raise `Refused` for a pull request of which GitHub lists fewer files than it changes."""
        if listed < changed:
            # Of 3,000 GitHub lists no more, and who names files can have others come first.
            raise Refused(
                f"It is not merged: GitHub lists {listed} of the {changed} files of {what}.",
                "A person can merge it, or the operator can open `--workflow-files`.",
            )

    def require_rerunnable(self, run: Mapping[str, object], what: str) -> None:
        """Raise `Refused` for a run that nobody approved, or that works with secrets on what a fork sent.

        The code of the other runs ran before, as it is; these may take what the fork holds by now.
        """
        if "action_required" in (run.get("status"), run.get("conclusion")):
            raise Refused(f"The {what} waits for somebody's approval.", "A person has to look at it on GitHub.")
        if run.get("event") in _PRIVILEGED and self.guards_workflows:
            raise Refused(
                f"The {what} is one of `{run['event']}`: with the repository's secrets, on what others sent.",
                "A person can rerun it on GitHub, or the operator can open `--workflow-files`.",
            )

    def require_insider(self, what: str, *, outsider: bool) -> None:
        """Raise `Refused` with `--lockdown` for `what` somebody made who does not belong to the repository."""
        if self.lockdown and outsider:
            raise Refused(
                f"The {what} is of somebody who does not belong to the repository, and `--lockdown` hides it.",
                "A person can look at it on GitHub.",
            )

    def require_own_commit(self, status: object, what: str) -> None:
        """Raise `Refused` for a release of a commit unless the default branch has it: every fork's has a sha here too.

        Args:
            status: of the commit compared with the default branch.
        """
        if status not in ("behind", "identical"):
            raise Refused(
                f"The {what} is not on the default branch, and may be a fork's.", "Name a branch or tag as `ref`."
            )

    def deletable_branch(self, branch: Ref, default: str, repo: Repo) -> Ref:
        """`branch`, unless it is the default one."""
        if branch.name == default:
            raise Refused(f"{quote(branch.name)} is the default branch of `{repo.full}`.", "It is not deleted here.")
        return branch

    def head(self, repo: Repo, text: str) -> str:
        """Where a pull request to `repo` comes from: a branch, or `owner:branch` of a fork.

        Raises:
            Refused: the fork is not on the allow-list; it would publish or pull in what is not served.
        """
        owner, colon, branch = text.rpartition(":")
        if colon:
            self.logins([owner])
            if self.allowed and owner.lower() != repo.owner.lower():
                self.repo(f"{owner}/{repo.name}")
        return f"{owner}{colon}{self.ref(branch).name}"

    def workflow(self, text: str) -> str:
        """A workflow's id or the name of its file."""
        text = text.removeprefix(".github/workflows/")
        if not re.fullmatch(r"\d{1,20}|[A-Za-z0-9_][A-Za-z0-9._ -]{0,200}\.ya?ml", text):
            raise Invalid(f"{quote(text)} is no workflow.", "`list_actions` with kind=workflows shows them.")
        return percent(text, safe="")

    def gist(self, text: str) -> Gist:
        """A gist's id, or its address."""
        text = text.rstrip("/").rpartition("/")[2] if text.startswith("https://gist.") else text
        if not re.fullmatch(r"[0-9a-zA-Z]{1,64}", text):
            raise Invalid(f"{quote(text)} is no id of a gist.")
        return Gist(text)

    def node(self, text: str) -> str:
        """An opaque id that GitHub issued, for GraphQL; what it belongs to is checked before it is used."""
        if not re.fullmatch(r"[A-Za-z0-9_=-]{4,200}", text):
            raise Invalid(f"{quote(text)} is no id from an earlier answer.")
        return text

    def search(self, query: str, repo: str | None, *, bound: bool = True) -> str:
        """`query` bound to what is served.

        Args:
            bound: whether what is searched for lies in repositories.

        Raises:
            Refused: under an allow-list, the query names repositories itself or has logic that could get round.
        """
        if not _encodes(query):
            raise Invalid("`query` holds half of a character.")
        where = [f"repo:{self.repo(repo).full}"] if repo is not None else []
        if self.allowed and bound:
            if found := _REACHES.search(query):
                raise Refused(
                    f"With `--repos`, a query may not hold {quote(found[1] + ':')}.", "Name one as `repo` instead."
                )
            if _LOGIC.search(query):
                raise Refused("With `--repos`, a query may not hold `OR`, `AND`, `NOT` or brackets.", "Search twice.")
            if repo is None:
                where = [f"user:{owner}" if name == "*" else f"repo:{owner}/{name}" for owner, name in self.allowed]
        return " ".join([query, *where]).strip()

    @staticmethod
    def _owner(text: str, setting: str) -> str:
        login = text.strip().removeprefix("@").lower()
        if not _OWNER.fullmatch(login):
            raise Unavailable(f"{quote(text)} in {setting} is not a login.", "Name users or organisations.")
        return login

    flow_fix = (
        "The user can do it by hand or in a new session, and the operator can name an owner with `--trusted-owner` "
        "whose public text may be read before."
    )

    def trusts(self, key: str) -> bool:
        """Whether the operator takes public text of the repository `key` for that of the user's own people."""
        return key.partition("/")[0] in self._trusted

    def flow_question(
        self, target: str, seen: Mapping[str, bool], *, public: bool, acts: bool = False
    ) -> str | None:  # fmt: skip
        """What to ask the user before a write to `target`, None if nothing.

        Args:
            target: key of the repository to be written to.
            seen: the repositories whose text was shown, by their key; True for a public one.
            public: whether `target` is public.
            acts: whether the write runs or publishes something.

        Raises:
            Refused: it would have to be asked, and the operator's word is `--flow strict`.
        """
        if self.flow == "off":
            return None
        foreign = sorted(key for key, is_public in seen.items() if is_public and key != target and not self.trusts(key))
        private = sorted(key for key, is_public in seen.items() if not is_public and key != target)
        if foreign:
            why = f"public text of {_some(foreign)} was read before, and could have asked for this"
        elif public and private:
            why = f"it is public, and text of the private {_some(private)} was read before, which would get out"
        elif acts and public and seen.get(target):
            why = "it runs or publishes something there, and text that anybody may write there was read before"
        else:
            return None
        if self.flow == "strict":
            raise Refused(f"Writing to {quote(target)} is refused: {why}.", self.flow_fix)
        return f"Allow a write to {quote(target)}? {why[0].upper()}{why[1:]}."


def _flag(gate: str) -> str:
    return "--" + gate.replace("_", "-")


def _some(keys: Sequence[str]) -> str:
    return quote(", ".join(keys[:3])) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")


def _is_internal(host: str) -> bool:
    """Whether `host` is a name or address that only this machine or network knows."""
    plain = host.strip("[]")
    return (
        "." not in plain or ":" in plain or plain.replace(".", "").isdigit() or plain.endswith((".local", ".internal"))
    )


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _pattern(text: str) -> tuple[str, str]:
    owner, _, name = text.lower().partition("/")
    if not _OWNER.fullmatch(owner) or not (name == "*" or _NAME.fullmatch(name)) or name in (".", ".."):
        raise Unavailable(f"{quote(text)} in --repos is no repository.", "Write owner/name, or owner/* for all of one.")
    return owner, name


def _require_way_in(settings: PolicySettings) -> None:
    """Raise `Unavailable` where nobody could do what `--auth` says."""
    if settings.auth == "caller" and settings.transport != "http":
        raise Unavailable("Only over HTTP do callers bring tokens.", "Give --transport http, or another --auth.")
    if settings.auth == "login" and settings.transport != "stdio":
        raise Unavailable("One login over HTTP would be everybody's.", "Give --auth caller instead of login.")
    if settings.auth == "login" and not settings.login_client_id:
        raise Unavailable("Nobody can log in without an app.", "Give its client ID with --login-client-id.")


def _api_url(url: str) -> ApiUrl:
    parts = urlsplit(url if "//" in url else f"https://{url}")
    host = (parts.hostname or "").lower()
    try:
        port = parts.port
    except ValueError:
        host, port = "", None
    if not host or parts.username or parts.query or parts.fragment or parts.scheme not in ("https", "http"):
        raise Unavailable(f"{quote(url)} is no address of an API.", "Write it as https://host.")
    if parts.scheme == "http" and host not in _LOOPBACK:
        raise Unavailable(f"{quote(url)} would send the token unencrypted.", "Write https://.")
    path = parts.path.rstrip("/")
    if host in ("github.com", "www.github.com"):
        host = "api.github.com"
    elif host.endswith(".ghe.com") and not host.startswith("api."):
        host = f"api.{host}"
    elif not path and not host.startswith("api.") and host not in _LOOPBACK:
        path = "/api/v3"
    shown = f"[{host}]" if ":" in host else host
    return ApiUrl(f"{parts.scheme}://{shown}{f':{port}' if port else ''}{path}")
