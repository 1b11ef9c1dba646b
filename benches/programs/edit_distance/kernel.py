import octants as qd


@qd.kernel
def run(
    a: qd.types.ndarray(dtype=qd.i32, ndim=1),
    b: qd.types.ndarray(dtype=qd.i32, ndim=1),
    table: qd.types.ndarray(dtype=qd.i32, ndim=2),
):
    n = a.shape[0]
    m = b.shape[0]
    for i in range(n + 1):
        table[i, 0] = i
    for j in range(m + 1):
        table[0, j] = j
    qd.loop_config(serialize=True)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            change = 1
            if a[i - 1] == b[j - 1]:
                change = 0
            table[i, j] = qd.min(table[i - 1, j] + 1, qd.min(table[i, j - 1] + 1, table[i - 1, j - 1] + change))
