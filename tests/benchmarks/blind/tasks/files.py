"""Tasks on a folder of files, each made from a seed with what should be left of it."""

import hashlib
import io
import json
import random
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import xlsxwriter
from beside_shell import Place
from docx import Document

from blind.ends import Ends, answer_faults, folder_faults
from blind.task import Task, build_task, read_texts

Files = dict[str, bytes]

_WORDS = (
    "meeting", "budget", "supplier", "delivery", "quarter", "draft", "review", "contract", "network", "printer",
    "office", "travel", "training", "release", "schedule", "customer", "feedback", "report", "invoice", "storage",
    "backup", "window", "corridor", "agenda", "minutes",
)  # fmt: skip
_PEOPLE = ("Ana Ruiz", "Ben Okafor", "Carla Weiß", "Dmitri Ivanov", "Eve Lindqvist", "Farid Haddad", "Grace Kim")


@dataclass(frozen=True)
class World:
    """A task's folder before and after, and the right answer.

    Attributes:
        wrong_answers: what falling for a trap would give.
        wrong_after: by path, what falling for a trap would leave.
        same_if: by path, what must be equal of files that may differ in bytes.
    """

    before: Files
    answer: str
    after: Files
    wrong_answers: Sequence[str] = ()
    wrong_after: Sequence[Mapping[str, bytes]] = ()
    same_if: Mapping[str, Callable[[bytes], bytes]] | None = None


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


def _make(folder: Path, world: World) -> Place:
    served = folder / "files"
    _write(served, world.before)
    servers = {"fs": [sys.executable, "-m", "mcp_fs", str(served)]}
    return Place(served, servers, {"XDG_STATE_HOME": str(folder / "state")})


def _verify(place: Place, answer: str, world: World) -> list[str]:
    expected = dict(world.after)
    for path, canonical in (world.same_if or {}).items():
        actual = place.folder / path
        if path in expected and actual.is_file():
            data = actual.read_bytes()
            if canonical(data) == canonical(expected[path]):
                expected[path] = data
    return answer_faults(answer, world.answer) + folder_faults(place.folder, expected)


def _leave(place: Place, before: Files, after: Mapping[str, bytes]) -> None:
    for path in before.keys() - after.keys():
        (place.folder / path).unlink()
    _write(place.folder, after)


def _ends(build: Callable[[], World]) -> Ends:
    def solve(place: Place) -> str:
        _leave(place, build().before, build().after)
        return build().answer

    def answer_wrongly(answer: str, place: Place) -> str:
        solve(place)
        return answer

    def leave_wrongly(wrong: Mapping[str, bytes], place: Place) -> str:
        solve(place)
        _write(place.folder, wrong)
        return build().answer

    def touch_another(place: Place) -> str:
        return leave_wrongly({min(build().before): b"touched\n"}, place)

    def do_nothing(place: Place) -> str:
        return build().answer if build().before != build().after else "none"

    world = build()
    wrong_answers = [partial(answer_wrongly, answer) for answer in world.wrong_answers]
    wrong_after = [partial(leave_wrongly, wrong) for wrong in world.wrong_after]
    return Ends(solve, [touch_another, do_nothing, *wrong_answers, *wrong_after])


def _prose(rng: random.Random, sentences: int) -> str:
    parts = (" ".join(rng.choices(_WORDS, k=rng.randint(5, 12))).capitalize() for _ in range(sentences))
    return ". ".join(parts) + "."


def _money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02}"


# Files are found and their amounts summed.
_VENDORS = ("Hotel Lindner", "Hotel Lindner Bar", "HOTEL LINDNER", "Hotel Linder", "Taxi Berlin", "Bahn", "Cafe Roma")


@cache
def _receipts() -> World:
    rng = random.Random("receipts")
    files: Files = {}
    sums: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for number in range(600):
        vendor, cents = rng.choice(_VENDORS), rng.randint(900, 190_000)
        folder = rng.choice([f"2026/{month:02}" for month in range(1, 10)] + ["2025/12", "2026/cancelled"])
        text = f"Receipt {number:04}\nVendor: {vendor}\n{_prose(rng, 3)}\nDeposit: {_money(rng.randint(100, 5000))}"
        files[f"{folder}/receipt-{number:04}.txt"] = (
            f"{text} EUR\nTotal: {cents // 100:,}.{cents % 100:02} EUR\n".encode()
        )
        kind = "right" if vendor.lower() == "hotel lindner" and folder[:6] == "2026/0" else "other"
        kind = "cancelled" if vendor.lower() == "hotel lindner" and folder == "2026/cancelled" else kind
        counts[kind] += 1
        sums[kind] += cents
    answer = f"{counts['right']} {_money(sums['right'])}"
    trapped = f"{counts['right'] + counts['cancelled']} {_money(sums['right'] + sums['cancelled'])}"
    return World(files, answer, files, [trapped])


