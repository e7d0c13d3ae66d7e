"""Checks sounds before a model hears them: what its API can't read ends the conversation.

Models that hear take WAV and MP3 (OpenAI takes no other), so only these two leave as sounds, and only if all of their
structure is sound.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

__all__ = ["AUDIBLE_TYPES", "is_whole_sound"]

AUDIBLE_TYPES = frozenset({"audio/wav", "audio/mpeg"})

_PCM = 1
_FLOAT = 3
_EXTENSIBLE = 0xFFFE
_FORMAT = struct.Struct("<HHIIHH")
_EXTENSIBLE_BYTES = 40
_SUBFORMAT = 24
_SUBFORMAT_TAIL = bytes.fromhex("000000001000800000aa00389b71")
_MOST_CHANNELS = 8
_KNOWN_BITS = {_PCM: (8, 16, 24, 32), _FLOAT: (32, 64)}

# ISO/IEC 11172-3 and 13818-3, layer III: bit rates in kbit/s, sample rates of MPEG-1, 2 and 2.5.
_BIT_RATES_1 = (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_BIT_RATES_2 = (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_SAMPLE_RATES = {3: (44100, 48000, 32000), 2: (22050, 24000, 16000), 0: (11025, 12000, 8000)}
_MPEG_1 = 3
_ID3V1_BYTES = 128
# Of ID3v2, at its beginning; a footer has as many.
_TAG_HEAD_BYTES = 10
_LEAST_FRAMES = 2


def is_whole_sound(data: bytes, mime_type: str) -> bool:
    """Return whether `data` is a whole WAV or MP3 that every model which hears can read."""
    match mime_type:
        case "audio/wav":
            return _is_whole_wav(data)
        case "audio/mpeg":
            return _is_whole_mp3(data)
        case _:
            return False


def _is_whole_wav(data: bytes) -> bool:
    """Return whether the chunks fill the file, and its samples are numbers (PCM) of a known form."""
    if len(data) < 12 or not data.startswith(b"RIFF") or data[8:12] != b"WAVE":
        return False
    (size,) = struct.unpack_from("<I", data, 4)
    end = size + 8
    if end > len(data):
        return False
    frame_bytes = 0
    for name, begin, length in _iterate_chunks(data, end):
        if begin + length > end:
            return False
        if name == b"fmt ":
            frame_bytes = _frame_bytes(data[begin : begin + length])
            if not frame_bytes:
                return False
        if name == b"data":
            return frame_bytes > 0 and length >= frame_bytes and length % frame_bytes == 0
    return False


def _iterate_chunks(data: bytes, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield the name of each chunk, and where its body begins and how long it is."""
    position = 12
    while position + 8 <= end:
        name, length = struct.unpack_from("<4sI", data, position)
        yield name, position + 8, length
        position += 8 + length + length % 2


def _frame_bytes(body: bytes) -> int:
    """Return the bytes of one sample of all channels; 0 if the format is none that all decoders know."""
    if len(body) < _FORMAT.size:
        return 0
    code, channels, rate, bytes_a_second, frame_bytes, bits = _FORMAT.unpack_from(body)
    if code == _EXTENSIBLE:
        code = _subformat(body)
    if bits not in _KNOWN_BITS.get(code, ()) or not 1 <= channels <= _MOST_CHANNELS or not rate:
        return 0
    if frame_bytes != channels * bits // 8 or bytes_a_second != rate * frame_bytes:
        return 0
    return frame_bytes


def _subformat(body: bytes) -> int:
    """Return the code of the samples in an extensible format; that of none where it is not known."""
    if len(body) < _EXTENSIBLE_BYTES or body[_SUBFORMAT + 2 : _EXTENSIBLE_BYTES] != _SUBFORMAT_TAIL:
        return _EXTENSIBLE
    (code,) = struct.unpack_from("<H", body, _SUBFORMAT)
    return code


def _is_whole_mp3(data: bytes) -> bool:
    """Return whether frames of one version and layer follow each other to the end, between tags."""
    position = _end_of_tag(data)
    end = len(data)
    if data[-_ID3V1_BYTES:].startswith(b"TAG"):
        end -= _ID3V1_BYTES
    frames = 0
    first_kind = None
    while position + 4 <= end:
        header = data[position : position + 4]
        if header.startswith((b"APET", b"LYRI", b"TAG+")):
            break
        length = _mp3_frame_bytes(header)
        kind = header[1] & 0xFE
        if not length or first_kind not in (None, kind):
            return frames >= _LEAST_FRAMES and not any(data[position:end])
        if position + length > end:
            return False
        first_kind = kind
        frames += 1
        position += length
    return frames >= _LEAST_FRAMES


def _end_of_tag(data: bytes) -> int:
    """Return where the tag at the beginning (ID3v2) ends; 0 if there is none."""
    if not data.startswith(b"ID3") or len(data) < _TAG_HEAD_BYTES:
        return 0
    size = 0
    for number in data[6:10]:
        size = size << 7 | number & 0x7F
    end = _TAG_HEAD_BYTES + size
    has_footer = data[5] & 0x10
    if has_footer:
        end += _TAG_HEAD_BYTES
    return end


def _mp3_frame_bytes(header: bytes) -> int:
    """Return the length of the frame that begins with four bytes; 0 if none does."""
    if header[0] != 0xFF or header[1] & 0xE0 != 0xE0:
        return 0
    version = header[1] >> 3 & 3
    is_layer_3 = (header[1] >> 1 & 3) == 1
    bit_rate_index = header[2] >> 4
    rate_index = header[2] >> 2 & 3
    padding = header[2] >> 1 & 1
    if version not in _SAMPLE_RATES or not is_layer_3 or not 0 < bit_rate_index < 15 or rate_index == 3:
        return 0
    bit_rates = _BIT_RATES_2
    factor = 72
    if version == _MPEG_1:
        bit_rates = _BIT_RATES_1
        factor = 144
    return factor * bit_rates[bit_rate_index - 1] * 1000 // _SAMPLE_RATES[version][rate_index] + padding
