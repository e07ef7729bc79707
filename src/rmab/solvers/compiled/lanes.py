"""Eight numbers at a time: a type of compiled code whose values fill one vector register, one lane for each of eight arms.

Code on lanes reads like code on single numbers: `+ - * /`, comparisons, `select(mask, a, b)`, `exp` and `log` act on all
lanes at once. Loops over arms that compilers do not vectorise (branches, searches that end at different iterations) do so
by construction, and compile as fast as the same code for one number. `load` and `store` move the last axis of an array, of
length WIDTH.

Without compilation every function works on arrays of length WIDTH instead.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import register_model

from rmab.common.arrays import BoolArray, FloatArray
from rmab.solvers.compiled.lane_series import FLOATS, INDEX, WIDTH, emit_exp, emit_log, emit_root, emit_size

Lanes = FloatArray  # for readers and type checkers: compiled code has LanesType and MaskType
Mask = BoolArray


class LanesType(types.Type):
    """The type of eight floats."""

    def __init__(self) -> None:
        super().__init__("Lanes")


class MaskType(types.Type):
    """The type of eight booleans."""

    def __init__(self) -> None:
        super().__init__("Mask")


LANES, MASK = LanesType(), MaskType()
_BITS = ir.VectorType(ir.IntType(1), WIDTH)


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, FLOATS)


@register_model(MaskType)
class _MaskModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _BITS)


# What the functions do without compilation; the docstrings hold for both.


def select(mask: Mask, one: Lanes | float, other: Lanes | float) -> Lanes:
    """Return one where the mask is set, the other elsewhere."""
    return np.where(mask, one, other)


def load(array: FloatArray, *place: int) -> Lanes:
    """Return the lanes array[place], the last axis of an array of one more dimension."""
    return array[place].copy()


def store(array: FloatArray, value: Lanes | float, *place: int) -> None:
    """Set array[place] to the lanes of value."""
    array[place] = value


def spread(value: float) -> Lanes:
    """Return lanes that all hold the value."""
    return np.full(WIDTH, value)


def root(x: Lanes) -> Lanes:
    """Return the square root."""
    return np.sqrt(x)


def exp(x: Lanes) -> Lanes:
    """Return e to the power of x, to 2 units in the last place; 0, infinity and NaN where they are due."""
    return np.exp(x)


def log(x: Lanes) -> Lanes:
    """Return the natural logarithm, to 2 units in the last place; -infinity at 0, NaN below."""
    return np.log(x)


def size(x: Lanes) -> Lanes:
    """Return the absolute value."""
    return np.abs(x)


def least(a: Lanes | float, b: Lanes | float) -> Lanes:
    """Return the smaller of two; b where either is NaN."""
    return np.where(np.less(a, b), a, b)


def most(a: Lanes | float, b: Lanes | float) -> Lanes:
    """Return the larger of two; b where either is NaN."""
    return np.where(np.greater(a, b), a, b)


def some(mask: Mask) -> bool:
    """Return whether the mask is set in some lane."""
    return bool(mask.any())


def summed(x: Lanes) -> float:
    """Return the sum of the lanes, always added in the same order."""
    half = x[:4] + x[4:]
    return float((half[0] + half[2]) + (half[1] + half[3]))


# Types and machine code of all of them.

_Emit = Callable[[Any, Any, Sequence[Any]], Any]


def _spread(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return a value as lanes: as it is, or the number in all of them."""
    if isinstance(kind, LanesType | MaskType):
        return value
    number = context.cast(builder, value, kind, types.float64)
    one = builder.insert_element(ir.Constant(FLOATS, ir.Undefined), number, ir.Constant(INDEX, 0))
    zeros = ir.Constant(ir.VectorType(INDEX, WIDTH), [0] * WIDTH)
    return builder.shuffle_vector(one, ir.Constant(FLOATS, ir.Undefined), zeros)


def _register(name: Any, kinds: Sequence[tuple[Any, ...]], result: Any, emit: _Emit) -> None:
    """Let compiled code call name for these kinds of arguments; emit(context, builder, lanes) writes the instructions."""

    class Template(AbstractTemplate):  # type: ignore[misc]
        def generic(self, args: tuple[Any, ...], kws: object) -> Any:  # noqa: ARG002  (the name is Numba's)
            fits = any(
                len(args) == len(kind) and all(isinstance(a, k) for a, k in zip(args, kind, strict=True)) for kind in kinds
            )
            return signature(result, *args) if fits else None

    infer_global(name)(Template)
    for kind in kinds:

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return emit(context, builder, [_spread(context, builder, k, a) for k, a in zip(sig.args, args, strict=True)])

        lower_builtin(name, *kind)(codegen)


_NUMBERS = (types.Float, types.Integer)
_PLACES: Any = getattr(types, "VarArg")(types.Integer)  # noqa: B009  (its stubs do not know it)
_PAIRS = [(LanesType, LanesType), *((LanesType, n) for n in _NUMBERS), *((n, LanesType) for n in _NUMBERS)]
_CHOICES = [(MaskType, *pair) for pair in [*_PAIRS, (types.Float, types.Float)]]


