"""Inner loops as vector instructions: what LLVM does not make of a plain loop of run-time length.

Each function is written out in LLVM's intermediate form over vectors of `LANES` numbers, which it lowers to whatever
the processor has (AVX-512, AVX2, NEON). Callers are compiled kernels (`helios.index.maxsim`); nothing is checked here.
On one core of an AMD EPYC the scan over 25 million tokens takes 21 ms so, and 78 ms as a plain loop.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

LANES = 32
"""Query tokens are padded to a multiple of this."""
_I8, _I16, _I32, _I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
_BYTES, _SHORTS = ir.VectorType(_I8, LANES), ir.VectorType(_I16, LANES)
_FLOATS = ir.VectorType(ir.FloatType(), LANES)


def _max_of_rows(typing: Any, table: Any, codes: Any, start: Any, stop: Any, out: Any, row: Any, width: Any) -> Any:
    """out[row] = the largest of table[codes[t]] for t in [start, stop), number by number; zeros where there is none.

    `table` and `out` hold bytes and are `width` wide.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        table, codes, out = (_data(context, builder, signature, args, n) for n in (0, 1, 4))
        start, stop, row, width = args[2], args[3], args[5], args[6]

        def block(lane: Any) -> None:
            zero = ir.Constant(_BYTES, [0] * LANES)

            def step(t: Any, best: Any) -> Any:
                code = _numbered(builder, codes, t)
                return _larger(builder, best, _load(builder, table, _at(builder, code, width, lane), _BYTES))

            best = _loop(builder, start, stop, [zero], lambda t, values: [step(t, values[0])])[0]
            _store(builder, best, out, _at(builder, row, width, lane))

        _lane_blocks(builder, width, block)
        return context.get_dummy_value()

    return types.void(table, codes, start, stop, out, row, width), generate


