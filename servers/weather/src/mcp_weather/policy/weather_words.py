"""Words for the weather, which people write around the name of a place, in the languages of `day_words`."""

from __future__ import annotations

import re

__all__ = ["drop_doubtful_weather_words", "drop_weather_words"]

# No place has these words in its name. `Wetter`, which is a town on the Ruhr, needs its preposition.
_AFTER = (
    r"(?:的)?(?:今天|明天|后天|现在|今日|明日)?(?:的|の)?(?:天气预报|天氣預報|天气|天氣|天気予報|天気|气温|氣溫|気温)(?:怎么样|如何|预报)?",
    r"(?:의)? ?(?:오늘|내일|모레)? ?(?:날씨|기온)(?: 예보)?",
    r" (?:weather(?: forecast)?|forecast)",
    r"(?:['’][dt][ae])? hava(?: durumu)?",
    r" (?:погода|прогноз погоды|weer|väder|vejr|sää)",
    r" (?:का |में )?मौसम",
)
_BEFORE = (
    r"(?:(?:what(?:'s| is)|how(?:'s| is)) )?(?:the |current )?weather(?: forecast)?(?: like)?(?: in| for| at| of)? ",
    r"forecast (?:in|for|at|of) ",
    r"(?:das )?wetter (?:heute |morgen |übermorgen )?(?:in|für|von) ",
    r"quel temps fait[- ]il (?:à|a|en|au) ",
    r"(?:la )?m[ée]t[ée]o (?:(?:à|a|de|du|des|pour|di|per) )?",
    r"che tempo fa (?:a|in) ",
    r"(?:pronóstico del tiempo|(?:el )?(?:tiempo|clima)) (?:en|de) ",
    r"clima ",
    r"previsão do tempo (?:(?:em|para|de|no|na) )?",
    r"(?:il |o )?(?:tempo|clima) (?:a|di|em|de|no|na|per) ",
    r"(?:het )?weer in ",
    r"(?:jaka )?pogoda (?:(?:w|we|dla) )?",
    r"(?:прогноз погоды|погода) (?:(?:в|во|на|у) )?",
    r"(?:حالة )?(?:ال)?طقس (?:في )?",
    r"(?:آب[ \u200c]?و[ \u200c]?)?هوای ",
    r"(?:ο )?καιρός (?:στην |στη |στον |στο |στα )?",
    r"(?:พยากรณ์|สภาพ)?อากาศ(?:ใน|ที่)? ?",
    r"thời tiết (?:ở |tại )?",
    r"cuaca (?:di )?",
    r"(?:天气|天気|날씨)[:：]? ?",
)
_WEATHER = re.compile(rf"^(?:{'|'.join(_BEFORE)})(?=..)|(?<=..)(?:{'|'.join(_AFTER)})$", re.IGNORECASE)
# Beside a word for the weather these are no part of a name.
_DAY = re.compile(
    r"^(?:(?:今天|明天|后天|今日|明日|明後日|今晚)[の的]?|(?:오늘|내일|모레|today|tomorrow|tonight|heute|morgen|demain|mañana|"
    r"amanhã|domani|jutro|завтра|сегодня|yarın|bugün) )(?=..)"
    r"|(?<=..) (?:today|tomorrow|tonight|heute|morgen|demain|mañana|amanhã|domani|jutro|завтра|сегодня|yarın|bugün)$",
    re.IGNORECASE,
)
_DOUBTFUL = re.compile(r"^wetter (?=..)|(?<=..) wetter$", re.IGNORECASE)


def drop_weather_words(text: str) -> str:
    """Return `text` without words for the weather before and after a name; all of it where nothing would be left."""
    question = text.rstrip("?？！!。")
    without_weather = _WEATHER.sub("", question)
    if without_weather == question:
        return text
    name = _DAY.sub("", without_weather).strip(" ,，的の의")
    if len(name) < 2:
        return text
    return name


def drop_doubtful_weather_words(name: str) -> str:
    """Return `name` without words for the weather that may also be a place: for when nobody knows the whole."""
    return _DOUBTFUL.sub("", name)
