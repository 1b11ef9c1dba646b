"""Names and forms that programs for Quadrants use."""

import functools
import importlib
from types import ModuleType

import numpy as np
import pytest

import octants as oc

MODULES = """
    lang lang._fast_caching lang._ndarray lang._ndrange lang._perf_dispatch lang.buffer_view lang.exception lang.expr lang.field lang.func lang.graph
    lang.impl lang.intrinsics lang.kernel lang.kernel_impl lang.matrix lang.misc lang.ops lang.runtime_ops lang.simt lang.snode lang.stream
    lang.struct lang.util types.annotations types.buffer_view_type types.compound_types types.enums types.ndarray_type types.primitive_types
    types.utils math.mathimpl math._complex profiler.kernel_metrics profiler.kernel_profiler profiler.memory_profiler
    profiler.scoped_profiler algorithms._algorithms algorithms._radix_sort ad._ad sparse._sparse_grid tools.np2ply tools.vtk tools.diagnose
    interop _funcs _lib.core _lib.utils _snode _snode.fields_builder _snode.snode_tree _tensor_wrapper _version
""".split()

#: The public names, by namespace.
NAMES = {
    "": """CRITICAL DEBUG ERROR INFO TRACE WARN Backend BitpackedFields BufferView DeviceCapability Event Field FieldsBuilder Format GraphStatus Layout
        Matrix MatrixField MatrixNdarray MatrixTensor Mesh MeshInstance Ndarray SNode ScalarField ScalarNdarray Stream Struct StructField Template
        Tensor Vector VectorNdarray VectorTensor QuadrantsAssertionError QuadrantsCompilationError QuadrantsNameError QuadrantsRuntimeError
        QuadrantsRuntimeTypeError QuadrantsSyntaxError QuadrantsTypeError f16 f32 f64 float16 float32 float64 i8 i16 i32 i64 int8 int16 int32
        int64 u1 u8 u16 u32 u64 uint1 uint8 uint16 uint32 uint64 amdgpu arm64 cpu cuda gpu metal python vulkan x64 x86_64 axes i ij ijk ijkl ijl
        ik ikl il j jk jkl jl k kl l init reset sync is_extension_enabled extension dump_compile_config is_logging_effective
        set_logging_level root kernel func real_func pyfunc pure data_oriented dataclass perf_dispatch template ref static static_assert
        static_print loop_config ndrange grouped stream_parallel checkpoint graph graph_do_while graph_parallel graph_parallel_context abs
        acos asin atan2 bit_cast bit_shr cast ceil cos exp floor frexp log max min one pow randn random raw_div raw_mod round rsqrt select
        sin sqrt tan tanh zero atomic_add atomic_and atomic_cas atomic_exchange atomic_max atomic_min atomic_mul atomic_or atomic_sub atomic_xor
        volatile_load activate append assume_in_range block_local cache_read_only deactivate deactivate_all_snodes get_addr is_active length
        mesh_local mesh_patch_idx no_activate rescale_index stop_grad global_thread_idx clock_counter clock_freq_hz eig make_spd
        polar_decompose solve svd sym_eig field ndarray tensor wrap create_event create_stream sparse_matrix_builder ad algorithms
        experimental interop lang linalg math profiler simt sparse tools types _lib _logging _snode outer""",
    "graph": "do_while parallel parallel_context",
    "ad": "FwdMode Tape clear_all_gradients grad_for grad_replaced no_grad",
    "algorithms": """PrefixSumExecutor exclusive_scan_add exclusive_scan_max exclusive_scan_min exclusive_scan_scratch_slots parallel_sort reduce_add
        reduce_by_key_add reduce_by_key_scratch_slots reduce_max reduce_min reduce_scratch_slots select select_scratch_slots sort
        sort_scratch_slots""",
    "Field": "copy_from fill from_numpy from_torch has_dual has_grad layout parent shape snode to_dlpack to_numpy to_torch",
    "MatrixField": "get_scalar_field",
    "StructField": "get_member_field keys",
    "FieldsBuilder": "bitmasked deactivate_all dense dynamic finalize lazy_dual lazy_grad place pointer quant_array",
    "SNode": "bitmasked deactivate_all dense dynamic lazy_dual lazy_grad parent place pointer quant_array shape",
    "Ndarray": "copy_from element_shape fill get_type has_dual has_grad layout shape to_dlpack",
    "ScalarNdarray": "from_numpy from_torch to_numpy to_torch get_type has_dual has_grad",
    "Matrix": """all any cast cols cross determinant diag dot field fill frobenius_inner get_shape identity inverse max min ndarray norm norm_inv
        norm_sqr normalized one outer_product rows sum tensor to_list to_numpy trace transpose unit zero""",
    "Struct": "entries field items keys methods to_dict",
    "math": """acos asin atan2 cconj cdiv ceil cexp cinv clamp clog clz cmul cos cpow cross csqrt degrees determinant distance dot e exp eye ffs floor
        fns fract inf inverse isinf isnan ivec2 ivec3 ivec4 length log log2 mat2 mat3 mat4 max min mix mod nan normalize pi popcnt pow radians
        reflect refract rot_by_axis rot_yaw_pitch_roll rotation2d rotation3d round scale sign sin smoothstep sqrt step tan tanh translate uvec2
        uvec3 uvec4 vdir vec2 vec3 vec4""",
    "interop": "get_mps_command_queue",
    "sparse": "grid usage",
    "experimental": "real_func",
    "types": "matrix vector struct ndarray NDArray template Template sparse_matrix_builder quant BufferViewType ref is_integral is_real is_signed is_tensor",
    "types.quant": "int fixed float",
    "profiler": """print_kernel_profiler_info query_kernel_profiler_info clear_kernel_profiler_info get_kernel_profiler_total_time
        set_kernel_profiler_toolkit set_kernel_profiler_metrics collect_kernel_profiler_metrics CuptiMetric get_predefined_cupti_metrics
        print_memory_profiler_info print_scoped_profiler_info clear_scoped_profiler_info""",
    "tools": "PLYWriter write_vtk diagnose",
    "simt": "block grid subgroup warp Tile16x16 Tile32x32",
    "simt.Tile16x16": "SIZE eye zeros",
    "simt.block": """SharedArray exclusive_add exclusive_max exclusive_min exclusive_scan global_thread_idx inclusive_add inclusive_max inclusive_min
        inclusive_scan mem_fence mem_sync radix_rank_match_atomic_or reduce reduce_add reduce_all reduce_all_add reduce_all_max reduce_all_min
        reduce_max reduce_min sync sync_all_nonzero sync_any_nonzero sync_count_nonzero thread_idx""",
    "simt.grid": "mem_fence memfence",
    "simt.subgroup": """all_equal all_equal_tiled all_true all_true_tiled any_true any_true_tiled ballot ballot_first_n ballot_full_subgroup barrier
        bitonic_sort_kv bitonic_sort_kv_tiled broadcast broadcast_first elect exclusive_add exclusive_add_tiled exclusive_and exclusive_and_tiled
        exclusive_max exclusive_max_tiled exclusive_min exclusive_min_tiled exclusive_mul exclusive_mul_tiled exclusive_or exclusive_or_tiled
        exclusive_xor exclusive_xor_tiled group_size inclusive_add inclusive_add_tiled inclusive_and inclusive_and_tiled inclusive_max
        inclusive_max_tiled inclusive_min inclusive_min_tiled inclusive_mul inclusive_mul_tiled inclusive_or inclusive_or_tiled inclusive_xor
        inclusive_xor_tiled invocation_id lanemask_eq lanemask_ge lanemask_gt lanemask_le lanemask_lt log2_group_size mem_fence memory_barrier
        reduce_add reduce_add_tiled reduce_all_add reduce_all_add_tiled reduce_all_max reduce_all_max_tiled reduce_all_min reduce_all_min_tiled
        reduce_max reduce_max_tiled reduce_min reduce_min_tiled segmented_reduce_add segmented_reduce_add_tiled segmented_reduce_max
        segmented_reduce_max_tiled segmented_reduce_min segmented_reduce_min_tiled shuffle shuffle_down shuffle_up shuffle_xor sync""",
    "simt.warp": """active_mask all_nonzero any_nonzero ballot match_all match_any shfl_down_f32 shfl_down_i32 shfl_sync_f32 shfl_sync_i32 shfl_up_f32
        shfl_up_i32 shfl_xor_i32 sync unique""",
}  # fmt: skip
#: Those that are not there yet, and say so.
LATER = """GraphStatus Mesh MeshInstance checkpoint graph_do_while graph_parallel graph_parallel_context mesh_local
    mesh_patch_idx""".split()


