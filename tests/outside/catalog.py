"""All evidence from outside: what it is, who wrote it, and which members it judges."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CATALOG", "EACH", "Evidence"]

EACH = "each"


@dataclass(frozen=True)
class Evidence:
    """One module of tests of this folder, or of one in it.

    Attributes:
        module: its name, without `test_`.
        source: whose work judges, and where it comes from.
        member: whom it judges; `EACH` if the parameter `package` of its tests names it.
    """

    module: str
    source: str
    member: str


CATALOG = (
    Evidence("bridges", "mcp-remote and supergateway, from npm; mcp-proxy, from PyPI", EACH),
    Evidence("conformance", "the official conformance suite, from npm", EACH),
    Evidence("documents", "real documents, read beside other libraries", "mcp-fs"),
    Evidence("foreign_clients", "the Inspector and the TypeScript SDKs, from npm; fastmcp", "mcp-fs"),
    Evidence("frameworks", "openai-agents and langchain-mcp-adapters, from PyPI", EACH),
    Evidence("hold_fields", "GitHub's description of its API, from npm", "mcp-github"),
    Evidence("pygithub", "PyGithub as a client", "mcp-github"),
    Evidence("pygithub_recordings", "what GitHub answered PyGithub over the years, from PyPI", "mcp-github"),
    Evidence("pygithub_writes", "PyGithub as a client that writes", "mcp-github"),
    Evidence("replay_checkout", "what other libraries recorded of GitHub, from npm or a checkout", "mcp-github"),
    Evidence("reports_documents", "public reports", "mcp-fs"),
    Evidence("reports_files", "public reports", "mcp-fs"),
    Evidence("reports_git", "public reports", "mcp-git"),
    Evidence("reports_github", "public reports", "mcp-github"),
    Evidence("reports_postgres", "public reports", "mcp-postgres"),
    Evidence("reports_sql", "public reports", EACH),
    Evidence("reports_sqlite", "public reports", "mcp-sqlite"),
    Evidence("reports_transports", "public reports", "mcp-fs"),
    Evidence("reports_weather", "public reports", "mcp-weather"),
    Evidence("vscode", "the library with which VS Code checks schemas, from npm", EACH),
)
