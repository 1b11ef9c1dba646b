# raises ValueError
import octants as oc

oc.init(raise_on_templated_floats=True, log_level="error")

@oc.kernel
def f(dt: oc.template()) -> oc.f32:
    return dt

f(0.5)