@pytest.mark.no_device
def test_every_public_name_is_there_or_says_what_to_use():
    missing = {}
    for space, names in NAMES.items():
        owner = functools.reduce(getattr, filter(None, space.split(".")), oc)
        for name in names.split():
            try:
                getattr(owner, name)
            except AttributeError as error:
                missing[f"{space}.{name}".lstrip(".")] = str(error)
    assert sorted(missing) == sorted(LATER)
    for name, message in missing.items():
        assert message.startswith(f"oc.{name} is not in Octants yet: "), message


@pytest.mark.no_device
@pytest.mark.parametrize("name", MODULES)
def test_deep_imports_find_the_same_objects(name):
    module = importlib.import_module(f"octants.{name}")
    for public in getattr(module, "__all__", ()):
        found = getattr(module, public)
        if hasattr(oc, public) and not public.endswith("type_ids"):
            # These are types here and functions there, or say the version in another way; a module of names stands for the module.
            own = ("ndarray", "matrix", "vector", "struct", "__version__")
            assert found is getattr(oc, public) or public in own or isinstance(found, ModuleType), public


@pytest.mark.no_device
def test_names_that_modules_and_functions_share_mean_the_functions():
    importlib.import_module("octants.lang.kernel")
    assert oc.lang.kernel is oc.kernel and oc.lang.func is oc.func and oc.lang.field is oc.field
    assert importlib.import_module("octants.math.mathimpl").vec3 is oc.math.vec3
    assert oc.types.ref is oc.ref and oc.lang.impl.inside_kernel() is False


