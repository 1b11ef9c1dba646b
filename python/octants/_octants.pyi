# Written by scripts/write_stubs.py from the package and from scripts/stub_templates.
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from typing_extensions import Self

"Types of the compiled half."
__version__: str
llvm_version: str
dtypes: dict[str, DataType]
MAX_AXES: int

def cache_usage(folder: str) -> list[tuple[str, bool, int, int]]:
    """What is in a folder: a list of versions, each with its name, whether it is this one, the number of entries and their bytes."""

def cache_clean(folder: str) -> tuple[int, int]:
    """Removes all that is in a folder: how many files, and their bytes."""

def cache_verify(folder: str) -> tuple[int, list[str]]:
    """Reads all that is in a folder: how many entries are whole, and those that are not. These are removed."""

class DataType:
    """A scalar type. Called on the host, it converts a number; inside a kernel, it casts."""

    @staticmethod
    def of(object: Any) -> DataType: ...
    @property
    def name(self) -> str: ...
    @property
    def numpy_name(self) -> str: ...
    @property
    def is_integral(self) -> bool: ...
    @property
    def is_signed(self) -> bool: ...
    def to_string(self) -> str:
        """The type's name."""

    def __call__(self, value: Any) -> Any: ...

class Expr: ...

class OpenSession:
    """A session that is open, and not the current one yet."""

class Runtime:
    call_hook: Any

    def open(self, arch: str, default_fp: DataType, default_ip: DataType, options: dict[str, object]) -> OpenSession:
        """Opens a session, which is not the current one yet."""

    def begin(self, opened: OpenSession) -> None:
        """Makes a session that was opened the current one; the one before it ends."""

    def before_fork(self) -> None:
        """To be called before the process forks: waits, for a while, for what other threads are at."""

    def after_fork(self) -> None:
        """To be called in the parent after a fork."""

    def after_fork_in_child(self) -> None:
        """To be called in the child after a fork."""

    def configure(self, options: dict[str, object]) -> None:
        """Changes options that only the compilations to come look at. Kernels compile again when called."""

    def end(self) -> None:
        """Ends the current session: its arrays refuse from now on, kernels compile again when called."""

    def sync(self, all: bool) -> None:
        """Waits until everything launched so far in the default stream is done, or in all streams."""

    def finish(self) -> None:
        """Runs when the interpreter ends: work in streams that nobody waited for ends early, where the device can end it."""

    def device_properties(self) -> tuple[str, str, dict[str, int]]:
        """The name of the device's kind, what it calls itself, and its numbers by their names. Starts a session if there is none."""

    @property
    def arches(self) -> list[str]:
        """The names of the kinds of devices that this build has code for."""

    @property
    def arch(self) -> str | None: ...
    root: Any

    @property
    def clock_rate(self) -> int | None:
        """How often in a second the device's clock counts; `None` if it does not say, or there is no session."""

    @property
    def live_arrays(self) -> int: ...
    @property
    def live_bytes(self) -> int: ...
    @property
    def peak_bytes(self) -> int:
        """The most that was held at once."""

    @property
    def profiler(self) -> SessionProfiler | None:
        """The profiler of the current session."""

    def keep_traces(self) -> None:
        """From now on, what sessions record is kept when they end."""

    def all_traces(self) -> tuple[str, list[str]]:
        """What the sessions that were kept and the current one have recorded: as JSON for viewers, and a summary of each."""

class SessionProfiler:
    """The profiler of one session."""

    @property
    def recording(self) -> bool:
        """Whether launches are recorded."""

    def count_table(self) -> str: ...
    def trace_table(self) -> str: ...
    def phase_table(self) -> str: ...
    def summary(self) -> str: ...
    def chrome_trace(self) -> str:
        """As JSON for viewers."""

    def query(self, name: str) -> tuple[int, float, float, float]:
        """How often a kernel or a task ran; and the least, most and average milliseconds."""

    def total_time(self) -> float:
        """Seconds of all tasks."""

    def clear(self) -> None: ...
    def clear_phases(self) -> None: ...

