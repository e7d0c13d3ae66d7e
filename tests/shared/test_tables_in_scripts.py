"""A script reads the text of a table as objects."""

import csv
import io
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter
from mcp import Client

from mcp_batteries.scripts.runner import Outcome, run_script
from mcp_batteries.settings import load
from mcp_fs.server import build
from mcp_fs.settings import Settings

pytestmark = pytest.mark.anyio


async def _refuse(name: str, arguments: Mapping[str, Any]) -> str:
    raise AssertionError(f"{name} was called with {arguments}")


async def run(script: str) -> Outcome:
    return await run_script(script, [], _refuse, 60)


async def read(*texts: str) -> Any:
    outcome = await run(f"return JSON.stringify({json.dumps(texts)}.map((text) => text.rows()))")
    assert not outcome.error
    return json.loads(outcome.output)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a,b\n1,2\n", [{"a": "1", "b": "2"}]),
        ('id;name\r\n1;"Smith; ""Jo"""\r\n2;\r\n', [{"id": "1", "name": 'Smith; "Jo"'}, {"id": "2", "name": ""}]),
        ('"a, b";c\n"1\n2";3', [{"a, b": "1\n2", "c": "3"}]),
        ("a|b\n1|2\n\n", [{"a": "1", "b": "2"}]),
        (" a , \n1,2\n3", [{"a": "1", "column 2": "2"}, {"a": "3", "column 2": ""}]),
        ('a\tb\n5" pipe\t"x" y\n', [{"a": '5" pipe', "b": '"x" y'}]),
        ("[sheet Orders, A1:B2]\nId\tNote\n1\t\"q\"\n", [{"Id": "1", "Note": '"q"'}]),
        ("[sheet B, hidden, B1:C3, hidden]\na\tb\n\n1\n", [{"a": "1", "b": ""}]),
        ("[sheet Void, empty]\n", []),
        ("[sheet C, A1:B5]\nReport of May\n\nin EUR\na\tb\n1\t2\n", [{"a": "1", "b": "2"}]),
        ("[sheet D, A1:A2]\na\n1\n", [{"a": "1"}]),
        ("[sheet E, A1:B3]\n\ta\n1\t2\n", [{"column 1": "1", "a": "2"}]),
        ("\ufeff\"a, b\",[c]\n1,2\n", [{"a, b": "1", "[c]": "2"}]),
        ("a;b\r1;2,3,4,5\r", [{"a": "1", "b": "2,3,4,5"}]),
        ("name\nx\n", [{"name": "x"}]),
        ("a,b,\n1,2,\n", [{"a": "1", "b": "2", "column 3": ""}]),
        ("a,b\n", []),
        ("", []),
    ],
)  # fmt: skip
async def test_rows_are_objects_by_the_names_in_the_first_line(text: str, rows: list[dict[str, str]]) -> None:
    assert await read(text) == [rows]


async def test_rows_are_those_that_were_written() -> None:
    chance = random.Random(20261130)
    texts: list[str] = []
    expected: list[list[dict[str, str]]] = []
    for _ in range(200):
        columns = [f"c{number}" for number in range(chance.randint(2, 5))]
        table = [
            {
                column: "".join(chance.choices([*'ab ,;|\t"\n', "\r\n"], k=chance.randint(0, 6))) + "x"
                for column in columns
            }
            for _ in range(chance.randint(0, 5))
        ]
        output = io.StringIO()
        writer = csv.DictWriter(
            output, columns, delimiter=chance.choice(",;\t|"), lineterminator=chance.choice(["\n", "\r\n"])
        )
        writer.writeheader()
        writer.writerows(table)
        texts.append(output.getvalue())
        expected.append(table)
    assert await read(*texts) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "Report\na,b\n",
            'a row has 2 fields and the table 1 columns: ["a","b"]; if a title stands above, leave it out: '
            "`.lines().slice(1).join('\\n').rows()`",
        ),
        ("a,b\n1,2,3\n", 'a row has 3 fields and the table 2 columns: ["1","2","3"]'),
        ("a,b,a\n1,2,3\n", "several columns have one name: a, b, a"),
        ("[sheet One, A1:A1]\nx\n[sheet Two, A1:A1]\ny\n", "there are several sheets: read one, as by `a.xlsx!/NAME`"),
        ("[sheet One, A1:A9]\nx\n[cut after 5 s]\n", "the sheet is not whole: [cut after 5 s]"),
        (
            "[sheet One, not readable: it is no XML]\n",
            "the first line names no columns: [sheet One, not readable: it is no XML]",
        ),
        ("[Sheet1]\na | b\n", "the first line names no columns: [Sheet1]"),
        ('["a","b"]\n[1,2]\n', "these are rows in JSON, which are objects by `TOOL.all()`"),
    ],
)
async def test_what_is_no_table_is_refused(text: str, why: str) -> None:
    outcome = await run(f"{json.dumps(text)}.rows()")
    assert outcome.error == f"line 1: Error: {why}"


