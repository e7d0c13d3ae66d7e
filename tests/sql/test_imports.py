"""Files come in as they are: a sample of `prove_imports`."""

import csv
import io
import json

import pytest

from mcp_batteries.sql.records import csv_texts, json_records
from sql.prove_imports import prove


@pytest.mark.anyio
@pytest.mark.parametrize(("server", "cases"), [("sqlite", 120), ("postgres", 40)])
async def test_a_sample_of_the_proof(server: str, cases: int) -> None:
    tally = await prove(cases, 3, [server])
    assert tally.wrong == []
    assert sum(tally.counts.values()) == cases and len(tally.counts) >= 4, tally.counts


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ('a"b,""', '"a""b",""'),
        ('a"b,', '"a""b",'),
        ('a"b,"x\ny"', '"a""b","x\ny"'),
        ('"x ""y""",a"', '"x ""y""","a"""'),
        ('"a,b",c', '"a,b",c'),
    ],
)
def test_a_stray_quote_changes_its_own_field_alone(written: str, text: str) -> None:
    raw = io.BytesIO(f"one,two\n{written}\n".encode())
    (_, _), (row, said) = csv_texts(raw, lambda *words: AssertionError(words))
    assert said == text
    assert next(csv.reader(io.StringIO(text))) == row


def test_an_array_behind_objects_is_a_record() -> None:
    raw = io.BytesIO(b'{"a": 1, "b": 2}\n[3, 4]\n[5, 6]\n')
    found = list(json_records(raw, lambda *words: AssertionError(words), json.loads))
    assert found == [["a", "b"], [1, 2], [3, 4], [5, 6]]
