"""Functions that a query may call, by the engine's own names, a dialect each. Anything else is refused.

Left out on purpose: whatever reads or writes files (`read_csv`, `pg_read_file`, `readfile`), dials out (`dblink`),
runs SQL from text (`query`, `query_to_xml`, `json_execute_serialized_sql`), sleeps, locks, changes state (`setval`,
`setseed`, `set_config`), or tells about the server (`version`, `current_setting`, `getenv`).
"""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SHARED = _words(
    """
    abs acos acosh asin asinh atan atan2 atanh avg ceil ceiling coalesce concat concat_ws cos cosh count cume_dist date
    degrees dense_rank exp first_value floor format group_concat instr json_array_length json_object lag last_value
    lead least greatest left length ln log log10 log2 lower ltrim max min mod nth_value ntile nullif percent_rank pi
    pow power printf radians random rank replace right round row_number rtrim sign sin sinh sqrt substr substring sum
    tan tanh trim trunc upper
    """
)

SQLITE = SHARED | _words(
    """
    bm25 char datetime glob hex highlight ifnull iif if json json_array json_each json_extract json_group_array
    json_group_object json_insert json_patch json_quote json_remove json_replace json_set json_tree json_type
    json_valid julianday like likelihood likely match octet_length offsets quote randomblob rank regexp snippet
    soundex sqlite_version strftime string_agg time timediff total typeof unhex unicode unixepoch unlikely zeroblob
    matchinfo current_date current_time current_timestamp
    """
)
SQLITE_OPERATORS = frozenset({"->", "->>"})
"""Operators that SQLite's authorizer sees as functions."""

_ANALYTIC = _words(
    """
    array_agg array_append array_cat array_length array_position array_prepend array_to_string ascii bit_and bit_length
    bit_or bit_xor bool_and bool_or cardinality cbrt char_length character_length chr corr cot covar_pop covar_samp
    date_part date_trunc decode encode every extract factorial gcd gen_random_uuid generate_series
    generate_subscripts grouping initcap json_agg json_each json_extract_path json_extract_path_text lcm lpad make_date
    make_time make_timestamp md5 mode now octet_length overlay percentile_cont percentile_disc position
    regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table regr_avgx regr_avgy regr_count
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy repeat reverse row row_to_json rpad sha256
    split_part starts_with stddev stddev_pop stddev_samp string_agg string_to_array strpos timezone
    to_char to_date to_hex to_json to_timestamp translate unnest var_pop var_samp variance width_bucket
    array current_date current_time current_timestamp localtime localtimestamp
    """
)

DUCKDB = (
    SHARED
    | _ANALYTIC
    | _words(
        """
    age aggregate any_value apply approx_count_distinct approx_quantile approx_top_k arbitrary arg_max arg_max_null
    arg_min arg_min_null argmax argmin array_aggr array_aggregate array_apply array_concat array_contains
    array_cosine_distance array_cosine_similarity array_distance array_distinct array_extract array_filter array_has
    array_has_all array_has_any array_indexof array_inner_product array_intersect array_pop_back array_pop_front
    array_push_back array_push_front array_reduce array_reverse array_reverse_sort array_select array_slice array_sort
    array_to_json array_transform array_unique array_value array_where array_zip bar base64 bin bit_count
    bitstring_agg century columns contains count_if count_star countif current_localtime current_localtimestamp
    damerau_levenshtein date_add date_diff date_sub datediff datepart datesub datetrunc day dayname dayofmonth
    dayofweek dayofyear days_in_month decade divide editdist3 element_at ends_with entropy epoch epoch_ms epoch_ns
    epoch_us equi_width_bins era even exclude favg fdiv filter first flatten fmod formatreadabledecimalsize
    formatreadablesize format_bytes from_base64 from_hex from_json from_json_strict fsum gamma geomean
    geometric_mean get_bit get_current_timestamp greatest_common_divisor hamming hash hex histogram hour if ifnull
    ilike_escape in isfinite isinf isnan isodow isoyear jaccard jaro_similarity jaro_winkler_similarity json
    json_array json_contains json_exists json_extract json_extract_string json_group_array json_group_object
    json_keys json_merge_patch json_pretty json_quote json_structure json_transform json_transform_strict json_tree
    json_type json_valid json_value julian kahan_sum kurtosis kurtosis_pop last last_day lcase least_common_multiple
    len length_grapheme left_grapheme levenshtein lgamma like_escape list list_aggr list_aggregate list_any_value
    list_append list_apply list_avg list_cat list_concat list_contains list_cosine_similarity list_count
    list_distance list_distinct list_dot_product list_element list_extract list_filter list_first list_has
    list_has_all list_has_any list_histogram list_indexof list_inner_product list_intersect list_last list_max
    list_median list_min list_mode list_pack list_position list_prepend list_product list_reduce list_reverse
    list_reverse_sort list_select list_slice list_sort list_string_agg list_sum list_transform list_unique
    list_value list_var_pop list_var_samp list_stddev_pop list_stddev_samp list_where list_zip listagg mad
    make_timestamptz map map_concat map_contains map_contains_entry map_contains_value map_entries map_extract
    map_extract_value map_from_entries map_keys map_values max_by mean median microsecond millennium millisecond
    min_by minute mismatches month monthname multiply nanosecond nfc_normalize ord parse_filename prefix product
    quantile quantile_cont quantile_disc quarter range reduce regexp_escape regexp_extract regexp_extract_all
    regexp_full_match replace right_grapheme round_even roundbankers second sem sha1 skewness split sqrt str_split
    str_split_regex strftime string_split string_split_regex strip_accents strlen strptime struct_concat
    struct_contains struct_extract struct_extract_at struct_has struct_indexof struct_insert struct_keys struct_pack
    struct_position struct_values subtract suffix sumkahan time_bucket timezone_hour timezone_minute to_base
    to_base64 to_binary to_centuries to_days to_decades to_hours to_microseconds to_milliseconds to_minutes
    to_months to_quarters to_seconds to_weeks to_years today transaction_timestamp try try_strptime typeof ucase
    unbin unhex unicode union_extract union_tag union_value url_decode url_encode uuid uuidv4 uuidv7 week weekday
    weekofyear weighted_avg wavg xor year yearweek unpivot_list
    """
    )
)

