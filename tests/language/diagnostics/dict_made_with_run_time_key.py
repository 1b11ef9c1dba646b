# raises OctantsCompilationError
import octants as oc


@oc.kernel
def f(i: oc.i32):
    table = {i: 2.0}
    print(table[1])


f(1)
