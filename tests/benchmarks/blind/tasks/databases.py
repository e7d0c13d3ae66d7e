"""Tasks on SQLite and PostgreSQL databases, each made from a seed with what should be left of it."""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from functools import cache, partial
from pathlib import Path

from beside_shell import Place

from blind.base import Row, World, faults, is_postgres, make_postgres, make_sqlite, run
from blind.ends import Ends, ends_of
from blind.task import Task, build_task, read_texts

_FIRST = ("Ana", "Ben", "Carla", "Dmitri", "Eve", "Farid", "Grace", "Hugo", "Ines", "Jörg", "Kofi", "Lea")
_LAST = ("Ruiz", "Okafor", "Weiß", "Ivanov", "Lindqvist", "Haddad", "Kim", "O'Neill", "Souza", "Müller", "Mensah")
_START = date(2026, 1, 1)


def _name(rng: random.Random) -> str:
    return f"{rng.choice(_FIRST)} {rng.choice(_LAST)}"


def _day(rng: random.Random, days: int = 300) -> str:
    return (_START + timedelta(rng.randrange(days))).isoformat()


def _money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02}"


# A shop's tables, with names that have to be guessed.
_SHOP = """
CREATE TABLE cust (id INTEGER PRIMARY KEY, full_name TEXT NOT NULL, country TEXT, email TEXT);
CREATE TABLE prod (id INTEGER PRIMARY KEY, title TEXT NOT NULL, cents INTEGER NOT NULL);
CREATE TABLE ord (id INTEGER PRIMARY KEY, cust_id INTEGER REFERENCES cust, placed TEXT NOT NULL, state TEXT);
CREATE TABLE ord_pos (ord_id INTEGER NOT NULL REFERENCES ord, pos INTEGER NOT NULL, prod_id INTEGER NOT NULL
    REFERENCES prod, qty INTEGER NOT NULL, unit_cents INTEGER NOT NULL, PRIMARY KEY (ord_id, pos));
CREATE TABLE prod_old (id INTEGER PRIMARY KEY, title TEXT, cents INTEGER);
CREATE INDEX ord_cust ON ord (cust_id);
"""


def _shop(seed: str) -> dict[str, list[Row]]:
    rng = random.Random(seed)
    tables: dict[str, list[Row]] = {"cust": [], "prod": [], "ord": [], "ord_pos": [], "prod_old": []}
    for number in range(1, 2001):
        country = rng.choice(["DE", "DE", "FR", "BR", None])
        tables["cust"].append((number, _name(rng), country, f"c{number}@example.com"))
    for number in range(1, 301):
        tables["prod"].append((number, f"{rng.choice(['Lamp', 'Desk', 'Chair'])} {number}", rng.randint(500, 20_000)))
    tables["prod_old"] = [(number, title, cents - 100) for number, title, cents in tables["prod"][:250]]
    for number in range(1, 12_001):
        state = rng.choice(["paid", "paid", "sent", "cancelled", "Cancelled", None])
        customer = rng.choice([rng.randint(1, 2000), rng.randint(1, 60), None])
        tables["ord"].append((number, customer, f"{_day(rng)} {rng.randint(10, 23)}:00:00", state))
        for position in range(1, rng.randint(2, 5)):
            product = rng.randint(1, 300)
            tables["ord_pos"].append((number, position, product, rng.randint(1, 5), rng.randint(400, 21_000)))
    return tables


@cache
def _best_customers() -> World:
    tables = _shop("best customers")
    orders = {number: (customer, placed, state) for number, customer, placed, state in tables["ord"]}
    spent: Counter[int] = Counter()
    trapped: Counter[int] = Counter()
    for order, _, _, quantity, cents in tables["ord_pos"]:
        customer, placed, state = orders[order]
        if customer is None or not "2026-01-01" <= placed < "2026-04-01":
            continue
        trapped[customer] += quantity * cents
        if state in ("paid", "sent", None):
            spent[customer] += quantity * cents
    answers = [
        "\n".join(f"{number} {_money(cents)}" for number, cents in sums.most_common(5)) for sums in (spent, trapped)
    ]
    return World(_SHOP, tables, answers[0], answers[1:])


