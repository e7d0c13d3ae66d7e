"""Names of files are served whatever the locale: they are UTF-8 on every disk of today."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_batteries.testing.wire import MODERN, StdioWire

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="file names are UTF-8 there in every locale"),
]

NAMES = ("日本語.txt", "naïve é.txt", "한글😀.txt", "Ελλάδα.txt", "plain.txt")


@pytest.fixture(scope="module")
def locales(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with locales of other encodings, which few machines have."""
    folder = tmp_path_factory.mktemp("locales")
    program = shutil.which("localedef")
    if program is None or not Path("/usr/share/i18n/charmaps/GBK.gz").exists():
        pytest.skip("there is no localedef with its sources (Debian's package `locales`) to make a locale of GBK")
    for source, encoding in (("zh_CN", "GBK"), ("en_US", "ISO-8859-1")):
        subprocess.run([program, "-i", source, "-f", encoding, str(folder / f"{source}.{encoding}")], check=True)
    return folder


async def serve_names(folder: Path, locale: str, locales: str = "") -> None:
    """Let mcp-fs, started under `locale`, list and read a folder of names of many scripts."""
    served = folder / "Ordner 資料"
    served.mkdir()
    for name in NAMES:
        (served / name).write_text(name, "utf-8")
    others = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHON"))}
    env = {**others, "LC_ALL": locale, "LOCPATH": locales}
    async with StdioWire([sys.executable, "-m", "mcp_fs", str(served)], revision=MODERN, env=env) as wire:
        await wire.open()
        listed = await wire.call("list_directory", path=".")
        text = listed["content"][0]["text"]
        assert not [name for name in NAMES if name not in text], text
        for name in NAMES:
            assert name in str(await wire.call("read_text", path=name))
        found = await wire.call("search_text", pattern="日本", path=".")
        assert "日本語.txt" in str(found)


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.parametrize("locale", ["C", "POSIX", "xx_XX.nothing"])
async def test_names_are_served_where_the_locale_says_nothing(locale: str, tmp_path: Path) -> None:
    await serve_names(tmp_path, locale)


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.parametrize("locale", ["zh_CN.GBK", "en_US.ISO-8859-1"])
async def test_names_are_served_in_a_locale_that_cannot_write_them(locale: str, tmp_path: Path, locales: Path) -> None:
    await serve_names(tmp_path, locale, str(locales))
