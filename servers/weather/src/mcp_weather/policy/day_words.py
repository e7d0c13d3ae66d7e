"""Words for days in the languages that names of places are known in: relative to today, and the days of the week."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from functools import cache
from typing import NamedTuple

__all__ = ["RelativeDay", "find_relative_day", "find_weekday", "fold_words"]


class RelativeDay(NamedTuple):
    """A day by its distance from today.

    Attributes:
        offsets: days from today; a language may have one word for the day before and the day after.
        is_night: whether only the evening and the night that follows are meant.
    """

    offsets: tuple[int, ...]
    is_night: bool = False


_DAYS = {
    0: "today, heute, aujourd'hui, hoy, oggi, hoje, dzis, dzisiaj, vandaag, bugun, 今天, 今日, 本日, きょう, 오늘, "
    "сегодня, сьогодні, днес, данас, اليوم, امروز, היום, σήμερα, आज, วันนี้, idag, i dag, tanaan, dnes, ma, "
    "azi, astazi, danas, danes, siandien, sodien, tana, hari ini, hôm nay, avui",
    1: "tomorrow, morgen, demain, mañana, domani, amanhã, jutro, yarin, 明天, 明日, 明儿, あした, あす, 내일, "
    "завтра, утре, сутра, غدا, الغد, فردا, מחר, αύριο, พรุ่งนี้, imorgon, i morgon, i morgen, huomenna, zitra, "
    "zajtra, holnap, maine, sutra, jutri, rytoj, rit, homme, besok, ngày mai, dema",
    2: "day after tomorrow, übermorgen, après-demain, pasado mañana, dopodomani, depois de amanhã, pojutrze, "
    "overmorgen, obur gun, 后天, 後天, 明後日, あさって, 모레, послезавтра, післязавтра, вдругиден, прекосутра, "
    "بعد غد, پس فردا, מחרתיים, μεθαύριο, มะรืนนี้, มะรืน, i övermorgon, i overmorgen, ylihuomenna, pozitri, "
    "pozajtra, holnaputan, poimaine, prekosutra, pojutrisnjem, poryt, parit, ulehomme, lusa, ngày kia, "
    "dema passat",
    3: "大后天, 大後天, しあさって, 글피",
    -1: "yesterday, gestern, hier, ayer, ieri, ontem, wczoraj, gisteren, dün, 昨天, 昨日, きのう, 어제, вчера, "
    "вчора, учора, јуче, أمس, البارحة, دیروز, אתמול, χθες, χτες, เมื่อวาน, เมื่อวานนี้, igår, i går, eilen, "
    "včera, tegnap, jucer, včeraj, vakar, eile, kemarin, hôm qua, ahir",
    -2: "day before yesterday, vorgestern, avant-hier, anteayer, antier, l'altro ieri, anteontem, przedwczoraj, "
    "eergisteren, evvelsi gun, 前天, 一昨日, おととい, 그저께, 그제, позавчера, позавчора, завчера, прекјуче, "
    "أول أمس, أمس الأول, پریروز, שלשום, προχθές, i förrgår, i forgårs, toissapäivänä, předevčírem, predvčerom, "
    "tegnapelott, alaltaieri, prekjucer, predvčerajšnjim, uzvakar, aizvakar, uleeile, hôm kia, abans-d'ahir",
}
_NIGHTS = {
    0: "tonight, this evening, this night, heute abend, heute nacht, ce soir, cette nuit, esta noche, stasera, "
    "stanotte, esta noite, hoje a noite, dzis wieczorem, dzisiaj wieczorem, dzis w nocy, vanavond, vannacht, "
    "bu gece, bu aksam, 今晚, 今夜, 今天晚上, 今天夜里, 今晩, 오늘밤, 오늘 밤, 오늘 저녁, сегодня вечером, "
    "сегодня ночью, сьогодні ввечері, сьогодні вночі, довечера, тази вечер, вечерас, الليلة, هذه الليلة, امشب, "
    "הלילה, הערב, απόψε, आज रात, คืนนี้, ikvall, i kvall, i natt, i kveld, i aften, i nat, tana iltana, "
    "tana yona, dnes vecer, dnes v noci, ma este, ma ejjel, diseara, la noapte, veceras, nocoj, "
    "siandien vakare, sovakar, sonakt, tana ohtul, tana oosel, malam ini, nanti malam, tối nay, đêm nay, "
    "aquesta nit, aquest vespre",
    1: "tomorrow night, tomorrow evening, morgen abend, morgen nacht, demain soir, mañana por la noche, "
    "domani sera, amanhã à noite, jutro wieczorem, morgenavond, yarin gece, yarin aksam, 明晚, 明天晚上, "
    "明日の夜, 明晩, 내일 밤, 내일 저녁, завтра вечером, завтра ночью, завтра ввечері, ליל מחר, מחר בערב, "
    "αύριο το βράδυ, i morgon kväll, i morgen kveld, i morgen aften, huomenillalla, zitra vecer, holnap este, "
    "besok malam, tối mai",
}
# One word for both sides of today.
_BOTH_SIDES = {"कल": (-1, 1), "परसों": (-2, 2)}

_WEEKDAYS = (
    "monday, Montag, lundi, lunes, lunedì, segunda-feira, segunda, poniedziałek, maandag, Pazartesi, 星期一, 周一, "
    "週一, 礼拜一, 月曜日, 月曜, 월요일, понедельник, понеділок, понеделник, понедељак, الاثنين, الإثنين, "
    "يوم الاثنين, دوشنبه, יום שני, Δευτέρα, सोमवार, วันจันทร์, måndag, mandag, maanantai, maanantaina, pondělí, "
    "pondelok, hétfő, luni, ponedjeljak, ponedeljek, pirmadienis, pirmdiena, esmaspäev, Senin, Thứ Hai, dilluns",
    "tuesday, Dienstag, mardi, martes, martedì, terça-feira, terça, wtorek, dinsdag, Salı, 星期二, 周二, 週二, "
    "礼拜二, 火曜日, 火曜, 화요일, вторник, вівторок, уторак, الثلاثاء, يوم الثلاثاء, سه شنبه, יום שלישי, Τρίτη, "
    "मंगलवार, วันอังคาร, tisdag, tirsdag, tiistai, tiistaina, úterý, utorok, kedd, marți, utorak, torek, "
    "antradienis, otrdiena, teisipäev, Selasa, Thứ Ba, dimarts",
    "wednesday, Mittwoch, mercredi, miércoles, mercoledì, quarta-feira, quarta, środa, woensdag, Çarşamba, 星期三, "
    "周三, 週三, 礼拜三, 水曜日, 水曜, 수요일, среда, среду, середа, середу, сряда, الأربعاء, يوم الأربعاء, "
    "چهارشنبه, יום רביעי, Τετάρτη, बुधवार, วันพุธ, onsdag, keskiviikko, keskiviikkona, středa, streda, szerda, "
    "miercuri, srijeda, sreda, trečiadienis, trešdiena, kolmapäev, Rabu, Thứ Tư, dimecres",
    "thursday, Donnerstag, jeudi, jueves, giovedì, quinta-feira, quinta, czwartek, donderdag, Perşembe, 星期四, "
    "周四, 週四, 礼拜四, 木曜日, 木曜, 목요일, четверг, четвер, четвъртък, четвртак, الخميس, يوم الخميس, پنجشنبه, "
    "יום חמישי, Πέμπτη, गुरुवार, วันพฤหัสบดี, torsdag, torstai, torstaina, čtvrtek, štvrtok, csütörtök, joi, "
    "četvrtak, četrtek, ketvirtadienis, ceturtdiena, neljapäev, Kamis, Thứ Năm, dijous",
    "friday, Freitag, vendredi, viernes, venerdì, sexta-feira, sexta, piątek, vrijdag, Cuma, 星期五, 周五, 週五, "
    "礼拜五, 金曜日, 金曜, 금요일, пятница, пятницу, п'ятниця, пʼятниця, петък, петак, الجمعة, يوم الجمعة, جمعه, "
    "יום שישי, Παρασκευή, शुक्रवार, วันศุกร์, fredag, perjantai, perjantaina, pátek, piatok, péntek, vineri, "
    "petak, petek, penktadienis, piektdiena, reede, Jumat, Thứ Sáu, divendres",
    "saturday, Samstag, Sonnabend, samedi, sábado, sabato, sobota, zaterdag, Cumartesi, 星期六, 周六, 週六, "
    "礼拜六, 土曜日, 土曜, 토요일, суббота, субботу, субота, събота, السبت, يوم السبت, شنبه, יום שבת, שבת, "
    "Σάββατο, शनिवार, วันเสาร์, lördag, lørdag, lauantai, lauantaina, szombat, sâmbătă, subota, šeštadienis, "
    "sestdiena, laupäev, Sabtu, Thứ Bảy, dissabte",
    "sunday, Sonntag, dimanche, domingo, domenica, niedziela, zondag, Pazar, 星期日, 星期天, 周日, 周天, 週日, "
    "礼拜日, 礼拜天, 日曜日, 日曜, 일요일, воскресенье, неділя, неделя, недеља, الأحد, يوم الأحد, یکشنبه, "
    "יום ראשון, Κυριακή, रविवार, วันอาทิตย์, söndag, søndag, sunnuntai, sunnuntaina, neděle, nedeľa, vasárnap, "
    "duminică, nedjelja, nedelja, sekmadienis, svētdiena, pühapäev, Minggu, Chủ Nhật, diumenge",
)
# Words before a day of the week that say no more than that it is one.
_BEFORE_WEEKDAY = (
    "am ",
    "le ",
    "el ",
    "na ",
    "no ",
    "op ",
    "på ",
    "в ",
    "во ",
    "у ",
    "la ",
    "이번 ",
    "这",
    "這",
    "本",
    "今度の",
)
_BASE_LETTERS = str.maketrans({"ø": "o", "đ": "d", "ł": "l", "ı": "i", "’": "'", "\u200c": " "})


def fold_words(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold()).translate(_BASE_LETTERS)
    letters = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    return " ".join(letters.split())


def find_relative_day(words: str) -> RelativeDay | None:
    return _relative_days().get(fold_words(words))


def find_weekday(words: str) -> int | None:
    folded = fold_words(words)
    weekdays = _weekdays()
    if folded in weekdays:
        return weekdays[folded]
    for prefix in map(fold_words, _BEFORE_WEEKDAY):
        name = folded.removeprefix(prefix).strip()
        if name != folded and name in weekdays:
            return weekdays[name]
    return None


@cache
def _relative_days() -> dict[str, RelativeDay]:
    offsets: defaultdict[tuple[str, bool], list[int]] = defaultdict(list)
    for is_night, table in ((False, _DAYS), (True, _NIGHTS)):
        for offset, words in table.items():
            for word in words.split(", "):
                offsets[fold_words(word), is_night].append(offset)
    days: dict[str, RelativeDay] = {}
    for (word, is_night), day_offsets in offsets.items():
        days[word] = RelativeDay(tuple(day_offsets), is_night)
    for word, both_offsets in _BOTH_SIDES.items():
        days[fold_words(word)] = RelativeDay(both_offsets)
    return days


@cache
def _weekdays() -> dict[str, int]:
    weekdays: dict[str, int] = {}
    for number, words in enumerate(_WEEKDAYS):
        weekdays |= dict.fromkeys(map(fold_words, words.split(", ")), number)
    return weekdays
