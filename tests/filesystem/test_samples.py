"""A tree with samples shows how files of each kind begin."""

from __future__ import annotations

from pathlib import Path

import pytest

from filesystem.documents import pdf
from filesystem.reading import fill, served
from filesystem.tool_calls import Tools

pytestmark = pytest.mark.anyio


async def test_two_files_of_each_kind_are_begun(tmp_path: Path) -> None:
    fill(
        tmp_path,
        {
            **{f"sales/{month:02}.csv": f"month;amount\n{month};1,50\n" for month in range(1, 13)},
            "sales/readme.md": "# Sales\n" + "line\n" * 100,
            "bill.PDF": pdf("Invoice 7"),
            "photo.png": b"\x89PNG\r\n\x1a\n\0\0",
            "deep/er/x.log": "too deep\n",
            ".hidden.csv": "hidden\n",
            "key.pem": "secret\n",
        },
    )
    answer = (await Tools(served(tmp_path)).list_tree(depth=2, samples=True)).text()
    tree, *samples = answer.split("\n=== ")
    assert "01.csv ... 12.csv (12 files)" in tree
    assert [sample.partition(" [")[0] for sample in samples] == [
        "sales/01.csv",
        "sales/12.csv",
        "bill.PDF",
        "sales/readme.md",
    ]
    assert "month;amount\n1;1,50" in answer and "Invoice 7" in answer
    assert answer.count("line\n") == 3 and answer.endswith("line")
    assert "secret" not in answer and "too deep" not in answer and "hidden\n" not in answer
    assert "===" not in (await Tools(served(tmp_path)).list_tree(depth=2)).text()


async def test_kinds_without_a_sample_are_counted(tmp_path: Path) -> None:
    fill(tmp_path, {f"{number}.{kind}": "text\n" for number, kind in enumerate("aabcdefgh")})
    answer = (await Tools(served(tmp_path)).list_tree(samples=True)).text()
    assert answer.endswith("[samples are of 6 of 8 kinds, those with the most files]")
