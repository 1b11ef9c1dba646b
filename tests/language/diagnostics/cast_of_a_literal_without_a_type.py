# raises OctantsTypeError
import octants as oc

oc.init(arch=oc.cpu, log_level="error")


@oc.kernel
def f() -> oc.i64:
    return oc.cast(2**63, oc.i64)


f()