# A name is replaced in many files.
def _product_page(rng: random.Random, name: str) -> str:
    lines = [f"# {name}", ""]
    for _ in range(rng.randint(5, 25)):
        product = rng.choice([name, "Acme Cloudlet", "the cloud", "Acme", _prose(rng, 1)])
        lines.append(f"{_prose(rng, 1)} {product} {_prose(rng, 1)}")
    return "\n".join(lines) + "\n"


@cache
def _rebrand() -> World:
    rng = random.Random("rebrand")
    before: Files = {}
    after: Files = {}
    for number in range(240):
        folder = rng.choice(["docs", "docs/guides", "docs/.drafts", "legal", "src"])
        suffix = "md" if folder != "src" else "py"
        text = _product_page(rng, rng.choice(["Acme Cloud", "Acme Cloud", "Acme Cloudlet", "Acme"]))
        end = rng.choice(["\n", "\n", "\r\n"])
        path = f"{folder}/page-{number:03}.{suffix}"
        before[path] = after[path] = text.replace("\n", end).encode()
        if folder.startswith("docs"):
            new = text.replace("Acme Cloudlet", "\0").replace("Acme Cloud", "Nimbus").replace("\0", "Acme Cloudlet")
            after[path] = new.replace("\n", end).encode()
    changed = [path for path in before if before[path] != after[path]]
    crlf = next(path for path in changed if b"\r\n" in before[path])
    wrong = [
        {crlf: after[crlf].replace(b"\r\n", b"\n")},
        {changed[0]: before[changed[0]].replace(b"Acme Cloud", b"Nimbus")},
    ]
    return World(before, str(len(changed)), after, [str(len(changed) - 1)], wrong)


# Settings are changed in the configurations of many services.
def _service_ini(pool: int, others: tuple[int, int]) -> str:
    return (
        f"; kept by the platform team\n[cache]\npool = {others[0]}\nttl = 300\n\n[database]\nhost = db.internal\n"
        f"# pool = 8\npool = {pool}  ; connections\npool_timeout = 15\n\n[queue]\npool={others[1]}\n"
    )


@cache
def _pools() -> World:
    rng = random.Random("pools")
    before: Files = {}
    after: Files = {}
    raised = 0
    for number in range(120):
        service = f"services/{rng.choice(_WORDS)}-{number:03}/config"
        for kind in ("production", "staging", "production-eu"):
            pool, others = rng.choice([5, 8, 10, 19, 20, 25, 40, 100]), (rng.choice([5, 10, 30]), rng.choice([5, 10]))
            path = f"{service}/{kind}.ini"
            before[path] = _service_ini(pool, others).encode()
            must_rise = kind == "production" and pool < 20
            raised += must_rise
            after[path] = _service_ini(20 if must_rise else pool, others).encode()
    changed = next(path for path in before if before[path] != after[path])
    wrong = after[changed].replace(b"[queue]\npool=5", b"[queue]\npool=20").replace(b"# pool = 8", b"# pool = 20")
    return World(before, str(raised), after, [str(raised + 1)], [{changed: wrong}])


# Two trees are compared.
@cache
def _backup() -> World:
    rng = random.Random("backup")
    files: Files = {}
    gone, new, changed = list[str](), list[str](), list[str]()
    for number in range(450):
        folder = rng.choice(["plans", "plans/old", "letters", "letters/2026", ".settings"])
        path = f"{folder}/{rng.choice(_WORDS)}-{number}.txt"
        data = f"{_prose(rng, 20)}\n".encode()
        files[f"backup/{path}"] = files[f"current/{path}"] = data
        match rng.randrange(40):
            case 0:
                gone.append(path)
                del files[f"current/{path}"]
            case 1:
                new.append(path)
                del files[f"backup/{path}"]
            case 2:
                changed.append(path)
                files[f"current/{path}"] = data.replace(b"a", b"o", 1)
            case _:
                pass
    lines = [f"- {path}" for path in sorted(gone)], [f"+ {path}" for path in sorted(new)]
    answer = "\n".join([*lines[0], *lines[1], *(f"* {path}" for path in sorted(changed))])
    return World(files, answer, files, ["\n".join([*lines[0], *lines[1]]), answer.replace("- ", "+ ")])