def _star_sums(
    typing: Any, bounds: Any, width: Any, left: Any, centre: Any, right: Any, first: Any, last: Any, edges: Any,
    star: Any,
) -> Any:  # fmt: skip
    """edges[e] += the sum of the larger of bounds[left] and bounds[right[e]], for e in [first, last).

    star[0] += the sum of bounds[centre], star[1] += that of the largest of the centre and all of the right. `bounds`
    holds bytes and is `width` wide; `edges` and `star` are int32 and hold zeros before.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bounds, right, edges, star = (_data(context, builder, signature, args, n) for n in (0, 4, 7, 8))
        width, left, centre, first, last = args[1], args[2], args[3], args[5], args[6]

        def block(lane: Any) -> None:
            of_left = _load(builder, bounds, _at(builder, left, width, lane), _BYTES)
            of_centre = _load(builder, bounds, _at(builder, centre, width, lane), _BYTES)

            def step(e: Any, best: Any) -> Any:
                node = _numbered(builder, right, e)
                own = _load(builder, bounds, _at(builder, node, width, lane), _BYTES)
                _add_to(builder, edges, e, _sum_of_bytes(builder, _larger(builder, of_left, own)))
                return _larger(builder, best, own)

            best = _loop(builder, first, last, [of_centre], lambda e, values: [step(e, values[0])])[0]
            for place, value in enumerate((of_centre, best)):
                _add_to(builder, star, ir.Constant(_I64, place), _sum_of_bytes(builder, value))

        _lane_blocks(builder, width, block)
        return context.get_dummy_value()

    return types.void(bounds, width, left, centre, right, first, last, edges, star), generate


def _best_of_tokens(
    typing: Any, patterns: Any, residuals: Any, scales: Any, levels: Any, codes: Any, cosines: Any, start: Any,
    stop: Any, pairs: Any, step: Any, out: Any, row: Any, width: Any,
) -> Any:  # fmt: skip
    """out[row] = the largest over tokens t in [start, stop) of cosines[codes[t]] + levels[scales[t]] · step · sum; the
    sum is, over the bytes p of residuals[t], patterns[2p, low half] and patterns[2p + 1, high half].

    `patterns` (2 · pairs, 16, width) is int8, `residuals` (tokens, pairs) uint8, `cosines` and `out` are float32; sums
    are of whole numbers and fit into an int16.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        names = ("patterns", "residuals", "scales", "levels", "codes", "cosines")
        data = {name: _data(context, builder, signature, args, n) for n, name in enumerate(names)}
        out = _data(context, builder, signature, args, 10)
        start, stop, pairs, step, row, width = (args[n] for n in (6, 7, 8, 9, 11, 12))

        def whole(number: int) -> Any:
            return ir.Constant(_I64, number)

        def residual_sum(token: Any, lane: Any) -> Any:
            own = builder.gep(data["residuals"], [builder.mul(token, pairs)])

            def halves(p: Any, low_sum: Any, high_sum: Any) -> list[Any]:
                byte = _numbered(builder, own, p)
                group = builder.shl(p, whole(5))
                low = builder.add(group, builder.and_(byte, whole(15)))
                high = builder.add(builder.add(group, whole(16)), builder.lshr(byte, whole(4)))
                found = [_load(builder, data["patterns"], _at(builder, n, width, lane), _BYTES) for n in (low, high)]
                return [
                    builder.add(one, builder.sext(more, _SHORTS))
                    for one, more in zip((low_sum, high_sum), found, strict=True)
                ]

            zero = ir.Constant(_SHORTS, [0] * LANES)
            return builder.add(*_loop(builder, whole(0), pairs, [zero, zero], lambda p, values: halves(p, *values)))

        def block(lane: Any) -> None:
            def better(token: Any, best: Any) -> Any:
                level = builder.load(builder.gep(data["levels"], [_numbered(builder, data["scales"], token)]))
                scale = _spread(builder, builder.fmul(level, step))
                code = _numbered(builder, data["codes"], token)
                cosine = _load(builder, data["cosines"], _at(builder, code, width, lane), _FLOATS)
                value = builder.fadd(cosine, builder.fmul(scale, builder.sitofp(residual_sum(token, lane), _FLOATS)))
                return builder.select(builder.fcmp_ordered(">", value, best), value, best)

            least = ir.Constant(_FLOATS, [-1e30] * LANES)
            best = _loop(builder, start, stop, [least], lambda token, values: [better(token, values[0])])[0]
            _store(builder, best, out, _at(builder, row, width, lane))

        _lane_blocks(builder, width, block)
        return context.get_dummy_value()

    arguments = (patterns, residuals, scales, levels, codes, cosines, start, stop, pairs, step, out, row, width)
    return types.void(*arguments), generate


