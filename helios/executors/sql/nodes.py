"""What a parsed query may consist of, by the names of sqlglot's expression classes. Anything else is refused.

STATEMENTS       what the root may be
SYNTAX           clauses, operators, literals and names
FUNCTIONS        what sqlglot has operators and words without parentheses as; calls are looked up by name (`functions`)
"""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STATEMENTS = frozenset({"Select", "Union", "Except", "Intersect", "Values", "Subquery", "Pivot"})

SYNTAX = STATEMENTS | _words(
    """
    Add Adjacent Alias Aliases All And Any AtTimeZone Between BitwiseAnd BitwiseLeftShift BitwiseNot BitwiseOr
    BitwiseRightShift BitwiseXor BitString Boolean Bracket ByteString Case Cast Collate Column ColumnDef Columns
    Comprehension CTE Cube DataType DataTypeParam Distance Distinct Div Dot DPipe EQ Escape Except Exists ExtendsLeft
    ExtendsRight Fetch Filter From Glob Group GroupingSets GT GTE Having HavingMax HexString Identifier If IgnoreNulls
    ILike In IntDiv Interval IntervalSpan Is Join JSONExtractQuote JSONKeyValue JSONPath JSONPathFilter JSONPathKey
    JSONPathRecursive JSONPathRoot JSONPathSelector JSONPathSlice JSONPathSubscript JSONPathUnion JSONPathWildcard
    Kwarg Lambda Lateral Like Limit LimitOptions Literal LT LTE Match Mod Mul Neg NEQ Not Null NullSafeEQ NullSafeNEQ
    Offset Or Order Ordered Overlaps Paren PivotAlias PivotAny Placeholder PositionalColumn PropertyEQ Qualify
    RawString RespectNulls Rollup SimilarTo Slice Star Sub Table TableAlias TableSample TryCast Tuple UnpivotColumns
    RecursiveWithSearch Var Where Window WindowSpec With WithinGroup Xor
    """
)

FUNCTIONS = _words(
    """
    Abs Anonymous AnonymousAggFunc Array ArrayContainedBy ArrayContainsAll ArrayOverlaps Cbrt Coalesce
    CurrentDate CurrentDatetime CurrentTime CurrentTimestamp GroupConcat JSONBContains JSONBContainsAllTopKeys
    JSONBContainsAnyTopKeys JSONBContainsTopKey JSONBDeleteAtPath JSONBExtract JSONBExtractScalar
    JSONBPathExists JSONExtract JSONExtractScalar List Localtime Localtimestamp Map MatchAgainst Pow
    RegexpFullMatch RegexpILike RegexpLike Soundex Sqrt StartsWith Struct ToMap Unnest VarMap
    """
)

ALLOWED = SYNTAX | FUNCTIONS

TYPES_REFUSED = frozenset({"USERDEFINED", "XML", "OBJECT_IDENTIFIER", "UNKNOWN", "NAME"})
"""Types a cast may not name: those that look into the catalog, parse documents, or are somebody's own."""
