"""Encodings are told, named, and written back as they were."""

from __future__ import annotations

import codecs
import math
import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_batteries.errors import Invalid
from mcp_fs.engine.text.encodings import (
    SAMPLE_BYTES,
    Encoding,
    content_hash,
    decode,
    detect_encoding,
    encode,
    is_utf8,
    replace_undecodable,
)

GERMAN = "Ärger über größere Übel\nSchöne Grüße\n"
CHINESE = "这是一个测试文件，用来检查编码。\n第二行文字\n"
JAPANESE = "これはテストです。日本語の文章を書きます。\n"


@pytest.mark.parametrize(
    ("text", "codec", "name", "bom"),
    [
        ("plain\n", "ascii", "utf-8", False),
        (GERMAN, "utf-8", "utf-8", False),
        (GERMAN, "utf-8-sig", "utf-8", True),
        (GERMAN, "utf-16", "utf-16-le" if sys.byteorder == "little" else "utf-16-be", True),
        (GERMAN, "utf-16-le", "utf-16-le", False),
        (GERMAN, "utf-16-be", "utf-16-be", False),
        ("a\n", "utf-16-le", "utf-16-le", False),
        (GERMAN, "utf-32", "utf-32-le" if sys.byteorder == "little" else "utf-32-be", True),
        (GERMAN, "utf-32-le", "utf-32-le", False),
        (GERMAN, "utf-32-be", "utf-32-be", False),
        (GERMAN, "latin-1", "latin-1", False),
        ("café\n", "latin-1", "latin-1", False),
        ("“quoted” – 5 €\n", "cp1252", "cp1252", False),
        (CHINESE, "gbk", "gbk", False),
        ("你好，世界\n", "gbk", "gbk", False),
        (JAPANESE, "shift_jis", "shift_jis", False),
        ("// コメント\nint x = 1;\n", "shift_jis", "shift_jis", False),
        ("안녕하세요 세계\n 한국어 문장입니다\n", "euc_kr", "euc_kr", False),
        ("Привет, мир! Это русский текст.\n", "cp1251", "cp1251", False),
        ("Привет, мир! Это русский текст.\n", "cp866", "cp866", False),
        ("Привет, мир! Это русский текст.\n", "iso8859-5", "iso8859-5", False),
        ("Zażółć gęślą jaźń\n", "cp1250", "cp1250", False),
        ("Zażółć gęślą jaźń\n", "iso8859-2", "iso8859-2", False),
        ("Příliš žluťoučký kůň\n", "cp1250", "cp1250", False),
        ("; ayarlar\nad=Güneş ışığı\n", "cp1254", "cp1254", False),
        ("Άλλο: Καλημέρα κόσμε, αυτό είναι κείμενο\n", "cp1253", "cp1253", False),
        ("שלום עולם, זה טקסט\n", "cp1255", "cp1255", False),
        ("مرحبا بالعالم، هذا نص\n", "cp1256", "cp1256", False),
        ("สวัสดีชาวโลก นี่คือข้อความ\n", "cp874", "cp874", False),
        ("Schöne Grüße aus München, äh\n", "cp850", "cp850", False),
        ("# -*- coding: cp1257 -*-\na = 'ą'\n", "cp1257", "cp1257", False),
        ('<?xml version="1.0" encoding="ISO-8859-2"?>\n<a>ą</a>\n', "iso8859-2", "iso8859-2", False),
    ],
)
def test_an_encoding_is_told_and_kept(text: str, codec: str, name: str, bom: bool) -> None:
    data = text.encode(codec)
    decoded = decode(data)
    assert decoded is not None
    assert (decoded.text, decoded.encoding, decoded.bom) == (text, name, bom)
    assert encode(decoded.text, decoded) == data


@pytest.mark.parametrize(
    "text",
    [
        "Señales y más\n",
        "Año;2024;ñandú\n",
        "perché è così, città\n",
        "25 °C ± 2 °C, 10 µm\n",
        "© 2024 Foo® and Bar™\n",
        "Price £5, 1½ off – see § 4\n",
        "Er sagte „Größe“\n",
        "São Paulo, coração\n",
        "area 12 m², volume 3 m³\n" * 3,
        "dijo «hola», dijo «adios»\n",
        "Mª José; ¿Que hora es?\n",
        "Windows®\n" * 3,
        "Product¹ and note²\n" * 3,
        "".join(f"{number},Tromsø\n" for number in range(30)),
        "".join(f"{number},niño,naïve\n" for number in range(30)),
        "".join(f"{number} août, forêt\n" for number in range(30)),
    ],
)
def test_few_western_letters_and_signs_are_taken_for_no_others(text: str) -> None:
    decoded = decode(text.encode("cp1252"))
    assert decoded is not None and decoded.text == text


