"""Names of the specification that Octants does not have yet, and what to use until it does."""

from __future__ import annotations

#: What to use in place of a name.
INSTEAD = {
    "BitpackedFields": "use fields of i8 or i16",
    "DeviceCapability": "ask for devices with oc.init(arch=[...]), which takes the first one that there is",
    "Format": "keep images in fields or arrays",
    "GraphStatus": "launch the kernels one after the other",
    "Mesh": "keep the relations of a mesh in fields or arrays",
    "MeshInstance": "keep the relations of a mesh in fields or arrays",
    "ad": "write the kernel of the derivative by hand",
    "algorithms": "write the loop as a kernel, or use numpy on to_numpy()",
    "checkpoint": "launch the kernels one after the other",
    "deactivate_all_snodes": "fill the fields with zeros",
    "global_thread_idx": "use the loop's index",
    "graph": "launch the kernels one after the other, in a Python loop",
    "graph_do_while": "use a Python loop around the kernels",
    "graph_parallel": "use `with oc.stream_parallel():` blocks in a kernel",
    "graph_parallel_context": "use `with oc.stream_parallel():` blocks in a kernel",
    "interop": "there is nothing in it for this machine",
    "linalg": "use scipy.sparse on to_numpy(copy=False)",
    "mesh_local": "leave it out: it is a hint",
    "mesh_patch_idx": "keep the relations of a mesh in fields or arrays",
    "outer": "use a.outer_product(b)",
    "perf_dispatch": "call the implementation that is the fastest here",
    "python": "use oc.reference, an interpreter",
    "simt": "use oc.loop_config(block_dim=...), and reductions as plain sums",
    "sparse": "use dense nodes",
    "sparse_matrix_builder": "use scipy.sparse on to_numpy(copy=False)",
    "stop_grad": "leave it out in kernels that are not differentiated",
    "tools": "write files with numpy or another library",
}


def message(name: str) -> str | None:
    """What to tell of a name that is not there yet; nothing of any other."""
    instead = INSTEAD.get(name)
    return None if instead is None else f"oc.{name} is not in Octants yet: {instead}"
