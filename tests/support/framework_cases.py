"""Files of training frameworks: what their projects' own examples say, in a few lines each."""

from __future__ import annotations

MEGATRON = """\
#!/bin/bash
# Trains a model.
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NODES=${NNODES:-16}
TP=8
WORLD_SIZE=$(($GPUS_PER_NODE*$NODES))
LAUNCH=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NODES
    --master_addr $MASTER_ADDR
)
MODEL_ARGS="
    --num-layers 80 --hidden-size 8192 --num-attention-heads 64 --group-query-attention --num-query-groups 8
    --ffn-hidden-size 28672 --swiglu --normalization RMSNorm --disable-bias-linear --position-embedding-type rope
    --untie-embeddings-and-output-weights --vocab-size 32000 --max-position-embeddings 4096"
torchrun ${LAUNCH[@]} pretrain_gpt.py $MODEL_ARGS \\
    --tensor-model-parallel-size $TP --pipeline-model-parallel-size 4 --sequence-parallel \\
    --num-layers-per-virtual-pipeline-stage 5 --micro-batch-size 1 --global-batch-size 256 --seq-length 4096 \\
    --bf16 --lr 1.0e-4 --train-iters 10 --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather \\
    --attention-dropout 0 --hidden-dropout 0.0 --recompute-granularity full --recompute-method block \\
    --recompute-num-layers 2 --no-gradient-accumulation-fusion --tokenizer-type NullTokenizer 2>&1 | tee log
"""
GPT3 = """\
--num-layers 96 --hidden-size 12288 --num-attention-heads 96 --seq-length 2048 --max-position-embeddings 2048
--vocab-size 51200 --micro-batch-size 1 --global-batch-size 64 --fp16 --tensor-model-parallel-size 8
--pipeline-model-parallel-size 8 --num-virtual-stages-per-pipeline-rank 3 --recompute-activations --sequence-parallel
--attention-backend unfused
"""
MIXTRAL = """\
--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --group-query-attention --num-query-groups 8
--ffn-hidden-size 14336 --swiglu --normalization RMSNorm --disable-bias-linear --position-embedding-type rope
--untie-embeddings-and-output-weights --padded-vocab-size 32000 --max-position-embeddings 32768 --num-experts 8
--moe-router-topk 2 --moe-token-dispatcher-type alltoall --expert-model-parallel-size 8 --use-megatron-fsdp
--data-parallel-sharding-strategy optim_grads_params --micro-batch-size 1 --global-batch-size 128 --seq-length 4096
--bf16 --tensor-model-parallel-size 2 --sequence-parallel --attention-dropout 0 --hidden-dropout 0
--cp-comm-type p2p --context-parallel-size 2 --ckpt-format fsdp_dtensor
"""
DEEPSPEED = """\
{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4,
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-5}}, "bf16": {"enabled": true}, "fp16": {"enabled": false},
 "zero_optimization": {"stage": 2, "overlap_comm": true, "reduce_bucket_size": 5e8,
  "offload_optimizer": {"device": "cpu", "pin_memory": true}},
 "activation_checkpointing": {"partition_activations": false}, "gradient_clipping": 1.0, "steps_per_print": 100}
"""
TORCHTITAN = """\
[model]
name = "llama3"
flavor = "70B"
converters = ["float8"]
[training]
local_batch_size = 8
seq_len = 8192
max_norm = 1.0
[parallelism]
data_parallel_replicate_degree = 2
data_parallel_shard_degree = 4
tensor_parallel_degree = 8
pipeline_parallel_degree = 4
pipeline_parallel_schedule = "Interleaved1F1B"
pipeline_parallel_layers_per_stage = 11
pipeline_parallel_microbatch_size = 2
[activation_checkpoint]
mode = "full"
[compile]
enable = true
"""
AXOLOTL = """\
base_model: NousResearch/Meta-Llama-3.1-8B
plugins:
  - axolotl.integrations.liger.LigerPlugin
liger_rope: true
datasets:
  - path: mlabonne/FineTome-100k
    type: chat_template
sequence_len: 4096
sample_packing: true
pad_to_sequence_len: true
wandb_project:
gradient_accumulation_steps: 4
micro_batch_size: 2
optimizer: paged_adamw_8bit
learning_rate: 2e-5
bf16: auto
tf32: false
gradient_checkpointing: true
gradient_checkpointing_kwargs:
  use_reentrant: false
flash_attention: true
fsdp:
  - full_shard
  - auto_wrap
fsdp_config:
  fsdp_limit_all_gathers: true
  fsdp_offload_params: true
  fsdp_transformer_layer_cls_to_wrap: LlamaDecoderLayer
  fsdp_sharding_strategy: FULL_SHARD
special_tokens:
  pad_token: <|finetune_right_pad_id|>
"""
LLAMA_FACTORY = """\
### model
model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct
### method
stage: sft
do_train: true
finetuning_type: full
deepspeed: z3.json
dataset: identity,alpaca_en_demo
template: llama3
cutoff_len: 1024
per_device_train_batch_size: 1
gradient_accumulation_steps: 2
learning_rate: 1.0e-4
bf16: true
"""
Z3 = """\
{"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
 "zero_optimization": {"stage": 3, "offload_param": {"device": "none"}, "stage3_max_live_parameters": 1e9},
 "bf16": {"enabled": "auto"}, "zero_allow_untested_optimizer": true}
"""
FILES = {
    "run.sh": MEGATRON,
    "gpt3.txt": GPT3,
    "mixtral.txt": MIXTRAL,
    "ds.json": DEEPSPEED,
    "tt.toml": TORCHTITAN,
    "ax.yml": AXOLOTL,
    "lf.yaml": LLAMA_FACTORY,
    "z3.json": Z3,
}