@cache
def _accounts() -> World:
    rng = random.Random("accounts")
    accounts = [(number, _name(rng), rng.randint(0, 60_000)) for number in range(1, 401)]
    entries = [(number, rng.randint(1, 400), _day(rng), rng.randint(-20_000, 20_500)) for number in range(1, 30_001)]
    entries += [(30_001 + number, 17, _day(rng), rng.randint(-3000, 2500)) for number in range(150)]
    by_account: dict[int, Counter[str]] = defaultdict(Counter)
    for _, account, day, cents in entries:
        by_account[account][day] += cents
    first: dict[int, str] = {}
    ends: dict[int, int] = {}
    for number, _, balance in accounts:
        for day in sorted(by_account[number]):
            balance += by_account[number][day]
            if balance < 0:
                first.setdefault(number, day)
        ends[number] = balance
    below = sum(1 for balance in ends.values() if balance < 0)
    schema = """
CREATE TABLE account (id INTEGER PRIMARY KEY, holder TEXT NOT NULL, opening_cents INTEGER NOT NULL);
CREATE TABLE entry (id INTEGER PRIMARY KEY, account_id INTEGER NOT NULL REFERENCES account, booked_on TEXT NOT NULL,
    cents INTEGER NOT NULL);
"""
    earliest = min(first.items(), key=lambda item: (item[1], item[0]))
    later = sorted(first.items(), key=lambda item: (item[1], item[0]))[3]
    answer = f"{len(first)} {earliest[0]} {earliest[1]}"
    wrong = [f"{below} {earliest[0]} {earliest[1]}", f"{len(first)} {later[0]} {later[1]}"]
    return World(schema, {"account": accounts, "entry": rng.sample(entries, len(entries))}, answer, wrong)


_SPELLINGS = {
    "Germany": ["Germany", "germany", " Germany", "GERMANY ", "Deutschland", "DE"],
    "France": ["France", "france", "FR", "FRANCE"],
    "Niger": ["Niger"],
    "Nigeria": ["Nigeria", "nigeria"],
}


@cache
def _countries() -> World:
    rng = random.Random("countries")
    before = list[Row]()
    after = list[Row]()
    for number in range(1, 15_001):
        country = rng.choice(list(_SPELLINGS))
        spelling = rng.choice([country, country, rng.choice(_SPELLINGS[country]), None, ""])
        row = (number, _name(rng), spelling, rng.choice(["de", "DE", None]))
        before.append(row)
        after.append((*row[:2], country if spelling else spelling, row[3]))
    changed = sum(1 for old, new in zip(before, after, strict=True) if old != new)
    schema = "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT, language TEXT);"
    solve = (
        "UPDATE people SET country = 'Germany' WHERE lower(trim(country)) IN ('germany', 'deutschland', 'de');"
        "UPDATE people SET country = 'France' WHERE lower(trim(country)) IN ('france', 'fr');"
        "UPDATE people SET country = 'Nigeria' WHERE lower(trim(country)) = 'nigeria';"
    )
    wrong = [
        solve.replace("= 'nigeria'", "LIKE 'niger%'"),
        solve + "UPDATE people SET country = NULL WHERE country = '';",
    ]
    return World(schema, {"people": before}, str(changed), [str(changed - 1)], {"people": after}, solve, wrong)


@cache
def _returns() -> World:
    rng = random.Random("returns")
    old = [
        (f"R{number:05}", _day(rng, 100), rng.choice(["late", "damaged"]), rng.randint(100, 9000))
        for number in range(800)
    ]
    new = list[Row]()
    lines = ["Nr;Datum;Grund;Betrag", ""]
    for number in range(700, 3000):
        day, reason = date.fromisoformat(_day(rng)), rng.choice(["late", "damaged", "wrong item; sent back", ""])
        row = (f"R{number:05}", day.isoformat(), reason or None, rng.randint(100, 250_000))
        if number < 800:
            row = old[number]
            day, reason = date.fromisoformat(row[1]), row[2]
        else:
            new.append(row)
        amount = f"{row[3] // 100:,}".replace(",", ".") + f",{row[3] % 100:02}"
        quoted = f'"{reason}"' if ";" in reason else reason
        line = f"{row[0]};{day:%d.%m.%Y};{rng.choice(['', ' '])}{quoted};{amount} €"
        lines += [line] * rng.choice([1, 1, 1, 1, 2]) + [""] * rng.choice([0, 0, 0, 1])
    lines = [line.replace('; "', ';"') for line in lines]
    data = "\ufeff" + "\r\n".join([*lines, ""])
    schema = """
CREATE TABLE returned (number TEXT PRIMARY KEY, day TEXT NOT NULL, reason TEXT,
    cents INTEGER NOT NULL CHECK (cents > 0));
"""
    values = ", ".join(
        f"('{row[0]}', '{row[1]}', {'NULL' if row[2] is None else repr(row[2])}, {row[3]})" for row in new
    )
    solve = f"INSERT INTO returned VALUES {values};"
    return World(
        schema, {"returned": old}, f"{len(new)} {_money(sum(row[3] for row in new))}", [f"2300 {_money(1)}"],
        {"returned": old + new}, solve, [solve.replace("NULL", "''"), "SELECT 1;"],
        files={"returns.csv": data.encode()},
    )  # fmt: skip


