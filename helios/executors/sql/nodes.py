"""What a parsed query may consist of, by the names of sqlglot's expression classes. Anything else is refused.

STATEMENTS       what the root may be
SYNTAX           clauses, operators, literals and names
FUNCTIONS        calls that sqlglot knows by a class of their own; the rest is looked up by name (`functions`)
"""

STATEMENTS = frozenset({"Select", "Union", "Except", "Intersect", "Values", "Subquery"})

SYNTAX = STATEMENTS | frozenset(
    """
    Add Adjacent Alias Aliases All And Any AtTimeZone Between BitwiseAnd BitwiseLeftShift BitwiseNot BitwiseOr
    BitwiseRightShift BitwiseXor Boolean Bracket ByteString Case Cast Collate Column ColumnDef Columns CTE Cube DataType
    DataTypeParam Distance Distinct Div Dot DPipe EQ Escape Except Exists ExtendsLeft ExtendsRight Fetch Filter From
    Glob Group GroupingSets GT GTE Having HavingMax HexString Identifier If IgnoreNulls ILike In IntDiv Interval
    IntervalSpan Is Join JSONExtractQuote JSONKeyValue JSONPath JSONPathFilter JSONPathKey JSONPathRecursive
    JSONPathRoot JSONPathSelector JSONPathSlice JSONPathSubscript JSONPathUnion JSONPathWildcard Kwarg Lambda Lateral
    Like Limit LimitOptions Literal LT LTE Match Mod Mul Neg NEQ Not Null NullSafeEQ NullSafeNEQ Offset Or Order
    Ordered Overlaps Paren Placeholder PositionalColumn PropertyEQ Qualify RawString RespectNulls Rollup SimilarTo
    Slice Star Sub Table TableAlias TableSample TryCast Tuple Var Where Window WindowSpec With WithinGroup Xor
    """.split()
)

FUNCTIONS = frozenset(
    """
    Abs Acos Acosh AddMonths AnyValue ApproxDistinct ApproxQuantile ApproxTopK ArgMax ArgMin Array ArrayAgg ArrayAll
    ArrayAny ArrayAppend ArrayCompact ArrayConcat ArrayContainedBy ArrayContains ArrayContainsAll ArrayDistinct
    ArrayExcept ArrayFilter ArrayFirst ArrayInsert ArrayIntersect ArrayLast ArrayMax ArrayMin ArrayOverlaps
    ArrayPosition ArrayPrepend ArrayRemove ArrayRemoveAt ArrayReverse ArraySize ArraySlice ArraySort ArraySum
    ArrayToString ArrayUniqueAgg ArraysZip Ascii Asin Asinh Atan Atan2 Atanh Avg Base64Encode Base64DecodeBinary
    BitLength BitwiseAndAgg BitwiseCount BitwiseOrAgg BitwiseXorAgg ByteLength Cbrt Ceil Chr Coalesce Concat ConcatWs
    Contains Corr Cos Cosh CosineDistance Cot Coth Count CountIf CovarPop CovarSamp CumeDist CurrentDate
    CurrentDatetime CurrentTime CurrentTimestamp Date DateAdd DateBin DateDiff DateFromParts DateFromUnixDate
    DateStrToDate DateSub DateToDateStr DateTrunc Datetime DatetimeAdd DatetimeDiff DatetimeSub DatetimeTrunc Day
    DayOfMonth DayOfWeek DayOfWeekIso DayOfYear Dayname Decode Degrees DenseRank DotProduct Encode EndsWith
    EuclideanDistance Exp Explode ExplodingGenerateSeries Extract Factorial First FirstValue Flatten Floor Format
    FromBase64 GenerateSeries GenerateDateArray GenerateTimestampArray Getbit Greatest GroupConcat Grouping GroupingId
    Hex Hour Initcap IsInf IsNan IsNullValue JSONArray JSONArrayAgg JSONArrayContains JSONBContains
    JSONBContainsAllTopKeys JSONBContainsAnyTopKeys JSONBContainsTopKey JSONBExists JSONBExtract JSONBExtractScalar
    JSONBObjectAgg JSONBPathExists JSONExists JSONExtract JSONExtractArray JSONExtractScalar JSONFormat JSONKeys
    JSONObject JSONObjectAgg JSONStripNulls JSONType JSONValueArray JarowinklerSimilarity JustifyDays JustifyHours
    JustifyInterval Kurtosis Lag Last LastDay LastValue Lead Least Left Length Levenshtein List Ln Localtime
    Localtimestamp Log LogicalAnd LogicalOr Lower LowerHex MD5 MD5Digest MakeInterval ManhattanDistance Map
    MapContainsKey MapFromEntries MapKeys MapSize Max Median Min Minute Mode Month Monthname MonthsBetween Nanvl
    Normalize NthValue Ntile Nullif NumberToStr Nvl2 Overlay Pad ParseJSON ParseTime PercentRank PercentileCont
    PercentileDisc Pi Pow Quantile Quarter Radians Rand Rank Reduce RegexpCount RegexpExtract RegexpExtractAll
    RegexpFullMatch RegexpILike RegexpInstr RegexpLike RegexpReplace RegexpSplit RegexpSubstr RegrAvgx RegrAvgy
    RegrCount RegrIntercept RegrR2 RegrSlope RegrSxx RegrSxy RegrSyy Repeat Replace Reverse Right Rint Round RowNumber
    SHA SHA1Digest SHA2 SHA2Digest Second Sign Sin Sinh Skewness Soundex Split SplitPart Sqrt StartsWith Stddev
    StddevPop StddevSamp StrPosition StrToDate StrToTime StrToUnix String StringToArray Struct StructExtract Substring
    Sum Tan Tanh Time TimeAdd TimeDiff TimeFromParts TimeStrToDate TimeStrToTime TimeSub TimeToStr TimeToUnix
    TimeTrunc Timestamp TimestampAdd TimestampDiff TimestampFromParts TimestampSub TimestampTrunc ToArray ToBase64
    ToChar ToDays ToMap ToNumber Transform Translate Trim Trunc Try TsOrDsAdd TsOrDsDiff TsOrDsToDate TsOrDsToDateStr
    TsOrDsToTime TsOrDsToTimestamp Typeof Unhex Unicode UnixDate UnixMicros UnixMillis UnixSeconds UnixToStr
    UnixToTime UnixToTimeStr Unnest Upper Uuid VarMap Variance VariancePop Week WeekOfYear WidthBucket Year YearOfWeek
    YearOfWeekIso
    """.split()
)

ALLOWED = SYNTAX | FUNCTIONS | {"Anonymous", "AnonymousAggFunc", "CombinedAggFunc"}

TYPES_REFUSED = frozenset({"USERDEFINED", "XML", "OBJECT_IDENTIFIER", "UNKNOWN", "NAME"})
"""Types a cast may not name: those that look into the catalog, parse documents, or are somebody's own."""
