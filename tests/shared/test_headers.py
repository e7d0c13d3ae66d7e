"""Headers that are found by name are those of Starlette."""

import random

from starlette.datastructures import Headers

from mcp_batteries.transports.http.headers import HeaderMap

NAMES = [b"accept", b"host", b"mcp-session-id", b"x-caf\xe9"]
ASKED = [*(name.decode("latin-1") for name in NAMES), "Accept", "MCP-Session-Id", "origin", ""]


def test_what_is_found_is_what_starlette_finds() -> None:
    chance = random.Random(1)
    for _ in range(300):
        raw = [(chance.choice(NAMES), chance.randbytes(chance.randint(0, 3))) for _ in range(chance.randint(0, 6))]
        known, theirs = HeaderMap(raw), Headers(raw=raw)
        for name in ASKED:
            assert (name in known, known.get(name), known.get(name, "none")) == (
                name in theirs,
                theirs.get(name),
                theirs.get(name, "none"),
            )
            assert known.getlist(name) == theirs.getlist(name)
        assert known.items() == theirs.items()
        assert dict(known) == dict(theirs)