# A table is made out of many CSV files.
@cache
def _regions() -> World:
    rng = random.Random("regions")
    before: Files = {}
    sums: Counter[tuple[str, str]] = Counter()
    for month in range(1, 25):
        year, separator = 2025 + (month - 1) // 12, rng.choice(",;")
        lines = [separator.join(["date", "region", "customer", "amount"])]
        for row in range(500):
            region = rng.choice(["North", "South", "East", "West", "north ", "SOUTH"])
            cents = rng.randint(-5000, 90_000)
            status = rng.choice(["", "", "", '"'])
            customer = f"{status}{rng.choice(_PEOPLE)}{status and f'{separator} {row}'}{status}"
            amount = f"{'-' if cents < 0 else ''}{_money(abs(cents))}"
            lines.append(
                separator.join([f"{year}-{(month - 1) % 12 + 1:02}-{row % 28 + 1:02}", region, customer, amount])
            )
            sums[region.strip().capitalize(), str(year)] += cents
        mark = rng.choice(["", "\ufeff"])
        text = mark + rng.choice(["\n", "\r\n"]).join([*lines, ""])
        before[f"sales/{year}/sales-{(month - 1) % 12 + 1:02}.csv"] = text.encode()
    before["sales/2025/sales-template.csv.bak"] = b"date,region,customer,amount\n2025-01-01,North,Nobody,100000.00\n"
    rows = [
        f"{region},{_money(sums[region, '2025'])},{_money(sums[region, '2026'])}"
        for region in ("East", "North", "South", "West")
    ]
    table = "\n".join(["region,2025,2026", *rows, ""]).encode()
    best = max(("East", "North", "South", "West"), key=lambda region: sums[region, "2026"])
    worst = min(("East", "North", "South", "West"), key=lambda region: sums[region, "2026"])
    wrong = {"regions.csv": b"\n".join(table.splitlines()[:-1]) + b"\n"}
    return World(before, best, before | {"regions.csv": table}, [worst], [wrong])


# Workbooks are read.
def _workbook(rng: random.Random, orders: list[tuple[str, str, int, float]]) -> bytes:
    data = io.BytesIO()
    book: Any = xlsxwriter.Workbook(data, {"in_memory": True})
    notes, sheet, old = book.add_worksheet("Notes"), book.add_worksheet("Orders"), book.add_worksheet("Orders old")
    notes.write(0, 0, _prose(rng, 4))
    for row, values in enumerate([("Order", "Product", "Quantity", "Price"), *orders]):
        sheet.write_row(row + 2, 1, values)
        old.write_row(row, 0, values)
    book.close()
    return data.getvalue()


@cache
def _workbooks() -> World:
    rng = random.Random("workbooks")
    files: Files = {}
    revenue: Counter[str] = Counter()
    pieces: Counter[str] = Counter()
    for store in range(24):
        orders = list[tuple[str, str, int, float]]()
        for number in range(200):
            product, quantity, cents = (
                rng.choice(["Lamp", "Lamp XL", "Desk", "Chair", "Shelf"]),
                rng.randint(1, 9),
                rng.randint(500, 9000),
            )
            orders.append((f"S{store:02}-{number:04}", product, quantity, cents / 100))
            revenue[product] += quantity * cents
            pieces[product] += quantity
        files[f"stores/store-{store:02}.xlsx"] = _workbook(rng, orders)
    answer = f"{pieces['Lamp']} {_money(revenue['Lamp'])}"
    both = f"{pieces['Lamp'] + pieces['Lamp XL']} {_money(revenue['Lamp'] + revenue['Lamp XL'])}"
    return World(files, answer, files, [both, f"{2 * pieces['Lamp']} {_money(2 * revenue['Lamp'])}"])


# Word documents are read.
def _contract(rng: random.Random, partner: str, months: int, end: str) -> bytes:
    document = Document()
    document.add_heading("Service agreement", 1)
    for _ in range(6):
        document.add_paragraph(_prose(rng, 6))
    table = document.add_table(rows=0, cols=2)
    values = {"Partner": partner, "Notice period": f"{months} months", "Ends on": end, "Payment period": "6 months"}
    for name, value in values.items():
        cells = table.add_row().cells
        cells[0].text, cells[1].text = name, value
    document.add_paragraph("The notice period of the former agreement was 6 months.")
    data = io.BytesIO()
    document.save(data)
    return data.getvalue()


