"""Kinds of models that are known but not supported yet, so that a refusal can say which kind a config is of."""

from __future__ import annotations

NOT_YET: dict[str, str] = {
    "a mixture of experts of another kind": """deepseek deepseek_v32 deepseek_v4 qwen3_5_moe glm4_moe_lite glm_moe_dsa
        jetmoe minimax minimax_text_01 granitemoe arctic snowflake ernie4_5_moe hunyuan_v1_moe dots1 flex_olmo
        mistral4 step3 longcat_flash exaone_moe nllb-moe switch_transformers""",
    "a state-space or recurrent model of another kind": """falcon_mamba zamba zamba2 rwkv recurrent_gemma
        granitemoehybrid qwen3_5 falcon_h1 lfm2 xlstm plamo2 minicpm_sala""",
    "an encoder or an encoder-decoder of another kind": """distilbert albert electra deberta deberta-v2 xlm-roberta
        modernbert umt5 t5gemma mbart pegasus marian m2m_100 blenderbot whisper clip siglip dinov2""",
    "a multimodal model of another kind": """mllama qwen2_vl pixtral gemma3n phi4_multimodal""",
    "a decoder of another kind": """openai-gpt ctrl xlnet gpt_neo codegen biogpt olmo cohere2 granite smollm3 phi3small
        phi-msft baichuan chatglm internlm2 qwen exaone exaone4 minicpm minicpm3 persimmon fuyu ministral
        ministral3 seed_oss hunyuan_v1_dense ernie4_5 nemotron-nas deci RefinedWeb RefinedWebModel apertus arcee""",
}
"""Kinds of models that later releases are for, and their known values of `model_type`."""
