"""Sources of what software and chance add to a step."""

from __future__ import annotations

from .references import add

PYTORCH_GRAPHS = add(
    "nguyen2021",
    "misc",
    "Accelerating PyTorch with CUDA Graphs",
    "Nguyen, Vinh and Carilli, Michael and Eryilmaz, Sukru Burc and others",
    2021,
    howpublished="https://pytorch.org/blog/accelerating-pytorch-with-cuda-graphs/",
)
VLLM_GRAPHS = add(
    "vllm2026graphs",
    "misc",
    "vLLM documentation: CUDA Graphs",
    "{vLLM project}",
    2026,
    howpublished="https://docs.vllm.ai/en/latest/design/cuda_graphs/",
)
DEEPEP = add(
    "deepep2025",
    "misc",
    "DeepEP: an efficient expert-parallel communication library",
    "Zhao, Chenggang and Zhou, Shangyan and Zhang, Liyue and others",
    2025,
    howpublished=r"\url{https://github.com/deepseek-ai/DeepEP}",
)
EPLB = add(
    "eplb2025",
    "misc",
    "Expert Parallelism Load Balancer (EPLB)",
    "{DeepSeek-AI}",
    2025,
    howpublished=r"\url{https://github.com/deepseek-ai/EPLB}",
)
VLLM_DATA_PARALLEL = add(
    "vllm2025dp",
    "misc",
    "Data Parallel Deployment",
    "{vLLM contributors}",
    2025,
    howpublished=r"\url{https://docs.vllm.ai/en/latest/serving/data_parallel_deployment/}",
)
BOUCHERON = add(
    "boucheron2013",
    "book",
    "Concentration Inequalities: A Nonasymptotic Theory of Independence",
    "Boucheron, Stephane and Lugosi, Gabor and Massart, Pascal",
    2013,
    publisher="Oxford University Press",
)
VLLM_ALL_REDUCE = add(
    "hanzhi2023",
    "misc",
    "Custom all reduce kernels",
    "hanzhi713 and {vLLM contributors}",
    2023,
    howpublished="vLLM, csrc/custom_all_reduce.cuh, https://github.com/vllm-project/vllm/pull/2192",
)
VLLM_MEMORY = add(
    "vllm2025memory",
    "misc",
    "vLLM: memory profiling of the GPU worker",
    "{vLLM project}",
    2025,
    howpublished="vllm/v1/worker/gpu_worker.py, https://github.com/vllm-project/vllm/pull/19312",
)
SGLANG_MEMORY = add(
    "sglang2025memory",
    "misc",
    "SGLang: Hyperparameter tuning, mem-fraction-static",
    "{SGLang project}",
    2025,
    howpublished="https://github.com/sgl-project/sglang/pull/9083",
)
TRTLLM_MEMORY = add(
    "nvidia2025memory",
    "misc",
    "TensorRT-LLM: Memory Usage; How to Change KV Cache Behavior",
    "{NVIDIA}",
    2025,
    howpublished="https://nvidia.github.io/TensorRT-LLM/examples/kvcacheconfig.html",
)
TORCH_SORT = add(
    "pytorch2024sort",
    "misc",
    "PyTorch: stable sort on CUDA devices",
    "{PyTorch project}",
    2024,
    howpublished="aten/src/ATen/native/cuda/SortStable.cu, https://github.com/pytorch/pytorch",
)
