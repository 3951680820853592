"""Spark SQL as a tree in which every function has the name and the arguments that the text gives it.

sqlglot translates between dialects, so it knows most functions under classes of its own, with other arguments. Here nothing is
to be translated: no function is known, and operators bind as in Spark's grammar.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, ClassVar

from google.protobuf.message import DecodeError
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from firnline.errors import FirnlineError

SUFFIXES = ("L", "S", "Y", "D", "F", "BD")


class TypedLiteral(exp.Expression):
    """A literal that says its type: ``1L``, ``1.5BD``, ``date'2026-01-01'``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": True}


def opaque(construct: str) -> FirnlineError:
    """The refusal of what has no translation."""
    return FirnlineError("OPAQUE_SQL", construct)


def _extract(self: Any) -> exp.Expression:
    """``extract(year from x)``: the field as a string, as Spark's own parser has it."""
    self._advance()
    field = exp.Literal.string(self._prev.text)
    if not self._match(TokenType.FROM):
        self.raise_error("Expected FROM after the field")
    return exp.Anonymous(this="extract", expressions=[field, self._parse_bitwise()])


def _typed(kind: str) -> Any:
    return lambda self, this, _: self.expression(TypedLiteral(this=this, kind=kind))


class Verbatim(Spark):
    """The dialect "spark" without sqlglot's own functions."""

    class Tokenizer(Spark.Tokenizer):
        """A quote is written twice to stand for itself."""

        STRING_ESCAPES: ClassVar[Any] = ["\\", "'", '"']

    class Generator(SparkGenerator):
        """Only for messages."""

        TRANSFORMS: ClassVar[Any] = SparkGenerator.TRANSFORMS | {
            TypedLiteral: lambda self, node: f"{node.args['kind']}{self.sql(node, 'this')}"
        }

    class Parser(SparkParser):
        """Names stay names; what has a grammar of its own (CAST, TRIM, ...) is parsed."""

        STRICT_CAST = True
        FUNCTIONS: ClassVar[Any] = {}
        ARRAY_CONSTRUCTORS: ClassVar[Any] = {}
        FUNCTION_PARSERS: ClassVar[Any] = {
            name: SparkParser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST", "OVERLAY", "POSITION", "SUBSTRING", "TRIM")
        } | {"EXTRACT": _extract}
        NO_PAREN_FUNCTION_PARSERS: ClassVar[Any] = {"CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]}
        TYPE_LITERAL_PARSERS: ClassVar[Any] = {
            exp.DataType.Type.DATE: _typed("DATE"),
            exp.DataType.Type.TIMESTAMPTZ: _typed("TIMESTAMP"),
            exp.DataType.Type.TIMESTAMPLTZ: _typed("TIMESTAMP_LTZ"),
            exp.DataType.Type.TIMESTAMPNTZ: _typed("TIMESTAMP_NTZ"),
        }
        UNARY_PARSERS: ClassVar[Any] = SparkParser.UNARY_PARSERS | {
            TokenType.PLUS: lambda self: exp.Anonymous(this="positive", expressions=[self._parse_unary()]),
        }
        # All comparisons bind alike, and || binds like +.
        EQUALITY: ClassVar[Any] = SparkParser.EQUALITY | SparkParser.COMPARISON
        COMPARISON: ClassVar[Any] = {}
        # a:b takes a field out of a variant; it is not a under a name.
        COLON_PLACEHOLDER_TOKENS: ClassVar[Any] = frozenset()
        TERM: ClassVar[Any] = SparkParser.TERM | {TokenType.DPIPE: exp.DPipe}

        def build_cast(self, strict: bool, **kwargs: Any) -> exp.Expr:
            """A suffix reaches here as a cast of the number before it."""
            suffix, number = self._prev.text.upper(), kwargs["this"]
            if suffix in SUFFIXES and isinstance(number, exp.Literal) and not number.is_string:
                return TypedLiteral(this=number, kind=suffix)
            return super().build_cast(strict, **kwargs)

        def _parse_bitwise(self) -> exp.Expr | None:
            """From the loosest: | then ^ then & then the shifts."""
            return self._bitwise_level((TokenType.PIPE, TokenType.CARET, TokenType.AMP))

        def _bitwise_level(self, operators: tuple[TokenType, ...]) -> exp.Expr | None:
            if not operators:
                return self._shifts()
            this = self._bitwise_level(operators[1:])
            while self._match(operators[0]):
                this = self.BITWISE[operators[0]](this=this, expression=self._bitwise_level(operators[1:]))
            return this

        def _shifts(self) -> exp.Expr | None:
            this = self._parse_term()
            while True:
                if self._match_pair(TokenType.LT, TokenType.LT):
                    this = exp.BitwiseLeftShift(this=this, expression=self._parse_term())
                elif self._match_pair(TokenType.GT, TokenType.GT):
                    name = ">>>" if self._match(TokenType.GT) else ">>"
                    this = exp.Anonymous(this=name, expressions=[this, self._parse_term()])
                else:
                    return this


@contextmanager
def not_too_deep(text: str) -> Iterator[None]:
    """Refuse what Python or protobuf cannot nest: some 40 operators inside each other."""
    try:
        yield
    except (RecursionError, DecodeError):
        raise opaque(f"the SQL {_short(text)} is nested too deeply") from None


def statement_of(text: str) -> exp.Expression:
    """The tree of a text, which must hold one statement and nothing else."""
    dialect = Verbatim()
    try:
        tokens = dialect.tokenize(text)
        for token, following in pairwise(tokens):
            # The function, not the clause.
            if token.token_type == TokenType.WINDOW and following.token_type == TokenType.L_PAREN:
                token.token_type = TokenType.VAR
        trees = dialect.parser(error_level=ErrorLevel.RAISE).parse(tokens, text)
    except SqlglotError as error:
        known = error.errors if isinstance(error, ParseError) else []
        reason = known[0]["description"] if known else error
        raise opaque(f"cannot read the SQL {_short(text)}: {str(reason).strip().rstrip('.')}") from None
    found = [tree for tree in trees if isinstance(tree, exp.Expression)]
    if len(found) != 1:
        raise opaque(f"expected one statement in {_short(text)}")
    return found[0]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= 60 else line[:57] + "...")


def expression_of(text: str) -> exp.Expression:
    """The tree of an expression, with its alias if it has one."""
    selected = statement_of("SELECT " + text)
    if not isinstance(selected, exp.Select) or {k for k, v in selected.args.items() if v} != {"expressions"}:
        raise opaque(f"expected an expression, not {_short(text)}")
    if len(selected.expressions) != 1:
        raise opaque(f"expected one expression, not {_short(text)}")
    only: exp.Expression = selected.expressions[0]
    return only