@pytest.mark.parametrize(
    ("word", "codec"),
    [("错误", "gbk"), ("成功", "gbk"), ("オラー警告", "shift_jis"), ("오류", "euc_kr"), ("Ошибка", "cp1251")],
)
@pytest.mark.parametrize("count", [1, 60, 1500])
def test_a_word_that_is_on_all_lines_of_a_log_is_told(word: str, codec: str, count: int) -> None:
    lines = [f"2026-01-02 12:{number % 60:02} [{word}] request {number}\n" for number in range(count)]
    found = detect_encoding("".join(lines).encode(codec))
    assert found is not None and found.name == codec


@pytest.mark.parametrize(
    "data",
    [bytes(range(256)), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"\x7fELF\x02\x01\x01" + bytes(50), b"\x01\x02\x03\x04" * 9],
)
def test_binary_is_no_text(data: bytes) -> None:
    assert decode(data) is None
    assert detect_encoding(data) is None


_RANDOM = random.Random(7)


@pytest.mark.parametrize(
    "data",
    [
        bytes(_RANDOM.randrange(0x20, 0x100) for _ in range(2000)),
        bytes(round(128 + 90 * math.sin(sample / 7)) for sample in range(2000)),
        bytes(round(_RANDOM.gauss(128, 16)) for _ in range(2000)),
        b"P5\n640 480\n255\n" + bytes(round(180 + 40 * math.sin(at / 90) + _RANDOM.gauss(0, 6)) for at in range(2000)),
        b"P6\n640 480\n255\n" + bytes(round(_RANDOM.gauss((200, 150, 90)[at % 3], 12)) for at in range(2000)),
    ],
    ids=["noise", "tone", "speech", "grey picture", "picture"],
)
def test_samples_of_sounds_and_pictures_are_no_text(data: bytes) -> None:
    assert detect_encoding(data) is None


@pytest.mark.parametrize("codec", ["cp437", "cp866"])
def test_a_tree_drawn_with_old_frames_is_text(codec: str) -> None:
    tree = "│   ├───main.py\n│   └───data\n" * 60
    assert detect_encoding(tree.encode(codec)) is not None


@pytest.mark.parametrize(
    ("text", "newline"),
    [("", ""), ("a", ""), ("a\nb\n", "\n"), ("a\r\nb\r\nc\n", "\r\n"), ("a\rb\r", "\r"), ("a\nb\r\n", "\n")],
)
def test_the_line_end_used_most(text: str, newline: str) -> None:
    decoded = decode(text.encode())
    assert decoded is not None
    assert decoded.newline == newline


def test_a_late_foreign_byte_is_kept() -> None:
    data = b"ok " * 40_000 + b"caf\xe9\n"
    decoded = decode(data)
    assert decoded is not None
    assert replace_undecodable(decoded.text).endswith("caf\ufffd\n")  # as it is read: the beginning decides for all
    assert encode(decoded.text, decoded) == data


@pytest.mark.parametrize("text", ["café", "a b\nGru\u00df"])
def test_a_western_letter_may_end_a_file_without_a_line_end(text: str) -> None:
    decoded = decode(text.encode("latin-1"))
    assert decoded is not None
    assert decoded.text == text


@pytest.mark.parametrize(
    "data", ["5 €".encode()[:-2], "I don\u2019".encode()[:-2], "Fußgänger".encode()[:-5], "naïve café".encode()[:-1]]
)
def test_utf_8_that_is_cut_off_at_its_end_stays_utf_8(data: bytes) -> None:
    assert detect_encoding(data) == Encoding("utf-8")


def test_a_stray_byte_does_not_make_utf_8_something_else() -> None:
    data = "é und ü\n".encode() * 50 + b"stray \x92 byte\n"
    assert detect_encoding(data) == Encoding("utf-8")
    # It is still written back as it was.
    assert (decoded := decode(data)) is not None
    assert encode(decoded.text, decoded) == data


@pytest.mark.parametrize("damage", [b"\xff", b"\x80", b"\xe9", b"\xc3("])
@pytest.mark.parametrize(
    "words",
    [
        "äöü ",
        "Grüße ",
        "ok \U0001f600 ",
        "日本 ",
        "è un caffè già ",
        "это текст ",
        "これは日本語です",
        "这是一个文件",
        "한국어 글자",
    ],
)
def test_a_short_text_is_utf_8_with_one_byte_damaged(words: str, damage: bytes) -> None:
    data = words.encode()
    assert detect_encoding(data + damage + b"\n") == detect_encoding(damage + data) == Encoding("utf-8")
    # A mark says it even where nothing else does.
    marked = codecs.BOM_UTF8 + b"one\n" + damage + b"two\n"
    assert detect_encoding(marked) == Encoding("utf-8", codecs.BOM_UTF8)
    assert (decoded := decode(marked)) is not None and encode(decoded.text, decoded) == marked


