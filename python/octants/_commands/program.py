"""Runs a Python program in this process as Python itself would. Knows nothing of what it is run for."""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
from types import TracebackType


class NoProgram(Exception):
    """There is no such program. The text says so; ``status`` is what the process ends with."""

    def __init__(self, message: str, status: int):
        super().__init__(message)
        self.status = status


class Program:
    """A file, a folder with a ``__main__.py`` or a module, and its arguments."""

    def __init__(self, name: str, arguments: list[str], is_module: bool):
        self.name = name
        self.arguments = arguments
        self.is_module = is_module

    @staticmethod
    def parse(arguments: list[str]) -> Program | None:
        """What ``PROGRAM ARGUMENT...`` or ``-m MODULE ARGUMENT...`` names; nothing if it names none."""
        is_module = arguments[:1] == ["-m"]
        if is_module:
            arguments = arguments[1:]
        if not arguments or arguments[0].startswith("-"):
            return None
        return Program(arguments[0], arguments[1:], is_module)

    def run(self) -> int:
        """Its exit status. What it raises is shown without the frames of whoever runs it."""
        sys.argv = [self.name, *self.arguments]
        # Where Python was started for this command, there stands the command's own folder.
        here = os.getcwd() if self.is_module else os.path.dirname(os.path.realpath(self.name))
        if getattr(sys.flags, "safe_path", False):
            sys.path.insert(0, here)
        else:
            sys.path[0] = here
        self._require()
        try:
            if self.is_module:
                runpy.run_module(self.name, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(self.name, run_name="__main__")
        except SystemExit as end:
            if end.code is None or isinstance(end.code, int):
                return end.code or 0
            print(end.code, file=sys.stderr)
            return 1
        except BaseException as error:
            error.__traceback__ = _of_the_program(error.__traceback__)
            sys.excepthook(type(error), error, error.__traceback__)
            return 130 if isinstance(error, KeyboardInterrupt) else 1
        return 0

    def _require(self) -> None:
        if not self.is_module:
            if not os.path.exists(self.name):
                raise NoProgram(f"can't open file {os.path.abspath(self.name)!r}: No such file or directory", 2)
            if os.path.isdir(self.name) and not os.path.exists(os.path.join(self.name, "__main__.py")):
                raise NoProgram(f"can't find '__main__' module in {os.path.abspath(self.name)!r}", 1)
            return
        try:
            found = importlib.util.find_spec(self.name)
        except ImportError as error:
            raise NoProgram(str(error), 1) from None
        if found is None:
            raise NoProgram(f"No module named {self.name}", 1)
        if found.submodule_search_locations is not None and importlib.util.find_spec(f"{self.name}.__main__") is None:
            raise NoProgram(
                f"No module named {self.name}.__main__; {self.name!r} is a package and cannot be directly executed", 1
            )


def _of_the_program(frames: TracebackType | None) -> TracebackType | None:
    """A traceback from the program's first frame on; all of it if it has none."""
    own = (__file__, runpy.__file__)
    rest = frames
    while rest is not None:
        name = rest.tb_frame.f_code.co_filename
        if name not in own and not name.startswith("<frozen "):
            return rest
        rest = rest.tb_next
    return frames
