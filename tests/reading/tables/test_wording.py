"""Words that say what is computed."""

import pytest

from helios.reading.tables.wording import WHOLE_ORDER, wording_of


@pytest.mark.parametrize(
    ("question", "cue"),
    [
        ("How many boats are there?", "count"),
        ("Wie viele Boote gibt es?", "count"),
        ("Combien de bateaux ?", "count"),
        ("¿Cuántos barcos hay?", "count"),
        ("一共有多少个班级？", "count"),
        ("how often was Duke in", "count"),
        ("total of all fees", "sum"),
        ("avg price of the paperbacks", "average"),
        ("Durchschnitt der Punkte", "average"),
        ("difference between May and June", "difference"),
        ("By how much was the budget overspent?", "difference"),
        ("How much dearer is the large one?", "difference"),
        ("How many litres more did June bring than May?", "difference"),
        ("Wie viel Stunden mehr hat Eva?", "difference"),
        ("how many MB bigger is 4.0 than 3.0", "difference"),
        ("how far apart are the two Abis", "difference"),
        ("¿Cuántos kilos más dio la parcela?", "difference"),
        ("by how much did the fee go up", "difference"),
        ("price rise of the toothpaste", "difference"),
        ("Um wie viel ist der Beitrag gestiegen?", "difference"),
        ("augmentation du menu entre 2023 et 2024", "difference"),
        ("¿Cuánto ha subido la cuota?", "difference"),
        ("会员价涨了多少", "difference"),
        ("do you know whether the pool is open", "whether"),
        ("hey, can you tell me if there is a lift?", "whether"),
        ("Is the pool open?", "whether"),
        ("most expensive tent", "most"),
        ("plus petit bateau", "least"),
        ("the oldest player", "either"),
        ("second longest river", "ordinal"),
        ("the last but one to arrive", "ordinal"),
        ("our final leg", "most"),
        ("payments nobody has approved", "negated"),
    ],
)
def test_a_cue_is_heard(question, cue):
    assert wording_of(question).has(cue)


@pytest.mark.parametrize("question", ["What is the phone number of the summit hut?", "Who teaches maths?"])
def test_nothing_is_heard_where_nothing_is_said(question):
    assert not any(
        wording_of(question).has(cue) for cue in ("sum", "average", "difference", "whether", "most", "least")
    )


@pytest.mark.parametrize(
    "question",
    [
        "Do you know how many orders came in May?",
        "Do you happen to have Rune Halvard's mobile?",
        "can anyone remember what the mat cost",
        "¿Sabes cuántos recibos hay?",
    ],
)
def test_what_is_said_before_a_question_asks_for_no_yes_or_no(question):
    assert not wording_of(question).has("whether")


@pytest.mark.parametrize(
    "question",
    [
        "how much timber did we order",
        "les enfants de moins de 12 ans",
        "factures de plus de 50 euros",
        "最多几个人",
        "至少多少钱",
        "这条河长多少",
    ],
)
def test_words_that_only_look_like_a_difference(question):
    assert not wording_of(question).has("difference")


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("what is below the reorder level", [("<", "below")]),
        ("jobs with at least the quoted hours", [(">=", "at least")]),
        ("what costs over 40 pounds", []),
        ("who came", []),
    ],
)
def test_words_that_compare_with_what_is_named(question, found):
    assert [(sign, question[start:end]) for sign, start, end in wording_of(question).comparing] == found


@pytest.mark.parametrize(
    "question",
    [
        "How many nights is Biscuit with us?",
        "how many minutes longer was it",
        "wie lange war das Gerät weg",
        "durée du prêt",
        "days between the order and the payment",
        "días entre la inscripción y la prueba",
        "多少天",
    ],
)
def test_time_between_dates_is_heard(question):
    assert wording_of(question).lasts


def test_the_place_of_an_ordinal():
    assert [wording_of(text).place for text in ("third best", "zweitgrößte", "best")] == [3, 2, 1]


