"""Kinds of models that are known but not supported yet, so that a refusal can say which kind a config is of."""

from __future__ import annotations

NOT_YET: dict[str, str] = {
    "a mixture of experts of another kind": """
        jetmoe snowflake step3
        longcat_flash nllb-moe switch_transformers
    """,
    "a state-space or recurrent model of another kind": """
        falcon_mamba zamba rwkv plamo2 minicpm_sala
    """,
    "an encoder or an encoder-decoder of another kind": """
        albert electra deberta umt5
    """,
    "a multimodal model of another kind": """
        mllama
    """,
    "a decoder of another kind": """
        xlnet phi3small fuyu
    """,
}
"""Kinds of models that later releases are for, and their known values of `model_type`."""
