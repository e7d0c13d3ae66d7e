"""What is served and what a caller's words name, found before any database is asked."""

from dataclasses import replace
from pathlib import Path

import pytest
from mcp.server.auth.middleware.auth_context import auth_context_var
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken

from mcp_batteries.errors import Invalid, NotFound, Problem, TooLarge, Unavailable
from mcp_batteries.settings import load
from mcp_batteries.sql.policy import RowOf, RowsOf
from mcp_postgres.policy import (
    MAX_STATEMENTS,
    ActivityOf,
    HealthOf,
    NextPage,
    Policy,
    QueryOf,
    Reads,
    ReadStatement,
    RoleOf,
    SchemaOf,
    TableOf,
    for_role_of,
    inner_statement,
    parse_table_name,
    table_uri,
)
from mcp_postgres.policy.addresses import parse_named_address
from mcp_postgres.policy.targets import bind_values
from mcp_postgres.settings import Settings

CALLERS = ("--role-claim", "role", "--transport", "http", "--auth-file", "tokens", "app=postgresql://h/db")


def policy(*arguments: str, **environment: str) -> Policy:
    return Policy(load(Settings, [*arguments]), environment=environment)


@pytest.fixture
def served() -> Policy:
    return policy("app=postgresql://h/db")


def test_the_uri_of_a_table_is_one_that_can_be_read(served: Policy) -> None:
    uri = table_uri(served.database("app"), "a/b", "c d")
    assert uri == "postgres://app/a%2Fb/c%20d" and isinstance(served.readable(uri).request, RowsOf)


@pytest.mark.parametrize(
    ("query", "failure", "step"),
    [
        ("schema=public", "has `schema`, for another", "Leave out `schema` here; serve one schema with --only."),
        ("pgbouncer=true", "has `pgbouncer`", "Leave out `pgbouncer` here."),
        ("sslmode=require&pgbouncer=&connection_limit=1", "`pgbouncer` and `connection_limit`", "with --connections."),
        ("supa=base-pooler.x", "has `supa`", "Leave out `supa` here."),
        ("application_name=50%", "A `%` in a database's URL begins no escape.", "Write it as %25."),
    ],
)
def test_what_others_add_to_an_address_is_named_with_the_way(query: str, failure: str, step: str) -> None:
    with pytest.raises(Unavailable) as raised:
        parse_named_address(f"postgresql://reader:c4n4ry@localhost:5432/shop?{query}", {})
    assert failure in str(raised.value) and step in str(raised.value) and "c4n4ry" not in str(raised.value)


def test_libpqs_own_options_are_taken() -> None:
    address = "postgresql://reader:a%40b@localhost/shop?sslmode=require&connect_timeout=3&options=-c%20x%3D1"
    assert parse_named_address(address, {}) == ("shop", address)


def test_the_address_that_frameworks_set_is_served() -> None:
    environment = {"DATABASE_URL": "postgresql://reader@localhost/shop"}
    assert list(policy(**environment).databases) == ["shop"]
    assert list(policy("postgresql://localhost/other", **environment).databases) == ["other"]
    assert list(policy("--demo", **environment).databases) == ["demo"]
    assert list(policy(**environment, PGDATABASE="own").databases) == ["own"]


@pytest.mark.parametrize("name", ["PGHOST", "PGSERVICE", "PGDATABASE"])
def test_without_an_address_libpq_says_where_the_database_is(name: str) -> None:
    assert len(policy(**{name: "x"}).databases) == 1
    assert list(policy("postgresql://h/db", **{name: "x"}).databases) == ["db"]


def test_without_anything_there_is_nothing_to_serve() -> None:
    for environment in ({}, {"PGHOST": ""}, {"PGUSER": "x"}):
        with pytest.raises(Unavailable, match="no database to serve"):
            policy(**environment)
    assert list(policy("--demo").databases) == ["demo"]
    assert list(policy("--demo", "postgresql://h/db").databases) == ["demo", "db"]


