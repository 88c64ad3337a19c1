"""Which prompts may have a prefix in the cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..common.errors import InputError
from ..plans.fields import positive_integer

if TYPE_CHECKING:
    from ..models.model import Model
    from ..operations.compiled import Bound
    from ..plans.plan import Plan


def checked_prefix(prefix: Any, prompt: int, model: Model, plan: Plan) -> int:
    """The tokens of a prompt that are in the cache.

    Raises:
        InputError: no whole number, more than leave one to prefill, or a model or plan for which it is not modelled.
    """
    tokens = positive_integer("prefix", prefix, lowest=0)
    if not tokens:
        return 0
    if tokens >= prompt:
        raise InputError(f"prefix: found {tokens}, expected at most {prompt - 1} of the {prompt} tokens of a prompt")
    architecture = model.architecture
    if architecture.stacks == 2 or all(kind.encoder for kind in architecture.kinds):
        raise InputError(f"prefix: found {tokens}, but {model.name} has an encoder, which reads its input whole")
    if architecture.has("compressed_attention") or architecture.positions in ("relative", "disentangled"):
        raise InputError(f"prefix: found {tokens}, expected 0: not modelled for the attention of {model.name}")
    if plan.cp > 1:
        raise InputError(f"prefix: found {tokens} with cp = {plan.cp}, expected cp = 1")
    return tokens


def prefix_bound(prefix: int, prompt: int) -> Bound:
    """The values of its symbols; nothing without one."""
    if not prefix:
        return {}
    return {
        "cached_tokens": (float(prefix), "asked for"),
        "fresh_tokens": (float(prompt - prefix), f"the {prompt} tokens of a prompt without its prefix"),
    }
