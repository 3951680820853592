"""From a Connect plan to the algebra: names become ids, and many operators become few.

``bind`` either returns a tree that means the same as the plan, or raises a coded refusal with the user's file and line. Codes in
``ALWAYS`` are refused whatever is asked for, since such a stage has no single answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from google.protobuf.message import Message
from pyspark.errors import AnalysisException
from pyspark.sql.connect.proto import Expression, Relation

from firnline.errors import FirnlineError, Location
from firnline.incremental import functions
from firnline.incremental.algebra import (
    KEY,
    Column,
    Constant,
    Input,
    Map,
    Output,
    Verbatim,
    Window,
)
from firnline.incremental.determinism import ordered_by, undetermined
from firnline.incremental.expressions import function, inner, place, plain, references, rewritten, walk
from firnline.incremental.framing import framed
from firnline.incremental.grouping import aggregate, grouped
from firnline.incremental.limiting import deduplicated, first
from firnline.incremental.ordering import ordered
from firnline.incremental.pandas_groups import co_group_map, group_map
from firnline.incremental.recursing import MARK, recursion
from firnline.incremental.relation import call
from firnline.incremental.scope import Bound, Field, Made, plainly, reference, resolved, split
from firnline.incremental.sql_expression import parsed
from firnline.incremental.starring import BOUND, Draft, keep_names, spread_stars, star
from firnline.incremental.subqueries import filtered, has_subquery, is_time, joined_by, lateral, valued
from firnline.incremental.typing import Analyze, Schema
from firnline.incremental.uniting import united

ALWAYS = frozenset(["NONDETERMINISTIC_FUNCTION", "DEDUP_WITHOUT_ORDER", "LIMIT_WITHOUT_ORDER"])


class Binder:
    """Binds one plan.

    Args:
        inputs: The collections by the plan id of the DataFrame that stands for them: name and column names.
        analyze: Asked only where names or types do not show in the plan itself.
        sites: Where the user made a relation, file:line by plan id.
    """

    def __init__(
        self, inputs: Mapping[int, tuple[str, Sequence[str]]], analyze: Analyze, sites: Mapping[int, str] | None = None
    ) -> None:
        self._analyze = analyze
        self._sites = sites or {}
        self._inputs = inputs
        self._numbers = itertools.count()
        self.plans: dict[int, list[Bound]] = {}
        self._where: list[str | None] = [None]
        self._subqueries: dict[int, Relation] = {}
        self.loops: dict[int, Bound] = {}
        self.outside: list[Bound] = []

    def bind(self, relation: Relation) -> Bound:
        """The relation in the algebra."""
        with self.at(relation):
            plan = relation.common.plan_id if relation.common.HasField("plan_id") else None
            if plan is not None and plan in self._inputs:
                bound = self._input(*self._inputs[plan])
            elif plan is not None and plan in self.loops:
                bound = self._loop(self.loops[plan])
            else:
                kind = relation.WhichOneof("rel_type") or "nothing"
                if kind in functions.NONDETERMINISTIC_OPERATORS:
                    raise self.refusal("NONDETERMINISTIC_FUNCTION", functions.NONDETERMINISTIC_OPERATORS[kind])
                method = getattr(self, f"_{kind}", None)
                if method is None:
                    raise self.refusal("UNSUPPORTED_OPERATOR", f"{kind.replace('_', ' ')!r} has no rule")
                bound = method(relation)
            if plan is not None:
                self.plans.setdefault(plan, []).append(bound)
            return bound

    @property
    def where(self) -> str | None:
        """The user's call site of what is being bound."""
        return self._where[-1]

    @contextmanager
    def at(self, message: Message) -> Iterator[None]:
        """Remember the call site of a message while it is bound."""
        found = self._sites.get(message.common.plan_id) if isinstance(message, Relation) else place(message)
        self._where.append(found or self._where[-1])
        yield
        self._where.pop()

    def refusal(self, code: str, what: str) -> FirnlineError:
        """A refusal at the present call site."""
        return FirnlineError(code, what, Location.of(self.where))

    def analyze(self, relation: Relation) -> Schema:
        """The columns of a relation, as Spark finds them; inside a subquery it may not, as it does not see the rows outside."""
        try:
            return self._analyze(relation)
        except AnalysisException:
            if not self.outside:
                raise
            raise self.refusal("UNSUPPORTED_EXPRESSION", "a subquery whose types depend on rows outside of it") from None

    def names(self, relation: Relation, count: int) -> list[str]:
        """The names of a relation's columns, as Spark invents them.

        A subquery that refers to rows outside cannot be analysed by itself, and nobody sees its names: there any do.
        """
        if self.outside:
            return [f"_{number}" for number in range(count)]
        if self._subqueries:
            wrapped = Relation()
            wrapped.with_relations.root.CopyFrom(relation)
            wrapped.with_relations.references.extend(self._subqueries.values())
            relation = wrapped
        return [name for name, _ in self.analyze(relation)]

    def new(self, name: str) -> Column:
        """A new column."""
        return Column(f"c{next(self._numbers)}", name)

    # ---- expressions

    def expression(self, expression: Expression, *scopes: Bound) -> Expression:
        """The expression with every name replaced by an id, or a refusal."""
        copy = Expression()
        copy.CopyFrom(expression)
        return self._bound(copy, scopes)

    def _bound(self, expression: Expression, scopes: Sequence[Bound], allowed: frozenset[str] = frozenset()) -> Expression:
        """The expression with names replaced; ``allowed`` are functions that see an order, and have one here."""
        with self.at(expression):
            kind = expression.WhichOneof("expr_type")
            if kind == "expression_string":
                return self._bound(parsed(expression.expression_string.expression), scopes)
            if kind == "unresolved_attribute":
                return self._attribute(expression, scopes)
            if kind in ("unresolved_regex", "subquery_expression", "typed_aggregate_expression", "direct_shuffle_partition_id"):
                raise self.refusal("UNSUPPORTED_EXPRESSION", f"{kind.replace('_', ' ')!r} has no rule")
            if kind == "common_inline_user_defined_function" and not expression.common_inline_user_defined_function.deterministic:
                raise self.refusal("NONDETERMINISTIC_FUNCTION", "a Python function that is declared nondeterministic")
            if is_time(expression):
                raise self.refusal("UNSUPPORTED_EXPRESSION", "epoch_time() elsewhere than in where, select and withColumn")
            if (reason := undetermined(expression, allowed)) is not None:
                raise self.refusal("NONDETERMINISTIC_FUNCTION", reason)
            if (name := function(expression)) in functions.OF_STREAMS:
                raise self.refusal("UNSUPPORTED_EXPRESSION", f"{name}() {functions.OF_STREAMS[name]}")
            if kind == "unresolved_function":
                spread_stars(self, expression, scopes)
                keep_names(expression)
            for below in list(inner(expression)):
                below.CopyFrom(self._bound(below, scopes, ordered_by(expression, below)))
            return expression

    def _attribute(self, expression: Expression, scopes: Sequence[Bound]) -> Expression:
        attribute = expression.unresolved_attribute
        if attribute.plan_id == BOUND:
            attribute.ClearField("plan_id")
            return expression
        parts = split(attribute.unparsed_identifier)
        is_of_relation = attribute.HasField("plan_id") or len(parts) > 1
        behind = [field for scope in scopes for field in scope.hidden if is_of_relation]
        inside = [field for scope in scopes for field in scope.fields]
        for fields in (inside, behind, *(each.fields for each in reversed(self.outside))):
            if attribute.HasField("plan_id"):
                known = {field.id for field in fields}
                bounds = self.plans.get(attribute.plan_id, ())
                at_once = [bound for bound in bounds if any(bound is scope for scope in scopes)]  # before any that it is made of
                of_plan = [field for bound in at_once or bounds for field in bound.fields]
                fields = [field for field in of_plan if field.id in known]
            try:
                found = resolved(parts, fields)
            except FirnlineError as error:
                raise self.refusal(error.code, error.what) from None
            if found is not None:
                return reference(found[0].id, found[1])
        raise self.refusal("UNRESOLVED_COLUMN", f"{attribute.unparsed_identifier!r} is no column here")

    def already(self, expression: Expression) -> Expression:
        """A bound expression, to stand in one that is yet to be bound."""
        return rewritten(expression, _marked)

    # ---- subqueries

    def _with_relations(self, relation: Relation) -> Bound:
        for each in relation.with_relations.references:
            self._subqueries[each.common.plan_id] = each
        return self.bind(relation.with_relations.root)

    def subquery(self, plan: int, outside: Bound) -> Bound:
        """A subquery whose names may mean columns outside of it."""
        return self.inside(self._subqueries[plan], outside)

    def inside(self, relation: Relation, outside: Bound) -> Bound:
        """A relation whose names may mean columns outside of it."""
        self.outside.append(outside)
        bound = self.bind(relation)
        self.outside.pop()
        return bound

    # ---- row by row

    def outputs(self, expressions: Sequence[Expression], source: Bound, relation: Relation | None) -> list[Made]:
        """What expressions of a projection make, with stars spelt out; names that Spark invents are asked of it."""
        made: list[Draft] = []
        for each in expressions:
            with self.at(each):
                if each.WhichOneof("expr_type") == "expression_string":
                    each = parsed(each.expression_string.expression)
                if each.WhichOneof("expr_type") == "unresolved_star":
                    made += star(self, each, source, relation)
                    continue
                names = tuple(each.alias.name) if each.WhichOneof("expr_type") == "alias" else None
                bound = self.expression(each.alias.expr if names else each, source)
                field = None
                if names is None and bound.WhichOneof("expr_type") == "unresolved_attribute":
                    names = (split(each.unresolved_attribute.unparsed_identifier)[-1],)
                    found = plain(bound)
                    field = next((known for known in source.fields if known.id == found), None)
                    if each.unresolved_attribute.plan_id == BOUND:
                        names = (field.name,) if field else None
                made.append((names, bound, field))
        return [*self._named(made, relation)]

    def _named(self, made: Sequence[Draft], relation: Relation | None) -> Iterator[Made]:
        unnamed = [number for number, (names, *_) in enumerate(made) if names is None]
        all_names: list[str] = []
        if unnamed:
            if relation is None:
                raise self.refusal("UNSUPPORTED_EXPRESSION", "an expression without a name")
            all_names = self.names(relation, len(made))
        at = 0
        for names, expression, field in made:
            if names is None:
                is_generator = function(expression) in functions.GENERATORS
                width = len(all_names) - sum(len(other) if other else 1 for other, *_ in made) + 1 if is_generator else 1
                names = tuple(all_names[at : at + width])
            at += len(names)
            if field is not None:
                yield Output((Column(field.id, names[0]),), expression), (replace(field, name=names[0]),)
                continue
            columns = tuple(self.new(name) for name in names)
            yield Output(columns, expression), tuple(Field(each.id, each.name) for each in columns)

    def mapped(self, source: Bound, outputs: Sequence[Made]) -> Bound:
        """A projection; one with window functions has a rule of its own."""
        fields = tuple(field for _, each in outputs for field in each)
        made = tuple(each for each, _ in outputs)
        if len({field.id for field in fields}) < len(fields):
            made, fields = self._doubled(made, fields)
        columns = tuple(Column(field.id, field.name) for field in fields)
        windows = [found for each in made for found in walk(each.expression) if found.WhichOneof("expr_type") == "window"]
        if not windows:
            hidden = self._of_order(source, fields)
            made = (*made, *(Output((of,), reference(of.id)) for of in hidden))
            return Bound(Map((*columns, *hidden), self.where, source.node, made), fields, source.order)
        source, made = framed(self, source, made)
        windows = [found for each in made for found in walk(each.expression) if found.WhichOneof("expr_type") == "window"]
        partitions = [{plain(key) for key in found.window.partition_spec} for found in windows]
        common = set.intersection(*partitions) - {None}
        partition = tuple(of for of in source.node.ids if of in common)
        return Bound(Window(columns, self.where, source.node, partition, made), fields)

    def _of_order(self, source: Bound, fields: Sequence[Field]) -> tuple[Column, ...]:
        """The columns of the source's order that are not among the fields."""
        read = {of for each in source.order for of in references(each)} - {field.id for field in fields}
        return tuple(of for of in source.node.columns if of.id in read)

    def _doubled(self, made: Sequence[Output], fields: Sequence[Field]) -> tuple[tuple[Output, ...], tuple[Field, ...]]:
        """A column that is selected twice gets a second id."""
        seen: set[str] = set()
        outputs = []
        for each in made:
            if each.columns[0].id in seen:
                each = Output((self.new(each.columns[0].name),), each.expression)
            seen.add(each.columns[0].id)
            outputs.append(each)
        ids = [of.id for each in outputs for of in each.columns]
        return tuple(outputs), tuple(replace(field, id=of) for field, of in zip(fields, ids, strict=True))

    def ties(self, source: Bound) -> list[Expression]:
        """An order by all columns."""
        return [_ascending(reference(of)) for of in source.node.ids]

    def _project(self, relation: Relation) -> Bound:
        source = self.bind(relation.project.input) if relation.project.HasField("input") else self._nothing()
        expressions = []
        for each in relation.project.expressions:
            if has_subquery(each):
                source, each = valued(self, source, each)
            expressions.append(each)
        outputs = self.outputs(expressions, source, relation)
        if any(_is_aggregate(each.expression) for each, _ in outputs):
            return grouped(self, source, (), [each for each, _ in outputs])
        return self.mapped(source, outputs)

    def _filter(self, relation: Relation) -> Bound:
        source = self.bind(relation.filter.input)
        condition = relation.filter.condition
        if condition.WhichOneof("expr_type") == "expression_string":
            condition = parsed(condition.expression_string.expression)
        if has_subquery(condition):
            return filtered(self, source, condition)
        return ordered(self, source, self.expression(condition, source))

    def _with_columns(self, relation: Relation) -> Bound:
        source = self.bind(relation.with_columns.input)
        new: dict[str, Expression] = {}
        for each in relation.with_columns.aliases:
            wrapped = Expression()
            wrapped.alias.CopyFrom(each)
            if has_subquery(wrapped):
                source, wrapped = valued(self, source, wrapped)
            new[each.name[0].lower()] = wrapped
        names = [field.name.lower() for field in source.fields]
        kept: list[Expression | Field] = [new.get(name, field) for name, field in zip(names, source.fields, strict=True)]
        extra = [each for name, each in new.items() if name not in names]
        return self.mapped(source, self.with_kept([*kept, *extra], source))

    def with_kept(self, expressions: Sequence[Expression | Field], source: Bound) -> list[Made]:
        """What expressions make, and fields that stay."""
        made: list[Made] = []
        for each in expressions:
            if isinstance(each, Field):
                made.append((Output((Column(each.id, each.name),), reference(each.id)), (each,)))
            else:
                made += self.outputs([each], source, None)
        return made

    def _with_columns_renamed(self, relation: Relation) -> Bound:
        source = self.bind(relation.with_columns_renamed.input)
        message = relation.with_columns_renamed
        names = {**message.rename_columns_map, **{each.col_name: each.new_col_name for each in message.renames}}
        fields = list(source.fields)
        for old, new in names.items():
            fields = [replace(field, name=new) if field.is_named(old) else field for field in fields]
        return replace(source, fields=tuple(fields))

    def _to_df(self, relation: Relation) -> Bound:
        source = self.bind(relation.to_df.input)
        names = list(relation.to_df.column_names)
        return replace(source, fields=tuple(replace(field, name=name) for field, name in zip(source.fields, names, strict=True)))

    def _drop(self, relation: Relation) -> Bound:
        source = self.bind(relation.drop.input)
        gone = {field.id for name in relation.drop.column_names for field in source.fields if field.is_named(name)}
        for each in relation.drop.columns:
            try:
                gone.add(plain(self.expression(each, source)) or "")
            except FirnlineError as error:
                if error.code != "UNRESOLVED_COLUMN":
                    raise
        return self.kept(source, [field for field in source.fields if field.id not in gone])

    def kept(self, source: Bound, fields: Sequence[Field]) -> Bound:
        """Some of the columns, in a given order."""
        return self.mapped(source, self.with_kept(fields, source))

    def _loop(self, variable: Bound) -> Bound:
        """The rows of a recursion's iteration, each time under new ids."""
        assert isinstance(variable.node, Input)
        columns = tuple(self.new(each.name) for each in variable.node.columns)
        fields = tuple(Field(of.id, field.name) for of, field in zip(columns, variable.fields, strict=True))
        return Bound(Input(columns, self.where, variable.node.collection), fields)

    def _subquery_alias(self, relation: Relation) -> Bound:
        if relation.subquery_alias.alias.startswith(MARK):
            return recursion(self, relation)
        return self.bind(relation.subquery_alias.input).aliased(relation.subquery_alias.alias)

    def _hint(self, relation: Relation) -> Bound:
        return self.bind(relation.hint.input)

    def _repartition(self, relation: Relation) -> Bound:
        return replace(self.bind(relation.repartition.input), order=())

    def _repartition_by_expression(self, relation: Relation) -> Bound:
        return replace(self.bind(relation.repartition_by_expression.input), order=())

    def _unpivot(self, relation: Relation) -> Bound:
        return self.verbatim(relation, relation.unpivot.input)

    def _fill_na(self, relation: Relation) -> Bound:
        return self.verbatim(relation, relation.fill_na.input)

    def _drop_na(self, relation: Relation) -> Bound:
        return self.verbatim(relation, relation.drop_na.input)

    def _replace(self, relation: Relation) -> Bound:
        return self.verbatim(relation, relation.replace.input)

    def _map_partitions(self, relation: Relation) -> Bound:
        return self.verbatim(relation, relation.map_partitions.input, is_opaque=True)

    def verbatim(self, relation: Relation, below: Relation, *, is_opaque: bool = False) -> Bound:
        """A linear operator as it stands."""
        source = self.renamed(self.bind(below))
        message, columns = self.stripped(relation), self.made(relation)
        kind = relation.WhichOneof("rel_type")
        if kind in ("fill_na", "drop_na", "replace") and not getattr(message, kind).cols:
            getattr(message, kind).cols.extend(source.names)
        if kind == "unpivot":
            for given, to in zip(_named_in(relation), _named_in(message), strict=True):
                to.CopyFrom(self.in_names(self.expression(given, source), source))
        return plainly(Verbatim(columns, self.where, source.node, message, is_opaque))

    def renamed(self, source: Bound) -> Bound:
        """The same with nodes' names as the user sees them: no two alike."""
        if len({name.lower() for name in source.names}) < len(source.names):
            raise self.refusal("AMBIGUOUS_COLUMN", "two columns have the same name")
        return source if source.node.columns == source.columns() else self.exactly(source)

    def exactly(self, source: Bound) -> Bound:
        """The same rows, in no order, with no columns but its fields."""
        return self.kept(replace(source, order=()), source.fields)

    def in_names(self, expression: Expression, source: Bound) -> Expression:
        """A bound expression by the names of columns again, as a message that is kept has them."""
        names = {each.id: each.name for each in source.node.columns}

        def named(each: Expression) -> Expression:
            if each.WhichOneof("expr_type") != "unresolved_attribute":
                return each
            first, *path = split(each.unresolved_attribute.unparsed_identifier)
            return reference(names[first], path)

        return rewritten(expression, named)

    def stripped(self, relation: Relation) -> Relation:
        """The message itself, without inputs, call sites and plan ids."""
        copy = Relation()
        copy.CopyFrom(relation)
        copy.ClearField("common")
        message = getattr(copy, copy.WhichOneof("rel_type") or "")
        for below in ("input", "other"):
            if below in message.DESCRIPTOR.fields_by_name:
                message.ClearField(below)
        for top in list(inner(message)):
            for each in walk(top):
                each.ClearField("common")
                if each.WhichOneof("expr_type") == "unresolved_attribute":
                    each.unresolved_attribute.ClearField("plan_id")
        return copy

    def made(self, relation: Relation) -> tuple[Column, ...]:
        """New columns for those of a relation."""
        return tuple(self.new(name) for name, _ in self.analyze(relation))

    # ---- leaves

    def _unresolved_table_valued_function(self, relation: Relation) -> Bound:
        """A generator as a relation makes rows of one row."""
        message = relation.unresolved_table_valued_function
        source, name = self._nothing(), message.function_name.lower()
        made = self.expression(call(name, *message.arguments), Bound(source.node, ()))
        if name not in functions.GENERATORS:
            return self._constant(relation)
        names = functions.GENERATOR_COLUMNS.get(name) if self.outside else self.names(relation, 0)
        if names is None:
            raise self.refusal("UNSUPPORTED_OPERATOR", f"{name}() as a relation of values outside: use it in a SELECT")
        columns = tuple(map(self.new, names))
        return self.mapped(source, [(Output(columns, made), tuple(Field(of.id, of.name) for of in columns))])

    def _input(self, collection: str, names: Sequence[str]) -> Bound:
        return plainly(Input(tuple(self.new(name) for name in names), self.where, collection))

    def _local_relation(self, relation: Relation) -> Bound:
        return self._constant(relation)

    _cached_local_relation = _chunked_cached_local_relation = _range = _local_relation

    def _constant(self, relation: Relation) -> Bound:
        copy = Relation()
        copy.CopyFrom(relation)
        copy.ClearField("common")
        return plainly(Constant(self.made(relation), self.where, copy))

    def _nothing(self) -> Bound:
        one = Relation()
        one.range.end, one.range.step = 1, 1
        return plainly(Constant((self.new("id"),), self.where, one))

    # ---- two relations

    def _join(self, relation: Relation) -> Bound:
        return joined_by(self, relation)

    def _lateral_join(self, relation: Relation) -> Bound:
        return lateral(self, relation)

    def _set_op(self, relation: Relation) -> Bound:
        return united(self, relation)

    # ---- orders

    def _sort(self, relation: Relation) -> Bound:
        source = self.bind(relation.sort.input)
        order = []
        for each in relation.sort.order:
            wrapped = Expression()
            wrapped.sort_order.CopyFrom(each)
            source, wrapped = valued(self, source, wrapped)
            order.append(self.expression(wrapped, source))
        return replace(source, order=tuple(order) if relation.sort.is_global else ())

    def _limit(self, relation: Relation) -> Bound:
        return first(self, self.bind(relation.limit.input), relation.limit.limit, 0)

    def _offset(self, relation: Relation) -> Bound:
        return first(self, self.bind(relation.offset.input), None, relation.offset.offset)

    def _deduplicate(self, relation: Relation) -> Bound:
        return deduplicated(self, relation)

    # ---- groups

    def _aggregate(self, relation: Relation) -> Bound:
        return aggregate(self, relation, self.bind(relation.aggregate.input))

    def with_keys(self, source: Bound, expressions: Sequence[Expression]) -> tuple[Bound, list[str]]:
        """The relation with bound expressions as columns of it, and their ids."""
        ids = [plain(each) for each in expressions]
        made = [(number, self.new(KEY)) for number, found in enumerate(ids) if found is None]
        if made:
            outputs: list[Made] = [(Output((of,), reference(of.id)), (Field(of.id, of.name),)) for of in source.node.columns]
            extra = [(Output((key,), expressions[number]), (Field(key.id, key.name),)) for number, key in made]
            widened = self.mapped(source, [*outputs, *extra])
            source = Bound(widened.node, source.fields, source.order)
            for number, key in made:
                ids[number] = key.id
        return source, [found for found in ids if found is not None]

    def _group_map(self, relation: Relation) -> Bound:
        return group_map(self, relation)

    def _co_group_map(self, relation: Relation) -> Bound:
        return co_group_map(self, relation)


def _named_in(relation: Relation) -> list[Expression]:
    """The columns that an unpivot names."""
    return [*relation.unpivot.ids, *relation.unpivot.values.values]


def _marked(expression: Expression) -> Expression:
    if expression.WhichOneof("expr_type") == "unresolved_attribute":
        expression.unresolved_attribute.plan_id = BOUND
    return expression


def _is_aggregate(expression: Expression) -> bool:
    """Whether rows are put together, outside of a window."""
    if expression.WhichOneof("expr_type") == "window":
        return False
    return function(expression) in functions.AGGREGATES or any(_is_aggregate(each) for each in inner(expression))


def _ascending(expression: Expression) -> Expression:
    order = Expression()
    order.sort_order.child.CopyFrom(expression)
    order.sort_order.direction = order.sort_order.SORT_DIRECTION_ASCENDING
    order.sort_order.null_ordering = order.sort_order.SORT_NULLS_FIRST
    return order