POSTGRES = (
    SHARED
    | _ANALYTIC
    | _words(
        """
    acosd age any_value array_dims array_lower array_ndims array_positions array_remove array_replace
    array_to_json array_upper asind atan2d atand btrim clock_timestamp convert_from convert_to cosd cotd
    date_bin div enum_first enum_last enum_range erf get_bit get_byte is_normalized isfinite json_array_elements
    json_array_elements_text json_build_array json_build_object json_each_text json_object_agg json_object_keys
    json_strip_nulls json_to_record json_to_recordset json_typeof jsonb_agg jsonb_array_elements
    jsonb_array_elements_text jsonb_array_length jsonb_build_array jsonb_build_object jsonb_each jsonb_each_text
    jsonb_exists jsonb_exists_all jsonb_exists_any jsonb_extract_path jsonb_extract_path_text jsonb_insert jsonb_object
    jsonb_object_agg jsonb_object_keys jsonb_path_exists jsonb_path_match jsonb_path_query jsonb_path_query_array
    jsonb_path_query_first jsonb_pretty jsonb_set jsonb_set_lax jsonb_strip_nulls jsonb_to_record jsonb_to_recordset
    jsonb_typeof justify_days justify_hours justify_interval lower_inc lower_inf make_interval make_timestamptz
    min_scale normalize num_nonnulls num_nulls numnode numrange int4range int8range daterange tsrange tstzrange
    pg_typeof phraseto_tsquery plainto_tsquery quote_ident quote_literal quote_nullable range_agg range_merge
    regexp_count regexp_instr regexp_like regexp_match regexp_substr scale sha224 sha384 sha512 sind
    statement_timestamp string_to_table tand timeofday to_ascii to_jsonb to_number to_tsquery to_tsvector
    transaction_timestamp trim_array trim_scale ts_headline ts_rank ts_rank_cd tsvector_to_array unistr upper_inc
    upper_inf websearch_to_tsquery
    similarity word_similarity unaccent levenshtein soundex metaphone difference
    multirange int4multirange int8multirange nummultirange datemultirange tsmultirange tstzmultirange
    range_intersect_agg
    """
    )
)

MYSQL = SHARED | _words(
    """
    adddate addtime against ascii bin bit_and bit_count bit_length bit_or bit_xor char char_length
    character_length chr conv oct convert convert_tz cot crc32 curdate current_date current_time
    current_timestamp curtime date_add date_format date_sub datediff day dayname dayofmonth dayofweek dayofyear
    elt export_set extract field find_in_set from_base64 from_days from_unixtime get_format hex hour if ifnull
    isnull json_array json_arrayagg json_compact json_contains json_contains_path json_depth json_detailed
    json_exists json_extract json_insert json_keys json_length json_loose json_merge_patch json_merge_preserve
    json_normalize json_objectagg json_overlaps json_pretty json_query json_quote json_remove json_replace
    json_search json_set json_type json_unquote json_valid json_value last_day lcase localtime localtimestamp
    locate lpad make_set makedate maketime match md5 median microsecond mid minute month monthname
    natural_sort_key now octet_length ord percentile_cont percentile_disc period_add period_diff position
    quarter quote rand regexp_instr regexp_like regexp_replace regexp_substr repeat reverse rpad sec_to_time
    second sha1 sha2 soundex space std stddev stddev_pop stddev_samp str_to_date strcmp subdate subtime sysdate
    time time_format time_to_sec timediff timestamp timestampadd timestampdiff to_base64 to_char to_days
    to_seconds truncate ucase unhex unix_timestamp utc_date utc_time utc_timestamp uuid var_pop var_samp
    variance week weekday weekofyear weight_string year yearweek
    """
) - {"random", "printf", "acosh", "asinh", "atanh", "cosh", "sinh", "tanh", "trunc", "json_array_length"}
"""Of MySQL and MariaDB. Left out beside what the head of this file says: locks (`get_lock`), what reads files
(`load_file`), waits (`sleep`, `benchmark`, `master_pos_wait`), session and server (`user`, `database`,
`last_insert_id`), and what shows values in its error messages (`extractvalue`, `updatexml`, `name_const`)."""

