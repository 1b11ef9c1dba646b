"""Fields as files in the XML format of VTK, a rectilinear grid whose cells hold the elements.

A 2D field is a grid that is one cell thick. Cells are unit cubes, and the first axis is x.
"""

from __future__ import annotations

import os
import sys
from xml.sax.saxutils import quoteattr

import numpy as np

#: The types of numbers that a file can hold, by numpy's names.
_TYPES = {
    "int8": "Int8", "uint8": "UInt8", "int16": "Int16", "uint16": "UInt16", "int32": "Int32", "uint32": "UInt32",
    "int64": "Int64", "uint64": "UInt64", "float32": "Float32", "float64": "Float64",
}  # fmt: skip
#: What becomes another type on the way into a file.
_WIDENED = {"float16": np.float32, "bool": np.uint8}


def write_vtk(scalar_field, filename: str | os.PathLike[str]) -> None:
    """Writes a field of two or three axes into ``filename.vtr``, which ParaView and other programs that read VTK open.

    >>> oc.tools.write_vtk(pressure, "pressure")

    Takes fields, arrays and numpy arrays of numbers, and fields and arrays of vectors; vectors with two entries get a third, which is 0, since
    viewers draw arrows in three dimensions. The data in the file has the name of the file.
    """
    filename = os.fspath(filename)
    cells, shape = _cells(scalar_field)
    extent = " ".join(f"0 {n}" for n in shape)
    kind = "Vectors" if cells.ndim == 4 and cells.shape[3] == 3 else "Scalars"
    components = cells.shape[3] if cells.ndim == 4 else 1
    axes = [np.arange(n + 1, dtype=np.int64) for n in shape]
    declared, offset = [], 0
    for name, count, block in [*zip("xyz", (1, 1, 1), axes, strict=True), (filename, components, cells)]:
        title = name if block is cells else f"{name}_coordinates"
        declared.append(
            f'<DataArray Name={quoteattr(title)} NumberOfComponents="{count}" type="{_TYPES[block.dtype.name]}" '
            f'format="appended" offset="{offset}"/>'
        )
        offset += 8 + block.nbytes
    head = f"""<?xml version="1.0"?>
<VTKFile type="RectilinearGrid" version="1.0" byte_order="{sys.byteorder.capitalize()}Endian" header_type="UInt64">
<RectilinearGrid WholeExtent="{extent}">
<Piece Extent="{extent}">
<Coordinates>
{declared[0]}
{declared[1]}
{declared[2]}
</Coordinates>
<CellData {kind}={quoteattr(filename)}>
{declared[3]}
</CellData>
</Piece>
</RectilinearGrid>
<AppendedData encoding="raw">
_"""
    with open(f"{filename}.vtr", "wb") as file:
        file.write(head.encode())
        for block in axes:
            file.write(np.uint64(block.nbytes).tobytes() + block.tobytes())
        # x varies fastest, the entries of a vector faster still.
        ordered = cells.transpose(2, 1, 0, *range(3, cells.ndim))
        file.write(np.uint64(cells.nbytes).tobytes())
        file.write(np.ascontiguousarray(ordered).data)
        file.write(b"\n</AppendedData>\n</VTKFile>")


def _cells(field) -> tuple[np.ndarray, tuple[int, int, int]]:
    """The elements as an array of three axes, and one more for the entries of vectors; and how many cells there are along each axis."""
    array = np.asarray(field.to_numpy() if hasattr(field, "to_numpy") else field)
    elements = array.ndim - len(field.shape) if hasattr(field, "shape") else 0
    axes = array.ndim - elements
    if axes not in (2, 3) or elements > 1:
        kind = ("numbers", "vectors", "matrices")[min(elements, 2)]
        raise ValueError(f"write_vtk takes fields of two or three axes of numbers or vectors, not {axes} of {kind}")
    array = array.astype(_WIDENED.get(array.dtype.name, array.dtype), copy=False)
    if array.dtype.name not in _TYPES:
        raise TypeError(f"write_vtk takes numbers, not {array.dtype}")
    if not array.size:
        raise ValueError(f"write_vtk takes fields that have elements, not one of shape {tuple(field.shape)}")
    if axes == 2:
        array = array[:, :, np.newaxis]
    if elements and array.shape[3] == 2:
        array = np.concatenate([array, np.zeros_like(array[..., :1])], axis=3)
    return array, (array.shape[0], array.shape[1], array.shape[2])
