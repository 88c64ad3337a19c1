"""Machine code that runs any program over chunks of points, stored ready to load: no program is compiled for it.

It goes down a list of instructions, each a row to write and rows to read, `CHUNK` points at a time, so that a program
of thousands of instructions is run over few points without a call from Python for each. It is LLVM's own language,
which takes a twentieth of a second to make and some milliseconds to load; neither needs Numba. Rounding is NumPy's.
"""

# mypy: disable-error-code="import-untyped"

from __future__ import annotations

import base64
import struct
import threading
from typing import TYPE_CHECKING, Any

from .evaluate import HALF_ROOT, LOG2_SERIES
from .store import digest

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from .store import Store

    Array = np.ndarray[Any, Any]

CHUNK = 64
"""Points computed together, so that their rows stay in a cache."""
WIDE = 8
"""Points of one instruction of LLVM, which a processor without such vectors takes in parts."""
FIELDS = 5
"""Numbers of an instruction: what it does, the row that it writes, two that it reads, and the result that it is."""
VECTOR = f"<{WIDE} x double>"
BITS = f"<{WIDE} x i64>"


def _number(value: float) -> str:
    """A float in LLVM's language, to the bit."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def _splat(value: float) -> str:
    return f"<{', '.join([f'double {_number(value)}'] * WIDE)}>"


def _splat_bits(value: int) -> str:
    return f"<{', '.join([f'i64 {value}'] * WIDE)}>"


def _indicator(comparison: str, right: str) -> tuple[str, ...]:
    return (
        f"%c = fcmp {comparison} {VECTOR} %a, {right}",
        f"%r = select <{WIDE} x i1> %c, {VECTOR} {_splat(1.0)}, {VECTOR} zeroinitializer",
    )


def _pick(comparison: str) -> tuple[str, ...]:
    """The second of equals, and an undefined operand where there is one, as NumPy picks in vectors."""
    return (
        f"%c = fcmp {comparison} {VECTOR} %a, %b",
        f"%p = select <{WIDE} x i1> %c, {VECTOR} %a, {VECTOR} %b",
        f"%u = fcmp uno {VECTOR} %a, %a",
        f"%r = select <{WIDE} x i1> %u, {VECTOR} %a, {VECTOR} %p",
    )


def _log2() -> tuple[str, ...]:
    """The steps of `evaluate.log2`; of what is not positive and finite, what NumPy says."""
    mask = f"<{WIDE} x i1>"
    lines = [
        f"%tiny = fcmp olt {VECTOR} %a, {_splat(2.0**-1022)}",
        f"%large = fmul {VECTOR} %a, {_splat(2.0**54)}",
        f"%x = select {mask} %tiny, {VECTOR} %large, {VECTOR} %a",
        f"%less = select {mask} %tiny, {VECTOR} {_splat(-54.0)}, {VECTOR} zeroinitializer",
        f"%bits = bitcast {VECTOR} %x to {BITS}",
        f"%shifted = lshr {BITS} %bits, {_splat_bits(52)}",
        f"%whole = sub {BITS} %shifted, {_splat_bits(1022)}",
        f"%e0 = sitofp {BITS} %whole to {VECTOR}",
        f"%e1 = fadd {VECTOR} %e0, %less",
        f"%kept = and {BITS} %bits, {_splat_bits((1 << 52) - 1)}",
        f"%based = or {BITS} %kept, {_splat_bits(1022 << 52)}",
        f"%m0 = bitcast {BITS} %based to {VECTOR}",
        f"%low = fcmp olt {VECTOR} %m0, {_splat(HALF_ROOT)}",
        f"%m1 = fmul {VECTOR} %m0, {_splat(2.0)}",
        f"%m = select {mask} %low, {VECTOR} %m1, {VECTOR} %m0",
        f"%e2 = fsub {VECTOR} %e1, {_splat(1.0)}",
        f"%e = select {mask} %low, {VECTOR} %e2, {VECTOR} %e1",
        f"%above = fsub {VECTOR} %m, {_splat(1.0)}",
        f"%below = fadd {VECTOR} %m, {_splat(1.0)}",
        f"%q = fdiv {VECTOR} %above, %below",
        f"%q2 = fmul {VECTOR} %q, %q",
    ]
    series = _splat(LOG2_SERIES[0])
    for k, term in enumerate(LOG2_SERIES[1:]):
        lines += [
            f"%t{k} = fmul {VECTOR} {series}, %q2",
            f"%s{k} = fadd {VECTOR} %t{k}, {_splat(term)}",
        ]
        series = f"%s{k}"
    return (
        *lines,
        f"%product = fmul {VECTOR} %q, {series}",
        f"%sum = fadd {VECTOR} %product, %e",
        f"%endless = fcmp oeq {VECTOR} %a, {_splat(float('inf'))}",
        f"%f0 = select {mask} %endless, {VECTOR} %a, {VECTOR} %sum",
        f"%nothing = fcmp oeq {VECTOR} %a, zeroinitializer",
        f"%f1 = select {mask} %nothing, {VECTOR} {_splat(float('-inf'))}, {VECTOR} %f0",
        f"%defined = fcmp oge {VECTOR} %a, zeroinitializer",
        f"%r = select {mask} %defined, {VECTOR} %f1, {VECTOR} {_splat(float('nan'))}",
    )


OPERATIONS: dict[str, tuple[str, ...]] = {
    "add": (f"%r = fadd {VECTOR} %a, %b",),
    "subtract": (f"%r = fsub {VECTOR} %a, %b",),
    "multiply": (f"%r = fmul {VECTOR} %a, %b",),
    "divide": (f"%r = fdiv {VECTOR} %a, %b",),
    "max": _pick("ogt"),
    "min": _pick("olt"),
    "ceil_div": (
        f"%quotient = fdiv {VECTOR} %a, %b",
        f"%r = call {VECTOR} @llvm.ceil.v{WIDE}f64({VECTOR} %quotient)",
    ),
    "above_one": _indicator("ogt", _splat(1.0)),
    "at_least": _indicator("oge", "%b"),
    "stop_gradient": (f"%r = select i1 true, {VECTOR} %a, {VECTOR} %a",),
    "sqrt": (f"%r = call {VECTOR} @llvm.sqrt.v{WIDE}f64({VECTOR} %a)",),
    "log2": _log2(),
}
"""What each operation is in LLVM's language: `%r` of `%a` and `%b`. A general power is NumPy's own, and is not here."""
NUMBERS = {name: k for k, name in enumerate(OPERATIONS)}
COLUMN = len(OPERATIONS)
"""The number of what copies a column: its first operand is which."""


def machine_text() -> str:
    """The module: `mark`, which finds what is needed, and `run`."""
    cases = [*OPERATIONS, "column"]
    table = "\n".join(f"    i32 {k}, label %{name}" for k, name in enumerate(cases))
    return _HEADER + _RUN.format(table=table) + "\n".join(_case(name) for name in cases) + _RESULT


def _case(name: str) -> str:
    """The loop of one operation over a chunk."""
    read, steps = ["%a", "%b"], OPERATIONS.get(name, ("%r = freeze " + VECTOR + " %a",))
    if name == "column":
        read = ["%a"]
    lines = [f"{name}:"]
    if name == "column":
        lines += [
            f"  %{name}.at = mul i64 %first, %count",
            f"  %{name}.from = add i64 %{name}.at, %start",
            f"  %{name}.a = getelementptr double, ptr %columns, i64 %{name}.from",
        ]
    pointers = {"%a": f"%{name}.a" if name == "column" else "%pa", "%b": "%pb"}
    used = [operand for operand in read if any(operand in step for step in steps)]
    lines += [
        f"  br label %{name}.loop",
        f"{name}.loop:",
        f"  %{name}.j = phi i64 [ 0, %{name} ], [ %{name}.next, %{name}.loop ]",
    ]
    for operand in used:
        short = operand[1:]
        lines += [
            f"  %{name}.q{short} = getelementptr double, ptr {pointers[operand]}, i64 %{name}.j",
            f"  %{name}.v{short} = load {VECTOR}, ptr %{name}.q{short}, align 8",
        ]
    lines += [f"  {_rename(step, name)}" for step in steps]
    lines += [
        f"  %{name}.qr = getelementptr double, ptr %pr, i64 %{name}.j",
        f"  store {VECTOR} %{name}.vr, ptr %{name}.qr, align 8",
        f"  %{name}.next = add i64 %{name}.j, {WIDE}",
        f"  %{name}.more = icmp ult i64 %{name}.next, {CHUNK}",
        f"  br i1 %{name}.more, label %{name}.loop, label %done",
    ]
    return "\n".join(lines)


def _rename(step: str, name: str) -> str:
    """A step with names of its own."""
    parts = step.split("%")
    return parts[0] + "".join(f"%{name}.v{part}" for part in parts[1:])


_HEADER = f"""\
declare {VECTOR} @llvm.ceil.v{WIDE}f64({VECTOR})
declare {VECTOR} @llvm.sqrt.v{WIDE}f64({VECTOR})

