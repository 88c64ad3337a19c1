"""Counts what training kernels of recurrent mixers save for the backward pass, as in tests/golden2/activation.csv.

Needs no GPU: kernels in Triton are launched as nothing, since what an autograd function saves has its size before any
kernel runs. Tensors are counted by `saved_tensors_hooks`, each storage once, parameters apart; the difference of two
lengths leaves out copies of weights. Norms that transformers computes in several operations are replaced by one that
saves its input and its statistics, and short convolutions by one that saves its input, as causal_conv1d does.

    pip install torch triton einops transformers flash-linear-attention mlstm_kernels
    # mamba-ssm: its source beside this file's folder on PYTHONPATH; no build is needed
    python benchmarks/saved_activations.py
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import sys
import types
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from triton.runtime.autotuner import Autotuner, Heuristics
from triton.runtime.jit import JITFunction

if TYPE_CHECKING:
    from collections.abc import Callable

LENGTHS = (256, 512)


def launch_nothing() -> None:
    """Replace every launch of a Triton kernel, and modules that are compiled for a GPU alone."""
    for kind in (JITFunction, Autotuner, Heuristics):
        kind.run = lambda *_args, **_kwargs: None
    torch.cuda.device = lambda *_args, **_kwargs: contextlib.nullcontext()
    made: dict[str, dict[str, Any]] = {
        "causal_conv1d": {"causal_conv1d_fn": None, "causal_conv1d_update": None},
        "causal_conv1d.cpp_functions": {
            "causal_conv1d_fwd_function": lambda x, *_: torch.empty_like(x),
            "causal_conv1d_bwd_function": None,
            "causal_conv1d_update_function": None,
        },
        "selective_scan_cuda": {},
    }
    for name, contents in made.items():
        module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        vars(module).update(contents)
        sys.modules[name] = module
    if (spec := importlib.util.find_spec("mamba_ssm")) is not None:
        package = types.ModuleType("mamba_ssm")
        package.__spec__, package.__path__ = spec, list(spec.submodule_search_locations or ())
        sys.modules["mamba_ssm"] = package


class Saving(torch.autograd.Function):
    """An operation of a tensor and a weight that saves both, and so many FP32 numbers of each row."""

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, statistics: int) -> Any:
        """Save both, and return nothing in particular."""
        numbers = [x.new_empty(x.shape[:-1], dtype=torch.float32) for _ in range(statistics)]
        ctx.save_for_backward(x, weight, *numbers)
        return torch.empty_like(x)


class FusedNorm(nn.Module):
    """A norm that saves its input and its statistics."""

    def __init__(self, weight: Any, statistics: int, flat: bool = False) -> None:
        super().__init__()
        self.weight, self.statistics, self.flat = weight, statistics, flat

    def forward(self, x: Any) -> Any:
        """The norm of all rows."""
        result = Saving.apply(x, self.weight, self.statistics)
        return result.flatten(-2) if self.flat else result


def with_fused_norms(module: nn.Module) -> nn.Module:
    """A module whose RMSNorms are fused."""
    for name, child in list(module.named_children()):
        if "RMSNorm" in type(child).__name__:
            setattr(module, name, FusedNorm(child.weight, 1))
        else:
            with_fused_norms(child)
    return module


def saved_bytes(module: nn.Module, call: Callable[[Any], Any], x: Any, apart: tuple[Any, ...] = ()) -> int:
    """Bytes of the storages that a call saves, without parameters and what is `apart`."""
    own = {tensor.untyped_storage().data_ptr() for tensor in (*module.parameters(), *module.buffers(), *apart)}
    found: dict[int, int] = {}
    alive = []

    def pack(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            alive.append(tensor)  # so that no other storage takes its place
            found[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        call(x)
    return sum(found.values())


def tell(name: str, module: nn.Module, hidden: int, make: Callable[[int], tuple[Any, tuple[Any, ...]]]) -> None:
    """Print bytes a token of a module; `make` gives the call for a length, and tensors that are not its own."""
    found = []
    for length in LENGTHS:
        x = torch.randn(1, length, hidden, dtype=torch.bfloat16, requires_grad=True)
        call, apart = make(length)
        found.append(saved_bytes(module, call, x, apart))
    print(f"{name}: {(found[1] - found[0]) / (LENGTHS[1] - LENGTHS[0]):g} bytes a token")


def tell_delta_rules() -> None:
    """Gated delta rule of Qwen3-Next, Kimi Delta Attention, RWKV-7."""
    from fla.layers import GatedDeltaNet, KimiDeltaAttention
    from fla.models.rwkv7.configuration_rwkv7 import RWKV7Config
    from fla.models.rwkv7.modeling_rwkv7 import RWKV7Block

    one = GatedDeltaNet(hidden_size=2048, head_dim=128, num_heads=16, num_v_heads=32, expand_v=1).bfloat16()
    tell("GatedDeltaNet", one, 2048, lambda _: (one, ()))
    two = KimiDeltaAttention(hidden_size=2304, head_dim=128, num_heads=32).bfloat16()
    tell("KimiDeltaAttention", two, 2304, lambda _: (two, ()))
    ranks = {"decay_low_rank_dim": 64, "gate_low_rank_dim": 128, "a_low_rank_dim": 64, "v_low_rank_dim": 32}
    config = RWKV7Config(hidden_size=1024, num_hidden_layers=24, head_dim=64, intermediate_size=4096, **ranks)
    first, later = RWKV7Block(config, 0), RWKV7Block(config, 1)
    del first.pre_norm
    first.bfloat16()
    later.bfloat16()
    tell("RWKV7Block, the first, without its first norm", first, 1024, lambda _: (first, ()))

    def with_values(length: int) -> tuple[Any, tuple[Any, ...]]:
        values = torch.randn(1, length, 1024, dtype=torch.bfloat16)
        return (lambda x: later(x, v_first=values)), (values,)

    tell("RWKV7Block", later, 1024, with_values)


class Mamba2(nn.Module):
    """Nemotron-H 8B: 128 heads of 64 features, 8 groups of 128 states."""

    def __init__(self) -> None:
        super().__init__()
        inner, states, heads = 8192, 2 * 8 * 128, 128
        self.inputs = nn.Linear(4096, 2 * inner + states + heads, bias=False)
        self.output = nn.Linear(inner, 4096, bias=False)
        self.convolution, self.bias = (
            nn.Parameter(torch.ones(inner + states, 4)),
            nn.Parameter(torch.ones(inner + states)),
        )
        self.step, self.decay, self.skip = (nn.Parameter(torch.ones(heads)) for _ in range(3))
        self.weight = nn.Parameter(torch.ones(inner))

    def forward(self, x: Any) -> Any:
        """Projection in, convolution, scan and norm as one function, projection out."""
        from mamba_ssm.ops.triton.ssd_combined import mamba_split_conv1d_scan_combined as scan

        more = {"rmsnorm_weight": self.weight, "headdim": 64, "ngroups": 8, "norm_before_gate": False}
        decay = -torch.exp(self.decay.float())
        projected = self.inputs(x)
        scanned = scan(projected, self.convolution, self.bias, self.step, decay, self.skip, 128, **more)
        return self.output(scanned)


def tell_transformers() -> None:
    """Layers of transformers: a matrix memory, a short convolution, attention with norms of queries and keys."""
    from mlstm_kernels.torch.chunkwise.triton_xl_chunk import mlstm_chunkwise__xl_chunk
    from transformers import Lfm2Config, Qwen3NextConfig, xLSTMConfig
    from transformers.models.lfm2 import modeling_lfm2
    from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextAttention
    from transformers.models.xlstm.modeling_xlstm import xLSTMLayer

    class Backend(nn.Module):
        def forward(self, query: Any, key: Any, value: Any, igate: Any, fgate: Any, **_: Any) -> Any:
            return mlstm_chunkwise__xl_chunk(q=query, k=key, v=value, i=igate, f=fgate, chunk_size=64), None

    matrix = xLSTMLayer(xLSTMConfig()).bfloat16()
    matrix.mlstm_backend = Backend()
    matrix.multihead_norm = FusedNorm(matrix.multihead_norm.weight, 2, flat=True)
    tell("xLSTMLayer", matrix, 4096, lambda _: (matrix, ()))
    modeling_lfm2.causal_conv1d_fn = lambda x, weight, _bias=None, **_: Saving.apply(x, weight, 0)
    sizes = {"hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 1}
    config = Lfm2Config(**sizes, layer_types=["conv"])
    short = modeling_lfm2.Lfm2ShortConv(config, 0).bfloat16()
    tell("Lfm2ShortConv", short, 2048, lambda _: (short, ()))
    asked = ((modeling_lfm2.Lfm2Attention, config), (Qwen3NextAttention, Qwen3NextConfig()))
    for kind, settings in asked:
        settings._attn_implementation = "sdpa"
        attention = with_fused_norms(kind(settings, 0).bfloat16())

        def positions(length: int, attention: Any = attention) -> tuple[Any, tuple[Any, ...]]:
            angles = tuple(torch.randn(1, length, 64, dtype=torch.bfloat16) for _ in range(2))
            return (lambda x: attention(x, position_embeddings=angles, attention_mask=None)), angles

        tell(kind.__name__, attention, 2048, positions)


if __name__ == "__main__":
    launch_nothing()
    tell_delta_rules()
    mamba = Mamba2().bfloat16()
    tell("Mamba-2", mamba, 4096, lambda _: (mamba, ()))
    tell_transformers()
