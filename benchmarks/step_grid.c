/* The training step of a GPT written by hand: time and memory over a grid of four axes, the best under a memory cap.
 *
 * Structure: eager attention recomputed, sequence parallelism, dropout, biases, tied embeddings, learned positions,
 * interleaved pipeline, no ZeRO, tiles and L2, two network tiers. It is what bench_kernels.py compares the generated
 * kernels with. The four axes are set with -DAXIS0=name ... -DAXIS3=name, outermost first; the compiler moves what
 * does not depend on an inner axis out of its loop, as `step` is inlined into one nest without a branch.
 *
 * gcc -O3 -march=native -ffast-math -fno-reciprocal-math -fopenmp -shared -fPIC (a reciprocal would break ceil_div)
 */
#include <math.h>
#include <stdlib.h>

#define INPUTS(X) \
    X(hidden_size) X(num_layers) X(num_attention_heads) X(num_key_value_heads) X(head_dim) X(intermediate_size) \
    X(vocab_size) X(position_rows) X(batch) X(sequence) X(tp) X(pp) X(dp) X(vpp) X(micro_batch) X(overlap_tp) \
    X(overlap_dp) X(matrix_rate) X(memory_bandwidth) X(memory_capacity) X(vector_rate) X(l2_bandwidth) \
    X(l2_capacity) X(compute_units) X(scale_up_size) X(scale_up_bandwidth) X(scale_up_latency) \
    X(scale_out_bandwidth) X(scale_out_latency) X(launch_latency) X(matrix_efficiency) X(vector_efficiency) \
    X(memory_efficiency) X(l2_efficiency) X(scale_up_efficiency) X(scale_out_efficiency) X(scale_up_half_bytes) \
    X(scale_out_half_bytes) X(activation_bytes) X(weight_bytes) X(gradient_bytes) X(optimizer_bytes) X(mask_bytes) \
    X(statistic_bytes) X(index_bytes) X(tile_long) X(tile_wide) X(tile_narrow) X(workspace_bytes)

#define FUNCTION static inline __attribute__((always_inline)) double

FUNCTION max2(double a, double b) { return a > b ? a : b; }
FUNCTION min2(double a, double b) { return a < b ? a : b; }
FUNCTION ceil_div(double a, double b) { return ceil(a / b); }
FUNCTION present(double a) { return a > 1.0 ? 1.0 : 0.0; }
FUNCTION ring_share(double ranks) { return (ranks - 1.0) / ranks; }

/* One tile shape: compute in whole waves, or bytes through L2. */
FUNCTION tiled(double m, double n, double k, double g, double high, double wide, double units, double rate,
               double l2_rate, double w) {
    double waves = ceil_div(g * ceil_div(m, high) * ceil_div(n, wide), units);
    double compute = waves * (2.0 * high * wide * k * units) / rate;
    double l2 = g * w * m * n * k * (1.0 / high + 1.0 / wide) / l2_rate;
    return max2(compute, l2);
}

FUNCTION better(double started, double moved, double hops) {
    return min2(max2(started, moved + hops), 2.0 * moved + hops);
}

/* An all-gather or a reduce-scatter inside one tier; times `ways` = 2 it is an all-reduce. */
FUNCTION tier(double ways, double message, double ranks, double rate, double latency, double half) {
    double share = ways * ring_share(ranks) / rate;
    return better(share * (message + half), share * message, ways * log2(ranks) * latency);
}