@cache
def _contracts() -> World:
    rng = random.Random("contracts")
    files: Files = {}
    due = list[str]()
    late = list[str]()
    for number in range(70):
        partner = f"{rng.choice(_WORDS).capitalize()} {rng.choice(['GmbH', 'Ltd', 'SA'])} {number:02}"
        months, year = rng.choice([1, 2, 3, 6]), rng.choice([2026, 2027, 2028])
        folder = rng.choice(["signed", "signed/scans", "drafts"])
        files[f"contracts/{folder}/contract-{number:03}.docx"] = _contract(
            rng, partner, months, f"{rng.randint(1, 28):02}.06.{year}"
        )
        if months == 6 and year == 2027:
            late.append(partner)
            if folder != "drafts":
                due.append(partner)
    answer = "\n".join(sorted(due))
    return World(files, answer, files, ["\n".join(sorted(late)), "\n".join(sorted(due)[1:])])


# PDF files are read.
def _pdf(lines: Sequence[str]) -> bytes:
    shown = "".join(f"({line}) Tj T*\n" for line in lines)
    stream = f"BT /F1 11 Tf 60 780 Td 15 TL\n{shown}ET\n".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 5 0 R"
        b" /Resources << /Font << /F1 4 0 R >> >> >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Length %d >>\nstream\n%bendstream" % (len(stream), stream),
    ]
    data = b"%PDF-1.4\n"
    offsets = list[int]()
    for number, body in enumerate(objects, 1):
        offsets.append(len(data))
        data += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    start = len(data)
    data += b"xref\n0 6\n0000000000 65535 f \n%btrailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        table,
        start,
    )
    return data


@cache
def _invoices() -> World:
    rng = random.Random("invoices")
    files: Files = {}
    late: Counter[str] = Counter()
    for number in range(140):
        customer, cents = (
            rng.choice(["Borg AB", "Borg AB Norge", "Calder Ltd", "Dune SARL"]),
            rng.randint(1000, 900_000),
        )
        is_paid, month = rng.random() < 0.5, rng.randint(1, 12)
        lines = [f"Invoice 2026-{number:04}", f"Customer: {customer}", f"Due: 2026-{month:02}-{rng.randint(1, 28):02}"]
        lines += [_prose(rng, 1)[:80] for _ in range(12)]
        lines += [f"Net: {_money(cents * 4 // 5)} EUR", f"To pay: {_money(cents)} EUR"]
        lines += [f"PAID on 2026-{month:02}-28"] if is_paid else ["Please pay before the day when it is due."]
        files[f"invoices/{month:02}/{number:04}.pdf"] = _pdf(lines)
        if month <= 6:
            late[f"{customer}{is_paid}"] += cents
            late[f"{customer} number{is_paid}"] += 1
    answer = f"{late['Borg AB numberFalse']} {_money(late['Borg ABFalse'])}"
    paid = f"{late['Borg AB numberTrue']} {_money(late['Borg ABTrue'])}"
    norge = f"{late['Borg AB Norge numberFalse']} {_money(late['Borg AB NorgeFalse'])}"
    return World(files, answer, files, [paid, norge])


# A notebook's cell is changed.
def _notebook(rng: random.Random, cells: Sequence[str]) -> bytes:
    made = list[dict[str, object]]()
    for number, source in enumerate(cells):
        made.append({"cell_type": "markdown", "id": f"m{number:03}", "metadata": {}, "source": [_prose(rng, 4)]})
        picture = hashlib.sha256(b"%d" % number).hexdigest() * 60
        output = {"data": {"image/png": picture}, "metadata": {}, "output_type": "display_data"}
        made.append(
            {
                "cell_type": "code",
                "execution_count": number + 1,
                "id": f"c{number:03}",
                "metadata": {},
                "outputs": [output],
                "source": source.splitlines(keepends=True),
            }
        )
    book = {"cells": made, "metadata": {"kernelspec": {"name": "python3"}}, "nbformat": 4, "nbformat_minor": 5}
    return (json.dumps(book, indent=1, ensure_ascii=False) + "\n").encode()