@cache
def _order_totals() -> World:
    tables = _shop("totals")
    sums: Counter[int] = Counter()
    for order, _, _, quantity, cents in tables["ord_pos"]:
        sums[order] += quantity * cents
    after = [(*row, sums[row[0]]) for row in tables["ord"]]
    solve = (
        "ALTER TABLE ord ADD COLUMN total_cents INTEGER NOT NULL DEFAULT 0; UPDATE ord SET total_cents ="
        " coalesce((SELECT sum(qty * unit_cents) FROM ord_pos WHERE ord_id = ord.id), 0);"
    )
    wrong = [
        solve.replace("qty * unit_cents", "unit_cents"),
        solve + "UPDATE ord SET total_cents = 0 WHERE state IS NULL;",
    ]
    best = max(sums, key=lambda order: sums[order])
    refused = ["INSERT INTO ord (id, placed, total_cents) VALUES (99999, '2026-01-01', NULL)"]
    return World(
        _SHOP, tables, f"{best} {_money(sums[best])}", [f"{best} {sums[best] + 1}"], {"ord": after}, solve, wrong,
        changes=["ord"], refused=refused,
    )  # fmt: skip


@cache
def _slow_events() -> World:
    rng = random.Random("events")
    rows = [
        (number, rng.randint(1, 900), rng.choice(["open", "click", "error"]), _day(rng), rng.choice(["{}", None]))
        for number in range(1, 60_001)
    ]
    schema = """
CREATE TABLE event (id INTEGER PRIMARY KEY, device_id INTEGER NOT NULL, kind TEXT NOT NULL, happened TEXT NOT NULL,
    payload TEXT);
CREATE INDEX event_kind ON event (kind);
"""
    query = "SELECT * FROM event WHERE device_id = 42 AND kind = 'error' ORDER BY happened DESC"
    mine = [row for row in rows if row[1] == 42 and row[2] == "error"]
    return World(
        schema, {"event": rows}, str(len(mine)), [str(len(mine) + 1)],
        solve="CREATE INDEX event_device ON event (device_id, kind, happened);",
        wrong=["CREATE INDEX event_device ON event (device_id);", "SELECT 1;", "DROP INDEX event_kind;"
               "CREATE INDEX event_device ON event (device_id, kind, happened);"],
        changes=["event"], indexed=query,
    )  # fmt: skip


@cache
def _imported_contacts() -> World:
    rng = random.Random("contacts")
    ours = [
        (number, _name(rng), rng.choice([f"+49 {number}", None]), f"p{number}@example.com")
        for number in range(1, 12_001)
    ]
    theirs = list[Row]()
    missing = changed = 0
    for row in ours:
        match rng.randrange(200):
            case 0:
                missing += 1
                continue
            case 1:
                changed += 1
                theirs.append((*row[:2], None if row[2] else "+49 0", row[3]))
            case 2:
                changed += 1
                theirs.append((*row[:3], row[3].replace("p", "P", 1)))
            case _:
                theirs.append(row)
    added = [(20_000 + number, _name(rng), None, None) for number in range(37)]
    columns = "(id INTEGER PRIMARY KEY, name TEXT, phone TEXT, email TEXT)"
    tables = {"contacts": ours, "contacts_crm": theirs + added, "contacts_crm_2025": theirs[:9000]}
    schema = "".join(f"CREATE TABLE {table} {columns};" for table in tables)
    return World(
        schema, tables, f"{missing} {len(added)} {changed}", [f"{missing} 37 {changed // 2}", f"37 {missing} {changed}"]
    )


@cache
def _exported() -> World:
    tables = _shop("exported")
    orders = {row[0]: row for row in tables["ord"]}
    sums: Counter[tuple[str, str]] = Counter()
    countries = {row[0]: row[2] for row in tables["cust"]}
    for order, _, _, quantity, cents in tables["ord_pos"]:
        _, customer, placed, state = orders[order]
        if state in ("paid", "sent"):
            sums[placed[:7], countries.get(customer) or "unknown"] += quantity * cents
    lines = ["month,country,cents", *(f"{month},{country},{cents}" for (month, country), cents in sorted(sums.items()))]
    data = "".join(f"{line}\n" for line in lines).encode()
    total = sum(sums.values())
    known = sum(cents for (_, country), cents in sums.items() if country != "unknown")
    return World(_SHOP, tables, f"{len(sums)} {total}", [f"{len(sums) - 10} {known}"], made_files={"revenue.csv": data})


@cache
def _merged() -> World:
    rng = random.Random("merged")
    customers = list[Row]()
    keeper: dict[int, int] = {}
    firsts: dict[str, int] = {}
    for number in range(1, 6001):
        email = f"{rng.choice('abc')}{rng.randint(1, 4000)}@example.com"
        shown = rng.choice([email, email, email.upper(), f" {email}", None])
        customers.append((number, _name(rng), shown))
        keeper[number] = firsts.setdefault(email, number) if shown else number
    orders = [(number, rng.randint(1, 6000), rng.randint(100, 9000)) for number in range(1, 20_001)]
    notes = [(number, rng.randint(1, 6000), "called") for number in range(1, 3001)]
    schema = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT);
