"""Who subscribed under another spelling of a name hears of it, under the URI they used."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.serving import connected
from filesystem.reading import on_linux
from mcp_batteries.testing.wire import MODERN, WireError


@pytest.mark.share(1)
@pytest.mark.diagonal
@on_linux
@pytest.mark.anyio
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
@pytest.mark.parametrize(
    ("real", "asked"),
    [
        ("cafe\u0301/re\u0301sume\u0301.txt", "caf\u00e9/r\u00e9sum\u00e9.txt"),
        ("caf\u00e9.txt", "cafe\u0301.txt"),
        ("at 1.23\u202fPM.png", "at 1.23 PM.png"),
    ],
)
async def test_another_spelling_is_told_under_the_uri_that_was_asked_for(
    tmp_path: Path, revision: str, real: str, asked: str
) -> None:
    file = tmp_path / real
    file.parent.mkdir(exist_ok=True)
    file.write_text("old", "utf-8")
    async with connected("stdio", revision, "mcp_fs", [str(tmp_path)]) as wire:
        uri = (tmp_path / asked).as_uri()
        await wire.subscribe(uri)
        file.write_text("newer", "utf-8")
        await wire.updated(uri)


@on_linux
@pytest.mark.anyio
async def test_a_file_that_is_created_in_another_spelling_is_told(tmp_path: Path) -> None:
    async with connected("stdio", MODERN, "mcp_fs", [str(tmp_path)]) as wire:
        uri = (tmp_path / "caf\u00e9.txt").as_uri()
        await wire.subscribe(uri)
        (tmp_path / "cafe\u0301.txt").write_text("new", "utf-8")
        await wire.updated(uri)


@pytest.mark.share(2)
@on_linux
@pytest.mark.anyio
@pytest.mark.parametrize("name", ["out", "out/below", "out/*.log", "folder/**", "gone/[ab]", "open[", "a{b/**", ".env"])
async def test_what_can_never_be_told_is_refused(tmp_path: Path, name: str) -> None:
    served = tmp_path / "served"
    served.mkdir()
    (tmp_path / "outside").mkdir()
    (served / "out").symlink_to(tmp_path / "outside")
    (served / "in").symlink_to("later")  # which may come
    (served / "a[1].txt").write_text("")  # which is there, whatever it is called
    async with connected("stdio", "2025-11-25", "mcp_fs", [str(served)]) as wire:
        with pytest.raises(WireError, match=r"outside|does not exist|protected|has an open"):
            await wire.subscribe(f"{served.as_uri()}/{name}")
        await wire.subscribe(f"{served.as_uri()}/in")
        await wire.subscribe(f"{served.as_uri()}/a%5B1%5D.txt")