@pytest.mark.no_device
def test_enumerations():
    assert oc.Format.unknown.value == 0 and oc.Format.rgba8.value == 3 and oc.Format.depth32f.value == 43
    assert len(oc.Format) == 44 and oc.Format is oc.types.enums.Format
    assert oc.DeviceCapability.spirv_version_1_5 == "spirv_version=66816"
    assert oc.DeviceCapability.spirv_has_atomic_float64_add == "spirv_has_atomic_float64_add"
    assert oc.interop.get_mps_command_queue() == 0


@pytest.mark.no_device
def test_the_python_backend_is_the_interpreter():
    oc.init(arch=oc.python, log_level="error")
    assert oc.cfg.arch is oc.reference


def test_blocks_of_threads_are_known_by_every_name(arch):
    if arch != "reference":
        pytest.skip("blocks run in the interpreter so far")
    from octants.lang.simt import block
    from octants.lang.simt.subgroup import shuffle

    @oc.kernel
    def turned(x: oc.types.NDArray[oc.i32, 1]):
        oc.loop_config(block_dim=32)
        for i in range(32):
            block.sync()
            x[i] = shuffle(i, 31 - oc.lang.simt.block.thread_idx())

    x = oc.ndarray(oc.i32, 32)
    turned(x)
    assert x.to_numpy().tolist() == list(range(31, -1, -1))


@pytest.mark.no_device
def test_what_programs_look_up_inside():
    assert oc.lang.ops.sin is oc.sin and oc.types.primitive_types.f32 is oc.f32
    assert oc.lang.exception.QuadrantsIndexError is oc.exceptions.OctantsIndexError
    assert oc._lib.core.with_cuda() and not oc._lib.core.with_vulkan()
    assert not oc._lib.core.GGUI_AVAILABLE
    assert oc.types.primitive_types.integer_types
    assert oc.lang.Matrix is oc.Matrix and oc.lang.kernel is oc.kernel
    with pytest.raises(AttributeError, match="module 'octants.lang' has no attribute 'nonsense'"):
        oc.lang.nonsense


def test_types_of_other_libraries_and_options_are_found_inside(arch):
    util = oc.lang.util
    assert util.to_quadrants_type(np.float32) is oc.f32 and util.to_numpy_type(oc.u1) == np.bool_
    assert oc.lang.impl.current_cfg().default_fp is oc.f32
    if util.has_pytorch():
        import torch

        wanted = {oc.f32: torch.float32, oc.u1: torch.bool, oc.i64: torch.int64, oc.u8: torch.uint8}
        assert {dtype: util.to_pytorch_type(dtype) for dtype in wanted} == wanted
    with pytest.raises(TypeError, match="not a data type"):
        util.to_quadrants_type(np.complex64)


def test_the_shared_memory_of_blocks_is_a_gpus(arch):
    if arch == "cuda":
        assert oc.lang.impl.get_max_shared_memory_bytes(is_lowerbound_ok=False) >= 48 << 10
        return
    assert oc.lang.impl.get_max_shared_memory_bytes(is_lowerbound_ok=True) == 0
    with pytest.raises(RuntimeError, match="not implemented for arch"):
        oc.lang.impl.get_max_shared_memory_bytes(is_lowerbound_ok=False)


