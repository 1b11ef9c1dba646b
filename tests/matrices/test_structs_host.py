"""Structs and `oc.pyfunc` on the host, and what importing the package costs."""

import copy
import pickle
import subprocess
import sys

import pytest

import octants as oc

pytestmark = pytest.mark.no_device

vec2, vec3 = oc.math.vec2, oc.math.vec3


@oc.dataclass
class Particle:
    """A point with a mass."""

    position: vec3
    mass: oc.f32
    number: int

    @oc.pyfunc
    def weight(self, gravity):
        return self.mass * gravity

    @staticmethod
    def kind():
        return "particle"


def test_struct_values():
    s = oc.Struct(a=1, v=[1, 2], inner={"b": 2.5})
    assert s.a == s["a"] == 1 and s.inner.b == 2.5 and s.v.y == 2
    assert s.keys == ["a", "v", "inner"] and len(s) == 3 and "a" in s and list(s.entries) == s.keys
    assert s.to_dict() == {"a": 1, "v": [1, 2], "inner": {"b": 2.5}} and str(s) == str(s.to_dict())
    assert s.to_dict(include_ndim=True)["__matrix_ndim"] == {"v": 1}
    a, v, inner = s
    assert a == 1 and inner is s.inner
    s.v.x = 9
    s["a"] = 3
    s.inner = {"b": 7}
    assert s.to_dict() == {"a": 3, "v": [9, 2], "inner": {"b": 7}}
    assert copy.deepcopy(s).to_dict() == pickle.loads(pickle.dumps(s)).to_dict() == s.to_dict()
    assert oc.Struct(a=2, __struct_methods={"twice": lambda self: 2 * self.a}).twice() == 4


def test_struct_types():
    inner = oc.types.struct(a=oc.i32, v=vec2)
    outer = oc.types.struct(inner=inner, x=float)
    assert inner(1).to_dict() == {"a": 1, "v": [0, 0]} and inner(a=1.7, v=[1, 2]).a == 1
    assert inner({"a": 1, "v": [1, 2]}).v.dt is oc.f32 and inner(oc.Struct(a=1, v=[1, 2])).a == 1
    assert (
        outer(inner(5), 2).to_dict()
        == outer(inner={"a": 5, "v": 0}, x=2).to_dict()
        == {"inner": {"a": 5, "v": [0, 0]}, "x": 2.0}
    )
    s = outer()
    s.inner.a = 2.7
    s.inner.v = vec2(1, 2)
    s.x = 1
    assert s.to_dict() == {"inner": {"a": 2, "v": [1, 2]}, "x": 1.0}
    source = inner(4)
    s.inner = source
    source.a = 5
    assert s.inner.a == 4 and isinstance(s.inner, inner) and not isinstance(s, inner)


def test_dataclasses():
    p = Particle(position=[1, 2, 3], mass=0.5)
    assert p.weight(10) == 5 and p.kind() == "particle" and p.number == 0
    assert Particle.members["number"] is oc.i32 and list(Particle.methods) == ["weight", "kind"]
    assert Particle.__name__ == "Particle" and Particle.__doc__ == "A point with a mass."
    assert "__struct_methods" in p.to_dict(include_methods=True)

    @oc.dataclass
    class Text:
        r: "oc.types.vector(2, oc.f32, unpacked=True)"
        p: "Particle"

    t = Text(1, 2)
    assert list(Text.members) == ["_r0", "_r1", "p"] and t.r[1] == 2
    t.r[1] = 5
    assert t._r1 == 5


@pytest.mark.parametrize(
    "run, error, words",
    [
        (lambda: oc.Struct(1), oc.OctantsSyntaxError, "one dict"),
        (lambda: Particle(1, 2, 3, 4), oc.OctantsSyntaxError, "has 3 members, got 4"),
        (lambda: Particle(speed=1), oc.OctantsSyntaxError, "no member 'speed'; it has position, mass, number"),
        (lambda: Particle(1, position=2), oc.OctantsSyntaxError, "given twice"),
        (lambda: Particle({"mass": 1}), oc.OctantsSyntaxError, "position, mass, number; got mass"),
        (lambda: Particle(position=[1, 2]), oc.OctantsTypeError, "member `position`.*got 2"),
        (lambda: oc.types.struct(a=3), oc.OctantsTypeError, "member `a`"),
        (lambda: oc.types.struct(a=oc.types.vector(2, oc.f32, unpacked=True)), oc.OctantsSyntaxError, "@oc.dataclass"),
        (lambda: oc.types.vector(2, oc.f32, unpacked=True)(1, 2), oc.OctantsSyntaxError, "@oc.dataclass"),
        (
            lambda: oc.dataclass(type("D", (), {"__annotations__": {"x": int}, "x": 3})),
            oc.OctantsSyntaxError,
            "Default value in @dataclass",
        ),
        (lambda: oc.dataclass(type("D", (), {"__annotations__": {"x": "nowhere"}})), oc.OctantsSyntaxError, "nowhere"),
        (lambda: setattr(Particle(), "speed", 1), AttributeError, "no member 'speed'"),
        (lambda: setattr(oc.Struct(s={"a": 1}), "s", {"b": 1}), oc.OctantsTypeError, "members b to member `s` with a"),
        (lambda: setattr(oc.Struct(s={"a": 1}), "s", 1), oc.OctantsTypeError, "only a struct or a dict"),
        (lambda: Particle() + 1, TypeError, "unsupported operand"),
    ],
)
def test_refused_structs(run, error, words):
    with pytest.raises(error, match=words):
        run()


def test_names_collide_with_unpacked_members():
    with pytest.raises(oc.OctantsSyntaxError, match="`_r0` is there twice"):

        @oc.dataclass
        class Collision:
            _r0: oc.f32
            r: oc.types.vector(2, oc.f32, unpacked=True)


def test_pyfunc_is_the_function_itself():
    @oc.pyfunc
    def double(x):
        return 2 * x

    assert double(4) == 8 and double.__octants__ == "func"
    assert Particle().weight.__octants__ == "func" and vec3(1).norm.__octants__ == "func"
    with pytest.raises(oc.OctantsSyntaxError, match="decorates a function"):
        oc.pyfunc(3)


def test_importing_stays_light():
    program = (
        "import sys, octants; print(sorted({'numpy', 'dataclasses', 'typing', 'inspect', 're'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}; {program}"],
        capture_output=True,
        text=True,
    )
    assert result.stdout.strip() == "[]", result.stdout + result.stderr
