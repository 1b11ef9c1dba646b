# raises OctantsCompilationError
import octants as oc

x = oc.field(oc.f32, 4)


@oc.kernel
def f():
    for i, value in enumerate(x):
        x[i] = value + 1


f()