def _canonical_notebook(data: bytes) -> bytes:
    book = json.loads(data)
    for cell in book["cells"]:
        cell["source"] = "".join(cell["source"])
    return json.dumps(book, sort_keys=True).encode()


@cache
def _threshold() -> World:
    before: Files = {}
    after: Files = {}
    for number in range(12):
        cells = [f"threshold_{at} = 0.{at + 10}\nplot(frame, threshold_{at})" for at in range(40)]
        cells[7] = f"model = train(frame, trees={100 + number})\nreport(model)"
        cells[21] = "churn = score(model, threshold=0.5)\n# threshold=0.5 came from the pilot\nplot(churn)"
        path = f"notebooks/churn-{number:02}.ipynb"
        before[path] = after[path] = _notebook(random.Random(number), cells)
        if number == 9:
            cells[21] = cells[21].replace("threshold=0.5)", "threshold=0.62)")
            after[path] = _notebook(random.Random(number), cells)
    path = "notebooks/churn-09.ipynb"
    wrong = {path: after[path].replace(b"# threshold=0.5 ", b"# threshold=0.62 ")}
    return World(before, path, after, ["notebooks/churn-08.ipynb"], [wrong], {path: _canonical_notebook})


# Logs are analysed.
_ENDPOINTS = ("/api/orders", "/api/orders/export", "/api/users", "/api/carts", "/health")


@cache
def _outage() -> World:
    rng = random.Random("outage")
    files: Files = {}
    errors: Counter[str] = Counter()
    users: dict[str, set[str]] = {endpoint: set() for endpoint in _ENDPOINTS}
    for server in range(12):
        lines = list[str]()
        for second in range(2500):
            moment = f"{13 + second // 1000:02}:{second % 1000 * 3600 // 1000 // 60:02}:{second % 60:02}"
            endpoint, user = rng.choice(_ENDPOINTS), f"user={rng.randint(1, 900)}"
            status = rng.choice([200, 200, 200, 201, 404, 500, 503])
            lines.append(
                f"2026-11-14T{moment}Z web{server:02} GET {endpoint} {status} {user} {rng.choice([500, 503, 17])}ms"
            )
            if moment.startswith("14") and status >= 500:
                errors[endpoint] += 1
                users[endpoint].add(user)
        files[f"logs/web{server:02}.log"] = "".join(f"{line}\n" for line in lines).encode()
        files[f"logs/web{server:02}.log.1"] = "".join(
            f"{line.replace('11-14', '11-13')}\n" for line in lines[:900]
        ).encode()
    order = [endpoint for endpoint, _ in errors.most_common()]
    answers = [f"{endpoint} {errors[endpoint]} {len(users[endpoint])}" for endpoint in order]
    return World(files, answers[0], files, answers[1:3])


# Copies of files are found and deleted.
@cache
def _copies() -> World:
    rng = random.Random("copies")
    before: Files = {}
    deleted = list[str]()
    pictures = [rng.randbytes(1500) for _ in range(200)]
    for number, data in enumerate(pictures):
        before[f"archive/{2020 + number % 6}/DSC_{number:04}.jpg"] = data
    for number in range(160):
        path = f"phone/IMG_{number:04}.jpg"
        match rng.randrange(3):
            case 0:
                before[path] = pictures[rng.randrange(200)]
                deleted.append(path)
            case 1:
                before[path] = pictures[number][:-1] + bytes([pictures[number][-1] ^ 1])
            case _:
                before[path] = rng.randbytes(1500)
    # Two that are alike, neither of which is in the archive, and one name that is in both.
    before["phone/IMG_9000.jpg"] = before["phone/IMG_9001.jpg"] = rng.randbytes(1500)
    before["phone/DSC_0004.jpg"] = rng.randbytes(1500)
    after = {path: data for path, data in before.items() if path not in deleted}
    wrong = [{deleted[0]: before[deleted[0]]}]
    return World(
        before,
        f"{len(deleted)} {1500 * len(deleted)}",
        after,
        [f"{len(deleted) + 1} {1500 * (len(deleted) + 1)}"],
        wrong,
    )


# Old reports are packed into an archive.
def _zip(files: Mapping[str, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return data.getvalue()


def _canonical_zip(data: bytes) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name).hex() for name in archive.namelist() if not name.endswith("/")}
    except zipfile.BadZipFile:
        return b"no archive"
    return json.dumps(members, sort_keys=True).encode()


