"""Words of a question that say what is computed, in English, German, French, Spanish and Chinese.

They are hints: trees weigh them beside everything else, and a language that is not listed has none.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from helios.index.languages import recognise
from helios.models.glossary import Glossed, gloss
from helios.reading.tables.units import unit_behind

_COUNT = (
    r"how many|how often|number of|count(?:\b|s of)|wie ?viele|wie oft|几次|anzahl|combien d|nombre de|"
    r"cu[aá]nt[oa]s|n[uú]mero de|"
    r"多少[个名人件本项次种辆台家所位门]|几[个名人件本项次种辆台家所位门]|数量"
)
_SUM = (
    r"\btotal|altogether|\bin all\b|\bsum\b|overall|combined|\btogether\b|add(?:ed|s)? up|"
    r"insgesamt|summe|gesamt|zusammen|en tout|somme|\bsuma\b|en conjunto|一共|总共|总计|合计|总"
)
_MUCH = (
    r"how much|\bspen[dt]|\btak(?:e|en|ings)\b|\bearn|wie ?viel\b|ausgegeben|combien|d[ée]pens|cu[aá]nto|gast|多少|花"
)
_AVERAGE = r"\baverage|\bavg\b|\bmean\b|durchschnitt|im mittel|moyenne|promedio|\bmedi[ao]\b|平均"
_COMPARED = (
    "more|less|longer|shorter|higher|lower|older|younger|cheaper|dearer|bigger|smaller|larger|heavier|lighter|taller|"
    "faster|slower|wider|deeper|warmer|colder|hotter|later|earlier|further|better|worse"
)
_DIFFERENCE = (
    rf"difference|\bgap\b|\bmargin\b|\bapart\b|\bout(?:weigh|score|sell|sold)|\bby how (?:much|many)|"
    rf"how much (?:{_COMPARED}|extra)\b|"
    r"how (?:many|much) [^?]{0,30}\b[a-z]{3,}er\b(?:(?! than)[^?]{1,30}\bthan\b| than\b(?!\s*[$€£]?\d))|"
    r"how many (?:\w+ ){0,2}?(?:more|fewer|less)\b|"
    r"\b(?:g(?:o|oes|oing|one)|went|rises?|rose|risen|rising|put) (?:up|down)\b|\b(?:price|pay|cost|fee|rent|wage)s? "
    r"(?:rise|increase|drop|cut|change)\b|\b(?:increase|decrease|drop|rise|fall|jump)(?:d|s|ped|ed)?\b[^?]{0,40}\b"
    r"(?:since|from|between|compared|last year)\b|\b(?:over|above|below|under|short of) (?:the )?"
    r"(?:quote|budget|estimate|plan|target)\b|"
    r"unterschied|differenz|um wie ?viel|wie ?viele? (?:\w+ )?(?:mehr|weniger)|\b(?:teurer|billiger|länger|kürzer|"
    r"höher|niedriger|größer|kleiner|schwerer|leichter|älter|jünger)\b|gestiegen|gesunken|erhöht|erhöhung|"
    r"\b(?:preis)?anstieg|diff[ée]rence|[ée]cart|de plus que|\bde (?:plus|moins|trop)\b(?! (?:de|en)\b| d['’])|"
    r"augment|hausse|\bbaiss|par rapport|"
    r"plus (?:cher|chère|long|longue|grand|grande|haut|haute|lourd|lourde|âgé|âgée) que|"
    r"diferencia|m[aá]s que|cu[aá]nt[oa]s? (?:\w+ )?(?:m[aá]s|menos)|\bha (?:subido|bajado)|\bsubi(?:ó|da)|"
    r"\bbaj(?:ó|ada)\b|aument|con respecto|m[aá]s (?:car[oa]|larg[oa]|grande|alt[oa]|pesad[oa]) que|"
    r"相差|差多少|差了?几|多多少|涨|上涨|提高了|降了|下降|减少了|增加了|(?<![最至])(?:贵|便宜|[高低重轻大小早晚快慢多少])了?(?:多少|几)"
)
_PREAMBLE = re.compile(
    r"^\W*(?:(?:hey|hi|hello|say|so|ok|okay|sorry|quick one|oye|dime|perdona|hé|dis(?:-moi| donc)?|hallo|sag mal|"
    r"ach|请问|哎|诶)\b[\s,!:–-]*)*"
    r"(?P<asks>(?:do|does|can|could|would|will) (?:you|anyone|anybody|someone|somebody)(?: please| also| still)? "
    r"(?:(?:happen|be able) to )?(?:know|remember|recall|tell (?:me|us)|say|remind me|look up|find out)\b"
    r"(?: off ?hand)?|"
    r"(?:do|does|would) (?:you|anyone|anybody) happen to (?:have|know)\b|any idea\b|(?:please )?(?:tell|remind) me\b|"
    r"i (?:need|want|have|would like) to know\b|i'd like to know\b|weißt du(?: noch)?|wissen sie|"
    r"k(?:annst du|önnen sie) mir sagen|sabes|sabe usted|me pued(?:es|e) decir|tu sais|vous savez|sais-tu|savez-vous|"
    r"(?:tu )?peux(?:-tu)? me dire|pouvez-vous me dire|你知道|能告诉我)?[\s,:]*",
    re.IGNORECASE,
)
"""What people say before a question: "hey, do you know how many ..."."""
_WHETHER_BEHIND = re.compile(r"(?:if|whether|ob|si)\b", re.IGNORECASE)
_DURATION = (
    r"how (?:long|late|early)|how many (?:\w+ )?(?:days|nights|weeks|minutes|hours|mins)|\bminutes? (?:between|from)|"
    r"\bdays? (?:\w+ )?(?:between|from|late|early|before|after|until|till)|"
    r"\btage? (?:zwischen|vor|nach|liegen|lagen|später|früher)|\bjours? (?:entre|avant|après|de retard|d['’]avance)|"
    r"\bdías? (?:entre|antes|después|de retraso|pasan|pasaron)|隔了?[多几]|间隔|相隔|[早晚]了?几[天日]|提前几|"
    r"wie lange|wie ?viele? (?:tage|nächte|wochen|minuten|stunden)|"
    r"combien de (?:temps|jours|nuits|semaines|minutes|heures)|\bdurée|"
    r"cu[aá]nto tiempo|cu[aá]nt[oa]s (?:días|noches|semanas|minutos|horas)|多久|多少天|几天|几晚|多长时间"
)
_ELSEWHERE = (
    r"ist|sind|war|waren|hat|haben|hatte|gibt|gab|wird|werden|wurde|wurden|kann|darf|muss|"
    r"est|sont|était|a-t|ont|y a|est-ce|peut|doit|"
    r"es|son|hay|tiene|tienen|est[aá]|están|fue|fueron|puede|había"
)
_EXISTENCE = (
    r"\b(?:is|are|was|were) (?:there|any)|\banything\b|\bgot any\b|\bdo (?:we|you|they) (?:have|own|stock|sell|keep)|"
    r"\b(?:have|has|had) (?:we|you|they|anyone|anybody) (?:ever )?(?:got|had)|gibt es|haben wir|"
    r"y a-t-il|avons-nous|est-ce qu.{1,6}y a|\bhay\b|tenemos|有没有"
)
_AUXILIARY = (
    r"^\W*(?:is|are|was|were|does|do|did|has|have|had|can|could|will|would|should|may|must|"
    rf"{_ELSEWHERE})\b|吗|是否|有没有"
)
_MOST = (
    r"\bmost\b|\bhighest|\blargest|\bbiggest|\blongest|\bgreatest|\bmaximum|\bmax\b|\btop\b|\bbest\b|\bheaviest|"
    r"\btallest|\blatest|\bnewest|\blast\b|\bfinal\b|most recent|\bexpensive|\bpriciest|\bstrongest|\bfastest|"
    r"\bbusiest|"
    r"\bmeiste|h[öo]chst|gr[öo](?:ß|ss)t|l[äa]ngst|teuerst|\bbeste|neueste|\bletzte|schwerst|maxim|"
    r"le plus|la plus|les plus|plus (?:grand|élev|haut|long|cher|r[ée]cent)|dernier|dernière|"
    r"m[aá]s (?!que)|mayor|m[aá]xim|[uú]ltim|最(?!少|低|小|早|短|轻|便宜)"
)
_LEAST = (
    r"\bleast\b|\blowest|\bsmallest|\bshortest|\bfewest|\bminimum|\bmin\b|\bcheapest|\bearliest|\bfirst\b|\blightest|"
    r"\bworst|\bslowest|\bweakest|"
    r"\bwenigste|niedrigst|kleinst|k[üu]rzest|billigst|g[üu]nstigst|fr[üu]hest|\berste|minim|"
    r"le moins|la moins|les moins|plus (?:petit|bas|faible|court|t[ôo]t|ancien)|premier|première|"
    r"menor|menos|m[ií]nim|primer|m[aá]s (?:bajo|barat|pequeñ|cort|tempran|antigu)|最(?:少|低|小|早|短|轻|便宜)"
)
_NEGATED = (
    r"\bnot\b|n['’]t\b|\b(?:are|is|was|were|has|have|had|do|does|did|ca|wo|could|would|should)nt\b|\black(?:s|ed|ing)?\b|\bmissing\b|"
    r"\bno\b|\bnone\b|\bno(?:body|thing)\b|\bempty\b|\bnever\b|\bwithout\b|\byet to\b|"
    r"\bshort of\b|\bfail|"
    r"\bstill (?:to|has to|have to|needs?)\b|\bnicht|\bkein|\bohne\b|\bfehl|"
    r"\bpas\b|\bsans\b|\bjamais\b|\bsin\b|\bnunca\b|\bfalta|没|未|不|无"
)
_EITHER = r"\boldest|\byoungest|\w{3,}est\b|[äa]ltest|j[üu]ngst|plus (?:vieux|vieille|jeune)|m[aá]s (?:viej|jov)"
_ORDINALS = (
    (
        2,
        r"last but one|penultimate|vorletzt|avant-derni|pen[uú]ltim|倒数第二|\bsecond\b|\b2nd\b|runner-?up|zweit|"
        r"deuxi[èe]me|segund|第二",
    ),
    (3, r"\bthird\b|\b3rd\b|dritt|troisi[èe]me|tercer|第三"),
    (4, r"\bfourth\b|\b4th\b|viert|quatri[èe]me|cuart|第四"),
    (5, r"\bfifth\b|\b5th\b|fünft|cinqui[èe]me|quint|第五"),
)
_HOW_MANY = (
    r"\d{1,2}|two|three|four|five|six|seven|eight|nine|ten|zwei|drei|vier|fünf|sechs|zehn|deux|trois|quatre|cinq|dix|"
    r"dos|tres|cuatro|cinco|seis|diez"
)
_NO_ORDER = (
    r"(?!\s*(?:%|€|£|digits?|days?|weeks?|months?|years?|hours?|minutes?|tage|wochen|monate|jahre|jours|semaines|mois|"
    r"ans|días|semanas|meses|años))"
)
_NO_MOST = r"(?!(?:for|inter|har|hon|pri|requ|b|t|gu|w|r|n|p|l|off)est\b|intérêt|tarde\b|temprano\b)"
"""Words that end as superlatives do, and are none."""
_FIRST_FEW = (
    rf"\b(?:top|bottom|first|last|best|worst|latest|ersten|letzten|premi[eè]r[es]*|derni[eè]r[es]*|primer[oa]s|"
    rf"últim[oa]s) (?P<behind>{_HOW_MANY})\b{_NO_ORDER}"
    rf"|\b(?P<before>{_HOW_MANY}) (?:(?:most|least) \w+|{_NO_MOST}\w{{3,}}est|best|worst|"
    rf"(?!Pf)\w{{4,}}sten|plus \w+|moins \w+|(?:\w+ )?(?:m[aá]s|menos) (?!tarde|temprano)\w+)\b"
    r"|(?<!目)前(?P<unspaced>[二两三四五六七八九十]|\d{1,2})(?![天年月周日个月])|"
    r"最[^，。？]{1,3}的(?P<most>[两三四五六七八九十]|\d{1,2})[个名种款家件]"
)
_WHOLE_ORDER = (
    r"\b(?:old|small|short|low|cheap|earli|young|high|larg|long|big|new|lat)est (?:first\b|to \w+est\b)|"
    r"\bfrom \w+est to \w+est\b|\b(?:in|by) order of\b|\bsorted (?:by|from|in)\b|\brank(?:ed)? (?:by|the|all)\b|"
    r"\bsortiert|der reihe nach|\btriés\b|par ordre|\bordenad[oa]s\b|de mayor a menor|de menor a mayor|"
    r"先后|从最[^，。？]{1,3}到最|排序|排一下"
)
_UNSPACED_NUMBERS = {word: number for number, word in enumerate("二三四五六七八九十", start=2)} | {"两": 2}
MOST_FIRST = 12
"""Rows that come first and are asked for together, at most."""
WHOLE_ORDER = 30
"""Rows of a whole order, at most: as many as an answer lists."""
_MORE_GERMAN = "mehr|größer|höher|länger|später|älter|teurer|schwerer|schneller|breiter"
_LESS_GERMAN = "weniger|kleiner|kürzer|früher|jünger|billiger|günstiger|leichter|niedriger"
_LESS_FRENCH = r"(?:petit|court|bas|jeune|tôt|l[ée]g[eè]r|lent|faible|bref|brève)\w*"
_LESS_SPANISH = r"(?:pequeñ|cort|baj|joven|jóven|temprano|pronto|liger|lent|barat)\w*"
_WORD = r"(?:[^\W\d]+ )?"
_QUE = r"qu(?:e|(?=['’]))"
_NOT_ABOVE = (
    rf"nicht {_WORD}(?:{_MORE_GERMAN}) als|pas plus (?!{_LESS_FRENCH} ){_WORD}(?:de|{_QUE})|"
    rf"no {_WORD}más (?!{_LESS_SPANISH} ){_WORD}(?:de|que)"
)
_NOT_BELOW = (
    rf"nicht {_WORD}(?:{_LESS_GERMAN}) als|pas moins {_WORD}(?:de|{_QUE})|pas plus {_LESS_FRENCH} {_QUE}|"
    rf"no {_WORD}menos {_WORD}(?:de|que)|no {_WORD}más {_LESS_SPANISH} que"
)
_ABOVE = (
    r"(?<!no )(?<!not )more than|over|above|past|beyond|"
    r"exceed\w*|after|since|from|"
    r"(?!small|low|short|few|young|light|cheap|earl|slow|weak|thin|near)[a-z]{3,}er than(?: [a-z]+)?|"
    r"at least|or more|no less than|minimum of|starting|"
    rf"(?:{_MORE_GERMAN}) als|über|mindestens|nach|seit|ab|"
    rf"plus de|plus (?!{_LESS_FRENCH} ){_WORD}{_QUE}|au moins|supérieur\w* à|après|depuis|"
    rf"más de|más (?!{_LESS_SPANISH} ){_WORD}que|"
    r"mayor\w* (?:de|que|a)|al menos|superior\w* a|después del?|desde|超过|大于|高于|以上|至少|多于|之后"
)
_BELOW = (
    r"less than|(?:small|low|short|few|young|light|cheap|earli|slow|weak|thinn|near)er than|under|below|before|"
    r"until|up to|at most|or less|or fewer|not? more than|by|"
    rf"(?:{_LESS_GERMAN}) als|unter|höchstens|vor|bis|"
    rf"moins de|moins {_WORD}{_QUE}|plus {_LESS_FRENCH} {_QUE}|au plus|inférieur\w* à|avant|jusqu\w*|"
    rf"menos de|menos {_WORD}que|más {_LESS_SPANISH} que|menor\w* (?:de|que|a)|"
    r"como máximo|inferior\w* a|antes del?|hasta|少于|小于|低于|不到|不足|以下|至多|之前"
)
_SIGNS = (("<=", _NOT_ABOVE), (">=", _NOT_BELOW), (">", _ABOVE), ("<", _BELOW))
"""What is denied comes first: "not heavier than" ends like "heavier than"."""
_COMPARING = tuple((sign, re.compile(rf"\b(?:{text})\b(?!\W*[\d$€£¥])", re.IGNORECASE)) for sign, text in _SIGNS)
"""Words that compare with something else than a number."""
_INCLUSIVE = re.compile(
    r"at least|or more|no less|since|from|minimum|mindestens|\bseit\b|\bab\b|au moins|depuis|al menos|desde|以上|至少|"
    r"\bby\b|up to|at most|or less|or fewer|not? more|until|höchstens|\bbis\b|au plus|jusqu|máximo|hasta|以下|至多"
)
_UNIT = r"^\W{0,2}(?:(?!(?:and|und|et|y)\b)[^\W\d]{1,14}\W){0,3}?[^\W\d]{0,14}\W?"
"""Up to four words between a number and what it is compared by: 4 quid a day or more."""
_BEHIND = (
    (
        ">=",
        re.compile(
            rf"{_UNIT}(?:or (?:more|above|over|later|older|after|since|better|higher|newer|longer|larger|bigger)|"
            r"(?:and|or) (?:since|afterwards)\b|onwards?\b|oder (?:mehr|später|länger|höher)|und später|aufwärts|"
            r"ou (?:plus|après)|et (?:après|au-delà)|o (?:más|después)|y después|en adelante|"
            r"以上|[及或](?:更多|以后|之后))|^ ?[年月日号]?[初底]?(?:起|以来|开始)",
            re.I,
        ),
    ),
    (
        "<=",
        re.compile(
            rf"{_UNIT}(?:or (?:less|fewer|below|under|earlier|before|lower|cheaper|shorter|smaller)|oder weniger|"
            r"ou moins|o menos|以下|[及或](?:更少|以前|之前)|底?为止)|^ (?:is|has) (?:out|over|ended)\b",
            re.I,
        ),
    ),
    (">", re.compile(r"^ ?\w{0,2}(?:以后|之后)")),
    ("<", re.compile(r"^ ?\w{0,2}(?:以前|之前)")),
)
_BETWEEN = re.compile(r"\b(?:between|from|zwischen|von|entre|de)\b|在", re.IGNORECASE)
_AND = re.compile(r"^\s*(?:and|to|und|bis|et|à|y|a|-|–|[块元岁斤米]?(?:到|至|和))\s*$", re.IGNORECASE)
_AND_UNSPACED = re.compile(r"^ ?\w{0,2} ?之间")
"""What says behind two numbers that they are an interval: 100到200元之间."""
_LITERAL = re.compile(
    r"(?<![A-Za-z0-9À-ɏ_.,-])[$€£¥]?\s?(\d[\d.,\u202f\u00a0]*\d|\d)(?![A-Za-z0-9À-ɏ_]*\d)(?![年月日号时点]\w*\d)"
    r"(?:\s?(?P<scale>k|m|mn|bn|grand|thousand|million|billion|tausend|mille|mil)\b)?",
    re.IGNORECASE,
)
_SCALES = {"k": 1e3, "grand": 1e3, "thousand": 1e3, "tausend": 1e3, "mille": 1e3, "mil": 1e3, "m": 1e6, "mn": 1e6,
           "million": 1e6, "bn": 1e9, "billion": 1e9}  # fmt: skip
_NUMBER_WORDS = {
    word: float(value)
    for words, value in (
        ("one eins ein eine un une uno una", 1), ("two zwei deux dos", 2), ("three drei trois tres", 3),
        ("four vier quatre cuatro", 4), ("five fünf cinq cinco", 5), ("six sechs seis", 6),
        ("seven sieben sept siete", 7), ("eight acht huit ocho", 8), ("nine neun neuf nueve", 9),
        ("ten zehn dix diez", 10), ("eleven elf onze once", 11),
        ("twelve zwölf douze doce dozen dutzend douzaine docena", 12), ("thirteen dreizehn treize trece", 13),
        ("fourteen vierzehn quatorze catorce", 14), ("fifteen fünfzehn quinze quince", 15),
        ("sixteen sechzehn seize dieciséis", 16), ("seventeen siebzehn diecisiete", 17),
        ("eighteen achtzehn dieciocho", 18), ("nineteen neunzehn diecinueve", 19), ("fiver", 5), ("tenner", 10),
        ("twenty zwanzig vingt veinte", 20), ("thirty dreißig dreissig trente treinta", 30),
        ("forty vierzig cuarenta", 40),
        ("fifty fünfzig cinquante cincuenta", 50), ("sixty sechzig soixante sesenta", 60),
        ("seventy siebzig setenta", 70), ("eighty achtzig ochenta", 80), ("ninety neunzig noventa", 90),
        ("hundred hundert cent cien", 100), ("thousand tausend mille mil", 1000),
    )
    for word in words.split()
}  # fmt: skip
_NUMBER_WORD = "|".join(sorted(_NUMBER_WORDS, key=len, reverse=True))
_ONES = "|".join(word for word, value in _NUMBER_WORDS.items() if value < 10)
_SPELLED = re.compile(
    rf"\b(?:(?P<tens>twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)[- ](?P<ones>{_ONES})"
    rf"|(?P<plain>{_NUMBER_WORD}))\b(?: (?P<scale>hundred|thousand|grand|dozen|million))?",
    re.IGNORECASE,
)
_UNSPACED_DIGITS = "零一二三四五六七八九"
_UNSPACED_SCALES = {"十": 10.0, "百": 100.0, "千": 1000.0}
_UNSPACED_SPELLED = re.compile(
    r"(?<![第几数前后这那每某同一二两三四五六七八九十百千万零.])(?![十百千万]*[一]?[个些点])(?:[一二两三四五六七八九十百千][一二两三四五六七八九十百千万零]*"
    r"(?=\s*(?:多|余)?(?:分(?!之)|[块元吨次人件台辆张份名岁米斤升度户盒箱袋瓶支条套层楼]|公斤|公里|小时|分钟|天|以上|以下|[及或]更))|"
    r"[一二两三四五六七八九][百千万][一二两三四五六七八九零][一二两三四五六七八九十百千万零]*(?![一二两三四五六七八九十百千万零年]))"
)
"""Numbers in Chinese words before a measure, and those of three words or more (四千九); dates and ordinals have others
behind them, or words before them."""

_LESS = (
    "less|fewer|smaller|shorter|lower|cheaper|lighter|younger|slower|nearer|thinner|weaker|colder|cooler|weniger|kleiner|"
    "kürzer|niedriger|billiger|günstiger|leichter|jünger|moins|menos"
)
_MORE = (
    "more|longer|higher|older|dearer|bigger|larger|heavier|taller|faster|wider|deeper|warmer|hotter|further|greater|"
    "stronger|busier|mehr|größer|höher|länger|teurer|schwerer|älter|schneller|plus|más|mas"
)
_RIVALS = re.compile(
    rf"\b(?:(?P<less>{_LESS})|{_MORE})\b(?:\s+[^\s?]+){{0,4}}?\s+(?:than|als|que)\b"
    rf"(?!\W*(?:[\d$€£¥]|(?:an?|half|usual|average|last|the (?:usual|average|last)|{_NUMBER_WORD})\b))",
    re.IGNORECASE,
)
"""Words that compare two things with each other: "does A have more orders than B"."""
_SOONER = re.compile(
    r"\b(?:(?P<sooner>before|earlier|sooner|older|longer|ahead of|prior to|vor|früher|eher|älter|länger|avant|"
    r"plus tôt|plus (?:âgée?|vieux|vieille|ancienne?)|antes|mayor|más antigu[oa])|after|later|newer|younger|"
    r"more recent(?:ly)?|nach|später|jünger|neuer|après|plus tard|plus (?:jeune|récente?)|después|"
    r"más (?:tarde|joven|reciente|nuev[oa]))\b|"
    r"(?P<unspaced>[早先久])|[晚迟后]",
    re.IGNORECASE,
)
"""Words that compare two days: who is older was born earlier, and what lasts longer began earlier."""
_THAN_UNSPACED = re.compile(r"比(?=[^，。？\d]{1,10}?(?:[多高晚大长重贵久迟]|(?P<less>[少低早短小轻])))")
"""The word for "than" where it stands before what is compared with: 比约定的晚."""
_MORE_UNSPACED = re.compile(r"^ ?\w{0,2}?[更还要]?(?:[多高晚大长重贵久]|(?P<less>[少低早短小轻]|便宜))")
"""What is said behind a number that 比 stands before."""


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


_CUES = {
    "count": _pattern(_COUNT),
    "sum": _pattern(_SUM),
    "average": _pattern(_AVERAGE),
    "much": _pattern(_MUCH),
    "difference": _pattern(_DIFFERENCE),
    "whether": _pattern(_AUXILIARY),
    "most": _pattern(_MOST),
    "least": _pattern(_LEAST),
    "either": _pattern(_EITHER),
    "negated": _pattern(_NEGATED),
}
CUES = (*_CUES, "ordinal")
_WHETHER_GERMAN = _pattern(rf"^\W*(?:{_ELSEWHERE})\b")
"""German asks "was" where English asks "what"."""
_OPENING = r"new year|start|beginning|anfang|beginn|(?:le )?début|principios de"
_ENDING = r"end|ende|(?:la )?fin|fin(?:al(?:es)?)?"
"""What of a time is meant: "since the start of 2020", "before the end of May"."""
LOOKED_BACK, LOOKED_AHEAD = 28, 26
"""Characters before and after a number that may say what it is compared by."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A number of the question, with what it is compared by: `>=`, `>`, `<`, `<=`, `between` or `=`."""

    operator: str
    low: float
    high: float
    start: int
    """Characters [start, end) of the question, with the words that compare."""
    end: int
    unit: str = ""
    """The unit that stands behind the number."""


