"""The grammar of expressions: operators by their strength, then what binds tighter (`.name`, `[0]`, `:Label`)."""

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite

from helios.executors.cypher import syntax as s
from helios.executors.cypher.cursor import Cursor
from helios.executors.cypher.tokens import Kind

COMPARISONS = ("=", "<>", "<", ">", "<=", ">=")
LEVELS = (("+", "-", "||"), ("*", "/", "%"), ("^",))
"""Operators of numbers and strings, the weak ones first; all lean to the left."""
TEXT_OPERATORS = (("STARTS", "WITH"), ("ENDS", "WITH"), ("CONTAINS",), ("IN",))
QUANTIFIERS = ("ALL", "ANY", "NONE", "SINGLE")
SUBQUERIES = ("EXISTS", "COUNT", "COLLECT")
PATTERN_FUNCTIONS = {"exists": "EXISTS", "size": "COUNT"}
MAX_INTEGER = 2**63


class ExpressionParser(Cursor):
    """Reads expressions; patterns and queries inside them are the business of `Parser`."""

    @abstractmethod
    def path(self) -> s.Path:
        """Read a path pattern."""

    @abstractmethod
    def subquery(self) -> s.Query:
        """Read a query or a pattern in braces, the brace behind already."""

    @abstractmethod
    def labels(self, *, choice: bool = True) -> s.Labels:
        """Read a label expression, its colon behind already; without `choice` up to a `|`."""

    _choice = True
    """Whether `|` joins labels here; in a comprehension it ends the condition."""

    @contextmanager
    def _labels_joined(self, choice: bool) -> Iterator[None]:
        before, self._choice = self._choice, choice
        yield
        self._choice = before

    def expression(self) -> s.Expression:
        """Read one expression: OR, the weakest operator, first."""
        self.deeper()
        left = self._exclusive()
        while self.skip_words("OR"):
            left = self._binary("OR", left, self._exclusive())
        self.shallower()
        return left

    def map(self) -> s.MapOf:
        """`{a: 1}`, the brace ahead."""
        self.expect_symbol("{")
        items: list[tuple[str, s.Expression]] = []
        while not self.skip_symbol("}"):
            if items:
                self.expect_symbol(",")
            key = self.name("a key of a map")
            self.expect_symbol(":")
            items.append((key, self.expression()))
        return s.MapOf(tuple(items))

    def starts_pattern(self) -> bool:
        """Whether the bracket here opens the first node of a path rather than an expression."""
        if not self.is_symbol("("):
            return False
        depth, place = 0, 0
        while (token := self.ahead(place)).kind != Kind.END:
            if token.kind == Kind.SYMBOL:
                depth += (token.text in "([{") - (token.text in ")]}")
            place += 1
            if not depth:
                break
        arrow = "".join(self.ahead(place + step).text for step in range(3) if self.ahead(place + step).kind != "string")
        return arrow.startswith(("-[", "<-[", "--(", "-->", "<--"))

    def _binary(self, operator: str, left: s.Expression, right: s.Expression) -> s.Expression:
        self.count_operator()
        return s.Binary(operator, left, right)

    def _exclusive(self) -> s.Expression:
        left = self._conjunction()
        while self.skip_words("XOR"):
            left = self._binary("XOR", left, self._conjunction())
        return left

    def _conjunction(self) -> s.Expression:
        left = self._negation()
        while self.skip_words("AND"):
            left = self._binary("AND", left, self._negation())
        return left

    def _negation(self) -> s.Expression:
        if not self.skip_words("NOT"):
            return self._comparison()
        self.deeper()
        operand = self._negation()
        self.shallower()
        return s.Unary("NOT", operand)

    def _comparison(self) -> s.Expression:
        """`a < b < c` means `a < b AND b < c`."""
        left = self._matching()
        compared: s.Expression | None = None
        while self.token.kind == Kind.SYMBOL and self.token.text in COMPARISONS:
            operator = self.take().text
            right = self._matching()
            step = self._binary(operator, left, right)
            compared = step if compared is None else self._binary("AND", compared, step)
            left = right
        return left if compared is None else compared

    def _matching(self) -> s.Expression:
        left = self._arithmetic(0)
        while True:
            words = next((words for words in TEXT_OPERATORS if self.skip_words(*words)), None)
            if words is not None:
                left = self._binary(" ".join(words), left, self._arithmetic(0))
            elif self.skip_symbol("=~"):
                left = self._binary("=~", left, self._arithmetic(0))
            elif self.skip_words("IS", "NULL"):
                self.count_operator()
                left = s.IsNull(left, negated=False)
            elif self.skip_words("IS", "NOT", "NULL"):
                self.count_operator()
                left = s.IsNull(left, negated=True)
            else:
                return left

    def _arithmetic(self, level: int) -> s.Expression:
        if level == len(LEVELS):
            return self._signed()
        left = self._arithmetic(level + 1)
        while self.is_symbol(*LEVELS[level]):
            operator = self.take().text
            left = self._binary(operator, left, self._arithmetic(level + 1))
        return left

    def _signed(self) -> s.Expression:
        if not self.is_symbol("+", "-"):
            return self._accessed()
        sign = self.take().text
        self.deeper()
        operand = self._signed()
        self.shallower()
        return s.Unary(sign, operand)

    def _accessed(self) -> s.Expression:
        of = self._atom()
        while True:
            if self.skip_symbol("."):
                self.count_operator()
                of = s.Property(of, self.name("a property"))
            elif self.skip_symbol("["):
                self.count_operator()
                of = self._element(of)
            elif self.is_symbol(":") and isinstance(of, s.Variable):
                self.take()
                of = s.HasLabels(of.name, self.labels(choice=self._choice))
            else:
                return of

    def _element(self, of: s.Expression) -> s.Expression:
        low = None if self.is_symbol("..") else self.expression()
        if low is not None and self.skip_symbol("]"):
            return s.Index(of, low)
        self.expect_symbol("..")
        high = None if self.is_symbol("]") else self.expression()
        self.expect_symbol("]")
        return s.Slice(of, low, high)

    def _atom(self) -> s.Expression:
        match self.token.kind:
            case Kind.STRING:
                return s.Constant(self.take().text)
            case Kind.NUMBER:
                return self._number()
            case Kind.WORD:
                return self._worded()
            case Kind.NAME:
                return self._named()
        return self._opened()

    def _opened(self) -> s.Expression:
        """What starts with a symbol."""
        if self.is_symbol("("):
            return self._bracketed()
        if self.is_symbol("["):
            return self._list()
        if self.is_symbol("{"):
            return self.map()
        if not self.skip_symbol("$"):
            self.fail("an expression")
        return s.Parameter(self.name("a parameter"))

    def _number(self) -> s.Expression:
        text = self.token.text
        if text[:2].lower() in ("0x", "0o"):
            value: int | float = int(text, 0)
        else:
            value = int(text) if text.isdecimal() else float(text)
        if value >= MAX_INTEGER if isinstance(value, int) else not isfinite(value):
            self.fail("a number of 64 bits")
        self.take()
        return s.Constant(value)

    def _worded(self) -> s.Expression:
        word, after = self.token.word, self.ahead()
        opens = after.text if after.kind == Kind.SYMBOL else ""
        if word in ("TRUE", "FALSE", "NULL") and opens not in (".", "("):
            self.take()
            return s.Constant({"TRUE": True, "FALSE": False, "NULL": None}[word])
        if word == "CASE":
            return self._case()
        if word in SUBQUERIES and opens == "{":
            self.at += 2
            return s.Subquery(word, self.subquery())  # type: ignore[arg-type]  # one of SUBQUERIES
        if opens == "(":
            return self._called(word)
        return self._named()

    def _called(self, word: str) -> s.Expression:
        """A function, or a form that looks like one."""
        if word in QUANTIFIERS and self.ahead(3).word == "IN":
            return self._quantifier(word.lower())
        if word == "REDUCE":
            return self._reduce()
        if word == "CAST":
            return self._cast()
        return self._function(self.take().text)

    def _named(self) -> s.Expression:
        """A variable, a map projection of one, or a function with a namespace."""
        place = 1
        while self.ahead(place).text == "." and self.ahead(place + 1).kind == Kind.WORD:
            place += 2
        if place > 1 and self.ahead(place).text == "(" and self.ahead(place).kind == Kind.SYMBOL:
            parts = [self.take().text for _ in range(place)]
            return self._function("".join(parts))
        variable = self.name("a variable")
        return self._map_projection(variable) if self.is_symbol("{") else s.Variable(variable)

    def _function(self, name: str) -> s.Expression:
        name = name.lower()
        self.expect_symbol("(")
        if name in PATTERN_FUNCTIONS and self.starts_pattern():
            path = self.path()
            self.expect_symbol(")")
            return exists(path, kind=PATTERN_FUNCTIONS[name])
        if name == "count" and self.skip_symbol("*"):
            self.expect_symbol(")")
            return s.Call(name, (), star=True)
        distinct = self.skip_words("DISTINCT")
        return s.Call(name, self._listed(")"), distinct)

    def _listed(self, close: str) -> tuple[s.Expression, ...]:
        """Expressions between commas, up to a closing bracket."""
        items: list[s.Expression] = []
        while not self.skip_symbol(close):
            if items:
                self.expect_symbol(",")
            with self._labels_joined(True):
                items.append(self.expression())
        return tuple(items)

    def _map_projection(self, variable: str) -> s.Expression:
        self.expect_symbol("{")
        items: list[tuple[str, s.Expression]] = []
        everything, first = False, True
        while not self.skip_symbol("}"):
            if not first:
                self.expect_symbol(",")
            first = False
            if self.skip_symbol("."):
                if self.skip_symbol("*"):
                    everything = True
                    continue
                key = self.name("a property")
                items.append((key, s.Property(s.Variable(variable), key)))
                continue
            key = self.name("a key")
            items.append((key, self.expression() if self.skip_symbol(":") else s.Variable(key)))
        return s.MapProjection(variable, tuple(items), everything)

    def _case(self) -> s.Expression:
        self.expect_words("CASE")
        subject = None if self.is_word("WHEN") else self.expression()
        branches: list[tuple[s.Expression, s.Expression]] = []
        while self.skip_words("WHEN"):
            condition = self.expression()
            self.expect_words("THEN")
            branches.append((condition, self.expression()))
        if not branches:
            self.fail("WHEN")
        otherwise = self.expression() if self.skip_words("ELSE") else None
        self.expect_words("END")
        return s.Case(subject, tuple(branches), otherwise)

    def _quantifier(self, kind: str) -> s.Expression:
        self.at += 2
        variable = self.name("a variable")
        self.expect_words("IN")
        items = self.expression()
        self.expect_words("WHERE")
        where = self.expression()
        self.expect_symbol(")")
        return s.Quantifier(kind, variable, items, where)

    def _reduce(self) -> s.Expression:
        self.at += 2
        accumulator = self.name("a variable")
        self.expect_symbol("=")
        start = self.expression()
        self.expect_symbol(",")
        variable = self.name("a variable")
        self.expect_words("IN")
        items = self.expression()
        self.expect_symbol("|")
        step = self.expression()
        self.expect_symbol(")")
        return s.Reduce(accumulator, start, variable, items, step)

    def _cast(self) -> s.Expression:
        self.at += 2
        operand = self.expression()
        self.expect_words("AS")
        type_name = self.name("a type").upper()
        while self.skip_symbol("["):
            self.expect_symbol("]")
            type_name += "[]"
        self.expect_symbol(")")
        return s.Cast(operand, type_name)

    def _bracketed(self) -> s.Expression:
        if self.starts_pattern():
            return exists(self.path())
        self.expect_symbol("(")
        with self._labels_joined(True):
            inner = self.expression()
        self.expect_symbol(")")
        return inner

    def _list(self) -> s.Expression:
        self.expect_symbol("[")
        named = self.ahead().text == "=" and self.ahead(2).text == "("
        if named or self.starts_pattern():
            return self._pattern_comprehension()
        if self.token.kind in (Kind.WORD, Kind.NAME) and self.ahead().word == "IN":
            return self._comprehension()
        return s.ListOf(self._listed("]"))

    def _comprehension(self) -> s.Expression:
        variable = self.name("a variable")
        self.expect_words("IN")
        items = self.expression()
        where = self._condition()
        result = self.expression() if self.skip_symbol("|") else None
        self.expect_symbol("]")
        return s.ListComprehension(variable, items, where, result)

    def _condition(self) -> s.Expression | None:
        """The WHERE of a comprehension, up to its `|`."""
        with self._labels_joined(False):
            return self.expression() if self.skip_words("WHERE") else None

    def _pattern_comprehension(self) -> s.Expression:
        path = self.path()
        where = self._condition()
        self.expect_symbol("|")
        result = self.expression()
        self.expect_symbol("]")
        return s.PatternComprehension(path, where, result)


def exists(path: s.Path, *, kind: str = "EXISTS") -> s.Subquery:
    """A path as a subquery: a pattern that stands where a condition is expected."""
    return s.Subquery(kind, s.Query(((s.Match((path,), None),),)))  # type: ignore[arg-type]  # EXISTS or COUNT
