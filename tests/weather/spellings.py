"""Places as people write them: a small gazetteer that answers as the geocoder does, and the spellings made from it.

Names are GeoNames' (CC BY 4.0), as are coordinates to a tenth of a degree and rounded populations.
"""

import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple


class Known(NamedTuple):
    """A place: its English name and region, country, point, people, and names by language: place, region, country."""

    name: str
    admin1: str
    country: str
    latitude: float
    longitude: float
    people: int
    told: dict[str, tuple[str, str, str]]


ZH, JA, KO = "中国", "日本", "대한민국"
PLACES = [
    Known("Shanghai", "Shanghai", "CN", 31.2, 121.5, 24_000_000, {"zh": ("上海", "上海市", ZH)}),
    Known("Pudong", "Shanghai", "CN", 31.2, 121.6, 5_000_000, {"zh": ("浦东新区", "上海市", ZH)}),
    Known(
        "Beijing",
        "Beijing",
        "CN",
        39.9,
        116.4,
        19_000_000,
        {"zh": ("北京", "北京市", ZH), "de": ("Peking", "Peking", "China")},
    ),
    Known("Haidian", "Beijing", "CN", 40.0, 116.3, 3_000_000, {"zh": ("海淀区", "北京市", ZH)}),
    Known("Shenzhen", "Guangdong", "CN", 22.5, 114.1, 17_000_000, {"zh": ("深圳", "广东省", ZH)}),
    Known("Guangzhou", "Guangdong", "CN", 23.1, 113.3, 16_000_000, {"zh": ("广州", "广东省", ZH)}),
    Known("Hangzhou", "Zhejiang", "CN", 30.3, 120.2, 9_000_000, {"zh": ("杭州", "浙江省", ZH)}),
    Known("Chengdu", "Sichuan", "CN", 30.7, 104.1, 13_000_000, {"zh": ("成都", "四川省", ZH)}),
    Known("Nanjing", "Jiangsu", "CN", 32.1, 118.8, 7_000_000, {"zh": ("南京", "江苏省", ZH)}),
    Known("Suzhou", "Jiangsu", "CN", 31.3, 120.6, 5_000_000, {"zh": ("苏州", "江苏省", ZH)}),
    Known("Suzhou", "Anhui", "CN", 33.6, 117.0, 1_600_000, {"zh": ("宿州", "安徽省", ZH)}),
    Known("Hong Kong", "Hong Kong", "HK", 22.3, 114.2, 7_400_000, {"zh": ("香港", "香港特别行政区", "香港")}),
    Known("Macau", "Macau", "MO", 22.2, 113.5, 650_000, {"zh": ("澳门", "澳门特别行政区", "澳门")}),
    Known(
        "Tokyo", "Tokyo", "JP", 35.7, 139.7, 9_700_000, {"ja": ("東京", "東京都", JA), "zh": ("东京", "东京都", "日本")}
    ),
    Known("Sapporo", "Hokkaido", "JP", 43.1, 141.3, 1_900_000, {"ja": ("札幌市", "北海道", JA)}),
    Known("Osaka", "Osaka", "JP", 34.7, 135.5, 2_700_000, {"ja": ("大阪市", "大阪府", JA)}),
    Known("Naha", "Okinawa", "JP", 26.2, 127.7, 317_000, {"ja": ("那覇市", "沖縄県", JA)}),
    Known("Kyoto", "Kyoto", "JP", 35.0, 135.8, 1_460_000, {"ja": ("京都市", "京都府", JA)}),
    Known("Seoul", "Seoul", "KR", 37.6, 127.0, 10_300_000, {"ko": ("서울", "서울특별시", KO)}),
    Known("Busan", "Busan", "KR", 35.1, 129.0, 3_400_000, {"ko": ("부산", "부산광역시", KO)}),
    Known("Hallim", "Jeju-do", "KR", 33.4, 126.3, 20_000, {"ko": ("한림", "제주도", KO)}),
    Known("Jeju City", "Jeju-do", "KR", 33.5, 126.5, 408_000, {"ko": ("제주시", "제주도", KO)}),
    Known("Suwon", "Gyeonggi-do", "KR", 37.3, 127.0, 1_200_000, {"ko": ("수원시", "경기도", KO)}),
    Known("Cairo", "Cairo", "EG", 30.1, 31.2, 9_600_000, {"ar": ("القاهرة", "محافظة القاهرة", "مصر")}),
    Known("Alexandria", "Alexandria", "EG", 31.2, 29.9, 5_200_000, {"ar": ("الإسكندرية", "محافظة الإسكندرية", "مصر")}),
    Known("Riyadh", "Riyadh", "SA", 24.7, 46.7, 7_000_000, {"ar": ("الرياض", "منطقة الرياض", "السعودية")}),
    Known("Tehran", "Tehran", "IR", 35.7, 51.4, 7_100_000, {"fa": ("تهران", "تهران", "ایران")}),
    Known("Moscow", "Moscow", "RU", 55.8, 37.6, 10_400_000, {"ru": ("Москва", "Москва", "Россия")}),
    Known("Kazan", "Tatarstan", "RU", 55.8, 49.1, 1_250_000, {"ru": ("Казань", "Татарстан", "Россия")}),
    Known(
        "Kyiv",
        "Kyiv City",
        "UA",
        50.5,
        30.5,
        2_800_000,
        {"uk": ("Київ", "Київ", "Україна"), "ru": ("Киев", "Киев", "Украина")},
    ),
    Known("Athens", "Attica", "GR", 38.0, 23.7, 664_000, {"el": ("Αθήνα", "Αττική", "Ελλάδα")}),
    Known("Delhi", "Delhi", "IN", 28.7, 77.2, 11_000_000, {"hi": ("दिल्ली", "दिल्ली", "भारत")}),
    Known("Mumbai", "Maharashtra", "IN", 19.1, 72.9, 12_700_000, {"hi": ("मुंबई", "महाराष्ट्र", "भारत")}),
    Known("Bombay", "New York", "US", 44.9, -74.6, 1_300, {}),
    Known("Paris", "Île-de-France", "FR", 48.9, 2.3, 2_140_000, {"fr": ("Paris", "Île-de-France", "France")}),
    Known("Paris", "Texas", "US", 33.7, -95.6, 24_000, {}),
    Known("Austin", "Texas", "US", 30.3, -97.7, 960_000, {}),
    Known(
        "Frankfurt am Main", "Hesse", "DE", 50.1, 8.7, 750_000, {"de": ("Frankfurt am Main", "Hessen", "Deutschland")}
    ),
    Known(
        "Frankfurt (Oder)",
        "Brandenburg",
        "DE",
        52.3,
        14.6,
        57_000,
        {"de": ("Frankfurt (Oder)", "Brandenburg", "Deutschland")},
    ),
    Known(
        "Wetter",
        "North Rhine-Westphalia",
        "DE",
        51.4,
        7.4,
        28_000,
        {"de": ("Wetter", "Nordrhein-Westfalen", "Deutschland")},
    ),
    Known("Munich", "Bavaria", "DE", 48.1, 11.6, 1_260_000, {"de": ("München", "Bayern", "Deutschland")}),
    Known("Madrid", "Madrid", "ES", 40.4, -3.7, 3_300_000, {"es": ("Madrid", "Comunidad de Madrid", "España")}),
    Known("Istanbul", "Istanbul", "TR", 41.0, 29.0, 15_700_000, {"tr": ("İstanbul", "İstanbul", "Türkiye")}),
    Known("Hanoi", "Hanoi", "VN", 21.0, 105.8, 8_000_000, {"vi": ("Hà Nội", "Hà Nội", "Việt Nam")}),
    Known("Ho Chi Minh City", "Ho Chi Minh", "VN", 10.8, 106.7, 8_900_000, {}),
]