define void @mark(ptr %left, ptr %right, ptr %needed, i64 %size) {{
entry:
  br label %loop
loop:
  %p1 = phi i64 [ %size, %entry ], [ %p, %next ]
  %p = sub i64 %p1, 1
  %over = icmp slt i64 %p, 0
  br i1 %over, label %end, label %look
look:
  %here = getelementptr i8, ptr %needed, i64 %p
  %is = load i8, ptr %here
  %yes = icmp ne i8 %is, 0
  br i1 %yes, label %set, label %next
set:
  %pa = getelementptr i32, ptr %left, i64 %p
  %a = load i32, ptr %pa
  %qa = getelementptr i8, ptr %needed, i32 %a
  store i8 1, ptr %qa
  %pb = getelementptr i32, ptr %right, i64 %p
  %b = load i32, ptr %pb
  %qb = getelementptr i8, ptr %needed, i32 %b
  store i8 1, ptr %qb
  br label %next
next:
  br label %loop
end:
  ret void
}}
"""
_RUN = f"""
define void @run(ptr %code, i64 %size, ptr %rows, ptr %columns, ptr %results, i64 %count) {{{{
entry:
  br label %chunk
chunk:
  %start = phi i64 [ 0, %entry ], [ %after, %chunk.end ]
  %inside = icmp ult i64 %start, %count
  br i1 %inside, label %instruction, label %end
instruction:
  %p = phi i64 [ 0, %chunk ], [ %p.next, %instruction.end ]
  %there = icmp ult i64 %p, %size
  br i1 %there, label %decode, label %chunk.end
decode:
  %offset = mul i64 %p, {FIELDS}
  %pc = getelementptr i32, ptr %code, i64 %offset
  %operation = load i32, ptr %pc
  %pc1 = getelementptr i32, ptr %pc, i64 1
  %to32 = load i32, ptr %pc1
  %to = sext i32 %to32 to i64
  %pc2 = getelementptr i32, ptr %pc, i64 2
  %first32 = load i32, ptr %pc2
  %first = sext i32 %first32 to i64
  %pc3 = getelementptr i32, ptr %pc, i64 3
  %second32 = load i32, ptr %pc3
  %second = sext i32 %second32 to i64
  %at.r = mul i64 %to, {CHUNK}
  %pr = getelementptr double, ptr %rows, i64 %at.r
  %at.a = mul i64 %first, {CHUNK}
  %pa = getelementptr double, ptr %rows, i64 %at.a
  %at.b = mul i64 %second, {CHUNK}
  %pb = getelementptr double, ptr %rows, i64 %at.b
  switch i32 %operation, label %done [
{{table}}
  ]
"""
_RESULT = f"""
done:
  %pc4 = getelementptr i32, ptr %pc, i64 4
  %result32 = load i32, ptr %pc4
  %result = sext i32 %result32 to i64
  %is.result = icmp sge i64 %result, 0
  br i1 %is.result, label %keep, label %instruction.end
keep:
  %keep.row = mul i64 %result, %count
  %keep.at = add i64 %keep.row, %start
  %keep.to = getelementptr double, ptr %results, i64 %keep.at
  br label %keep.loop
keep.loop:
  %k = phi i64 [ 0, %keep ], [ %k.next, %keep.loop ]
  %k.from = getelementptr double, ptr %pr, i64 %k
  %k.value = load {VECTOR}, ptr %k.from, align 8
  %k.to = getelementptr double, ptr %keep.to, i64 %k
  store {VECTOR} %k.value, ptr %k.to, align 8
  %k.next = add i64 %k, {WIDE}
  %k.more = icmp ult i64 %k.next, {CHUNK}
  br i1 %k.more, label %keep.loop, label %instruction.end
instruction.end:
  %p.next = add i64 %p, 1
  br label %instruction
chunk.end:
  %after = add i64 %start, {CHUNK}
  br label %chunk
end:
  ret void
}}
"""


class RowMachine:
    """The functions of the machine code.

    Args:
        data: an object file.
    """

    def __init__(self, data: bytes) -> None:
        import ctypes

        from llvmlite import binding

        self._engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _target().create_target_machine())
        self._engine.add_object_file(binding.ObjectFileRef.from_data(data))
        self._engine.finalize_object()
        pointer, whole = ctypes.c_void_p, ctypes.c_int64

        def function(name: str, *kinds: Any) -> Callable[..., None]:
            return ctypes.CFUNCTYPE(None, *kinds)(self._engine.get_function_address(name))

        self._mark = function("mark", pointer, pointer, pointer, whole)
        self._run = function("run", pointer, whole, pointer, pointer, pointer, whole)

    def mark(self, left: Array, right: Array, needed: Array) -> None:
        """Mark in `needed` (uint8) the operands of all that is marked, given the two operands of each (int32)."""
        self._mark(left.ctypes.data, right.ctypes.data, needed.ctypes.data, len(needed))

    def run(self, code: Array, rows: Array, columns: Array, results: Array) -> None:
        """Run instructions.

        Args:
            code: int32, `FIELDS` numbers an instruction; a result of -1 is none.
            rows: float64, of `CHUNK` points; those that no instruction writes hold what is the same at every point.
            columns: float64, of as many points as results, a multiple of `CHUNK`.
            results: float64, written.
        """
        self._run(
            code.ctypes.data,
            len(code),
            rows.ctypes.data,
            columns.ctypes.data,
            results.ctypes.data,
            results.shape[1],
        )


def _target() -> Any:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_default_triple()


_made: list[RowMachine] = []
"""That of this process, once there is one."""
_lock = threading.Lock()


def row_machine(store: Store) -> RowMachine:
    """The machine code, from this process, from a store, or made now and kept there."""
    with _lock:
        if not _made:
            _made.append(RowMachine(_object_code(store)))
        return _made[0]


def _object_code(store: Store) -> bytes:
    """For this processor."""
    from llvmlite import binding

    target, text = _target(), machine_text()
    processor, features = binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
    key = digest("row machine", text, target.triple, processor, features, ".".join(map(str, binding.llvm_version_info)))
    kept = store.load(key)
    if kept is not None and isinstance(kept.get("object"), str):
        return base64.b64decode(kept["object"])
    module = binding.parse_assembly(text)
    module.verify()
    data: bytes = target.create_target_machine(cpu=processor, features=features, opt=2).emit_object(module)
    store.save(key, {"object": base64.b64encode(data).decode()})
    return data