@dataclass(frozen=True, slots=True)
class Wording:
    """The operations that a question's words speak of."""

    cues: dict[str, tuple[int, int]]
    """Characters of the first words that speak of each."""
    place: int
    """2 for the second of an order, 1 where no ordinal is said."""
    comparisons: tuple[Comparison, ...]
    lasts: bool
    """Whether the time from one date to another may be asked for."""
    exists: bool = False
    """Whether it is asked if there is such a thing."""
    few: int = 0
    """How many that come first in an order are asked for together; 0 where only one is."""
    rivals: int = 0
    """1 where it is asked of two things which has more, -1 which has less, 0 for neither."""
    sooner: int = 0
    """-1 where it is asked of two things which was earlier, 1 which was later, 0 for neither."""
    comparing: tuple[tuple[str, int, int], ...] = ()
    """Words that compare with what is named behind them: `>`, `>=`, `<` or `<=`, and their characters."""

    def has(self, cue: str) -> bool:
        """Whether a word speaks of it."""
        return cue in self.cues

    @property
    def orders(self) -> bool:
        """Whether something is asked that comes first in an order."""
        return self.few > 0 or any(cue in self.cues for cue in ("most", "least", "either", "ordinal"))


def wording_of(question: str) -> Wording:
    """Find the words that speak of operations, in the question and in its English where a glossary has that."""
    own, english = _wording_of(question), gloss(question)
    if english is None:
        return own
    also = _wording_of(english.text)
    cues = {name: english.characters(*span) for name, span in also.cues.items()} | own.cues
    return Wording(
        cues, max(own.place, also.place), _said_in_either(own.comparisons, also.comparisons, english),
        own.lasts or also.lasts, own.exists or also.exists, own.few or also.few, own.rivals or also.rivals,
        own.sooner or also.sooner, own.comparing,
    )  # fmt: skip


