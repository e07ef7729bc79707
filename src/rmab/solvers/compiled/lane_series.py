"""Machine instructions of functions of eight numbers, for LLVM: exponentials and logarithms by series."""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils

WIDTH = 8
FLOATS, INTS, INDEX = ir.VectorType(ir.DoubleType(), WIDTH), ir.VectorType(ir.IntType(64), WIDTH), ir.IntType(32)


def _library(name: str, arguments: int) -> Callable[..., Any]:
    """Return a call of LLVM's own function of this name on lanes."""

    def call(builder: Any, *x: Any) -> Any:
        kind = ir.FunctionType(FLOATS, [FLOATS] * arguments)
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{WIDTH}f64"), x)

    return call


_fma, emit_root, emit_size = _library("fma", 3), _library("sqrt", 1), _library("fabs", 1)


def _number(x: float) -> Any:
    return ir.Constant(FLOATS, [x] * WIDTH)


def _whole(x: int) -> Any:
    return ir.Constant(INTS, [x] * WIDTH)


ROUND = 1.5 * 2.0**52  # a number plus this has its nearest integer in the last bits
LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")


def emit_exp(builder: Any, x: Any) -> Any:
    """Return exp x = 2^k exp r, |r| <= ln 2 / 2, exp r by its series; 2^k in two factors, so that it may be subnormal."""
    value = builder.select(builder.fcmp_ordered(">", x, _number(1000.0)), _number(1000.0), x)
    value = builder.select(builder.fcmp_ordered("<", value, _number(-1000.0)), _number(-1000.0), value)
    moved = _fma(builder, value, _number(1.0 / float(np.log(2.0))), _number(ROUND))
    whole = builder.fsub(moved, _number(ROUND))
    rest = _fma(builder, whole, _number(-LN2_HIGH), value)
    rest = _fma(builder, whole, _number(-LN2_LOW), rest)
    series = _number(_FACTORIALS[-1])
    for term in reversed(_FACTORIALS[:-1]):
        series = _fma(builder, series, rest, _number(term))
    power = builder.sub(builder.bitcast(moved, INTS), _whole(int(np.float64(ROUND).view(np.int64))))
    half = builder.ashr(power, _whole(1))
    for part in (half, builder.sub(power, half)):
        scale = builder.bitcast(builder.shl(builder.add(part, _whole(1023)), _whole(52)), FLOATS)
        series = builder.fmul(series, scale)
    return series


_FACTORIALS = [1.0 / float(np.prod(np.arange(1.0, k + 1))) for k in range(14)]
_ODD = [2.0 / k for k in range(3, 24, 2)]  # 2 atanh s = 2 s + s^3 (2/3 + s^2 2/5 + ...), |s| <= 0.1716


def emit_log(builder: Any, x: Any) -> Any:
    """Return log x = k ln 2 + log m, m = 1 + f close to 1, log m = 2 atanh s by its series, s = f / (2 + f)."""
    tiny = builder.fcmp_ordered("<", x, _number(float(np.finfo(np.float64).tiny)))
    value = builder.select(tiny, builder.fmul(x, _number(2.0**54)), x)
    bits = builder.bitcast(value, INTS)
    root_half = int(np.float64(np.sqrt(0.5)).view(np.int64))
    power = builder.ashr(builder.sub(bits, _whole(root_half)), _whole(52))
    mantissa = builder.bitcast(builder.sub(bits, builder.shl(power, _whole(52))), FLOATS)
    f = builder.fsub(mantissa, _number(1.0))
    s = builder.fdiv(f, builder.fadd(f, _number(2.0)))
    square = builder.fmul(s, s)
    series = _number(_ODD[-1])
    for term in reversed(_ODD[:-1]):
        series = _fma(builder, series, square, _number(term))
    k = builder.sitofp(power, FLOATS)
    k = builder.fsub(k, builder.select(tiny, _number(54.0), _number(0.0)))
    curved = builder.fmul(builder.fmul(s, square), series)  # log m - 2 s
    lost = _fma(builder, builder.fneg(s), f, builder.fsub(f, builder.fadd(s, s)))  # f - 2 s - s f = 0 but for rounding
    small = builder.fadd(curved, _fma(builder, k, _number(LN2_LOW), lost))
    answer = _fma(builder, k, _number(LN2_HIGH), builder.fadd(builder.fadd(s, s), small))
    answer = builder.select(builder.fcmp_ordered("==", x, _number(0.0)), _number(-np.inf), answer)
    answer = builder.select(builder.fcmp_ordered("==", x, _number(np.inf)), x, answer)
    return builder.select(builder.fcmp_ordered(">=", x, _number(0.0)), answer, _number(np.nan))
