"""The columns of a file of measurements: what `symperf measure` writes and `symperf calibrate` reads."""

from __future__ import annotations

COLUMNS = {
    "kind": "gemm, copy, attention, elementwise, launch, step, collective or power",
    "name": "which kernel of that kind",
    "dtype": "format of the data: bf16, fp16, fp8 (factors; the result is bf16), fp32",
    "m": "of gemm: rows of the left factor, tokens",
    "n": "of gemm: columns of the right factor, outputs",
    "k": "of gemm: the inner size, inputs",
    "batch": "of attention and step: sequences",
    "sequence": "of attention and step: tokens of each sequence that are new",
    "context": "of attention: tokens that each query may see, with those before it",
    "heads": "of attention and step: query heads",
    "kv_heads": "of attention and step: key-value heads",
    "head_dim": "of attention and step: width of a head",
    "hidden": "of step: width of the residual stream",
    "ffn": "of step: inner width of the MLP",
    "layers": "of step: blocks in a row, all of them in `seconds`",
    "vocabulary": "of step: tokens of the vocabulary; empty: blocks only",
    "elements": "of elementwise: elements of the tensor (of adam: parameters)",
    "flops": "of power: FLOPs of one call",
    "bytes": "bytes that must be read and written, together; of collective: the whole message, as nccl-tests counts it",
    "ranks": "of collective: devices",
    "seconds": "time of one call",
    "kernels": "kernels in one call, where there is more than one",
    "repeats": "calls that the time is taken over",
    "spread": "(longest - shortest) / median of the groups of calls that were timed",
    "mode": "stream: calls wait in a full queue; graph: in a CUDA graph; eager: as the host launches; host: its "
    "thread; sustained: back to back for seconds, clock and power of the last",
    "clock_mhz": "clock of the multiprocessors meanwhile, by nvidia-smi",
    "power_w": "power of the device meanwhile, by nvidia-smi",
    "device": "the device's own name",
    "torch": "version of PyTorch",
    "note": "what else is to be known of the row",
}
"""Column: its meaning. Times are seconds, sizes bytes (not GB), counts whole; a column without meaning is empty."""
KINDS = ("launch", "copy", "elementwise", "power", "attention", "step", "collective", "gemm")
"""The kinds of rows, in the order they are measured."""