FUNCTION step(
#define X(name) double name,
    INPUTS(X)
#undef X
    double *slack) {
    /* Rates and sizes on one device. */
    const double w = activation_bytes;
    const double F = matrix_rate * matrix_efficiency, V = vector_rate * vector_efficiency;
    const double M = memory_bandwidth * memory_efficiency, L = l2_bandwidth * l2_efficiency;
    const double up = scale_up_bandwidth * scale_up_efficiency, out = scale_out_bandwidth * scale_out_efficiency;
    const double tokens = micro_batch * sequence, stream = tokens / tp;
    const double heads = num_attention_heads / tp, kv_heads = ceil_div(num_key_value_heads, tp);
    const double inner = intermediate_size / tp, vocabulary = ceil_div(vocab_size, tp);
    const double qkv = (heads + 2.0 * kv_heads) * head_dim, width = heads * head_dim;
    const double n_stream = stream * hidden_size, groups = micro_batch * heads;
    const double scores = micro_batch * heads * sequence * sequence;
    const double micro_batches = batch / (micro_batch * dp), message = tokens * hidden_size * w;

#define TILE(m, n, k, g, high, wide) tiled(m, n, k, g, high, wide, compute_units, F, L, w)
#define MATMUL(m, n, k, g, right, result) \
    (launch_latency + \
     max2(max2((g) * ((m) * (k) * w + (k) * (n) * (right) + (m) * (n) * (result)), \
               2.0 * (g) * (m) * (n) * (k) * w * sqrt(w / l2_capacity)) / M, \
          min2(min2(TILE(m, n, k, g, tile_long, tile_wide), TILE(m, n, k, g, tile_wide, tile_long)), \
               min2(TILE(m, n, k, g, tile_wide, tile_wide), TILE(m, n, k, g, tile_narrow, tile_wide)))))
#define LINEAR(m, n, k) MATMUL(m, n, k, 1.0, weight_bytes, w)
#define WEIGHT(fan_in, fan_out) MATMUL(fan_in, fan_out, tokens, 1.0, w, 2.0 * gradient_bytes)
#define STREAM(bytes, elements, flops) (launch_latency + max2((bytes) / M, (elements) * (flops) / V))
#define OVERLAP(work, transfer, part) max2(transfer, (work) + (1.0 - (part)) * (transfer))
#define INSIDE(stride) ceil_div(scale_up_size, stride)

    /* Collectives: hierarchical or pipelined over both tiers. */
#define GATHER(bytes, qi, qo) \
    min2(tier(1.0, bytes, qi, up, scale_up_latency, scale_up_half_bytes) + \
             tier(1.0, (bytes) / (qi), qo, out, scale_out_latency, scale_out_half_bytes), \
         better(max2(ring_share(qi) * ((bytes) + scale_up_half_bytes) / up, \
                     ring_share(qo) * ((bytes) / (qi) + scale_out_half_bytes) / out), \
                max2(ring_share(qi) * (bytes) / up, ring_share(qo) * ((bytes) / (qi)) / out), \
                log2(qi) * scale_up_latency + log2(qo) * scale_out_latency))
#define ALL_REDUCE(bytes, qi, qo) \
    min2(2.0 * tier(1.0, bytes, qi, up, scale_up_latency, scale_up_half_bytes) + \
             tier(2.0, (bytes) / (qi), qo, out, scale_out_latency, scale_out_half_bytes), \
         better(2.0 * max2(ring_share(qi) * ((bytes) + scale_up_half_bytes) / up, \
                           ring_share(qo) * ((bytes) / (qi) + scale_out_half_bytes) / out), \
                2.0 * max2(ring_share(qi) * (bytes) / up, ring_share(qo) * ((bytes) / (qi)) / out), \
                2.0 * (log2(qi) * scale_up_latency + log2(qo) * scale_out_latency)))
    const double t_in = min2(tp, INSIDE(1.0)), t_out = ceil_div(tp, INSIDE(1.0));
    const double gather = GATHER(message, t_in, t_out); /* a reduce-scatter takes as long */

    /* A layer, forward. */
    const double norm = STREAM(2.0 * n_stream * w, n_stream, 8.0);
    const double norm_back = STREAM(5.0 * n_stream * w, n_stream, 14.0);
    const double residual = STREAM(n_stream * (3.0 * w + mask_bytes), n_stream, 3.0);
    const double drop_stream = STREAM(n_stream * (2.0 * w + mask_bytes), n_stream, 2.0);
    const double add_stream = STREAM(3.0 * n_stream * w, n_stream, 1.0);
    const double wide_scores = MATMUL(sequence, sequence, head_dim, groups, w, w);
    const double long_scores = MATMUL(sequence, head_dim, sequence, groups, w, w);
    const double drop_scores = STREAM(scores * (2.0 * w + mask_bytes), scores, 2.0);
    const double core = wide_scores + STREAM(2.0 * scores * w, scores, 6.0) + drop_scores + long_scores;
    const double n_inner = tokens * inner;
    const double forward_layer = 2.0 * (norm + gather + residual + gather) + LINEAR(tokens, qkv, hidden_size) + core +
                                 LINEAR(tokens, hidden_size, width) + LINEAR(tokens, inner, hidden_size) +
                                 STREAM(2.0 * n_inner * w, n_inner, 8.0) + LINEAR(tokens, hidden_size, inner);

    /* A layer, backward. */
#define BIAS(elements) STREAM((elements) * w, elements, 1.0)
    const double row_down =
        LINEAR(tokens, inner, hidden_size) + WEIGHT(inner, hidden_size) + BIAS(stream * hidden_size);
    const double row_output =
        LINEAR(tokens, width, hidden_size) + WEIGHT(width, hidden_size) + BIAS(stream * hidden_size);
    const double column_up = OVERLAP(LINEAR(tokens, hidden_size, inner), gather, overlap_tp) +
                             OVERLAP(WEIGHT(hidden_size, inner), gather, overlap_tp) + BIAS(tokens * inner);
    const double column_qkv = OVERLAP(LINEAR(tokens, hidden_size, qkv), gather, overlap_tp) +
                              OVERLAP(WEIGHT(hidden_size, qkv), gather, overlap_tp) + BIAS(tokens * qkv);
    const double core_back =
        wide_scores + 3.0 * long_scores + drop_scores + STREAM(3.0 * scores * w, scores, 4.0);
    const double backward_layer = 2.0 * (drop_stream + add_stream + gather + norm_back) + row_down +
                                  STREAM(3.0 * n_inner * w, n_inner, 12.0) + column_up + row_output + core +
                                  core_back + column_qkv;

    /* Pipeline stages. */
    const double p_span = ceil_div(pp, INSIDE(tp * dp));
    const double send = max2(present(pp) * (message / tp / up + scale_up_latency),
                             present(p_span) * (message / tp / out + scale_out_latency));
    const double forward = forward_layer * num_layers / pp + send * vpp;
    const double backward = backward_layer * num_layers / pp + send * vpp;

    /* The ends of the model. */
    const double table = tokens * hidden_size;
    const double embedding = STREAM(tokens * (2.0 * hidden_size * w + index_bytes), 0.0, 0.0) + gather + add_stream +
                             drop_stream + drop_stream + gather +
                             STREAM(table * (w + 2.0 * gradient_bytes), table, 1.0);
    const double logits = tokens * vocabulary;
    const double head =
        norm + gather + LINEAR(tokens, vocabulary, hidden_size) +
        STREAM(logits * (w + 9.0 * statistic_bytes), logits, 6.0) +
        3.0 * ALL_REDUCE(tokens * statistic_bytes, t_in, t_out) +
        STREAM(logits * (w + 3.0 * statistic_bytes), logits, 2.0) +
        OVERLAP(LINEAR(tokens, hidden_size, vocabulary), gather, overlap_tp) +
        OVERLAP(WEIGHT(hidden_size, vocabulary), gather, overlap_tp) + norm_back;
    const double alone = (1.0 - present(pp)) * (embedding + head);
    const double ends = (micro_batches - 1.0) * max2(max2(embedding, head), alone) + embedding + head;

    /* Parameters, gradients, optimizer. */
    const double layer_parameters = 2.0 * hidden_size * head_dim * (heads + kv_heads) + 2.0 * hidden_size * inner +
                                    4.0 * hidden_size + qkv + hidden_size + inner + hidden_size;
    const double in_layers = num_layers / pp * layer_parameters;
    const double first_end = (vocabulary + position_rows) * hidden_size, last_norm = 2.0 * hidden_size;
    const double in_ends = max2(first_end + (1.0 - present(pp)) * last_norm,
                                present(pp) * (last_norm + hidden_size * vocabulary));
    const double parameters = in_layers + in_ends;
    const double d_in = min2(dp, INSIDE(tp)), d_out = ceil_div(dp, INSIDE(tp));
    const double reduction = ALL_REDUCE(parameters * gradient_bytes, d_in, d_out);
    const double pair = 1.0 + present(pp), apart = tp * dp * max2(1.0, pp - 1.0);
    const double tied = ALL_REDUCE(vocabulary * hidden_size * gradient_bytes, min2(pair, INSIDE(apart)),
                                   ceil_div(pair, INSIDE(apart)));
    const double update = STREAM(3.0 * parameters * gradient_bytes, parameters, 3.0) +
                          STREAM(parameters * (gradient_bytes + 2.0 * optimizer_bytes + weight_bytes), parameters, 14.0) +
                          STREAM(parameters * gradient_bytes, 0.0, 0.0);

    /* Memory of the fullest device. */
    const double bubble = (pp - 1.0) / vpp, held = min2(micro_batches, pp + bubble);
    const double kept = 4.0 * n_stream * w + tokens * qkv * w + tokens * width * w + 2.0 * tokens * inner * w +
                        2.0 * n_stream * mask_bytes;
    const double last = 2.0 * n_stream * w + logits * statistic_bytes;
    const double first_stage =
        kept * num_layers / pp * held + held * n_stream * mask_bytes + (1.0 - present(pp)) * last;
    const double last_stage = present(pp) * (kept * num_layers / pp + last);
    *slack = memory_capacity - (parameters * (weight_bytes + gradient_bytes + optimizer_bytes) +
                                max2(first_stage, last_stage) + scores * (2.0 * w + mask_bytes) + workspace_bytes);

    return forward + (micro_batches - 1.0) * (forward + backward) + ends + OVERLAP(backward, reduction, overlap_dp) +
           (forward + backward) * bubble + tied + update;
}

