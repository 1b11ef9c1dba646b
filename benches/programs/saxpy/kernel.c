#include <stdint.h>

void run(float a, const float *restrict x, int64_t n, float *restrict y, int64_t m) {
    (void)m;
#pragma omp parallel for simd
    for (int64_t i = 0; i < n; i++)
        y[i] = a * x[i] + y[i];
}
