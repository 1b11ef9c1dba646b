"""Files that other programs read, each read back by a reader that shares nothing with the writer; and the report on the environment."""

import os
import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import octants as oc
from octants.tools import PLYWriter, write_vtk

CODES = {"char": "b", "uchar": "B", "short": "h", "ushort": "H", "int": "i", "uint": "I", "float": "f", "double": "d"}


def read_ply(path):
    """The elements of a file: for each its rows, a row being a list of (name, value); a list property has a list of values."""
    data = path.read_bytes()
    head, _, body = data.partition(b"end_header\n")
    lines = head.decode().splitlines()
    assert lines[0] == "ply"
    encoding = lines[1].split()[1]
    elements = []
    for line in lines[2:]:
        words = line.split()
        if words[0] == "element":
            elements.append((words[1], int(words[2]), []))
        elif words[0] == "property":
            elements[-1][2].append(words[1:])
        else:
            assert words[0] == "comment"
    words, at = body.split(), 0

    def take(kind):
        nonlocal at
        if encoding == "ascii":
            at += 1
            text = words[at - 1]
            return float(text) if kind in ("float", "double") else int(text)
        code = ("<" if encoding == "binary_little_endian" else ">") + CODES[kind]
        at += struct.calcsize(code)
        return struct.unpack_from(code, body, at - struct.calcsize(code))[0]

    read = {}
    for name, count, properties in elements:
        rows = read[name] = []
        for _ in range(count):
            row = []
            for one in properties:
                if one[0] == "list":
                    row.append((one[3], [take(one[2]) for _ in range(take(one[1]))]))
                else:
                    row.append((one[1], take(one[0])))
            rows.append(row)
    assert at == (len(words) if encoding == "ascii" else len(body)), "bytes are left over"
    return read, encoding, [line for line in lines if line.startswith("comment")]


def columns(rows):
    return {name: [dict(row)[name] for row in rows] for name, _ in rows[0]}


@pytest.mark.no_device
@pytest.mark.parametrize("face_type, corners", [("tri", 3), ("quad", 4)])
@pytest.mark.parametrize("export", ["export", "export_ascii"])
def test_a_mesh_is_read_back(tmp_path, export, face_type, corners):
    n, faces = 50, 7
    numbers = np.random.default_rng(1)
    points, speeds, colours = (numbers.standard_normal((3, n)) * 10.0 ** numbers.integers(-9, 9, n) for _ in range(3))
    indices = numbers.integers(0, n, (faces, corners))
    writer = PLYWriter(n, faces, face_type, comment="a mesh\nof two lines")
    writer.add_faces(indices)
    writer.add_face_channel("area", "double", np.arange(faces) / 3)
    writer.add_face_id()
    writer.add_face_piece(list(range(faces)))
    writer.add_vertex_normal(*speeds)
    writer.add_vertex_pos(*points)
    writer.add_vertex_vel(*speeds)
    writer.add_vertex_rgba(*colours, colours[0])
    writer.add_vertex_id()
    writer.add_vertex_piece(np.arange(n) % 3)
    for name in CODES:
        writer.add_vertex_channel(f"as_{name}", name, np.arange(n))
    writer.add_vertex_channel("sized", "uint16", np.arange(n))
    path = tmp_path / "mesh.ply"
    getattr(writer, export)(path)

    read, encoding, comments = read_ply(path)
    assert encoding == ("ascii" if export == "export_ascii" else f"binary_{sys.byteorder}_endian")
    assert comments == ["comment a mesh", "comment of two lines"] and list(read) == ["vertex", "face"]
    of_vertices, of_faces = columns(read["vertex"]), columns(read["face"])
    assert list(of_vertices)[:6] == ["nx", "ny", "nz", "x", "y", "z"], "channels come in the order that they were added"
    for names, wanted in (("x y z", points), ("nx ny nz", speeds), ("vx vy vz", speeds), ("red green blue", colours)):
        for name, column in zip(names.split(), wanted):
            assert np.array_equal(np.float32(of_vertices[name]), column.astype(np.float32)), name
    assert of_vertices["Alpha"] == of_vertices["red"]
    assert of_vertices["id"] == list(range(n)) and of_vertices["piece"] == [i % 3 for i in range(n)]
    assert all(of_vertices[f"as_{name}"] == list(range(n)) for name in CODES)
    assert of_vertices["sized"] == list(range(n))
    assert of_faces["vertex_indices"] == indices.tolist()
    assert of_faces["area"] == [i / 3 for i in range(faces)], "doubles keep all digits"
    assert of_faces["id"] == of_faces["piece"] == list(range(faces))


