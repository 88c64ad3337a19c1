"""The operations of generated Numba modules, each a machine instruction or two.

Numba's own operators do the same, but it takes five times as long to find out what they mean for two floats.
Subscripts are not checked and never count from the end.
"""

# mypy: disable-error-code="misc, no-untyped-def, no-untyped-call, import-untyped"

from __future__ import annotations

import math
import platform
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ..evaluate import HALF_ROOT, LOG2_SERIES


def _binary(build: Any) -> Any:
    def give_signature(_: Any, a: Any, b: Any) -> Any:
        del a, b

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            left, right = (
                context.cast(builder, v, t, types.float64) for v, t in zip(args, signature.args, strict=True)
            )
            return build(builder, left, right)

        return types.float64(types.float64, types.float64), code

    return give_signature


def _call(builder: Any, name: str, *args: Any) -> Any:
    double = ir.DoubleType()
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(double, [double] * len(args)), f"llvm.{name}.f64"
    )
    return builder.call(function, args)


def _pick(comparison: str) -> Any:
    return lambda builder, a, b: builder.select(builder.fcmp_ordered(comparison, a, b), a, b)


def _pick_undefined_or(builder: Any, comparison: str, a: Any, b: Any) -> Any:
    """The first operand where the comparison holds or it is undefined, as NumPy picks."""
    undefined = builder.fcmp_unordered("uno", a, a)
    return builder.select(builder.or_(builder.fcmp_ordered(comparison, a, b), undefined), a, b)


def _indicator(comparison: str) -> Any:
    return lambda builder, a, b: builder.uitofp(builder.fcmp_ordered(comparison, a, b), ir.DoubleType())


add = intrinsic(_binary(lambda builder, a, b: builder.fadd(a, b)))
subtract = intrinsic(_binary(lambda builder, a, b: builder.fsub(a, b)))
multiply = intrinsic(_binary(lambda builder, a, b: builder.fmul(a, b)))
divide = intrinsic(_binary(lambda builder, a, b: builder.fdiv(a, b)))
ceil_div = intrinsic(_binary(lambda builder, a, b: _call(builder, "ceil", builder.fdiv(a, b))))
maximum = intrinsic(_binary(_pick(">")))
minimum = intrinsic(_binary(_pick("<")))
largest = intrinsic(_binary(lambda builder, a, b: _pick_undefined_or(builder, ">=", a, b)))
smallest = intrinsic(_binary(lambda builder, a, b: _pick_undefined_or(builder, "<=", a, b)))
above = intrinsic(_binary(_indicator(">")))
at_least = intrinsic(_binary(_indicator(">=")))
power = intrinsic(_binary(lambda builder, a, b: _call(builder, "pow", a, b)))


def _quotient(builder: Any, a: Any, b: Any, reciprocal: Any) -> Any:
    """The quotient rounded as a division rounds it, by Markstein's correction of a product.

    Whole numbers below 2^53 that divide exactly give the exact quotient. What is not finite stays as it is.
    """
    first = builder.fmul(a, reciprocal)
    rest = _call(builder, "fma", builder.fsub(ir.Constant(ir.DoubleType(), -0.0), first), b, a)
    second = _call(builder, "fma", rest, reciprocal, first)
    return builder.select(builder.fcmp_ordered("==", second, second), second, first)


def _ternary(build: Any) -> Any:
    def give_signature(_: Any, a: Any, b: Any, reciprocal: Any) -> Any:
        del a, b, reciprocal

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            values = [context.cast(builder, v, t, types.float64) for v, t in zip(args, signature.args, strict=True)]
            return build(builder, *values)

        return types.float64(types.float64, types.float64, types.float64), code

    return give_signature


def _divide_given(builder: Any, a: Any, b: Any, reciprocal: Any) -> Any:
    return _quotient(builder, a, b, reciprocal) if FUSED else builder.fdiv(a, b)


FUSED = platform.machine() in ("arm64", "aarch64") or bool(binding.get_host_cpu_features().get("fma"))
"""Whether the processor multiplies and adds in one instruction, rounding once."""
divide_by = intrinsic(_ternary(_divide_given))
ceil_div_by = intrinsic(_ternary(lambda builder, *args: _call(builder, "ceil", _divide_given(builder, *args))))


def _unary(name: str) -> Any:
    def give_signature(_: Any, a: Any) -> Any:
        del a

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            del context, signature
            return _call(builder, name, *args)

        return types.float64(types.float64), code

    return give_signature


root = intrinsic(_unary("sqrt"))


@intrinsic
def log2(_, a):
    """The steps of `evaluate.log2`, which a loop can take for several numbers at once: the library's cannot."""
    del a

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        del context, signature
        double, whole = ir.DoubleType(), ir.IntType(64)
        (value,) = args

        def number(constant: float) -> Any:
            return ir.Constant(double, constant)

        bits = builder.bitcast(value, whole)
        # The exponent's bits, read as the last ones of a float just above 2^52.
        raised = builder.or_(builder.lshr(bits, ir.Constant(whole, 52)), ir.Constant(whole, 0x433 << 52))
        exponent = builder.fsub(builder.bitcast(raised, double), number(2.0**52 + 1022))
        kept = builder.and_(bits, ir.Constant(whole, (1 << 52) - 1))
        mantissa = builder.bitcast(builder.or_(kept, ir.Constant(whole, 0x3FE << 52)), double)
        low = builder.fcmp_ordered("<", mantissa, number(HALF_ROOT))
        mantissa = builder.select(low, builder.fmul(mantissa, number(2.0)), mantissa)
        exponent = builder.select(low, builder.fsub(exponent, number(1.0)), exponent)
        ratio = builder.fdiv(builder.fsub(mantissa, number(1.0)), builder.fadd(mantissa, number(1.0)))
        square = builder.fmul(ratio, ratio)
        series = number(LOG2_SERIES[0])
        for term in LOG2_SERIES[1:]:
            series = builder.fadd(builder.fmul(series, square), number(term))
        result = builder.fadd(builder.fmul(ratio, series), exponent)
        result = builder.select(builder.fcmp_ordered("==", value, number(math.inf)), value, result)
        result = builder.select(builder.fcmp_ordered("==", value, number(0.0)), number(-math.inf), result)
        return builder.select(builder.fcmp_ordered(">=", value, number(0.0)), result, number(math.nan))

    return types.float64(types.float64), code


def _element(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    data = context.make_array(signature.args[0])(context, builder, args[0]).data
    position = builder.add(args[1], args[2], flags=["nsw", "nuw"])
    return builder.gep(data, [position], inbounds=True)


@intrinsic
def load(_, array, offset, j):
    """`array[offset + j]` of a contiguous array of floats; both are at least 0."""
    del offset, j

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_element(context, builder, signature, args))

    return types.float64(array, types.intp, types.intp), code


@intrinsic
def store(_, array, offset, j, value):
    """`array[offset + j] = value` of a contiguous array of floats; both are at least 0."""
    del offset, j, value

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[3], _element(context, builder, signature, args))
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, types.float64), code


@intrinsic
def prefer_wide_vectors(_):
    """Vectors of 512 bits, where the processor has them: LLVM takes 256 by default, for the clock of older ones."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        del signature, args
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')  # llvmlite refuses names it does not know
        return context.get_dummy_value()

    return types.void(), code
