"""Files for other programs, pictures and videos, and a report on the environment."""

from __future__ import annotations

from .image import imread, imresize, imwrite
from .np2ply import PLYWriter
from .video import VideoManager
from .vtk import write_vtk

__all__ = ["PLYWriter", "VideoManager", "diagnose", "imread", "imresize", "imwrite", "write_vtk"]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str):
    # `python -m octants.tools.diagnose` warns if importing the package has imported the module.
    from .._on_demand import module

    return module(__name__, name, ("diagnose",))
