"""`count_forms` shows a script how texts are written."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from mcp_batteries.scripts.runner import run_script

pytestmark = pytest.mark.anyio


async def _refuse(name: str, arguments: Mapping[str, Any]) -> str:
    raise AssertionError(f"{name} was called with {arguments}")


async def count_forms(items: Any) -> list[str]:
    outcome = await run_script(f"print(count_forms({json.dumps(items)}))", [], _refuse, 60)
    assert not outcome.error
    return outcome.output.splitlines()


async def test_few_texts_are_told_as_they_are_the_most_frequent_first() -> None:
    assert await count_forms(["b", "a", "b", " b", ""]) == ["[5 texts, 4 forms]", "2x b", "1x a", '1x " b"', '1x ""']


async def test_a_text_is_its_lines() -> None:
    assert await count_forms("a\r\nb\r\na\r\n") == ["[3 texts, 2 forms]", "2x a", "1x b"]


async def test_many_texts_are_alike_but_for_numbers() -> None:
    lines = [f"2026-11-{day:02} web{day % 3} took {day * 37} ms" for day in range(1, 31)]
    assert await count_forms([*lines, "web2 was down"]) == [
        "[31 texts, 2 forms]",
        "30x 2026-11-01 web1 took 37 ms (30 values)",
        "1x web2 was down",
    ]


NAMES = [
    *("Ana", "Bo", "Chen", "Dora", "Élise", "Фёдор", "Gil", "Hana", "Ida", "Jo", "Kim", "Lea", "Mo", "Nia", "Ola"),
    *("Pia", "Qi", "Rut", "Sam", "Tea", "Uma", "Vera", "Wim", "Xu", "Yara"),
]


async def test_or_but_for_what_stands_behind_a_label() -> None:
    lines = [f"{label}: {name} {number}" for number, name in enumerate(NAMES) for label in ("Net", "Total")]
    assert await count_forms([*lines, "Thank you\tall"]) == [
        "[51 texts, 3 forms]",
        "25x Net: Ana 0 (25 values)",
        "25x Total: Ana 0 (25 values)",
        "1x Thank you\tall",
    ]


async def test_names_of_files_are_told_apart_before_those_of_folders() -> None:
    paths = [f"services/{name}-{number}/{kind}.ini" for number, name in enumerate(NAMES) for kind in ("test", "live")]
    assert await count_forms(paths) == [
        "[50 texts, 2 forms]",
        "25x services/Ana-0/test.ini (25 values)",
        "25x services/Ana-0/live.ini (25 values)",
    ]


async def test_or_but_for_all_words_and_numbers() -> None:
    lines = [f"{name} {name}son: {number}" for number, name in enumerate(NAMES)]
    assert await count_forms([*lines, "Zoe = 3"]) == [
        "[26 texts, 2 forms]",
        "25x Ana Anason: 0 (25 values)",
        "1x Zoe = 3",
    ]


async def test_forms_of_few_values_are_told_as_they_are_beside_those_of_many() -> None:
    vendors = ["Hotel Lindner", "Cafe Roma", "Taxi"]
    lines = [f"Vendor: {vendors[number % 3]}" for number in range(30)]
    lines += [f"Guest: {name} {name}son" for name in NAMES] + [f"Total: {number}.50 EUR" for number in range(40)]
    assert await count_forms(lines) == [
        "[95 texts, 5 forms]",
        "40x Total: 0.50 EUR (40 values)",
        "25x Guest: Ana Anason (25 values)",
        *(f"10x Vendor: {vendor}" for vendor in vendors),
    ]


async def test_of_too_many_forms_the_most_frequent_and_the_rarest_are_told() -> None:
    lines = ["-" * length for length in range(1, 31) for _ in range(31 - length)]
    title, *forms = await count_forms(lines)
    assert title == "[465 texts, 30 forms]"
    assert [form.split()[0] for form in forms] == [
        *(f"{count}x" for count in range(30, 14, -1)),
        "(95",
        *("4x", "3x", "2x", "1x"),
    ]
    assert forms[16] == "(95 of 10 forms between)"


async def test_rows_are_told_by_column() -> None:
    rows = [{"region": region, "amount": f"{number}.50"} for number, region in enumerate(["North", "South "] * 10)]
    assert await count_forms([*rows, {"region": None, "day": "1 May"}]) == [
        "[21 rows]",
        'region: 10x North | 10x "South " | 1x null',
        "amount (in 20 rows): 20x 0.50 (20 values)",
        "day (in 1 rows): 1x 1 May",
    ]


async def test_what_is_no_text_is_told_as_one_and_long_texts_are_cut() -> None:
    assert await count_forms([1, [2], 1, {"a": 3}]) == ["[4 texts, 3 forms]", "2x 1", "1x [2]", '1x {"a":3}']
    assert await count_forms(["y" * 1000]) == ["[1 texts, 1 forms]", f"1x {'y' * 100}..."]
    assert await count_forms([]) == ["[0 texts, 0 forms]"]
    assert await count_forms("") == ["[0 texts, 0 forms]"]


async def test_what_has_no_json_is_told_as_undefined_and_what_is_no_list_of_texts_ends_the_script_alone() -> None:
    script = """
      const hidden = Object.assign([1], {toJSON: () => undefined});
      print(count_values([hidden, 1]), count_forms([hidden, 1]));
      Array.prototype.toJSON = () => 5;
      try { count_forms(["a"]); } catch (error) { print(error); }
      print("goes on");
    """
    outcome = await run_script(script, [], _refuse, 60)
    assert outcome.error == ""
    assert outcome.output.splitlines() == [
        "[2 values, 2 different] 1x undefined | 1x 1 [2 texts, 2 forms]",
        "1x undefined",
        "1x 1",
        "Error: these can't be counted: TypeError",
        "goes on",
    ]


async def test_a_text_of_many_megabytes_is_told_by_its_beginning() -> None:
    texts = """["a ".repeat(5e6), "a ".repeat(5e6) + "!", "!"]"""
    outcome = await run_script(f"print(count_forms({texts}))", [], _refuse, 60)
    assert outcome.error == ""
    shown = f"1x {'a ' * 50}..."
    assert outcome.output.splitlines() == ["[3 texts, 3 forms]", shown, shown, "1x !"]


async def test_many_lines_take_little_time_and_the_longest_of_a_page_too() -> None:
    script = """
      const lines = Array.from({length: 50000}, (_, n) => `${n} GET /orders/${n % 977} user=${n % 91} ${n % 400}ms`);
      print(count_forms([...lines, "a ".repeat(100000), "1".repeat(200000), ".".repeat(200000)]));
    """
    outcome = await run_script(script, [], _refuse, 60)
    assert not outcome.error
    assert outcome.output.splitlines()[:2] == [
        "[50003 texts, 4 forms]",
        "50000x 0 GET /orders/0 user=0 0ms (50000 values)",
    ]


async def test_a_number_of_any_length_takes_no_long_time() -> None:
    lines = ["1" * 300_000, *("-" * length for length in range(1, 13)), "12ab 3_4 5", "7cd 8_9 0"]
    counts = await count_forms(lines)
    assert counts[0] == "[15 texts, 15 forms]"


async def test_values_are_counted_each_the_most_frequent_first() -> None:
    outcome = await run_script(
        "print(count_values([3, 'b', 3, null, true, {a: 1}, 'b', ' ', 3]));"
        "print(count_values('a\\nb\\na\\n'), count_values([]), count_values(new Set([1])));"
        "const many = []; for (let n = 0; n < 100; n++) many.push(n < 60 ? n % 30 : n);"
        "print(count_values(many).slice(-60))",
        [],
        _refuse,
        60,
    )
    assert outcome.error == ""
    first, second, third = outcome.output.splitlines()
    assert first == '[9 values, 6 different] 3x 3 | 2x b | 1x null | 1x true | 1x {"a":1} | 1x " "'
    assert second == "[3 values, 2 different] 2x a | 1x b [0 values, 0 different] [1 values, 1 different] 1x 1"
    assert third.endswith("| 1x 69 | (30 of 30 other values)")