@pytest.mark.no_device
def test_the_text_of_a_small_file(tmp_path):
    writer = PLYWriter(num_vertices=3, num_faces=1)
    writer.add_vertex_pos([0.1, 0, 1e30], [1, 2, 1234.5678], [np.nan, -np.inf, 1 / 3])
    writer.add_faces([0, 1, 2])
    writer.export_frame_ascii(7, str(tmp_path / "drop.ply"))
    assert (tmp_path / "drop_000007.ply").read_text().splitlines() == [
        "ply", "format ascii 1.0", "comment created by PLYWriter", "element vertex 3", "property float x", "property float y",
        "property float z", "element face 1", "property list uchar int vertex_indices", "end_header",
        "0.1 1.0 nan ", "0.0 2.0 -inf ", "1e+30 1234.5677 0.33333334 ", "3 0 1 2 ",
    ]  # fmt: skip
    writer.export_frame(1234567, tmp_path / "drop")
    writer.print_header(tmp_path / "head.ply", "ascii")
    assert sorted(os.listdir(tmp_path)) == ["drop_000007.ply", "drop_1234567.ply", "head.ply"]
    assert (tmp_path / "drop_000007.ply").read_bytes().startswith((tmp_path / "head.ply").read_bytes())


@pytest.mark.host_access
def test_points_of_fields_and_arrays(arch, tmp_path):
    x, y = oc.field(oc.f32, 4), oc.ndarray(oc.i32, 4)
    x.fill(1.5)
    y.fill(2)
    writer = PLYWriter(4)
    writer.add_vertex_pos(x, y, np.arange(4).reshape(2, 2))
    writer.export(tmp_path / "points.ply")
    read, _, _ = read_ply(tmp_path / "points.ply")
    assert columns(read["vertex"]) == {"x": [1.5] * 4, "y": [2.0] * 4, "z": [0.0, 1.0, 2.0, 3.0]} and "face" not in read


def with_positions(*arguments):
    writer = PLYWriter(*arguments)
    writer.add_vertex_pos(*np.zeros((3, writer.num_vertices)))
    return writer


REFUSED = {
    "no vertices": (lambda: PLYWriter(0), "num_vertices is at least 1, not 0"),
    "faces": (lambda: PLYWriter(1, -1), "num_faces is at least 0, not -1"),
    "face type": (lambda: PLYWriter(1, 1, "hexagon"), '"tri" or "quad", not \'hexagon\''),
    "length": (lambda: PLYWriter(5).add_vertex_piece(np.zeros(4)), "channel 'piece' has 4 numbers, but there are 5 vertices"),
    "face channel": (lambda: PLYWriter(5, 2).add_face_piece(np.zeros(5)), "channel 'piece' has 5 numbers, but there are 2 faces"),
    "corners": (lambda: PLYWriter(5, 2, "quad").add_faces(np.zeros(6, int)), r"2 faces have 8 corners \(4 each\), but 6 indices"),
    "unknown vertex": (lambda: PLYWriter(5, 1).add_faces([0, 5, 1]), "the vertices 0 to 5, but there are 0 to 4"),
    "negative vertex": (lambda: PLYWriter(5, 1).add_faces([0, -1, 1]), "the vertices -1 to 1, but there are 0 to 4"),
    "half a vertex": (lambda: PLYWriter(5, 1).add_faces([0, 0.5, 1]), "indices of vertices are integers"),
    "type": (lambda: PLYWriter(1).add_vertex_channel("a", "int64", [1]), "'int64'; there are char, uchar, short"),
    "name": (lambda: PLYWriter(1).add_vertex_channel("a b", "int", [1]), "'a b' is no name of a channel"),
    "no positions": (lambda: PLYWriter(2).export("unwritten.ply"), "no x, y, z: call add_vertex_pos first"),
    "no faces": (lambda: with_positions(3, 1).export("unwritten.ply"), "num_faces is 1, but there are no faces: call add_faces first"),
}  # fmt: skip