# By language: N is the name, R the region, C the country; B and S are name and region without words for their kinds.
PATTERNS = {
    "zh": [
        "N", "B市", "SN", "RN", "RB市", "CN", "N天气", "N的天气", "N天气预报", "N今天天气怎么样",
        "R、N", "R，N", "N，C", "N（R）", "【R】N"
    ],
    "ja": ["N", "B", "RN", "R N", "N、R", "N（R）", "Nの天気", "Nの天気予報", "CN", "C、R、N"],
    "ko": ["N", "R N", "N, R", "N (R)", "N 날씨", "C R N", "N 오늘 날씨", "RN"],
    "ar": ["N", "N، C", "C، N", "طقس N", "الطقس في N", "مدينة N", "N (C)"],
    "fa": ["N", "N، C", "آب و هوای N", "شهر N"],
    "ru": ["N", "N, C", "C, N", "Погода N", "город N", "г. N", "N (C)", "N погода"],
    "uk": ["N", "N, C", "C, N", "місто N", "N (C)", "погода N"],
    "el": ["N", "N, C", "C, N", "N (C)", "Δήμος N"],
    "hi": ["N", "N, C", "C, N", "N (C)"],
    "de": ["N", "N, C", "C, N", "Wetter in N", "Stadt N", "N - C", "N (C)", "N; C"],
    "fr": ["N", "N, C", "météo à N", "ville de N", "C - N"],
    "es": ["N", "N, C", "el tiempo en N", "ciudad de N", "C, N"],
    "tr": ["N", "N, C", "N hava durumu", "C, N", "N şehri"],
    "vi": ["N", "N, C", "thời tiết N", "Thành phố N", "C, N"],
}  # fmt: skip
ENGLISH = ["N, C", "N (C)", "weather in N, C", "C, N", "N, R, C", "C N"]
COUNTRIES = {
    "CN": "China", "HK": "Hong Kong", "MO": "Macao", "JP": "Japan", "KR": "South Korea", "EG": "Egypt",
    "SA": "Saudi Arabia", "IR": "Iran", "RU": "Russia", "UA": "Ukraine", "GR": "Greece", "IN": "India",
    "US": "United States", "FR": "France", "DE": "Germany", "ES": "Spain", "TR": "Turkey", "VN": "Vietnam",
}  # fmt: skip
OTHERS = [
    ("Peking", "Beijing"), ("Hongkong", "Hong Kong"), ("Bombay", "Mumbai"), ("Saigon", "Ho Chi Minh City"),
    ("Nanking", "Nanjing"), ("Kiev", "Kyiv"), ("Pusan", "Busan"), ("上海浦东", "Pudong"), ("上海市浦东新区", "Pudong"),
    ("北京海淀", "Haidian"), ("北京市海淀区", "Haidian"), ("广东省深圳市南山区", "Shenzhen"), ("제주도 한림", "Hallim"),
    ("香港特别行政区", "Hong Kong"), ("中国香港", "Hong Kong"), ("Frankfurt (Oder)", "Frankfurt (Oder)"),
    ("Wetter", "Wetter"), ("Wetter in Wetter", "Wetter"), ("Texas, Austin", "Austin"), ("Munich weather", "Munich"),
    ("Bombay, New York", "Bombay"), ("深圳", "Shenzhen"), ("宿州", "Suzhou"), ("成都", "Chengdu"), ("京都", "Kyoto"),
    ("東京都", "Tokyo"), ("大阪", "Osaka"), ("서울특별시", "Seoul"), ("부산시", "Busan"),
]  # fmt: skip