class scope:
    """`with oc.profiler.scope("name"):` names a part of the host's time in the trace."""

    def __new__(cls, name: str, runtime: Runtime) -> Self: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...

class Func:
    def __init__(self, function: FunctionType, runtime: Runtime) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

class Kernel:
    __qualname__: str

    def __init__(self, function: FunctionType, runtime: Runtime, pure: bool = False) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def grad(self, *args: Any, **kwargs: Any) -> None:
        """The derivative in reverse mode, with the arguments of a call: what the results' gradients hold goes back to those of what the kernel reads."""

    def grad_plan(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """What the derivative in reverse mode does for these arguments: which parameters have gradients, what it keeps of which loops and how
        much memory that takes, what it reads again, and where derivatives end. Runs nothing but what computes the memory, and waits for that."""

    def _compile(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None, grad: bool) -> None: ...
    def _launch(
        self, args: tuple[Any, ...], kwargs: dict[str, Any] | None, with_duals: bool, step: StepCheck | None = None
    ) -> Any: ...
    def _launch_grad(
        self, args: tuple[Any, ...], kwargs: dict[str, Any] | None, with_duals: bool, sinks: Sinks | None = None
    ) -> Any: ...
    def _record(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None,
        sinks: Sinks,
        validate: bool,
        step: StepCheck | None = None,
    ) -> tuple[Any, Record | None]: ...
    def _run(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None,
        sinks: Sinks | None,
        overwrites: Overwrites,
        step: StepCheck | None = None,
    ) -> tuple[Any, Record | None, Run | None]: ...
    def _run_again(self, run: Run, kwargs: dict[str, Any] | None) -> Record | None: ...
    def _record_duals(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> tuple[Any, Record | None]: ...
    def _replay_grad(
        self, record: Record, kwargs: dict[str, Any] | None, *, log: WriteLog, values: int, derivatives: int
    ) -> None: ...
    def _require_unchanged(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None,
        log: WriteLog,
        own: WriteLog,
        since: int,
        called: str,
        grad: bool = False,
    ) -> None: ...
    @property
    def _draws_random(self) -> bool: ...
    def _needed_values(self, record: Record) -> list[tuple[str, int]]: ...
    def compile_statistics(self) -> list[dict[str, float]]:
        """Where the time of each compilation went, newest first: a list of dicts with milliseconds."""

    def resources(self) -> list[dict[str, Any]]:
        """What each task of the newest compilation takes of the GPU: a list of dicts. Empty on a device without registers to count."""

    def dump(self, stage: str, *, capability: int | None = None, grad: bool = False) -> str | None:
        """A text that shows the newest compilation at some stage: "ir", "tasks", "llvm", "llvm-optimised", "asm", "ptx" or "sass". The last
        two are for NVIDIA's GPUs of a compute capability, the session's device or 90. With `grad`, that of the derivative in reverse mode."""

class Record:
    """What a recorded call of a kernel keeps for its derivative. Its memory is free when it is gone."""

    @property
    def bytes(self) -> int:
        """How much memory it takes."""

    @property
    def line(self) -> str:
        """Where the call is, as the user's file and line."""

    @property
    def arrays(self) -> list[Any]:
        """The ndarrays and torch's tensors that the call took."""

class Run:
    """What it takes to launch a call again."""

    @property
    def line(self) -> str:
        """Where the call is, as the user's file and line."""

    @property
    def arrays(self) -> list[Any]:
        """The ndarrays and torch's tensors that the call took."""

    @property
    def is_derived(self) -> bool:
        """Whether it has a derivative."""

class Overwrites:
    """Sees the launches of a tape in bounded memory before they run."""

    def __init__(self, begin: Any, write: Any) -> None: ...
    def run(self) -> None:
        """From now on launches are kept to run again."""

    def is_used(self, object: Any) -> bool:
        """Whether somebody has used an array or field."""

    def note(self, object: Any) -> None:
        """Somebody uses all of an array or field."""

class Sinks:
    """Memory without gradients in which kernels of a tape stored what has some: those who read it later would lose them."""

    def __init__(self) -> None: ...

class BoundKernel:
    __self__: Any
    __func__: Kernel

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def grad(self, *args: Any, **kwargs: Any) -> None:
        """The derivative of the kernel; see there."""

    def grad_plan(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """What the derivative does; see the kernel's."""

class Ndarray:
    """An array of scalars in the memory of the current session. Freed when nothing refers to it."""

    def __init__(self, runtime: Runtime, dtype: Any, shape: Any, layout: Sequence[int] | None = None) -> None: ...
    @property
    def shape(self) -> tuple[int, ...]:
        """How many elements there are along each axis."""

    @property
    def element_shape(self) -> tuple[int, ...]:
        """The axes of an element: `()` for numbers, `(n,)` for vectors, `(n, m)` for matrices."""

    @property
    def dtype(self) -> DataType:
        """The type of the elements, or of their entries."""

    @property
    def element_type(self) -> DataType:
        """The type of the elements: of a vector or matrix, if they are that."""

    @property
    def layout(self) -> tuple[int, ...] | None:
        """The axes from the slowest to the fastest in memory, if that is not their own order."""

    def fill(self, val: Any, *, qd_stream: Any = None) -> None:
        """Sets every element."""

    def copy_from(self, other: Ndarray | Tensor, *, qd_stream: Any = None) -> None:
        """Copies all elements of another array of the same type and shape."""

    def to_numpy(self, dtype: Any = None, *, copy: bool | None = True, qd_stream: Any = None) -> Any:
        """A numpy array with the elements. `copy=True`: its own copy. `copy=None`: shares the memory if possible. `copy=False`: shares
        the memory or refuses."""

    def from_numpy(self, arr: Any, *, qd_stream: Any = None) -> None:
        """Sets all elements from a numpy array of the same shape; other types are converted."""

    def to_dlpack(self, versioned: bool = False) -> Any:
        """A capsule by which another library looks at the memory, of DLPack's first form or of the one with versions."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any: ...
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __getitem__(self, index: Any) -> Any: ...
    def __setitem__(self, index: Any, value: Any) -> None: ...

class BufferView:
    """A contiguous part of an ndarray along its first axis: ``array[a:b]``. Keeps the array alive."""

    def __init__(self, arr: Ndarray, offset: int, size: int) -> None: ...
    def __class_getitem__(cls, item: Any) -> Any: ...
    @property
    def size(self) -> int:
        """How many elements, or rows, there are."""

    @property
    def offset(self) -> int:
        """Where the view begins in its array."""

    @property
    def shape(self) -> tuple[int, ...]:
        """How many elements there are along each axis."""

    @property
    def dtype(self) -> Any:
        """The type of the elements, or of their entries."""

    def subview(self, offset: int, size: int) -> BufferView:
        """A part of this view: ``size`` elements from ``offset`` on."""

    def get_ndarray(self) -> Ndarray:
        """The array that this is a part of."""

    def to_numpy(self, *, copy: bool | None = True, qd_stream: Any = None) -> Any:
        """A numpy array with the elements; ``copy=False`` or ``None`` shares the memory."""

    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any: ...
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: Any) -> Any: ...
    def __setitem__(self, index: Any, value: Any) -> None: ...

class Stream:
    """A queue of launches. The base of the class that users see."""

    def __new__(cls, runtime: Runtime, handle: Any, priority: int | None) -> Self: ...
    @property
    def handle(self) -> int:
        """The device's own handle, an integer; 0 for the default stream, and on a device whose streams are all one."""

    def synchronize(self) -> None:
        """Waits until everything in the queue is done."""

    def destroy(self) -> None:
        """Waits until everything in the queue is done, then gives the stream up. One of another library lives on."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: object) -> None: ...

class Event:
    """A point in a stream's queue. The base of the class that users see."""

    def __new__(cls, runtime: Runtime) -> Self: ...
    @property
    def handle(self) -> int:
        """The device's own handle, an integer; 0 on a device without several streams."""

    def record(self, qd_stream: Any = None) -> None:
        """The event now stands at the end of the stream's queue."""

    def wait(self, qd_stream: Any = None) -> None:
        """What comes later on the stream waits for the latest recording."""

    def synchronize(self) -> None:
        """The host waits for the latest recording."""

    def query(self) -> bool:
        """Whether the latest recording is passed."""

    def elapsed(self, other: Event) -> float:
        """Milliseconds from the latest recording of this event to that of another; waits for both."""

    def destroy(self) -> None:
        """Gives the event up; streams that wait for it still do."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: object) -> None: ...

class Tree:
    """A tree that grows until it is finished; then it has memory."""

    def __init__(self, runtime: Runtime) -> None: ...
    def add_node(self, parent: int, kind: str, axes: Sequence[int], extents: Sequence[int]) -> int:
        """Adds a node; gives its number."""

    def add_dynamic(self, parent: int, axes: Sequence[int], extent: int, chunk: int) -> int:
        """Adds a list that grows in chunks; gives its number."""

    def allocated(self, node: int) -> int:
        """How many slots of a node's pool were ever given out; nothing for a node without a pool."""

    def backed_bytes(self, node: int) -> int | None:
        """Bytes that a node's pool has memory for, where pools grow by parts; nothing for a node without a pool."""

    @property
    def is_sparse(self) -> bool:
        """Whether some node's cells come and go."""

    @property
    def is_live(self) -> bool:
        """Whether it has memory that can be used."""

    def add_leaf(self, parent: int, dtype: DataType, element_shape: Sequence[int], origin: Sequence[int]) -> int:
        """Places elements in a node; gives the leaf's number."""

    def check(self) -> None:
        """Refuses if the tree's session was reset."""

    def finish(self) -> None:
        """Gives the tree its memory."""

    def destroy(self) -> None: ...
    @property
    def is_finished(self) -> bool: ...
    def parent(self, node: int) -> int | None: ...
    def kind(self, node: int) -> str: ...
    def axes(self, node: int) -> list[int]:
        """The axes that a node cuts."""

    def shape(self, node: int) -> list[int]: ...
    def children(self, node: int) -> list[tuple[bool, int, int]]:
        """What lies in a cell: for each child whether it is a leaf, its number, and how many scalars lie in an element of a leaf."""

    def cell_bytes(self, node: int) -> int: ...
    def node_offset(self, node: int) -> int: ...
    def entry_offset(self, leaf: int, entry: int) -> tuple[int, int]:
        """Bytes of a leaf's scalar, and where its entry lies in a cell."""

class Node:
    """A node of a tree, or a leaf, or one entry of a leaf. The base of the class that users see."""

    def __new__(cls, tree: Tree, node: int, leaf: tuple[int, int] | None = None) -> Self: ...
    @property
    def _tree(self) -> Tree: ...
    @property
    def _node(self) -> int: ...
    @property
    def _leaf(self) -> tuple[int, int] | None: ...
    @property
    def _id(self) -> int: ...

class Field:
    """A field: scalars, vectors or matrices, or structs of fields. The base of the classes that users see."""

    @property
    def _is_bound(self) -> bool: ...
    @property
    def _is_live(self) -> bool: ...
    @property
    def _is_sparse(self) -> bool: ...
    def _bind_leaf(self, tree: Tree, leaf: int, name: str) -> None: ...
    def _bind_entry(self, whole: Field, entry: int, name: str) -> None: ...
    def _bind_entries(self, shape: Sequence[int], entries: Sequence[Field]) -> None: ...
    def _bind_members(self, members: Sequence[tuple[str, Field]], struct_type: Any) -> None: ...
    def _origin(self) -> tuple[int, ...]: ...
    def _extents(self) -> tuple[int, ...]: ...
    def _addresses(self) -> list[int]: ...
    def _checked(self, index: Any) -> tuple[int, ...]: ...
    def _get(self, index: Any) -> list[Any]: ...
    def _set_entry(self, index: Any, entry: int, value: Any) -> None: ...
    def __getitem__(self, index: Any) -> Any: ...
    def __setitem__(self, index: Any, value: Any) -> None: ...
    def _fill(self, value: Any, qd_stream: Any = None) -> None: ...
    def _read(self, qd_stream: Any = None) -> Any: ...
    def _write(self, array: Any, qd_stream: Any = None) -> None: ...
    def _copy_together(self, fields: list[Any], array: Any | None, qd_stream: Any = None) -> Any: ...
    def _copy_leaves(self, to: list[Any], from_: list[Any], qd_stream: Any = None) -> bool: ...
    def _alias(self) -> Any | None: ...
    def _to_dlpack(self, versioned: bool = False) -> Any: ...
    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

class Tensor:
    """What the classes of tensors have in common: the array or field behind them."""

    def __init__(self, impl: Ndarray | Field, /) -> None: ...
    @property
    def _impl(self) -> Any: ...
    def _unwrap(self) -> Any: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

def dtype_by_name(name: str) -> DataType:
    """The canonical object of a name, for pickles."""

def explain(code: str) -> str | None:
    """What a code of a diagnostic means, or nothing if there is no such code."""

def plain_array(values: Any, dtype: DataType | None = None) -> Any | None:
    """An array of the numbers in a list, or in a list of lists of one length: of `dtype` or of the type that numpy gives them. Lists are tuples, too. `None` for
    anything else than Python's own numbers, and for numbers that do not fit: those need a closer look."""

def processors() -> int:
    """How many processors this process may use: the default of `cpu_max_num_threads`."""

def host_only(name: str) -> None:
    """Refuses what the package's Python code is about to do, if a compilation called it."""

def is_compiling() -> bool:
    """Whether Python code runs that a compilation called."""

def trace_call(callee: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of the language's own function from compile-time Python code, some argument being an expression."""

class SparseAnalysis:
    """What follows from the places of a matrix' entries alone."""

    def __init__(self, solver: str, ordering: str, starts: bytes, rows: bytes) -> None: ...
    def factorise(self, values: bytes) -> SparseFactor | None:
        """The factors of the matrix with these values, the bytes of f64; `None` if it has none."""

class SparseFactor:
    """The factors of a matrix."""

    def solve(self, right: bytes) -> bytes:
        """The solution, the bytes of f64, for a right-hand side in the same form."""

class StepCheck:
    """Sees the launches of a step."""

    def __init__(self, log: WriteLog | None = None, since: int = 0, own: WriteLog | None = None) -> None: ...
    @property
    def taken(self) -> list[tuple[str, list[tuple[str, Any]]]]:
        """For each launch the name of the kernel, and what the launch took from the host: names and objects."""

    @property
    def written(self) -> list[Any]:
        """The arrays among arguments and members that launches wrote, each once or more."""

    @property
    def uses_session(self) -> bool:
        """Whether a launch used fields or arrays of the session, whose contents others may change."""

class WriteLog:
    """Who wrote what, since it was opened."""

    def __init__(self, of_host: bool = False) -> None: ...
    def note(self, object: Any, writer: str) -> None:
        """All of an array or field is written."""

    def writer_since(self, object: Any, number: int) -> str | None:
        """Who has written to an array or field in an entry from `number` on."""

    def open(self) -> None:
        """Begins to take notes."""

    def close(self) -> None:
        """Ends it. What was noted stays."""

    @property
    def entries(self) -> int:
        """How many entries there are."""

    def record(self, is_recording: bool) -> bool:
        """Whether somebody sees to the derivatives of what is written from now on; gives what was said before."""

    def has_recorded(self, object: Any) -> bool:
        """Whether a launch whose derivative is taken care of has written to an array or field."""

    def host_writer_since(self, object: Any, number: int) -> str | None:
        """Who has written to an array or field in an entry from `number` on whose derivative nobody takes care of."""

def tell_of_write(object: Any, method: str) -> None:
    """Another library writes all of an array or field for us."""

def tell_of_torch(tensor: Any) -> None:
    """Torch has written to a tensor, some time ago."""

def refusal(code: str, message: str, help: str | None = None) -> Exception:
    """The exception of a diagnostic that the Python half of the package raises."""
