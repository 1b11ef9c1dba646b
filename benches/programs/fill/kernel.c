#include <stdint.h>

void run(float *restrict x, int64_t n, float value) {
#pragma omp parallel for simd
    for (int64_t i = 0; i < n; i++)
        x[i] = value;
}
