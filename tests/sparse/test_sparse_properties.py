"""Whatever a tree looks like and whatever is done to it in whatever order, it holds what a model in Python says.

Each example is a random tree (kinds, nesting, extents, offsets, orders of axes, several fields in a cell) and a sequence of steps. After each
step all elements, what loops visit, what is active and the lengths of lists are compared. ``--examples N`` runs N random examples on
each device instead of a few fixed ones.
"""

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sparse_model import Leaf, Model, Node, random_tree

import octants as oc

pytestmark = [
    pytest.mark.host_access,
    pytest.mark.filterwarnings("ignore:axis"),
    # Numbers are given as `i32`, and elements are of many types.
    pytest.mark.filterwarnings("ignore:(?s).*OC1003"),
]

#: Columns of an operation: which one, its index, and a number.
COLUMNS = 6


class Tree:
    """A tree of the session with its kernels, beside its model."""

    def __init__(self, root: Node, device: str):
        self.model, self.device = Model(root), device
        self.builder = oc.FieldsBuilder()
        self.nodes, self.fields = {}, {}
        self.place(root, self.builder)
        self.tree = self.builder.finalize()
        self.leaves = list(self.fields)
        #: What an operation may be about: a verb, the model's node or leaf, the session's, its origin, and how many indices it takes.
        self.verbs = []
        for leaf, made in self.fields.items():
            for verb in ("write", "add"):
                self.verbs.append((verb, leaf, made, leaf.origin, len(leaf.shape)))
        for node, made in self.nodes.items():
            if node.kind == "dynamic":
                self.verbs.append(("deactivate", node, made, (0,) * len(node.list_shape), len(node.list_shape)))
                if len(node.leaves) == 1 and node.leaves[0].element != "struct":
                    self.verbs.append(("append", node, made, (0,) * len(node.list_shape), len(node.list_shape)))
            elif node.kind != "dense":
                for verb in ("activate", "deactivate"):
                    self.verbs.append((verb, node, made, (0,) * len(node.shape), len(node.shape)))
        self.sparse = [node for node in self.nodes if node.kind != "dense"]
        self.make_kernels()

    def place(self, node: Node, made) -> None:
        for leaf in node.leaves:
            self.fields[leaf] = leaf.made()
            made.place(self.fields[leaf], offset=leaf.origin)
        for child in node.nodes:
            axes, extents = oc.axes(*child.splits), list(child.splits.values())
            if child.kind == "dynamic":
                self.nodes[child] = made.dynamic(axes, extents[0], chunk_size=child.chunk)
            else:
                self.nodes[child] = getattr(made, child.kind)(axes, extents)
            self.place(child, self.nodes[child])

    def make_kernels(self) -> None:
        verbs, count = self.verbs, len(self.verbs)
        fields = [self.fields[leaf] for leaf in self.leaves]
        elements = [leaf.element for leaf in self.leaves]
        origins = [leaf.origin for leaf in self.leaves]
        ranks = [len(leaf.shape) for leaf in self.leaves]
        seen = [oc.field(oc.i32, shape=leaf.shape) for leaf in self.leaves]
        # A struct has no address of its own here: that of its first member.
        first = [x.a if kind == "struct" else x for x, kind in zip(fields, elements, strict=True)]
        nodes = [self.nodes[node] for node in self.sparse]
        visited = [oc.field(oc.i32, shape=node.shape) for node in self.sparse]
        states = [oc.field(oc.i32, shape=self.state_shape(node)) for node in self.sparse]
        is_list = [node.kind == "dynamic" for node in self.sparse]
        self.seen, self.visited, self.states = seen, visited, states

        @oc.func
        def values(kind: oc.template(), value):
            if oc.static(kind == "vector"):
                return oc.Vector([value, value + 1, value + 2])
            elif oc.static(kind == "matrix"):
                return oc.Matrix([[value, value + 1], [value + 2, value + 3]])
            else:
                return value

        @oc.func
        def act(c: oc.template(), at, value):
            verb, of, made = oc.static(verbs[c][0], verbs[c][1], verbs[c][2])
            old = 0
            if oc.static(verb == "write"):
                if oc.static(of.element == "struct"):
                    made[at].a = value
                    made[at].v = oc.Vector([value + 1, value + 2])
                else:
                    made[at] = values(of.element, value)
            elif oc.static(verb == "add"):
                if oc.static(of.element == "struct"):
                    made[at].a += value
                    made[at].v += value
                else:
                    made[at] += oc.cast(value, made.dtype)
            elif oc.static(verb == "activate"):
                oc.activate(made, at)
            elif oc.static(verb == "deactivate"):
                oc.deactivate(made, at)
            else:
                old = oc.append(made, at, values(of.leaves[0].element, value))
            return old

        @oc.func
        def step(operations, out, n):
            for c in oc.static(range(count)):
                if operations[n, 0] == c:
                    value = operations[n, COLUMNS - 1]
                    if oc.static(verbs[c][4] == 0):
                        out[n] = act(c, [], value)
                    else:
                        at = oc.Vector([operations[n, 1 + k] for k in oc.static(range(verbs[c][4]))])
                        out[n] = act(c, at, value)

        @oc.kernel
        def in_order(operations: oc.types.ndarray(oc.i32, 2), out: oc.types.ndarray(oc.i32, 1)):
            oc.loop_config(serialize=True)
            for n in range(operations.shape[0]):
                step(operations, out, n)

        @oc.kernel
        def at_once(operations: oc.types.ndarray(oc.i32, 2), out: oc.types.ndarray(oc.i32, 1)):
            for n in range(operations.shape[0]):
                step(operations, out, n)

        @oc.kernel
        def observe():
            for k in oc.static(range(len(fields))):
                for at in oc.grouped(fields[k]):
                    seen[k][at - oc.Vector(origins[k])] += 1
            for k in oc.static(range(len(nodes))):
                for at in oc.grouped(nodes[k]):
                    visited[k][at] += 1
                for at in oc.grouped(states[k]):
                    if oc.static(not is_list[k]):
                        states[k][at] = oc.is_active(nodes[k], at)
                    elif oc.static(len(states[k].shape) == 0):
                        states[k][None] = oc.length(nodes[k], [])
                    else:
                        states[k][at] = oc.length(nodes[k], at)

        @oc.kernel
        def addresses(k: oc.template(), index: oc.types.ndarray(oc.i32, 2), out: oc.types.ndarray(oc.u64, 1)):
            for n in range(out.shape[0]):
                out[n] = oc.get_addr(first[k], oc.Vector([index[n, a] for a in oc.static(range(ranks[k]))]))

        @oc.kernel
        def prune(k: oc.template(), part: oc.i32):
            for at in oc.grouped(nodes[k]):
                if at.sum() % 3 == part:
                    if oc.static(not is_list[k]):
                        oc.deactivate(nodes[k], at)

        @oc.kernel
        def spread(k: oc.template(), by: oc.i32):
            for at in oc.grouped(fields[k]):
                to = (at - oc.Vector(origins[k]) + by) % oc.Vector(fields[k].shape) + oc.Vector(origins[k])
                if oc.static(elements[k] == "struct"):
                    fields[k][to].a += 1
                    fields[k][to].v += 1
                else:
                    fields[k][to] += oc.cast(1, fields[k].dtype)

        self.in_order, self.at_once, self.observe = in_order, at_once, observe
        self.addresses, self.prune, self.spread = addresses, prune, spread

    @staticmethod
    def state_shape(node: Node) -> tuple[int, ...]:
        return node.list_shape if node.kind == "dynamic" else node.shape

    # ---- steps ----------------------------------------------------------------------------------------------------------

    def run(self, kernel, operations: list[tuple[int, tuple[int, ...], int]]) -> list[int]:
        """Runs operations (a verb, an index from zero on, a number); what appending gave."""
        rows = np.zeros((len(operations), COLUMNS), np.int32)
        for row, (c, index, value) in zip(rows, operations, strict=True):
            shifted = [i + first for i, first in zip(index, self.verbs[c][3], strict=True)]
            row[0], row[1 : 1 + len(shifted)], row[-1] = c, shifted, value
        out = np.zeros(len(operations), np.int32)
        kernel(rows, out)
        return out.tolist()

    def operation(self, pick, among) -> tuple[int, tuple[int, ...], int]:
        c = among[pick(len(among))]
        verb, of = self.verbs[c][:2]
        shape = of.shape if isinstance(of, Leaf) else self.state_shape(of)
        return c, tuple(pick(extent) for extent in shape), 1 + pick(40)

    def is_full(self, c, index, more: int) -> bool:
        of = self.verbs[c][1]
        extent = next(iter(of.splits.values()))
        return self.model.lengths[of].get(index, 0) + more >= extent

    def step_in_order(self, pick) -> None:
        """Operations of any kind, one after another in one task."""
        operations = []
        for _ in range(1 + pick(12)):
            c, index, value = self.operation(pick, range(len(self.verbs)))
            same = sum(1 for other in operations if other[:2] == (c, index))
            # Writing an element extends a list, too.
            if self.verbs[c][0] == "append" and (same or self.is_full(c, index, 0) or self.writes_to(c, operations)):
                continue
            operations.append((c, index, value))
        if not operations:
            return
        out = self.run(self.in_order, operations)
        self.model.begin_task()
        for operation, old in zip(operations, out, strict=True):
            self.follow_one(operation, old)

    def writes_to(self, c, operations) -> bool:
        of = self.verbs[c][1]
        return any(self.verbs[other][1] in of.all_leaves() for other, _, _ in operations)

    def follow_one(self, operation, old) -> None:
        c, index, value = operation
        verb, of = self.verbs[c][:2]
        if verb == "append":
            assert old == self.model.lengths[of].get(index, 0)
            at = of.list_axis
            self.model.write(of.leaves[0], (*index[:at], old, *index[at:]), value)
        else:
            getattr(self.model, verb)(of, index, *([value] if isinstance(of, Leaf) else []))

    def step_at_once(self, pick) -> None:
        """Operations that come in any order: all make cells and add, or all append, or all give up."""
        groups = [("add", "activate"), ("deactivate",), ("append",)]
        allowed = [[c for c, verb in enumerate(self.verbs) if verb[0] in group] for group in groups]
        among = [group for group in allowed if group][pick(sum(map(bool, allowed)))]
        operations = []
        for _ in range(1 + pick(40)):
            c, index, value = self.operation(pick, among)
            same = sum(1 for other in operations if other[:2] == (c, index))
            if self.verbs[c][0] == "append" and self.is_full(c, index, same):
                continue
            operations.append((c, index, value))
        if not operations:
            return
        out = self.run(self.at_once, operations)
        self.model.begin_task()
        for operation, old in sorted(zip(operations, out, strict=True), key=lambda both: both[1]):
            self.follow_one(operation, old)

    def step_prune(self, pick) -> None:
        """A loop over the cells of a node that gives up some of them."""
        k, part = pick(len(self.sparse)), pick(3)
        node = self.sparse[k]
        if node.kind != "dynamic":
            self.prune(k, part)
            for cell in [cell for cell in self.model.active[node] if sum(cell) % 3 == part]:
                self.model.deactivate(node, cell)
        self.model.begin_task()

    def step_spread(self, pick) -> None:
        """A loop over a field that makes other elements of it."""
        k, by = pick(len(self.leaves)), pick(4)
        leaf = self.leaves[k]
        self.spread(k, by)
        self.model.begin_task()
        for index in self.model.visited(leaf.parent):
            to = tuple((i + by) % extent for i, extent in zip(index, leaf.shape, strict=True))
            self.model.add(leaf, to, 1)

    def step_host(self, pick) -> None:
        """What the host does."""
        leaf = self.leaves[pick(len(self.leaves))]
        made, model = self.fields[leaf], self.model
        model.begin_task()
        what = pick(6)
        if what == 0:
            node = list(self.nodes)[pick(len(self.nodes))]
            self.nodes[node].deactivate_all()
            model.deactivate_all(node)
        elif what == 1:
            value = pick(100)
            made.a.fill(value) if leaf.element == "struct" else made.fill(value)
            for index in model.visited(leaf.parent):
                old = model.values[leaf].get(index, model.zero(leaf)).copy()
                old[: 1 if leaf.element == "struct" else None] = value
                model.values[leaf][index] = old
        elif what == 2 and leaf.element != "struct":
            numbers = np.arange(np.prod(leaf.shape) * len(model.zero(leaf)), dtype=np.int64) % 100
            numbers = numbers.astype(model.zero(leaf).dtype).reshape(*leaf.shape, -1)
            made.from_numpy(numbers.reshape(self.array_shape(leaf)))
            for index in model.visited(leaf.parent):
                model.values[leaf][index] = numbers[index]
        elif what == 3 and leaf.element != "struct":
            numbers = np.arange(np.prod(leaf.shape) * len(model.zero(leaf)), dtype=np.int64) % 50
            numbers = numbers.astype(model.zero(leaf).dtype).reshape(*leaf.shape, -1)
            source = self.like(leaf)
            source.from_numpy(numbers.reshape(self.array_shape(leaf)))
            made.copy_from(source)
            for index in itertools.product(*map(range, leaf.shape)):
                model.activate(leaf.parent, index)
                model.values[leaf][index] = numbers[index]
        elif what == 4 and len(model.zero(leaf)) == 1:
            index = tuple(pick(extent) for extent in leaf.shape)
            at = tuple(i + first for i, first in zip(index, leaf.origin, strict=True))
            made[at] = 7
            assert made[at] == 7
            model.write(leaf, index, 7)
        else:
            count = len(model.visited(leaf.parent))
            used = oc.sparse.usage(made.a if leaf.element == "struct" else made)
            assert used == count / int(np.prod(leaf.shape))

    def like(self, leaf: Leaf):
        if leaf.element == "vector":
            return oc.Vector.field(3, oc.f32, shape=leaf.shape, offset=leaf.origin)
        if leaf.element == "matrix":
            return oc.Matrix.field(2, 2, oc.i16, shape=leaf.shape, offset=leaf.origin)
        return oc.field(getattr(oc, leaf.element), shape=leaf.shape, offset=leaf.origin)

    def array_shape(self, leaf: Leaf) -> tuple[int, ...]:
        return leaf.shape + {"vector": (3,), "matrix": (2, 2)}.get(leaf.element, ())

    # ---- comparing ------------------------------------------------------------------------------------------------------

    def found(self, leaf: Leaf) -> np.ndarray:
        """All scalars of a field, element by element."""
        arrays = self.fields[leaf].to_numpy()
        if leaf.element == "struct":
            return np.concatenate([arrays["a"][..., None], arrays["v"]], axis=-1)
        return arrays.reshape(*leaf.shape, len(self.model.zero(leaf)))

    def compare(self) -> None:
        for counters in (*self.seen, *self.visited):
            counters.fill(0)
        self.observe()
        for leaf, seen in zip(self.leaves, self.seen, strict=True):
            np.testing.assert_array_equal(self.found(leaf), self.model.elements(leaf))
            self.compare_visits(seen, leaf.parent)
        for node, visited, states in zip(self.sparse, self.visited, self.states, strict=True):
            self.compare_visits(visited, node)
            expected = np.zeros(self.state_shape(node), np.int32)
            held = self.model.lengths[node] if node.kind == "dynamic" else dict.fromkeys(self.model.active[node], 1)
            for index, value in held.items():
                expected[index] = value
            np.testing.assert_array_equal(states.to_numpy(), expected)
            if node.kind == "pointer":
                assert self.nodes[node]._num_dynamically_allocated <= self.model.slots[node]

    def compare_visits(self, counts, node: Node) -> None:
        expected = np.zeros(node.shape, np.int32)
        for index in self.model.visited(node):
            expected[index] = 1
        np.testing.assert_array_equal(counts.to_numpy(), expected)

    def compare_addresses(self) -> None:
        """Elements that are there have addresses of their own."""
        ranges = []
        for k, leaf in enumerate(self.leaves):
            index = np.array(list(itertools.product(*map(range, leaf.shape))), np.int32)
            out = np.zeros(len(index), np.uint64)
            self.addresses(k, np.ascontiguousarray(index + np.array(leaf.origin, np.int32)), out)
            size = (1 if leaf.element == "struct" else len(self.model.zero(leaf))) * self.model.zero(leaf).itemsize
            there = [self.model.is_there(leaf.parent, tuple(map(int, at))) for at in index]
            ranges += [(int(a), int(a) + size) for a, active in zip(out, there, strict=True) if active]
            for address, at, active in zip(out.tolist(), index, there, strict=True):
                assert address or not active, f"{leaf.element}{tuple(at)} has no address"
        ranges.sort()
        assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(ranges))


