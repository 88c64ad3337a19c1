"""Options of Megatron-LM that cost nothing in a step, and those that choose kernels; `*` stands for any ending."""

from __future__ import annotations

from typing import Final

WITHOUT_COST: Final = """
    --data-path --data-cache-path --data-args-path --train-data-path --valid-data-path --test-data-path --split
    --per-split-data-args-path --mock-data --tokenizer-* --vocab-file --merge-file --vocab-extra-ids --num-workers
    --dataloader-type --reset-* --eod-mask-loss --no-create-attention-mask-in-dataloader --no-mmap-bin-files
    --num-dataset-builder-threads --object-storage-cache-path --mid-level-dataset-surplus --legacy-tokenizer
    --tiktoken-* --trust-remote-code --sft --sft-tokenizer-prompt-format --short-seq-prob --mask-prob --data-sharding
    --lr --lr-* --min-lr --weight-decay* --start-weight-decay --end-weight-decay --clip-grad --adam-beta1 --adam-beta2
    --adam-eps --sgd-momentum --muon-* --init-method-* --loss-scale* --initial-loss-scale --min-loss-scale
    --hysteresis --override-opt_param-scheduler --override-opt-param-scheduler --use-checkpoint-* --decoupled-*
    --train-iters --train-samples --eval-* --full-validation --skip-train --exit-* --seed --data-parallel-random-init
    --save --save-* --load --load-* --no-load-* --no-save-* --finetune --pretrained-checkpoint --ckpt-* --dist-ckpt-*
    --no-ckpt-* --async-save --auto-detect-ckpt-format --use-dist-ckpt --use-mcore-models --use-persistent-ckpt-worker
    --non-persistent-* --no-initialization --perform-initialization --use-cpu-initialization --lazy-mpu-init
    --log-* --no-log-* --tensorboard-* --wandb-* --timing-* --one-logger-* --enable-one-logger --logging-level
    --moe-per-layer-logging --profile* --use-pytorch-profiler --record-memory-history --memory-snapshot-path
    --barrier-with-L1-time --no-barrier-with-level-1-timing --straggler-* --manual-gc* --no-manual-gc-eval
    --check-for-* --no-check-for-* --check-weight-hash-* --distributed-timeout-* --distributed-backend --local-rank
    --local_rank --nccl-communicator-config-path --use-sharp --high-priority-stream-groups
    --disable-gloo-process-groups --enable-gloo-process-groups --rdzv* --rdzv_* --master_addr --master_port
    --master-addr --master-port --node_rank --node-rank --max-restarts --max_restarts --tee --redirects
    --standalone --module --role --attention-softmax-in-fp32 --apply-query-key-layer-scaling --config-logger-dir
    --no-one-logger --exit-signal --rerun-mode --error-injection-* --inprocess-* --result-rejected-tracker-filename
    --moe-router-load-balancing-type --moe-aux-loss-coeff --moe-z-loss-coeff --moe-input-jitter-eps
    --moe-router-score-function --moe-router-enable-expert-bias --moe-router-bias-update-rate --moe-router-dtype
    --moe-router-pre-softmax --moe-router-topk-scaling-factor --moe-router-force-load-balancing --moe-extended-tp
    --moe-deepep-* --moe-use-upcycling
    --moe-upcycling-granularity --mtp-loss-scaling-factor --norm-epsilon --layernorm-epsilon --rotary-base
    --rotary-percent --rotary-interleaved --rotary-seq-len-interpolation-factor --use-rope-scaling
    --rope-scaling-factor --rope-type --max-position-embeddings --apply-layernorm-1p --norm-*
    --spec --fp8-margin --fp8-interval --fp8-amax-* --te-rng-tracker
    --inference-rng-tracker --deterministic-mode --apply-residual-connection-post-layernorm --onnx-safe --use-mup
"""
KERNELS: Final = r"""
    --no-\S*-fusion --\S*-fusion --fused-\S* --cross-entropy-\S* --no-persist-layer-norm --moe-grouped-gemm
    --tp-comm-\S* --disable-tp-comm-\S* --overlap-p2p-\S* --transformer-impl
    --accumulate-allreduce-grads-in-fp32 --no-async-tensor-model-parallel-allreduce --cuda-graph-\S* --ddp-\S*
    --enable-cuda-graph --external-cuda-graph --use-legacy-models --moe-pad-expert-input-to-capacity
    --no-contiguous-buffers-in-local-ddp --use-nccl-ub --no-align-\S* --align-\S* --bias-\S*-fusion
    --overlap-param-gather-with-optimizer-step --moe-shared-expert-overlap --use-ring-exchange-p2p
    --defer-embedding-wgrad-compute --wgrad-deferral-limit --empty-unused-memory-level --context-parallel-\S*
    --suggested-communication-unit-size --calculate-per-token-loss --average-in-collective
    --no-gradient-reduce-div-fusion --gradient-reduce-div-fusion --init-model-with-meta-device --first-last-layers-bf16
    --num-layers-at-start-in-bf16 --num-layers-at-end-in-bf16 --no-fp8-wgrad
    --high-priority-\S* --outer-dp-sharding-strategy --delay-param-gather --fsdp-double-buffer
    --no-pad-vocab-size --no-use-tokenizer-model-from-checkpoint-args --use-te-activation-func
"""