def _said_in_either(own: Sequence[Comparison], also: Sequence[Comparison], english: Glossed) -> tuple[Comparison, ...]:
    """Comparisons of a question; where it has a bare number, what its English compares the number by."""
    found = list(own)
    for one in also:
        start, end = english.characters(one.start, one.end)
        bare = [at for at, known in enumerate(found) if known.operator == "=" and start <= known.start < end]
        if one.operator == "=" or not bare:
            continue
        found = [known for at, known in enumerate(found) if at not in bare]
        found.append(replace(one, start=start, end=end))
    return tuple(found)


def _wording_of(question: str) -> Wording:
    patterns = dict(_CUES)
    if recognise(question) == "de":
        patterns["whether"] = _WHETHER_GERMAN
    cues = {name: found.span() for name, pattern in patterns.items() if (found := pattern.search(question))}
    opening = _PREAMBLE.match(question)
    if opening and opening["asks"]:
        cues.pop("whether", None)
        behind = question[opening.end() :]
        if found := _WHETHER_BEHIND.match(behind) or patterns["whether"].match(behind):
            cues["whether"] = (opening.end(), opening.end() + found.end())
    place = 1
    for number, text in _ORDINALS:
        if found := re.search(text, question, re.IGNORECASE):
            place = number
            cues["ordinal"] = found.span()
            break
    lasts, exists = (re.search(text, question, re.IGNORECASE) is not None for text in (_DURATION, _EXISTENCE))
    comparing = tuple(_comparing(question))
    compared = tuple(replace(one, unit=unit_behind(question, one.end)) for one in _comparisons(question))
    found = _RIVALS.search(question)
    rivals = 0 if found is None else -1 if found["less"] else 1
    when = _SOONER.search(question)
    sooner = 0 if when is None else -1 if when["sooner"] or when["unspaced"] else 1
    return Wording(cues, place, compared, lasts, exists, _few(question), rivals, sooner, comparing)


