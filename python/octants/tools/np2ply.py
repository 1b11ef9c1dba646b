"""Points and faces as files in the PLY format, in text or binary.

Owns the format: which channels there are, the header, and the bytes after it. Every channel is kept as a copy until the file is written.
"""

from __future__ import annotations

import operator
import os
import sys
import warnings

import numpy as np

#: The types of a channel, by their names in a file.
TYPES = {
    "char": np.int8, "uchar": np.uint8, "short": np.int16, "ushort": np.uint16, "int": np.int32, "uint": np.uint32,
    "float": np.float32, "double": np.float64,
}  # fmt: skip
#: Names that readers of the format know, too.
_SIZED = {np.dtype(kind).name: name for name, kind in TYPES.items()}
#: How many corners a face has.
_CORNERS = {"tri": 3, "quad": 4}


class PLYError(ValueError, AssertionError):
    """What was given to a ``PLYWriter`` is no mesh that a file can hold. (Programs for Quadrants expect an ``AssertionError``.)"""


class PLYWriter:
    """Writes points, and faces between them, into files that other programs read.

    >>> writer = oc.tools.PLYWriter(num_vertices=3, num_faces=1)
    >>> writer.add_vertex_pos(x, y, z)
    >>> writer.add_faces([0, 1, 2])
    >>> writer.export("mesh.ply")

    A channel is an array with one number for each vertex or face: numpy's, a list, a field or an array of Octants. Numbers become the channel's
    type as numpy's ``astype`` converts them.
    """

    def __init__(
        self, num_vertices: int, num_faces: int = 0, face_type: str = "tri", comment: str = "created by PLYWriter"
    ):
        self.num_vertices = _count(num_vertices, "num_vertices")
        self.num_faces = _count(num_faces, "num_faces")
        _require(self.num_vertices > 0, f"num_vertices is at least 1, not {num_vertices}")
        _require(self.num_faces >= 0, f"num_faces is at least 0, not {num_faces}")
        _require(face_type in _CORNERS, f'face_type is "tri" or "quad", not {face_type!r}')
        self.face_type = face_type
        self.comment = comment
        #: Name, type and numbers of each channel, in the order of the file.
        self._vertex_channels: list[tuple[str, str, np.ndarray]] = []
        self._face_channels: list[tuple[str, str, np.ndarray]] = []
        self._faces: np.ndarray | None = None

    def add_vertex_channel(self, key: str, data_type: str, data) -> None:
        """Gives each vertex a number under a name of your own. Types are char, uchar, short, ushort, int, uint, float and double."""
        self._add(self._vertex_channels, "vertex", self.num_vertices, key, data_type, data)

    def add_vertex_pos(self, x, y, z) -> None:
        """The positions of the vertices, without which there is no file."""
        self._add_vertex_floats("x y z", x, y, z)

    def add_vertex_normal(self, nx, ny, nz) -> None:
        """The normals at the vertices."""
        self._add_vertex_floats("nx ny nz", nx, ny, nz)

    def add_vertex_color(self, r, g, b) -> None:
        """The colours of the vertices, from 0 to 1."""
        self._add_vertex_floats("red green blue", r, g, b)

    def add_vertex_alpha(self, alpha) -> None:
        """How opaque the vertices are, from 0 to 1."""
        self._add_vertex_floats("Alpha", alpha)

    def add_vertex_rgba(self, r, g, b, a) -> None:
        """The colours of the vertices, and how opaque they are."""
        self._add_vertex_floats("red green blue Alpha", r, g, b, a)

    def add_vertex_vel(self, vx, vy, vz) -> None:
        """The velocities of the vertices."""
        self._add_vertex_floats("vx vy vz", vx, vy, vz)

    def add_vertex_id(self) -> None:
        """Numbers the vertices, from 0."""
        self.add_vertex_channel("id", "int", np.arange(self.num_vertices))

    def add_vertex_piece(self, piece) -> None:
        """To which part each vertex belongs."""
        self.add_vertex_channel("piece", "int", piece)

    def add_faces(self, indices) -> None:
        """The vertices of each face, in order: three or four for each, as ``face_type`` says."""
        corners = _CORNERS[self.face_type]
        faces = _numbers(indices, "the faces")
        _require(
            faces.size == self.num_faces * corners,
            f"{self.num_faces} faces have {self.num_faces * corners} corners ({corners} each), but {faces.size} indices were given",
        )
        faces = faces.reshape(self.num_faces, corners)
        if faces.size:
            whole = np.issubdtype(faces.dtype, np.integer) or bool((faces == np.floor(faces)).all())
            _require(whole, "indices of vertices are integers")
            low, high = faces.min(), faces.max()
            _require(
                low >= 0 and high < self.num_vertices,
                f"faces name the vertices {low} to {high}, but there are 0 to {self.num_vertices - 1}",
            )
        self._faces = faces.astype(np.int32)

    def add_face_channel(self, key: str, data_type: str, data) -> None:
        """Gives each face a number under a name of your own."""
        self._add(self._face_channels, "face", self.num_faces, key, data_type, data)

    def add_face_id(self) -> None:
        """Numbers the faces, from 0."""
        self.add_face_channel("id", "int", np.arange(self.num_faces))

    def add_face_piece(self, piece) -> None:
        """To which part each face belongs."""
        self.add_face_channel("piece", "int", piece)

    def sanity_check(self) -> None:
        """Raises unless the vertices have positions, and the faces corners: what ``export`` asks first."""
        missing = [name for name in "xyz" if name not in [key for key, _, _ in self._vertex_channels]]
        _require(not missing, f"the vertices have no {', '.join(missing)}: call add_vertex_pos first")
        _require(
            not self.num_faces or self._faces is not None,
            f"num_faces is {self.num_faces}, but there are no faces: call add_faces first",
        )

    def print_header(self, path: str | os.PathLike[str], _format: str) -> None:
        """Writes a file that has the header alone. ``_format`` is "ascii", "binary_little_endian" or "binary_big_endian"."""
        with open(path, "wb") as file:
            file.write(self._header(_format))

    def export(self, path: str | os.PathLike[str]) -> None:
        """Writes a binary file."""
        self._write(path, f"binary_{sys.byteorder}_endian", self._bytes)

    def export_frame(self, series_num: int, path: str | os.PathLike[str]) -> None:
        """Writes a binary file of a series: ``export_frame(7, "drop.ply")`` writes drop_000007.ply."""
        self.export(_frame_path(series_num, path))

    def export_ascii(self, path: str | os.PathLike[str]) -> None:
        """Writes a text file."""
        self._write(path, "ascii", self._lines)

    def export_frame_ascii(self, series_num: int, path: str | os.PathLike[str]) -> None:
        """Writes a text file of a series: ``export_frame_ascii(7, "drop.ply")`` writes drop_000007.ply."""
        self.export_ascii(_frame_path(series_num, path))

    def _add_vertex_floats(self, keys: str, *channels) -> None:
        for key, data in zip(keys.split(), channels, strict=True):
            self._add(self._vertex_channels, "vertex", self.num_vertices, key, "float", data, stacklevel=4)

    def _add(self, channels: list, of: str, count: int, key: str, data_type: str, data, stacklevel=3) -> None:
        data_type = _SIZED.get(data_type, data_type)
        _require(data_type in TYPES, f"channel {key!r} has the type {data_type!r}; there are {', '.join(TYPES)}")
        _require(
            isinstance(key, str) and key.isascii() and key != "" and not any(one.isspace() for one in key),
            f"{key!r} is no name of a channel: it is text without spaces, in ASCII",
        )
        numbers = _numbers(data, f"channel {key!r}")
        plural = {"vertex": "vertices", "face": "faces"}[of]
        _require(numbers.size == count, f"channel {key!r} has {numbers.size} numbers, but there are {count} {plural}")
        if any(key == there for there, _, _ in channels):
            warnings.warn(f"there is a {of} channel {key!r} already; the file has both", stacklevel=stacklevel)
        channels.append((key, data_type, numbers.ravel().astype(TYPES[data_type])))

    def _write(self, path, encoding: str, body) -> None:
        self.sanity_check()
        with open(path, "wb") as file:
            file.write(self._header(encoding))
            file.write(body(self._vertex_channels, None))
            if self.num_faces:
                file.write(body(self._face_channels, self._faces))

    def _header(self, encoding: str) -> bytes:
        lines = ["ply", f"format {encoding} 1.0", *(f"comment {line}" for line in self.comment.splitlines() or [""])]
        lines.append(f"element vertex {self.num_vertices}")
        lines += [f"property {kind} {key}" for key, kind, _ in self._vertex_channels]
        if self.num_faces:
            lines += [f"element face {self.num_faces}", "property list uchar int vertex_indices"]
            lines += [f"property {kind} {key}" for key, kind, _ in self._face_channels]
        return "".join(f"{line}\n" for line in [*lines, "end_header"]).encode()

    @staticmethod
    def _bytes(channels: list[tuple[str, str, np.ndarray]], faces: np.ndarray | None) -> bytes:
        """The rows of an element in binary: corners first where there are any, then a number of each channel."""
        count = len(channels[0][2]) if faces is None else len(faces)
        members: list[tuple] = [(f"f{number}", TYPES[kind]) for number, (_, kind, _) in enumerate(channels)]
        if faces is not None:
            members = [("corners", np.uint8), ("indices", np.int32, (faces.shape[1],)), *members]
        rows = np.empty(count, dtype=members)
        if faces is not None:
            rows["corners"], rows["indices"] = faces.shape[1], faces
        for number, (_, _, numbers) in enumerate(channels):
            rows[f"f{number}"] = numbers
        return rows.tobytes()

    @staticmethod
    def _lines(channels: list[tuple[str, str, np.ndarray]], faces: np.ndarray | None) -> bytes:
        """The rows of an element in text. A number has as many digits as tell it from its neighbours, and a space after it."""
        columns: list = [numbers for _, _, numbers in channels]
        if faces is not None:
            columns = [[faces.shape[1]] * len(faces), *faces.T, *columns]
        rows = zip(*(map(str, column) for column in columns), strict=True)
        return "".join(" ".join(row) + " \n" for row in rows).encode()


def _require(holds, message: str) -> None:
    if not holds:
        raise PLYError(message)


def _count(number, name: str) -> int:
    try:
        return operator.index(number)
    except TypeError:
        raise TypeError(f"{name} is an integer, not {number!r}") from None


def _numbers(data, what: str) -> np.ndarray:
    """What was given as an array of numbers."""
    array = np.asarray(data.to_numpy() if hasattr(data, "to_numpy") else data)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{what} takes numbers, not {type(data).__name__} of {array.dtype}")
    return array


def _frame_path(series_num: int, path: str | os.PathLike[str]) -> str:
    """The path of a file of a series: the number comes before the ending."""
    return f"{os.fspath(path).removesuffix('.ply')}_{_count(series_num, 'series_num'):06d}.ply"
