#include <math.h>
#include <stdint.h>

void run(const float *restrict x, int64_t n, const float *restrict y, int64_t n1, const float *restrict z, int64_t n2,
         const float *restrict m, int64_t n3, float *restrict ax, int64_t n4, float *restrict ay, int64_t n5,
         float *restrict az, int64_t n6) {
    (void)n1, (void)n2, (void)n3, (void)n4, (void)n5, (void)n6;
#pragma omp parallel for schedule(dynamic, 64)
    for (int64_t i = 0; i < n; i++) {
        float sx = 0.0f, sy = 0.0f, sz = 0.0f;
        const float xi = x[i], yi = y[i], zi = z[i];
#pragma omp simd reduction(+ : sx, sy, sz)
        for (int64_t j = 0; j < n; j++) {
            float dx = x[j] - xi, dy = y[j] - yi, dz = z[j] - zi;
            float inverse = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + 1e-4f);
            float f = m[j] * inverse * inverse * inverse;
            sx += dx * f;
            sy += dy * f;
            sz += dz * f;
        }
        ax[i] = sx;
        ay[i] = sy;
        az[i] = sz;
    }
}
