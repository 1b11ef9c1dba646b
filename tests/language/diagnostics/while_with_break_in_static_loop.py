# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f(n: int) -> int:
    total = 0
    for i in oc.static(range(4)):
        if n > i:
            break
        total += i
    return total

f(1)
