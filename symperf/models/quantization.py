"""How a checkpoint stores its weights: the `quantization_config` of a file, as one format a class of modules.

Every method names the modules that it leaves in 16 bits in its own way; here each class of modules (attention, MLP,
routed and shared experts) is asked by the names that its linear layers have in published checkpoints. Embeddings, norms
and routers are never quantized.

Sources: the quantization config classes of transformers 5.24 (utils/quantization_config.py), compressed-tensors 0.12
(quant_args.py, quant_scheme.py), and ModelOpt's hf_quant_config.json.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, nearest, quote

if TYPE_CHECKING:
    from collections.abc import Mapping

CLASSES: dict[str, tuple[str, ...]] = {
    "attention": ("self_attn.q_proj", "self_attn.o_proj", "attn.q_proj", "linear_attn.out_proj", "mixer.q_proj"),
    "mlp": ("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", "feed_forward.w1", "mixer.up_proj"),
    "experts": ("mlp.experts.0.gate_proj", "mlp.experts.gate_up_proj", "mlp.experts", "mlp.experts.0.up_proj",
                "block_sparse_moe.experts.0.w1", "mixer.experts.0.up_proj"),
    "shared": ("mlp.shared_experts.gate_proj", "mlp.shared_expert.gate_proj", "mlp.shared_experts.up_proj",
               "shared_mlp.input_linear", "mixer.shared_experts.up_proj"),
}  # fmt: skip
"""Classes of modules, and names of their linear layers behind `model.layers.N.`."""
PREFIXES = (
    "model.layers.",
    "model.language_model.layers.",
    "language_model.model.layers.",
    "backbone.layers.",
    "layers.",
)
METHODS = ("fp8", "fbgemm_fp8", "mxfp4", "awq", "gptq", "bitsandbytes", "compressed-tensors", "modelopt")
IGNORED = ("modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules", "llm_int8_skip_modules")
"""Keys that name modules which stay in 16 bits."""
READ = {
    *("quant_method", "config_groups", "format", "quant_algo", "kv_cache_quant_algo", "kv_cache_scheme", "bits"),
    *("weight_block_size", "group_size", "load_in_4bit", "load_in_8bit", "bnb_4bit_use_double_quant", "zero_point"),
    *("quantized_layers", "sym", *IGNORED),
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
    """One format of weights.

    Attributes:
        name: of the format, as `--precision` has it.
        weight: bytes of a weight, scales included.
    """

    name: str
    weight: float


SIXTEEN = Stored("bf16", 2.0)


@dataclass(frozen=True)
class Quantization:
    """How a checkpoint stores its weights.

    Attributes:
        method: as the file calls it.
        formats: of each class of modules, in the order of `CLASSES`.
        cache: format of the cache that the file asks for; None: 16 bits.
    """

    method: str
    formats: tuple[tuple[str, Stored], ...]
    cache: str | None = None

    def stored(self, classes: tuple[str, ...]) -> list[Stored]:
        """The formats other than 16 bits of those classes that a model has, each once."""
        found = dict(self.formats)
        return list(dict.fromkeys(found[name] for name in classes if found[name] != SIXTEEN))

    def kept(self) -> tuple[str, ...]:
        """Classes whose weights stay in 16 bits."""
        return tuple(name for name, stored in self.formats if stored == SIXTEEN)


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
                return _read(found, f"{place}: {key}", _layers(holder, inner))
    return None


def _layers(*holders: Any) -> int:
    """How many layers a file speaks of, to tell a list of a few layers from one of all; 1 where it does not say."""
    keys = ("num_hidden_layers", "n_layer", "num_layers")
    found = [holder.get(key) for holder in holders if isinstance(holder, dict) for key in keys]
    return max((number for number in found if type(number) is int), default=1)


def _read(data: dict[str, Any], where: str, layers: int) -> Quantization | None:
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
    ignored = [_pattern(entry, where) for key in IGNORED for entry in _of_most_layers(_texts(data, key, where), layers)]
    formats = tuple((name, _of_class(names, groups, ignored)) for name, names in CLASSES.items())
    if all(stored == SIXTEEN for _, stored in formats):
        raise InputError(f"{where}: no class of modules is quantized, expected a format that some module has")
    return Quantization(method, formats, _cache(data, where))


def _of_class(
    names: tuple[str, ...], groups: list[tuple[list[re.Pattern[str]] | None, Stored]], ignored: list[re.Pattern[str]]
) -> Stored:
    """The format of a class: of the first group that one of its modules is in, unless it is left out."""
    modules = [f"{prefix}{layer}.{name}" for prefix in PREFIXES for layer in (0, 1, 7) for name in names]
    deep = [module for module in modules if ".0." not in module.removeprefix("model.layers.0.")]
    if any(_matches(pattern, module) for pattern in ignored for module in (deep or modules)):
        return SIXTEEN
    for targets, stored in groups:
        if targets is None or any(_matches(pattern, module) for pattern in targets for module in modules):
            return stored
    return SIXTEEN


def _matches(pattern: re.Pattern[str], module: str) -> bool:
    return pattern.match(module) is not None


UNSAFE = re.compile(r"[)\]][*+{]|\(\?|\\[0-9]|[*+]{2}")
"""What a pattern may not have: repeated groups, which could take forever to match, look-arounds, references."""


def _pattern(text: str, where: str) -> re.Pattern[str]:
    """A module's name, or the beginning of names, or a regular expression behind `re:`; layers' numbers do not tell."""
    if not text.startswith("re:"):
        parts = [r"[0-9]+" if part.isdecimal() else re.escape(part).replace(r"\*", ".*") for part in text.split(".")]
        return re.compile(rf"(.*\.)?{r'[.]'.join(parts)}([.].*)?$")
    body = text.removeprefix("re:")
    if len(body) > 200 or UNSAFE.search(body.replace(".*", "")):
        raise InputError(f"{where}: the pattern {quote(text)} is too long or repeats a group, expected a simple one")
    try:
        return re.compile(body)
    except re.error as error:
        raise InputError(f"{where}: the pattern {quote(text)} is not a regular expression: {error}") from None


def _texts(data: Mapping[str, Any], key: str, where: str) -> list[str]:
    value = data.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InputError(f"{where}: {key} is {quote(value)}, expected a list of names of modules")
    return value


def _of_most_layers(names: list[str], layers: int) -> list[str]:
    """Names of modules without the numbers of layers, but for those that only a few layers have.

    >>> _of_most_layers(["layers.0.mlp", "layers.0.attn", "layers.1.attn", "lm_head"], 3)
    ['layers.0.attn', 'lm_head']
    """
    found: dict[str, int] = {}
    for name in dict.fromkeys(names):
        same = name if name.startswith("re:") else re.sub(r"(?<=\.)[0-9]+(?=\.|$)", "0", name, count=1)
        found[same] = found.get(same, 0) + 1
    numbered = re.compile(r"\.[0-9]+(\.|$)")
    return [
        name
        for name, count in found.items()
        if name.startswith("re:") or not numbered.search(name) or 2 * count >= layers
    ]


def _number(data: Mapping[str, Any], key: str, where: str, choices: tuple[int, ...]) -> int:
    value = data.get(key)
    if type(value) is not int or value not in choices:
        raise InputError(f"{where}: {key} is {quote(value)}, expected {' or '.join(map(str, choices))}")
    return value


def _grouped(bits: int, group: Any, where: str, *, zeros: bool) -> float:
    """Bytes of an integer weight with a 16-bit scale for each group, and a zero point as wide as a weight."""
    if type(group) is not int or not (group == -1 or 8 <= group <= 2**20):
        raise InputError(f"{where}: group_size is {quote(group)}, expected -1 (a row) or a size of at least 8")
    return bits / 8 + (0.0 if group == -1 else (2.0 + (bits / 8 if zeros else 0.0)) / group)


def _groups(method: str, data: dict[str, Any], where: str) -> list[tuple[list[re.Pattern[str]] | None, Stored]]:
    """The formats that a file speaks of, each with the modules that have it; None: all linear layers."""
    if method == "fp8":
        size = data.get("weight_block_size")
        if size not in (None, [128, 128]):
            raise InputError(f"{where}: weight_block_size is {quote(size)}, expected [128, 128] or null")
        return [(None, Stored("fp8", 1.0) if size is None else Stored("fp8-block", 1 + 4 / 128**2))]
    if method == "fbgemm_fp8":
        return [(None, Stored("fp8", 1.0))]
    if method == "mxfp4":
        return [(None, Stored("mxfp4-weight", 0.53125))]
    if method in ("awq", "gptq"):
        bits = _number(data, "bits", where, (4, 8))
        zeros = bool(data.get("zero_point", method == "awq")) or (method == "gptq" and data.get("sym") is False)
        return [(None, Stored(f"int{bits}-weight", _grouped(bits, data.get("group_size", 128), where, zeros=zeros)))]
    if method == "bitsandbytes":
        if data.get("load_in_4bit"):
            scale = 0.5 / 64 + 4 / (64 * 256) * 2 if data.get("bnb_4bit_use_double_quant") else 4 / 64
            return [(None, Stored("int4-weight", 0.5 + scale))]
        if data.get("load_in_8bit"):
            return [(None, Stored("int8-weight", 1.0))]
        raise InputError(f"{where}: neither load_in_4bit nor load_in_8bit is true, expected one of them")
    if method == "modelopt" and "config_groups" not in data:
        return _modelopt(data, where)
    return _compressed(data, where)


ALGORITHMS = {
    "FP8": Stored("fp8", 1.0),
    "NVFP4": Stored("fp4", 0.5625),
    "W4A16_AWQ": Stored("int4-weight", 0.515625),
    "W4A8_AWQ": Stored("int4-fp8", 0.515625),
    "FP8_PB_WO": Stored("fp8-block", 1 + 4 / 128**2),
}
"""Of ModelOpt: FP8 a tensor, NVFP4 in blocks of 16."""


def _modelopt(data: dict[str, Any], where: str) -> list[tuple[list[re.Pattern[str]] | None, Stored]]:
    name = data.get("quant_algo")
    if name == "MIXED_PRECISION":
        layers = data.get("quantized_layers")
        if not isinstance(layers, dict) or not layers:
            raise InputError(f"{where}: quantized_layers is {quote(layers)}, expected an object of modules")
        found: dict[tuple[str, str], None] = {}
        for module, entry in layers.items():
            algorithm = entry.get("quant_algo") if isinstance(entry, dict) else None
            found[re.sub(r"(?<=\.)[0-9]+(?=\.)", "0", module), _algorithm(algorithm, where)] = None
        return [([_pattern(module, where)], ALGORITHMS[algorithm]) for module, algorithm in found]
    return [(None, ALGORITHMS[_algorithm(name, where)])]


def _algorithm(name: Any, where: str) -> str:
    if not isinstance(name, str) or name not in ALGORITHMS:
        near = nearest(name[:60], ALGORITHMS) if isinstance(name, str) else ""
        raise InputError(f"{where}: quant_algo is {quote(name)}, expected {' or '.join(ALGORITHMS)}{near}")
    return name


def _compressed(data: dict[str, Any], where: str) -> list[tuple[list[re.Pattern[str]] | None, Stored]]:
    groups = data.get("config_groups")
    if not isinstance(groups, dict) or not groups:
        raise InputError(f"{where}: config_groups is {quote(groups)}, expected an object of groups")
    found = []
    for name, group in groups.items():
        place = f"{where}: config_groups: {name}"
        if not isinstance(group, dict):
            raise InputError(f"{place}: found {quote(group)}, expected an object")
        targets = _of_most_layers(_texts(group, "targets", place), 1)
        if not targets:
            raise InputError(f"{place}: targets is {quote(group.get('targets'))}, expected names of modules")
        everywhere = any(target == "Linear" for target in targets)
        patterns = None if everywhere else [_pattern(target, place) for target in targets]
        found.append((patterns, _scheme(group, place)))
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
    size, block = weights.get("group_size"), weights.get("strategy") == "block"
    match bits, kind, act:
        case 8, "float", 8:
            return Stored("fp8-block", 1 + 4 / 128**2) if block else Stored("fp8", 1.0)
        case 8, "int", 8:
            return Stored("int8", 1.0)
        case 8, _, 16:
            return Stored("int8-weight", 1.0)
        case 4, "float", 4:
            return Stored("fp4", 0.5625)
        case 4, "float", 16:
            scale = {16: 1 / 16, 32: 1 / 32}.get(size if type(size) is int else 0)
            if scale is None:
                raise InputError(f"{where}: weights: group_size is {quote(size)}, expected 16 (NVFP4) or 32 (MXFP4)")
            return Stored("mxfp4-weight", 0.5 + scale)
        case 4, "int", 16 | 8:
            asymmetric = weights.get("symmetric") is False
            weight = _grouped(4, -1 if size is None else size, where, zeros=asymmetric)
            return Stored("int4-weight" if act == 16 else "int4-fp8", weight)
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
