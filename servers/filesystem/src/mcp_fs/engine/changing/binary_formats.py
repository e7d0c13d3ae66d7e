"""Which names promise contents that are no text, and what to do instead of writing text there.

A name that texts have as well, such as `.svg`, `.rtf`, `.ps`, `.dat` or `.stl`, is not among them.
"""

from __future__ import annotations

import codecs

from mcp_batteries.errors import Refused, quote
from mcp_fs.engine.document_kinds import HEAD_BYTES, LABELS, RAW_MEMBERS, kind_of
from mcp_fs.engine.documents.formats.notebook import notebook_cells
from mcp_fs.engine.text.encodings import SAMPLE_BYTES, detect_encoding
from mcp_fs.policy import ReadablePath

__all__ = ["binary_format", "check_text_for", "is_text_file", "other_form_error", "suggest_text_file"]

_FORMATS = {
    "a workbook": "xlsx xlsm xlsb xltx xls ods ots numbers",
    "a document": "docx docm dotx doc odt ott pages epub mobi azw3 one",
    "slides": "pptx pptm ppsx potx ppt odp otp",
    "a drawing": "odg vsdx vsd psd dwg sketch",
    "a PDF": "pdf",
    "an archive": "zip tar tgz gz tbz tbz2 bz2 txz xz 7z rar zst lz4 br jar war whl egg apk ipa deb rpm",
    "an image of a disk": "iso dmg img cab msi",
    "a picture": "png jpg jpeg jpe gif webp bmp tif tiff ico icns heic heif avif jxl jp2",
    "a sound": "mp3 wav ogg oga opus flac m4a aac aiff wma mid midi",
    "a video": "mp4 m4v mov avi mkv webm wmv flv mpg mpeg",
    "a database": "sqlite sqlite3 db db3 mdb accdb duckdb",
    "a table of data": "parquet feather arrow orc avro npy npz h5 hdf5 pkl pickle",
    "a program": "exe dll so dylib o class pyc pyo wasm lnk",
    "a font": "ttf otf woff woff2 eot",
    "a model": "onnx safetensors gguf glb",
}
_LABELS: dict[str, str] = {}
for _label, _suffixes in _FORMATS.items():
    _LABELS.update(dict.fromkeys(_suffixes.split(), _label))
_AS_TABLE = ("a workbook", "a table of data", "a database")
_AS_TEXT = ("a document", "slides", "a PDF")
# What people write by hand in such a format, since it can be text.
_HANDWRITTEN_STARTS = {"pdf": b"%PDF-"}


def binary_format(name: str) -> str | None:
    """Return what a file of this name is, if text can't be that."""
    return _LABELS.get(_suffix(name))


def check_text_for(path: ReadablePath, text: bytes, old: bytes) -> None:
    """Check that text may be what a file of this name holds.

    Args:
        text: how the new contents begin; of a notebook all of them.
        old: how those that it replaces begin; empty for a new file.

    Raises:
        Refused: the name promises something else, and what is there is not text either.
    """
    if not text:
        return
    if _suffix(path.name) == "ipynb" and notebook_cells(text.removeprefix(codecs.BOM_UTF8)) is None:
        raise Refused(
            f"{quote(path.display)} would not be a notebook, which is JSON with `cells`; nothing was written.",
            "Change a cell with `edit_file`, write the whole JSON, or save the text as .py or .md.",
        )
    label = binary_format(path.name)
    if label is None or is_text_file(path.name, old) or _is_handwritten(path.name, text):
        return
    raise Refused(
        f"{quote(path.display)} is the name of {label}, which text can't be; nothing was written.",
        suggest_text_file(path),
    )


def is_text_file(name: str, head: bytes) -> bool:
    """Whether a file that begins with `head` holds text, and nothing that is read in another form."""
    return bool(head) and kind_of(name, head[:HEAD_BYTES]) is None and detect_encoding(head[:SAMPLE_BYTES]) is not None


def suggest_text_file(path: ReadablePath) -> str:
    """Suggest a next move to callers who put text where none can be."""
    label = binary_format(path.name)
    stem = path.display.rpartition(".")[0] or path.display
    if label in _AS_TABLE:
        return f"Save the rows as a new file, such as {quote(f'{stem}.csv')}."
    if label in _AS_TEXT:
        return f"Save the text as a new file, such as {quote(f'{stem}.md')}."
    if label is not None:
        return f"Save the text under another name, such as {quote(f'{stem}.txt')}; text makes nothing else."
    return "Only a program that knows its format can change it; save text under another name."


def other_form_error(path: ReadablePath, kind: str) -> Refused:
    """Build the answer to an edit of what is read in another form than it is stored."""
    form = LABELS.get(kind, "what is packed in it")
    label = quote(path.display)
    failure = f"{label} is read as the {form}, and stored in another form; nothing was changed."
    if kind in RAW_MEMBERS:
        source = quote(f"{path.display}!/{RAW_MEMBERS[kind]}")
        return Refused(
            failure,
            f"Read {source}, which is the file itself, and write all of it to {label} with `write_file` and "
            "`overwrite`. Or save the text as .md.",
        )
    return Refused(failure, suggest_text_file(path))


def _is_handwritten(name: str, text: bytes) -> bool:
    mark = _HANDWRITTEN_STARTS.get(_suffix(name))
    return mark is not None and text.startswith(mark)


def _suffix(name: str) -> str:
    stem, _, suffix = name.rpartition(".")
    return suffix.lower() if stem else ""
