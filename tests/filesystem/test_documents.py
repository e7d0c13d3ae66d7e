"""Every file is text: documents that other libraries made, members of archives, and files made to do harm."""

from __future__ import annotations

import bz2
import email.message
import gzip
import io
import lzma
import os
import random
import re
import shutil
import string
import struct
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import pytest

from filesystem.documents import MAKERS, pdf, zipped
from filesystem.reading import fill, flat, served
from mcp_batteries.concurrency.cancellation import CancelToken, WorkCancelled
from mcp_batteries.errors import Invalid, NotFound, Problem, Refused, TooLarge, Unavailable
from mcp_batteries.processes import python_child
from mcp_batteries.testing.wire import StdioWire
from mcp_fs.engine.document_kinds import CUT_AT_DAMAGE, MAX_OUTPUT_BYTES, OLE
from mcp_fs.engine.documents import converter
from mcp_fs.engine.documents.formats.mails.messages import Mail
from mcp_fs.engine.listing.comparison import compare
from mcp_fs.engine.reading.media import read_media
from mcp_fs.engine.reading.text_page import LineIndex, PageRequest, read_page
from mcp_fs.engine.search import ripgrep, text_search
from mcp_fs.engine.search.query import Query
from mcp_fs.engine.search.sources import DocumentReader
from mcp_fs.engine.search.text_search import search_text
from mcp_fs.models import TextSlice


def read(folder: Path, path: str, part: PageRequest | None = None) -> TextSlice:
    return read_page(
        served(folder).readable(path), part or PageRequest(max_bytes=1_000_000), LineIndex(), CancelToken()
    )


def found(folder: Path, pattern: str, path: str = ".") -> str:
    answer = search_text([served(folder).readable(path)], Query(pattern, literal=True), None, CancelToken()).text()
    return "\n".join([answer.partition("\n")[0], *flat(answer)])


def words(seed: int, letters: str = string.ascii_letters + "éß漢") -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices(letters, k=12)) for _ in range(5)]


@pytest.mark.parametrize("suffix", MAKERS)
@pytest.mark.parametrize("seed", range(3))
def test_all_words_of_a_document_are_read_and_found_in_the_same_lines(suffix: str, seed: int, tmp_path: Path) -> None:
    wanted = words(seed, string.ascii_letters if suffix == "pdf" else string.ascii_letters + "éß漢&<")
    if suffix in ("epub",):
        wanted = [word.replace("&", "").replace("<", "") for word in wanted]
    fill(tmp_path, {f"folder/a.{suffix}": MAKERS[suffix](wanted), "folder/other.txt": "nothing\n"})
    piece = read(tmp_path, f"folder/a.{suffix}")
    lines = piece.body.split("\n")
    assert piece.hash is None and piece.status.count(" of ") == 2
    for word in wanted:
        (number,) = [number for number, line in enumerate(lines, 1) if word in line]
        assert f"folder/a.{suffix}:{number}:" in found(tmp_path, word)
        assert word in read(tmp_path, f"folder/a.{suffix}", PageRequest(start_line=number, end_line=number)).body


def test_what_the_text_of_each_kind_looks_like(tmp_path: Path) -> None:
    five = ["one", "two", "three", "four", "five"]
    fill(tmp_path, {f"a.{suffix}": make(five) for suffix, make in MAKERS.items()})
    expected = {
        "docx": "# one\ntwo\tafter a tab\n- an item\nthree | four\n\n[footer]\nfive\n",
        "xlsx": "[sheet First, A1:E2]\none\t3\t2.5\tTrue\t2026-01-02 03:04:00\n\ttwo\n"
        "[sheet Second, A1:C1]\nthree\tfour\tfive\n",
        "odt": "## one\ntwo\nthree\nfour\nbefore five\n",
        "ods": "[Sheet]\none | two | three | four | five\n",
        "eml": "From: a@example.org\nTo: b@example.org\nSubject: one\n\ntwo\nthree\nfour\nfive\n\n[attached]\n"
        "notes.txt\t14\n",
        "ipynb": "[cell 1, markdown]\none\n[cell 2, code]\ntwo\n[output]\nthree\n[output]\nfour\n"
        "[output: image/png left out]\n"
        "[error]\nfive\n",
    }
    for suffix, text in expected.items():
        assert read(tmp_path, f"a.{suffix}").body == text, suffix
    assert read(tmp_path, "a.pptx").body.startswith("[slide 1]\none\n[notes]\nnote 0\n[slide 2]\ntwo\n")
    assert read(tmp_path, "a.pdf").body.startswith("[page 1 of 5]\none\n[page 2 of 5]\ntwo\n")
    assert read(tmp_path, "a.epub").body.startswith("t\n# one\n")
    assert read(tmp_path, "a.eml!/notes.txt").body == "attached bytes"
    assert "iVBORw0KGgo" in read(tmp_path, "a.ipynb!/notebook.json").body
    assert "w:document" in read(tmp_path, "a.docx!/word/document.xml").body


def packed(members: dict[str, bytes], mode: Any) -> bytes:
    if mode == "zip":
        return zipped(dict(members))
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