def test_a_folder_for_files_has_to_be_there(tmp_path: Path) -> None:
    assert policy("app=postgresql://h/db", "--files", str(tmp_path)).folder == str(tmp_path)
    with pytest.raises(Unavailable, match="is not a folder"):
        policy("app=postgresql://h/db", "--files", str(tmp_path / "nowhere"))


def test_a_saved_query_runs_as_who_follows_it() -> None:
    made = policy(*CALLERS)
    request = QueryOf(made.query_target("app").read("SELECT $1", [1]))
    assert request.statement.database.role is None
    ours = for_role_of(request, replace(made.databases["app"], role="ann")).statement
    assert (ours.database.role, ours.database.name, ours.sql, ours.parameters) == ("ann", "app", "SELECT $1", ("1",))


@pytest.mark.parametrize(
    ("said", "role"),
    [
        ("ann", "ann"), ("a" * 63, "a" * 63), ("a" * 64, None), ("ä" * 31, "ä" * 31), ("ä" * 32, None),
        ("a\0b", None), ("\ud800", None), ("", None), (7, None),
    ],
)  # fmt: skip
def test_a_role_is_what_a_token_says_and_postgresql_takes_whole(said: object, role: str | None) -> None:
    token = AccessToken(token="t", client_id="c", scopes=[], claims={"role": said})
    mark = auth_context_var.set(AuthenticatedUser(token))
    try:
        made, plain = policy(*CALLERS), policy("app=postgresql://h/db")
        page = made.query_target("").read_page(None, None, "cursor")
        assert made.database("").role == role and isinstance(page, NextPage) and page.role == role
        assert made.has_callers and not plain.has_callers and plain.database("").role is None
    finally:
        auth_context_var.reset(mark)


@pytest.mark.parametrize(
    ("uri", "one", "kind"),
    [
        ("postgres://app/.schema", "postgres://app/.schema", SchemaOf),
        ("POSTGRES://App/.schema/", "postgres://app/.schema", SchemaOf),
        ("postgres://app/shop/.schema", "postgres://app/shop/.schema", SchemaOf),
        ("postgres://app/.health", "postgres://app/.health", HealthOf),
        ("postgres://app/.activity", "postgres://app/.activity", ActivityOf),
        ("postgres://app/.role", "postgres://app/.role", RoleOf),
        ("postgres://app/shop/t/.schema", "postgres://app/shop/t/.schema", TableOf),
        ("postgres://app/shop/%74", "postgres://app/shop/t?limit=100", RowsOf),
        ("postgres://app/shop/t?limit=5", "postgres://app/shop/t?limit=5", RowsOf),
        ("postgres://app/shop/t?order=newest", "postgres://app/shop/t?limit=100&order=newest", RowsOf),
        ("postgres://app/shop/t?column=c&value=1", "postgres://app/shop/t?column=c&value=1&limit=100", RowsOf),
        ("postgres://app/shop/t/7", "postgres://app/shop/t/7", RowOf),
        ("postgres://app/a%2Fb/c%20d/7%2F8", "postgres://app/a%2Fb/c%20d/7%2F8", RowOf),
    ],
)
def test_a_uri_has_one_spelling(served: Policy, uri: str, one: str, kind: type) -> None:
    readable = served.readable(uri)
    assert readable is not None and readable.uri == one and isinstance(readable.request, kind)
    assert served.readable(one) == readable


@pytest.mark.parametrize(
    "path",
    [
        "", "shop", ".schema?limit=1", ".health?x=1", "shop/t/.schema?limit=1", "shop/t/7?limit=1",
        "shop/.schema?limit=1", "shop/t/7/8", "/t", "/.schema", "shop//7", "/t/.schema", "shop//.schema", ".other",
    ],
)  # fmt: skip
def test_other_uris_have_no_meaning(served: Policy, path: str) -> None:
    with pytest.raises(NotFound):
        served.readable(f"postgres://app/{path}")


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=x", "column=c", "value=1", "other=1", "limit=5&x=1"])
def test_a_query_that_is_not_understood_is_refused(served: Policy, query: str) -> None:
    with pytest.raises(Invalid):
        served.readable(f"postgres://app/shop/t?{query}")


