"""Which powers of a role and which functions could do more than read; `test_gate` meets some in a PostgreSQL."""

import json
from typing import Any

import pytest

from mcp_postgres.engine.admission import Limits, opening
from mcp_postgres.engine.closed_world import READING, _Proc
from mcp_postgres.engine.role import Role
from postgres.serving import make

FLAGS = ("superuser", "createdb", "createrole", "replication", "bypassrls")
COUNTS = {"tables": 3, "writable": 0, "owned": 0, "others": 0}


def role(*flags: str, **found: Any) -> Role:
    known = {"name": "bob", "version": 180004, "standby": False, "log": True, "path": "", "member": [], "functions": []}
    return Role.read(json.dumps({**known, **{flag: flag in flags for flag in FLAGS}, **found}))


@pytest.mark.parametrize(
    "member",
    [
        "pg_read_server_files", "pg_write_server_files", "pg_execute_server_program", "pg_signal_backend",
        "pg_signal_autovacuum_worker", "pg_checkpoint", "pg_maintain",
    ],
)  # fmt: skip
def test_predefined_roles_that_do_harm_while_only_reading(member: str) -> None:
    bad = role(member=[member])
    assert bad.harmful == bad.powers == [member]
    assert bad.because() == f"has `{member}`" and f"Special powers: {member}." in bad.report(COUNTS, trusted=False)


@pytest.mark.parametrize("member", ["pg_monitor", "pg_write_all_data"])
def test_predefined_roles_that_do_none(member: str) -> None:
    fine = role(member=[member])
    assert (fine.powers, fine.harmful) == ([member], [])
    assert "--print-role-sql" in fine.report(COUNTS, trusted=False)


@pytest.mark.parametrize(("flag", "harmful"), [(flag, flag in ("superuser", "replication")) for flag in FLAGS])
def test_attributes_of_a_role(flag: str, harmful: bool) -> None:
    found = role(flag)
    assert found.powers == [flag] and found.harmful == ([flag] if harmful else [])
    assert found.superuser == (flag == "superuser")


def test_functions_that_not_everybody_may_call() -> None:
    telling = [
        "pg_current_logfile", "pg_ls_archive_statusdir", "pg_ls_logdir", "pg_ls_logicalmapdir", "pg_ls_logicalsnapdir",
        "pg_ls_replslotdir", "pg_ls_summariesdir", "pg_ls_tmpdir", "pg_ls_waldir", "pg_show_all_file_settings",
    ]  # fmt: skip
    assert role(functions=telling).powers == []
    doing = role(functions=["pg_switch_wal", "pg_read_file", *telling])
    assert doing.harmful == ["pg_read_file()", "pg_switch_wal()"] == list(doing.powers)
    assert role("superuser", functions=["pg_switch_wal"]).powers == ["superuser"]


def test_what_a_person_is_told_of_a_role() -> None:
    fine = role(version=150000)
    assert fine.major == 15 and fine.sentence() == "role `bob` on PostgreSQL 15 has no special powers"
    assert fine.because() == "may keep the log quiet, so that queries are judged"
    report = fine.report(COUNTS, trusted=False)
    assert (
        report.startswith("Role `bob` on PostgreSQL 15.0.\n")
        and "as it should be" in report
        and "It can reach" not in report
    )
    standby = role("createdb", standby=True)
    assert standby.sentence() == "role `bob` on PostgreSQL 18 (a standby) has createdb"
    assert standby.report(COUNTS, trusted=False).startswith("Role `bob` on PostgreSQL 18.4, a standby.\n")
    assert role("superuser").sentence() == (
        "role `bob` on PostgreSQL 18 is a superuser; what a query would run is judged first"
    )
    assert role("superuser").because() == "is a superuser, or may become one"
    many = role(member=["pg_checkpoint", "pg_maintain"], functions=["a", "b", "c", "d"])
    assert many.because() == "has `pg_checkpoint`, `pg_maintain`, `a()`, `b()`, `c()`"


def test_a_caller_is_told_of_its_own_role_only() -> None:
    shared = role("superuser", callers=True)
    own = "you are the role `ann` on PostgreSQL 18; what a query would run is judged first"
    assert shared.sentence("ann") == own and "bob" in shared.sentence()
    report = shared.report({**COUNTS, "writable": 2, "owned": 1}, trusted=False, caller="ann")
    assert report.startswith("You are the role `ann`") and "change 2 and own 1" in report and "bob" not in report
    assert "superuser" not in report and "superuser" in shared.report(COUNTS, trusted=False)


