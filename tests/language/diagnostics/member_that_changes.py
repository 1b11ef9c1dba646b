# raises OctantsRuntimeTypeError
import itertools

import octants as oc

count = itertools.count()


class Settings:
    @property
    def mode(self):
        return f"mode {next(count)}"


@oc.data_oriented
class Box:
    def __init__(self):
        self.settings = [Settings()]

    @oc.kernel
    def first(self) -> oc.i32:
        return 1 if oc.static(self.settings[0].mode == "mode 0") else 2


Box().first()