CREATE TABLE purchase (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customer,
    cents INTEGER NOT NULL);
CREATE TABLE note (id INTEGER PRIMARY KEY, client INTEGER NOT NULL REFERENCES customer, text TEXT);
"""
    keep = (
        "(SELECT min(k.id) FROM customer k JOIN customer c ON lower(trim(k.email)) = lower(trim(c.email))"
        " WHERE c.id = {})"
    )
    steps = [
        "CREATE INDEX temporary ON customer (lower(trim(email)));",
        f"UPDATE purchase SET customer_id = coalesce({keep.format('customer_id')}, customer_id);",
        f"UPDATE note SET client = coalesce({keep.format('client')}, client);",
        "DELETE FROM customer WHERE id > (SELECT min(k.id) FROM customer k"
        " WHERE lower(trim(k.email)) = lower(trim(customer.email)));",
        "DROP INDEX temporary;",
    ]
    after = {
        "customer": [row for row in customers if keeper[row[0]] == row[0]],
        "purchase": [(number, keeper[customer], cents) for number, customer, cents in orders],
        "note": [(number, keeper[customer], text) for number, customer, text in notes],
    }
    gone = len(customers) - len(after["customer"])
    exact = "".join(steps).replace("lower(trim(k.email))", "k.email").replace("lower(trim(c.email))", "c.email")
    exact = exact.replace("lower(trim(email))", "email")
    wrong = [exact.replace("lower(trim(customer.email))", "customer.email"), "".join([*steps[:2], steps[4]])]
    tables = {"customer": customers, "purchase": orders, "note": notes}
    return World(schema, tables, str(gone), [str(gone + 1)], after, "".join(steps), wrong)


@cache
def _enrolments() -> World:
    rng = random.Random("enrolments")
    rows = list[Row]()
    kept: dict[Row, Row] = {}
    for number in range(1, 25_001):
        key = (rng.randint(1, 3000), rng.randint(1, 40), rng.choice(["2025-2", "2026-1", "2026-2"]))
        rows.append(
            (number, *key, f"{_day(rng)}T{rng.randint(10, 23)}:{rng.randint(10, 59)}:{number % 60:02}.{number:05}")
        )
    for row in rows:
        best = kept.setdefault(row[1:4], row)
        if row[4] < best[4]:
            kept[row[1:4]] = row
    schema = """
CREATE TABLE enrolment (id INTEGER PRIMARY KEY, student_id INTEGER NOT NULL, course_id INTEGER NOT NULL,
    term TEXT NOT NULL, enrolled_at TEXT NOT NULL);
CREATE INDEX enrolment_term ON enrolment (term);
"""
    solve = (
        "DELETE FROM enrolment WHERE id NOT IN (SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY student_id,"
        " course_id, term ORDER BY enrolled_at) n FROM enrolment) WHERE n = 1);"
        "CREATE UNIQUE INDEX enrolment_once ON enrolment (student_id, course_id, term);"
    )
    after = list(kept.values())
    student, course, term = after[0][1:4]
    refused = [f"INSERT INTO enrolment VALUES (99999, {student}, {course}, '{term}', '2026-12-01T10:00:00')"]
    wrong = [solve.replace("ORDER BY enrolled_at", "ORDER BY id"), solve.replace("UNIQUE ", "")]
    gone = len(rows) - len(after)
    return World(
        schema, {"enrolment": rows}, str(gone), [str(gone + 1)], {"enrolment": after}, solve, wrong,
        changes=["enrolment"], refused=refused,
    )  # fmt: skip


@cache
def _orphans() -> World:
    rng = random.Random("orphans")
    parcels = [
        (number, _day(rng), rng.choice([None, None, _day(rng)])) for number in range(1, 8001) if rng.random() < 0.97
    ]
    there = {row[0] for row in parcels}
    scans = [
        (
            number,
            rng.choice([rng.randint(1, 8000), rng.randint(1, 8000), None]),
            rng.choice(["in", "out"]),
            rng.randint(1, 90),
        )
        for number in range(1, 30_001)
    ]
    gone = [row for row in scans if row[1] is not None and row[1] not in there]
    schema = """