@pytest.mark.parametrize(
    ("text", "schema", "name"),
    [
        ("t", None, "t"), (" shop.t ", "shop", "t"), ('"a.b"', None, "a.b"), ('"a.b"."c""d"', "a.b", 'c"d'),
        ('shop."T"', "shop", "T"), ("a.b.c", "a", "b.c"),
    ],
)  # fmt: skip
def test_a_table_is_named_as_in_sql(served: Policy, text: str, schema: str | None, name: str) -> None:
    table = parse_table_name(text).of(served.database(""))
    assert (table.schema, table.name) == (schema, name)


@pytest.mark.parametrize("text", ["", 'a"b', '"a', "a\0b", '""'])
def test_what_can_not_name_a_table_is_refused(text: str) -> None:
    with pytest.raises(Problem):
        parse_table_name(text)


def test_values_are_bound_in_their_order() -> None:
    given = [None, True, False, 7, 1.5, "a", {"base64": "AAE="}, {"a": "é"}]
    bound = (None, "true", "false", "7", "1.5", "a", "\\x0001", '{"a": "é"}')
    assert bind_values(given) == bound and bind_values(dict(enumerate(given))) == bound
    assert bind_values(None) == bind_values([]) == ()
    assert bind_values([{"base64": "AAE=", "x": 1}]) == ('{"base64": "AAE=", "x": 1}',)
    nested = [[1, None], [[], ['a"b\\c', False]]]
    assert bind_values([nested]) == ('{{"1",NULL},{{},{"a\\"b\\\\c","false"}}}',)
    for wrong in ("a\0b", "\ud800", {"base64": "?"}, {"base64": "é"}, object()):
        with pytest.raises(Invalid, match=r"for `\$2`"):
            bind_values([1, wrong])


def test_several_statements_have_each_its_values(served: Policy) -> None:
    def statements(parameters: object) -> list[tuple[str, tuple[str | None, ...]]]:
        page = served.query_target("").read_page("SELECT $1; SELECT 2; SELECT 3", parameters, None)
        assert isinstance(page, Reads)
        return [(part.sql, part.parameters) for part in page.parts]

    assert statements([[1], None, []]) == [("SELECT $1", ("1",)), ("SELECT 2", ()), ("SELECT 3", ())]
    assert statements(None) == statements([None, None, None]) == statements([])
    for wrong in ([[1]], [[1], None, [], []], [1, 2, 3], [[1], None, {}]):
        with pytest.raises(Invalid, match="3 statements"):
            statements(wrong)
    one = served.query_target("").read_page("SELECT $1;", ["a"], None)
    assert isinstance(one, ReadStatement) and one.parameters == ("a",)
    two = served.query_target("").read_page("SELECT 1; SELECT 2", None, None)
    assert isinstance(two, Reads) and len(two.parts) == 2
    most = served.query_target("").read_page("SELECT 1;" * MAX_STATEMENTS, None, None)
    assert isinstance(most, Reads) and len(most.parts) == MAX_STATEMENTS
    with pytest.raises(TooLarge):
        served.query_target("").read_page("SELECT 1;" * (MAX_STATEMENTS + 1), None, None)
    assert isinstance(served.query_target("").read_page(None, None, "x"), NextPage)


def test_a_query_alone_in_a_transaction_is_one_query(served: Policy) -> None:
    alone = served.query_target("").read_page("BEGIN; SELECT $1; COMMIT", [1], None)
    assert isinstance(alone, ReadStatement) and not isinstance(alone, Reads)
    assert (alone.sql, alone.parameters) == ("SELECT $1", ("1",))
    several = served.query_target("").read_page("BEGIN; SELECT 1; SELECT 2; COMMIT", None, None)
    assert isinstance(several, Reads) and [part.sql for part in several.parts] == ["SELECT 1", "SELECT 2"]


