"""What layouts beyond tensor and data parallelism, recomputation by count, and other kinds of layers need, as rules."""

from __future__ import annotations

from .rule import Rule

PARALLEL_RULES = (
    Rule(
        "cp_does_not_divide_sequence",
        "sequence % (cp * (1 + balanced)) == 0",
        "cp: sequence {sequence} is not divisible by {chunks}: parts of cp = {cp} must be equal, and are balanced by "
        "two chunks each unless --cp-kind is all-to-all",
    ),
    Rule(
        "tp_does_not_divide_parts",
        "sequence_parallel == 0 or cp == 1 or sequence % (tp * cp * (1 + balanced)) == 0",
        "sequence_parallel: the chunks of sequence {sequence} over cp = {cp} are not divisible by tp = {tp}",
    ),
    Rule(
        "cp_does_not_divide_heads",
        "dealt == 0 or num_attention_heads // tp % cp == 0",
        "cp: all-to-all deals heads, and cp = {cp} does not divide the heads of a device, num_attention_heads / tp = "
        "{num_attention_heads} / {tp}; --cp-kind ring needs no heads",
    ),
    Rule(
        "more_stages_than_layers",
        "uneven == 0 or counted > 0 or layout_stages > 0 or pp <= num_layers",
        "pp: {pp} stages, but {model} has {num_layers} layers",
    ),
    Rule(
        "more_stages_than_layers_and_ends",
        "uneven == 0 or counted == 0 or pp * vpp <= num_layers + counted",
        "pp x vpp: {stages} stages, but {model} has {num_layers} layers{ends_counted}",
    ),
    Rule(
        "chunks_without_layers",
        "uneven == 0 or given_stages == 1 or layout_stages > 0 or pp * (vpp - 1) < num_layers + counted",
        "vpp: {vpp} x pp = {pp} virtual stages leave devices without a layer in their last one, as {model} has "
        "{num_layers} layers{ends_counted}",
    ),
    Rule(
        "layout_has_other_layers",
        "layout_stages == 0 or layout_layers == num_layers",
        "layout: has {layout_layers} layers (t), but {model} has {num_layers}",
    ),
    Rule(
        "layout_has_other_modules",
        "layout_stages == 0 or layout_modules == num_multi_token_layers",
        "layout: has {layout_modules} modules for multi-token prediction (m), but {model} has "
        "{num_multi_token_layers} (num_multi_token_layers)",
    ),
    Rule(
        "given_stages_do_not_divide_into_chunks",
        "given_stages == 0 or vpp == 1 or (first_stage_layers % vpp == 0 and last_stage_layers % vpp == 0 and "
        "(num_layers - first_stage_layers - last_stage_layers) // max(pp - 2, 1) % vpp == 0)",
        "first_stage_layers: {first_stage_layers}, {last_stage_layers} and the layers of stages between them must be "
        "divisible by vpp = {vpp}; a layout has any",
    ),
    Rule(
        "given_stages_do_not_add_up",
        "given_stages == 0 or (pp == 2 and first_stage_layers + last_stage_layers == num_layers) or "
        "(pp > 2 and first_stage_layers + last_stage_layers < num_layers and "
        "(num_layers - first_stage_layers - last_stage_layers) % max(pp - 2, 1) == 0)",
        "first_stage_layers: {first_stage_layers} and {last_stage_layers} leave no equal stages between the ends: "
        "{model} has {num_layers} layers, and pp = {pp}",
    ),
    Rule(
        "more_recomputed_layers_than_a_stage_has",
        "some_layers == 0 or (given_stages == 0 and recompute_layers <= num_layers // pp) or (given_stages == 1 "
        "and recompute_layers <= first_stage_layers and recompute_layers <= last_stage_layers and (pp < 3 or "
        "recompute_layers <= (num_layers - first_stage_layers - last_stage_layers) // max(pp - 2, 1)))",
        "recompute_layers: {recompute_layers} of each stage, but {model} has {num_layers} layers in pp = {pp} "
        "stages, of which one has fewer",
    ),
    Rule(
        "shards_do_not_divide_replicas",
        "hybrid == 0 or dp * cp % zero_shards == 0",
        "zero_shards: {zero_shards} does not divide dp x cp = {dp} x {cp}",
    ),
    Rule(
        "shards_do_not_divide_replicas_of_experts",
        "hybrid == 0 or routed == 0 or tp * dp * cp // (ep * expert_tp) % zero_shards == 0",
        "zero_shards: {zero_shards} does not divide the replicas of an expert, tp x cp x dp / (ep x expert_tp) = "
        "{tp} x {cp} x {dp} / ({ep} x {expert_tp})",
    ),
    Rule(
        "experts_lie_across_pipelines",
        "pipeline_inside == 0 or routed == 0 or tp * cp % (ep * expert_tp) == 0 or "
        "(pp == 1 and ep * expert_tp % (tp * cp) == 0)",
        "rank_order: with tp-cp-pp-dp the devices of an expert's layer are those of one stage, and ep x expert_tp = "
        "{ep} x {expert_tp} does not divide tp x cp = {tp} x {cp}; expected tp-cp-dp-pp",
    ),
    Rule(
        "stages_straddle_domains",
        "pipeline_inside == 0 or tiers < 2 or (cp == 1 and routed == 0 and dual_pipe == 0) or "
        "tp * cp >= scale_up_size or scale_up_size % (tp * cp * (1 + dual_pipe)) == 0",
        "rank_order: with tp-cp-pp-dp the tp x cp = {tp} x {cp} ranks of a stage (two stages under dualpipe) must "
        "divide the {scale_up_size} devices of a scale-up domain; expected tp-cp-dp-pp",
    ),
    Rule(
        "shards_lie_across_pipelines",
        "pipeline_inside == 0 or hybrid == 0 or (zero_shards % (cp * (1 + dual_pipe)) == 0 and (routed == 0 or "
        "zero_shards % (max(tp * cp // (ep * expert_tp), 1) * (1 + dual_pipe)) == 0))",
        "rank_order: with tp-cp-pp-dp the ranks of one stage share the state first, and zero_shards = {zero_shards} is "
        "no multiple of them (cp = {cp}, or of experts tp x cp / (ep x expert_tp)); expected tp-cp-dp-pp",
    ),
    Rule(
        "zero_bubble_needs_micro_batches",
        "zero_bubble == 0 or batch // (dp * micro_batch) >= pp",
        "schedule: {schedule} needs at least pp micro-batches, found batch / (dp x micro_batch) = {micro_batches} and "
        "pp = {pp}",
    ),
    Rule(
        "zb_h2_needs_micro_batches",
        "zb_h2 == 0 or batch // (dp * micro_batch) >= 2 * pp - 1",
        "schedule: zb-h2 needs at least 2 pp - 1 micro-batches, found batch / (dp x micro_batch) = {micro_batches} and "
        "pp = {pp}",
    ),
    Rule(
        "zero_bubble_2p_needs_micro_batches",
        "zb_2p == 0 or batch // (dp * micro_batch) >= 2 * pp",
        "schedule: zero-bubble-2p needs at least 2 pp micro-batches, found batch / (dp x micro_batch) = "
        "{micro_batches} and pp = {pp}",
    ),
    Rule(
        "dualpipe_needs_even_stages",
        "dual_pipe == 0 or pp % 2 == 0",
        "schedule: dualpipe runs from both ends and needs an even number of stages, found pp = {pp}",
    ),
    Rule(
        "dualpipe_needs_micro_batches",
        "dual_pipe == 0 or (batch // (dp * micro_batch) >= 2 * pp and batch // (dp * micro_batch) % 2 == 0)",
        "schedule: dualpipe needs an even number of micro-batches, at least 2 pp, found batch / (dp x micro_batch) = "
        "{micro_batches} and pp = {pp}",
    ),
)
"""What context parallelism, unequal stages, hybrid sharding and zero-bubble schedules need."""