CREATE TABLE parcel (id INTEGER PRIMARY KEY, sent TEXT NOT NULL, deleted_on TEXT);
CREATE TABLE scan (id INTEGER PRIMARY KEY, parcel_id INTEGER, direction TEXT NOT NULL, minutes INTEGER NOT NULL);
"""
    solve = "DELETE FROM scan WHERE parcel_id IS NOT NULL AND parcel_id NOT IN (SELECT id FROM parcel);"
    wrong = [
        "DELETE FROM scan WHERE NOT EXISTS (SELECT 1 FROM parcel WHERE id = parcel_id);",
        solve.replace("FROM parcel", "FROM parcel WHERE deleted_on IS NULL"),
    ]
    answer = f"{len(gone)} {sum(row[3] for row in gone)}"
    lost = {row[0] for row in gone}
    after = {"scan": [row for row in scans if row[0] not in lost]}
    return World(schema, {"parcel": parcels, "scan": scans}, answer, [f"{len(gone)} 0"], after, solve, wrong)


@cache
def _missing_numbers() -> World:
    rng = random.Random("numbers")
    rows = list[Row]()
    missing = list[str]()
    for year in (2024, 2025, 2026):
        last = rng.randint(5000, 7000)
        lost = set(rng.sample(range(2, last), 4))
        missing += [f"INV-{year}-{number:05}" for number in lost]
        rows += [(f"INV-{year}-{number:05}", rng.randint(1, 9000), "void" if rng.random() < 0.01 else "sent")
                 for number in range(1, last + 1) if number not in lost]  # fmt: skip
        rows += [(f"CRN-{year}-{number:05}", -rng.randint(1, 900), "sent") for number in lost]
    rng.shuffle(rows)
    rows = [(index, *row) for index, row in enumerate(rows, 1)]
    schema = """
CREATE TABLE document (id INTEGER PRIMARY KEY, number TEXT NOT NULL UNIQUE, cents INTEGER NOT NULL,
    state TEXT NOT NULL);
"""
    answer = "\n".join(sorted(missing))
    return World(schema, {"document": rows}, answer, ["\n".join(sorted(missing)[:-1]), answer.replace("INV", "CRN")])


_OFFICE = """
CREATE TABLE unit (id integer PRIMARY KEY, label text NOT NULL);
CREATE TABLE staff (id integer PRIMARY KEY, full_name text NOT NULL, unit_id integer REFERENCES unit,
    rate_cents integer NOT NULL, left_on date);
CREATE TABLE project (id integer PRIMARY KEY, title text NOT NULL, budget_cents bigint NOT NULL,
    closed boolean NOT NULL);
CREATE TABLE work (id bigint PRIMARY KEY, staff_id integer NOT NULL REFERENCES staff, project_id integer NOT NULL
    REFERENCES project, day date NOT NULL, minutes integer NOT NULL, billable boolean);
CREATE INDEX work_project ON work (project_id);
"""


@cache
def _over_budget() -> World:
    rng = random.Random("budget")
    units = [(number, f"Unit {number}") for number in range(1, 9)]
    staff = [
        (number, _name(rng), rng.choice([None, rng.randint(1, 8)]), rng.randint(20, 90) * 60, None)
        for number in range(1, 301)
    ]
    projects = [
        (number, f"Project {number % 60}", rng.randint(3_500_000, 7_500_000), rng.random() < 0.3)
        for number in range(1, 91)
    ]
    work = [
        (
            number,
            rng.randint(1, 300),
            rng.randint(1, 90),
            _day(rng),
            rng.randint(5, 480),
            rng.choice([True, True, False, None]),
        )
        for number in range(1, 60_001)
    ]
    rates = {row[0]: row[3] // 60 for row in staff}
    costs: Counter[int] = Counter()
    billed: Counter[int] = Counter()
    for _, person, project, _, minutes, is_billable in work:
        costs[project] += rates[person] * minutes
        billed[project] += rates[person] * minutes * bool(is_billable)
    answers = list[str]()
    for sums in (billed, costs):
        over = Counter({row[0]: sums[row[0]] - row[2] for row in projects if not row[3] and sums[row[0]] > row[2]})
        answers.append("\n".join(f"{project} {_money(cents)}" for project, cents in over.most_common(3)))
    tables = {"unit": units, "staff": staff, "project": projects, "work": work}
    return World(_OFFICE, tables, answers[0], answers[1:])


@cache
def _streaks() -> World:
    rng = random.Random("streaks")
    users = [(number, _name(rng)) for number in range(1, 501)]
    days = {(user, _START + timedelta(rng.randrange(300))) for user in range(1, 501) for _ in range(60)}
    days |= {(77, _START + timedelta(day)) for day in range(40, 62)}
    days |= {(402, _START + timedelta(day)) for day in range(100, 121)} - {(402, _START + timedelta(110))}
    times = [
        (user, f"{day} {rng.randint(0, 23):02}:{rng.randint(0, 59):02}:00", rng.random() < 0.97 or user == 77)
        for user, day in sorted(days)
        for _ in range(rng.randint(1, 2))
    ]
    rng.shuffle(times)
    logins = [(number, *row) for number, row in enumerate(times, 1)]
    successes = {(user, date.fromisoformat(moment[:10])) for user, moment, is_ok in times if is_ok}
    best = max((_streak(user, day, successes) for user, day in successes), key=lambda streak: streak[1])
    schema = """
