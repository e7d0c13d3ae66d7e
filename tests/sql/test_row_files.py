"""What the first list of tables says of the files in the operator's folder."""

import json
from pathlib import Path

import pytest

from mcp_batteries.sql.results.row_files import RowFiles


def listed(folder: Path) -> str:
    files = RowFiles.in_folder(str(folder))
    assert files is not None
    return files.text()


def test_few_files_are_listed_with_their_first_lines(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("\ufeffNr;Betrag\r\n 1;1.200,50 €\r\n2;\r\n3;0\r\n".encode())
    (tmp_path / "b.tsv").write_bytes("Größe\tName\n1\tMüller".encode("cp1252"))
    (tmp_path / "c.json").write_text(json.dumps([{"id": 1, "name": "x\ny"}], indent=4), "utf-8")
    (tmp_path / "d.jsonl").write_text(json.dumps({"text": "é" * 3000}, ensure_ascii=False) + "\n", "utf-8")
    (tmp_path / "e.csv").write_text("a,b\x1b[2J\n", "utf-16")
    assert listed(tmp_path).split("\n") == [
        "the folder for files: 5 files with rows",
        "- a.csv: 40 bytes, 4 lines",
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