def test_the_runtime_is_known_on_the_host_and_in_kernels(arch):
    runtime = oc.lang.impl.get_runtime()
    assert runtime.default_fp is oc.f32 and runtime.default_ip is oc.i32
    runtime.prog.synchronize()

    @oc.kernel
    def tolerance() -> oc.f32:
        return 1e-6 if oc.static(oc.lang.impl.get_runtime().default_fp == oc.f32) else 1e-13

    assert tolerance() == np.float32(1e-6)


@pytest.mark.no_device
def test_what_is_not_there_yet_says_what_to_use():
    from octants._peer.not_yet import INSTEAD

    missing = [name for name in INSTEAD if not hasattr(oc, name)]
    for name in missing:
        with pytest.raises(AttributeError, match=f"oc.{name} is not in Octants yet: "):
            getattr(oc, name)
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        oc.nonsense


def test_a_field_is_printed_with_its_elements(arch, capsys):
    x = oc.field(oc.f32, (2, 2))
    x[0, 1] = 3
    print(x)
    print(oc.Vector.field(2, oc.i32, 2))
    print(oc.Struct.field({"a": oc.i32}, shape=2))
    print(oc.field(oc.i32, ()))
    printed = capsys.readouterr().out
    assert printed == "[[0. 3.]\n [0. 0.]]\n[[0 0]\n [0 0]]\n{'a': array([0, 0], dtype=int32)}\n0\n"
    assert repr(x) == "<oc.field f32 (2, 2)>" and str(oc.field(oc.f32)) == "<oc.field f32 not placed>"

    @oc.kernel
    def show():
        oc.static_print(x)

    show()
    assert "oc.field" in capsys.readouterr().out


@oc.func
def combined(a, b, c):
    return 100 * a + 10 * b + c


@oc.real_func
def difference(a: oc.i32, b: oc.i32) -> oc.i32:
    return a - b


def test_partial_funcs(arch):
    first = functools.partial(combined, 1)
    last = functools.partial(functools.partial(combined, c=3), 7)
    table = oc.field(oc.i32, 3)
    table[2] = 5

    @oc.func
    def looked_up(t: oc.template(), i):
        return t[i]

    of_table = functools.partial(looked_up, table)
    less = functools.partial(difference, b=4)

    @oc.data_oriented
    class Object:
        n = 2

        @oc.func
        def scaled(self, v, w):
            return self.n * v + w

    bound = functools.partial(Object().scaled, 10)

    @oc.kernel
    def go(out: oc.types.ndarray(dtype=oc.i32, ndim=1)):
        for _ in range(1):
            out[0] = first(2, 3)
            out[1] = first(c=2, b=4)
            out[2] = last(8)
            out[3] = last(8, c=9)  # in place of the one that was fixed
            out[4] = of_table(2)
            out[5] = less(10)
            out[6] = bound(3)

    out = oc.ndarray(oc.i32, 7)
    go(out)
    assert out.to_numpy().tolist() == [123, 142, 783, 789, 5, 6, 23]

    @oc.kernel
    def wrong() -> oc.i32:
        return first(1, 2, 3)

    with pytest.raises(oc.OctantsSyntaxError, match="Too many arguments"):
        wrong()


def test_partial_of_builtins_functions_of_the_language_and_types(arch):
    at_least, chosen, narrow = functools.partial(max, 3), functools.partial(oc.select, True), functools.partial(oc.u8)

    @oc.kernel
    def go(n: oc.i32) -> oc.i32:
        return at_least(n) * 10000 + chosen(n, 7) * 1000 + narrow(n + 256)

    assert [go(2), go(5)] == [32002, 55005]

    @oc.kernel
    def wrong(n: oc.i32) -> oc.i32:
        return chosen(n, 1, 2)

    with pytest.raises(oc.OctantsCompilationError, match="select"):
        wrong(1)