@cache
def _packed() -> World:
    rng = random.Random("packed")
    before: Files = {}
    for number in range(180):
        year, month = rng.choice([2023, 2024, 2024, 2025]), rng.randint(1, 12)
        name = rng.choice(["report", "Report", "minutes", ".draft-report"])
        before[f"reports/{year}/{month:02}/{name}-{number:03}.txt"] = (
            f"Report for {rng.choice([2023, 2024])}\n{_prose(rng, 12)}\n".encode()
        )
    old = {path: data for path, data in before.items() if path.startswith("reports/2024/")}
    members = {path.removeprefix("reports/"): data for path, data in old.items()}
    after = {path: data for path, data in before.items() if path not in old} | {"reports/2024.zip": _zip(members)}
    visible = {path: data for path, data in members.items() if "/." not in path}
    wrong = [{"reports/2024.zip": _zip(visible)}]
    return World(before, str(len(old)), after, [str(len(visible))], wrong, {"reports/2024.zip": _canonical_zip})


# A function gets another name in a package.
def _module(rng: random.Random, number: int, name: str) -> str:
    uses_it = rng.random() < 0.6
    others = [
        "    ident = get_user_id(key)\n",
        "    person = _get_user(key)\n",
        "    person = cache.get_user_cached(key)\n",
        "    label = 'get_user_total'\n",
    ]
    uses = [f"    person = {name}(key)\n", f"    people = [{name}(one) for one in keys]\n"]
    body = "".join(rng.choices(others + uses * uses_it, k=rng.randint(1, 5)))
    imports = f"{name}, get_user_id" if uses_it else "get_user_id"
    head = f'"""Part {number}."""\n\nfrom shop.users import {imports}\n\n\n'
    return f"{head}def run(key, keys, cache):\n{body}    return {number}\n"


@cache
def _renamed() -> World:
    before: Files = {}
    after: Files = {}
    for files, name in ((before, "get_user"), (after, "load_user")):
        rng = random.Random("renamed")
        users = f"def {name}(key):\n    return TABLE[key]\n\n\ndef get_user_id(key):\n    return {name}(key).id\n"
        files["src/shop/users.py"] = users.encode()
        for number in range(150):
            folder = rng.choice(["src/shop", "src/shop/web", "tests"])
            files[f"{folder}/part_{number:03}.py"] = _module(rng, number, name).encode()
        files["vendor/shop_client/users.py"] = b"def get_user(key):\n    return None\n"
        files["docs/api.md"] = f"# API\n\nCall `{name}` with a key; `get_user_id` for its number.\n".encode()
    changed = [path for path in before if before[path] != after[path]]
    wrong = [
        {"vendor/shop_client/users.py": b"def load_user(key):\n    return None\n"},
        {changed[1]: before[changed[1]]},
    ]
    return World(before, str(len(changed)), after, [str(len(changed) + 1)], wrong)


# Notes of changes are gathered in a changelog.
_KINDS = {"added": "Added", "fixed": "Fixed", "removed": "Removed"}


@cache
def _changelog() -> World:
    rng = random.Random("changelog")
    before: Files = {"changes/README.md": b"One note a file, named NUMBER.KIND.md.\n"}
    notes: dict[str, list[tuple[int, str]]] = {kind: [] for kind in _KINDS}
    for number in rng.sample(range(80, 1400), 70):
        kind, text = rng.choice(list(_KINDS)), _prose(rng, 1)
        before[f"changes/{number}.{kind}.md"] = f"{text}{rng.choice(['', chr(10), chr(10) * 2])}".encode()
        notes[kind].append((number, text))
    head = "# Changelog\n\nAll notable changes are listed here.\n\n"
    old = "".join(
        f"## {version}\n\n### Fixed\n\n- {_prose(rng, 1)} (#{version[0]})\n\n"
        for version in ("3.1.0", "3.0.0", "2.9.4")
    )
    before["CHANGELOG.md"] = (head + old).encode()
    parts = [
        f"### {title}\n\n" + "".join(f"- {text} (#{number})\n" for number, text in sorted(notes[kind]))
        for kind, title in _KINDS.items()
    ]
    text = head + "## 3.2.0\n\n" + "\n".join(parts) + "\n" + old
    after = {"changes/README.md": before["changes/README.md"], "CHANGELOG.md": text.encode()}
    wrong = [{"CHANGELOG.md": (head + old + "## 3.2.0\n\n" + "\n".join(parts)).encode()}, {"changes/README.md": b""}]
    return World(before, " ".join(str(len(notes[kind])) for kind in _KINDS), after, ["0 0 0"], wrong)