@pytest.mark.no_device
@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_mesh_is_refused(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make, message = REFUSED[case]
    with pytest.raises(ValueError, match=message) as raised:
        make()
    assert isinstance(raised.value, AssertionError), "programs for Quadrants expect one"
    assert os.listdir(tmp_path) == [], "no file is begun"


@pytest.mark.no_device
def test_wrong_kinds_of_arguments(tmp_path):
    with pytest.raises(TypeError, match=r"num_vertices is an integer, not 2\.5"):
        PLYWriter(2.5)
    with pytest.raises(TypeError, match="series_num is an integer, not '7'"):
        with_positions(1).export_frame("7", tmp_path / "a.ply")
    with pytest.raises(TypeError, match="channel 'a' takes numbers, not list of <U1"):
        PLYWriter(1).add_vertex_channel("a", "int", ["x"])
    with pytest.raises(FileNotFoundError, match="nowhere"):
        with_positions(1).export(tmp_path / "nowhere" / "a.ply")
    writer = with_positions(1)
    with pytest.warns(UserWarning, match="there is a vertex channel '[xyz]' already") as warned:
        writer.add_vertex_pos([1], [2], [3])
    assert warned[0].filename == __file__


def read_vtr(path):
    """The extent of a file, its arrays by name, and what cells hold by default."""
    head, _, tail = path.read_bytes().partition(b'<AppendedData encoding="raw">\n_')
    root = ElementTree.fromstring(head + b"</VTKFile>")
    assert root.attrib["type"] == "RectilinearGrid" and root.attrib["header_type"] == "UInt64"
    order = "<" if root.attrib["byte_order"] == "LittleEndian" else ">"
    piece = root.find("RectilinearGrid/Piece")
    assert piece.attrib["Extent"] == root.find("RectilinearGrid").attrib["WholeExtent"]
    kinds = {"Int": "i", "UInt": "u", "Float": "f"}
    arrays, end = {}, 0
    for one in piece.iter("DataArray"):
        word = one.attrib["type"].rstrip("0123456789")
        dtype = np.dtype(f"{order}{kinds[word]}{int(one.attrib['type'].removeprefix(word)) // 8}")
        at = int(one.attrib["offset"])
        assert at == end and one.attrib["format"] == "appended"
        (size,) = struct.unpack_from(f"{order}Q", tail, at)
        end = at + 8 + size
        numbers = np.frombuffer(tail[at + 8 : end], dtype)
        arrays[one.attrib["Name"]] = numbers.reshape(-1, int(one.attrib["NumberOfComponents"]))
    assert tail[end:].split() == [b"</AppendedData>", b"</VTKFile>"]
    extent = [int(word) for word in piece.attrib["Extent"].split()]
    return extent[1::2], arrays, piece.find("CellData").attrib


@pytest.mark.parametrize("dtype", [oc.f32, oc.f64, oc.i8, oc.u16, oc.i32, oc.u64, oc.f16, oc.u1])
@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 2)])
def test_a_field_is_read_back_from_a_vtk_file(tmp_path, monkeypatch, dtype, shape):
    monkeypatch.chdir(tmp_path)
    x = oc.field(dtype, shape)
    wanted = (np.arange(np.prod(shape)) % 100).reshape(shape).astype(oc.types.to_numpy_type(dtype))
    x.from_numpy(wanted)
    write_vtk(x, "a<b>&c")
    extent, arrays, cells = read_vtr(tmp_path / "a<b>&c.vtr")
    assert cells == {"Scalars": "a<b>&c"} and extent == [*shape, 1][:3]
    for axis, name in enumerate("xyz"):
        assert arrays[f"{name}_coordinates"].ravel().tolist() == list(range(extent[axis] + 1))
    # One value for each cell, along x first.
    assert arrays["a<b>&c"].shape == (wanted.size, 1)
    assert np.array_equal(arrays["a<b>&c"].ravel(), wanted.ravel(order="F"))


