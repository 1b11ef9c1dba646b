import octants as qd

vector = qd.types.ndarray(dtype=qd.i32, ndim=1)


@qd.kernel
def run(keys: vector, counts: vector):
    for i in range(counts.shape[0]):
        counts[i] = 0
    for i in range(keys.shape[0]):
        counts[keys[i]] += 1