CREATE TABLE member (id integer PRIMARY KEY, name text NOT NULL);
CREATE TABLE login (id integer PRIMARY KEY, member_id integer NOT NULL REFERENCES member, at timestamp NOT NULL,
    ok boolean NOT NULL);
"""
    answer = f"{best[0]} {best[1]} {best[2]}"
    return World(
        schema, {"member": users, "login": logins}, answer, [f"{best[0]} {best[1] + 1} {best[2]}", f"402 21 {best[2]}"]
    )


def _streak(user: int, first: date, days: set[tuple[int, date]]) -> tuple[int, int, date]:
    length = 1
    while (user, first + timedelta(length)) in days:
        length += 1
    return user, length, first


@cache
def _swapped() -> World:
    rng = random.Random("swapped")
    before = list[Row]()
    after = list[Row]()
    for number in range(1, 30_001):
        first = _START + timedelta(rng.randrange(300))
        last = first + timedelta(rng.randint(0, 60))
        row = (
            number,
            rng.randint(1, 4000),
            f"{first}",
            rng.choice([f"{last}", f"{last}", None]),
            rng.choice(["EUR", "USD"]),
        )
        after.append(row)
        if row[3] and last > first and rng.random() < 0.02:
            row = (*row[:2], f"{last}", f"{first}", row[4])
        before.append(row)
    swapped = sum(1 for old, new in zip(before, after, strict=True) if old != new)
    schema = """
CREATE TABLE price (id integer PRIMARY KEY, product_id integer NOT NULL, valid_from date NOT NULL, valid_to date,
    currency text NOT NULL);
"""
    solve = (
        "UPDATE price SET valid_from = valid_to, valid_to = valid_from WHERE valid_to < valid_from;"
        "ALTER TABLE price ADD CHECK (valid_to >= valid_from);"
    )
    wrong = [
        solve.split(";")[0],
        solve.replace("valid_from = valid_to, valid_to = valid_from", "valid_to = valid_from"),
    ]
    refused = ["INSERT INTO price VALUES (99999, 1, '2026-03-02', '2026-03-01', 'EUR')"]
    results = {
        "SELECT conrelid::regclass::text FROM pg_constraint WHERE contype = 'c' AND convalidated"
        " AND conrelid = 'price'::regclass": [("price",)]
    }
    return World(
        schema, {"price": before}, str(swapped), [str(swapped + 1)], {"price": after}, solve, wrong,
        changes=["price"], refused=refused, results=results,
    )  # fmt: skip


@cache
def _last_logins() -> World:
    rng = random.Random("sessions")
    users = [(number, f"user{number}", rng.choice(["admin", "member"])) for number in range(1, 5001)]
    sessions = [
        (
            number,
            rng.randint(1, 4800),
            f"{_day(rng)} {rng.randint(0, 23):02}:{rng.randint(0, 59):02}:00",
            rng.choice(["ok", "ok", "failed", "revoked"]),
        )
        for number in range(1, 40_001)
    ]
    last: dict[int, str] = {}
    for _, user, moment, outcome in sessions:
        if outcome == "ok":
            last[user] = max(last.get(user, ""), moment)
    never = sum(1 for row in users if row[0] not in last)
    schema = """
CREATE TABLE account (id integer PRIMARY KEY, login text NOT NULL UNIQUE, role text NOT NULL);
CREATE TABLE session (id integer PRIMARY KEY, account_id integer NOT NULL REFERENCES account,
    started timestamp NOT NULL, outcome text NOT NULL);
"""
    solve = (
        "ALTER TABLE account ADD COLUMN last_login timestamp; UPDATE account a SET last_login = (SELECT max(started)"
        " FROM session s WHERE s.account_id = a.id AND outcome = 'ok');"
    )
    wrong = [solve.replace(" AND outcome = 'ok'", ""), solve.replace("max(", "min(")]
    return World(
        schema, {"account": users, "session": sessions}, str(never), ["200"],
        {"account": [(*row, last.get(row[0])) for row in users]}, solve, wrong, changes=["account"],
    )  # fmt: skip


@cache
def _slow_search() -> World:
    rng = random.Random("search")
    people = list[Row]()
    for number in range(1, 50_001):
        email = f"{rng.choice(_FIRST)}.{number % 9000}@Example.org"
        people.append(
            (number, _name(rng), rng.choice([email, email.lower(), email.upper()]), rng.choice([None, _day(rng)]))
        )
    wanted = "ana.4711@example.org"
    matches = [row for row in people if row[2].lower() == wanted]
    schema = """
