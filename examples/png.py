"""Writes PNG files, still and animated, with the standard library and numpy alone."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np


def save(path: Path, pixels: np.ndarray) -> None:
    """Writes one picture: `pixels` is (height, width, 3) of uint8."""
    save_animation(path, [pixels], seconds_per_frame=0.0)


def save_animation(path: Path, frames: list[np.ndarray], seconds_per_frame: float) -> None:
    """Writes frames of one size as an animated PNG that loops; every browser plays it."""
    height, width, channels = frames[0].shape
    if channels != 3 or any(frame.shape != frames[0].shape or frame.dtype != np.uint8 for frame in frames):
        raise ValueError("frames must be (height, width, 3) arrays of uint8, all of one size")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        _chunk(file, b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
        if len(frames) > 1:
            _chunk(file, b"acTL", struct.pack(">II", len(frames), 0))
        sequence = 0
        for number, frame in enumerate(frames):
            data = _compress(frame)
            if len(frames) > 1:
                delay = round(seconds_per_frame * 1000)
                _chunk(file, b"fcTL", struct.pack(">IIIIIHHBB", sequence, width, height, 0, 0, delay, 1000, 0, 0))
                sequence += 1
            if number == 0:
                _chunk(file, b"IDAT", data)
            else:
                _chunk(file, b"fdAT", struct.pack(">I", sequence) + data)
                sequence += 1
        _chunk(file, b"IEND", b"")


def _compress(pixels: np.ndarray) -> bytes:
    """Each row as its difference from the row above (PNG filter 2), deflated."""
    height, width, _ = pixels.shape
    rows = pixels.reshape(height, width * 3)
    filtered = np.empty((height, 1 + width * 3), dtype=np.uint8)
    filtered[:, 0] = 2
    filtered[0, 1:] = rows[0]
    np.subtract(rows[1:], rows[:-1], out=filtered[1:, 1:])
    return zlib.compress(filtered.tobytes(), 5)


def _chunk(file, name: bytes, data: bytes) -> None:
    file.write(struct.pack(">I", len(data)) + name + data)
    file.write(struct.pack(">I", zlib.crc32(name + data)))