def spellings() -> list[tuple[str, Known]]:
    """Each way to write each of the places."""
    written: dict[str, Known] = {}
    for place in PLACES:
        for language, (name, region, country) in place.told.items():
            for pattern in PATTERNS.get(language, []):
                if "市" in pattern and name.endswith("区"):
                    continue
                written[_fill(pattern, name, region, country)] = place
        if place.name not in ("Bombay", "Paris", "Suzhou") and place.country not in ("HK", "MO"):
            for pattern in ENGLISH:
                written[_fill(pattern, place.name, place.admin1, COUNTRIES[place.country])] = place
    return list(written.items())


def _fill(pattern: str, name: str, region: str, country: str) -> str:
    bare_name, bare_region = _bare(name), _bare(region)
    if region == country or bare_region == bare_name:
        region = bare_region = country
    values = {"N": name, "B": bare_name, "R": region, "S": bare_region, "C": country}
    return "".join(values.get(letter, letter) if _is_slot(pattern, at) else letter for at, letter in enumerate(pattern))


def _is_slot(pattern: str, at: int) -> bool:
    """Whether the letter is a slot and not one of a word."""
    around = pattern[max(0, at - 1) : at] + pattern[at + 1 : at + 2]
    return pattern[at] in "NBRSC" and not any(letter.isascii() and letter.islower() for letter in around)


def _bare(name: str) -> str:
    for kind in ("特别行政区", "新区", "省", "市", "区", "都", "府", "県"):
        if name.endswith(kind) and len(name) - len(kind) >= 2:
            return name.removesuffix(kind)
    return name


def _plain(name: str) -> str:
    decomposed = unicodedata.normalize("NFKD", name.casefold())
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter)).replace("ı", "i")


def find(name: str, language: str) -> list[dict[str, Any]]:
    """What the geocoder answers: names of that language, exactly those of two letters, else beginnings."""
    wanted = _plain(name)
    found: list[dict[str, Any]] = []
    for number, place in enumerate(PLACES):
        told = place.told.get(language, (place.name, place.admin1, COUNTRIES[place.country]))
        plain = _plain(told[0])
        if plain == wanted or (len(name) > 2 and plain.startswith(wanted)):
            found.append(
                {
                    "id": number, "name": told[0], "admin1": told[1], "country": told[2],
                    "country_code": place.country, "latitude": place.latitude, "longitude": place.longitude,
                    "population": place.people, "timezone": "UTC",
                }
            )  # fmt: skip
    return found


async def geocoder(name: str, languages: Sequence[str | None]) -> list[list[dict[str, Any]]]:
    """The gazetteer as the policy asks it."""
    return [find(name, language) for language in dict.fromkeys(item or "en" for item in languages)]
