"""Kinds of models that are known but not supported yet, so that a refusal can say which kind a config is of."""

from __future__ import annotations

NOT_YET: dict[str, str] = {
    "a mixture of experts": """mixtral qwen2_moe qwen3_moe qwen3_5_moe deepseek deepseek_v2 deepseek_v3 deepseek_v4
        kimi_k2 gpt_oss llama4 llama4_text olmoe glm4_moe glm4_moe_lite dbrx grok-1 grok jetmoe phimoe minimax
        minimax_m2 minimax_text_01 granitemoe arctic snowflake ernie4_5_moe hunyuan_v1_moe dots1 flex_olmo
        mistral4 step3 longcat_flash exaone_moe nllb-moe switch_transformers""",
    "a state-space or recurrent model": """mamba mamba2 falcon_mamba jamba bamba zamba zamba2 nemotron_h rwkv
        recurrent_gemma granitemoehybrid qwen3_next qwen3_5 falcon_h1 lfm2 xlstm plamo2 minicpm_sala""",
    "an encoder or an encoder-decoder": """bert roberta distilbert albert electra deberta deberta-v2 xlm-roberta
        modernbert t5 mt5 umt5 t5gemma bart mbart pegasus marian m2m_100 blenderbot whisper vit clip siglip dinov2""",
    "a multimodal model": """llava llava_next mllama qwen2_vl qwen2_5_vl qwen3_vl pixtral mistral3 idefics3 paligemma
        gemma3n gemma4 phi4_multimodal internvl""",
    "a decoder of another kind": """openai-gpt ctrl xlnet gpt_neo codegen biogpt olmo cohere2 granite smollm3 phi3small
        phi-msft baichuan chatglm internlm internlm2 qwen exaone exaone4 minicpm minicpm3 persimmon fuyu ministral
        ministral3 seed_oss hunyuan_v1_dense ernie4_5 nemotron-nas deci RefinedWeb RefinedWebModel apertus arcee""",
}
"""Kinds of models that later releases are for, and their known values of `model_type`."""
