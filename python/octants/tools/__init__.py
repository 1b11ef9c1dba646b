"""Files for other programs, and a report on the environment."""

from __future__ import annotations

from .np2ply import PLYWriter
from .vtk import write_vtk

__all__ = ["PLYWriter", "diagnose", "write_vtk"]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str):
    # `python -m octants.tools.diagnose` warns if importing the package has imported the module.
    from .._on_demand import module

    return module(__name__, name, ("diagnose",))
