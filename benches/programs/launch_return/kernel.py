import octants as qd


@qd.kernel
def run(k: qd.i32) -> qd.i32:
    return k + 1