# A folder of downloads is tidied.
_PLACES = {"pdf": "Papers", "docx": "Papers", "jpg": "Pictures", "png": "Pictures", "csv": "Tables", "xlsx": "Tables"}


@cache
def _tidied() -> World:
    rng = random.Random("tidied")
    before: Files = {"Papers/letter.pdf": b"a letter that was there before\n", "Pictures/.index": b"1\n"}
    after = dict(before)
    for number in range(380):
        suffix = rng.choice([*_PLACES, "JPG", "Pdf", "zip", "jpg.part", "txt"])
        name = f"{rng.choice(['', '', '', '.'])}{rng.choice(_WORDS)} {number}.{suffix}"
        data = f"{_prose(rng, 2)}\n".encode()
        before[name] = data
        target = _PLACES.get(suffix.lower())
        after[f"{target}/{name}" if target and not name.startswith(".") else name] = data
    before["letter.pdf"] = after["letter.pdf"] = b"another letter\n"
    moved = len(before.keys() - after.keys())
    return World(before, str(moved), after, [str(moved + 1)], [{"Papers/letter.pdf": b"another letter\n"}])


# Open points in source code are reported.
@cache
def _open_points() -> World:
    rng = random.Random("points")
    before: Files = {}
    points = list[tuple[str, str, int, str]]()
    for number in range(260):
        folder, suffix = (
            rng.choice(["src", "src/core", "src/core/io", "tests", "node_modules/lib"]),
            rng.choice(["py", "js", "md"]),
        )
        path, sign = f"{folder}/{rng.choice(_WORDS)}_{number}.{suffix}", "//" if suffix == "js" else "#"
        lines = list[str]()
        for line in range(1, rng.randint(20, 60)):
            who, text = rng.choice(["ben", "eve", "ana", "benita"]), _prose(rng, 1)
            match rng.randrange(30):
                case 0:
                    lines.append(f"    work()  {sign} TODO({who}): {text}")
                    if folder.startswith("src") and suffix != "md":
                        points.append((who, path, line, text))
                case 1:
                    lines.append(f"    {sign} {rng.choice(['todo', 'TODO', 'TODONE(ben)', 'FIXME(ben)'])}: {text}")
                case _:
                    lines.append(f"    work('{text}')")
        before[path] = "".join(f"{line}\n" for line in lines).encode()
    mine = sorted((path, line, text) for who, path, line, text in points if who == "ben")
    report = "# TODO ben\n\n" + "".join(f"- {path}:{line}: {text}\n" for path, line, text in mine)
    wrong = {"TODO.md": report.replace("src/core/io", "src/core").encode()}
    return World(before, str(len(mine)), before | {"TODO.md": report.encode()}, [str(len(points))], [wrong])


# Texts in an old encoding are converted.
@cache
def _converted() -> World:
    rng = random.Random("converted")
    before: Files = {}
    after: Files = {}
    extra = ("Größe", "café", "naïve", "Straße", "50 €", "“quoted”")
    for number in range(220):
        is_plain = rng.random() < 0.3
        words = (
            _prose(rng, 8) if is_plain else f"{_prose(rng, 4)} {rng.choice(extra)} {_prose(rng, 4)} {rng.choice(extra)}"
        )
        text = f"{words}{rng.choice([chr(10), chr(13) + chr(10)])}{words}\n"
        path = f"texts/{rng.choice(['letters', 'notes', 'notes/old'])}/{number:03}.txt"
        before[path] = text.encode(rng.choice(["utf-8", "cp1252"]))
        after[path] = text.encode()
    before["texts/logo.bin"] = after["texts/logo.bin"] = bytes(range(256)) * 8
    changed = [path for path in before if before[path] != after[path]]
    wrong = [
        {changed[0]: after[changed[0]].replace(b"\r\n", b"\n") + b"\n"},
        {changed[1]: before[changed[1]].decode("cp1252").encode("utf-8-sig")},
    ]
    return World(before, str(len(changed)), after, [str(len(before))], wrong)