def _few(question: str) -> int:
    """How many are asked for that come first: "the three cheapest", "top 5"; as many as may be for a whole order."""
    if found := re.search(_FIRST_FEW, question, re.IGNORECASE):
        word = next(word for word in found.groups() if word).casefold()
        number = int(word) if word.isdigit() else int(_UNSPACED_NUMBERS.get(word) or _NUMBER_WORDS[word])
        return number if 2 <= number <= MOST_FIRST else 0
    return WHOLE_ORDER if re.search(_WHOLE_ORDER, question, re.IGNORECASE) else 0


def _comparisons(question: str) -> list[Comparison]:
    numbers = [
        (match.start(), match.end(), value, _SCALES.get((match["scale"] or "").casefold(), 1.0))
        for match in _LITERAL.finditer(question)
        if (value := _value(match[1])) is not None
    ]
    found: list[Comparison] = []
    for at, (first, last, value, scale) in enumerate(numbers):
        if found and found[-1].operator == "between" and first < found[-1].end:
            continue  # the end of an interval
        start, end, most, scaled = numbers[at + 1] if at + 1 < len(numbers) else (0, 0, 0.0, 1.0)
        before = question[max(0, first - LOOKED_BACK) : first]
        opening = [one.end() for one in _BETWEEN.finditer(before)]
        opened = bool(opening) and len(before) - opening[-1] <= 3 or _AND_UNSPACED.match(question[end:])
        if start and opened and _AND.match(question[last:start]):
            own = scale if scale > 1 else scaled
            found += [
                Comparison("between", value * one, most * other, first, end)
                for one, other in {(1.0, 1.0), (own, scaled)}
            ]
        else:
            operator, begins = compared_by(question, first, last)
            found += [Comparison(operator, value * one, value * one, begins, last) for one in {1.0, scale}]
    thousands = [
        replace(one, low=one.low * 1000, high=one.high * 1000)
        for one in found
        if re.search(r"(?<![\d.,])\d{1,3}\.\d{3}(?![\d.,])", question[one.start : one.end])
    ]
    return [*found, *thousands, *_spelled_comparisons(question), *_unspaced_comparisons(question)]


