"""What mcp-github can be told, beyond what every server can."""

from __future__ import annotations

import os
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from mcp_batteries.settings import Asked
from mcp_batteries.settings import Settings as Common

__all__ = ["DEFAULT_TOOLSETS", "TOOLSETS", "Settings"]

DEFAULT_TOOLSETS = ("context", "repos", "issues", "pull_requests")
TOOLSETS = (
    *DEFAULT_TOOLSETS, "actions", "code", "releases", "discussions", "notifications", "gists", "labels", "projects",
    "security", "search", "stars",
)  # fmt: skip


class Settings(Common):
    """Serve GitHub over MCP: read what the token may read, change only what you open, and leak nothing."""

    COMMAND: ClassVar[str] = "mcp-github"
    ASKED: ClassVar[tuple[Asked, ...]] = (
        Asked("token", "GitHub token", "github_pat_...", variable="GITHUB_TOKEN", secret=True, required=False),
    )
    DOCUMENTED: ClassVar[tuple[str, ...]] = (
        "--toolsets", "all", "--write", "--merge", "--delete", "--releases", "--runs",
    )  # fmt: skip

    toolsets: tuple[str, ...] = Field(
        DEFAULT_TOOLSETS, description=f"Groups of tools to offer, or all: {', '.join(TOOLSETS)}; repeatable."
    )
    write: bool = Field(False, description="Offer tools that change something.")
    merge: bool = Field(False, description="With --write, also allow merging pull requests.")
    delete: bool = Field(False, description="With --write, also allow deleting branches, comments and repositories.")
    workflow_files: bool = Field(False, description="With --write, also allow changing files that Actions would run.")
    runs: bool = Field(False, description="With --write, also allow starting workflows, rerunning and cancelling them.")
    releases: bool = Field(False, description="With --write, also allow publishing and changing releases.")
    force: bool = Field(False, description="With --write, also allow moving a branch to where commits get lost.")
    repos: tuple[str, ...] = Field(
        (), description="Only repository to reach, as owner/name or owner/*; repeatable. Without it, all the token can."
    )
    flow: Literal["ask", "strict", "off"] = Field(
        "ask",
        description="Writes to one repository after text of a public other was read: ask the user, refuse, or allow.",
    )
    api_url: str = Field(
        "https://api.github.com", description="The API: of GitHub, a ghe.com tenant or an Enterprise Server."
    )
    auth: Literal["auto", "env", "gh", "none"] = Field(
        "auto",
        description="Where the token is from: GITHUB_TOKEN or GH_TOKEN, the gh program, nowhere; auto takes the first.",
    )
    token_file: str | None = Field(None, description="File that holds the token, instead of a variable.")
    app_id: str | None = Field(None, description="Act as this GitHub App, by its id or client id.")
    app_installation: int = Field(0, ge=0, description="Installation of the App; 0 takes its only one.")
    app_key_file: str | None = Field(None, description="File that holds the App's private key, in PEM.")
    workers: int = Field(8, ge=1, le=64, description="Requests to GitHub that may be under way at once.")
    timeout: int = Field(20, ge=1, le=300, description="Seconds one request to GitHub may take.")
    poll: float = Field(60, ge=0.2, le=86_400, description="Seconds between two looks at what somebody subscribed to.")
    cache: str | None = Field(
        None, description="Folder for what subscriptions fetched, or memory; by default in the user's cache folder."
    )
    watch_list: str | None = Field(
        None, description="TOML file of what to list as resources; edit it and the list follows."
    )
    inbox: str | None = Field(
        None, description="Folder into which a receiver of webhooks drops deliveries: hints of where to look at once."
    )
    inbox_secret_file: str | None = Field(
        None, description="File that holds the webhook's secret, instead of GITHUB_WEBHOOK_SECRET."
    )
    write_interval: int = Field(
        1000, ge=0, le=60_000, description="Milliseconds between two writes; GitHub asks for a second."
    )

    @field_validator("toolsets", "repos")
    @classmethod
    def _lists(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        # A list with commas is what people try first.
        return tuple(word for value in values for word in value.replace(",", " ").split())

    @field_validator("cache")
    @classmethod
    def _absolute_unless_memory(cls, folder: str | None) -> str | None:
        return folder if folder in (None, "memory") else os.path.abspath(os.path.expanduser(folder))

    @field_validator("token_file", "app_key_file", "watch_list", "inbox", "inbox_secret_file")
    @classmethod
    def _absolute(cls, path: str | None) -> str | None:
        # Hosts start servers in folders of their own: what the operator meant is fixed here.
        return None if path is None else os.path.abspath(os.path.expanduser(path))
