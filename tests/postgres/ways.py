"""The ways in for a statement of a caller's: a tool, the form of its `sql`, and its other arguments."""

from typing import Any

__all__ = ["WAYS", "asked"]

WAYS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "query": ("query_rows", "{q}", {}),
    "one of several": ("query_rows", "SELECT 1; {q}; SELECT 2", {}),
    "behind settings": ("query_rows", "SET app.tenant = '1'; SET enable_seqscan = off; {q}", {}),
    "as another role": ("query_rows", "SELECT 1; SET ROLE {r}; {q}", {}),
    "explain in a query": ("query_rows", "EXPLAIN (VERBOSE) {q}", {}),
    "explain analyze in a query": ("query_rows", "EXPLAIN (ANALYZE) {q}", {}),
    "plan": ("explain_query", "{q}", {}),
    "plan, run": ("explain_query", "{q}", {"analyze": True}),
    "dry run": ("write_rows", "{q}", {"dry_run": True}),
    "dry run of several": ("write_rows", "SELECT 1; {q}; DELETE FROM {t} WHERE false", {"dry_run": True}),
    "dry run as another role": ("write_rows", "{q}", {"as_role": "{r}"}),
    "dry run of a change": (
        "write_rows",
        "WITH harmless AS ({q}) INSERT INTO {t} (id, note) SELECT 2, count(*)::text FROM harmless HAVING count(*) < 0",
        {"dry_run": True},
    ),
    "export": ("copy_to_file", "{q}", {"file": "out.csv"}),
    "export, objects": ("copy_to_file", "{q}", {"file": "out.jsonl"}),
}


def asked(way: str, sql: str, *, table: str, role: str) -> tuple[str, dict[str, Any]]:
    """The tool and its arguments that bring `sql` in; `table` has an `id` and a `note`."""
    tool, form, more = WAYS[way]
    filled = form.replace("{t}", table).replace("{r}", role).replace("{q}", sql)
    return tool, {"sql": filled} | {key: role if value == "{r}" else value for key, value in more.items()}