def _spelled_comparisons(question: str) -> Iterator[Comparison]:
    """Numbers in words, where something is compared by them: "over fifty"."""
    for match in _SPELLED.finditer(question):
        operator, start = compared_by(question, match.start(), match.end())
        if operator != "=":
            value = _NUMBER_WORDS[(match["tens"] or match["plain"]).lower()]  # casefold() knows no ß
            value += _NUMBER_WORDS[match["ones"].lower()] if match["ones"] else 0.0
            scale = (match["scale"] or "one").casefold()
            value *= _SCALES.get(scale) or _NUMBER_WORDS[scale]
            yield Comparison(operator, value, value, start, match.end())


def _unspaced_comparisons(question: str) -> Iterator[Comparison]:
    """Numbers in Chinese words before what they count: 六百块, 五十吨."""
    for match in _UNSPACED_SPELLED.finditer(question):
        value = _unspaced_value(match[0])
        if value > 1:
            operator, start = compared_by(question, match.start(), match.end())
            yield Comparison(operator, value, value, start, match.end())


def _unspaced_value(text: str) -> float:
    """三百五 is 350, 一千零五 is 1,005."""
    total, digit, last = 0.0, 0.0, 1.0
    for character in text:
        if character == "万":
            total, digit, last = (total + digit) * 1e4, 0.0, 1e4
        elif character in _UNSPACED_SCALES:
            last = _UNSPACED_SCALES[character]
            total, digit = total + (digit or 1.0) * last, 0.0
        elif character == "零":
            last = 10.0
        else:
            digit = float(_UNSPACED_DIGITS.index(character) if character != "两" else 2)
    return total + digit * (last / 10 if last > 10 else 1.0)


