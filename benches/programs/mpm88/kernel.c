#include <stdint.h>

static const float dt = 2e-4f, density = 1.0f, stiffness = 400.0f, gravity = 9.8f;
enum { border = 3 };

/* The cell whose 3 x 3 block a particle lies in, its place there, and the weights of the rows and columns. */
static inline void stencil(const float *x, float inv_dx, int64_t base[2], float inside[2], float w[3][2]) {
    for (int a = 0; a < 2; a++) {
        float scaled = x[a] * inv_dx;
        base[a] = (int32_t)(scaled - 0.5f);
        float f = inside[a] = scaled - (float)base[a];
        w[0][a] = 0.5f * (1.5f - f) * (1.5f - f);
        w[1][a] = 0.75f - (f - 1.0f) * (f - 1.0f);
        w[2][a] = 0.5f * (f - 0.5f) * (f - 0.5f);
    }
}

static inline void add(float *cell, float amount) {
#pragma omp atomic
    *cell += amount;
}

void run(float *restrict x, int64_t n, int64_t x1, float *restrict v, int64_t v0, int64_t v1, float *restrict C,
         int64_t c0, int64_t c1, int64_t c2, float *restrict J, int64_t j0, float *restrict grid_v, int64_t rows,
         int64_t columns, int64_t g2, float *restrict grid_m, int64_t m0, int64_t m1) {
    const float inv_dx = (float)rows, dx = 1.0f / inv_dx, volume = dx * dx * 0.25f, mass = volume * density;
#pragma omp parallel for
    for (int64_t c = 0; c < rows * columns; c++)
        grid_v[2 * c] = grid_v[2 * c + 1] = grid_m[c] = 0.0f;
#pragma omp parallel for
    for (int64_t p = 0; p < n; p++) {
        int64_t base[2];
        float inside[2], w[3][2];
        stencil(x + 2 * p, inv_dx, base, inside, w);
        const float stress = -dt * 4.0f * stiffness * volume * (J[p] - 1.0f) * inv_dx * inv_dx;
        const float *A = C + 4 * p;
        const float a00 = stress + mass * A[0], a01 = mass * A[1], a10 = mass * A[2], a11 = stress + mass * A[3];
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) {
                const float d0 = ((float)i - inside[0]) * dx, d1 = ((float)j - inside[1]) * dx;
                const float weight = w[i][0] * w[j][1];
                const int64_t cell = (base[0] + i) * columns + base[1] + j;
                add(&grid_v[2 * cell], weight * (mass * v[2 * p] + a00 * d0 + a01 * d1));
                add(&grid_v[2 * cell + 1], weight * (mass * v[2 * p + 1] + a10 * d0 + a11 * d1));
                add(&grid_m[cell], weight * mass);
            }
    }
#pragma omp parallel for
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            const int64_t cell = i * columns + j;
            float v0 = grid_v[2 * cell], v1 = grid_v[2 * cell + 1];
            if (grid_m[cell] > 0.0f) {
                v0 /= grid_m[cell];
                v1 /= grid_m[cell];
            }
            v1 -= dt * gravity;
            if ((i < border && v0 < 0.0f) || (i >= rows - border && v0 > 0.0f))
                v0 = 0.0f;
            if ((j < border && v1 < 0.0f) || (j >= columns - border && v1 > 0.0f))
                v1 = 0.0f;
            grid_v[2 * cell] = v0;
            grid_v[2 * cell + 1] = v1;
        }
#pragma omp parallel for
    for (int64_t p = 0; p < n; p++) {
        int64_t base[2];
        float inside[2], w[3][2];
        stencil(x + 2 * p, inv_dx, base, inside, w);
        float s[2] = {0.0f, 0.0f}, B[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) {
                const int64_t cell = (base[0] + i) * columns + base[1] + j;
                const float weight = w[i][0] * w[j][1], d[2] = {(float)i - inside[0], (float)j - inside[1]};
                for (int a = 0; a < 2; a++) {
                    const float here = weight * grid_v[2 * cell + a];
                    s[a] += here;
                    for (int b = 0; b < 2; b++)
                        B[a][b] += 4.0f * inv_dx * here * d[b];
                }
            }
        for (int a = 0; a < 2; a++) {
            v[2 * p + a] = s[a];
            x[2 * p + a] += dt * s[a];
            for (int b = 0; b < 2; b++)
                C[4 * p + 2 * a + b] = B[a][b];
        }
        J[p] *= 1.0f + dt * (B[0][0] + B[1][1]);
    }
}
