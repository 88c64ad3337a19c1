"""How a checkpoint stores its weights: the `quantization_config` of a file, as one format a class of modules.

Every method names the modules that it leaves in 16 bits in its own way; here each class of modules (attention, MLP,
routed and shared experts) is asked by the names that its linear layers have in published checkpoints. Embeddings, norms
and routers are never quantized.

Sources: the quantization config classes of transformers 5.24 (utils/quantization_config.py), compressed-tensors 0.12
(quant_args.py, quant_scheme.py), and ModelOpt's hf_quant_config.json.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, nearest, quote
from .module_patterns import Names

if TYPE_CHECKING:
    from collections.abc import Mapping

METHODS = ("fp8", "fbgemm_fp8", "mxfp4", "awq", "gptq", "bitsandbytes", "compressed-tensors", "modelopt")
IGNORED = ("modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules", "llm_int8_skip_modules")
"""Keys that name modules which stay in 16 bits."""
READ = {
    *("quant_method", "config_groups", "format", "quant_algo", "kv_cache_quant_algo", "kv_cache_scheme", "bits"),
    *("weight_block_size", "group_size", "load_in_4bit", "load_in_8bit", "bnb_4bit_use_double_quant", "zero_point"),
    *("quantized_layers", "sym", "expert_dtype", *IGNORED),
}
HARMLESS = {
    *("activation_scheme", "fmt", "scale_fmt", "version", "desc_act", "damp_percent", "true_sequential", "backend"),
    *("checkpoint_format", "meta", "producer", "quantization_status", "global_compression_ratio", "sparsity_config"),
    *("transform_config", "bnb_4bit_compute_dtype", "bnb_4bit_quant_storage", "bnb_4bit_quant_type", "_load_in_4bit"),
    *("_load_in_8bit", "llm_int8_threshold", "llm_int8_enable_fp32_cpu_offload", "llm_int8_has_fp16_weight", "do_fuse"),
    *("activation_scale_ub", "dequantize", "static_groups", "model_name_or_path", "model_file_base_name", "dataset"),
    *("quantization_scheme", "exllama_config", "use_exllama", "lm_head", "is_marlin_format", "fuse_max_seq_len"),
    *(
        "quant_library",
        "packed_modules_mapping",
        "tokenizer",
        "block_name_to_quantize",
        "module_name_preceding_first_block",
    ),
}
"""Keys that change neither bytes nor products."""


@dataclass(frozen=True)
class Stored:
    """One format of weights, with the scales of a matrix.

    Attributes:
        name: of the format, as `--precision` has it.
        bits: of a weight.
        block: rows and columns of a matrix that share a scale, 0 for all of them.
        scale: bytes of the scale of a block, its zero point included.
        tensor: bytes of what a whole matrix has one of.
    """

    name: str
    bits: float
    block: tuple[int, int] = (0, 0)
    scale: float = 0.0
    tensor: int = 0

    @property
    def weight(self) -> float:
        """Bytes of a weight, with its part of a block's scale; scales of rows and of matrices are small."""
        rows, columns = self.block
        return self.bits / 8 + (self.scale / (rows * columns) if rows and columns else 0.0)

    def scale_bytes(self, rows: int, columns: int) -> int:
        """Bytes of the scales of a matrix, whose last blocks may be part of one."""
        down, across = self.block
        if not self.scale:
            return self.tensor
        blocks = -(-rows // (down or rows)) * -(-columns // (across or columns))
        return math.ceil(blocks * self.scale) + self.tensor

    def weight_bytes(self, rows: int, columns: int) -> int:
        """Bytes of the weights of a matrix without scales."""
        return math.ceil(rows * columns * self.bits / 8)


SIXTEEN = Stored("bf16", 16)
WHOLE_HEADS = ("compressed-tensors", "modelopt")
"""Methods that mean the head too when they say all linear layers; the others leave it in 16 bits."""


@dataclass(frozen=True)
class Quantization:
    """How a checkpoint stores its weights.

    Attributes:
        method: as the file calls it.
        groups: the formats, each with the modules that have it; None: all linear layers.
        ignored: modules that stay in 16 bits.
        where: the place of the file, for messages.
        cache: format of the cache that the file asks for; None: 16 bits.
        formats: of each class of modules of a model, that of most of its weights; see `stored_modules`.
        weights: of each class, how many there are.
    """

    method: str
    groups: tuple[tuple[Names | None, Stored], ...]
    ignored: Names
    where: str
    cache: str | None = None
    formats: tuple[tuple[str, Stored], ...] = ()
    weights: tuple[tuple[str, int], ...] = ()

    def of(self, names: tuple[str, ...]) -> Stored:
        """The format of a module, by the names that files have for it from `layers.` on."""
        if any(name in self.ignored for name in names):
            return SIXTEEN
        for targets, stored in self.groups:
            if any(name in targets for name in names) if targets else names != HEAD or self.method in WHOLE_HEADS:
                return stored
        return SIXTEEN

    def format_of(self, name: str) -> Stored:
        """The format of a class of modules."""
        return dict(self.formats).get(name, SIXTEEN)

    def stored(self, classes: tuple[str, ...]) -> list[Stored]:
        """The formats other than 16 bits of those classes that a model has, each once: that of most weights first."""
        weights = dict(self.weights)
        found: dict[Stored, int] = {}
        for name in classes:
            if (stored := self.format_of(name)) != SIXTEEN:
                found[stored] = found.get(stored, 0) + weights.get(name, 0)
        return sorted(found, key=lambda stored: -found[stored])

    def kept(self) -> tuple[str, ...]:
        """Classes whose weights stay in 16 bits."""
        return tuple(name for name, stored in self.formats if stored == SIXTEEN)


HEAD = ("lm_head",)


def read_quantization(data: Mapping[str, Any], where: str) -> Quantization | None:
    """The quantization of a config: at the top, or beside the language model; None where nothing is quantized.

    Raises:
        InputError: a method or a key that is not known, or a value that is not what it has to be.
    """
    inner = data.get("text_config")
    places = [(data, where)] + ([(inner, f"{where}: text_config")] if isinstance(inner, dict) else [])
    for holder, place in places:
        for key in ("quantization_config", "compression_config"):
            found = holder.get(key)
            if found is not None:
                if not isinstance(found, dict):
                    raise InputError(f"{place}: {key} is {quote(found)}, expected an object")
                # DeepSeek-V4 says beside it, or within, how the routed experts are stored.
                experts = {"expert_dtype": holder["expert_dtype"]} if "expert_dtype" in holder else {}
                return _read(experts | found, f"{place}: {key}")
    return None


def _read(data: dict[str, Any], where: str) -> Quantization | None:
    known = READ | HARMLESS
    for key, value in data.items():
        if key not in known and value is not None:
            name = key if key.isidentifier() else "NAME"
            raise InputError(
                f"{where}: what the key {quote(key)} means for the cost is not known, expected a known key"
                f"{nearest(key[:60], sorted(known))}; --ignore-key {name} reads the file without it"
            )
    method = data.get("quant_method", "modelopt" if "quant_algo" in data else None)
    if not isinstance(method, str) or method not in METHODS:
        near = nearest(method[:60], METHODS) if isinstance(method, str) else ""
        raise InputError(f"{where}: quant_method is {quote(method)}, expected {' or '.join(METHODS)}{near}")
    groups = _groups(method, data, where)
    if data.get("expert_dtype") is not None:
        if data["expert_dtype"] not in ("fp4", "fp8"):
            raise InputError(f"{where}: expert_dtype is {quote(data['expert_dtype'])}, expected fp4 or fp8")
        groups = [(Names.of(["mlp.experts"], where), MXFP4)] * (data["expert_dtype"] == "fp4") + groups
    ignored = Names.of([entry for key in IGNORED for entry in _texts(data, key, where)], where)
    return Quantization(method, tuple(groups), ignored, where, _cache(data, where))


def _texts(data: Mapping[str, Any], key: str, where: str) -> list[str]:
    value = data.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InputError(f"{where}: {key} is {quote(value)}, expected a list of names of modules")
    return value


def _number(data: Mapping[str, Any], key: str, where: str, choices: tuple[int, ...]) -> int:
    value = data.get(key)
    if type(value) is not int or value not in choices:
        raise InputError(f"{where}: {key} is {quote(value)}, expected {' or '.join(map(str, choices))}")
    return value


def _grouped(name: str, bits: int, group: Any, where: str, *, zeros: bool) -> Stored:
    """Integer weights with a 16-bit scale for each group of a row, and a zero point as wide as a weight."""
    if type(group) is not int or not (group == -1 or 8 <= group <= 2**20):
        raise InputError(f"{where}: group_size is {quote(group)}, expected -1 (a row) or a size of at least 8")
    return Stored(name, bits, (1, max(group, 0)), 2 + (bits / 8 if zeros else 0))


def _groups(method: str, data: dict[str, Any], where: str) -> list[tuple[Names | None, Stored]]:
    """The formats that a file speaks of, each with the modules that have it; None: all linear layers."""
    if method == "fp8":
        size = data.get("weight_block_size")
        inputs = 4 if data.get("activation_scheme") == "static" else 0
        if size is None:
            return [(None, Stored("fp8", 8, tensor=4 + inputs))]
        return [(None, _block(size, where, "weight_block_size"))]
    if method == "fbgemm_fp8":
        return [(None, Stored("fp8", 8, (1, 0), 4))]
    if method == "mxfp4":
        return [(None, MXFP4)]
    if method in ("awq", "gptq"):
        bits = _number(data, "bits", where, (4, 8))
        zeros = bool(data.get("zero_point", True)) if method == "awq" else data.get("sym") is False
        return [(None, _grouped(f"int{bits}-weight", bits, data.get("group_size", 128), where, zeros=zeros))]
    if method == "bitsandbytes":
        if data.get("load_in_4bit"):
            # One FP32 maximum for 64 weights; doubly quantized, one byte, and FP32 for 256 of these (Dettmers 2023).
            scale = 1 + 4 / 256 if data.get("bnb_4bit_use_double_quant") else 4.0
            return [(None, Stored("int4-weight", 4, (1, 64), scale))]
        if data.get("load_in_8bit"):
            return [(None, Stored("int8-weight", 8, (1, 0), 4))]
        raise InputError(f"{where}: neither load_in_4bit nor load_in_8bit is true, expected one of them")
    if method == "modelopt" and "config_groups" not in data:
        return _modelopt(data, where)
    return _compressed(data, where)


def _block(size: Any, where: str, key: str) -> Stored:
    """FP8 with one FP32 scale for a block of a matrix."""
    if not (isinstance(size, list) and len(size) == 2 and all(type(n) is int and 1 <= n <= 2**20 for n in size)):
        raise InputError(f"{where}: {key} is {quote(size)}, expected two sizes such as [128, 128], or null")
    return Stored("fp8-block", 8, (size[0], size[1]), 4)


FP8 = Stored("fp8", 8, tensor=8)
"""One FP32 scale of a matrix and one of its inputs."""
NVFP4 = Stored("fp4", 4, (1, 16), 1, tensor=8)
NVFP4_WEIGHT = Stored("nvfp4-weight", 4, (1, 16), 1, tensor=8)
MXFP4 = Stored("mxfp4-weight", 4, (1, 32), 1)
ALGORITHMS = {
    "FP8": FP8,
    "NVFP4": NVFP4,
    "W4A16_NVFP4": NVFP4_WEIGHT,
    "W4A16_AWQ": Stored("int4-weight", 4, (1, 128), 2),
    "W4A8_AWQ": Stored("int4-fp8", 4, (1, 128), 2),
    "FP8_PB_WO": Stored("fp8-block", 8, (128, 128), 4),
}
"""Of ModelOpt: FP8 a tensor, NVFP4 in blocks of 16."""


def _modelopt(data: dict[str, Any], where: str) -> list[tuple[Names | None, Stored]]:
    name = data.get("quant_algo")
    if name == "MIXED_PRECISION":
        layers = data.get("quantized_layers")
        if not isinstance(layers, dict) or not layers:
            raise InputError(f"{where}: quantized_layers is {quote(layers)}, expected an object of modules")
        found: dict[str, list[str]] = {}
        for module, entry in layers.items():
            algorithm = entry.get("quant_algo") if isinstance(entry, dict) else None
            found.setdefault(_algorithm(algorithm, where), []).append(module)
        return [(Names.of(modules, where), ALGORITHMS[algorithm]) for algorithm, modules in found.items()]
    return [(None, ALGORITHMS[_algorithm(name, where)])]


def _algorithm(name: Any, where: str) -> str:
    if not isinstance(name, str) or name not in ALGORITHMS:
        near = nearest(name[:60], ALGORITHMS) if isinstance(name, str) else ""
        raise InputError(f"{where}: quant_algo is {quote(name)}, expected {' or '.join(ALGORITHMS)}{near}")
    return name


def _compressed(data: dict[str, Any], where: str) -> list[tuple[Names | None, Stored]]:
    groups = data.get("config_groups")
    if not isinstance(groups, dict) or not groups:
        raise InputError(f"{where}: config_groups is {quote(groups)}, expected an object of groups")
    found = []
    for name, group in groups.items():
        place = f"{where}: config_groups: {name}"
        if not isinstance(group, dict):
            raise InputError(f"{place}: found {quote(group)}, expected an object")
        targets = _texts(group, "targets", place)
        if not targets:
            raise InputError(f"{place}: targets is {quote(group.get('targets'))}, expected names of modules")
        everywhere = any(target == "Linear" for target in targets)
        found.append((None if everywhere else Names.of(targets, place), _scheme(group, place)))
    return found


def _scheme(group: dict[str, Any], where: str) -> Stored:
    """The format of a group's weights and activations."""
    weights, inputs = group.get("weights"), group.get("input_activations")
    if not isinstance(weights, dict):
        raise InputError(f"{where}: weights is {quote(weights)}, expected an object with num_bits and type")
    bits, kind = _number(weights, "num_bits", where, (4, 8)), weights.get("type", "int")
    if kind not in ("int", "float"):
        raise InputError(f"{where}: weights: type is {quote(kind)}, expected int or float")
    act = _number(inputs, "num_bits", where, (4, 8, 16)) if isinstance(inputs, dict) else 16
    size, strategy = weights.get("group_size"), weights.get("strategy")
    row = {"block": (1, 0), "scale": 2.0} if strategy == "channel" else {"tensor": 4}
    match bits, kind, act:
        case 8, "float", 8:
            if strategy == "block":
                return _block(weights.get("block_structure") or [128, 128], where, "weights: block_structure")
            static = isinstance(inputs, dict) and inputs.get("dynamic") is False
            return (
                Stored("fp8", 8, (1, 0), 2.0) if strategy == "channel" else Stored("fp8", 8, tensor=8 if static else 4)
            )
        case 8, "int", 8:
            return Stored("int8", 8, **row)
        case 8, _, 16:
            return Stored("int8-weight", 8, **row)
        case 4, "float", 4:
            return NVFP4
        case 4, "float", 16:
            if size not in (16, 32):
                raise InputError(f"{where}: weights: group_size is {quote(size)}, expected 16 (NVFP4) or 32 (MXFP4)")
            return NVFP4_WEIGHT if size == 16 else MXFP4
        case 4, "int", 16 | 8:
            name = "int4-weight" if act == 16 else "int4-fp8"
            return _grouped(name, 4, -1 if size is None else size, where, zeros=weights.get("symmetric") is False)
    raise InputError(f"{where}: weights of {bits} bits ({kind}) with activations of {act} bits, expected a known pair")


def _cache(data: Mapping[str, Any], where: str) -> str | None:
    """The format of the cache that a file asks for."""
    name, scheme = data.get("kv_cache_quant_algo"), data.get("kv_cache_scheme")
    if name not in (None, "FP8"):
        raise InputError(f"{where}: kv_cache_quant_algo is {quote(name)}, expected FP8 or null")
    if scheme is not None and not (isinstance(scheme, dict) and scheme.get("num_bits") == 8):
        raise InputError(f"{where}: kv_cache_scheme is {quote(scheme)}, expected an object with num_bits 8, or null")
    if scheme is not None and scheme.get("type") == "int":
        return "int8"
    return "fp8" if name or scheme is not None else None