/* Time and slack of scattered points, each input a column in the order above. */
void scattered(const double *const *columns, long count, double *restrict time, double *restrict slack) {
    long k = 0;
#define X(name) const double *restrict const c_##name = columns[k++];
    INPUTS(X)
#undef X
    for (long i = 0; i < count; i++) {
#define X(name) const double name = c_##name[i];
        INPUTS(X)
#undef X
        double left;
#define X(name) name,
        time[i] = step(INPUTS(X) & left);
#undef X
        slack[i] = left;
    }
}

/* The smallest time with slack >= 0 and its flat index in loop order; -1 where nothing fits. */
void best(const double *restrict inputs, const double *restrict a0, const double *restrict a1,
          const double *restrict a2, const double *restrict a3, long n0, long n1, long n2, long n3, double *time,
          long *where) {
    long k = 0;
#define X(name) const double in_##name = inputs[k++];
    INPUTS(X)
#undef X
    double least = INFINITY;
    long at = -1;
#pragma omp parallel
    {
        double *restrict t = malloc(2 * n3 * sizeof(double)), *restrict s = t + n3;
        double mine = INFINITY;
        long here = -1;
#pragma omp for schedule(dynamic)
        for (long i0 = 0; i0 < n0; i0++)
            for (long i1 = 0; i1 < n1; i1++)
                for (long i2 = 0; i2 < n2; i2++) {
                    for (long i3 = 0; i3 < n3; i3++) {
#define X(name) double name = in_##name;
                        INPUTS(X)
#undef X
                        AXIS0 = a0[i0], AXIS1 = a1[i1], AXIS2 = a2[i2], AXIS3 = a3[i3];
                        double slack;
#define X(name) name,
                        t[i3] = step(INPUTS(X) & slack);
#undef X
                        s[i3] = slack;
                    }
                    long hits = 0;
                    for (long i3 = 0; i3 < n3; i3++) hits += (t[i3] < mine) & (s[i3] >= 0.0);
                    if (hits)
                        for (long i3 = 0; i3 < n3; i3++)
                            if (t[i3] < mine && s[i3] >= 0.0)
                                mine = t[i3], here = ((i0 * n1 + i1) * n2 + i2) * n3 + i3;
                }
#pragma omp critical
        if (here >= 0 && (mine < least || (mine == least && here < at))) least = mine, at = here;
        free(t);
    }
    *time = least, *where = at;
}