@pytest.mark.parametrize(
    ("question", "operator"),
    [
        ("over 40", ">"), ("at least 40", ">="), ("under 40", "<"), ("at most 40", "<="), ("40 or more", ">="),
        ("mindestens 40", ">="), ("moins de 40", "<"), ("schwerer als 40", ">"),
        ("nicht länger als 40", "<="), ("plus cher que 40", ">"), ("plus léger que 40", "<"),
        ("moins lourd que 40", "<"), ("plus légère que 40", "<"), ("pas plus cher que 40", "<="),
        ("pas moins cher que 40", ">="),
        ("no es más caro que 40", "<="), ("no menos caro que 40", ">="), ("qué vino más de 40", ">"),
        ("ist nicht viel schwerer als 40", "<="), ("nicht früher als 40", ">="), ("más estable que 40", ">"),
        ("no más barato que 40", ">="), ("plus rentable que 40", ">"), ("más caro que 40", ">"),
        ("más barato que 40", "<"), ("no más de 40", "<="),
        ("más de 40", ">"), ("超过40", ">"), ("number 40", "="),
        ("fainter than magnitude 40", ">"), ("40 or better", ">="), ("40 minutes or more", ">="),
        ("40 or before", "<="),
    ],
)  # fmt: skip
def test_a_number_is_compared(question, operator):
    (comparison,) = wording_of(question).comparisons
    assert (comparison.operator, comparison.low) == (operator, 40.0)


@pytest.mark.parametrize(
    ("question", "number"),
    [
        ("mehr als dreißig Tage", 30.0),
        ("mehr als Dreissig Tage", 30.0),
        ("über FÜNFZIG", 50.0),
        ("over Twenty-Five", 25.0),
    ],
)
def test_numbers_in_words_of_any_case(question, number):
    assert [(one.operator, one.low) for one in wording_of(question).comparisons] == [(">", number)]


def test_an_interval_is_one_comparison():
    (comparison,) = wording_of("between 3 and 5.5 kg").comparisons
    assert (comparison.operator, comparison.low, comparison.high) == ("between", 3.0, 5.5)


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("Was kostet bei uns die Jahreskarte?", False),
        ("Was the pump repaired?", True),
        ("Ist die Pumpe im Lager?", True),
    ],
)
def test_the_german_was_asks_for_no_yes_or_no(question, asks):
    assert wording_of(question).has("whether") is asks


@pytest.mark.parametrize(
    ("question", "numbers"),
    [
        ("over £12k", {12.0, 12000.0}), ("over 3 grand", {3.0, 3000.0}), ("under 2 million", {2.0, 2e6}),
        ("under fifty thousand", {50000.0}), ("over twenty-five", {25.0}), ("more than 5 metres", {5.0}),
    ],
)  # fmt: skip
def test_numbers_in_short_and_in_words(question, numbers):
    assert {one.low for one in wording_of(question).comparisons} == numbers


@pytest.mark.parametrize(
    ("question", "interval"),
    [
        ("between 40k and 50k", (40000.0, 50000.0)), ("between 2 million and 3 million", (2e6, 3e6)),
        ("between 1 and 2 million", (1e6, 2e6)), ("from 5k to 10k", (5000.0, 10000.0)), ("between 3 and 4", (3.0, 4.0)),
    ],
)  # fmt: skip
def test_both_ends_of_an_interval_have_their_scale(question, interval):
    found = wording_of(question).comparisons
    assert interval in {(one.low, one.high) for one in found}
    assert {one.operator for one in found} == {"between"}


def test_a_number_that_is_compared_with_asks_for_no_difference():
    assert not wording_of("How many members are older than 40?").has("difference")


@pytest.mark.parametrize("question", ["have we got any toluene", "is there a hut?", "gibt es einen Keller", "有没有车"])
def test_whether_there_is_such_a_thing(question):
    assert wording_of(question).exists
    assert not wording_of("does Ana work on Mondays").exists


@pytest.mark.parametrize(
    ("question", "few"),
    [
        ("the three cheapest services", 3),
        ("top 5 projects by budget", 5),
        ("the last four shows", 4),
        ("two most expensive items", 2),
        ("die drei teuersten Hunde", 3),
        ("les trois plus chers", 3),
        ("los tres más caros", 3),
        ("最贵的三款茶", 3),
        ("the fermenters from oldest to newest", WHOLE_ORDER),
        ("put the vans in order of age", WHOLE_ORDER),
        ("按进公司先后排一下", WHOLE_ORDER),
        ("what happened in the last 3 days", 0),
        ("the first year", 0),
        ("which is the cheapest?", 0),
        ("从4月到6月一共卖了多少", 0),
        ("how many tries did Leicester score", 0),
        ("cuánto costó el ordenador", 0),
        ("has the drain been sorted", 0),
        ("where is the new first aid kit", 0),
        ("12 Forest Road", 0),
        ("orders above 10 last year", 0),
        ("two interest payments", 0),
        ("vier Pfosten", 0),
        ("tres días más tarde", 0),
        ("the last four digits", 0),
        ("前两天谁值班", 0),
        ("目前三种", 0),
    ],
)
def test_the_first_few_of_an_order(question, few):
    assert wording_of(question).few == few