@pytest.mark.parametrize(
    ("codec", "words"),
    [
        ("gb18030", "中文内容测试"),
        ("cp932", "日本語のテキスト"),
        ("euc_kr", "안녕하세요 반갑습니다"),
        ("big5", "中文內容測試"),
        ("cp1251", "Привет"),
        ("koi8_r", "Привет"),
        ("cp1252", "GRÜSSE À L'ÉTÉ"),
    ],
)
def test_short_texts_in_other_encodings_are_not_taken_for_damaged_utf_8(codec: str, words: str) -> None:
    for end in range(3, len(words) + 1):
        data = words[:end].encode(codec)
        assert detect_encoding(data) != Encoding("utf-8") or is_utf8(data)


@pytest.mark.parametrize("shift", range(3))
@pytest.mark.parametrize("codec", ["gbk", "shift_jis", "euc_kr"])
def test_a_long_file_is_known_wherever_its_sample_ends(codec: str, shift: int) -> None:
    line = {
        "gbk": "这是一个文件 and words\n",
        "shift_jis": "これは日本語です and words\n",
        "euc_kr": "한국어 글자 and words\n",
    }
    data = b"x" * shift + (line[codec] * 5000).encode(codec)
    assert len(data) > SAMPLE_BYTES
    assert (found := detect_encoding(data)) is not None
    assert found.name == codec


def test_a_character_the_encoding_lacks_is_refused() -> None:
    decoded = decode(JAPANESE.encode("shift_jis"))
    assert decoded is not None
    with pytest.raises(Invalid, match="shift_jis"):
        encode(decoded.text + "🙂", decoded)


@pytest.mark.parametrize("cut", range(1, 4))
def test_a_sample_may_end_within_a_character(cut: int) -> None:
    assert detect_encoding("🙂🙂".encode()[:-cut]) == Encoding("utf-8")


@given(st.binary(max_size=300))
def test_whatever_is_read_as_text_is_written_back_the_same(data: bytes) -> None:
    decoded = decode(data)
    if decoded is not None:
        assert encode(decoded.text, decoded) == data


def test_a_late_damaged_byte_is_no_failure() -> None:
    assert decode(b"x" * 5000 + b"\x90\xb3 words\n") is not None


_ENDS = (b"", b"\xff", b"\xe2\x82", b"\xf0\x9f\x99", b"\x81", b"a\xc3\n\x80\x80b")


@given(
    st.sampled_from(["utf-8", "cp1252", "gbk", "shift_jis", "euc_kr", "cp1251", "utf-16", "utf-16-le", "utf-32"]),
    st.sampled_from(["x", "é und ü ", "это текст ", "これは日本語です", "这是一个文件"]),
    st.lists(st.sampled_from(_ENDS) | st.binary(max_size=3), max_size=6),
    st.booleans(),
)
def test_reading_and_editing_take_one_verdict(codec: str, words: str, damage: list[bytes], long: bool) -> None:
    filler = (words + "and words\n").encode(codec, "ignore") * (4000 if long else 20)
    data = filler + b"".join(piece + filler[-20:] for piece in damage)
    found, decoded = detect_encoding(data), decode(data)
    if decoded is None:
        # Half a unit cannot be written back alone, and cp932 spells some characters in two ways.
        assert found is None or found.unit_bytes > 1 or found.name == "cp932"
        return
    assert found is not None
    assert replace_undecodable(decoded.text) == data[len(found.bom) :].decode(found.name, "replace")
    assert encode(decoded.text, decoded) == data


@given(st.text(max_size=200))
def test_utf_8_without_control_characters_is_utf_8(text: str) -> None:
    text = "".join(char for char in text if char.isprintable() or char in "\n\t")
    if not text.startswith("\ufeff"):
        decoded = decode(text.encode())
        assert decoded is not None
        assert (decoded.text, decoded.encoding) == (text, "utf-8")


def test_reading_utf_8_loads_no_detector() -> None:
    code = "import sys; from mcp_fs.engine.text.encodings import decode; decode(b'x'); print('chardet' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_hash_depends_on_every_byte() -> None:
    assert content_hash(b"a") != content_hash(b"b")
    assert len(content_hash(b"")) == 8
