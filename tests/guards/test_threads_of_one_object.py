"""Several threads that call one kernel of one object, whose class runs code when it is looked at."""

import subprocess
import sys

PROGRAM = """
import faulthandler, threading, time
import octants as oc

faulthandler.dump_traceback_later(60, exit=True)
oc.init(arch=oc.cpu, log_level="error")
slow = False


class Meta(type):
    def __getattribute__(cls, name):
        if slow and name == "helper":
            time.sleep(0.0005)
        return type.__getattribute__(cls, name)


@oc.data_oriented
class Numbers(metaclass=Meta):
    def __init__(self):
        self.b = 2

    @oc.func
    def helper(self):
        return self.b * 10

    @oc.kernel
    def total(self) -> oc.i32:
        return self.helper() + self.b


numbers = Numbers()
for _ in range(6):
    assert numbers.total() == 22
slow = True
wrong = []


def work():
    for _ in range(100):
        if numbers.total() != 22:
            wrong.append(1)


threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not wrong
"""


def test_nobody_waits_for_what_another_thread_compares(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
