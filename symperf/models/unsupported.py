"""Kinds of models that are known but not supported yet, so that a refusal can say which kind a config is of."""

from __future__ import annotations

NOT_YET: dict[str, str] = {
    "a mixture of experts of another kind": """
        jetmoe minimax minimax_text_01 arctic snowflake step3
        longcat_flash exaone_moe nllb-moe switch_transformers
    """,
    "a state-space or recurrent model of another kind": """
        falcon_mamba zamba zamba2 rwkv recurrent_gemma falcon_h1 xlstm plamo2 minicpm_sala
    """,
    "an encoder or an encoder-decoder of another kind": """
        albert electra deberta umt5
    """,
    "a multimodal model of another kind": """
        mllama pixtral gemma3n
    """,
    "a decoder of another kind": """
        openai-gpt ctrl xlnet gpt_neo codegen biogpt phi3small phi-msft baichuan chatglm internlm2 qwen
        exaone minicpm persimmon fuyu deci RefinedWeb RefinedWebModel
    """,
}
"""Kinds of models that later releases are for, and their known values of `model_type`."""