@pytest.mark.parametrize("mode", ["zip", "w:", "w:gz", "w:bz2", "w:xz"])
def test_members_of_archives_are_read_listed_and_searched(mode: str, tmp_path: Path) -> None:
    inner = packed({"deep/c.txt": b"needle deep\n"}, "w:gz")
    members = {
        "in/readme.txt": b"first\nneedle\n", "./in/dotted.txt": b"x",
        "in/latin.txt": "été needle déjà\n".encode("cp1252"),
        "in/report.docx": MAKERS["docx"](["needle", "b", "c", "d", "e"]), "in/bin": bytes(range(256)) * 9,
        "inner.tgz": inner, ".env": b"needle=secret", "../../out.txt": b"needle out", "/abs.txt": b"needle abs",
    }  # fmt: skip
    fill(tmp_path, {"a.any": packed(members, mode)})
    assert read(tmp_path, "a.any!/in/readme.txt").body == "first\nneedle\n"
    assert read(tmp_path, "a.any!/in/dotted.txt").body == "x"
    assert "été needle" in read(tmp_path, "a.any!/in/latin.txt").body
    assert "# needle" in read(tmp_path, "a.any!/in/report.docx").body
    assert read(tmp_path, "a.any!/inner.tgz").body == "deep/c.txt\t12\n"
    assert read(tmp_path, "a.any!/inner.tgz!/deep/c.txt").body == "needle deep\n"
    listing = read(tmp_path, "a.any").body
    assert read(tmp_path, "a.any!").body == listing and read(tmp_path, "a.any!/").body == listing
    assert (
        "in/readme.txt\t13\n" in listing
        and "../../out.txt\tnot readable: its path leads out, or is not text\n" in listing
    )
    assert "in/readme.txt" in read(tmp_path, "a.any!/in").body and ".env" not in read(tmp_path, "a.any!/in").body
    with pytest.raises(Invalid, match="is binary"):
        read(tmp_path, "a.any!/in/bin")
    [media] = read_media(served(tmp_path).readable("a.any!/in/bin"), 1)
    assert media.data == members["in/bin"]
    with pytest.raises(NotFound, match=r"is not in the archive; near it are in/readme\.txt"):
        read(tmp_path, "a.any!/readme.txt")
    answer = found(tmp_path, "needle", "a.any")
    lines = sorted(line.partition(":")[0] for line in answer.splitlines()[1:])
    assert lines == ["a.any!/in/latin.txt", "a.any!/in/readme.txt", "a.any!/in/report.docx"], answer
    assert "a.any!/in/readme.txt:2:needle" in found(tmp_path, "needle", "a.any!/in")
    assert "deep/c.txt:1:needle deep" in found(tmp_path, "needle", "a.any!/inner.tgz!")


TAR = [
    f"tar --format={form} {packer} -cf" for form in ("v7", "ustar", "gnu", "pax") for packer in ("", "-z", "-j", "-J")
]


@pytest.mark.skipif(sys.platform != "linux", reason="has no GNU tar")
@pytest.mark.parametrize("command", [*TAR, "zip -qr", "zip -qr0"])
def test_archives_of_other_programs_hold_what_their_folder_held(command: str, tmp_path: Path) -> None:
    if shutil.which(command.split()[0]) is None:
        pytest.skip(f"has no {command.split()[0]}")
    rng = random.Random(command)
    files: dict[str, str | bytes] = {}
    for number in range(20):
        folders = rng.choices(
            ["a", "b c", "ü", "deep-" * (1 if "v7" in command else 15), ".hidden"], k=rng.randrange(3)
        )
        name = rng.choice(["plain.txt", "ö, ä.txt", "-dash", "two  blanks.md", "x" * 60])
        files["/".join([*folders, f"{number}{name}"])] = rng.randbytes(rng.randrange(3)).hex() + f"\nline {number}\n"
    fill(tmp_path / "in", files)
    subprocess.run([*command.split(), "../a.any", "."], cwd=tmp_path / "in", check=True, capture_output=True)
    for name, content in files.items():
        assert read(tmp_path, f"a.any!/{name}").body == content
    listed = dict(line.split("\t") for line in read(tmp_path, "a.any").body.splitlines())
    assert listed == {name: str(len(content)) for name, content in files.items()}
    hits = found(tmp_path, "line 1", "a.any").splitlines()[1:]
    assert sorted(line.split(":")[0] for line in hits) == sorted(
        f"a.any!/{name}" for name, content in files.items() if "line 1" in str(content)
    )


def test_what_a_path_says_outside_archives_stays_as_it_was(tmp_path: Path) -> None:
    fill(tmp_path, {"odd!/in/a.txt": "in a folder", "odd": "a file", "a.zip": zipped({"b!/c.txt": "odd member"})})
    assert read(tmp_path, "odd!/in/a.txt").body == "in a folder"
    assert read(tmp_path, "a.zip!/b!/c.txt").body == "odd member"
    with pytest.raises(NotFound, match="does not exist"):
        read(tmp_path, "none.zip!/a")
    with pytest.raises(NotFound, match="is not an archive"):
        read(tmp_path, "odd!/a")
    with pytest.raises(Refused, match="outside"):
        read(tmp_path, "a.zip!/../../x")


def test_secrets_in_archives_stay_secrets(tmp_path: Path) -> None:
    archive = zipped({"ok.txt": "TOKEN fine", "conf/.env": "TOKEN=1", "id_rsa": "TOKEN", ".aws/credentials": "TOKEN"})
    fill(tmp_path, {"a.zip": archive, "keys.pem": zipped({"x.txt": "TOKEN"}), "b.zip": zipped({"a.zip": archive})})
    for path in (
        "a.zip!/conf/.env",
        "a.zip!/id_rsa",
        "a.zip!/.aws/credentials",
        "keys.pem!/x.txt",
        "b.zip!/a.zip!/id_rsa",
    ):
        with pytest.raises(Refused, match="protected"):
            read(tmp_path, path)
    assert found(tmp_path, "TOKEN", "a.zip").splitlines()[1:] == ["a.zip!/ok.txt:1:TOKEN fine"]
    assert found(tmp_path, "TOKEN", "b.zip!/a.zip!").splitlines()[1:] == ["b.zip!/a.zip!/ok.txt:1:TOKEN fine"]


