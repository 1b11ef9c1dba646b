"""Structs in kernels, on every device: values, members, methods, parameters and results."""

import math

import numpy as np
import pytest

import octants as oc

pytestmark = [pytest.mark.host_access, pytest.mark.sanitizer_core]

vec2 = oc.types.vector(2, oc.f32)
vec3 = oc.types.vector(3, oc.f32)


@oc.dataclass
class Sphere:
    center: vec3
    radius: oc.f32

    @oc.func
    def area(self):
        return 4 * math.pi * self.radius**2

    @oc.func
    def grow(self, by: oc.f32):
        self.radius += by
        self.center.x = by

    def scaled_area(self, factor):
        return self.area() * factor


Particle = oc.types.struct(pos=vec2, mass=oc.f32, ball=Sphere, tag=oc.i32)


def test_members_are_read_and_written(arch):
    @oc.kernel
    def k(x: oc.f32) -> (oc.f32, vec2, oc.f32, oc.i32):
        p = Particle(pos=vec2(1, 2), mass=x, tag=3)
        p.pos.y += 5
        p.pos[0] = x
        p.ball.radius = 2.5
        p["mass"] *= 2
        q = p
        q.pos = vec2(0)
        q.tag = 7
        p.tag += q.tag
        return p.mass, p.pos, p.ball.radius, p.tag

    mass, pos, radius, tag = k(1.5)
    assert (mass, pos.to_list(), radius, tag) == (3, [1.5, 7], 2.5, 10)


def test_methods_change_their_receiver(arch):
    @oc.kernel
    def k() -> (oc.f32, oc.f32, vec3, oc.f32):
        s = Sphere(vec3(0), 1.0)
        before = s.area()
        s.grow(1.0)
        return before, s.area(), s.center, s.scaled_area(0.5)

    before, after, center, half = k()
    np.testing.assert_allclose([before, after, half], [4 * math.pi, 16 * math.pi, 8 * math.pi], rtol=1e-6)
    assert center.to_list() == [1, 0, 0]


def test_parameters_and_results(arch):
    @oc.kernel
    def k(p: Particle, s: Sphere) -> Particle:
        r = p
        r.ball = s
        r.ball.grow(1.0)
        r.mass += p.ball.radius
        return r

    p = Particle(pos=[1, 2], mass=0.5, ball=Sphere(vec3(1), 4.0), tag=9)
    r = k(p, Sphere(radius=2.0))
    assert r.pos.to_list() == [1, 2] and r.mass == 4.5 and r.tag == 9
    assert r.ball.radius == 3 and r.ball.center.to_list() == [1, 0, 0]
    assert p.ball.radius == 4
    with pytest.raises(oc.OctantsRuntimeTypeError, match="cannot be converted"):
        k(p, 3.0)
    with pytest.raises(oc.OctantsRuntimeTypeError, match="cannot be converted"):
        k(Sphere(radius=1.0), Sphere(radius=1.0))


def test_funcs_take_copies(arch):
    @oc.func
    def moved(p: Particle, by: vec2) -> Particle:
        p.pos += by
        return p

    @oc.func
    def cleared(p: oc.template()):
        p.mass = 0

    @oc.kernel
    def k() -> (vec2, vec2, oc.f32):
        p = Particle(mass=1.0)
        q = moved(p, vec2(1, 2))
        cleared(p)
        return p.pos, q.pos, p.mass + q.mass

    old, new, mass = k()
    assert old.to_list() == [0, 0] and new.to_list() == [1, 2] and mass == 1


def test_structs_of_the_host_and_without_type(arch):
    scene = Particle(pos=[3, 4], mass=2.0)

    @oc.kernel
    def k() -> (oc.f32, oc.f32):
        s = oc.Struct(a=1, b=vec2(1, 2), c={"d": 2.5})
        s.a += 2
        s.c.d += 1
        t = oc.Struct({"a": 10, "b": vec2(5), "c": s.c})
        s = t
        return s.a + s.c.d + s.b.sum(), scene.pos.norm() * scene.mass + scene.ball.area()

    assert k() == (23.5, 10)


def test_top_level_structs_are_reduced_into(arch):
    @oc.kernel
    def k(n: oc.i32) -> (oc.f32, vec2):
        s = Particle()
        for i in range(n):
            s.mass += 1.0
            s.pos += vec2(i, 2)
        return s.mass, s.pos

    mass, pos = k(100)
    assert mass == 100 and pos.to_list() == [4950, 200]


def test_unpacked_vectors(arch):
    @oc.dataclass
    class Ray:
        r: oc.types.vector(3, oc.f32, unpacked=True)
        t: oc.f32

    @oc.kernel
    def k() -> oc.f32:
        ray = Ray(t=2.0)
        for i in oc.static(range(3)):
            ray.r[i] = i + 1
        return ray.r[0] + ray.r[1] * 10 + ray.r[2] * 100 + ray._r1 + ray.t

    assert k() == 1 + 20 + 300 + 2 + 2


def test_one_number_goes_to_the_first_member(arch):
    inner = oc.types.struct(a=oc.i32, b=oc.f32)
    outer = oc.types.struct(s=inner, c=oc.i32)
    filled = oc.types.struct(v=oc.types.vector(3, oc.f32), c=oc.i32)

    @oc.kernel
    def nested(a: oc.i32) -> outer:
        return outer(a)

    @oc.kernel
    def vector(a: oc.i32) -> filled:
        return filled(a)

    @oc.kernel
    def in_order(a: oc.i32) -> inner:
        return inner(a, 2)

    expected = {"s": {"a": 5, "b": 0.0}, "c": 0}
    assert nested(5).to_dict() == outer(5).to_dict() == outer(np.int64(5)).to_dict() == expected
    assert vector(5).v.to_list() == filled(5).v.to_list() == [5, 5, 5]
    assert vector(5).c == filled(5).c == 0
    assert in_order(5).to_dict() == inner(5, 2).to_dict() == {"a": 5, "b": 2.0}
    with pytest.raises(SyntaxError):
        inner(1, 2, 3)


def test_lists_as_members_of_a_struct_without_types_are_vectors_and_matrices(arch):
    @oc.kernel
    def k(a: oc.i32) -> oc.i32:
        s = oc.Struct(v=[a, 2], m=[[1, 2], [3, a]])
        return s.v.sum() * 100 + s.m[1, 1] * 10 + s.m[0, 1]

    assert k(5) == 752