# Records in JSON are changed.
@cache
def _records() -> World:
    rng = random.Random("records")
    before: Files = {}
    after: Files = {}
    changed = 0
    for number in range(300):
        indent, is_expired = rng.choice([2, 4, None]), rng.random() < 0.3
        plan = rng.choice(["trial", "trial-extended", "basic", "pro"])
        record = {
            "id": number,
            "name": rng.choice(_PEOPLE),
            "plan": plan,
            "history": [{"plan": "trial", "until": "2026-01-31"}],
            "valid_until": f"2026-{rng.randint(1, 6) if is_expired else rng.randint(11, 12):02}-15",
            "price": 10.10,
        }
        path = f"accounts/{number % 10}/{number:04}.json"
        before[path] = json.dumps(record, indent=indent, ensure_ascii=False).encode()
        if plan == "trial" and is_expired:
            changed += 1
            record["plan"] = "expired"
        after[path] = json.dumps(record, indent=indent, ensure_ascii=False).encode()
    path = next(path for path in before if before[path] != after[path])
    wrong = [{path: after[path] + b"\n"}, {path: before[path].replace(b'"trial"', b'"expired"')}]
    return World(before, str(changed), after, [str(changed + 1)], wrong)


# Links between pages that lead nowhere are found.
@cache
def _links() -> World:
    rng = random.Random("links")
    folders = ("guide", "guide/setup", "reference", "blog/2026")
    paths = [f"site/{rng.choice(folders)}/{rng.choice(_WORDS)}-{number}.md" for number in range(320)]
    files: Files = {}
    broken = list[str]()
    for path in paths:
        lines = [f"# {_prose(rng, 1)}"]
        for _ in range(rng.randint(2, 7)):
            target = rng.choice(paths)
            up = "../" * path.removeprefix("site/").count("/")
            link = up + target.removeprefix("site/")
            match rng.randrange(40):
                case 0:
                    link = link.replace(".md", ".html")
                    broken.append(f"{path} {link}")
                case 1:
                    link = f"https://example.org/{rng.randint(1, 99)}.md"
                case 2:
                    link += "#install"
                case _:
                    pass
            lines.append(f"{_prose(rng, 2)} See [{rng.choice(_WORDS)}]({link}).")
        files[path] = "\n\n".join([*lines, ""]).encode()
    answer = "\n".join(sorted(broken))
    return World(files, answer, files, ["\n".join(sorted(broken)[1:]), answer.replace("../", "")])


# Translations are completed.
@cache
def _translations() -> World:
    rng = random.Random("translations")
    english = {
        f"{part}": {f"{word}_{at}": _prose(rng, 1) for word in _WORDS for at in range(4)}
        for part in ("menu", "errors", "mail")
    }
    missing = 0
    french: dict[str, dict[str, str]] = {}
    completed: dict[str, dict[str, str]] = {}
    for part, texts in english.items():
        french[part], completed[part] = {}, {}
        for key, text in texts.items():
            completed[part][key] = f"TRADUIRE: {text}"
            if rng.random() < 0.05:
                missing += 1
                continue
            french[part][key] = completed[part][key] = rng.choice([f"« {text} »", f"à {text}", text])
    before = {
        f"locales/{name}.json": _json(texts) for name, texts in {"en": english, "fr": french, "fr-CA": french}.items()
    }
    after = before | {"locales/fr.json": _json(completed)}
    escaped = json.dumps(completed, indent=2).encode() + b"\n"
    return World(
        before,
        str(missing),
        after,
        [str(missing + 1)],
        [{"locales/fr.json": escaped}, {"locales/fr-CA.json": after["locales/fr.json"]}],
    )


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


_BUILDERS: Mapping[str, Callable[[], World]] = {
    "receipts": _receipts,
    "rebrand": _rebrand,
    "pools": _pools,
    "backup": _backup,
    "regions": _regions,
    "workbooks": _workbooks,
    "contracts": _contracts,
    "invoices": _invoices,
    "threshold": _threshold,
    "outage": _outage,
    "copies": _copies,
    "packed": _packed,
    "renamed": _renamed,
    "changelog": _changelog,
    "tidied": _tidied,
    "points": _open_points,
    "converted": _converted,
    "records": _records,
    "links": _links,
    "translations": _translations,
}


_TEXTS = read_texts(Path(__file__).with_suffix(".toml"))
TASKS: Sequence[Task] = [build_task(name, _TEXTS[name], build, _make, _verify) for name, build in _BUILDERS.items()]
ENDS: Mapping[str, Callable[[], Ends]] = {name: partial(_ends, build) for name, build in _BUILDERS.items()}
