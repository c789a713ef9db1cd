"""Functions that a query may call: those that compute from their arguments and touch nothing else.

An allow-list: what is not here (files, procedures, settings, sleeping, plug-ins such as apoc) is refused. Keys are in
lower case, values as Neo4j spells them.
"""

AGGREGATES = ("avg", "collect", "count", "max", "min", "percentileCont", "percentileDisc", "stDev", "stDevP", "sum")
GRAPH = (
    "elementId", "endNode", "id", "keys", "labels", "length", "nodes", "properties", "relationships", "startNode",
    "type",
)  # fmt: skip
LISTS = ("head", "isEmpty", "last", "range", "reverse", "size", "tail")
NUMBERS = (
    "abs", "acos", "asin", "atan", "atan2", "ceil", "cos", "cot", "degrees", "e", "exp", "floor", "haversin", "isNaN",
    "log", "log10", "pi", "radians", "rand", "round", "sign", "sin", "sqrt", "tan",
)  # fmt: skip
STRINGS = (
    "btrim", "char_length", "character_length", "left", "lower", "ltrim", "normalize", "replace", "right", "rtrim",
    "split", "substring", "toLower", "toUpper", "trim", "upper",
)  # fmt: skip
CONVERSIONS = (
    "toBoolean", "toBooleanOrNull", "toFloat", "toFloatOrNull", "toInteger", "toIntegerOrNull", "toString",
    "toStringOrNull", "coalesce", "nullIf", "exists", "valueType",
)  # fmt: skip
TIMES = (
    "date", "date.truncate", "datetime", "datetime.fromEpoch", "datetime.fromEpochMillis", "datetime.truncate",
    "duration", "duration.between", "duration.inDays", "duration.inMonths", "duration.inSeconds", "localdatetime",
    "localdatetime.truncate", "localtime", "time", "timestamp",
)  # fmt: skip
PLACES = ("point", "point.distance", "point.withinBBox")

FUNCTIONS = {
    written.lower(): written
    for written in (*AGGREGATES, *GRAPH, *LISTS, *NUMBERS, *STRINGS, *CONVERSIONS, *TIMES, *PLACES)
}

PROCEDURES = {
    written.lower(): written
    for written in (
        "db.index.fulltext.queryNodes", "db.index.fulltext.queryRelationships", "db.index.vector.queryNodes",
        "db.index.vector.queryRelationships",
    )
}  # fmt: skip
"""What a query may CALL on a server: look-ups in its own indexes of texts and vectors."""
