# raises OctantsCompilationError
import octants as oc

def table_entry(n):
    return [10, 20, 30][n]

@oc.kernel
def f() -> int:
    return table_entry(7)

f()