def test_a_report_says_what_holds_a_harmful_role() -> None:
    bad = role("replication")
    for trusted, words in ((True, "trusted, by `--trust-database`"), (False, "Nothing that another role laid is run")):
        assert words in bad.report({**COUNTS, "others": 2}, trusted=trusted)
    assert "2 other sessions" in role().report({**COUNTS, "others": 2}, trusted=False)
    writes = role().report({**COUNTS, "writable": 1}, trusted=False)
    assert "may change 1" in writes and "--print-role-sql" in writes and "as it should be" not in writes


def test_a_transaction_is_opened_to_read_unless_it_is_told_to_write() -> None:
    plain, judged = role(log=False), role("superuser")
    limits = Limits(1.5, 0.25)

    def opened(who: Role, **how: bool) -> str:
        return "; ".join(opening(limits, **how)(who, None))

    reads = opened(plain)
    assert reads.startswith("BEGIN TRANSACTION READ ONLY; SELECT ") and reads.endswith("; SAVEPOINT mcp_start")
    for setting in (
        "'statement_timeout', '1500'", "'lock_timeout', '250'", "_session_timeout', '61500'", "'DateStyle', 'ISO, YMD'",
        "'IntervalStyle', 'postgres'", "'bytea_output', 'hex'", "'extra_float_digits', '1'", "'xmloption', 'content'",
        "'standard_conforming_strings', 'on'", "'array_nulls', 'on'", "'quote_all_identifiers', 'off'",
    ):  # fmt: skip
        assert setting in reads
    assert "search_path" not in reads and "'search_path', 'pg_catalog'" in opened(judged)
    assert opened(plain, write=True).startswith("BEGIN TRANSACTION READ WRITE; ")
    assert opened(plain, several=True).startswith("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; ")
    assert opened(judged, several=True).startswith("BEGIN TRANSACTION READ ONLY; ")


@pytest.mark.parametrize(
    ("name", "volatility", "extension", "reads"),
    [
        ("f", "i", "", True), ("f", "s", "", True), ("f", "v", "", False), ("f", "i", "citext", True),
        ("f", "v", "citext", False), ("pg_stat_statements", "v", "pg_stat_statements", True),
        ("pg_stat_statements_reset", "v", "pg_stat_statements", False),
        ("pg_buffercache_pages", "v", "pg_buffercache", True),
        ("pg_buffercache_evict", "v", "pg_buffercache", False), ("pgstattuple", "v", "pgstattuple", True),
        ("pg_freespace", "v", "pg_freespacemap", True), ("pg_visibility", "v", "pg_visibility", True),
        ("pg_truncate_visibility_map", "v", "pg_visibility", False), ("gen_salt", "v", "pgcrypto", True),
        ("uuid_generate_v4", "v", "uuid-ossp", True), ("crosstab", "s", "tablefunc", False),
        ("xpath_table", "s", "xml2", False), ("dblink_get_connections", "s", "dblink", False),
        ("postgres_fdw_get_connections", "s", "postgres_fdw", False), ("f", "i", "file_fdw", False),
        ("pg_logdir_ls", "s", "adminpack", False),
    ],
)  # fmt: skip
def test_functions_of_extensions_by_name(name: str, volatility: str, extension: str, reads: bool) -> None:
    assert _Proc(name, volatility, extension).reads() is reads


def test_every_function_that_is_called_as_those_that_read_is_known() -> None:
    """A new PostgreSQL brings new ones: whoever meets this decides which they are."""
    found = make().rows(
        "SELECT DISTINCT proname FROM pg_proc WHERE oid < 16384 AND provolatile = 'v' AND proname ~"
        " '^(pg_(stat_get|current_wal|last|control|is|show|hba|ident|partition|stat_get_xact)_.*|pg_.*_size|pg_sleep.*"
        "|random.*|uuidv.|gen_random_uuid|array_(sample|shuffle)|pg_.*blocking_pids|(clock|statement)_timestamp"
        "|timeofday|currval|lastval|setseed|lo_get|bernoulli|system|pg_(lock_status|cursor|prepared_.*|config))$'"
    )
    names = {name for (name,) in found}
    assert len(names) > 50 and names <= READING
