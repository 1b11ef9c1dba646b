#include <stdint.h>

void run(int32_t *restrict image, int64_t rows, int64_t columns, float cx, float cy) {
    const float scale = 3.0f / (float)rows;
#pragma omp parallel for schedule(dynamic, 4)
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            float x = (float)j * scale - 1.5f, y = (float)i * scale - 1.5f;
            int32_t n = 0;
            while (x * x + y * y < 4.0f && n < 256) {
                float t = x * x - y * y + cx;
                y = 2.0f * x * y + cy;
                x = t;
                n++;
            }
            image[i * columns + j] = n;
        }
}