def test_links_in_archives_are_not_followed(tmp_path: Path) -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, kind, target in (
            ("out", tarfile.SYMTYPE, "/etc/passwd"), ("loop", tarfile.SYMTYPE, "loop"),
            ("hard", tarfile.LNKTYPE, "loop"), ("pipe", tarfile.FIFOTYPE, ""), ("disk", tarfile.BLKTYPE, ""),
        ):  # fmt: skip
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            archive.addfile(info)
    linked = io.BytesIO()
    with zipfile.ZipFile(linked, "w") as archive:
        info = zipfile.ZipInfo("out")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    fill(tmp_path, {"a.tar": file.getvalue(), "a.zip": linked.getvalue()})
    for path in ("a.tar!/out", "a.tar!/loop", "a.tar!/hard", "a.zip!/out"):
        with pytest.raises(NotFound, match="is a link in the archive"):
            read(tmp_path, path)
    for path in ("a.tar!/pipe", "a.tar!/disk"):
        with pytest.raises(NotFound, match="is not in the archive"):
            read(tmp_path, path)
    assert "root:" not in found(tmp_path, "root", "a.tar") + found(tmp_path, "root", "a.zip")


ENTITIES = '<!DOCTYPE x [<!ENTITY a "lol">' + "".join(
    f'<!ENTITY a{n} "{f"&a{n - 1 or str()};" * 10}">' for n in range(1, 12)
) + ']><x>&a11;</x>'  # fmt: skip
OUTSIDE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x><p><t>&a;</t></p></x>'


def test_entities_are_neither_expanded_nor_fetched(tmp_path: Path) -> None:
    for name, part in (("a.docx", "word/document.xml"), ("b.odt", "content.xml"), ("c.pptx", "ppt/presentation.xml")):
        for text in (ENTITIES, OUTSIDE):
            fill(tmp_path, {name: zipped({part: text})})
            with pytest.raises(Invalid, match="declares entities of its own"):
                read(tmp_path, name)


@pytest.mark.slow
def test_bombs_are_bounded(tmp_path: Path) -> None:
    """None takes more than its time, and none brings more than 64 MiB."""
    mega = b"A" * 999_999 + b"\n"
    with (
        zipfile.ZipFile(tmp_path / "big.zip", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a.txt", "w") as member,
    ):
        for _ in range(200):
            member.write(mega)
    (tmp_path / "big.log.gz").write_bytes(gzip.compress(mega * 200))
    for path in ("big.zip!/a.txt", "big.log.gz"):
        piece = read(tmp_path, path, PageRequest())
        assert f"cut after {MAX_OUTPUT_BYTES:,} bytes" in piece.status and piece.size == MAX_OUTPUT_BYTES
    endless = zlib_of(b"<p>" + b" " * 400_000_000)
    for name in ("a.docx", "a.odt"):
        part = "word/document.xml" if name == "a.docx" else "content.xml"
        (tmp_path / name).write_bytes(raw_zip(part, endless, 400_000_003))
    begun = time.monotonic()
    for name in ("a.docx", "a.odt"):
        with pytest.raises(Problem):
            read(tmp_path, name)
    assert time.monotonic() - begun < 60, "the limit is two seconds of work each, however busy the machine"
    assert read(tmp_path, "big.zip").body == "a.txt\t200,000,000\n", "another process took its place"


def zlib_of(data: bytes) -> bytes:
    import zlib

    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def raw_zip(name: str, packed_data: bytes, size: int) -> bytes:
    """A zip archive with one member as it is packed already; its checksum is wrong, which shows at its end only."""
    encoded = name.encode()
    fields = struct.pack("<HHHHHIII", 20, 0, 8, 0, 0, 0, len(packed_data), size)
    local = b"PK\3\4" + fields + struct.pack("<HH", len(encoded), 0) + encoded + packed_data
    central = (
        b"PK\1\2" + struct.pack("<H", 20) + fields + struct.pack("<HHHHHII", len(encoded), 0, 0, 0, 0, 0, 0) + encoded
    )
    return local + central + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(local), 0)


@pytest.mark.share(2)
@pytest.mark.parametrize("seed", range(4))
def test_damaged_documents_are_told_from_good_ones_and_stop_nothing(seed: int, tmp_path: Path) -> None:
    """Cut, overwritten and mixed up at random: each is read, or refused in a sentence; the next one is read again."""
    rng = random.Random(seed)
    good = {suffix: make(words(seed)) for suffix, make in MAKERS.items() if suffix != "pdf"}
    good |= {"pdf": pdf("page"), "zip": zipped({"a.txt": "x" * 999}), "tar": packed({"a": b"x" * 999}, "w:")}
    good |= {"tgz": packed({"a": b"x" * 999}, "w:gz"), "gz": gzip.compress(b"x" * 999)}
    for suffix, data in good.items():
        for _ in range(4):
            broken = bytearray(data)
            for _ in range(rng.choice([1, 3, 30])):
                at = rng.randrange(len(broken) or 1)
                broken[at : at + rng.randrange(20)] = rng.randbytes(rng.randrange(20))
            if rng.random() < 0.5:
                del broken[rng.randrange(len(broken) or 1) :]
            fill(tmp_path, {f"a.{suffix}": bytes(broken)})
            for path in (f"a.{suffix}", f"a.{suffix}!/a.txt"):
                try:
                    read(tmp_path, path)
                except Problem as problem:
                    assert f"`{path}`" in str(problem) and "Traceback" not in str(problem)
            found(tmp_path, "x")
    fill(tmp_path, {"good.docx": good["docx"]})
    assert words(seed)[0] in read(tmp_path, "good.docx").body


