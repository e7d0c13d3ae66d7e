"""What is found by its bytes in a large part is what a parser would find."""

import io
import random
import re

import pytest

from mcp_fs.engine.documents.formats.archives import Unreadable
from mcp_fs.engine.documents.formats.tables.matching_elements import find_elements

PATTERN = re.compile(rb"x")


def find(data: bytes, name: bytes = b"c") -> list[tuple[int, bytes]]:
    return list(find_elements(io.BytesIO(data), name, PATTERN))


def test_the_beginning_comes_first_then_what_matches_with_its_number() -> None:
    data = b'<s><cols x="1"/><d><c r="A"/><c r="x"/><c>x</c><c >a</c>x<c>b<v>x</v></c></d><colBreaks x="2"/></s>'
    assert find(data) == [
        (-1, b'<s><cols x="1"/><d>'), (1, b'<c r="x"/>'), (2, b"<c>x</c>"), (4, b"<c>b<v>x</v></c>"),
    ]  # fmt: skip
    assert find(b"<n:s><n:c>x</n:c></n:s>") == [(-1, b"<n:s>"), (0, b"<n:c>x</n:c>")]
    assert find(b"<s>x</s>") == find(b"") == []
    assert list(find_elements(None, b"c", PATTERN)) == []
    with pytest.raises(Unreadable, match="no end"):
        find(b"<s><c>x</c><c>x")


@pytest.mark.parametrize("seed", range(3))
def test_elements_across_blocks_are_found_once(seed: int) -> None:
    rng = random.Random(seed)
    elements: list[bytes] = []
    for number in range(60_000):
        text = rng.choice((b"x", b"", b"y" * rng.randrange(40), b"<v>x</v><v>x</v>"))
        elements.append(b'<c r="%d">%s</c>' % (number, text))
    expected = [(number, element) for number, element in enumerate(elements) if b"x" in element]
    assert find(b"<s>" + b"\n".join(elements) + b"</s>" + b" x" * 400_000)[1:] == expected
