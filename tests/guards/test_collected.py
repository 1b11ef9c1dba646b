"""What a kernel's code keeps alive is found by Python's garbage collector, whatever leads back to the kernel."""

import gc
import weakref

import pytest

import octants as oc

pytestmark = pytest.mark.no_device


class Watched:
    """Lives as long as the circle that it is part of."""


def struct_type_with_methods(held):
    """A type of structs that has a method which leads to what is held."""

    @oc.func
    def doubled(self):
        oc.static(held)
        return 2 * self.mass

    return oc.types.struct(mass=oc.f32, __struct_methods={"doubled": doubled})


def of_struct_field():
    """A kernel, its code, the type of the structs, its method, and what that refers to: the kernel."""
    held = [Watched()]
    particle = struct_type_with_methods(held)
    particles = particle.field(shape=3)

    @oc.kernel
    def kernel(of: oc.template()) -> oc.f32:
        return of[1].mass

    kernel(particles)
    held.append(kernel)
    return held


def of_struct_field_itself():
    """The field, the type, its method, and what that refers to: the field."""
    held = [Watched()]
    held.append(struct_type_with_methods(held).field(shape=3))
    held[1][0].mass = 1.0
    return held


def of_annotation():
    """A kernel, the type that a parameter is annotated with, its method, and what that refers to: the kernel."""
    held = [Watched()]
    particle = struct_type_with_methods(held)

    @oc.kernel
    def kernel(one: particle) -> oc.f32:
        return one.mass

    kernel(particle(mass=2.0))
    held.append(kernel)
    return held


def of_derivative():
    """A derivative, the field without an argument that has its gradients, and what that refers to: the kernel."""
    held = [Watched()]
    x, loss = oc.field(oc.f32, 3, needs_grad=True), oc.field(oc.f32, (), needs_grad=True)
    x.parts = held

    @oc.kernel
    def kernel():
        for i in x:
            loss[None] += x[i] ** 2

    kernel()
    kernel.grad()
    held.append(kernel)
    return held


@pytest.mark.parametrize("make", [of_struct_field, of_struct_field_itself, of_annotation, of_derivative])
def test_a_circle_through_a_kernel_is_collected(make):
    held = make()
    watched = weakref.ref(held[0])
    del held
    gc.collect()
    assert watched() is None
