"""Which modules are mutated, and the tests that are to notice."""

from __future__ import annotations

__all__ = ["MODULES"]

_SHARED = "shared/src/mcp_batteries"

_HEARING = (
    "tests/shared/test_hub.py",
    "tests/shared/test_hub_limits.py",
    "tests/shared/test_subscribers.py",
    "tests/shared/test_followers.py",
    "tests/simulation/test_simulation.py",
    "tests/filesystem/test_list_changes.py",
)

MODULES = {
    f"{_SHARED}/subscriptions/hub.py": _HEARING,
    f"{_SHARED}/replicas/bus.py": ("tests/shared/test_buses.py", "tests/simulation/test_simulation.py"),
    f"{_SHARED}/server/calling/bound_function.py": ("tests/shared/test_tool_functions.py",),
    f"{_SHARED}/subscriptions/subscribers.py": _HEARING,
    f"{_SHARED}/subscriptions/topics.py": _HEARING,
    **{
        f"{_SHARED}/transports/http/auth/{name}.py": (
            "tests/shared/test_guard.py",
            "tests/shared/test_access.py",
            "tests/e2e/test_login.py",
        )
        for name in ("guard", "scopes")
    },
    f"{_SHARED}/transports/http/gate/host_check.py": ("tests/shared/test_host_check.py", "tests/shared/test_http.py"),
    **{
        f"servers/filesystem/src/mcp_fs/policy/{name}.py": (
            "tests/filesystem/test_policy.py",
            "tests/filesystem/test_client_roots.py",
            "tests/filesystem/test_handles.py",
            "tests/filesystem/test_several.py",
        )
        for name in ("__init__", "path_arguments", "roots")
    },
    "servers/filesystem/src/mcp_fs/repositories.py": ("tests/filesystem/test_repositories.py",),
    "servers/filesystem/src/mcp_fs/secrets.py": ("tests/filesystem/test_policy.py",),
    **{
        f"servers/git/src/mcp_git/policy/{name}.py": (
            "tests/git_server/test_policy.py",
            "tests/git_server/test_reads.py",
            "tests/git_server/test_hostile.py",
            "tests/git_server/test_writes.py",
            "tests/git_server/test_remotes.py",
            "tests/git_server/test_worktrees.py",
        )
        for name in ("__init__", "repositories", "revisions")
    },
    **{
        f"servers/github/src/mcp_github/policy/{name}.py": (
            "tests/github_server/test_policy.py",
            "tests/github_server/test_mistakes.py",
            "tests/github_server/test_settings.py",
            "tests/github_server/test_taint.py",
            "tests/github_server/test_watch_list.py",
        )
        for name in (
            "__init__",
            "addresses",
            "file_changes",
            "flow",
            "gates",
            "names",
            "allow_list",
            "repositories",
            "review_comments",
        )
    },
    **{
        f"servers/postgres/src/mcp_postgres/policy/{name}.py": (
            "tests/postgres/test_policy.py",
            "tests/postgres/test_urls.py",
            "tests/postgres/test_addresses.py",
            "tests/postgres/test_several.py",
            "tests/postgres/test_consent.py",
            "tests/postgres/test_resources.py",
            "tests/postgres/test_tools.py",
        )
        for name in ("__init__", "addresses", "requests", "targets")
    },
    "servers/postgres/src/mcp_postgres/policy/call_settings.py": ("tests/postgres/test_call_settings.py",),
    **{
        f"servers/postgres/src/mcp_postgres/engine/{name}.py": (
            "tests/postgres/test_powers.py",
            "tests/postgres/test_gate.py",
            "tests/postgres/test_attacks.py",
            "tests/postgres/test_part.py",
        )
        for name in (
            "admission/statements",
            "audit/function_audit",
            "audit/dangers",
            "audit/procedures",
            "connection/role",
        )
    },
    "servers/sqlite/src/mcp_sqlite/policy.py": (
        "tests/sqlite/test_policy.py",
        "tests/sqlite/test_mistakes.py",
        "tests/sqlite/test_doors.py",
        "tests/sqlite/test_queries.py",
    ),
    "servers/sqlite/src/mcp_sqlite/worker/connection/authorizer.py": (
        "tests/sqlite/test_authorizer.py",
        "tests/sqlite/test_writes.py",
        "tests/sqlite/test_attacks.py",
    ),
    "servers/weather/src/mcp_weather/geography/geocoder_results.py": (
        "tests/weather/test_place_names.py",
        "tests/weather/test_policy.py",
    ),
    **{
        f"servers/weather/src/mcp_weather/policy/{name}.py": (
            "tests/weather/test_policy.py",
            "tests/weather/test_place_names.py",
            "tests/weather/test_units_and_airports.py",
            "tests/weather/test_upstream_failures.py",
            "tests/weather/test_tools.py",
            "tests/weather/test_day_words.py",
            "tests/weather/test_spellings.py",
        )
        for name in (
            "__init__",
            "airport",
            "alert_cursor",
            "day_words",
            "days",
            "language",
            "place",
            "place_readings",
            "place_search",
            "place_text",
            "policy",
            "resource_uri",
            "units",
            "weather_words",
        )
    },
}
