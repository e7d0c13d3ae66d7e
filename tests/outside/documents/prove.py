"""Reads real documents beside other libraries: `files-documents` of `python -m proofs`.

`MCP_TEST_DOCUMENTS` names a folder of documents; without it the corpus is fetched once, into the folder for temporary
files. Other libraries are asked as far as they are installed: `uv run --with pdfplumber,openpyxl,xlrd,extract-msg`.
"""

from __future__ import annotations

import os
import random
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from mcp_batteries.errors import Problem
from outside.documents.comparison import MOST_BYTES, Outcome, compare_document
from outside.documents.corpus import fetch_corpus, list_documents
from proofs.tally import Tally

__all__ = ["judge_documents", "known_differences", "prove"]


def prove(count: int, seed: int) -> Tally:
    """Read so many documents, drawn by a seed.

    Raises:
        SystemExit: there are fewer: what was not read is not proved.
    """
    documents = [path for path in _list_corpus() if path.stat().st_size <= MOST_BYTES]
    if len(documents) < count:
        raise SystemExit(
            f"There are {len(documents):,} documents, not {count:,}. Name fewer, or fill a folder by "
            "`python -m outside.documents.corpus FOLDER` and name it in MCP_TEST_DOCUMENTS."
        )
    random.Random(seed).shuffle(documents)
    return judge_documents(documents[:count], known_differences())


def known_differences() -> Mapping[str, Mapping[str, str]]:
    """Return by file and question why the other library says something else, which is no fault of the server."""
    return tomllib.loads(Path(__file__).with_name("known_differences.toml").read_text("utf-8"))


def judge_documents(documents: Iterable[Path], known: Mapping[str, Mapping[str, str]]) -> Tally:
    """Count in how many documents the server and another library say the same, and name the others."""
    tally = Tally()
    for path in documents:
        reasons = known.get(path.name, {})
        kind = path.suffix.lower()[1:]
        is_compared = False
        try:
            for answer in compare_document(path):
                is_compared |= answer.outcome.is_compared
                what = f"{answer.question}: {answer.outcome.value}"
                if answer.outcome is not Outcome.DIFFERENT:
                    tally.note(what)
                elif answer.question.partition(" ")[2] in reasons:
                    tally.note(f"{what} for a known reason")
                else:
                    tally.note(what, str(path), answer.refusal or "the texts differ")
        except Problem as refusal:
            tally.note(f"{kind}: read by nobody, as {_reason(refusal)}")
        else:
            if not is_compared:
                tally.note(f"{kind}: compared with nothing")
    return tally


def _reason(refusal: Problem) -> str:
    """Return why a document is refused, without its name."""
    return refusal.failure.rpartition("` ")[2].partition(":")[0].rstrip(".")


def _list_corpus() -> Sequence[Path]:
    """Return the documents of the folder that the caller names, or of the one that they are fetched into once."""
    named = os.environ.get("MCP_TEST_DOCUMENTS")
    if named is not None:
        return list_documents(Path(named))
    folder = Path(tempfile.gettempdir()) / "mcp-batteries-documents"
    if not folder.exists():
        # A fetch that ends half-way leaves nothing under the name that the next one trusts.
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=folder.name) as temporary:
            documents = Path(temporary) / "documents"
            fetch_corpus(documents)
            documents.rename(folder)
    return list_documents(folder)
