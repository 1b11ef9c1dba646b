"""Names of the specification that Octants does not have yet, and what to use until it does."""

from __future__ import annotations

from ..exceptions import OctantsCompilationError

#: What to use in place of a name.
INSTEAD = {
    "_kernels": "use the methods of fields and arrays, such as fill and copy_from",
    "GUI": "show to_numpy() with another library",
    "GraphStatus": "launch the kernels one after the other",
    "Mesh": "keep the relations of a mesh in fields or arrays",
    "MeshInstance": "keep the relations of a mesh in fields or arrays",
    "checkpoint": "launch the kernels one after the other",
    "graph_do_while": "use a Python loop around the kernels",
    "graph_parallel": "use `with oc.stream_parallel():` blocks in a kernel",
    "graph_parallel_context": "use `with oc.stream_parallel():` blocks in a kernel",
    "lang.any_array": "arrays are oc.Ndarray, also while a kernel is compiled",
    "lang.checkpoint": "launch the kernels one after the other",
    "lang.common_ops": "write the operators",
    "lang.graph_parallel": "use `with oc.stream_parallel():` blocks in a kernel",
    "lang.graph_status": "launch the kernels one after the other",
    "lang.mesh": "keep the relations of a mesh in fields or arrays",
    "lang.source_builder": "write the function in Python, as an oc.func",
    "mesh_local": "leave it out: it is a hint",
    "mesh_patch_idx": "keep the relations of a mesh in fields or arrays",
    "pytest_plugin": "coverage by lines ends at the call of a kernel; leave the plugin out",
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
