"""Which encoding bytes are in. UTF-8 is tried first and byte order marks decide at once; the rest loads a detector.

This imports next to nothing: the process that takes text out of documents uses it too.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = [
    "ASCII_ENCODINGS",
    "BYTE_ORDER_MARKS",
    "NARROWER_NAMES",
    "SAMPLE_BYTES",
    "Encoding",
    "can_decode",
    "describe_encoding",
    "detect_encoding",
    "encoding_from_bom",
    "is_mostly_control",
    "is_utf8",
]

# How much of a file's beginning decides what it is.
SAMPLE_BYTES = 65_536
# The longer mark first: that of UTF-32 begins with that of UTF-16.
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_UNIT_BYTES = {"utf-16-le": 2, "utf-16-be": 2, "utf-32-le": 4, "utf-32-be": 4}
# Those of Latin letters, whose accented ones stand among plain ones.
_LATIN = ("cp1252", "cp1250", "iso8859-2", "cp1254", "cp1257", "cp1258")
_OLDER_LATIN = ("cp850", "cp852", "mac-roman")
_OTHER_ALPHABETS = (
    "cp1251", "koi8-r", "koi8-u", "iso8859-5", "cp866", "cp1253", "iso8859-7", "cp1255", "cp1256", "cp874",
)  # fmt: skip
_IDEOGRAPHS = ("gb18030", "big5hkscs", "cp932", "euc_jis_2004", "cp949")
_DETECTABLE = (*_LATIN, *_OLDER_LATIN, *_OTHER_ALPHABETS, *_IDEOGRAPHS)
# Every encoding but UTF-8 that text can be found in and in which ASCII is itself.
ASCII_ENCODINGS = (*_DETECTABLE, "latin-1")
# Narrower codecs that say the same of most files, under the names people know.
NARROWER_NAMES = {
    "big5hkscs": ("big5",),
    "cp1252": ("latin-1",),
    "cp932": ("shift_jis",),
    "cp949": ("euc_kr",),
    "euc_jis_2004": ("euc_jp",),
    "gb18030": ("gbk",),
}
# Those of scripts in which no blanks part the words.
_WITHOUT_BLANKS = ("cp874", *_IDEOGRAPHS)
# Bytes are samples of a sound or a picture only where so many are beyond ASCII. Text with so many got a likelihood of
# 0.13 and more in each of 34 languages, and no samples got more than 0.05.
_MIN_DISTINCT_BYTES = 32
_MIN_FOREIGN_SHARE = 0.25
_MIN_LIKELIHOOD = 0.04
_WITHOUT_WORDS = re.compile(rb"[\x80-\xff]{300}")
_ASCII = bytes(range(128))
# Another encoding must be likelier than cp1252 by this share, divided by how many letters it reads otherwise.
_EXCESS_OVER_WESTERN = 0.6
_CONTROL_BYTES = bytes(set(range(32)) - set(b"\t\n\v\f\r\b\x1b")) + b"\x7f"
# The euro sign, quotation marks, an ellipsis, a bullet, dashes and a trade mark in Windows-1252.
_WESTERN_PUNCTUATION = b"\x80\x82\x84\x85\x91\x92\x93\x94\x95\x96\x97\x99"
# Korean is written with few ideographs, or none.
_KOREAN_IDEOGRAPH_SHARE = 0.12
_IDEOGRAPH = re.compile("[一-鿿]")
_BEYOND_ASCII = re.compile("[^\\x00-\\x7f]")
# A word that ends in a letter such as `é` or `ß` of Western encodings. In UTF-8, cut off there, the byte would begin a
# character that seldom follows a Latin letter; not so E2, which begins apostrophes and dashes, and is a rare `â`.
_WESTERN_END = re.compile(rb"[A-Za-z][\xdf-\xe1\xe3-\xf4]\Z")
_SHORT_SAMPLE_BYTES = 16
# Those of other alphabets than the Latin stand in words of their own; `µ` is a sign.
_LETTER_BESIDE_PLAIN = re.compile(rb"(?<=[A-Za-z])[^\x00-\x7f\xb5]|[^\x00-\x7f\xb5](?=[A-Za-z])")
# Signs such as `³`, `ª` and `«` are letters in other encodings than the Western, and stand at the ends of words.
_TELLING_LETTER = re.compile(rb"(?<=[A-Za-z])[\xc0-\xff]|[\xc0-\xff](?=[A-Za-z])|(?<=[A-Za-z])[\xa1-\xbf](?=[A-Za-z])")
_BETWEEN_WORDS = re.compile(rb'[\s,;<>"=]+')
# The detector gives so much to the encoding that a text declares, and less to any that only its letters speak for.
_DECLARED_LIKELIHOOD = 0.9
# Within so many bytes a page or a source may name its encoding.
_DECLARATION_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a file spells text.

    Attributes:
        name: codec that never writes a mark of its own, such as `utf-8` or `utf-16-le`.
        bom: the byte order mark the file begins with, or nothing.
    """

    name: str
    bom: bytes = b""

    @property
    def unit_bytes(self) -> int:
        """Bytes of one code unit: where a line feed may stand is a multiple of it."""
        return _UNIT_BYTES.get(self.name, 1)

    @property
    def newline(self) -> bytes:
        return "\n".encode(self.name)

    @property
    def is_guess(self) -> bool:
        """Whether bytes that are read in it could be meant in another: all but Unicode's own."""
        return not self.name.startswith("utf-")

    def __str__(self) -> str:
        return describe_encoding(self.name, bom=bool(self.bom))