PORTABLE = SHARED | _words(
    """
    any_value approx_count_distinct array_agg bit_and bit_or bit_xor cast char_length charindex convert corr covar_pop
    covar_samp current_date current_time current_timestamp date_add date_diff date_part date_sub date_trunc dateadd
    datediff datename datepart datetrunc day dayofweek dayofyear hour iff ifnull iif initcap isnull last_day len listagg
    lpad median minute month now nvl percentile_cont percentile_disc position quarter repeat reverse rpad second
    split_part startswith stddev stddev_pop stddev_samp string_agg strpos timestamp to_char to_date to_number translate
    try_cast var_pop var_samp variance week year countif safe_divide uniq uniqexact toyear tomonth todate todatetime
    tostring toint64 tofloat64 dateadd getdate sysutcdatetime month eomonth datefromparts charindex stuff concat_ws
    """
)
"""Of engines that are only documented, not tested: SQL Server, Snowflake, BigQuery, ClickHouse."""

QUANTIFIERS = frozenset({"all", "any", "some"})
"""Words that sqlglot may read as calls; in quotes they would be."""
BY_DIALECT = {
    "sqlite": SQLITE, "duckdb": DUCKDB, "postgres": POSTGRES, "mysql": MYSQL, "tsql": PORTABLE, "snowflake": PORTABLE,
    "bigquery": PORTABLE, "clickhouse": PORTABLE,
}  # fmt: skip

INFORMATION_SCHEMA = frozenset({"tables", "columns", "schemata", "table_constraints", "key_column_usage",
                                "referential_constraints", "constraint_column_usage"})  # fmt: skip
SYSTEM_TABLES = {
    "sqlite": frozenset({"sqlite_master", "sqlite_schema"}),
    "duckdb": INFORMATION_SCHEMA,
    "postgres": INFORMATION_SCHEMA,
    "mysql": INFORMATION_SCHEMA,
    "tsql": INFORMATION_SCHEMA,
    "snowflake": INFORMATION_SCHEMA,
    "bigquery": INFORMATION_SCHEMA,
    "clickhouse": INFORMATION_SCHEMA,
}
"""Tables of the system that a source may open: they say what a descriptor says. Elsewhere those of information_schema.
"""
SYSTEM_PREFIXES = ("pg_", "_pg_", "sqlite_", "duckdb_", "pragma_", "dbstat", "fts3tokenize", "bytecode", "tables_used")
SYSTEM_SCHEMAS = {
    "mysql": frozenset({"mysql", "performance_schema", "sys"}),
    "tsql": frozenset({"sys", "master", "msdb", "tempdb", "model"}),
    "snowflake": frozenset({"snowflake"}),
    "bigquery": frozenset({"__tables__"}),
    "clickhouse": frozenset({"system"}),
}
"""Schemas and catalogues of servers that no query may name, beside `information_schema`."""
SERVER_WORDS = frozenset({"current_user", "current_role", "session_user", "system_user"})
"""Words of servers that call a function without parentheses."""
FILE_MODULES = frozenset({"csv", "fsdir", "zipfile"})
"""What SQLite may read like a table if somebody loaded it; its authorizer knows which tables there really are."""

STATEMENTS = _words(
    """
    alter analyze attach call checkpoint copy create delete describe desc detach drop execute explain export import
    insert install load lock merge pragma prepare reset set show summarize truncate update vacuum
    """
)
"""Words that begin a statement: none may follow a parenthesis that opens."""
SERVER_STATEMENTS = _words(
    """
    backup begin break bulk close commit continue dbcc deallocate declare deny exec fetch go goto grant if kill open
    optimize print raiserror readtext reconfigure restore return revert revoke rollback save shutdown system throw
    settings updatetext use waitfor while writetext
    """
) | (STATEMENTS - {"desc"})
"""Words that begin a statement where statements need nothing between them (SQL Server), or change settings
(ClickHouse)."""
BEFORE_PARENTHESIS = _words(
    """
    all and any array as between bigint binary bit bool boolean by bytea blob bpchar case cast char character columns
    cross cube date datetime dec decimal distinct double else end escape except exclude exists extract filter first
    float from full glob group having if ilike in inner int integer intersect interval is isnull join lambda lateral
    left like limit list map match materialized nchar not null nullif nulls numeric nvarchar offset on or order outer
    over overlaps partition position precision qualify real recursive regexp rename replace returning right rollup row
    sample select sets similar smallint some struct substring tablesample text then time timestamp timestamptz timetz
    tinyint to trim try_cast union unnest using values varbit varchar varying when where window with within without
    first second bernoulli system reservoir pivot unpivot repeatable overlay ordinality zone hugeint utinyint
    usmallint uinteger ubigint percent rows
    """
)
"""Keywords and types that may stand before a parenthesis without being a call."""
