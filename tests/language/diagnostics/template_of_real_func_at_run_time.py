# raises OctantsCompilationError
import octants as oc


@oc.real_func
def power(x: oc.f32, n: oc.template()) -> oc.f32:
    return x**n


@oc.kernel
def f(n: oc.i32) -> oc.f32:
    return power(2.0, n)


f(1)