CREATE TABLE subscriber (id integer PRIMARY KEY, name text NOT NULL, email text NOT NULL, cancelled_on date);
CREATE INDEX subscriber_email ON subscriber (email);
"""
    query = f"SELECT id, name FROM subscriber WHERE lower(email) = '{wanted}' AND cancelled_on IS NULL"
    answer = str(sum(1 for row in matches if row[3] is None))
    solve = "CREATE INDEX ON subscriber (lower(email)); ANALYZE subscriber;"
    wrong = ["CREATE INDEX ON subscriber (email, cancelled_on);", solve + "DROP INDEX subscriber_email;"]
    return World(
        schema, {"subscriber": people}, answer, [str(len(matches) + 9)], solve=solve, wrong=wrong,
        changes=["subscriber"], indexed=query,
    )  # fmt: skip


@cache
def _synchronised() -> World:
    rng = random.Random("synchronised")
    ours = list[Row]()
    theirs = list[Row]()
    after = list[Row]()
    counts = Counter[str]()
    for number in range(1, 20_001):
        row = (
            f"SKU-{number:05}",
            f"{rng.choice(['Lamp', 'Desk'])} {number}",
            rng.choice([None, rng.randint(100, 9000)]),
            _day(rng),
        )
        match rng.randrange(150):
            case 0:
                counts["gone"] += 1
                ours.append(row)
            case 1:
                counts["new"] += 1
                theirs.append(row[:3])
                after.append((*row[:3], "2026-11-01"))
            case 2:
                counts["changed"] += 1
                price = rng.randint(100, 9000) * 10_000 if row[2] is None else None
                ours.append(row)
                theirs.append((*row[:2], price))
                after.append((*row[:2], price, "2026-11-01"))
            case _:
                ours.append(row)
                theirs.append(row[:3])
                after.append(row)
    schema = """
CREATE SCHEMA staging;
CREATE TABLE article (sku text PRIMARY KEY, title text NOT NULL, cents integer, updated_on date NOT NULL);
CREATE TABLE staging.article (sku text PRIMARY KEY, title text NOT NULL, cents integer);
CREATE TABLE staging.article_2025 (sku text PRIMARY KEY, title text NOT NULL, cents integer);
"""
    solve = (
        "DELETE FROM article a WHERE NOT EXISTS (SELECT FROM staging.article s WHERE s.sku = a.sku);"
        "INSERT INTO article SELECT s.*, '2026-11-01' FROM staging.article s ON CONFLICT (sku) DO UPDATE SET title ="
        " excluded.title, cents = excluded.cents, updated_on = excluded.updated_on WHERE (article.title, article.cents)"
        " IS DISTINCT FROM (excluded.title, excluded.cents);"
    )
    blind = solve[: solve.index(" WHERE (article")] + " WHERE article.cents <> excluded.cents;"
    wrong = [blind, solve.split(";")[1]]
    tables = {"article": ours, "staging.article": theirs, "staging.article_2025": theirs[:900]}
    answer = f"{counts['new']} {counts['changed']} {counts['gone']}"
    return World(
        schema,
        tables,
        answer,
        [f"{counts['new']} {counts['gone']} {counts['changed']}"],
        {"article": after},
        solve,
        wrong,
    )


@cache
def _rights() -> World:
    rng = random.Random("rights")
    people = [
        (
            number,
            _name(rng),
            rng.choice(["IT", "Sales"]),
            rng.randint(2000, 9000),
            f"DE{rng.randrange(10**18):018}",
            _day(rng),
        )
        for number in range(1, 20_001)
    ]
    reviews = [(number, rng.randint(1, 20_000), _day(rng), "fine") for number in range(1, 20_001)]
    rooms = [(number, f"Room {number}") for number in range(1, 60)]
    schema = """
CREATE TABLE employee (id integer PRIMARY KEY, name text NOT NULL, department text NOT NULL, salary integer NOT NULL,
    iban text NOT NULL, hired date NOT NULL);
CREATE TABLE room (id integer PRIMARY KEY, name text NOT NULL);
CREATE TABLE review (id integer PRIMARY KEY, employee_id integer NOT NULL REFERENCES employee, day date NOT NULL,
    text text NOT NULL);