@pytest.mark.no_device
def test_vectors_and_arrays_in_vtk_files(tmp_path):
    flat = oc.Vector.ndarray(2, oc.f32, (3, 2))
    numbers = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
    flat.from_numpy(numbers)
    write_vtk(flat, tmp_path / "flat")
    extent, arrays, cells = read_vtr(tmp_path / "flat.vtr")
    stored = arrays[str(tmp_path / "flat")]
    assert extent == [3, 2, 1] and list(cells) == ["Vectors"] and stored.shape == (6, 3)
    assert stored[:3, :2].tolist() == numbers[:, 0].tolist() and not stored[:, 2].any()
    write_vtk(oc.Vector.field(4, oc.i32, (2, 2, 2)), tmp_path / "four")
    _, arrays, cells = read_vtr(tmp_path / "four.vtr")
    assert list(cells) == ["Scalars"] and arrays[str(tmp_path / "four")].shape == (8, 4)
    write_vtk(numbers[..., 0].T, tmp_path / "numpy")
    assert read_vtr(tmp_path / "numpy.vtr")[0] == [2, 3, 1]


@pytest.mark.no_device
def test_what_no_vtk_file_can_hold(tmp_path):
    for made, message in (
        (oc.field(oc.f32, 3), "two or three axes of numbers or vectors, not 1 of numbers"),
        (oc.field(oc.f32, (2, 2, 2, 2)), "not 4 of numbers"),
        (oc.Matrix.field(2, 2, oc.f32, (2, 2)), "not 2 of matrices"),
        (oc.Vector.field(2, oc.f32, 2), "not 1 of vectors"),
        (np.zeros((0, 2)), r"not one of shape \(0, 2\)"),
    ):
        with pytest.raises(ValueError, match=message):
            write_vtk(made, tmp_path / "x")
    with pytest.raises(TypeError, match="numbers, not object"):
        write_vtk(oc.Struct.field({"a": oc.f32}, shape=(2, 2)), tmp_path / "x")
    with pytest.raises(TypeError, match="numbers, not complex128"):
        write_vtk(np.zeros((2, 2), complex), tmp_path / "x")
    with pytest.raises(FileNotFoundError):
        write_vtk(np.zeros((2, 2)), tmp_path / "nowhere" / "x")
    assert os.listdir(tmp_path) == []


@pytest.mark.no_device
def test_the_report_on_the_environment():
    environment = {**os.environ, "OC_ARCH": "reference", "OC_ENABLE_CUDA": "0"}
    command = [sys.executable, "-W", "error", "-m", "octants.tools.diagnose"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200)
    assert done.returncode == 0 and done.stderr == ""
    lines = [line.split(maxsplit=1) for line in done.stdout.splitlines() if line.startswith("  ")]
    told = {name: text for name, text in lines}
    assert told["version"].startswith(f"{oc.__version_str__}, LLVM ")
    assert told["cpu"] == told["reference"] == "runs kernels"
    assert told["cuda"] == "does not run: no device is available: cuda: hidden by OC_ENABLE_CUDA=0"
    assert told["OC_ARCH"] == "reference" and np.__version__ in told["libraries"]