@pytest.mark.share(1)
@pytest.mark.parametrize("mode", ["gz", "bz2", "xz"])
def test_what_was_packed_is_read_and_searched_up_to_the_damage(mode: str, tmp_path: Path) -> None:
    """A log that is still being packed, or half a download: the text that is there, and that the rest is missing."""
    pack = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[mode]
    rng = random.Random(mode)
    lines = "".join(f"line {number} {rng.random()}\n" for number in range(60_000))
    whole = pack(lines.encode())
    for name, data in (("cut", whole[: len(whole) * 2 // 3]), ("over", whole[: len(whole) * 2 // 3] + b"x" * 9_000)):
        fill(tmp_path, {f"{name}.log.{mode}": data})
        piece = read(tmp_path, f"{name}.log.{mode}", PageRequest(tail=1))
        assert CUT_AT_DAMAGE in piece.status and piece.size > 100_000
        if name == "cut":  # what is overwritten may unpack to anything before that is noticed
            assert piece.body.rstrip("\n") in lines
        answer = found(tmp_path, "line 7 ", f"{name}.log.{mode}")
        assert ":8:line 7 " in answer and f"searched in part, {CUT_AT_DAMAGE}" in answer
    fill(tmp_path, {f"whole.log.{mode}": whole, f"none.log.{mode}": whole[:20]})
    assert CUT_AT_DAMAGE not in read(tmp_path, f"whole.log.{mode}").status
    with pytest.raises(Invalid, match=r"ends too early|is damaged"):
        read(tmp_path, f"none.log.{mode}")


def test_a_search_says_when_it_did_not_reach_the_end_of_an_archive(tmp_path: Path) -> None:
    first = "".join(f"{number} {random.Random(number).random()}\n" for number in range(40_000))
    packed_twice = packed({"a.txt": first.encode(), "b.txt": b"needle\n"}, "w:gz")
    fill(tmp_path, {"whole.tgz": packed_twice, "cut.tgz": packed_twice[: len(packed_twice) * 9 // 10]})
    assert "b.txt:1:needle" in found(tmp_path, "needle", "whole.tgz")
    assert f"searched in part, {CUT_AT_DAMAGE}: cut.tgz" in found(tmp_path, "needle", "cut.tgz")
    mega = b"A" * 999_999 + b"\n"
    with zipfile.ZipFile(tmp_path / "big.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", mega * 70)
        archive.writestr("b.txt", "needle")
    assert f"searched in part, cut after {MAX_OUTPUT_BYTES:,} bytes: big.zip" in found(tmp_path, "needle", "big.zip")


@pytest.mark.parametrize("mode", ["w:", "w:gz"])
def test_a_tar_archive_that_lacks_its_end_never_seems_whole(mode: str, tmp_path: Path) -> None:
    """Wherever it is cut, also in a header or between two members, and whatever block is overwritten by zeros."""
    members = {f"{name}.txt": f"{name}\n".encode() * 300 for name in "abcd"}
    whole = packed(members, mode)
    plain = packed(members, "w:")
    ends = [*range(512, 6144, 256), 6144, 6145] if mode == "w:" else range(20, len(whole) - 20, 7)
    damaged = [whole[:end] for end in ends]
    if mode == "w:":
        damaged += [plain[:at] + bytes(512) + plain[at + 512 :] for at in range(1536, 6144, 1536)]
    for data in damaged:
        fill(tmp_path, {"a.tar": data})
        try:
            piece = read(tmp_path, "a.tar")
        except Invalid as problem:
            assert re.search("damaged|ends too early|is binary", str(problem))
            continue
        assert CUT_AT_DAMAGE in piece.status
        if "listing" not in piece.status:
            continue  # cut in its first header
        for name in members:
            path = f"a.tar!/{name}"
            try:
                assert read(tmp_path, path).body.encode() == members[name]
            except Problem as problem:
                assert re.search("which is damaged|is damaged|ends too early", str(problem)), (
                    "not: there is no such file"
                )
    fill(tmp_path, {"a.tar": whole})
    assert CUT_AT_DAMAGE not in read(tmp_path, "a.tar").status


def test_names_in_archives_are_found_in_either_composition(tmp_path: Path) -> None:
    for mode in ("zip", "w:"):
        fill(tmp_path, {"a.any": packed({"e\u0301te\u0301/a\u00a0b.txt": b"needle\n"}, mode)})
        for path in ("été/a b.txt", "e\u0301te\u0301/a\u00a0b.txt"):
            assert read(tmp_path, f"a.any!/{path}").body == "needle\n"
        assert "a\u00a0b.txt\t7" in read(tmp_path, "a.any!/été").body
        assert "1 match" in found(tmp_path, "needle", "a.any!/été")
        both = {"e\u0301": b"apart", "é": b"composed"}
        fill(tmp_path, {"a.any": packed(both, mode)})
        for name, content in both.items():
            assert read(tmp_path, f"a.any!/{name}").body.encode() == content


def test_all_that_a_mail_says_and_brings_is_told(tmp_path: Path) -> None:
    inner = email.message.EmailMessage()
    inner["From"], inner["Subject"] = "b@example.org", "forwarded"
    inner.set_content("needle\n")
    inner.add_attachment(b"inside", "application", "octet-stream", filename="in.bin")
    parts = {
        "text/plain": b"first\n", "application/pdf; name=a.pdf": b"%PDF", "text/html": b"<p>second</p>",
        "multipart/alternative; boundary=C": b"--C\nContent-Type: text/html\n\nhtml\n--C\n\nplain\n--C\n"
        b"Content-Type: text/calendar\n\nBEGIN:VCALENDAR\n--C--\n",
        "message/rfc822": bytes(inner), "image/png": b"\x89PNG",
    }  # fmt: skip
    body = b"".join(b"--B\nContent-Type: %b\n\n%b\n" % (kind.encode(), data) for kind, data in parts.items())
    fill(tmp_path, {"a.eml": b"Subject: all\nContent-Type: multipart/mixed; boundary=B\n\n" + body + b"--B--\n"})
    text, _, attached = read(tmp_path, "a.eml").body.partition("\n[attached]\n")
    assert text == "Subject: all\n\nfirst\n\nsecond\n\nplain\n"
    names = [line.partition("\t")[0] for line in attached.splitlines()]
    assert names == ["a.pdf", "part2.ics", "part3.eml", "part4.png"]
    assert read(tmp_path, "a.eml!/part3.eml").body.startswith("From: b@example.org\nSubject: forwarded\n\nneedle\n")
    assert read(tmp_path, "a.eml!/part3.eml!/in.bin").body == "inside"
    assert "1 match" in found(tmp_path, "needle", "a.eml!")


WRAPPED = """\
Dear all, this is the letter that we have written to you about the new
contract, whose second part may be ended with a notice of thirty days.
Yours

> You wrote that the first part can be ended at any time as well as the
> second, which surprised us.

- one item of a list that is nearly as long as a line can become in it
- another
x = compute(first_argument, second_argument, third_argument, and_more)
y = 2
+-----------------------------+------------------------------------+
-- \n\
Ann Lee works for the Example Company in its head office of the city
and more
"""
FLOWED = "It goes \non here.\n> Quoted \n> too.\n-- \nAnn \nLee\n From here\n"


def test_lines_that_a_mail_program_broke_are_whole(tmp_path: Path) -> None:
    head = "Subject: s\nContent-Type: text/plain; charset=utf-8"
    fill(tmp_path, {"a.eml": f"{head}\n\n{WRAPPED}", "b.eml": f"{head}; format=flowed\n\n{FLOWED}"})
    fill(tmp_path, {"c.eml": f"{head}; format=flowed; delsp=yes\n\nzu \nsammen\n"})
    lines = WRAPPED.splitlines()
    lines[0:2] = [" ".join(lines[0:2])]
    lines[3:5] = [f"{lines[3]} {lines[4][2:]}"]
    assert read(tmp_path, "a.eml").body.partition("\n\n")[2].splitlines() == lines
    assert read(tmp_path, "b.eml").body == "Subject: s\n\nIt goes on here.\n> Quoted too.\n-- \nAnn Lee\nFrom here\n"
    assert read(tmp_path, "c.eml").body == "Subject: s\n\nzusammen\n"
    assert "1 match" in found(tmp_path, "about the new contract", "a.eml")
    assert "about the new\ncontract" in read(tmp_path, "a.eml!/message.txt").body


ODD_LINES = [
    "From: \"a\" <a@x", "To: undisclosed-recipients:;", "To: a b c <>, ,;", "Cc: <a@[1.2.3>, \"", "Date: Mon, 99 Foo 9",
    "Subject: =?x?b?!!!?=", "Content-Type: multipart/mixed", "Content-Type:", "Content-Transfer-Encoding: base64",
    "Content-Type: text/plain; charset=idna", "Content-Disposition: attachment; filename*0=a; filename*2=b",
    "Content-Disposition: attachment; filename==?utf-8?q?=", "Content-Type: message/rfc822",
    'Content-Type: multipart/alternative; boundary="B"', "Content-Type: multipart/related; start=x; boundary=B",
    "Content-Type: text/html; charset=hex", "--B", "--B--", "",
]  # fmt: skip


@pytest.mark.share(2)
@pytest.mark.parametrize("seed", range(3))
def test_an_odd_header_costs_no_mail(seed: int) -> None:
    rng = random.Random(seed)
    seeds = [MAKERS["eml"](words(seed, string.ascii_letters)), b"From: =?utf-8?q?=C3=A9?= <a@x>\n\n\xe9t\xe9\n"]
    for _ in range(200):
        lines = rng.choice(seeds).splitlines()
        for _ in range(rng.randrange(1, 6)):
            at = rng.randrange(len(lines))
            lines.insert(at, rng.choice(ODD_LINES).encode())
            lines[at] = lines[at][: rng.choice([None, rng.randrange(1 + len(lines[at]))])]
        mail = Mail(io.BytesIO(b"\n".join(lines)))
        assert all(line.isascii() or line for line in mail.text()) and list(mail.entries())


def test_a_notebook_that_is_none_is_read_and_edited_as_it_is_written(tmp_path: Path) -> None:
    conflict = MAKERS["ipynb"](words(1)).replace(b'"cells"', b'\n<<<<<<< HEAD\n"cells"')
    fill(tmp_path, {"a.ipynb": conflict, "b.ipynb": b"{}", "c.zip": zipped({"a.ipynb": conflict})})
    for path in ("a.ipynb", "c.zip!/a.ipynb"):
        assert read(tmp_path, path).body == conflict.decode()
        assert "1 match" in found(tmp_path, "<<<<<<<", path.partition("!")[0])
    assert read(tmp_path, "a.ipynb").hash and read(tmp_path, "b.ipynb").body == "{}"


def test_equal_rows_and_cells_of_a_sheet_are_all_there(tmp_path: Path) -> None:
    """OpenDocument writes them once with their number, and cells that others cover by another name."""
    rows = [["x"] * 150 + ["y"]] * 3 + [["a", "", "c"]] + [["z"]] * 2
    sheet = (
        '<table-row number-rows-repeated="3"><table-cell number-columns-repeated="150"><p>x</p></table-cell>'
        '<table-cell><p>y</p></table-cell><table-cell number-columns-repeated="16000"/></table-row>'
        "<table-row><table-cell><p>a</p></table-cell><covered-table-cell/><table-cell><p>c</p></table-cell></table-row>"
        '<table-row number-rows-repeated="2"><table-cell><p>z</p></table-cell></table-row>'
        '<table-row number-rows-repeated="1048570"><table-cell/></table-row>'
    )
    fill(tmp_path, {"a.ods": zipped({"content.xml": f"<r>{sheet}</r>"})})
    assert read(tmp_path, "a.ods").body.splitlines() == [" | ".join(row) for row in rows]
    cell = f"<table-cell><p>{'v' * 99}</p></table-cell>"
    fill(tmp_path, {"a.ods": zipped({"content.xml": f'<table-row number-rows-repeated="1048576">{cell}</table-row>'})})
    assert f"cut after {MAX_OUTPUT_BYTES:,} bytes" in read(tmp_path, "a.ods", PageRequest()).status


def test_the_text_of_a_document_may_have_another_name_in_it(tmp_path: Path) -> None:
    for suffix, usual in (("docx", "word/document.xml"), ("pptx", "ppt/presentation.xml")):
        with zipfile.ZipFile(io.BytesIO(MAKERS[suffix](words(1)))) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        other = usual.replace(".xml", "2.xml")
        members[other] = members.pop(usual)
        folder, _, name = usual.partition("/")
        members[f"{folder}/_rels/{name.replace('.xml', '2.xml')}.rels"] = members.pop(f"{folder}/_rels/{name}.rels")
        members["_rels/.rels"] = members["_rels/.rels"].replace(usual.encode(), other.encode())
        fill(tmp_path, {f"a.{suffix}": zipped({**members})})
        assert words(1)[0] in read(tmp_path, f"a.{suffix}").body


def test_a_document_with_a_password_is_said_to_be_locked(tmp_path: Path) -> None:
    locked = OLE + bytes(4000) + "EncryptedPackage".encode("utf-16-le")
    fill(tmp_path, {f"a.{suffix}": locked for suffix in ("docx", "pptx", "xlsx", "xls")})
    for name in ("a.docx", "a.pptx", "a.xlsx", "a.xls", "a.docx!/word/document.xml", "a.xlsx!/Sheet1"):
        with pytest.raises(Invalid, match=r"` is locked by a password\. "):
            read(tmp_path, name)
    fill(tmp_path, {"old.docx": OLE + bytes(4000)})
    with pytest.raises(Invalid, match="is of a program before 2007 under a newer name, or locked by a password"):
        read(tmp_path, "old.docx")


def test_a_locked_archive_is_said_to_be_locked(tmp_path: Path) -> None:
    locked = bytearray(zipped({"a.txt": "hidden"}))
    for mark, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        locked[locked.index(mark) + offset] |= 1
    fill(tmp_path, {"a.zip": bytes(locked)})
    assert read(tmp_path, "a.zip").body == "a.txt\t6\n"
    with pytest.raises(Invalid, match="is locked by a password"):
        read(tmp_path, "a.zip!/a.txt")


def test_without_the_libraries_the_error_names_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = "import sys; sys.modules['python_calamine'] = sys.modules['pypdfium2'] = None\n"
    monkeypatch.setattr(python_child, "_START_CODE", block + python_child._START_CODE)  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(converter, "_pool", converter._WorkerPool())  # pyright: ignore[reportPrivateUsage]
    fill(tmp_path, {f"a.{suffix}": make(["one", "two", "three", "four", "five"]) for suffix, make in MAKERS.items()})
    for suffix, what in (("xlsx", "a workbook"), ("pdf", "a PDF")):
        with pytest.raises(Unavailable, match=rf"`a.{suffix}` is {what}.* mcp-fs\[documents\]"):
            read(tmp_path, f"a.{suffix}")
    answer = found(tmp_path, "five")
    assert "not searched without mcp-fs[documents]: a.pdf, a.xlsx" in answer
    for suffix in MAKERS.keys() - {"xlsx", "pdf"}:
        assert f"a.{suffix}:" in answer
    converter._pool.end()  # pyright: ignore[reportPrivateUsage]


@pytest.mark.skipif(sys.platform == "win32", reason="a signal ends it")
@pytest.mark.parametrize("name", ["SIGSEGV", "SIGBUS", "SIGABRT"])
def test_a_crash_is_not_said_to_take_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    crash = f"import os, signal, sys; sys.stdin.buffer.readline(); os.kill(os.getpid(), signal.{name})"
    monkeypatch.setattr(python_child, "_START_CODE", crash)
    monkeypatch.setattr(converter, "_pool", converter._WorkerPool())  # pyright: ignore[reportPrivateUsage]
    fill(tmp_path, {"a.zip": zipped({"a.txt": "x"})})
    for _ in range(2):
        with pytest.raises(Invalid, match=rf"`a.zip` can't be read: .* crashed \({name}\)"):
            read(tmp_path, "a.zip")


@pytest.mark.skipif(ripgrep.find_ripgrep() is None, reason="has no ripgrep")
def test_documents_are_found_beyond_what_ripgrep_can_tell(tmp_path: Path) -> None:
    fill(tmp_path, {f"d{number % 7}/f{number}.txt": "nothing\n" for number in range(900)})
    fill(tmp_path, {"z/last.docx": MAKERS["docx"](["needle", "b", "c", "d", "e"]), "z/plain.txt": "needle\n"})
    fill(tmp_path, {"z/left.docx": MAKERS["docx"](["needle", "b", "c", "d", "e"]), ".gitignore": "left.docx\n"})
    place = served(tmp_path).readable(".")
    with_it = search_text([place], Query("needle"), None, CancelToken(), ripgrep.find_ripgrep())
    assert with_it.text() == search_text([place], Query("needle"), None, CancelToken()).text()
    assert [path for path, _, _ in with_it.files] == ["z/last.docx", "z/plain.txt"]  # type: ignore[union-attr]


def test_documents_are_compared_by_their_text(tmp_path: Path) -> None:
    fill(tmp_path, {"a.docx": MAKERS["docx"](["one", "two", "c", "d", "e"]), "b.zip": zipped({"b.txt": "# one\n"})})
    fill(tmp_path, {"b.docx": MAKERS["docx"](["one", "TWO", "c", "d", "e"])})
    policy = served(tmp_path)
    answer = compare(policy.readable("a.docx"), policy.readable("b.docx"), 10_000, CancelToken()).text()
    assert "-two\tafter a tab\n+TWO\tafter a tab\n" in answer
    inside = compare(policy.readable("a.docx"), policy.readable("b.zip!/b.txt"), 10_000, CancelToken()).text()
    assert "-two\tafter a tab" in inside


def test_files_that_only_look_the_same_are_not_called_the_same(tmp_path: Path) -> None:
    """The listing of an archive and the text of a document leave out most of what may differ."""
    five = ["one", "two", "c", "d", "e"]
    office = MAKERS["docx"](five)
    other = io.BytesIO(office)
    with zipfile.ZipFile(other, "a") as archive:
        archive.writestr("word/media/picture.png", b"other")
    fill(
        tmp_path,
        {"a.zip": zipped({"a.txt": "yes"}), "b.zip": zipped({"a.txt": "no!"}), "c.zip": zipped({"a.txt": "yes"})},
    )
    fill(tmp_path, {"a.docx": office, "b.docx": other.getvalue(), "c.docx": office})
    fill(tmp_path, {"a.gz": gzip.compress(b"x", 1, mtime=1), "b.gz": gzip.compress(b"x", 9, mtime=2)})

    def compared(one: str, other: str) -> str:
        policy = served(tmp_path)
        return compare(policy.readable(one), policy.readable(other), 10_000, CancelToken()).text()

    for one, other_name, what in (
        ("a.zip", "b.zip", "listing of a zip archive"),
        ("a.docx", "b.docx", "text of a document"),
        ("a.gz", "b.gz", "unpacked"),
    ):
        assert f"different files, of which this is the same: {what}" in compared(one, other_name)
    for one, same in (("a.zip", "c.zip"), ("a.docx", "c.docx"), ("a.zip!/a.txt", "c.zip!/a.txt")):
        assert "same contents" in compared(one, same)


def test_pages_of_a_search_in_an_archive_neither_skip_nor_repeat(tmp_path: Path) -> None:
    fill(tmp_path, {"a.zip": zipped({f"d{n % 5}/f{n}.txt": "needle\n" * 3 for n in range(40)})})
    place, cursor, seen = served(tmp_path).readable("a.zip"), None, list[str]()
    while True:
        page = search_text([place], Query("needle", limit=7), cursor, CancelToken())
        lines = flat(page.text())
        seen += [line for line in lines if not line.endswith(":3 in all")]
        assert len(lines) <= 7 + 1
        cursor = page.cursor
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) == 120


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_the_process_that_reads_documents_has_nothing_but_its_pipes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "visible")
    monkeypatch.setattr(converter, "_pool", converter._WorkerPool())  # pyright: ignore[reportPrivateUsage]
    fill(tmp_path, {"a.zip": zipped({"a.txt": "x"})})
    read(tmp_path, "a.zip")
    (worker,) = converter._pool._idle  # pyright: ignore[reportPrivateUsage]
    process = worker._process.pid  # pyright: ignore[reportPrivateUsage]
    opened = {os.readlink(f"/proc/{process}/fd/{fd}").split(":")[0] for fd in os.listdir(f"/proc/{process}/fd")}
    assert opened <= {"pipe", "/dev/null"}
    assert b"SECRET_TOKEN" not in Path(f"/proc/{process}/environ").read_bytes()
    converter._pool.end()  # pyright: ignore[reportPrivateUsage]
    assert not Path(f"/proc/{process}").exists()


def test_a_file_that_changes_is_taken_out_anew(tmp_path: Path) -> None:
    fill(tmp_path, {"a.zip": zipped({"a.txt": "old"})})
    assert read(tmp_path, "a.zip!/a.txt").body == "old"
    fill(tmp_path, {"new": zipped({"a.txt": "new"})})
    os.replace(tmp_path / "new", tmp_path / "a.zip")
    assert read(tmp_path, "a.zip!/a.txt").body == "new"


def test_what_is_too_large_to_hold_is_refused_not_shown_in_part(tmp_path: Path) -> None:
    fill(tmp_path, {"a.xlsx": b""})
    with open(tmp_path / "a.xlsx", "wb") as file:
        file.write(b"PK\3\4")
        file.truncate(MAX_OUTPUT_BYTES + 10)
    with pytest.raises(TooLarge, match="unpacks to more"):
        read(tmp_path, "a.xlsx")


def test_an_archive_that_was_not_searched_is_named_with_the_way_to_search_it(tmp_path: Path) -> None:
    fill(tmp_path, {"a.zip": zipped({"b.txt": "needle"}), "b.bin": bytes(range(256)) * 9})
    answer = found(tmp_path, "needle")
    assert "1 binary not searched (b.bin); set include_binary" in answer
    assert "1 archive not searched (a.zip); name one as `path`" in answer


def test_documents_that_took_too_long_are_searched_fewer_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, {f"{name}.docx": MAKERS["docx"](["needle", *words(1)[1:]]) for name in "ab"})
    with monkeypatch.context() as hurried:
        hurried.setattr(text_search, "DocumentReader", lambda skipped: DocumentReader(skipped, 0.0))
        answer = found(tmp_path, "needle")
        assert "search again, or fewer" in answer and ("a.docx:1:" in answer) != ("b.docx:1:" in answer), answer
        assert "a.docx:1:" in found(tmp_path, "needle", "a.docx")
        assert "b.docx:1:" in found(tmp_path, "needle", "b.docx")


def sparse() -> bytes:
    """A tar archive with a file of a terabyte, of which there is one byte (GNU tar, format of sparse files 0.0)."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("a.txt")
        info.size = 1
        info.pax_headers = {
            "GNU.sparse.size": str(10**12), "GNU.sparse.numblocks": "1", "GNU.sparse.offset": str(10**12 - 1),
            "GNU.sparse.numbytes": "1",
        }  # fmt: skip
        archive.addfile(info, io.BytesIO(b"x"))
    return file.getvalue()


def oversized_header() -> bytes:
    """A compressed tar archive whose first header says that names of two gigabytes follow."""
    info = tarfile.TarInfo("././@PaxHeader")
    info.type, info.size = tarfile.XHDTYPE, 2 * 10**9
    return gzip.compress(info.tobuf(tarfile.USTAR_FORMAT) + bytes(200_000_000), 1)


def crowd() -> bytes:
    """A zip archive that says of itself what it has: 65,000 members, all in the same place."""
    one = b"PK\1\2" + struct.pack("<H", 20) + struct.pack("<HHHHHIII", 20, 0, 8, 0, 0, 0, 10, 10**9)
    one += struct.pack("<HHHHHII", 1, 0, 0, 0, 0, 0, 0) + b"a"
    return one * 65_000 + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 65_000, 65_000, len(one) * 65_000, 0, 0)


def nested(levels: int) -> bytes:
    data = b"inside"
    for level in range(levels):
        data = zipped({f"{level}.zip" if level else "a.txt": data})
    return data


def wide_element() -> str:
    """One element with 300,000 attributes."""
    attributes = " ".join(f'a{number}=""' for number in range(300_000))
    return f"<x {attributes}/>"


CELL = '<r><table-row><table-cell number-columns-repeated="2000000000"/></table-row></r>'
PARTS = b"Content-Type: multipart/mixed; boundary=a\n\n"
OUT = '<r><Relationship Id="a" Target="../../../etc/passwd"/></r>'
HOSTILE: dict[str, Callable[[], bytes]] = {
    "sparse.tar": sparse,
    "header.tgz": oversized_header,
    "crowd.zip": crowd,
    "nested.zip": lambda: nested(60),
    "deep.odt": lambda: zipped({"content.xml": "<a>" * 3_000_000}),
    "deep.ipynb": lambda: b'{"cells": ' + b"[" * 1_000_000,
    "wide.docx": lambda: zipped({"word/document.xml": wide_element()}),
    "cells.ods": lambda: zipped({"content.xml": CELL}),
    "spaces.odt": lambda: zipped({"content.xml": '<r xmlns:t="t"><p><t:s c="2000000000"/>x</p></r>'}),
    "parts.eml": lambda: PARTS + (b"--a\n" + PARTS) * 9000,
    "many.eml": lambda: b"A: b\n" * 1_000_000 + b"\nbody",
    "loop.epub": lambda: zipped({"META-INF/container.xml": '<c><r full-path="META-INF/container.xml"/></c>'}),
    "link.pptx": lambda: zipped({"ppt/presentation.xml": "<p/>", "ppt/_rels/presentation.xml.rels": OUT}),
    "bytes.xls": lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\xff" * 100_000,
}


@pytest.mark.share(3, slow=3)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_made_to_do_harm_ends_in_a_bounded_answer(name: str, tmp_path: Path) -> None:
    """It is read or refused; whatever became of the process that read it, the next file is read."""
    fill(tmp_path, {name: HOSTILE[name](), "good.zip": zipped({"a.txt": "fine"})})
    for path in (name, f"{name}!/a.txt"):
        try:
            assert read(tmp_path, path, PageRequest()).size <= MAX_OUTPUT_BYTES
        except Problem as problem:
            assert "`" in str(problem)
    answer = found(tmp_path, "no such text")
    assert answer.startswith("[0 files match") and len(answer) < 10_000
    assert read(tmp_path, "good.zip!/a.txt").body == "fine"


def test_many_at_once_are_read_by_a_few_processes(tmp_path: Path) -> None:
    for number in range(24):
        fill(tmp_path, {f"a{number}.docx": MAKERS["docx"]([f"word{number}", "b", "c", "d", "e"])})
    with ThreadPoolExecutor(12) as threads:
        reads = [threads.submit(read, tmp_path, f"a{number}.docx") for number in range(24)]
    texts = [done.result().body for done in reads]
    assert all(text.startswith(f"# word{number}\n") for number, text in enumerate(texts))
    assert len(converter._pool._idle) <= 2  # pyright: ignore[reportPrivateUsage]


def test_work_that_nobody_waits_for_ends_with_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(converter, "_pool", converter._WorkerPool())  # pyright: ignore[reportPrivateUsage]
    fill(tmp_path, {"a.zip": zipped({"a.txt": "fine"})})
    stop = CancelToken()
    stop.set()
    with pytest.raises(WorkCancelled):
        read_page(served(tmp_path).readable("a.zip"), PageRequest(), LineIndex(), stop)
    assert not converter._pool._idle  # pyright: ignore[reportPrivateUsage]
    assert read(tmp_path, "a.zip!/a.txt").body == "fine"
    converter._pool.end()  # pyright: ignore[reportPrivateUsage]


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_server_leaves_with_the_process_that_read_for_it(tmp_path: Path) -> None:
    fill(tmp_path, {"a.docx": MAKERS["docx"](["one", "two", "three", "four", "five"])})
    async with StdioWire([sys.executable, "-m", "mcp_fs", str(tmp_path)]) as wire:
        await wire.open()
        answer = await wire.request("tools/call", {"name": "read_text", "arguments": {"path": "a.docx"}})
        assert "# one" in answer["content"][0]["text"]
        found = await wire.request("tools/call", {"name": "search_text", "arguments": {"pattern": "fi.e"}})
        assert "a.docx:7:five" in found["content"][0]["text"]
        await wire.close_stdin()
        with anyio.fail_after(10):
            assert await wire.wait() == 0
        assert (wire.garbage, wire.stderr) == ([], "")