@pytest.mark.parametrize(("gates", "make"), [(["--write"], False), (["--write", "--ddl"], True)])
def test_an_import_makes_a_table_where_rows_and_schema_are_open(gates: list[str], make: bool) -> None:
    assert (
        policy(*gates, "app=postgresql://h/db").writable_database("").import_table(parse_table_name("t")).make is make
    )


@pytest.mark.parametrize(
    "word", ["dbname", "host", "hostaddr", "port", "user", "password", "service", "passfile", "sslmode", "options"]
)
def test_words_of_libpq_are_no_names(word: str) -> None:
    own = "x_y" if word in ("dbname", "service") else "own"
    assert list(policy(f"{word}=x=y dbname=own").databases) == [own]
    assert list(policy(f"{word}s=host=x dbname=own").databases) == [f"{word}s"]


def test_a_change_may_be_tried_as_another_role() -> None:
    database = policy("--write", "app=postgresql://h/db").writable_database("")
    assert database.write("SELECT 1", role="tenant").role == "tenant" and database.write("SELECT 1").role is None


@pytest.mark.parametrize(
    ("sql", "parts"),
    [
        ("BEGIN; SELECT 1; COMMIT", ["SELECT 1"]),
        ("start  transaction; SELECT 1; SELECT 2; END work;", ["SELECT 1", "SELECT 2"]),
        ("BEGIN; SELECT 1; SELECT 2", ["BEGIN", "SELECT 1", "SELECT 2"]),
        ("BEGIN; SELECT 1; ROLLBACK", ["SELECT 1"]),
        ("SELECT 1; SELECT 2; COMMIT", ["SELECT 1", "SELECT 2", "COMMIT"]),
    ],
)
def test_a_transaction_round_a_change_is_that_of_the_call(sql: str, parts: list[str]) -> None:
    made = policy("--write", "--ddl", "app=postgresql://h/db")
    assert [part.sql for part in made.writable_database("").write(sql).parts] == parts
    assert [part.sql for part in made.alterable_database("").alter(sql).parts] == parts
    for nothing in ("", ";", "-- a", "BEGIN; COMMIT"):
        with pytest.raises(Invalid, match="no statement"):
            made.writable_database("").write(nothing)


def test_only_the_operator_opens_roles_and_code() -> None:
    for words, admin in (((), False), (("--ddl",), False), (("--admin",), True), (("--admin", "--read-only"), False)):
        made = policy(*words, "app=postgresql://h/db")
        assert (made.can_administer, made.can_reshape) == (admin, admin or "--ddl" in words)


def test_part_of_a_statement_is_for_the_same_database_and_values() -> None:
    statement = policy("app=postgresql://h/db").query_target("").read("EXPLAIN SELECT $1", [1])
    assert inner_statement(statement, "SELECT $1") == replace(statement, sql="SELECT $1")


@pytest.mark.parametrize("address", ["sqlite:///app.db", "mysql://h/db", "app.db"])
def test_another_systems_address_is_not_served(address: str) -> None:
    with pytest.raises(Unavailable):
        policy(address)


def test_a_database_is_called_after_its_service_and_keeps_letters_of_every_script() -> None:
    for address, name in (
        ("postgresql://?service=shop", "shop"),
        ("postgresql://host/?dbname=orders", "orders"),
        ("postgresql://host/%E8%AE%A2%E5%8D%95", "订单"),
        ("Größe=postgresql://host/x", "größe"),
        ("客户=host=h dbname=x", "客户"),
    ):
        policy = Policy(load(Settings, [address]))
        assert list(policy.databases) == [name], address
    assert Policy(load(Settings, ["订单=postgresql://host/x"])).databases["订单"].uri_name == "%E8%AE%A2%E5%8D%95"
