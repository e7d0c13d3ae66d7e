"""What the first list of tables says of the files in the operator's folder."""

import json
from pathlib import Path
from typing import Any

import pytest

from mcp_batteries.sql.results import row_files
from mcp_batteries.sql.results.row_files import RowFiles


def listed(folder: Path) -> str:
    files = RowFiles.in_folder(str(folder))
    assert files is not None
    return files.text()


def test_few_files_are_listed_with_their_first_lines(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("\ufeffNr;Betrag\r\n 1;1.200,50 €\r\n2;\r\n".encode())
    (tmp_path / "b.tsv").write_bytes("Größe\tName\n1\tMüller".encode("cp1252"))
    (tmp_path / "c.json").write_text(json.dumps([{"id": 1, "name": "x\ny"}], indent=4), "utf-8")
    (tmp_path / "d.jsonl").write_text(json.dumps({"text": "é" * 3000}, ensure_ascii=False) + "\n", "utf-8")
    (tmp_path / "e.csv").write_text("a,b\x1b[2J\n", "utf-16")
    assert listed(tmp_path).split("\n") == [
        "the folder for files: 5 files with rows",
        "- a.csv: 35 bytes, 3 lines",
        "  |Nr;Betrag",
        "  | 1;1.200,50 €",
        "  |2;",
        "- b.tsv: 19 bytes, 2 lines, not UTF-8",
        "  |Größe\tName".replace("\t", r"\t"),
        r"  |1\tMüller",
        "- c.json: 55 bytes",
        r'  |[ { "id": 1, "name": "x\ny" } ]',
        "- d.jsonl: 6,013 bytes, 1 line",
        f'  |{{"text": "{"é" * 150}…',
        "- e.csv: 18 bytes",
        r"  |a,b\x1b[2J",
    ]


def test_the_fields_of_small_files_are_described(tmp_path: Path) -> None:
    rows = "".join(f"{day:02}.02.2026;{day},5;x;\n\n" for day in range(1, 29))
    (tmp_path / "a.csv").write_text(f"\nDay;Sum;Note;\n{rows}", "utf-8")
    (tmp_path / "b.json").write_text(json.dumps([{"n: 1\n": n, "ok": n > 1, "t": "a  b"} for n in range(4)]), "utf-8")
    (tmp_path / "c.csv").write_text("one\n1\n\n2\n", "utf-8")
    (tmp_path / "d.csv").write_text(",".join(map(str, range(35))) + ("\n" + "," * 34) * 3, "utf-8")
    (tmp_path / "e.csv").write_text('a,b\n1,"x\n\ny"\n\n2,z\n3,z\n', "utf-8")
    lines = listed(tmp_path).split("\n")
    assert lines[1:13] == [
        "- a.csv: 566 bytes, 28 rows, 29 blank lines, fields are separated by semicolons, numbers have a decimal "
        "comma, dots between thousands, in `Sum`, fields without a name and without values are left out",
        '  Day: all different, "01.02.2026" to "28.02.2026"; dates as 31.12.2026',
        "  Sum: all different, 1.5 to 28.5",
        '  Note: "x":28',
        "- b.json: 162 bytes, 4 rows",
        "  n: 1 : all different, 0 to 3",
        "  ok: false:2, true:2",
        '  t: "a  b":4',
        "- c.csv: 9 bytes, 3 rows",
        "  one: all different, 1 to 2, 1 empty",
        "- d.csv: 199 bytes, 3 rows",
        "  0: empty",
    ]
    assert lines[-5:-1] == [
        "  29: empty",
        "  … 5 more fields",
        "- e.csv: 22 bytes, 3 rows",
        "  a: all different, 1 to 3",
    ]


def test_of_a_file_that_is_no_table_the_first_lines_are_shown(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n3\n4,5\n", "utf-8")
    assert listed(tmp_path).split("\n")[1:] == ["- a.csv: 14 bytes, 4 lines", "  |a,b", "  |1,2", "  |3"]


def test_descriptions_of_many_and_long_names_are_bounded(tmp_path: Path) -> None:
    names = ",".join("n" * 190 + str(number) for number in range(22))
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(names + ("\n" + "," * 21) * 3, "utf-8")
    (tmp_path / "c.json").write_text(json.dumps([{"k" * 5000: number} for number in range(3)]), "utf-8")
    text = listed(tmp_path)
    assert text.count(": empty") == 22 and "  |nnn" in text.partition("b.csv")[2]
    assert f"\n  {'k' * 300}…" in text and len(text) < 7000


def test_without_time_the_first_lines_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n2\n3\n4\n", "utf-8")
    monkeypatch.setattr(row_files, "_DESCRIPTION_SECONDS", -1)
    assert listed(tmp_path).split("\n")[1:] == ["- a.csv: 10 bytes, 5 lines", "  |a", "  |1", "  |2"]


def test_of_files_with_very_many_fields_the_first_lines_are_shown(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("," * 299 + "\n1" * 3, "utf-8")
    (tmp_path / "b.csv").write_text(("," * 299 + "\n") * 4, "utf-8")
    growing = [{f"{row}_{number}": 1 for number in range(90)} for row in range(4)]
    (tmp_path / "c.jsonl").write_text("\n".join(map(json.dumps, growing)), "utf-8")
    assert [line for line in listed(tmp_path).split("\n") if line.startswith("-")] == [
        "- a.csv: 305 bytes, 4 lines",
        "- b.csv: 1,200 bytes, 4 lines",
        "- c.jsonl: 3,923 bytes, 4 lines",
    ]


def test_a_file_that_grows_meanwhile_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a\n1\n2\n3\n", "utf-8")
    open_served_file = row_files.open_served_file

    def grow(*arguments: Any) -> Any:
        with path.open("a") as file:
            file.write("x" * 500_000)
        return open_served_file(*arguments)

    monkeypatch.setattr(row_files, "open_served_file", grow)
    assert "  |a\n" in listed(tmp_path)


def test_of_what_is_no_file_of_the_folder_nothing_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (tmp_path / "secret.csv").write_text("canary", "utf-8")
    (folder / "empty.csv").touch()
    try:
        (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    except OSError:
        pytest.skip("this system lets us make no links")
    assert listed(folder) == "the folder for files: 1 file with rows\n- empty.csv: 0 bytes, 0 lines"


def test_a_line_that_was_not_read_to_its_end_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"{'a' * 3990}\n{'b' * 40}\n", "utf-8")
    assert listed(tmp_path).endswith(f"\n  |{'a' * 160}…\n  |{'b' * 9}…")


def test_of_many_files_only_the_sizes_are_listed(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"{number}.csv").write_text("a,b\n", "utf-8")
    assert "\n- 0.csv: 4 bytes\n- 1.csv: 4 bytes\n" in listed(tmp_path)
