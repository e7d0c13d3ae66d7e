"""Words for the weather, which people write around the name of a place."""

from __future__ import annotations

import re

__all__ = ["drop_weather_words"]

# No place has these words in its name. `Wetter`, which is a town on the Ruhr, needs its preposition.
_WORDS = (
    r"(?:的)?(?:今天|明天|现在|今日|明日)?(?:的|の)?(?:天气预报|天氣預報|天气|天氣|天気予報|天気|气温|氣溫|気温)(?:怎么样|如何|预报)?",
    r"(?:의)? ?(?:오늘|내일)? ?(?:날씨|기온)(?: 예보)?",
    r" (?:weather(?: forecast)?|forecast)",
    r" (?:hava durumu|погода|прогноз погоды|weer|väder|vejr|sää)",
)
_BEFORE = (
    r"(?:the |current )?weather(?: forecast)?(?: in| for| at| of)? ",
    r"forecast (?:in|for|at|of) ",
    r"(?:das )?wetter (?:in|für|von) ",
    r"(?:la )?m[ée]t[ée]o (?:à|a|de|du|des|pour|di|per) ",
    r"(?:el )?(?:tiempo|clima) (?:en|de) ",
    r"(?:il |o )?(?:tempo|clima) (?:a|di|em|de|no|na|per) ",
    r"(?:het )?weer in ",
    r"pogoda (?:w|we|dla) ",
    r"погода (?:(?:в|во|на|у) )?",
    r"(?:حالة )?(?:ال)?طقس (?:في )?",
    r"آب و هوای ",
    r"thời tiết (?:ở |tại )?",
    r"cuaca (?:di )?",
    r"(?:天气|天気|날씨)[:：]? ?",
)
_AROUND = re.compile(rf"^(?:{'|'.join(_BEFORE)})(?=..)|(?<=..)(?:{'|'.join(_WORDS)})$", re.IGNORECASE)


def drop_weather_words(text: str) -> str:
    """Return `text` without words for the weather before and after a name; all of it where nothing would be left."""
    asked = text.rstrip("?？！!。")
    name = _AROUND.sub("", asked).strip(" ,，的の의")
    if name == asked.strip() or len(name) < 2 or not _AROUND.search(asked):
        return text
    return name
