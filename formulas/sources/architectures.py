"""The references of architectures: attention, experts, recurrent layers, residual streams, and models."""

from __future__ import annotations

from .references import arxiv

DEBERTA = arxiv(
    "he2021",
    "2006.03654",
    "DeBERTa: Decoding-enhanced BERT with Disentangled Attention",
    "He, Pengcheng and Liu, Xiaodong and Gao, Jianfeng and Chen, Weizhu",
    2021,
)
AINSLIE = arxiv(
    "ainslie2023",
    "2305.13245",
    "GQA: Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints",
    "Ainslie, Joshua and others",
    2023,
)
SHAZEER = arxiv("shazeer2020", "2002.05202", "GLU Variants Improve Transformer", "Shazeer, Noam", 2020)
VASWANI = arxiv("vaswani2017", "1706.03762", "Attention Is All You Need", "Vaswani, Ashish and others", 2017)
MOE = arxiv(
    "shazeer2017",
    "1701.06538",
    "Outrageously Large Neural Networks: The Sparsely-Gated Mixture-of-Experts Layer",
    "Shazeer, Noam and others",
    2017,
)
FEDUS = arxiv(
    "fedus2021",
    "2101.03961",
    "Switch Transformers: Scaling to Trillion Parameter Models with Simple and Efficient Sparsity",
    "Fedus, William and Zoph, Barret and Shazeer, Noam",
    2021,
)
DEEPSEEK2 = arxiv(
    "deepseek2024",
    "2405.04434",
    "DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts Language Model",
    "{DeepSeek-AI}",
    2024,
)
MAMBA = arxiv(
    "gu2023",
    "2312.00752",
    "Mamba: Linear-Time Sequence Modeling with Selective State Spaces",
    "Gu, Albert and Dao, Tri",
    2023,
)
MAMBA2 = arxiv(
    "dao2024",
    "2405.21060",
    "Transformers are SSMs: Generalized Models and Efficient Algorithms Through Structured State Space Duality",
    "Dao, Tri and Gu, Albert",
    2024,
)
DELTANET = arxiv(
    "yang2024",
    "2412.06464",
    "Gated Delta Networks: Improving Mamba2 with Delta Rule",
    "Yang, Songlin and Kautz, Jan and Hatamizadeh, Ali",
    2024,
)
KIMI_LINEAR = arxiv(
    "kimi2025",
    "2510.26692",
    "Kimi Linear: An Expressive, Efficient Attention Architecture",
    "{Kimi Team}",
    2025,
)
XLSTM = arxiv(
    "beck2024",
    "2405.04517",
    "xLSTM: Extended Long Short-Term Memory",
    "Beck, Maximilian and Poeppel, Korbinian and Spanring, Markus and others",
    2024,
)
TFLA = arxiv(
    "beck2025",
    "2503.14376",
    "Tiled Flash Linear Attention: More Efficient Linear RNN and xLSTM Kernels",
    "Beck, Maximilian and Poeppel, Korbinian and Lippe, Phillip and Hochreiter, Sepp",
    2025,
)
RWKV7 = arxiv(
    "peng2025",
    "2503.14456",
    "RWKV-7 ``Goose'' with Expressive Dynamic State Evolution",
    "Peng, Bo and Zhang, Ruichong and Goldstein, Daniel and others",
    2025,
)
KIMI_K3 = arxiv(
    "kimi2026",
    "2607.24653",
    "Kimi K3 Technical Report",
    "{Kimi Team}",
    2026,
)
GRIFFIN = arxiv(
    "de2024",
    "2402.19427",
    "Griffin: Mixing Gated Linear Recurrences with Local Attention for Efficient Language Models",
    "De, Soham and Smith, Samuel L. and others",
    2024,
)
LIGHTNING = arxiv(
    "qin2024",
    "2401.04658",
    "Lightning Attention-2: A Free Lunch for Handling Unlimited Sequence Lengths in Large Language Models",
    "Qin, Zhen and Sun, Weigao and Li, Dong and Shen, Xuyang and Sun, Weixuan and Zhong, Yiran",
    2024,
)
BELTAGY = arxiv(
    "beltagy2020",
    "2004.05150",
    "Longformer: The Long-Document Transformer",
    "Beltagy, Iz and Peters, Matthew E. and Cohan, Arman",
    2020,
)
DEEPSEEK32 = arxiv(
    "deepseek2025v32",
    "2512.02556",
    "DeepSeek-V3.2: Pushing the Frontier of Open Large Language Models",
    "{DeepSeek-AI}",
    2025,
)
ALTUP = arxiv(
    "baykal2023",
    "2301.13310",
    "Alternating Updates for Efficient Transformers",
    "Baykal, Cenk and Cutler, Dylan and Dikkala, Nishanth and others",
    2023,
)
HYPER_CONNECTIONS = arxiv("zhu2024", "2409.19606", "Hyper-Connections", "Zhu, Defa and others", 2024)
DEEPSEEK3 = arxiv("deepseek2024v3", "2412.19437", "DeepSeek-V3 Technical Report", "{DeepSeek-AI}", 2024)
LLAMA3 = arxiv("llama2024", "2407.21783", "The Llama 3 Herd of Models", "Grattafiori, Aaron and others", 2024)
