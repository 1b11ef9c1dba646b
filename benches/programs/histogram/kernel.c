#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void run(const int32_t *keys, int64_t n, int32_t *counts, int64_t bins) {
    memset(counts, 0, (size_t)bins * sizeof *counts);
#pragma omp parallel
    {
        int32_t *mine = calloc((size_t)bins, sizeof *mine);
#pragma omp for nowait
        for (int64_t i = 0; i < n; i++) mine[keys[i]]++;
#pragma omp critical
        for (int64_t b = 0; b < bins; b++) counts[b] += mine[b];
        free(mine);
    }
}
