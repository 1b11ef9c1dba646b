"""Names of the specification that Octants does not have yet, and what to use until it does."""

from __future__ import annotations

from .exceptions import OctantsCompilationError

#: What to use in place of a name.
INSTEAD = {
    "DeviceCapability": "ask for devices with oc.init(arch=[...]), which takes the first one that there is",
    "Format": "keep images in fields or arrays",
    "GUI": "show to_numpy() with another library",
    "GraphStatus": "launch the kernels one after the other",
    "Mesh": "keep the relations of a mesh in fields or arrays",
    "MeshInstance": "keep the relations of a mesh in fields or arrays",
    "checkpoint": "launch the kernels one after the other",
    "global_thread_idx": "use the loop's index",
    "graph_do_while": "use a Python loop around the kernels",
    "graph_parallel": "use `with oc.stream_parallel():` blocks in a kernel",
    "graph_parallel_context": "use `with oc.stream_parallel():` blocks in a kernel",
    "linalg": "use scipy.sparse on to_numpy(copy=False)",
    "mesh_local": "leave it out: it is a hint",
    "mesh_patch_idx": "keep the relations of a mesh in fields or arrays",
    "outer": "use a.outer_product(b)",
    "python": "use oc.reference, an interpreter",
    "sparse_matrix_builder": "use scipy.sparse on to_numpy(copy=False)",
    "ui": "show to_numpy() with another library",
}


def message(name: str) -> str | None:
    """What to tell of a name that is not there yet; nothing of any other."""
    instead = INSTEAD.get(name)
    return None if instead is None else f"oc.{name} is not in Octants yet: {instead}"


class Unbuilt:
    """A name that resolves, with whatever is under it; calling it is refused."""

    def __init__(self, name: str, instead: str):
        self._name = name
        self._instead = instead

    def __getattr__(self, name: str) -> Unbuilt:
        if name.startswith("__"):
            raise AttributeError(name)
        return Unbuilt(f"{self._name}.{name}", self._instead)

    def __call__(self, *args, **kwargs):
        raise OctantsCompilationError(f"oc.{self._name} is not in Octants yet: {self._instead}")

    def __repr__(self):
        return f"<oc.{self._name}, which is not in Octants yet>"