def describe_encoding(name: str, *, bom: bool) -> str:
    if not bom:
        return name
    return f"{name} with BOM"


def detect_encoding(sample: bytes) -> Encoding | None:
    """Return the encoding of a file that begins with `sample` (any length); None when it is binary.

    A character cut off at the end of the sample is not an objection.
    """
    for mark, name in BYTE_ORDER_MARKS:
        if sample.startswith(mark) and can_decode(sample[len(mark) :], name):
            return Encoding(name, mark)
    sample = sample[:SAMPLE_BYTES]
    has_nul = b"\0" in sample
    if sample.startswith(codecs.BOM_UTF8) and not has_nul and not is_mostly_control(sample):
        return Encoding("utf-8", codecs.BOM_UTF8)  # nothing else begins so, whatever is damaged behind it
    if has_nul:
        return _detect_utf16_or_utf32(sample)
    if is_mostly_control(sample):
        return None
    if is_utf8(sample) or _mostly_utf8(sample):
        return Encoding("utf-8")
    return _detect_legacy(sample)


def encoding_from_bom(sample: bytes) -> Encoding | None:
    """Return the encoding that the byte order mark at the beginning of `sample` names, if there is one."""
    return next((Encoding(name, mark) for mark, name in BYTE_ORDER_MARKS if sample.startswith(mark)), None)


def is_utf8(sample: bytes) -> bool:
    """Return whether a file that begins with `sample` is UTF-8, but for a character cut off at the end."""
    if sample.isascii():
        return True
    is_whole_file = len(sample) < SAMPLE_BYTES
    if is_whole_file and sample[:-1].isascii() and _WESTERN_END.search(sample):
        return False
    return can_decode(sample, "utf-8")


def _detect_utf16_or_utf32(sample: bytes) -> Encoding | None:
    """Detect UTF-32 or UTF-16 without a mark by where the zero bytes of Latin letters and blanks stand."""
    for name in ("utf-32-le", "utf-32-be"):
        if len(sample) >= 4 and _is_readable(sample, name):
            return Encoding(name)
    zeros_at_even = sample[::2].count(0)
    zeros_at_odd = sample[1::2].count(0)
    more_zeros = max(zeros_at_even, zeros_at_odd)
    if len(sample) < _SHORT_SAMPLE_BYTES and (len(sample) % 2 or more_zeros * 2 < len(sample)):
        return None  # so few bytes tell nothing unless each character has its zero
    # Both kinds of bytes at zero often, or seldom any: numbers, not letters.
    if min(zeros_at_even, zeros_at_odd) * 20 > more_zeros or more_zeros * 5 < len(sample) // 2:
        return None
    name = "utf-16-be"
    if zeros_at_odd > zeros_at_even:
        name = "utf-16-le"
    if not _is_readable(sample, name):
        return None
    return Encoding(name)


def _detect_legacy(sample: bytes) -> Encoding | None:
    if len(sample) == SAMPLE_BYTES:
        # Half a character at the end would speak against the very encoding it is in.
        sample = sample[: max(sample.rfind(b"\n"), sample.rfind(b" ")) + 1] or sample
    if _looks_western(sample):
        name = _detect_latin(sample)
    else:
        name = _detect_alphabet(sample)
    if name is None or (name == "cp1252" and not can_decode(sample, name)):
        return None
    return Encoding(_narrow_name(name, sample))


def _detect_alphabet(sample: bytes) -> str | None:
    """Return the encoding that the letters speak for, of whatever alphabet, or the ideographs; None for no text."""
    words = _foreign_words(sample)
    if sum(map(_has_both_letters, words)) > len(words) / 2:
        likelihoods = _rank_encodings(sample, (*_LATIN, *_OLDER_LATIN, *_IDEOGRAPHS))
    else:
        # In a log or a program, plain words would outweigh all others.
        excerpt = b"\n".join((*_declarations(sample), b" ".join(words)))
        likelihoods = _rank_encodings(excerpt, _DETECTABLE)
    name = next(iter(likelihoods), "cp1252")
    if _looks_like_media(sample, name, likelihoods.get(name, 0)):
        return None
    if name != "cp949" or not can_decode(sample, "gb18030"):
        return name
    text = sample.decode(name, "replace")
    if len(_IDEOGRAPH.findall(text)) > _KOREAN_IDEOGRAPH_SHARE * len(_BEYOND_ASCII.findall(text)):
        return "gb18030"  # the same two-byte codes
    return name


