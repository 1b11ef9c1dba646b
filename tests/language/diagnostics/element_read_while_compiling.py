# raises OctantsSyntaxError
import octants as oc

count = oc.field(oc.i32, shape=())

def how_many():
    return count[None]

@oc.kernel
def step() -> oc.i32:
    return how_many()

step()
