"""Tables of a corpus asked as a database: joins, groups, sums and sets, by the plans that databases are asked with."""
