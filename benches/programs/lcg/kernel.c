#include <stdint.h>

/* The constant trip count lets gcc vectorise across i. Unsigned products wrap; the remainder takes the sign of the divisor, as in
   Python. */
void run(int32_t *restrict x, int64_t n) {
#pragma omp parallel for simd schedule(dynamic, 512)
    for (int64_t i = 0; i < n; i++) {
        int32_t v = x[i];
        for (int32_t k = 0; k < 1000; k++) {
            v = (int32_t)(1664525u * (uint32_t)v + 1013904223u) % 2147483647;
            v += v < 0 ? 2147483647 : 0;
        }
        x[i] = v;
    }
}
