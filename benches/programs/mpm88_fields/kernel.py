import octants as qd

density = 1.0
stiffness = 400.0
gravity = 9.8
border = 3


@qd.kernel
def run():
    for i, j in grid_m:
        grid_v[i, j] = [0.0, 0.0]
        grid_m[i, j] = 0.0
    for p in x:
        scaled = x[p] * inv_dx
        base = qd.cast(scaled - 0.5, qd.i32)
        inside = scaled - base
        w = [0.5 * (1.5 - inside) ** 2, 0.75 - (inside - 1.0) ** 2, 0.5 * (inside - 0.5) ** 2]
        stress = -dt * 4.0 * stiffness * volume * (J[p] - 1.0) * inv_dx * inv_dx
        affine = qd.Matrix([[stress, 0.0], [0.0, stress]]) + mass * C[p]
        momentum = mass * v[p]
        for i, j in qd.static(qd.ndrange(3, 3)):
            offset = qd.Vector([i, j])
            distance = (offset - inside) * dx
            weight = w[i][0] * w[j][1]
            grid_v[base + offset] += weight * (momentum + affine @ distance)
            grid_m[base + offset] += weight * mass
    for i, j in grid_m:
        velocity = grid_v[i, j]
        if grid_m[i, j] > 0.0:
            velocity = velocity / grid_m[i, j]
        velocity[1] -= dt * gravity
        if i < border:
            velocity[0] = qd.max(velocity[0], 0.0)
        if i >= cells - border:
            velocity[0] = qd.min(velocity[0], 0.0)
        if j < border:
            velocity[1] = qd.max(velocity[1], 0.0)
        if j >= cells - border:
            velocity[1] = qd.min(velocity[1], 0.0)
        grid_v[i, j] = velocity
    for p in x:
        scaled = x[p] * inv_dx
        base = qd.cast(scaled - 0.5, qd.i32)
        inside = scaled - base
        w = [0.5 * (1.5 - inside) ** 2, 0.75 - (inside - 1.0) ** 2, 0.5 * (inside - 0.5) ** 2]
        velocity = qd.Vector([0.0, 0.0])
        gradient = qd.Matrix([[0.0, 0.0], [0.0, 0.0]])
        for i, j in qd.static(qd.ndrange(3, 3)):
            offset = qd.Vector([i, j])
            here = w[i][0] * w[j][1] * grid_v[base + offset]
            velocity += here
            gradient += 4.0 * inv_dx * here.outer_product(offset - inside)
        v[p] = velocity
        x[p] += dt * velocity
        J[p] *= 1.0 + dt * gradient.trace()
        C[p] = gradient


def prepare(data, fill):
    """The fields and the sizes that follow from them are globals of the kernel."""
    global x, v, C, J, grid_v, grid_m, cells, dt, inv_dx, dx, volume, mass
    particles, cells = len(data["J"]), len(data["grid_m"])
    dt = min(2e-4, 0.0256 / cells)
    inv_dx = float(cells)
    dx = 1.0 / inv_dx
    volume = dx * dx * 0.25
    mass = volume * density
    x = qd.Vector.field(2, qd.f32, shape=particles)
    v = qd.Vector.field(2, qd.f32, shape=particles)
    C = qd.Matrix.field(2, 2, qd.f32, shape=particles)
    J = qd.field(qd.f32, shape=particles)
    grid_v = qd.Vector.field(2, qd.f32, shape=(cells, cells))
    grid_m = qd.field(qd.f32, shape=(cells, cells))
    fields = {"x": x, "v": v, "C": C, "J": J, "grid_v": grid_v, "grid_m": grid_m}
    if fill:
        for name, field in fields.items():
            field.from_numpy(data[name])
    return run, (), lambda returned: {name: field.to_numpy() for name, field in fields.items()}