KIND_RULES = (
    Rule(
        "tp_does_not_divide_ssm_heads",
        "ssm_num_heads % tp == 0",
        "tp: {tp} does not divide the {ssm_num_heads} heads of the Mamba-2 layers of {model}",
    ),
    Rule(
        "tp_does_not_divide_ssm_groups",
        "ssm_groups % tp == 0",
        "tp: {tp} does not divide the groups of heads that share B and C ({ssm_groups}) in the Mamba-2 layers of "
        "{model}, which are dealt whole",
    ),
    Rule(
        "tp_does_not_divide_ssm_channels",
        "ssm_inner_size % tp == 0",
        "tp: {tp} does not divide the {ssm_inner_size} channels of the Mamba-1 layers of {model}",
    ),
    Rule(
        "tp_does_not_divide_unit_channels",
        "lru_width % tp == 0",
        "tp: {tp} does not divide the {lru_width} channels of the gated linear recurrent units of {model}",
    ),
    Rule(
        "tp_does_not_divide_linear_heads",
        "linear_num_key_heads % tp == 0 and linear_num_value_heads % tp == 0",
        "tp: {tp} does not divide the {linear_num_key_heads} key heads and {linear_num_value_heads} value heads of the "
        "linear-attention layers of {model}",
    ),
    Rule(
        "tp_does_not_divide_output_groups",
        "output_groups % tp == 0",
        "tp: {tp} does not divide the {output_groups} groups of heads that the output of {model} is projected in",
    ),
    Rule(
        "side_blocks_in_a_pipeline",
        "pp == 1 or layer_input_size + num_update_streams == 0",
        "pp: {model} has several streams or features for each layer, which would have to go from stage to stage; "
        "expected pp = 1, found pp = {pp}",
    ),
    Rule(
        "shared_blocks_in_a_pipeline",
        "num_shared_blocks == 0 or pp == 1",
        "pp: found {pp}, expected 1: blocks of {model} are shared between layers of all stages",
    ),
    Rule(
        "attention_residuals_in_a_pipeline",
        "residual_block == 0 or pp == 1",
        "pp: the layers of {model} read sums of blocks of earlier layers, which every stage would have to send; that "
        "is not modelled yet, expected pp = 1",
    ),
    Rule(
        "encoder_and_decoder_in_a_pipeline",
        "two_stacks == 0 or pp == 1",
        "pp: {model} has an encoder and a decoder, whose layers differ in cost and which a pipeline would have to "
        "split; expected pp = 1, found pp = {pp}",
    ),
    Rule(
        "tp_does_not_divide_encoder_sequence",
        "sequence_parallel == 0 or two_stacks == 0 or encoder_sequence % tp == 0",
        "sequence_parallel: encoder_sequence {encoder_sequence} is not divisible by tp = {tp}",
    ),
    Rule(
        "encoder_sequence_exceeds_learned_positions",
        "position_rows == 0 or two_stacks == 0 or encoder_position_rows > 0 or encoder_sequence <= position_rows",
        "encoder_sequence: {encoder_sequence} tokens, but {model} has {position_rows} learned positions",
    ),
    Rule(
        "sound_has_a_sequence_of_its_own",
        "encoder_position_rows == 0 or encoder_sequence == encoder_position_rows",
        "encoder_sequence: found {encoder_sequence}, expected {encoder_position_rows}: {model} fills recordings up to "
        "as many tokens",
    ),
    Rule(
        "image_has_a_sequence_of_its_own",
        "num_patches == 0 or sequence == position_rows",
        "sequence: found {sequence}, expected {position_rows}: {model} makes {num_patches} patches of an image, and a "
        "class token if any",
    ),
)
"""What layers of other kinds than attention and MLP, encoders and images need."""
