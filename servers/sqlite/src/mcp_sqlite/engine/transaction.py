"""Changes rows and schemas, and tells what was done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_batteries.sql.results.changes import Change, Sample, Step, show_completed_steps
from mcp_batteries.sql.results.rows import RowPage, format_count, to_one_line
from mcp_sqlite.engine.result_pages import MAX_CELL, ResultPages
from mcp_sqlite.engine.workers.process import to_problem
from mcp_sqlite.policy import SchemaStatement, WriteStatement

__all__ = ["run_change"]

# From here on a dry run says how long it held the lock.
_SLOW_DRY_RUN_SECONDS = 0.1


async def run_change(pages: ResultPages, statement: WriteStatement | SchemaStatement, *, dry_run: bool) -> Change:
    """Run `statement` in one transaction, and keep what it did unless `dry_run`.

    Raises:
        Problem: it fails, and nothing is changed. That of a dry run shows what its statements before the failure did.
    """
    mode = "write"
    if isinstance(statement, SchemaStatement):
        mode = "migrate" if statement.rows else "schema"
    request = {
        "do": "change",
        "path": statement.database.address,
        "sql": statement.sql,
        "mode": mode,
        "parameters": statement.parameters,
        "dry_run": dry_run,
        "max_cell": MAX_CELL,
    }
    answer, returned = await pages.run_change(request, statement)
    steps = [_to_step(step, page) for step, page in zip(answer["steps"], returned, strict=True)]
    if "failure" in answer:
        raise show_completed_steps(to_problem(answer["failure"]), steps)
    return Change(
        steps,
        dry_run,
        answer.get("objects"),
        [_to_sample(sample) for sample in answer.get("samples", ())],
        _list_findings(answer, dry_run=dry_run),
        answer.get("undo", ()),
    )


def _list_findings(answer: Mapping[str, Any], *, dry_run: bool) -> list[tuple[str, list[str]]]:
    """Return what is remarkable about a change."""
    findings: list[tuple[str, list[str]]] = []
    broken_keys: dict[str, Any] = answer.get("broken_keys", {})
    new = broken_keys.get("new")
    number_before = broken_keys.get("number_before")
    if new:
        since = "now" if number_before is None else "since this change"
        findings.append((f"Foreign keys that point nowhere {since}:", new))
    if number_before:
        findings.append((f"Foreign keys that pointed nowhere before: {number_before:,} (`run_check`).", []))
    findings += [(title, [to_one_line(line) for line in lines]) for title, lines in answer.get("dependents", ())]
    if answer["files"]:
        findings.append(("Files:", [to_one_line(note) for note in answer["files"]]))
    if dry_run and answer["seconds"] > _SLOW_DRY_RUN_SECONDS:
        milliseconds = 1000 * answer["seconds"]
        findings.append((f"It held the database's write lock for {milliseconds:,.0f} ms.", []))
    return findings


def _to_sample(sample: Mapping[str, Any]) -> Sample:
    return Sample(
        table=sample["table"],
        columns=sample["columns"],
        before=sample["before"],
        after=sample["after"],
        old_columns=sample["columns_before"],
        key_columns=sample["key_columns"],
    )


def _to_step(step: Mapping[str, Any], returned: RowPage | None) -> Step:
    """Return a statement's line: what it did, in which tables, to how many rows, and what else is to be said."""
    indirect = ""
    if step["all"] > step["rows"]:
        indirect = f"and {step['all'] - step['rows']} more by triggers and foreign keys"
    seconds = ""
    if step["seconds"] is not None:
        seconds = f"in {step['seconds']:.1f} s"
    tables = ""
    if step["tables"]:
        tables = f"in {', '.join(step['tables'])}"
    details = ", ".join(filter(None, [indirect, seconds]))
    if step["action"]:
        return Step(" ".join(filter(None, [step["action"], tables])), None, details, returned)
    if returned is not None and not step["all"]:
        # It only read, or found nothing to change.
        return Step("", None, details, returned)
    replaced = ""
    if step["replaced"]:
        replaced = f"in place of {step['replaced']:,}"
    rows = ", ".join(filter(None, [format_count(step["rows"], "row"), replaced, indirect]))
    subject = f"{rows} {tables}".rstrip()
    notes = [", ".join(filter(None, [subject, seconds])), step["skipped_triggers"]]
    if returned is None:
        # Else its rows say it.
        notes += [*step["incomparable"], *step["absent"]]
    summary = to_one_line("; ".join(filter(None, notes)))
    return Step(summary, None, "", returned)