def _two_products(
    typing: Any, vectors: Any, one: Any, other: Any, dimension: Any, columns: Any, out: Any, width: Any
) -> Any:
    """out[one] and out[other] = the products of these rows of `vectors` (R, D) with `columns` (D, width), all float32.

    Two rows at a time keep a processor's multipliers busy.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors, columns, out = (_data(context, builder, signature, args, n) for n in (0, 4, 5))
        rows, dimension, width = args[1:3], args[3], args[6]
        own = [builder.gep(vectors, [builder.mul(row, dimension)]) for row in rows]

        def block(lane: Any) -> None:
            def step(d: Any, sums: list[Any]) -> list[Any]:
                column = _load(builder, columns, _at(builder, d, width, lane), _FLOATS)
                values = [_spread(builder, builder.load(builder.gep(row, [d]))) for row in own]
                return [
                    builder.call(_fused(builder), [value, column, known])
                    for value, known in zip(values, sums, strict=True)
                ]

            zeros = [ir.Constant(_FLOATS, [0.0] * LANES)] * 2
            sums = _loop(builder, ir.Constant(_I64, 0), dimension, zeros, step)
            for row, found in zip(rows, sums, strict=True):
                _store(builder, found, out, _at(builder, row, width, lane))

        _lane_blocks(builder, width, block)
        return context.get_dummy_value()

    return types.void(vectors, one, other, dimension, columns, out, width), generate


max_of_rows: Any = intrinsic(_max_of_rows)
star_sums: Any = intrinsic(_star_sums)
best_of_tokens: Any = intrinsic(_best_of_tokens)
two_products: Any = intrinsic(_two_products)
"""Called from compiled kernels with the arguments after the first."""


def _lane_blocks(builder: Any, width: Any, block: Callable[[Any], None]) -> None:
    """`block` for every multiple of LANES below the width."""

    def step(lane: Any, values: list[Any]) -> list[Any]:
        block(builder.mul(lane, ir.Constant(_I64, LANES)))
        return []

    _loop(builder, ir.Constant(_I64, 0), builder.sdiv(width, ir.Constant(_I64, LANES)), [], step)


def _loop(builder: Any, first: Any, last: Any, values: list[Any], step: Callable[[Any, list[Any]], list[Any]]) -> Any:
    """Values after `step` for every number in [first, last); the values are carried from one step to the next."""
    entry, function = builder.block, builder.function
    head, body, end = (function.append_basic_block(name) for name in ("head", "body", "end"))
    builder.branch(head)
    builder.position_at_end(head)
    number = builder.phi(_I64)
    carried = [builder.phi(value.type) for value in values]
    number.add_incoming(first, entry)
    for phi, value in zip(carried, values, strict=True):
        phi.add_incoming(value, entry)
    builder.cbranch(builder.icmp_signed("<", number, last), body, end)
    builder.position_at_end(body)
    following = step(number, carried)
    number.add_incoming(builder.add(number, ir.Constant(_I64, 1)), builder.block)
    for phi, value in zip(carried, following, strict=True):
        phi.add_incoming(value, builder.block)
    builder.branch(head)
    builder.position_at_end(end)
    return carried


def _data(context: Any, builder: Any, signature: Any, args: Any, number: int) -> Any:
    """The address of an array's first element."""
    array: Any = make_array
    return array(signature.args[number])(context, builder, args[number]).data


def _at(builder: Any, row: Any, width: Any, lane: Any) -> Any:
    return builder.add(builder.mul(row, width), lane)


def _load(builder: Any, base: Any, offset: Any, vector: Any) -> Any:
    """LANES neighbouring elements, wherever they begin."""
    address = builder.gep(base, [offset])
    return builder.load(builder.bitcast(address, vector.as_pointer()), align=1)


def _store(builder: Any, value: Any, base: Any, offset: Any) -> None:
    address = builder.gep(base, [offset])
    builder.store(value, builder.bitcast(address, value.type.as_pointer()), align=1)


def _numbered(builder: Any, base: Any, place: Any) -> Any:
    """An element of an array of unsigned numbers, as an index."""
    return builder.zext(builder.load(builder.gep(base, [place])), _I64)


def _spread(builder: Any, value: Any) -> Any:
    """LANES copies of a float."""
    nothing = ir.Constant(_FLOATS, ir.Undefined)
    first = builder.insert_element(nothing, value, ir.Constant(_I32, 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES))


def _fused(builder: Any) -> Any:
    """The function a · b + c of LANES floats, rounded once."""
    kind = ir.FunctionType(_FLOATS, [_FLOATS] * 3)
    return get_or_insert_function(builder.module, kind, f"llvm.fma.v{LANES}f32")  # type: ignore[no-untyped-call]


def _larger(builder: Any, one: Any, other: Any) -> Any:
    return builder.select(builder.icmp_unsigned(">", one, other), one, other)


def _add_to(builder: Any, base: Any, place: Any, value: Any) -> None:
    address = builder.gep(base, [place])
    builder.store(builder.add(builder.load(address), value), address)


def _sum_of_bytes(builder: Any, value: Any) -> Any:
    """The sum of LANES bytes as an int32: halves are added to halves."""
    total, count = builder.zext(value, _SHORTS), LANES
    while count > 1:
        count //= 2
        nothing = ir.Constant(total.type, ir.Undefined)
        halves = [
            builder.shuffle_vector(
                total, nothing, ir.Constant(ir.VectorType(_I32, count), list(range(start, start + count)))
            )
            for start in (0, count)
        ]
        total = builder.add(*halves)
    return builder.zext(builder.extract_element(total, ir.Constant(_I32, 0)), _I32)
