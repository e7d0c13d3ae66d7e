"""The settings of mcp-github, besides those of every server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from mcp_batteries.settings import ABSOLUTE, Dependencies, InstallQuestion, to_absolute_path
from mcp_batteries.settings import Settings as Common

__all__ = ["DEFAULT_TOOLSETS", "TOOLSETS", "Settings"]

DEFAULT_TOOLSETS = ("context", "repos", "issues", "pull_requests")
TOOLSETS = (
    *DEFAULT_TOOLSETS, "actions", "code", "releases", "discussions", "notifications", "gists", "labels", "projects",
    "security", "search", "stars", "planning", "rules",
)  # fmt: skip

# What the toolsets of GitHub's own server are called here; `default` is our own.
_TOOLSETS_BY_OTHER_NAME = {
    "default": DEFAULT_TOOLSETS,
    "git": ("repos",),
    "users": ("search",),
    "orgs": ("search",),
    "copilot": ("planning",),
    "stargazers": ("stars",),
    "code_security": ("security",),
    "code_quality": ("security",),
    "secret_protection": ("security",),
    "dependabot": ("security",),
    "security_advisories": ("security",),
}


class Settings(Common):
    """Serve GitHub over MCP: read what the token may read, change only what you allow, and leak nothing."""

    COMMAND: ClassVar[str] = "mcp-github"
    INSTALL_QUESTIONS: ClassVar[tuple[InstallQuestion, ...]] = (
        InstallQuestion(
            "token", "GitHub token", "github_pat_...", variable="GITHUB_TOKEN", secret=True, required=False
        ),
    )
    DOCUMENTED: ClassVar[tuple[str, ...]] = (
        "--toolsets", "all", "--write", "--merge", "--delete", "--releases", "--runs", "--token-file", "token",
    )  # fmt: skip

    NEEDS: ClassVar[dict[str, tuple[str, ...]]] = Common.NEEDS | dict.fromkeys(
        ("merge", "delete", "workflow_files", "runs", "releases", "force"), ("write",)
    )
    FREQUENT: ClassVar[tuple[str, ...]] = ("repos", "toolsets", "write", "merge", "token_file", "auth")
    PLAIN_HINT: ClassVar[str] = "To allow only one repository: mcp-github --repos {argument}"
    EXAMPLES: ClassVar[tuple[str, ...]] = (
        "",
        "--repos octo-org/website",
        "--write --toolsets issues --toolsets pull_requests",
    )

    toolsets: tuple[str, ...] = Field(
        DEFAULT_TOOLSETS, description=f"Groups of tools to offer, or all: {', '.join(TOOLSETS)}; repeatable."
    )
    write: bool = Field(False, description="Offer tools that change things.")
    merge: bool = Field(False, description="With --write, also allow merging pull requests.")
    delete: bool = Field(False, description="With --write, also allow deleting branches, comments and repositories.")
    workflow_files: bool = Field(False, description="With --write, also allow changing files that Actions would run.")
    runs: bool = Field(False, description="With --write, also allow starting workflows, rerunning and cancelling them.")
    releases: bool = Field(False, description="With --write, also allow publishing and changing releases.")
    force: bool = Field(False, description="With --write, also allow moving a branch so that it loses commits.")
    repos: tuple[str, ...] = Field(
        (),
        description="Repository to allow, as owner/name or owner/*; repeatable; by default all that the token reaches. "
        "If it is only one, calls need not name it.",
    )
    flow: Literal["ask", "strict", "off"] = Field(
        "ask",
        description="Before a write that could carry text between repositories: ask the user, refuse or go on.",
    )
    lockdown: bool = Field(
        False, description="Hide what people wrote who do not belong to the repository; logs may still repeat it."
    )
    trusted_owner: tuple[str, ...] = Field(
        (), description="Owner whose public repositories may be read before a write elsewhere; repeatable."
    )
    api_url: str = Field(
        "https://api.github.com", description="API URL of GitHub, a ghe.com tenant or an Enterprise Server."
    )
    auth: Literal["auto", "env", "gh", "none", "caller", "login"] = Field(
        "auto",
        description="Source of the token: env (GITHUB_TOKEN, GH_TOKEN), gh (the program), caller (each sends their own "
        "over HTTP), login (with a code in the browser) or none; auto tries env and gh.",
    )
    login_client_id: str | None = Field(None, description="Client ID of the app with which people log in.")
    login_scope: tuple[str, ...] = Field(
        ("repo", "read:org"), description="Scope that a login asks for, as far as the app has scopes; repeatable."
    )
    token_file: Annotated[str | None, ABSOLUTE] = Field(None, description="File with the token, instead of a variable.")
    app_id: str | None = Field(None, description="Act as this GitHub App, given by its ID or client ID.")
    app_installation: int = Field(0, ge=0, description="ID of the App's installation; 0 takes the only one.")
    app_key_file: Annotated[str | None, ABSOLUTE] = Field(None, description="Private key of the App (PEM file).")
    workers: int = Field(8, ge=1, le=64, description="Concurrent requests to GitHub.")
    timeout: int = Field(
        30,
        ge=1,
        le=300,
        description="Seconds that a call waits for GitHub, with all its requests and their tries, "
        "besides its turn among writes.",
    )
    poll: float = Field(
        60, ge=0.2, le=86_400, description="Seconds between two checks of what somebody is subscribed to."
    )
    cache: str | None = Field(
        None, description="Cache folder for subscriptions, or `memory`; by default in the user's cache folder."
    )
    watch_list: Annotated[str | None, ABSOLUTE] = Field(
        None, description="TOML file of resources to list; reloaded when it changes."
    )
    inbox: Annotated[str | None, ABSOLUTE] = Field(
        None, description="Folder where a webhook receiver stores deliveries; each makes the server check at once."
    )
    inbox_secret_file: Annotated[str | None, ABSOLUTE] = Field(
        None, description="File with the webhook secret, instead of GITHUB_WEBHOOK_SECRET."
    )
    write_interval: int = Field(
        1000, ge=0, le=60_000, description="Milliseconds between two writes; GitHub asks for one second."
    )

    @field_validator("toolsets", "repos", "trusted_owner", "login_scope")
    @classmethod
    def _lists(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        # A list with commas is what people try first.
        words: list[str] = []
        for value in values:
            words += value.replace(",", " ").split()
        return tuple(words)

    @field_validator("toolsets")
    @classmethod
    def _known_toolsets(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        """Return the toolsets by our names, each once."""
        names: list[str] = []
        for value in values:
            names += _TOOLSETS_BY_OTHER_NAME.get(value, (value,))
        return tuple(dict.fromkeys(names))

    @field_validator("cache")
    @classmethod
    def _absolute_unless_memory(cls, folder: str | None) -> str | None:
        if folder is None or folder == "memory":
            return folder
        return to_absolute_path(folder)

    def open_questions(self) -> Sequence[InstallQuestion]:
        """The token, unless these settings say that it comes from elsewhere."""
        if self.app_id or self.token_file or self.auth not in ("auto", "env"):
            return ()
        return self.INSTALL_QUESTIONS

    def depends_on(self) -> Dependencies | None:
        variables = ("GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "GITHUB_TOKEN", "GH_TOKEN")
        files = (self.token_file, self.app_key_file, self.watch_list, self.inbox_secret_file)
        return Dependencies(variables=variables, files=tuple(filter(None, files)))
