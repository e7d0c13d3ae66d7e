"""How tables are joined through others, and which keys nobody declared."""

from mcp_batteries.sql.language.joins import JoinKey, describe_joins, guess_join_keys


def key(table: str, column: str, other: str, *, sure: bool = True) -> JoinKey:
    return JoinKey(table, (column,), other, ("id",), sure)


def test_the_shortest_way_is_told_as_sql() -> None:
    keys = [
        key("orders", "customer_id", "customers"), key("items", "order_id", "orders"),
        key("items", "product_id", "products"), key("products", "maker_id", "makers"), key("makers", "city", "cities"),
        key("customers", "parent", "customers"), key("lonely", "one", "alone"),
    ]  # fmt: skip
    assert describe_joins(keys, "customers") == [
        "through orders ON orders.customer_id = customers.id: items ON items.order_id = orders.id",
        "through items: products ON items.product_id = products.id",
    ]
    # What is joined directly is told with the table itself.
    found = [line.rpartition(": ")[2].partition(" ON ")[0] for line in describe_joins(keys, "items")]
    assert found == ["customers", "makers", "cities"]
    assert describe_joins(keys, "lonely") == [] and describe_joins([], "x") == []


def test_several_keys_between_two_tables_are_all_told() -> None:
    keys = [
        key("trips", "start", "stops"), key("trips", "end", "stops"), key("stops", "town", "towns"),
        JoinKey("parts", ("a", "b"), "trips", ("x", "y z")),
    ]  # fmt: skip
    assert describe_joins(keys, "trips") == [
        'through stops ON trips.start = stops.id /* or trips."end" = stops.id */: towns ON stops.town = towns.id'
    ]  # fmt: skip
    assert describe_joins(keys, "parts")[0].startswith(
        'through trips ON parts.a = trips.x AND parts.b = trips."y z": stops ON trips.start'
    )


def test_undeclared_keys_go_by_name_and_never_before_declared_ones() -> None:
    columns = {
        "Books": ["id", "author_id", "category_id", "billing_address_id", "box_id", "paid", "book_id", "editor_id"],
        "authors": ["id"], "categories": ["id"], "addresses": ["address_id"], "boxes": ["label"], "Editor": ["id"],
    }  # fmt: skip
    primary = {"authors": "id", "categories": "id", "addresses": "address_id", "boxes": "label", "Editor": "id"}
    primary["Books"] = "id"
    found = guess_join_keys(columns, primary, [JoinKey("Books", ("editor_id",), "authors", ("id",))])
    assert [(item.columns[0], item.other) for item in found] == [
        ("author_id", "authors"),
        ("category_id", "categories"),
    ]
    assert not any(item.sure for item in found)
    both = [key("a", "b_id", "b", sure=False), key("a", "other", "b"), key("b", "c_id", "c", sure=False)]
    assert describe_joins(both, "a") == [
        "through b ON a.other = b.id /* or a.b_id = b.id */: c ON b.c_id = c.id /* by name */"
    ]


def test_tables_around_one_are_told_together_and_many_are_counted() -> None:
    keys = [key("orders", "customer_id", "customers"), key("notes", "customer_id", "customers")]
    keys += [key(f"part_{n:02}", "order_id", "orders") for n in range(30)]
    said = describe_joins(keys, "customers")
    ways = [part.partition(" ON ")[0] for part in said[0].partition(": ")[2].split(", ")]
    assert ways == [f"part_{n:02}" for n in range(len(ways))] and said[0].count("customer_id") == 1
    assert said[1:] == [f"{30 - len(ways)} tables more"]
    assert len(ways) > 5 and len("\n".join(said).encode()) < 500
    # However long the first is, it is told.
    long = [JoinKey("a", ("x" * 500,), "b", ("id",)), JoinKey("c", ("y" * 500,), "b", ("id",))]
    assert len(describe_joins(long, "a")) == 1 and describe_joins(long, "a")[0].endswith("= b.id")