@pytest.mark.parametrize(
    "question", ["who hasnt paid", "which claims lack a receipt", "what is missing a label", "isn't in"]
)
def test_what_is_not(question):
    assert wording_of(question).has("negated")


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("machines that cost 4 quid a day or more", [(">=", 4.0)]),
        ("which of the 2 rooms cost 50 or more", [("=", 2.0), (">=", 50.0)]),
        ("rooms with 2 beds and 4 or more chairs", [("=", 2.0), (">=", 4.0)]),
    ],
)
def test_words_between_a_number_and_what_it_is_compared_by(question, wanted):
    assert [(one.operator, one.low) for one in wording_of(question).comparisons] == wanted


@pytest.mark.parametrize(
    ("question", "rivals"),
    [
        ("Did Fernside have more jobs than Quill Print?", 1),
        ("Did September have fewer orders than October?", -1),
        ("Did customer Parker place fewer orders than Jones?", -1),
        ("Hat Müller weniger Aufträge als Schmidt?", -1),
        ("Is the Heron bigger than the Swift?", 1),
        ("Are there any orders with more than ten items?", 0),
        ("Is there any customer other than Smith in Leeds?", 0),
        ("Is there any order later than May?", 0),
        ("Does it have more than 3 seats?", 0),
        ("有没有周六的比赛?", 0),
    ],
)
def test_two_things_that_are_compared(question, rivals):
    assert wording_of(question).rivals == rivals


@pytest.mark.parametrize(
    ("question", "operator", "number"),
    [
        ("哪几间房超过六百块", ">", 600),
        ("配件花了一千零五元以上的客户", ">=", 1005),
        ("打分只有两分的工单", "=", 2),
        ("三百五块以下", "<=", 350),
        ("Which have dix exemplaires ou plus", ">=", 10),
        ("who started in 2022 or since", ">=", 2022),
        ("quién entró de 2022 en adelante", ">=", 2022),
        ("before 2025 is out", "<=", 2025),
        ("before new year 2026", "<", 2026),
        ("2024年起", ">=", 2024),
        ("到2024年底为止", "<=", 2024),
        ("到 2026 年以后还在保修期里", ">", 2026),
        ("原值四万七千五的是哪台", "=", 47500),
        ("工资不到四千九的有谁", "<", 4900),
        ("三楼有哪些教室", "=", 3),
        ("比两千二贵的", ">", 2200),
        ("比 50 块便宜的有几个", "<", 50),
        ("百分之五十以上", ">=", 50),
    ],
)
def test_what_a_number_is_compared_by_in_other_words(question, operator, number):
    assert (operator, number) in {(one.operator, one.low) for one in wording_of(question).comparisons}


@pytest.mark.parametrize(
    "question",
    [
        "第一季度", "三个人", "这一次的会议", "五月十二日", "前三名", "一共有几个人", "二千零二年的", "千万别写",
        "万一没有", "比去年多了多少",
    ],
)  # fmt: skip
def test_chinese_words_that_are_no_amounts(question):
    assert not wording_of(question).comparisons


@pytest.mark.parametrize("question", ["价格在100到200元之间的", "单价100元到200元之间的有", "100至200之间"])
def test_an_interval_between_chinese_words(question):
    (comparison,) = wording_of(question).comparisons
    assert (comparison.operator, comparison.low, comparison.high) == ("between", 100, 200)


def test_numbers_of_a_date_are_none_that_is_compared():
    assert [one.low for one in wording_of("8月19日上午冷柜只有1.6度").comparisons] == [1.6]
    assert [one.low for one in wording_of("3个班5个人").comparisons] == [3, 5]
