import octants as qd


@qd.kernel
def run(image: qd.types.ndarray(dtype=qd.i32, ndim=2), cx: qd.f32, cy: qd.f32):
    for i, j in qd.ndrange(image.shape[0], image.shape[1]):
        scale = 3.0 / image.shape[0]
        x = j * scale - 1.5
        y = i * scale - 1.5
        n = 0
        while x * x + y * y < 4.0 and n < 256:
            t = x * x - y * y + cx
            y = 2.0 * x * y + cy
            x = t
            n += 1
        image[i, j] = n
