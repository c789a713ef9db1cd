"""What a SPARQL query may be made of; all else is refused."""

from helios.executors.sparql.terms import XSD


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STRUCTURE = _words("""
    BASE PREFIX SELECT ASK DISTINCT REDUCED AS WHERE GROUP BY HAVING ORDER ASC DESC LIMIT OFFSET VALUES UNDEF GRAPH
    OPTIONAL UNION MINUS FILTER BIND NOT EXISTS IN A TRUE FALSE SEPARATOR
""")
FUNCTIONS = _words("""
    STR LANG LANGMATCHES DATATYPE BOUND IRI URI BNODE RAND ABS CEIL FLOOR ROUND CONCAT STRLEN UCASE LCASE ENCODE_FOR_URI
    CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER YEAR MONTH DAY HOURS MINUTES SECONDS TIMEZONE TZ NOW UUID STRUUID MD5
    SHA1 SHA256 SHA384 SHA512 COALESCE IF STRLANG STRDT SAMETERM ISIRI ISURI ISBLANK ISLITERAL ISNUMERIC REGEX SUBSTR
    REPLACE
""")
AGGREGATES = _words("COUNT SUM MIN MAX AVG SAMPLE GROUP_CONCAT")
CASTS = frozenset(
    XSD + name
    for name in _words("""
        boolean double float decimal integer dateTime string date time duration dayTimeDuration yearMonthDuration
    """)
)
"""Functions that are named by an IRI; those of SPARQL 1.1, and the conversions to dates, which engines have too."""

NODES = _words("""
    SelectQuery AskQuery SubSelect vars PrefixDecl Base GroupGraphPatternSub TriplesBlock GraphGraphPattern
    OptionalGraphPattern GroupOrUnionGraphPattern MinusGraphPattern Filter Bind InlineData ValuesClause pname literal
    GroupClause GroupAs HavingClause OrderClause OrderCondition LimitOffsetClauses
    PathAlternative PathSequence PathElt PathEltOrInverse InversePath PathNegatedPropertySet
    ConditionalOrExpression ConditionalAndExpression RelationalExpression AdditiveExpression MultiplicativeExpression
    UnaryNot UnaryMinus UnaryPlus Function Builtin_EXISTS Builtin_NOTEXISTS
""")
"""Nodes of rdflib's parse tree, besides `Builtin_*` and `Aggregate_*`."""

ENGINE_SCHEMES = frozenset({"java", "bif", "sql"})
"""IRIs of these schemes, and prefixes of these names, make some engines run code."""

REASONS = {
    "SERVICE": "a query must not call other servers",
    "FROM": "a query must not name its own data set",
    "CONSTRUCT": "only SELECT and ASK give rows",
    "DESCRIBE": "only SELECT and ASK give rows",
    **dict.fromkeys(
        _words("INSERT DELETE LOAD CLEAR CREATE DROP COPY MOVE ADD WITH USING DATA INTO SILENT"),
        "a query must not write or load data",
    ),
}
