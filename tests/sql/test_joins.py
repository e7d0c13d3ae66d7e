"""How tables are joined through others, and which keys nobody declared."""

from mcp_batteries.sql.joins import Key, guessed, joins


def key(table: str, column: str, other: str, *, sure: bool = True) -> Key:
    return Key(table, (column,), other, ("id",), sure)


def test_the_shortest_way_is_told_as_sql() -> None:
    keys = [
        key("orders", "customer_id", "customers"), key("items", "order_id", "orders"),
        key("items", "product_id", "products"), key("products", "maker_id", "makers"), key("makers", "city", "cities"),
        key("customers", "parent", "customers"), key("lonely", "one", "alone"),
    ]  # fmt: skip
    assert joins(keys, "customers") == [
        "items: JOIN orders ON orders.customer_id = customers.id JOIN items ON items.order_id = orders.id",
        "products: as to items, then JOIN products ON items.product_id = products.id",
    ]
    # What is joined directly is told with the table itself.
    assert [line.partition(":")[0] for line in joins(keys, "items")] == ["customers", "makers", "cities"]
    assert joins(keys, "lonely") == [] and joins([], "x") == []


def test_several_keys_between_two_tables_are_all_told() -> None:
    keys = [
        key("trips", "start", "stops"), key("trips", "end", "stops"), key("stops", "town", "towns"),
        Key("parts", ("a", "b"), "trips", ("x", "y z")),
    ]  # fmt: skip
    assert joins(keys, "trips") == [
        'towns: JOIN stops ON trips.start = stops.id /* or trips."end" = stops.id */ '
        "JOIN towns ON stops.town = towns.id"
    ]  # fmt: skip
    assert joins(keys, "parts")[0].startswith('stops: JOIN trips ON parts.a = trips.x AND parts.b = trips."y z" JOIN')


def test_undeclared_keys_go_by_name_and_never_before_declared_ones() -> None:
    columns = {
        "Books": ["id", "author_id", "category_id", "billing_address_id", "box_id", "paid", "book_id", "editor_id"],
        "authors": ["id"], "categories": ["id"], "addresses": ["address_id"], "boxes": ["label"], "Editor": ["id"],
    }  # fmt: skip
    primary = {"authors": "id", "categories": "id", "addresses": "address_id", "boxes": "label", "Editor": "id"}
    primary["Books"] = "id"
    found = guessed(columns, primary, [Key("Books", ("editor_id",), "authors", ("id",))])
    assert [(item.columns[0], item.other) for item in found] == [
        ("author_id", "authors"),
        ("category_id", "categories"),
    ]
    assert not any(item.sure for item in found)
    both = [key("a", "b_id", "b", sure=False), key("a", "other", "b"), key("b", "c_id", "c", sure=False)]
    assert joins(both, "a") == [
        "c: JOIN b ON a.other = b.id /* or a.b_id = b.id */ JOIN c ON b.c_id = c.id /* by name */"
    ]