def run_example(draw_number, device: str) -> None:
    root = random_tree(draw_number)
    tree = Tree(root, device)
    steps = [tree.step_in_order, tree.step_at_once, tree.step_prune, tree.step_spread, tree.step_host]
    taken = []
    try:
        tree.compare()
        for _ in range(2 + draw_number(5)):
            step = steps[draw_number(len(steps))]
            taken.append(step.__name__)
            step(draw_number)
            tree.compare()
        tree.compare_addresses()
    except BaseException as error:
        error.add_note(f"{root.describe()}\n{taken}")
        raise
    tree.tree.destroy()


def examples(config, few: dict[str, int], device: str) -> settings:
    """A few examples that are the same each time, or as many random ones as were asked for, of which the smallest that fails is shown."""
    asked = config.getoption("--examples")
    return settings(
        max_examples=asked or few[device], deadline=None, derandomize=not asked, database=None, print_blob=bool(asked),
        suppress_health_check=list(HealthCheck), phases=[Phase.generate, *([Phase.shrink] if asked else [])],
    )  # fmt: skip


def test_a_tree_is_what_a_model_says(arch, request):
    @examples(request.config, {"cpu": 8, "reference": 30, "remote": 4, "cuda": 25}, arch)
    @given(st.data())
    def example(data):
        run_example(lambda n: data.draw(st.integers(0, n - 1)) if n > 1 else 0, arch)

    example()
