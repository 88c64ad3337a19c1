"""A model as transformers builds it from its file, on PyTorch's meta device: parameters with shapes and no memory.

Code that a checkpoint brings is never run: a kind of model that transformers does not know is refused.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, quote
from ..common.extras import import_extra
from .modules import AUDIO, VISION, Modules

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..models.model import Model

EXTRA, WHAT = "hf", "--check"
LANGUAGE = (
    ("IMAGE_TEXT_TO_TEXT", "AutoModelForImageTextToText"),
    ("MULTIMODAL_LM", "AutoModelForMultimodalLM"),
    ("CAUSAL_LM", "AutoModelForCausalLM"),
    ("MASKED_LM", "AutoModelForMaskedLM"),
)
TWO_STACKS = (
    ("SEQ_TO_SEQ_CAUSAL_LM", "AutoModelForSeq2SeqLM"),
    ("SPEECH_SEQ_2_SEQ", "AutoModelForSpeechSeq2Seq"),
    *LANGUAGE,
)
CLASSES = {
    "vocabulary": LANGUAGE,
    "transformed": (("MASKED_LM", "AutoModelForMaskedLM"), *LANGUAGE),
    "labels": (("IMAGE_CLASSIFICATION", "AutoModelForImageClassification"),),
    "none": (),
}
"""What ends a model -> lists of classes of transformers, and what builds of each; the bare model comes last."""
NOT_READ = ("model_type", "auto_map", "quantization_config", "compression_config")
"""Keys that the class of a configuration does not get: its name, code, and formats, in which modules are the same."""


def build(data: Mapping[str, Any], where: str, model: Model) -> Modules:
    """Build a model.

    Args:
        data: the object of its `config.json`.
        where: the name of the file, for messages.
        model: what symperf read in it, which says with what head it is counted.

    Raises:
        InputError: PyTorch or transformers is missing, does not know this kind of model, or refuses the file.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing is fetched, whatever a class would like to
    torch = import_extra("torch", EXTRA, WHAT)
    transformers = import_extra("transformers", EXTRA, WHAT)
    listed = import_extra("transformers.models.auto.modeling_auto", EXTRA, WHAT)
    kind = str(data.get("model_type"))
    if kind not in transformers.CONFIG_MAPPING:
        code = ", and the code that it names in auto_map is never run" if "auto_map" in data else ""
        raise InputError(
            f"{where}: {WHAT}: transformers {transformers.__version__} has no class for model_type {quote(kind)}{code}"
        )
    with _quiet(transformers):
        try:
            config = _configuration(data, transformers.CONFIG_MAPPING[kind])
            name, more = _class(model, kind, listed, transformers)
            with torch.device("meta"):
                built = getattr(transformers, name).from_config(config, **more)
        except Exception as error:  # whatever the classes of some hundred kinds of models raise
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise InputError(
                f"{where}: {WHAT}: transformers {transformers.__version__} cannot build it: {reason}"
            ) from None
        versions = {"transformers": str(transformers.__version__), "torch": str(torch.__version__)}
        return replace(_read(built, config, versions, torch), encoders=tuple(encoder_keys(data)))


def _configuration(data: Mapping[str, Any], known: Any) -> Any:
    """The configuration of a file; a language model told at the top goes where the class looks for it."""
    found, nested = {key: _decoded(value) for key, value in data.items() if key not in NOT_READ}, "text_config"
    if nested in known.sub_configs and nested not in found and "hidden_size" in found:
        found[nested] = {key: value for key, value in found.items() if key not in known.sub_configs}
    return known.from_dict(found)


def encoder_keys(data: Mapping[str, Any]) -> list[str]:
    """Keys of a file under which it describes encoders of images or sound."""
    return [key for key, value in data.items() if isinstance(value, dict) and (VISION.search(key) or AUDIO.search(key))]


def _class(model: Model, kind: str, listed: Any, transformers: Any) -> tuple[str, dict[str, Any]]:
    """The class that builds a kind of model with the head that it is counted with, and what it is told."""
    ways = TWO_STACKS if model.architecture.stacks == 2 else CLASSES[model.architecture.head]
    for names, auto in ways:
        if kind in getattr(listed, f"MODEL_FOR_{names}_MAPPING_NAMES", ()):
            return auto, {}
    known = listed.MODEL_MAPPING_NAMES[kind]
    bare = getattr(transformers, known if isinstance(known, str) else known[0])
    pools = "add_pooling_layer" in inspect.signature(bare.__init__).parameters
    return "AutoModel", {"add_pooling_layer": False} if pools else {}


def _read(built: Any, config: Any, versions: Mapping[str, str], torch: Any) -> Modules:
    """Names and shapes of what was built."""
    names = {id(parameter): name for name, parameter in built.named_parameters()}
    table, head = (_weight(built, end) for end in ("get_input_embeddings", "get_output_embeddings"))
    inner = config.get_text_config()
    passed = getattr(inner, "top_k_experts", None)
    experts = None
    for module in built.modules():
        passed = getattr(module, "top_k", passed)
        experts = getattr(module, "num_experts", experts) if module is not built else experts
    return Modules(
        type(built).__name__,
        versions,
        {name: tuple(parameter.shape) for name, parameter in built.named_parameters()},
        {name: len(each) for name, each in built.named_modules() if isinstance(each, torch.nn.ModuleList)},
        _tables(built, table, torch),
        names.get(id(head)),
        (experts, passed) if type(experts) is int and type(passed) is int else None,
        settings_of(config),
    )


def _tables(built: Any, table: Any, torch: Any) -> tuple[str, ...]:
    """Tables of tokens: that of the model, and others of its shape in modules of the kind."""
    if table is None:
        return ()
    found = {
        f"{name}.weight"
        for name, module in built.named_modules()
        if isinstance(module, torch.nn.Embedding) and module.weight.shape == table.shape
    }
    own = {name for name, parameter in built.named_parameters() if parameter is table}
    return tuple(name for name, _ in built.named_parameters() if name in found | own)


def settings_of(config: Any, place: str = "") -> dict[str, Any]:
    """The values of a configuration's keys by every name that it has for them.

    Keys of nested configurations follow the key that holds these, and a dot.
    """
    values = config.to_dict()
    values |= {other: values.get(key) for other, key in config.attribute_map.items() if other not in values}
    found = {f"{place}{key}": value for key, value in values.items()}
    for key in config.sub_configs:
        if (inner := getattr(config, key, None)) is not None:
            found |= settings_of(inner, f"{place}{key}.")
    return found


def _weight(built: Any, end: str) -> Any:
    try:
        module = getattr(built, end)()
    except (AttributeError, NotImplementedError):
        return None
    return getattr(module, "weight", None)


def _decoded(value: Any) -> Any:
    """A value, with infinities as transformers writes them, and without the code that objects in it name."""
    if isinstance(value, dict):
        if set(value) == {"__float__"}:
            return float(value["__float__"])
        return {key: _decoded(each) for key, each in value.items() if key != "auto_map"}
    return [_decoded(each) for each in value] if isinstance(value, list) else value


@contextlib.contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Nothing but the answer is printed: notes of a class on its own defaults are none of the user's."""
    logging = transformers.logging
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(before)
