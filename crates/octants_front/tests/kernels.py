import octants as oc


@oc.kernel
def saxpy(a: oc.f32, x: oc.types.ndarray(), y: oc.types.ndarray()):
    """y = a x + y"""
    for i in x:
        y[i] += a * x[i]


@oc.kernel
def sum(x: oc.types.ndarray()) -> oc.f32:
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
    return total


@oc.kernel
def stencil(a: oc.types.ndarray(), b: oc.types.ndarray()):
    n, m = a.shape
    for i, j in oc.ndrange((1, n - 1), (1, m - 1)):
        b[i, j] = 0.2 * (a[i, j] + a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])


def norm2(x, y):
    return x * x + y * y


@oc.kernel
def julia(pixels: oc.types.ndarray(), t: oc.f32):
    n = pixels.shape[0]
    for i, j in pixels:
        cx, cy = -0.8, oc.cos(t) * 0.2
        x = i / n - 1.0
        y = j / n - 0.5
        iterations = 0
        while norm2(x, y) < 400.0 and iterations < 50:
            x, y = x * x - y * y + cx, 2.0 * x * y + cy
            iterations += 1
        pixels[i, j] = 1.0 - iterations * 0.02


@oc.kernel
def nbody(position: oc.types.ndarray(), velocity: oc.types.ndarray(), dt: oc.f32):
    for i in range(position.shape[0]):
        ax = 0.0
        ay = 0.0
        for j in range(position.shape[0]):
            if i != j:
                dx = position[j, 0] - position[i, 0]
                dy = position[j, 1] - position[i, 1]
                inverse = oc.rsqrt(dx * dx + dy * dy + 1e-4)
                ax += dx * inverse**3
                ay += dy * inverse**3
        velocity[i, 0] += ax * dt
        velocity[i, 1] += ay * dt


@oc.kernel
def lcg(x: oc.types.ndarray(), steps: oc.i32):
    for i in x:
        state = x[i]
        for _ in range(steps):
            state = state * oc.u32(1664525) + oc.u32(1013904223)
        x[i] = state


@oc.kernel
def exits(limit: oc.i32) -> oc.i32:
    count = 0
    oc.loop_config(serialize=True)
    for k in range(100):
        if k % 2 == 0:
            continue
        if k > limit:
            break
        if k % 3 == 0:
            if k % 5 == 0:
                continue
            count += 100
        count += 1
    return count


def bump(v, by=10):
    v += by
    return v


def store_into(target: oc.template(), v: oc.i32):
    target = v


def both(v) -> tuple[oc.i32, oc.i32]:
    return v * 1000, 3.7


@oc.kernel
def calls(n: oc.i32) -> oc.i32:
    copy = n
    bumped = bump(copy)
    thousand, small = both(v=copy)
    result = 0
    store_into(result, bumped * 10 + small)
    return thousand + result


@oc.kernel
def statics(n: oc.i32, option: oc.template()) -> oc.i32:
    total = 0
    for weight in oc.static(WEIGHTS):
        total += weight * n
    for k in oc.static(range(10)):
        if oc.static(k > 1):
            break
        if oc.static(k == 0):
            continue
        total += 100
    if oc.static(option is not None):
        total += option
    else:
        pass
    return total


@oc.kernel
def checked(x: oc.types.ndarray()):
    for i, j in x:
        assert i < 5, f"row {i} of {{}} is too far"
        x[i, j + 1] = i


@oc.kernel
def search(n: oc.i32) -> oc.i32:
    found = 0
    for t in range(n):
        for i, j in grid:
            if grid[i, j] > t:
                found += i
                break
    return found


@oc.kernel
def blur():
    for i, j in grid:
        blurred[i, j] = grid[i - 1, j] + grid[i, j]


@oc.kernel
def swap_entries(f: oc.template()):
    for i in f:
        f[i] = [f[i].y, f[i].x]


@oc.kernel
def branches(a: oc.types.ndarray(dtype=oc.f32, ndim=1), b: oc.types.ndarray(dtype=oc.f32, ndim=1)):
    """Blocks, two of them by a static loop, one empty, one with a serial loop and a variable."""
    for k in oc.static(range(2)):
        with oc.stream_parallel():
            a[k] = 1.0
    oc.static_assert(True)
    with oc.stream_parallel():
        pass
    with oc.stream_parallel():
        count = 0
        oc.loop_config(serialize=True)
        for i in range(3):
            count += i
        for i in range(b.shape[0]):
            b[i] = count