GRANT SELECT, UPDATE ON employee TO monitor;
GRANT SELECT ON review TO PUBLIC;
"""
    can_read = (
        "SELECT a.attname, has_column_privilege('reader', a.attrelid, a.attnum, 'SELECT') FROM pg_attribute a"
        " WHERE a.attrelid = 'employee'::regclass AND a.attnum > 0"
    )
    readable = {"id": True, "name": True, "department": True, "salary": False, "iban": False, "hired": True}
    results = {
        can_read: list(readable.items()),
        "SELECT has_any_column_privilege('reader', 'review', 'SELECT')": [(False,)],
        "SELECT has_table_privilege('monitor', 'review', 'SELECT')": [(True,)],
        "SELECT has_table_privilege('monitor', 'employee', 'SELECT, UPDATE')": [(True,)],
    }
    solve = (
        "REVOKE SELECT ON employee FROM reader; GRANT SELECT (id, name, department, hired) ON employee TO reader;"
        "REVOKE SELECT ON review FROM PUBLIC, reader; GRANT SELECT ON review TO monitor;"
    )
    by_column = solve.replace("SELECT ON employee FROM", "SELECT (salary, iban) ON employee FROM")
    wrong = [by_column, solve.replace("FROM PUBLIC, reader", "FROM reader")]
    well_paid = sum(1 for row in people if row[2] == "IT" and row[3] > 8000)
    return World(
        schema, {"employee": people, "room": rooms, "review": reviews}, str(well_paid), [str(well_paid + 1)],
        solve=solve, wrong=wrong, changes=["employee", "review"], results=results,
    )  # fmt: skip


@cache
def _referenced() -> World:
    rng = random.Random("referenced")
    customers = [(number, _name(rng)) for number in range(1, 4001) if rng.random() < 0.95]
    customers = [row for row in customers if row[0] != 13] + [(9000, "Unknown"), (9001, "unknown customer (test)")]
    there = {row[0] for row in customers}
    before = [
        (
            number,
            rng.choice([rng.randint(1, 4000), rng.randint(1, 4000), rng.randint(1, 4000), None]),
            rng.randint(-5, 900),
            _day(rng),
        )
        for number in range(1, 40_001)
    ]
    after = [(row[0], row[1] if row[1] in there else 9000, *row[2:]) for row in before]
    changed = sum(1 for old, new in zip(before, after, strict=True) if old != new)
    schema = """
CREATE TABLE client (id integer PRIMARY KEY, name text NOT NULL);
CREATE TABLE job (id integer PRIMARY KEY, client_id integer, euros integer NOT NULL, day date NOT NULL);
CREATE INDEX job_client ON job (client_id);
"""
    solve = (
        "UPDATE job SET client_id = 9000 WHERE client_id IS NULL OR client_id NOT IN (SELECT id FROM client);"
        "ALTER TABLE job ALTER client_id SET NOT NULL, ADD FOREIGN KEY (client_id) REFERENCES client;"
    )
    refused = [
        "INSERT INTO job VALUES (99999, NULL, 1, '2026-01-01')",
        "INSERT INTO job VALUES (99999, 13, 1, '2026-01-01')",
        f"DELETE FROM client WHERE id = {after[0][1]}",
    ]
    wrong = [solve.split(";")[0], solve.replace("REFERENCES client", "REFERENCES client ON DELETE CASCADE")]
    return World(
        schema, {"client": customers, "job": before}, str(changed), [str(changed - 1)], {"job": after}, solve, wrong,
        changes=["job"], refused=refused,
    )  # fmt: skip


_SQLITE: Mapping[str, Callable[[], World]] = {
    "best-customers": _best_customers,
    "accounts": _accounts,
    "countries": _countries,
    "returns": _returns,
    "order-totals": _order_totals,
    "slow-events": _slow_events,
    "contacts": _imported_contacts,
    "export": _exported,
    "merge": _merged,
    "enrolments": _enrolments,
    "orphans": _orphans,
    "missing-numbers": _missing_numbers,
}
_POSTGRES: Mapping[str, Callable[[], World]] = {
    "over-budget": _over_budget,
    "streaks": _streaks,
    "swapped": _swapped,
    "last-logins": _last_logins,
    "slow-search": _slow_search,
    "synchronise": _synchronised,
    "rights": _rights,
    "references": _referenced,
}
_TEXTS = read_texts(Path(__file__).with_suffix(".toml"))


def _ends(build: Callable[[], World]) -> Ends:
    world = build()

    def finish(script: str, answer: str, place: Place) -> str:
        run(place, script)
        for name, data in world.made_files.items():
            (place.folder / name).write_bytes(data)
        return answer

    def delete_a_row(place: Place) -> str:
        finish(world.solve, world.answer, place)
        table, row = list(world.before)[-1], "ctid" if is_postgres(place) else "rowid"
        run(place, f"DELETE FROM {table} WHERE {row} = (SELECT min({row}) FROM {table})")
        return world.answer

    ends = ends_of(finish, world.solve, world.answer, world.wrong_answers, world.wrong)
    return Ends(ends.solve, [delete_a_row, *ends.spoil])


TASKS: Sequence[Task] = [
    *(build_task(name, _TEXTS[name], build, make_sqlite, faults) for name, build in _SQLITE.items()),
    *(build_task(name, _TEXTS[name], build, make_postgres, faults) for name, build in _POSTGRES.items()),
]
ENDS: Mapping[str, Callable[[], Ends]] = {
    name: partial(_ends, build) for name, build in {**_SQLITE, **_POSTGRES}.items()
}
