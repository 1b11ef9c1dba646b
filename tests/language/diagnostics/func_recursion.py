# raises OctantsCompilationError
import octants as oc

@oc.func
def down(n):
    return down(n - 1)

@oc.kernel
def f() -> int:
    return down(3)

f()