def compared_by(question: str, start: int, end: int) -> tuple[str, int]:
    """What the number or date in [start, end) is compared by, and where the words begin that say so."""
    before, after = question[max(0, start - LOOKED_BACK) : start], question[end : end + LOOKED_AHEAD]
    for operator, pattern in _BEHIND:
        if pattern.match(after):
            return operator, start
    if before.rstrip().endswith("比") and (than := _MORE_UNSPACED.match(after)):
        return "<" if than["less"] else ">", start - 1
    for sign, text in _SIGNS:
        said = re.search(
            rf"(?:^|\W|(?<=[㐀-鿿]))({text})\W{{0,3}}(?:(?:the|an?|dem|den|der|el|la|le|les|los)\s)?"
            rf"(?:(?:{_OPENING}|(?P<ending>{_ENDING}))(?: (?:of|de|du|del))?\s)?\W{{0,2}}$",
            before,
            re.I,
        )
        if said:
            signed = _signed(sign, _INCLUSIVE.search(said.group(1)))
            if said["ending"]:  # what is before the end of May is in May too
                signed = "<=" if sign.startswith("<") else ">"
            return signed, start - len(before) + said.start(1)
    return "=", start


def _comparing(question: str) -> Iterator[tuple[str, int, int]]:
    ends = set()
    for sign, pattern in _COMPARING:
        for found in pattern.finditer(question):
            before, than, _ = found[0].partition(" than ")
            end = found.start() + len(before + than.rstrip())
            if end not in ends:
                yield _signed(sign, _INCLUSIVE.fullmatch(found[0])), found.start(), end
            ends.add(end)
    for found in _RIVALS.finditer(question):  # "fewer members than places"
        if found.end() not in ends:
            yield "<" if found["less"] else ">", found.start(), found.end()
    for found in _THAN_UNSPACED.finditer(question):
        yield "<" if found["less"] else ">", found.start(), found.end()


def _signed(sign: str, inclusive: re.Match[str] | None) -> str:
    return sign if inclusive is None or sign.endswith("=") else f"{sign}="


def _value(digits: str) -> float | None:
    plain = re.sub(r"[\u202f\u00a0]", "", digits)
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", plain):
        plain = plain.replace(",", "")
    elif re.fullmatch(r"\d{1,3}(\.\d{3})+(,\d+)?", plain) and plain.count(".") + plain.count(",") > 1:
        plain = plain.replace(".", "").replace(",", ".")
    else:
        plain = plain.replace(",", ".") if plain.count(",") == 1 and "." not in plain else plain
    try:
        return float(plain)
    except ValueError:
        return None
