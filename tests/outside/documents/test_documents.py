"""A share of `python -m proofs files-documents`: documents that the tests make and those that the libraries bring."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import docx
import pptx
import pytest

from filesystem.binary_workbooks import xls
from filesystem.documents import MAKERS
from filesystem.reading import fill
from mcp_batteries.errors import Invalid
from outside.documents import comparison
from outside.documents import prove as prove_module
from outside.documents.corpus import list_documents
from outside.documents.prove import judge_documents, known_differences, prove

WORDS = ["one", "two", "three", "four", "five"]


def read_path(path: Path) -> str:
    """Read a document as something else than it is."""
    return path.name


def test_other_libraries_read_the_same(tmp_path: Path) -> None:
    fill(tmp_path, {f"made.{suffix}": make(WORDS) for suffix, make in MAKERS.items()})
    for library in (docx, pptx):
        for template in (Path(str(library.__file__)).parent / "templates").glob("default.*"):
            shutil.copy(template, tmp_path)
    tally = judge_documents(list_documents(tmp_path), {})
    assert tally.wrong == []
    assert {"docx paragraphs: the same", "pptx paragraphs: the same", "odt paragraphs: the same"} <= tally.counts.keys()


def test_what_another_library_reads_and_the_server_does_not_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> str:
        raise Invalid(f"`{path.name}` is damaged.", "Leave it out.")

    fill(tmp_path, {"a.docx": MAKERS["docx"](WORDS)})
    monkeypatch.setattr(comparison, "read_document", refuse)
    tally = judge_documents(list_documents(tmp_path), {})
    assert tally.counts["docx paragraphs: differ"] == 1 and len(tally.wrong) == 1
    tally = judge_documents(list_documents(tmp_path), {"a.docx": {"paragraphs": "A reason."}})
    assert tally.counts["docx paragraphs: differ for a known reason"] == 1 and tally.wrong == []


def test_what_another_library_reads_otherwise_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, {"a.docx": MAKERS["docx"](WORDS)})
    monkeypatch.setattr(comparison, "read_document", read_path)
    tally = judge_documents(list_documents(tmp_path), {})
    assert tally.counts["docx paragraphs: differ"] == 1 and len(tally.wrong) == 1


def test_what_nobody_reads_is_counted_apart(tmp_path: Path) -> None:
    fill(tmp_path, {"b.xls": xls({(0, 0): 1.0}, is_encrypted=True)})
    tally = judge_documents(list_documents(tmp_path), {})
    assert tally.wrong == [] and tally.counts["xls: read by nobody, as is locked by a password"] == 1


def test_fewer_documents_than_were_asked_for_prove_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_TEST_DOCUMENTS", str(tmp_path))
    fill(tmp_path, {"a.docx": MAKERS["docx"](WORDS)})
    assert prove(1, 1).wrong == []
    with pytest.raises(SystemExit, match="There are 1 documents, not 2"):
        prove(2, 1)


def test_a_document_that_no_other_library_reads_is_counted_as_such(tmp_path: Path) -> None:
    fill(tmp_path, {"a.rtf": rb"{\rtf1 one}"})
    tally = judge_documents(list_documents(tmp_path), {})
    assert tally.wrong == [] and tally.counts == {"rtf: compared with nothing": 1}


def test_what_another_library_does_not_answer_is_counted_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_without_library(path: Path) -> object:
        raise ModuleNotFoundError("extract_msg")

    def is_same(theirs: object, text: str) -> bool:
        return True

    questions = {".docx": {"paragraphs": comparison.QUESTIONS[".docx"]["paragraphs"]}}
    questions[".docx"]["words"] = comparison.Question(read_without_library, is_same)
    monkeypatch.setattr(comparison, "QUESTIONS", questions)
    monkeypatch.setattr(comparison, "read_document", read_path)
    fill(tmp_path, {"a.docx": b"no zip"})
    tally = judge_documents(list_documents(tmp_path), {})
    assert tally.wrong == [] and tally.counts == {
        "docx paragraphs: the other library can't read it": 1,
        "docx words: the other library is not installed": 1,
        "docx: compared with nothing": 1,
    }


def test_a_failure_of_the_comparison_itself_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(theirs: object, text: str) -> bool:
        raise ValueError("a slip of ours")

    monkeypatch.setattr(comparison, "QUESTIONS", {".docx": {"paragraphs": comparison.Question(str, fail)}})
    fill(tmp_path, {"a.docx": MAKERS["docx"](WORDS)})
    with pytest.raises(ValueError, match="a slip of ours"):
        judge_documents(list_documents(tmp_path), {})


def test_a_fetch_that_was_interrupted_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(folder: Path) -> None:
        fill(folder, {"a.docx": MAKERS["docx"](WORDS)})
        raise KeyboardInterrupt

    def fetch(folder: Path) -> None:
        fill(folder, {name: MAKERS["docx"](WORDS) for name in ("a.docx", "b.docx")})

    monkeypatch.delenv("MCP_TEST_DOCUMENTS", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(prove_module, "fetch_corpus", interrupt)
    with pytest.raises(KeyboardInterrupt):
        prove(1, 1)
    monkeypatch.setattr(prove_module, "fetch_corpus", fetch)
    assert prove(2, 1).wrong == []


def test_each_known_difference_has_a_reason() -> None:
    for name, reasons in known_differences().items():
        assert reasons and all(reason.endswith(".") for reason in reasons.values()), name
