import octants as qd


@qd.kernel
def run():
    for i in discs:
        disc = discs[i]
        cell = qd.min(qd.cast(disc.x * cells, qd.i32), cells - 1)
        force = qd.Vector([0.0, 0.0])
        for row in range(qd.max(cell[0] - 1, 0), qd.min(cell[0] + 2, cells)):
            for column in range(qd.max(cell[1] - 1, 0), qd.min(cell[1] + 2, cells)):
                for k in range(counts[row, column]):
                    j = members[row, column, k]
                    if j != i:
                        other = discs[j]
                        apart = disc.x - other.x
                        distance = apart.norm(1e-18)
                        overlap = disc.radius + other.radius - distance
                        if overlap > 0:
                            normal = apart / distance
                            speed = (disc.v - other.v).dot(normal)
                            force += normal * (1000.0 * overlap - 0.5 * speed)
        forces[i] = force


def prepare(data, fill):
    global discs, counts, members, forces, cells
    cells = data["counts"].shape[0]
    disc = qd.types.struct(x=qd.types.vector(2, qd.f32), v=qd.types.vector(2, qd.f32), radius=qd.f32)
    discs = disc.field(shape=data["radius"].shape)
    counts, members = (qd.field(qd.i32, shape=data[name].shape) for name in ("counts", "members"))
    forces = qd.Vector.field(2, qd.f32, shape=data["radius"].shape)
    if fill:
        for name in ("x", "v", "radius"):
            getattr(discs, name).from_numpy(data[name])
        counts.from_numpy(data["counts"])
        members.from_numpy(data["members"])
    return run, (), lambda returned: {"force": forces.to_numpy()}
