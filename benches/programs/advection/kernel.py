import octants as qd


@qd.func
def nearest(grid: qd.template(), i, j):
    last = grid.shape[0] - 1
    return grid[qd.max(0, qd.min(last, qd.cast(i, qd.i32))), qd.max(0, qd.min(last, qd.cast(j, qd.i32)))]


@qd.func
def mixed(a, b, part):
    return a + part * (b - a)


@qd.func
def sample(grid: qd.template(), at):
    i = qd.floor(at[0] - 0.5)
    j = qd.floor(at[1] - 0.5)
    x = at[0] - 0.5 - i
    y = at[1] - 0.5 - j
    low = mixed(nearest(grid, i, j), nearest(grid, i + 1, j), x)
    high = mixed(nearest(grid, i, j + 1), nearest(grid, i + 1, j + 1), x)
    return mixed(low, high, y)


@qd.kernel
def run(velocity: qd.template(), quantity: qd.template(), moved: qd.template()):
    for i, j in moved:
        start = qd.Vector([i + 0.5, j + 0.5])
        first = sample(velocity, start)
        second = sample(velocity, start - 0.5 * first)
        third = sample(velocity, start - 0.75 * second)
        end = start - (2.0 / 9.0 * first + 1.0 / 3.0 * second + 4.0 / 9.0 * third)
        moved[i, j] = sample(quantity, end)


def prepare(data, fill):
    velocity = qd.Vector.field(2, qd.f32, shape=data["quantity"].shape)
    quantity, moved = (qd.field(qd.f32, shape=data["quantity"].shape) for _ in range(2))
    if fill:
        velocity.from_numpy(data["velocity"])
        quantity.from_numpy(data["quantity"])
    return run, (velocity, quantity, moved), lambda returned: {"moved": moved.to_numpy()}