def _looks_like_media(sample: bytes, name: str, likelihood: float) -> bool:
    """Return whether bytes are samples of a sound or a picture rather than text, even in the likeliest encoding."""
    beyond_ascii = sample.translate(None, _ASCII)
    # The frames and bars of which older programs drew tables look like no letters either, but they are few bytes.
    if len(set(beyond_ascii)) < _MIN_DISTINCT_BYTES or len(beyond_ascii) < _MIN_FOREIGN_SHARE * len(sample):
        return False
    if likelihood < _MIN_LIKELIHOOD:
        return True
    return name not in _WITHOUT_BLANKS and _WITHOUT_WORDS.search(sample) is not None


def _detect_latin(sample: bytes) -> str:
    """Return the encoding of accented letters among plain ones: the Western one unless much speaks for another.

    The fewer letters another encoding reads otherwise, the less they tell: they may be of one name on every line.
    """
    likelihoods = _rank_encodings(sample, _LATIN)
    best = next(iter(likelihoods), "cp1252")
    if likelihoods.get(best, 0) >= _DECLARED_LIKELIHOOD:
        return best
    words = b" ".join(_foreign_words(sample))
    western_text = words.decode("cp1252", "replace")
    best_text = words.decode(best, "replace")
    letters = [match.start() for match in _TELLING_LETTER.finditer(words)]
    different = sum(western_text[at] != best_text[at] for at in letters)
    if not different:
        return "cp1252"
    if likelihoods[best] > likelihoods.get("cp1252", 0) * (1 + _EXCESS_OVER_WESTERN / different):
        return best
    return "cp1252"


def _rank_encodings(sample: bytes, names: Sequence[str]) -> dict[str, float]:
    """Return how likely each of some encodings is, the most likely first; none where it looks like no text.

    One that a page or a source declares goes before all.
    """
    # Its import takes a quarter of a second with its tables, which UTF-8 never pays.
    import chardet

    results = chardet.detect_all(sample, ignore_threshold=True, compat_names=False, include_encodings=names)
    likelihoods: dict[str, float] = {}
    for result in results:
        if result["encoding"] is not None:
            likelihoods[result["encoding"]] = result["confidence"]
    return likelihoods


def _foreign_words(sample: bytes) -> list[bytes]:
    """Return the words with other characters than plain ones, each once: one may be on every line of a log."""
    return list(dict.fromkeys(word for word in _BETWEEN_WORDS.split(sample) if not word.isascii()))


def _has_both_letters(word: bytes) -> bool:
    """Return whether a word has plain letters, and others beside them."""
    return _LETTER_BESIDE_PLAIN.search(word) is not None


def _declarations(sample: bytes) -> list[bytes]:
    """Return the lines at the beginning that may name the encoding."""
    head = sample[:_DECLARATION_BYTES].splitlines()
    return [line for line in head if b"coding" in line or b"charset" in line]


def _looks_western(sample: bytes) -> bool:
    """Return whether there are accented letters among plain ones, and no byte that only other encodings use so."""
    high = [index for index, byte in enumerate(sample) if byte >= 0x80][:4096]
    if not high:
        return False
    isolated = sum(1 for previous, following in pairwise([*high, -1]) if following - previous != 1)
    if isolated * 10 < len(high) * 6:
        return False
    return all(sample[index] >= 0xA0 or sample[index] in _WESTERN_PUNCTUATION for index in high)


def _narrow_name(name: str, sample: bytes) -> str:
    if name == "cp1252" and any(0x80 <= byte < 0xA0 for byte in sample):
        if can_decode(sample, name):
            return name
        return "latin-1"
    for narrower in NARROWER_NAMES.get(name, ()):
        if can_decode(sample, narrower):
            return narrower
    return name


def can_decode(sample: bytes, name: str) -> bool:
    try:
        codecs.getincrementaldecoder(name)().decode(sample)
    except UnicodeError:
        return False
    return True


def _is_readable(sample: bytes, name: str) -> bool:
    if not can_decode(sample, name):
        return False
    text = codecs.getincrementaldecoder(name)().decode(sample)[:4096]
    # Other data read as such units lands all over the planes; text is nearly all in the first one.
    beyond = sum(1 for char in text if char > "\uffff")
    if "\0" in text or beyond * 10 > len(text) or any(char >= "\U00040000" for char in text):
        return False
    return not is_mostly_control(text.encode("utf-8", "replace"))


def _mostly_utf8(sample: bytes) -> bool:
    """Return whether it is UTF-8 with a few stray bytes, as logs of several programs are.

    Other encodings rarely look like it even once.
    """
    text = sample.decode("utf-8", "replace")
    stray = text.count("\ufffd")
    # Of texts of three characters and more in other encodings, one in a thousand.
    return sum(map(_evidence_of, _BEYOND_ASCII.findall(text))) >= 3 * stray


def _evidence_of(character: str) -> int:
    """Return how much a character tells of UTF-8: the more, the more seldom others write its bytes in this order."""
    if character == "\ufffd":
        return 0
    if character > "\uffff":
        return 4
    if character > "\u07ff" or character < "\u0100":
        return 2
    return 1


def is_mostly_control(sample: bytes) -> bool:
    return len(sample) - len(sample.translate(None, _CONTROL_BYTES)) > len(sample) // 10
