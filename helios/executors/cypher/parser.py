"""The grammar of reading queries: clauses and patterns."""

from helios.errors import QueryRejected
from helios.executors.cypher import syntax as s
from helios.executors.cypher.expressions import ExpressionParser
from helios.executors.cypher.functions import PROCEDURES
from helios.executors.cypher.tokens import Kind

SHORTEST = {"SHORTESTPATH": "shortestPath", "ALLSHORTESTPATHS": "allShortestPaths"}
REPEATS = ("{", "+", "*")
UNSAID = s.Node(None, None, None)
"""A node that a path has beside a group, though nobody wrote it."""
MAX_CLAUSES = 50
MAX_PATHS = 100
"""That `SHORTEST n` may ask for, for each pair of nodes."""


def parse(text: str) -> s.Query:
    """Read a query; QueryRejected for anything but one reading query, with the part that offends."""
    parser = Parser(text)
    query = parser.query()
    if parser.skip_symbol(";") and parser.token.kind != Kind.END:
        raise QueryRejected("more than one statement", text[parser.token.start :][:30])
    if parser.token.kind != Kind.END:
        parser.unknown_clause()
    return query


class Parser(ExpressionParser):
    """Reads queries; a word that starts no reading clause ends the reading."""

    def query(self) -> s.Query:
        """Single queries joined by UNION."""
        self.deeper()
        parts = [self._single()]
        kinds: set[bool] = set()
        while self.skip_words("UNION"):
            kinds.add(self.skip_words("ALL"))
            self.skip_words("DISTINCT")
            parts.append(self._single())
        if len(kinds) > 1:
            self.fail("UNION or UNION ALL, not both")
        self.shallower()
        return s.Query(tuple(parts), all=True in kinds)

    def subquery(self) -> s.Query:
        """A query in braces, or a pattern alone."""
        if self.is_word("MATCH", "OPTIONAL", "UNWIND", "WITH", "RETURN", "CALL"):
            query = self.query()
        else:
            query = s.Query(((self._match_body(optional=False),),))
        self.expect_symbol("}")
        return query

    def path(self) -> s.Path:
        """`p = shortestPath((a)-[*]->(b))` or `p = SHORTEST 1 (a)-[:R]->+(b)`, name and search optional."""
        variable = self._path_name()
        if shortest := SHORTEST.get(self.token.word):
            self.take()
            self.expect_symbol("(")
            nodes, relationships = self._chain()
            self.expect_symbol(")")
            if len(relationships) != 1 or not isinstance(relationships[0], s.Relationship):
                self.fail("one relationship in a shortest path")
            return s.Path(variable, nodes, relationships, shortest)  # type: ignore[arg-type]
        search = self._search()
        if not self._encloses_all():
            return s.Path(variable, *self._chain(), search=search)
        self.expect_symbol("(")
        variable = self._path_name() or variable
        nodes, relationships = self._chain()
        with self._labels_joined(True):
            within = self.expression() if self.skip_words("WHERE") else None
        self.expect_symbol(")")
        return s.Path(variable, nodes, relationships, search=search, within=within)

    def _path_name(self) -> str | None:
        if self.token.kind not in (Kind.WORD, Kind.NAME) or self.ahead().text != "=":
            return None
        name = self.name("a variable")
        self.expect_symbol("=")
        return name

    def _search(self) -> str | None:
        """`SHORTEST 2`, `SHORTEST 2 GROUPS`, `ALL SHORTEST`, `ANY SHORTEST`, `ANY` or `ANY 2`, with PATH or PATHS."""
        if self.skip_words("ALL", "SHORTEST"):
            word, search = "ALL", "ALL SHORTEST"
        elif self.skip_words("ANY", "SHORTEST"):
            word, search = "ANY", "SHORTEST 1"
        elif self.is_word("ALL", "ANY", "SHORTEST"):
            word = search = self.take().word
            search += self._path_count(word) if word != "ALL" else ""
        else:
            return None
        _ = self.skip_words("PATHS") or self.skip_words("PATH")
        grouped = word == "SHORTEST" and (self.skip_words("GROUPS") or self.skip_words("GROUP"))
        if search == "SHORTEST" and not grouped:
            self.fail("how many shortest paths")
        search = "SHORTEST 1" if search == "SHORTEST" else search
        return None if search == "ALL" else search + (" GROUPS" if grouped else "")

    def _path_count(self, word: str) -> str:
        """How many paths a search wants, a blank before it; nothing where it does not say."""
        if self.token.kind != Kind.NUMBER:
            return ""
        count = self.number("a number of paths")
        if not 1 <= count <= MAX_PATHS:
            raise QueryRejected(f"{word} takes 1 to {MAX_PATHS} paths", f"{word} {count}")
        return f" {count}"

    def _chain(self) -> tuple[tuple[s.Node, ...], tuple[s.Relationship | s.Group, ...]]:
        """Nodes and what lies between them; beside a group a node may go without saying."""
        nodes = [UNSAID if self._at_group() else self._node()]
        between: list[s.Relationship | s.Group] = []
        while True:
            if self.is_symbol("-", "<"):
                between.append(self._relationship())
                unsaid = self._at_group()
            elif self._at_group():
                between.append(self._group())
                unsaid = self._at_group() or not self.is_symbol("(")
            else:
                return tuple(nodes), tuple(between)
            nodes.append(UNSAID if unsaid else self._node())

    def _at_group(self) -> bool:
        return self.is_symbol("(") and self.ahead().kind == Kind.SYMBOL and self.ahead().text == "("

    def _group(self) -> s.Group:
        """`((a)-[r]->(b) WHERE c){1,3}`."""
        self.deeper()
        self.expect_symbol("(")
        nodes, steps = self._chain()
        where = self.expression() if self.skip_words("WHERE") else None
        self.expect_symbol(")")
        if not steps or any(isinstance(step, s.Group) or step.hops for step in steps):
            self.fail("single relationships in a piece that is repeated")
        hops = self._repetition()
        if hops is None:
            self.fail("how often the piece in brackets is repeated, as in {1,3}")
        self.shallower()
        return s.Group(s.Path(None, nodes, steps), where, hops)

    def _repetition(self) -> s.Hops | None:
        """`{low,high}`, `{count}`, `+` or `*` behind a relationship or a group."""
        if self.skip_symbol("+"):
            return s.Hops(1, None, quantified=True)
        if self.skip_symbol("*"):
            return s.Hops(0, None, quantified=True)
        if not self.skip_symbol("{"):
            return None
        low = self.number("a number of hops") if self.token.kind == Kind.NUMBER else None
        high = low
        if self.skip_symbol(","):
            high = self.number("a number of hops") if self.token.kind == Kind.NUMBER else None
            low = 0 if low is None else low
        elif low is None:
            self.fail("a number of hops")
        self.expect_symbol("}")
        return s.Hops(low, high, quantified=True)

    def _encloses_all(self) -> bool:
        """Whether the bracket here holds a path rather than a node, and nothing says how often it is repeated."""
        named = self.is_symbol("(") and self.ahead(2).text == "=" and self.ahead(3).text == "("
        if not named and not self._at_group():
            return False
        depth = 0
        for place in range(self.at, len(self.tokens)):
            if self.tokens[place].kind == Kind.SYMBOL:
                depth += {"(": 1, ")": -1}.get(self.tokens[place].text, 0)
            if depth == 0:
                return self.ahead(place + 1 - self.at).text not in REPEATS
        return False

    def labels(self, *, choice: bool = True) -> s.Labels:
        """`A|B:C&!D`: | binds least, then & and :, then !."""
        left = self._label_conjunction()
        while choice and self.skip_symbol("|"):
            self.skip_symbol(":")
            self.count_operator()
            left = s.LabelPair("|", left, self._label_conjunction())
        return left

    def unknown_clause(self) -> None:
        """Refuse what follows: it is no reading clause."""
        token = self.token
        if token.kind == Kind.WORD:
            raise QueryRejected("only reading clauses are allowed", token.text.upper())
        self.fail("a reading clause")

    def _single(self) -> tuple[s.Clause, ...]:
        clauses: list[s.Clause] = []
        while True:
            if len(clauses) == MAX_CLAUSES:
                raise QueryRejected(f"the query has more than {MAX_CLAUSES} clauses")
            clauses.append(self._clause())
            end = clauses[-1]
            if isinstance(end, s.Projection) and end.last:
                return tuple(clauses)
            if self.is_symbol("}"):  # EXISTS { MATCH … } needs no RETURN; the renderers see to other queries
                return tuple(clauses)
            if self.token.kind == Kind.END or self.is_symbol(";"):
                self.fail("RETURN")

    def _clause(self) -> s.Clause:
        if self.skip_words("MATCH"):
            return self._match_body(optional=False)
        if self.skip_words("OPTIONAL", "MATCH"):
            return self._match_body(optional=True)
        if self.skip_words("UNWIND"):
            items = self.expression()
            self.expect_words("AS")
            return s.Unwind(items, self.name("a variable"))
        if self.skip_words("WITH"):
            return self._projection(last=False)
        if self.skip_words("RETURN"):
            return self._projection(last=True)
        if self.is_word("CALL") and self.ahead().text in ("{", "("):
            return self._call_subquery()
        if self.is_word("CALL") and self.ahead(2).text == ".":
            return self._call_procedure()
        self.unknown_clause()
        raise AssertionError

    def _call_subquery(self) -> s.CallSubquery:
        self.expect_words("CALL")
        imports: list[str] | None = None
        if self.skip_symbol("("):
            imports = []
            while not self.skip_symbol(")"):
                if imports:
                    self.expect_symbol(",")
                imports.append("*" if self.skip_symbol("*") else self.name("a variable"))
        self.expect_symbol("{")
        query = self.query()
        self.expect_symbol("}")
        if self.is_word("IN"):
            raise QueryRejected("subqueries in transactions are not for reading", "CALL { … } IN")
        return s.CallSubquery(query, None if imports is None else tuple(imports))

    def _call_procedure(self) -> s.CallProcedure:
        """`CALL db.index.fulltext.queryNodes('names', $text) YIELD node AS n, score WHERE score > 1`."""
        self.expect_words("CALL")
        name = self.name("a procedure")
        while self.skip_symbol("."):
            name += "." + self.name("a procedure")
        if name.lower() not in PROCEDURES:
            raise QueryRejected("this procedure is not allowed", f"CALL {name}")
        self.expect_symbol("(")
        arguments = self._listed(")")
        self.expect_words("YIELD")
        yields = [self._yielded()]
        while self.skip_symbol(","):
            yields.append(self._yielded())
        where = self.expression() if self.skip_words("WHERE") else None
        return s.CallProcedure(name.lower(), arguments, tuple(yields), where)

    def _yielded(self) -> tuple[str, str | None]:
        column = self.name("a column of the procedure")
        return column, self.name("a variable") if self.skip_words("AS") else None

    def _match_body(self, *, optional: bool) -> s.Match:
        paths = [self.path()]
        while self.skip_symbol(","):
            paths.append(self.path())
        where = self.expression() if self.skip_words("WHERE") else None
        return s.Match(tuple(paths), where, optional)

    def _projection(self, *, last: bool) -> s.Projection:
        distinct = self.skip_words("DISTINCT")
        star = self.skip_symbol("*")
        items: list[s.Item] = []
        if not star or self.skip_symbol(","):
            items.append(self._item())
            while self.skip_symbol(","):
                items.append(self._item())
        order: list[tuple[s.Expression, bool]] = []
        if self.skip_words("ORDER", "BY"):
            order.append(self._ordering())
            while self.skip_symbol(","):
                order.append(self._ordering())
        skip = self.expression() if self.skip_words("SKIP") or self.skip_words("OFFSET") else None
        limit = self.expression() if self.skip_words("LIMIT") else None
        where = self.expression() if not last and self.skip_words("WHERE") else None
        return s.Projection(tuple(items), star, distinct, tuple(order), skip, limit, where, last)

    def _item(self) -> s.Item:
        start = self.token.start
        expression = self.expression()
        column = self.text[start : self.tokens[self.at - 1].end]
        alias = self.name("a name") if self.skip_words("AS") else None
        if alias is None and isinstance(expression, s.Variable):
            column = expression.name
        return s.Item(expression, alias, alias or column)

    def _ordering(self) -> tuple[s.Expression, bool]:
        expression = self.expression()
        if self.skip_words("DESC") or self.skip_words("DESCENDING"):
            return expression, True
        if not self.skip_words("ASC"):
            self.skip_words("ASCENDING")
        return expression, False

    def _node(self) -> s.Node:
        self.expect_symbol("(")
        variable, labels, properties, where = self._inside(")")
        self.expect_symbol(")")
        return s.Node(variable, labels, properties, where)

    def _inside(
        self, close: str
    ) -> tuple[str | None, s.Labels | None, s.MapOf | s.Parameter | None, s.Expression | None]:
        """Variable, labels, properties and condition of a node or, without hops, of a relationship."""
        variable = self._variable(close)
        labels = self.labels() if self.skip_symbol(":") else None
        properties = self._properties()
        where = self.expression() if self.skip_words("WHERE") else None
        return variable, labels, properties, where

    def _variable(self, close: str) -> str | None:
        follows = self.ahead()
        named = self.token.kind in (Kind.WORD, Kind.NAME)
        if named and (follows.word == "WHERE" or follows.kind == Kind.SYMBOL and follows.text in (close, *":{*$")):
            return self.take().text
        return None

    def _properties(self) -> s.MapOf | s.Parameter | None:
        if self.is_symbol("{"):
            return self.map()
        if self.skip_symbol("$"):
            return s.Parameter(self.name("a parameter"))
        return None

    def _relationship(self) -> s.Relationship | s.Group:
        """`-[r:TYPE]->` or `-[r:TYPE]->{1,3}`; with a condition on each hop it is written as the group that it stands
        for, since a server may pass the condition over."""
        left = self.skip_symbol("<")
        self.expect_symbol("-")
        variable, types, properties, where, hops = None, None, None, None, None
        if self.skip_symbol("["):
            variable = self._variable("]")
            types = self.labels() if self.skip_symbol(":") else None
            hops = self._hops() if self.skip_symbol("*") else None
            properties = self._properties()
            where = self.expression() if self.skip_words("WHERE") else None
            self.expect_symbol("]")
        self.expect_symbol("-")
        right = self.skip_symbol(">")
        direction = "--" if left == right else "<-" if left else "->"
        if hops is not None and where is not None:
            self.fail("no condition on a relationship of several hops; write -[r:R WHERE …]->{1,2}")
        repeated = self._repetition() if hops is None else None
        if repeated is not None and where is not None:
            once = s.Relationship(variable, types, direction, None, properties)  # type: ignore[arg-type]
            return s.Group(s.Path(None, (UNSAID, UNSAID), (once,)), where, repeated)
        return s.Relationship(variable, types, direction, hops or repeated, properties, where)  # type: ignore[arg-type]

    def _hops(self) -> s.Hops:
        low = self.number("a number of hops") if self.token.kind == Kind.NUMBER else None
        if not self.skip_symbol(".."):
            return s.Hops(low, low)
        high = self.number("a number of hops") if self.token.kind == Kind.NUMBER else None
        return s.Hops(1 if low is None else low, high)

    def _label_conjunction(self) -> s.Labels:
        left = self._label()
        while self.skip_symbol("&") or self.skip_symbol(":"):
            self.count_operator()
            left = s.LabelPair("&", left, self._label())
        return left

    def _label(self) -> s.Labels:
        self.deeper()
        if self.skip_symbol("!"):
            label: s.Labels = s.NotLabel(self._label())
        elif self.skip_symbol("("):
            label = self.labels()
            self.expect_symbol(")")
        elif self.skip_symbol("%"):
            label = s.AnyLabel()
        else:
            label = s.LabelName(self.name("a label"))
        self.shallower()
        return label
