from harness.bindings import language_value

import octants as qd

Vector = qd.types.ndarray(dtype=qd.f32, ndim=1)


@qd.data_oriented
class Part:
    def __init__(self, values, fill, number):
        self.array = language_value(qd, values, fill=fill)
        self.field = qd.field(qd.f32, shape=16)
        self.number = number
        self.is_used = True
        self.is_scaled = False
        self.name = f"part {number}"
        if fill:
            self.field.from_numpy(values)


@qd.data_oriented
class Whole:
    def __init__(self, data, fill):
        self.a = language_value(qd, data["a"], fill=fill)
        self.b = language_value(qd, data["b"], fill=fill)
        self.first = Part(data["a"], fill, 1)
        self.second = Part(data["b"], fill, 2)
        self.count = 16
        self.step = 3.0
        self.shift = 1.0
        self.has_parts = True
        self.has_shift = True
        self.is_debugged = False
        for n in range(8):
            setattr(self, f"unused{n}", n)

    @qd.func
    def of_parts(self, i):
        return self.first.array[i] + self.first.field[i] + self.second.array[i] + self.second.field[i]

    @qd.kernel
    def run(self, d: Vector):
        for i in range(self.count):
            value = self.a[i] + self.b[i]
            if qd.static(self.has_parts):
                value += self.of_parts(i)
            if qd.static(self.first.is_used and not self.second.is_scaled):
                value += self.second.number * self.step
            if qd.static(self.has_shift and not self.is_debugged):
                value += self.shift * self.first.number
            d[i] = value


def prepare(data, fill):
    whole, d = Whole(data, fill), language_value(qd, data["d"], fill=fill)
    return lambda d: whole.run(d), (d,), lambda returned: {"d": d.to_numpy()}