async def test_rows_of_a_sheet_have_their_cells_where_they_are(tmp_path: Path) -> None:
    cells = {"B2": "id", "C2": "note", "N2": "end", "B3": 1, "C3": "[C9] here", "B8": 2, "N8": "z", "N9": "last"}
    book: Any = xlsxwriter.Workbook(tmp_path / "gaps.xlsx")
    sheet = book.add_worksheet()
    for place, value in cells.items():
        sheet.write(place, value)
    sheet.write_comment("B3", "look here")
    book.close()
    script = """
        const text = read_text({path: "gaps.xlsx"});
        print(text);
        return text.rows().map(({id, note, end}) => [id, note, end]);
    """
    async with Client(build(load(Settings, [str(tmp_path)]))) as client:
        answer = await client.call_tool("call_tools", {"script": script})
    output = answer.content[0].text  # type: ignore[union-attr]
    # If the text of a sheet has no such lines and cells any more, a script needs not know them.
    assert "\n[row 8]\n" in output and "[N8] z" in output and "\n[comment B3]" in output, output
    assert output.endswith('\n[["1","[C9] here",""],["2","","z"],["","","last"]]\n')


async def run_on_sheet(folder: Path, rows: Sequence[Sequence[str | int]], script: str) -> str:
    book: Any = xlsxwriter.Workbook(folder / "a.xlsx")
    sheet = book.add_worksheet()
    for number, cells in enumerate(rows):
        sheet.write_row(number, 0, cells)
    book.close()
    async with Client(build(load(Settings, [str(folder)]))) as client:
        answer = await client.call_tool("call_tools", {"script": script})
    return answer.content[0].text  # type: ignore[union-attr]


async def test_what_stands_below_a_title_is_told_to_be_taken_for_the_columns(tmp_path: Path) -> None:
    rows = [["Orders of\n2025"], [], ["Region", "Amount"], ["North", 2]]
    output = await run_on_sheet(tmp_path, rows, 'return read_text({path: "a.xlsx"}).rows()')
    told = "[rows() took for columns: Region, Amount (below Orders of"
    assert output.startswith(told) and output.endswith(']\n[{"Region":"North","Amount":"2"}]\n'), output
    # A script fails where other columns are meant.
    output = await run_on_sheet(tmp_path, rows, 'return read_text({path: "a.xlsx"}).rows()[0].Total.length')
    assert "TypeError" in output and told in output, output


@pytest.mark.parametrize(
    "rows",
    [
        [["Name"], ["Ann"], ["Bob", "absent"], ["Cy"]],
        [["Name"], ["Ann"], ["Bob", "absent"]],
        [["Name"], ["Ann", 3], ["Bob", 4]],
        [["Name"], ["Ann", "2025-01-31"], ["Bob", "2025-02-28"]],
    ],
)
async def test_no_row_of_a_sheet_is_taken_for_its_columns(tmp_path: Path, rows: Sequence[Sequence[str | int]]) -> None:
    output = await run_on_sheet(tmp_path, rows, 'return read_text({path: "a.xlsx"}).rows()')
    assert "a row has 2 fields and the table 1 columns" in output, output
    # As it says, a part of the sheet can be read.
    assert "as by `a.xlsx!/NAME!3:99`" in output, output
    output = await run_on_sheet(tmp_path, rows, 'return read_text({path: "a.xlsx!/Sheet1!3:99"}).rows().length')
    assert output.endswith(f"{len(rows) - 3}\n"), output


async def test_rows_of_a_long_file_are_those_of_all_its_pages(tmp_path: Path) -> None:
    lines = [f'{number},"note, {number}"\n' for number in range(60_000)]
    (tmp_path / "long.csv").write_text("id,note\n" + "".join(lines))
    script = """
        const rows = read_text.all({path: "long.csv"}).join("\\n").rows();
        print(rows.length, JSON.stringify(rows.at(-1)), read_text({path: "long.csv", head: 2}).rows().length);
    """
    async with Client(build(load(Settings, [str(tmp_path)]))) as client:
        answer = await client.call_tool("call_tools", {"script": script})
    assert '60000 {"id":"59999","note":"note, 59999"} 1' in answer.content[0].text  # type: ignore[union-attr]


async def test_a_script_reads_more_files_at_once_than_a_model(tmp_path: Path) -> None:
    for number in range(60):
        (tmp_path / f"{number}.txt").write_text("x\n")
    script = 'return read_files({paths: ["*.txt"]}).lines().filter((line) => line.startsWith("=== ")).length'
    names = [f"{number}.txt" for number in range(60)]
    async with Client(build(load(Settings, [str(tmp_path)]))) as client:
        answer = await client.call_tool("call_tools", {"script": script})
        refusal = await client.call_tool("read_files", {"paths": names})
    assert answer.content[0].text.splitlines()[-1] == "60"  # type: ignore[union-attr]
    assert refusal.is_error
    assert "`paths` names 60 files. Name at most 50." in refusal.content[0].text  # type: ignore[union-attr]
