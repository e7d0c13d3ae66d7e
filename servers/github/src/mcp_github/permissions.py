"""The permissions of a fine-grained token that each tool needs; a test compares them with each tool's requests.

After adding a request to a tool, add what it needs here and run `python tests/github_server/permissions.py`, which
writes the reference's table.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["PERMISSIONS_BY_TOOL"]

_TOOLS_BY_PERMISSION = {
    "Actions: read": "get_run get_usage list_actions list_checks read_artifact read_job_log",
    "Actions: write": "delete_run_logs edit_run run_workflow",
    "Administration: write": "copy_repository create_repository delete_repository",
    "Code quality: read": "get_alert list_alerts",
    "Code scanning alerts: read": "get_alert list_alerts",
    "Commit statuses: read": "list_checks",
    "Contents: read": (
        "get_commit get_release list_checks list_commits list_files list_refs list_releases read_blame read_diff "
        "read_file"
    ),
    "Contents: write": (
        "create_branch create_release delete_branch delete_release edit_release move_branch run_merge write_files"
    ),
    "Custom properties: write": "write_properties",
    "Dependabot alerts: read": "get_alert list_alerts",
    "Discussions: read": "get_discussion list_discussions",
    "Discussions: write": (
        "create_discussion create_discussion_comment delete_discussion_comment edit_discussion_comment"
    ),
    "Gists of the account: write": "write_gist",
    "Issue fields of the organisation: read": "edit_issue list_issue_options list_issues",
    "Issue types of the organisation: read": "list_issue_options",
    "Issues or Pull requests: read": "list_comments list_issue_options",
    "Issues or Pull requests: write": (
        "create_comment create_label delete_comment delete_label edit_comment edit_label run_copilot write_milestone"
    ),
    "Issues: read": "create_project_item find_duplicates get_issue list_issues list_pull_requests",
    "Issues: write": "create_issue create_reaction edit_dependency edit_issue edit_sub_issue",
    "Members of the organisation: read": "list_people",
    "Metadata: read": "get_gist get_me get_repository get_ruleset list_gists list_rules search_github",
    "Projects of the organisation: read": "list_projects",
    "Projects of the organisation: write": (
        "create_project create_project_field create_project_item create_project_view delete_project_item "
        "edit_project_item write_project_update"
    ),
    "Pull requests: read": (
        "delete_branch get_pull_request get_run list_checks list_commits list_pull_requests list_reviews read_diff"
    ),
    "Pull requests: write": (
        "create_comment create_pull_request create_reaction create_review edit_comment edit_pull_request "
        "edit_review edit_thread run_merge"
    ),
    "Repository security advisories: read": "list_advisories",
    "Secret scanning alerts: read": "get_alert list_alerts",
    "Starring of the account: read": "list_stars",
    "Starring of the account: write": "edit_star",
    "Watching of the account: read": "get_subscription",
    "Watching of the account: write": "edit_subscription",
    "a classic token": "edit_notification list_notifications list_people",
}


def _group_by_tool() -> dict[str, tuple[str, ...]]:
    permissions: dict[str, tuple[str, ...]] = {}
    for permission, tools in _TOOLS_BY_PERMISSION.items():
        for tool in tools.split():
            permissions[tool] = (*permissions.get(tool, ()), permission)
    return permissions


# Where arguments choose what is asked for, all that it can come to.
PERMISSIONS_BY_TOOL: Mapping[str, tuple[str, ...]] = _group_by_tool()
