# raises OctantsCompilationError
import octants as oc


@oc.kernel
def f() -> int:
    values = [1, 2]
    values.append(3)
    return len(values)


f()
