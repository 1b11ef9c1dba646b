import octants as qd


@qd.kernel
def run(place: qd.template(), force: qd.template()):
    for i in force:
        force[i] = [0.0, 0.0]
    for i in place:
        p = place[i]
        for j in range(place.shape[0]):
            if i != j:
                d = place[j] - p
                inverse = 1.0 / qd.sqrt(d.dot(d) + 1e-3)
                force[i] += inverse**3 * d / place.shape[0]


def prepare(data, fill):
    n = len(data["place"])
    place, force = (qd.Vector.field(2, qd.f32, shape=n) for _ in range(2))
    if fill:
        place.from_numpy(data["place"])
    return run, (place, force), lambda returned: {"force": force.to_numpy()}
