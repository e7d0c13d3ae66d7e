"""Words for kinds of places, such as city and province, with which a name may be written or not."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["divide_by_kinds", "drop_kind"]

# The longest come first. What is left must have two characters: 成都 is no capital called 成.
_EAST_ASIAN_KIND = re.compile(
    "(?<=..)(?:특별자치시|특별자치도|특별시|광역시|壮族自治区|回族自治区|维吾尔自治区|特别行政区|特別行政區|自治区|自治區|自治州|自治县|"
    "新区|新區|地区|地區|省|市|区|區|县|縣|県|州|盟|旗|镇|鎮|乡|郡|町|村|都|道|府|시|도|군|구|읍|면)$"
)
_BEFORE = re.compile(
    r"^(?:city of|province of|state of|county of|town of|stadt|landkreis|kreis|provinz|kanton|canton de|canton of|"
    r"ville de|d[ée]partement de|ciudad de|provincia de|provincia di|citt[àa] di|comune di|cidade de|estado de|"
    r"munic[íi]pio de|gemeente|miasto|wojew[óo]dztwo|powiat|город(?:е)?|гор\.?|г\.|область|місто|м\.|m[ěe]sto|"
    r"مدينة|محافظة|ولاية|شهر|استان|th[àa]nh ph[ốo]|t[ỉi]nh|tp\.?|kota|provinsi|kabupaten|δήμος|νομός) (?=..)"
    # Thai has no spaces between words.
    r"|^(?:เทศบาลนคร|เทศบาลเมือง|จังหวัด|อำเภอ|เมือง) ?(?=...)",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"(?<=..) (?:city|province|state|county|district|prefecture|oblast|krai|область|край|район|республика|"
    r"il[çc]esi|[şs]ehri|l[äa]n|kommun|kommune|fylke|maakunta|शहर|नगर|जिला|ज़िला|राज्य)$|(?<=..)-(?:si|do|gu|gun|shi|ken|fu|to)$",
    re.IGNORECASE,
)
# Where one place ends and a smaller one begins: kinds of what can hold others, and what follows them.
_LETTER = "[\u3400-\u9fff\uac00-\ud7a3]"
_END_OF_LARGER = re.compile(
    rf"(?<={_LETTER}{{2}})(?:특별자치시|특별자치도|특별시|광역시|特别行政区|特別行政區|自治区|自治區|自治州|省|市|区|區|县|縣|県|都|道|府)"
    rf"(?={_LETTER}{{2}})"
)


def drop_kind(name: str) -> str:
    """Return `name` without the word for its kind: `深圳市` is `深圳`, `City of London` is `London`."""
    composed = unicodedata.normalize("NFC", name)
    bare = _EAST_ASIAN_KIND.sub("", composed)
    bare = _BEFORE.sub("", bare)
    return _AFTER.sub("", bare)


def divide_by_kinds(name: str) -> list[str]:
    """Return the places in a name that has no spaces: `广东省深圳市南山区` is three, the largest first."""
    places: list[str] = []
    begin = 0
    for end in _END_OF_LARGER.finditer(name):
        if end.end() - begin > 2:
            places.append(name[begin : end.end()])
            begin = end.end()
    places.append(name[begin:])
    return places
