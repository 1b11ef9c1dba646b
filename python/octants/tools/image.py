"""Pictures in files, as programs for Taichi write and read them: the first axis goes right, the second one up.

Pillow or imageio does it, whichever is installed; neither is needed for anything else.
"""

from __future__ import annotations

import os
from typing import Any

__all__ = ["imread", "imresize", "imwrite"]


def imwrite(img, filename: str | os.PathLike[str]) -> None:
    """Writes a field, array or numpy array of shape ``(width, height)``, or with 1, 3 or 4 channels as a last axis, in the format of the name's ending.

    Reals go from 0 to 1; what is outside becomes the nearest. Of integers without sign, the greatest number is white.
    """
    pixels = to_bytes(img)
    pixels = pixels[:, :, 0] if pixels.shape[2] == 1 else pixels
    library, is_pillow = _library("imwrite")
    if is_pillow:
        library.fromarray(pixels).save(filename)
    else:
        library.imwrite(filename, pixels)


def imread(filename: str | os.PathLike[str], channels: int = 0):
    """A file's picture as a numpy array of bytes, of shape ``(width, height, channels)``. ``channels`` of 0 are those of the file."""
    import numpy

    modes = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
    if channels not in (0, *modes):
        raise ValueError(f"channels is 0 to 4, not {channels!r}")
    library, is_pillow = _library("imread")
    if is_pillow:
        with library.open(filename) as picture:
            mode = modes[channels] if channels else picture.mode if picture.mode in modes.values() else "RGBA"
            pixels = numpy.array(picture.convert(mode))
    else:
        pixels = _with_channels(numpy.asarray(library.imread(filename)), channels)
    pixels = pixels if pixels.ndim == 3 else pixels[:, :, None]
    return numpy.ascontiguousarray(pixels.swapaxes(0, 1)[:, ::-1])


def imresize(img, w: int, h: int | None = None):
    """A picture of another size, made of the nearest pixels; without ``h``, as high as wide."""
    import numpy

    h = w if h is None else h
    if w < 1 or h < 1:
        raise ValueError(f"a picture has a pixel at least along each axis, not {(w, h)}")
    pixels = numpy.asarray(img if isinstance(img, numpy.ndarray) else img.to_numpy())
    places = (
        numpy.minimum(numpy.arange(wanted) * extent // wanted, extent - 1)
        for wanted, extent in zip((w, h), pixels.shape, strict=False)
    )
    return pixels[numpy.ix_(*places)]


def to_bytes(img) -> Any:
    """A picture as bytes, from the top row down: of shape ``(height, width, channels)``."""
    import numpy

    pixels = img if isinstance(img, numpy.ndarray) else img.to_numpy()
    if pixels.ndim not in (2, 3):
        raise ValueError(f"a picture has the axes width, height and perhaps channels, not the shape {pixels.shape}")
    pixels = pixels if pixels.ndim == 3 else pixels[:, :, None]
    if pixels.shape[2] not in (1, 3, 4):
        raise ValueError(f"a picture has 1, 3 or 4 channels, not {pixels.shape[2]}")
    if pixels.dtype.kind == "f":
        bounded = numpy.clip(numpy.nan_to_num(pixels.astype(numpy.float64)), 0, 1)
        pixels = (bounded * 255 + 0.5).astype(numpy.uint8)
    elif pixels.dtype.kind == "u":
        pixels = (pixels >> (8 * (pixels.dtype.itemsize - 1))).astype(numpy.uint8)
    else:
        raise ValueError(f"a picture is made of reals or of integers without sign, not of {pixels.dtype}")
    return numpy.ascontiguousarray(pixels.swapaxes(0, 1)[::-1])


def _library(what: str) -> tuple[Any, bool]:
    """What writes and reads files, and whether that is Pillow."""
    try:
        from PIL import Image  # pyright: ignore[reportMissingImports]

        return Image, True
    except ImportError:
        pass
    try:
        import imageio.v2  # pyright: ignore[reportMissingImports]

        return imageio.v2, False
    except ImportError:
        raise ModuleNotFoundError(
            f"octants.tools.{what} needs Pillow or imageio, and neither is installed: pip install pillow", name="PIL"
        ) from None


def _with_channels(pixels, channels: int):
    """Pixels with so many channels; 0 leaves them as they are."""
    import numpy

    pixels = pixels if pixels.ndim == 3 else pixels[:, :, None]
    if channels in (0, pixels.shape[2]):
        return pixels
    has_opacity = pixels.shape[2] in (2, 4)
    colours = pixels[:, :, :-1] if has_opacity else pixels
    if channels < 3 and colours.shape[2] == 3:
        # The brightness of colours, as Pillow has it.
        weights = numpy.array([299, 587, 114])
        colours = ((colours.astype(numpy.int64) @ weights + 500) // 1000).astype(numpy.uint8)[:, :, None]
    elif channels >= 3 and colours.shape[2] == 1:
        colours = numpy.repeat(colours, 3, axis=2)
    if channels in (1, 3):
        return colours
    opacity = pixels[:, :, -1:] if has_opacity else numpy.full_like(pixels[:, :, :1], 255)
    return numpy.concatenate([colours, opacity], axis=2)
