"""The references that formulas cite, as BibTeX."""

from __future__ import annotations

SOURCES: dict[str, str] = {}


def _add(key: str, kind: str, title: str, author: str, year: int, **more: str) -> str:
    lines = [f"  title = {{{title}}}", f"  author = {{{author}}}", f"  year = {{{year}}}"]
    lines += [f"  {name} = {{{value}}}" for name, value in more.items()]
    SOURCES[key] = f"@{kind}{{{key},\n" + ",\n".join(lines) + "\n}"
    return key


def _arxiv(key: str, number: str, title: str, author: str, year: int) -> str:
    return _add(key, "misc", title, author, year, eprint=number, archiveprefix="arXiv")


KUNDU = _arxiv(
    "kundu2024",
    "2407.14645",
    "Performance Modeling and Workload Analysis of Distributed Large Language Model Training and Inference",
    "Kundu, Joyjit and others",
    2024,
)
DEEPFLOW = _arxiv(
    "ardalani2022",
    "2211.03309",
    "DeepFlow: A Cross-Stack Pathfinding Framework for Distributed AI Systems",
    "Ardalani, Newsha and Pal, Saptadeep and Gupta, Puneet",
    2022,
)
NARAYANAN = _arxiv(
    "narayanan2021",
    "2104.04473",
    "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM",
    "Narayanan, Deepak and others",
    2021,
)
KORTHIKANTI = _arxiv(
    "korthikanti2022",
    "2205.05198",
    "Reducing Activation Recomputation in Large Transformer Models",
    "Korthikanti, Vijay and others",
    2022,
)
SHOEYBI = _arxiv(
    "shoeybi2019",
    "1909.08053",
    "Megatron-LM: Training Multi-Billion Parameter Language Models Using Model Parallelism",
    "Shoeybi, Mohammad and others",
    2019,
)
RAJBHANDARI = _arxiv(
    "rajbhandari2020",
    "1910.02054",
    "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
    "Rajbhandari, Samyam and Rasley, Jeff and Ruwase, Olatunji and He, Yuxiong",
    2020,
)
GPIPE = _arxiv(
    "huang2019",
    "1811.06965",
    "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism",
    "Huang, Yanping and others",
    2019,
)
DAO = _arxiv(
    "dao2022",
    "2205.14135",
    "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness",
    "Dao, Tri and Fu, Daniel Y. and Ermon, Stefano and Rudra, Atri and Re, Christopher",
    2022,
)
DAO2 = _arxiv(
    "dao2023",
    "2307.08691",
    "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning",
    "Dao, Tri",
    2023,
)
AINSLIE = _arxiv(
    "ainslie2023",
    "2305.13245",
    "GQA: Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints",
    "Ainslie, Joshua and others",
    2023,
)
SHAZEER = _arxiv("shazeer2020", "2002.05202", "GLU Variants Improve Transformer", "Shazeer, Noam", 2020)
VASWANI = _arxiv("vaswani2017", "1706.03762", "Attention Is All You Need", "Vaswani, Ashish and others", 2017)
RADFORD = _add(
    "radford2019",
    "techreport",
    "Language Models are Unsupervised Multitask Learners",
    "Radford, Alec and others",
    2019,
    institution="OpenAI",
)
BA = _arxiv(
    "ba2016",
    "1607.06450",
    "Layer Normalization",
    "Ba, Jimmy Lei and Kiros, Jamie Ryan and Hinton, Geoffrey",
    2016,
)
ZHANG = _arxiv(
    "zhang2019", "1910.07467", "Root Mean Square Layer Normalization", "Zhang, Biao and Sennrich, Rico", 2019
)
SU = _arxiv(
    "su2021",
    "2104.09864",
    "RoFormer: Enhanced Transformer with Rotary Position Embedding",
    "Su, Jianlin and others",
    2021,
)
KINGMA = _arxiv(
    "kingma2014",
    "1412.6980",
    "Adam: A Method for Stochastic Optimization",
    "Kingma, Diederik P. and Ba, Jimmy",
    2014,
)
MICIKEVICIUS = _arxiv(
    "micikevicius2017", "1710.03740", "Mixed Precision Training", "Micikevicius, Paulius and others", 2017
)
WILLIAMS = _add(
    "williams2009",
    "article",
    "Roofline: An Insightful Visual Performance Model for Multicore Architectures",
    "Williams, Samuel and Waterman, Andrew and Patterson, David",
    2009,
    journal="Communications of the ACM",
    volume="52",
    number="4",
    pages="65--76",
)
SMITH = _arxiv(
    "smith2019",
    "1702.02017",
    "A Tight I/O Lower Bound for Matrix Multiplication",
    "Smith, Tyler Michael and Lowery, Bradley and Langou, Julien and van de Geijn, Robert A.",
    2019,
)
THAKUR = _add(
    "thakur2005",
    "article",
    "Optimization of Collective Communication Operations in MPICH",
    "Thakur, Rajeev and Rabenseifner, Rolf and Gropp, William",
    2005,
    journal="International Journal of High Performance Computing Applications",
    volume="19",
    number="1",
    pages="49--66",
)
PATARASUK = _add(
    "patarasuk2009",
    "article",
    "Bandwidth optimal all-reduce algorithms for clusters of workstations",
    "Patarasuk, Pitch and Yuan, Xin",
    2009,
    journal="Journal of Parallel and Distributed Computing",
    volume="69",
    number="2",
    pages="117--124",
)
SANDERS = _add(
    "sanders2009",
    "article",
    "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
    "Sanders, Peter and Speck, Jochen and Traff, Jesper Larsson",
    2009,
    journal="Parallel Computing",
    volume="35",
    number="12",
    pages="581--594",
)
HOCKNEY = _add(
    "hockney1994",
    "article",
    "The communication challenge for MPP: Intel Paragon and Meiko CS-2",
    "Hockney, Roger W.",
    1994,
    journal="Parallel Computing",
    volume="20",
    number="3",
    pages="389--398",
)
CUTLASS = _add(
    "cutlass",
    "misc",
    "CUTLASS: Efficient GEMM in CUDA",
    "NVIDIA",
    2023,
    howpublished="https://docs.nvidia.com/cutlass/media/docs/cpp/efficient_gemm.html",
)
NVIDIA_GEMM = _add(
    "nvidia-gemm",
    "misc",
    "Matrix Multiplication Background User's Guide",
    "NVIDIA",
    2023,
    howpublished="https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/",
)
CHOWDHERY = _arxiv(
    "chowdhery2022",
    "2204.02311",
    "PaLM: Scaling Language Modeling with Pathways",
    "Chowdhery, Aakanksha and others",
    2022,
)
HU = _arxiv(
    "hu2025",
    "2507.04786",
    "Demystifying NCCL: An In-depth Analysis of GPU Communication Protocols and Algorithms",
    "Hu, Zhiyi and Shen, Siyuan and Bonato, Tommaso and Jeaugey, Sylvain and others",
    2025,
)
JEAUGEY = _add(
    "jeaugey2020",
    "misc",
    "What is LL128 Protocol?",
    "Jeaugey, Sylvain",
    2020,
    howpublished="https://github.com/NVIDIA/nccl/issues/281",
)
