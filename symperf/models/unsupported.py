"""Kinds of models that are known but not supported yet, so that a refusal can say which kind a config is of."""

from __future__ import annotations

NOT_YET: dict[str, str] = {
    "a mixture of experts of another kind": """
        jetmoe arctic snowflake step3
        longcat_flash exaone_moe nllb-moe switch_transformers
    """,
    "a state-space or recurrent model of another kind": """
        falcon_mamba zamba rwkv plamo2 minicpm_sala
    """,
    "an encoder or an encoder-decoder of another kind": """
        albert electra deberta deberta-v2 umt5 t5gemma whisper clip siglip
    """,
    "a multimodal model of another kind": """
        mllama qwen2_vl pixtral gemma3n phi4_multimodal
    """,
    "a decoder of another kind": """
        openai-gpt ctrl xlnet gpt_neo codegen biogpt phi3small phi-msft baichuan chatglm internlm2 qwen
        exaone minicpm persimmon fuyu deci RefinedWeb RefinedWebModel
    """,
}
"""Kinds of models that later releases are for, and their known values of `model_type`."""