def _emit_comparison(sign: str) -> _Emit:
    return lambda _, builder, x: builder.fcmp_ordered(sign, *x)


def _choose(sign: str) -> _Emit:
    return lambda _, builder, x: builder.select(builder.fcmp_ordered(sign, *x), *x)


for _operator, _method in {"add": "fadd", "sub": "fsub", "mul": "fmul", "truediv": "fdiv"}.items():
    _register(getattr(operator, _operator), _PAIRS, LANES, lambda _, b, x, m=_method: getattr(b, m)(*x))  # type: ignore[misc]
for _operator, _sign in {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "=="}.items():
    _register(getattr(operator, _operator), _PAIRS, MASK, _emit_comparison(_sign))
for _operator, _method in {"and_": "and_", "or_": "or_", "xor": "xor"}.items():
    _register(getattr(operator, _operator), [(MaskType, MaskType)], MASK, lambda _, b, x, m=_method: getattr(b, m)(*x))  # type: ignore[misc]
_register(operator.invert, [(MaskType,)], MASK, lambda _, builder, x: builder.not_(x[0]))
_register(operator.neg, [(LanesType,)], LANES, lambda _, builder, x: builder.fneg(x[0]))
_register(select, _CHOICES, LANES, lambda _, builder, x: builder.select(*x))
_register(spread, [(n,) for n in _NUMBERS], LANES, lambda _, __, x: x[0])
_register(root, [(LanesType,)], LANES, lambda _, builder, x: emit_root(builder, x[0]))
_register(size, [(LanesType,)], LANES, lambda _, builder, x: emit_size(builder, x[0]))
_register(least, _PAIRS, LANES, _choose("<"))
_register(most, _PAIRS, LANES, _choose(">"))


def _some(_: Any, builder: Any, x: Sequence[Any]) -> Any:
    bits = builder.bitcast(x[0], ir.IntType(WIDTH))
    return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(WIDTH), 0))


def _emit_sum(_: Any, builder: Any, x: Sequence[Any]) -> Any:
    def lanes(value: Any, *places: int) -> Any:
        mask = ir.Constant(ir.VectorType(INDEX, len(places)), list(places))
        return builder.shuffle_vector(value, ir.Constant(value.type, ir.Undefined), mask)

    four = builder.fadd(lanes(x[0], 0, 1, 2, 3), lanes(x[0], 4, 5, 6, 7))
    two = builder.fadd(lanes(four, 0, 1), lanes(four, 2, 3))
    first, second = (builder.extract_element(two, ir.Constant(INDEX, k)) for k in range(2))
    return builder.fadd(first, second)


_register(some, [(MaskType,)], types.boolean, _some)
_register(summed, [(LanesType,)], types.float64, _emit_sum)


def _pointer(context: Any, builder: Any, kind: Any, array: Any, kinds: Sequence[Any], places: Sequence[Any]) -> Any:
    """Return the address of the lanes array[places]."""
    given = context.make_array(kind)(context, builder, array)
    whole = [context.cast(builder, p, k, types.intp) for p, k in zip(places, kinds, strict=True)]
    whole.append(context.get_constant(types.intp, 0))
    shape = [*cgutils.unpack_tuple(builder, given.shape, kind.ndim)[:-1], context.get_constant(types.intp, WIDTH)]
    options = {"wraparound": False, "boundscheck": context.enable_boundscheck}
    address = cgutils.get_item_pointer2(context, builder, given.data, shape, (), "C", whole, **options)
    return builder.bitcast(address, FLOATS.as_pointer())


class _Places(AbstractTemplate):  # type: ignore[misc]
    """Types of `load` and `store`: an array, whose last axis is the lanes, and a place in all axes before it."""

    written = 0

    def generic(self, args: tuple[Any, ...], kws: object) -> Any:  # noqa: ARG002  (the name is Numba's)
        array, places = args[0], args[1 + self.written :]
        whole = all(isinstance(place, types.Integer) for place in places)
        if not (isinstance(array, types.Array) and array.layout == "C" and array.ndim == len(places) + 1 and whole):
            return None
        value = [LANES] if self.written and isinstance(args[1], LanesType) else [types.float64] * self.written
        return signature(types.void if self.written else LANES, array, *value, *(types.intp for _ in places))


@infer_global(load)
class _Load(_Places):
    pass


@infer_global(store)
class _Store(_Places):
    written = 1


@lower_builtin(load, types.Array, _PLACES)  # type: ignore[untyped-decorator]
def _emit_load(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    address = _pointer(context, builder, sig.args[0], args[0], sig.args[1:], args[1:])
    return builder.load(address, align=8, typ=FLOATS)


def _emit_store(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    address = _pointer(context, builder, sig.args[0], args[0], sig.args[2:], args[2:])
    builder.store(_spread(context, builder, sig.args[1], args[1]), address, align=8)
    return context.get_dummy_value()


for _kind in (LanesType, types.Float):
    lower_builtin(store, types.Array, _kind, _PLACES)(_emit_store)


_register(exp, [(LanesType,)], LANES, lambda _, builder, x: emit_exp(builder, x[0]))
_register(log, [(LanesType,)], LANES, lambda _, builder, x: emit_log(builder, x[0]))
