import octants as qd

vector = qd.types.ndarray(dtype=qd.f32, ndim=1)


@qd.kernel
def run(x: vector, y: vector, z: vector, m: vector, ax: vector, ay: vector, az: vector):
    for i in range(x.shape[0]):
        sx = 0.0
        sy = 0.0
        sz = 0.0
        xi = x[i]
        yi = y[i]
        zi = z[i]
        for j in range(x.shape[0]):
            dx = x[j] - xi
            dy = y[j] - yi
            dz = z[j] - zi
            inverse = 1.0 / qd.sqrt(dx * dx + dy * dy + dz * dz + 1e-4)
            f = m[j] * inverse * inverse * inverse
            sx += dx * f
            sy += dy * f
            sz += dz * f
        ax[i] = sx
        ay[i] = sy
        az[i] = sz
