"""Which powers of a role and which functions could do more than read; `test_gate` meets some in a PostgreSQL."""

import json
import tomllib
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest

from mcp_postgres.engine.admission.statements import TransactionLimits, transaction_opening
from mcp_postgres.engine.audit.builtin_functions import READ_ONLY_FUNCTIONS
from mcp_postgres.engine.audit.extensions import ExtensionFunction, load_extension_rules
from mcp_postgres.engine.audit.procedures import Procedure
from mcp_postgres.engine.connection.role import Role
from postgres.serving import make

FLAGS = ("superuser", "createdb", "createrole", "replication", "bypassrls")
COUNTS = {"tables": 3, "writable": 0, "owned": 0, "others": 0}


def role(*flags: str, **found: Any) -> Role:
    known: dict[str, Any] = {
        "name": "bob", "version": 180004, "standby": False, "log": True, "path": "", "member": [], "functions": [],
        "verifiers": False,
    }  # fmt: skip
    return Role.parse(json.dumps({**known, **{flag: flag in flags for flag in FLAGS}, **found}))


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
    assert bad.explain_judging() == f"has `{member}`" and f"Special powers: {member}." in bad.report(
        COUNTS, trusted=False
    )


@pytest.mark.parametrize("member", ["pg_monitor", "pg_write_all_data"])
def test_predefined_roles_that_do_none(member: str) -> None:
    fine = role(member=[member])
    assert (fine.powers, fine.harmful) == ([member], [])
    assert "--print-role-sql" in fine.report(COUNTS, trusted=False)


@pytest.mark.parametrize(("flag", "harmful"), [(flag, flag in ("superuser", "replication")) for flag in FLAGS])
def test_attributes_of_a_role(flag: str, harmful: bool) -> None:
    found = role(flag)
    assert found.powers == [flag] and found.harmful == ([flag] if harmful else [])
    assert found.is_superuser == (flag == "superuser")


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
    assert fine.major == 15 and fine.describe() == "role `bob` on PostgreSQL 15 has no special powers"
    assert fine.explain_judging() == "may keep the log quiet, so that queries are judged"
    report = fine.report(COUNTS, trusted=False)
    assert (
        report.startswith("Role `bob` on PostgreSQL 15.0.\n")
        and "as it should be" in report
        and "It can reach" not in report
    )
    assert "pg_authid" not in report and "pg_authid" in role(verifiers=True).report(COUNTS, trusted=False)
    standby = role("createdb", standby=True)
    assert standby.describe() == "role `bob` on PostgreSQL 18 (a standby) has createdb"
    assert standby.report(COUNTS, trusted=False).startswith("Role `bob` on PostgreSQL 18.4, a standby.\n")
    assert role("superuser").describe() == (
        "role `bob` on PostgreSQL 18 is a superuser; what a query would run is judged first"
    )
    assert role("superuser").explain_judging() == "is a superuser, or may become one"
    many = role(member=["pg_checkpoint", "pg_maintain"], functions=["a", "b", "c", "d"])
    assert many.explain_judging() == "has `pg_checkpoint`, `pg_maintain`, `a()`, `b()`, `c()`"


def test_a_caller_is_told_of_its_own_role_only() -> None:
    shared = role("superuser", callers=True)
    own = "you are the role `ann` on PostgreSQL 18; what a query would run is judged first"
    assert shared.describe("ann") == own and "bob" in shared.describe()
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
    limits = TransactionLimits(1.5, 0.25)

    def opened(who: Role, **how: bool) -> str:
        return "; ".join(transaction_opening(limits, **how)(who, None))

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
    assert opened(plain, same_snapshot=True).startswith(
        "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; "
    )
    assert opened(judged, same_snapshot=True).startswith("BEGIN TRANSACTION READ ONLY; ")


@pytest.mark.parametrize(
    ("name", "volatility", "extension", "changes", "runs"),
    [
        ("f", "i", "", False, False), ("f", "s", "", False, False), ("f", "v", "", True, False),
        ("f", "i", "citext", False, False), ("f", "v", "citext", True, True),
        ("pg_stat_statements", "v", "pg_stat_statements", False, False),
        ("pg_stat_statements_reset", "v", "pg_stat_statements", True, True),
        ("pg_buffercache_pages", "v", "pg_buffercache", False, False),
        ("pg_buffercache_evict", "v", "pg_buffercache", True, True),
        ("pgstattuple", "v", "pgstattuple", False, False), ("pg_freespace", "v", "pg_freespacemap", False, False),
        ("pg_visibility", "v", "pg_visibility", False, False),
        ("pg_truncate_visibility_map", "v", "pg_visibility", True, True), ("gen_salt", "v", "pgcrypto", False, False),
        ("uuid_generate_v4", "v", "uuid-ossp", False, False), ("crosstab", "s", "tablefunc", False, True),
        ("xpath_table", "s", "xml2", False, True), ("dblink_get_connections", "s", "dblink", False, True),
        ("postgres_fdw_get_connections", "s", "postgres_fdw", False, True), ("f", "i", "file_fdw", False, True),
        ("pg_logdir_ls", "s", "adminpack", False, True), ("st_findextent", "s", "postgis", False, True),
        ("st_area", "i", "postgis", False, False), ("st_new", "i", "postgis", False, True),
        ("st_mapalgebra", "i", "postgis_raster", False, True), ("st_clip", "i", "postgis_raster", False, False),
        ("standardize_address", "i", "address_standardizer", False, True),
    ],
)  # fmt: skip
def test_functions_of_extensions_by_name(name: str, volatility: str, extension: str, changes: bool, runs: bool) -> None:
    found = procedure(name, volatility, extension)
    assert (found.may_change_data(), found.explain_running_input() is not None) == (changes, runs)
    trusted = replace(found, is_vouched=True)
    assert not trusted.may_change_data() and trusted.explain_running_input() is None