def test_an_annotation_of_a_func_converts_numbers_and_says_nothing_of_vectors(arch):
    @oc.func
    def number(x) -> oc.i32:
        return x

    @oc.func
    def vector(x) -> oc.types.vector(2, oc.i32):
        return oc.Vector([x, x])

    @oc.func
    def fitting(x) -> oc.types.vector(2, oc.f32):
        return oc.Vector([x, x])

    @oc.func
    def pair(x) -> tuple[oc.types.vector(3, oc.f32), oc.i32]:
        return oc.Vector([x, x]), x

    @oc.func
    def struct(x) -> oc.types.struct(a=oc.f32):
        return x

    @oc.kernel
    def go(x: oc.f32, n: oc.i32, out: oc.types.NDArray[oc.f32, 1]):
        for _ in range(1):
            out[0] = number(x)
            out[1] = vector(x)[1]
            out[2] = fitting(n)[0] / 2
            v, whole = pair(x)
            out[3] = v.sum() + whole
            out[4] = struct(x)

    out = oc.ndarray(oc.f32, 5)
    with pytest.warns(UserWarning) as told:
        go(2.5, 3, out)
    assert out.to_numpy().tolist() == [2, 2.5, 1.5, 7, 2.5]
    ignored = [str(one.message).splitlines()[0] for one in told if "OC1010" in str(one.message)]
    assert ignored == [
        "warning[OC1010]: a 2-vector of f32 is returned where a 2-vector of i32 is annotated",
        "warning[OC1010]: a 2-vector of f32 is returned where a 3-vector of f32 is annotated",
        "warning[OC1010]: f32 is returned where what the annotation says is annotated",
    ]

    @oc.func
    def wrong(x) -> oc.i32:
        return oc.types.struct(a=oc.f32)(x)

    @oc.kernel
    def bad(x: oc.f32) -> oc.i32:
        return wrong(x)

    with pytest.raises(oc.OctantsTypeError, match="OC0314"):
        bad(1.0)


def test_a_comprehensions_variable_may_have_an_outer_name(arch):
    @oc.kernel
    def go() -> oc.i32:
        i = 5
        v = oc.Vector([i for i in range(3)])
        return v.sum() * 10 + i

    assert go() == 35


def test_return_annotations_of_funcs(arch):
    @oc.func
    def truncated(x) -> oc.i32:
        return x * 1.5

    @oc.func
    def real(x) -> float:
        return x

    @oc.func
    def pair(x) -> oc.types.vector(2, oc.f32):
        return oc.Vector([x, x])

    @oc.kernel
    def go() -> oc.f32:
        return truncated(3) + real(1) / 2 + pair(1).sum()

    assert go() == 4 + 0.5 + 2


def test_captured_lists_and_tuples_are_assigned_to_vectors(arch):
    numbers, reals = [1, 2, 3], (4.0, 5.0, 6.0)
    x = oc.Vector.field(3, oc.f32, 2)

    @oc.kernel
    def go():
        v = oc.Vector([0.0, 0.0, 0.0])
        v = numbers
        x[0] = v
        x[1] = reals

    go()
    assert x.to_numpy().tolist() == [[1, 2, 3], [4, 5, 6]]


def test_a_walrus_inside_and(arch):
    @oc.kernel
    def go(n: oc.i32) -> oc.i32:
        r = 0
        if n > 0 and (m := n * 2) > 5:
            r = m
        return r

    assert (go(3), go(1)) == (6, 0)


def test_addresses_of_fields_and_their_places(arch):
    x = oc.field(oc.f32, 8)

    @oc.kernel
    def apart() -> oc.u64:
        return oc.get_addr(x, [3]) - oc.get_addr(x.snode, [1])

    assert apart() == 8


def test_parameters_have_their_names():
    x = oc.ndarray(oc.f32, 3)
    x.fill(val=2)
    assert x.to_numpy().tolist() == [2, 2, 2]
    t = oc.tensor(oc.f32, 3)
    t.fill(value=4)
    assert t[1] == 4
    matrix = oc.Matrix([[1, 2], [3, 4]])
    matrix.fill(val=5)
    assert matrix.to_list() == [[5, 5], [5, 5]]
    builder, y = oc.FieldsBuilder(), oc.field(oc.i32)
    builder.pointer(indices=oc.i, dimensions=2).dynamic(axis=oc.j, dimension=8, chunk_size=4).place(y)
    builder.finalize()
    y[1, 0] = 3
    assert y.to_numpy()[1, 0] == 3
    pairs = oc.Struct.field({"a": oc.f32, "b": oc.i32}, shape=2)
    pairs.from_numpy(array_dict={"a": np.ones(2, np.float32), "b": np.arange(2, dtype=np.int32)})
    assert pairs.get_member_field(key="b")[1] == 1
    assert oc.algorithms.sort_scratch_slots(n=1) == 257


def test_stable_members_changes_nothing():
    @oc.data_oriented(stable_members=True)
    class Counter:
        def __init__(self):
            self.x = oc.ndarray(oc.i32, 1)
            self.step = 2

        @oc.kernel
        def run(self):
            self.x[0] += self.step

    counter = Counter()
    counter.run()
    counter.step = 40
    counter.run()
    assert counter.x[0] == 42
