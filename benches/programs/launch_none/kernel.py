import octants as qd


@qd.kernel
def run():
    pass