def procedure(name: str, volatility: str, extension: str = "", *arguments: str, version: str = "3.3.2") -> Procedure:
    return Procedure(ExtensionFunction(extension, version, name, arguments, volatility), "public")


@pytest.mark.parametrize(
    "argument", ["regprocedure", "regproc", "regclass", "_regclass", "regtype", "name", "refcursor"]
)
def test_a_function_that_takes_the_name_of_an_object_is_allowed_by_its_own_name_only(argument: str) -> None:
    assert (
        procedure("similar", "i", "pg_trgm", "text", argument).explain_running_input()
        == "it takes the name of an object"
    )
    assert procedure("similar", "i", "pg_trgm", "text", "oid").explain_running_input() is None
    assert procedure("pgstattuple", "v", "pgstattuple", argument).explain_running_input() is None
    # No statement can call what takes `internal`.
    assert procedure("similar", "i", "pg_trgm", "internal", argument).explain_running_input() is None


def test_rules_hold_for_versions_and_for_forms_of_a_function() -> None:
    assert "version 2.5.1" in (
        procedure("st_area", "i", "postgis", "geometry", version="2.5.1").explain_running_input() or ""
    )
    filed = procedure("st_addband", "i", "postgis_raster", "raster", "int4", "text", "_int4", "float8")
    assert "a file on the server" in (filed.explain_running_input() or "")
    assert procedure("st_addband", "i", "postgis_raster", "raster", "text", "float8").explain_running_input() is None
    assert procedure("st_estimatedextent", "s", "postgis", "text", "text").reads_named_table


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("sql\nSELECT 1", None), ("plpgsql\nBEGIN RETURN 1; END", None),
        ("plpgsql\nBEGIN RETURN QUERY EXECUTE $1; END", "`EXECUTE`"), ("sql\nSELECT query_to_xml($1)", "`_to_xml`"),
        ("sql\nSELECT * FROM dblink('', $1)", "`dblink`"), ("sql\nSELECT * FROM ts_stat($1)", "`ts_stat`"),
        ("plpgsql\nBEGIN PERFORM executed($1); END", None), ("plpython3u\nreturn 1", "written in plpython3u"),
    ],
)  # fmt: skip
def test_a_body_that_runs_text_is_found(body: str, why: str | None) -> None:
    found = replace(procedure("f", "s"), body=body).explain_running_input()
    assert found is None if why is None else found is not None and why in found


def test_every_entry_for_extensions_has_its_reason() -> None:
    entries = tomllib.loads(files("mcp_postgres.engine.audit").joinpath("extensions.toml").read_text("utf-8"))["entry"]
    known = {"extensions", "versions", "why", "functions", "volatile", "tables", "relations", "excluded"}
    every = [extension for entry in entries for extension in entry["extensions"]]
    assert len(every) == len(set(every)) == len(load_extension_rules())
    for entry in entries:
        assert entry.keys() <= known and entry["why"].strip().endswith("."), entry["extensions"]
        assert entry["functions"] == "all" or isinstance(entry["functions"], list)
        names = [*(entry["functions"] if entry["functions"] != "all" else ()), *entry.get("tables", ())]
        assert len(names) == len(set(names)) and not set(names) & entry.get("excluded", {}).keys(), entry["extensions"]
        assert all(name == name.lower() for name in names)


def test_every_function_that_is_called_as_those_that_read_is_known() -> None:
    """A new PostgreSQL brings new ones: whoever meets this decides which they are."""
    found = make().rows(
        "SELECT DISTINCT proname FROM pg_proc WHERE oid < 16384 AND provolatile = 'v' AND proname ~"
        " '^(pg_(stat_get|current_wal|last|control|is|show|hba|ident|partition|stat_get_xact)_.*|pg_.*_size|pg_sleep.*"
        "|random.*|uuidv.|gen_random_uuid|array_(sample|shuffle)|pg_.*blocking_pids|(clock|statement)_timestamp"
        "|timeofday|currval|lastval|setseed|lo_get|bernoulli|system|pg_(lock_status|cursor|prepared_.*|config))$'"
    )
    names = {name for (name,) in found}
    assert len(names) > 50 and names <= READ_ONLY_FUNCTIONS
