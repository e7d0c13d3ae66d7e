"""Which permission of a fine-grained token each request needs: facts of GitHub's, in our words.

REST as published in github/docs (`fine-grained-pat-permissions.json`, 2022-11-28), read in November 2026; what is
marked with `?` is not in the stored version of it, and GraphQL is nowhere in it: those are as the pages of GitHub's
documentation describe them, and untried. `python tests/github_server/permissions.py` writes the reference's table.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "mcp-github.md"
REPO = "/repos/{owner}/{repo}"
EITHER = "Issues or Pull requests"

FACTS: list[tuple[str, str, str]] = [
    # verbs, path (a regular expression; ~ stands for the repository's), permission; the first that fits counts
    ("GET", "~", "Metadata: read"),
    ("DELETE", "~", "Administration: write"),
    ("POST", "/user/repos", "Administration: write"),
    ("POST", "/orgs/{org}/repos", "Administration: write"),
    ("POST", "~/forks", "Administration: write"),
    ("GET", "~/(collaborators|contributors|tags|rulesets.*|rules/.*)", "Metadata: read"),
    ("GET", "~/properties/values", "Metadata: read"),  # ?
    ("PATCH", "~/properties/values", "Custom properties: write"),  # ?
    ("GET", "~/commits/[^/]+/pulls", "Pull requests: read"),
    ("GET", "~/(branches(/.*)?|commits|commits/{ref}|compare/.*|contents/.*|git/.*|releases.*)", "Contents: read"),
    ("POST PATCH DELETE", "~/(git/refs.*|releases.*)", "Contents: write"),
    ("PUT", "~/(contents/.*|pulls/{pull_number}/merge)", "Contents: write"),
    # Only Apps can have checks; without them statuses and runs are shown instead.
    ("GET", "~/(commits/{ref}/check-runs|check-runs/.*)", "Actions: read"),
    ("GET", "~/commits/{ref}/status", "Commit statuses: read"),
    ("GET", "~/actions/.*", "Actions: read"),
    ("POST DELETE", "~/actions/.*", "Actions: write"),
    ("GET", "~/(assignees|labels(/.*)?|milestones|issues/{issue_number}/(comments|timeline))", f"{EITHER}: read"),
    ("GET", "~/issues.*", "Issues: read"),
    ("POST PATCH DELETE", "~/(labels.*|milestones.*|issues/comments/{comment_id})", f"{EITHER}: write"),
    ("POST PATCH DELETE", "~/issues/{issue_number}(/comments|/assignees|/labels.*)?", f"{EITHER}: write"),
    ("POST PATCH DELETE", "~/issues.*", "Issues: write"),
    ("GET", "~/pulls.*", "Pull requests: read"),
    ("POST PATCH PUT DELETE", "~/pulls.*", "Pull requests: write"),
    ("GET", "~/code-scanning/.*", "Code scanning alerts: read"),
    ("GET", "~/code-quality/.*", "Code quality: read"),
    ("GET", "~/secret-scanning/.*", "Secret scanning alerts: read"),
    ("GET", "~/dependabot/.*", "Dependabot alerts: read"),
    ("GET", "~/security-advisories", "Repository security advisories: read"),
    ("GET", "/orgs/{org}/security-advisories", "Repository security advisories: read"),  # ?
    ("GET", "/orgs/{org}/(members|teams/.*)", "Members of the organisation: read"),
    ("GET", "/orgs/{org}/issue-types", "Issue types of the organisation: read"),  # ?
    ("GET", "/orgs/{org}/issue-fields", "Issue fields of the organisation: read"),  # ?
    ("GET", "/(orgs|users)/[^/]+/projectsV2.*", "Projects of the organisation: read"),  # ?
    ("POST PATCH DELETE", "/(orgs|users)/[^/]+/projectsV2.*", "Projects of the organisation: write"),  # ?
    ("POST PATCH", "/gists.*", "Gists of the account: write"),
    ("GET", "/user/starred", "Starring of the account: read"),
    ("PUT DELETE", "/user/starred/.*", "Starring of the account: write"),
    ("GET", "~/subscription", "Watching of the account: read"),
    ("PUT DELETE", "~/subscription", "Watching of the account: write"),
    ("GET PUT PATCH DELETE", "(~)?/notifications.*", "a classic token"),
    ("GET", "/user/teams", "a classic token"),
    ("GET", "/(search/.*|advisories|rate_limit|user|users/.*|gists.*)", ""),
    ("GRAPHQL", "Blame|Branches|Tags", "Contents: read"),
    ("GRAPHQL", "CommitOnBranch", "Contents: write"),
    ("GRAPHQL", "MergeState|PullFacts|PullLinks|Threads?", "Pull requests: read"),
    ("GRAPHQL", "AddThread|AutoMerge|Draft|Enqueue|Ready|Reply|Resolve|Unresolve", "Pull requests: write"),
    ("GRAPHQL", "Categories|Discussions?|DiscussionComment", "Discussions: read"),
    ("GRAPHQL", ".*Discussion.*|(M|Unm)arkAnswer", "Discussions: write"),
    ("GRAPHQL", "ProjectViews|ProjectUpdates", "Projects of the organisation: read"),
    ("GRAPHQL", ".*Project.*", "Projects of the organisation: write"),
    ("GRAPHQL", "NodePlace", ""),
]


def needed(operation: str) -> str:
    """The permission for `VERB path` or `GRAPHQL Name`; empty if none is needed.

    Raises:
        LookupError: nothing is known of it.
    """
    verb, _, path = operation.partition(" ")
    for verbs, pattern, permission in FACTS:
        pattern = pattern.replace("{", r"\{").replace("}", r"\}").replace("~", re.escape(REPO))
        if verb in verbs.split() and re.fullmatch(pattern, path):
            return permission
    raise LookupError(operation)


def together(permissions: set[str]) -> list[str]:
    """`permissions` without those that others include: write includes read, and each token can read metadata."""
    found = permissions - {"", "Metadata: read"}
    for one in list(found):
        name, _, access = one.partition(": ")
        enough = {f"{name}: write"} if access == "read" else set[str]()
        # Who may write issues may do what either of both lets one do.
        enough |= {f"Issues: {level}" for level in {access, "write"} if name == EITHER}
        if found & enough:
            found.discard(one)
    return sorted(found) or ["Metadata: read"]


def table(needs: Mapping[str, tuple[str, ...]]) -> str:
    """The reference's table: by permissions, the tools that need them."""
    by: dict[str, list[str]] = {}
    for tool, permissions in sorted(needs.items()):
        by.setdefault(", ".join(permissions), []).append(f"`{tool}`")
    rows = [f"| {permissions} | {', '.join(tools)} |" for permissions, tools in sorted(by.items())]
    return "\n".join(["| a token needs | for |", "| --- | --- |", *rows])


def filled(readme: str, needs: Mapping[str, tuple[str, ...]]) -> str:
    between = re.compile(r"(<!-- permissions -->\n).*?(<!-- /permissions -->)", re.DOTALL)
    return between.sub(lambda found: f"{found[1]}{table(needs)}\n{found[2]}", readme)


if __name__ == "__main__":
    from mcp_github.permissions import PERMISSIONS_BY_TOOL

    REFERENCE.write_text(filled(REFERENCE.read_text("utf-8"), PERMISSIONS_BY_TOOL), "utf-8")
    sys.exit(0)
