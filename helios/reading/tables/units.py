"""Units of measurement: a question says "over two hours", the column holds minutes."""

import re
from collections.abc import Sequence

_DIMENSIONS: tuple[dict[str, float], ...] = (
    {
        "second seconds sec secs sekunde sekunden seconde secondes segundo segundos 秒": 1,
        "minute minutes min mins minuten minuto minutos 分钟": 60,
        "hour hours hr hrs h stunde stunden std heure heures hora horas 小时": 3600,
        "day days tag tage tagen jour jours día días dia dias 天": 86_400,
        "week weeks woche wochen semaine semaines semana semanas 周": 604_800,
    },
    {
        "mm millimetre millimetres millimeter millimeters": 0.001,
        "cm centimetre centimetres centimeter centimeters zentimeter": 0.01,
        "m metre metres meter meters mètre mètres metro metros 米": 1,
        "km kilometre kilometres kilometer kilometers kilomètre kilomètres kilómetro kilómetros 公里": 1000,
    },
    {
        "mg milligram milligrams": 0.001,
        "g gram grams gramm gramme grammes gramo gramos 克": 1,
        "kg kilo kilos kilogram kilograms kilogramm 公斤 千克": 1000,
        "t tonne tonnes tonnen tonelada toneladas 吨": 1_000_000,
    },
    {
        "ml millilitre millilitres milliliter milliliters": 0.001,
        "cl centilitre centilitres": 0.01,
        "l litre litres liter liters litro litros 升": 1,
    },
)
_UNITS = {
    form: (number, factor)
    for number, dimension in enumerate(_DIMENSIONS)
    for forms, factor in dimension.items()
    for form in forms.split()
}
_NAMES = "|".join(sorted(_UNITS, key=len, reverse=True))
_BEHIND = re.compile(rf"\s?(?:full |whole )?({_NAMES})(?![A-Za-zÀ-ɏ])", re.IGNORECASE)


def unit_behind(question: str, end: int) -> str:
    """The unit that stands behind a number, which ends there; empty for none."""
    found = _BEHIND.match(question, end)
    unit = found[1].casefold() if found else ""
    return unit if unit in _UNITS else ""


def scale_of(unit: str, header: Sequence[str]) -> float:
    """What a number in a unit is multiplied by to compare with a column whose header's words say another one."""
    if not unit:
        return 1.0
    dimension, factor = _UNITS[unit]
    own = {_UNITS[word][1] for word in header if word in _UNITS and _UNITS[word][0] == dimension}
    return factor / own.pop() if len(own) == 1 else 1.0
