/* `whole_tile_time` written by hand, over a grid of g x m x k x n: the fastest product whose panels outgrow L2.
 *
 * It is what bench_kernels.py holds a generated kernel against: loops and hoisting as one writes them, from the formula
 * on paper. max(waves of tiles of 2 T_m T_k k FLOPs on u units, bytes of the panels through L2), and panels >= capacity.
 */
#include <math.h>
#include <stdlib.h>

/* inputs: left_bytes right_bytes tile_rows tile_columns compute_units matrix_rate matrix_efficiency l2_bandwidth
 * l2_efficiency l2_capacity */
void best(const double *restrict inputs, const double *restrict groups, long n0, const double *restrict rows, long n1,
          const double *restrict inner, long n2, const double *restrict columns, long n3, double *time, long *where) {
    const double left = inputs[0], right = inputs[1], high = inputs[2], wide = inputs[3], units = inputs[4];
    const double per_flop = 1.0 / (inputs[5] * inputs[6]), per_byte = 1.0 / (inputs[7] * inputs[8]);
    const double capacity = inputs[9];
    const double of_k = 2.0 * high * wide * units * per_flop;
    double *across = malloc(n3 * sizeof(double)); /* columns of tiles */
    for (long j = 0; j < n3; j++) across[j] = ceil(columns[j] / wide);
    double least = INFINITY;
    long at = -1;
#pragma omp parallel
    {
        double mine = INFINITY;
        long here = -1;
        double *restrict waves = malloc(3 * n3 * sizeof(double)), *restrict bytes = waves + n3, *restrict t = bytes + n3;
#pragma omp for schedule(dynamic)
        for (long i0 = 0; i0 < n0; i0++)
            for (long i1 = 0; i1 < n1; i1++) {
                const double down = ceil(rows[i1] / high);
                for (long j = 0; j < n3; j++) {
                    waves[j] = ceil(groups[i0] * down * across[j] / units) * of_k;
                    bytes[j] = groups[i0] * (right * columns[j] * down + left * rows[i1] * across[j]);
                }
                for (long i2 = 0; i2 < n2; i2++) {
                    const double k = inner[i2];
                    long hits = 0;
                    for (long j = 0; j < n3; j++) {
                        const double compute = waves[j] * k, panels = bytes[j] * k, l2 = panels * per_byte;
                        t[j] = compute > l2 ? compute : l2;
                        hits += (t[j] < mine) & (panels - capacity >= 0.0);
                    }
                    if (hits)
                        for (long j = 0; j < n3; j++)
                            if (t[j] < mine && bytes[j] * k - capacity >= 0.0)
                                mine = t[j], here = ((i0 * n1 + i1) * n2 + i2) * n3 + j;
                }
            }
#pragma omp critical
        if (here >= 0 && (mine < least || (mine == least && here < at))) least = mine, at = here;
        free(waves);
    }
    free(across);
    *time = least, *where = at;
}
