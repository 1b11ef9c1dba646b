//! Trees of fields, and their nodes, as Python objects. What users see of them is in the package's `_fields`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use octants::ir::{Data, Layout, NodeKind, TensorShape, TensorType};
use octants::{AxisSplit, Child, LeafId, MAX_AXES, NodeId, Outline, Session};
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyNotImplementedError, PyValueError};
use pyo3::prelude::*;

use crate::gateway::under_way::Outside;
use crate::gateway::{errors, interrupt};
use crate::session::runtime::Runtime;
use crate::values::dtype::DataType;
use crate::values::host_only;

/// A tree that grows until it is finished; then it has memory.
#[pyclass(frozen, module = "octants")]
pub struct Tree {
    session: Session,
    /// Which tree of the runtime's it is.
    serial: u64,
    state: Mutex<State>,
}

enum State {
    Growing(Outline),
    Finished(Arc<octants::Tree>),
}

impl State {
    fn outline(&self) -> &Outline {
        match self {
            Self::Growing(outline) => outline,
            Self::Finished(tree) => tree.outline(),
        }
    }
}

impl Tree {
    pub fn session(&self) -> &Session {
        &self.session
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn grow<T>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut Outline) -> Result<T, octants::Error>,
    ) -> PyResult<T> {
        match &mut *self.state() {
            State::Growing(outline) => change(outline).map_err(|error| errors::from_error(py, &error)),
            State::Finished(_) => Err(finalized(py)),
        }
    }

    pub fn finished(&self, py: Python<'_>) -> PyResult<Arc<octants::Tree>> {
        match &*self.state() {
            State::Finished(tree) => Ok(Arc::clone(tree)),
            State::Growing(_) => {
                Err(errors::exception(py, "OctantsRuntimeError", "the tree of fields is not finalized"))
            }
        }
    }
}

fn finalized(py: Python<'_>) -> PyErr {
    let message =
        "FieldsBuilder finalized: its tree has memory now and cannot grow; use a new oc.FieldsBuilder()";
    errors::exception(py, "OctantsRuntimeError", message)
}

fn kind_of(name: &str) -> PyResult<NodeKind> {
    let found = NodeKind::ALL.iter().copied().find(|kind| kind.name() == name);
    found.ok_or_else(|| {
        PyNotImplementedError::new_err(format!("nodes of kind `{name}` are not supported yet"))
    })
}

#[pymethods]
impl Tree {
    #[new]
    fn new(py: Python<'_>, runtime: &Bound<'_, Runtime>) -> PyResult<Self> {
        let session = runtime.get().current(py)?.session.clone();
        let serial = runtime.get().next_tree();
        Ok(Self { session, serial, state: Mutex::new(State::Growing(Outline::new())) })
    }

    /// Adds a node; gives its number.
    fn add_node(
        &self,
        py: Python<'_>,
        parent: u32,
        kind: &str,
        axes: Vec<u32>,
        extents: Vec<i128>,
    ) -> PyResult<u32> {
        host_only::guard(py, "dense")?;
        if axes.len() != extents.len() {
            return Err(PyValueError::new_err("as many extents as axes"));
        }
        let mut splits = Vec::new();
        for (dimension, (&axis, &extent)) in axes.iter().zip(&extents).enumerate() {
            if extent < 1 {
                return Err(errors::from_error(py, &octants::not_positive(extent, dimension)));
            }
            let axis = u8::try_from(axis).unwrap_or(MAX_AXES);
            let Ok(extent) = u32::try_from(extent) else {
                return Err(errors::from_error(py, &octants::too_long(axis, extent)));
            };
            splits.push(AxisSplit { axis, extent });
        }
        let kind = kind_of(kind)?;
        self.grow(py, |outline| outline.add_node(NodeId::new(parent), kind, &splits)).map(NodeId::number)
    }

    /// Adds a list that grows in chunks; gives its number.
    fn add_dynamic(
        &self,
        py: Python<'_>,
        parent: u32,
        axes: Vec<u32>,
        extent: i128,
        chunk: i128,
    ) -> PyResult<u32> {
        host_only::guard(py, "dynamic")?;
        let [axis] = *axes else {
            let message = format!("a dynamic node has exactly one axis, not {}", axes.len());
            return Err(errors::from_error(py, &octants::Error::invalid(message)));
        };
        if extent < 1 {
            return Err(errors::from_error(py, &octants::not_positive(extent, 0)));
        }
        let axis = u8::try_from(axis).unwrap_or(MAX_AXES);
        let too_long = |_| errors::from_error(py, &octants::too_long(axis, extent));
        let split = AxisSplit { axis, extent: u32::try_from(extent).map_err(too_long)? };
        let chunk = u32::try_from(chunk.max(0)).unwrap_or(u32::MAX);
        self.grow(py, |outline| outline.add_dynamic(NodeId::new(parent), split, chunk)).map(NodeId::number)
    }

    /// How many slots of a node's pool were ever given out; nothing for a node without a pool.
    fn allocated(&self, py: Python<'_>, node: u32) -> PyResult<i32> {
        let tree = self.finished(py)?;
        let Some(pool) = pool_of(&tree, node) else { return Ok(0) };
        let word = octants::ir::sparse::state::USED;
        let found = py.outside(|| tree.pool_state(pool, word, octants::HostQueue::default()));
        found.map_err(|error| errors::from_error(py, &error))
    }

    /// Bytes that a node's pool has memory for, where pools grow by parts; nothing for a node without a pool.
    fn backed_bytes(&self, py: Python<'_>, node: u32) -> PyResult<Option<u64>> {
        let tree = self.finished(py)?;
        Ok(pool_of(&tree, node).and_then(|pool| tree.backed_bytes(pool)))
    }

    /// Whether it has memory that can be used.
    #[getter]
    fn is_live(&self) -> bool {
        match &*self.state() {
            State::Finished(tree) => tree.memory().is_ok(),
            State::Growing(_) => false,
        }
    }

    /// Whether some node's cells come and go.
    #[getter]
    fn is_sparse(&self) -> bool {
        self.state().outline().is_sparse()
    }

    /// Places elements in a node; gives the leaf's number.
    fn add_leaf(
        &self,
        py: Python<'_>,
        parent: u32,
        dtype: &Bound<'_, DataType>,
        element_shape: Vec<u16>,
        origin: Vec<i32>,
    ) -> PyResult<u32> {
        host_only::guard(py, "place")?;
        let elem = dtype.get().scalar;
        let element = match *element_shape {
            [] => Data::Scalar(elem),
            [n] => Data::Tensor(TensorType { elem, shape: TensorShape::Vector(n) }),
            [n, m] => Data::Tensor(TensorType { elem, shape: TensorShape::Matrix(n, m) }),
            _ => return Err(PyValueError::new_err("elements are scalars, vectors or matrices")),
        };
        self.grow(py, |outline| outline.add_leaf(NodeId::new(parent), element, &origin)).map(LeafId::number)
    }

    /// Refuses if the tree's session was reset.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        if self.session.is_live() {
            return Ok(());
        }
        Err(errors::from_error(py, &octants::Error::Stale { what: "tree of fields" }))
    }

    /// Gives the tree its memory.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let outline = match &*self.state() {
            State::Growing(outline) => outline.clone(),
            State::Finished(_) => return Err(finalized(py)),
        };
        let tree =
            interrupt::waiting(py, |cancel| octants::Tree::new_or_cancel(&self.session, outline, cancel))?;
        *self.state() = State::Finished(tree);
        Ok(())
    }

    fn destroy(&self, py: Python<'_>) -> PyResult<()> {
        host_only::guard(py, "destroy")?;
        let tree = self.finished(py)?;
        py.outside(|| tree.destroy()).map_err(|error| errors::from_error(py, &error))
    }

    #[getter]
    fn is_finished(&self) -> bool {
        matches!(&*self.state(), State::Finished(_))
    }

    fn parent(&self, node: u32) -> Option<u32> {
        self.state().outline().node(NodeId::new(node)).parent.map(NodeId::number)
    }

    fn kind(&self, node: u32) -> &'static str {
        self.state().outline().node(NodeId::new(node)).kind.name()
    }

    /// The axes that a node cuts.
    fn axes(&self, node: u32) -> Vec<u32> {
        self.state().outline().node(NodeId::new(node)).splits.iter().map(|split| split.axis.into()).collect()
    }

    fn shape(&self, node: u32) -> Vec<u32> {
        self.state().outline().shape(NodeId::new(node))
    }

    /// What lies in a cell: for each child whether it is a leaf, its number, and how many scalars lie in an element of a leaf.
    fn children(&self, node: u32) -> Vec<(bool, u32, u32)> {
        let state = self.state();
        let outline = state.outline();
        let children = outline.node(NodeId::new(node)).children.iter();
        let describe = |child: &Child| match *child {
            Child::Node(node) => (false, node.number(), 0),
            Child::Leaf(leaf) => {
                let entries = outline.leaf(leaf).element.tensor_shape().map_or(1, TensorShape::count);
                (true, leaf.number(), entries)
            }
        };
        children.map(describe).collect()
    }

    fn cell_bytes(&self, py: Python<'_>, node: u32) -> PyResult<u64> {
        Ok(self.finished(py)?.sizes().cell(NodeId::new(node)))
    }

    fn node_offset(&self, py: Python<'_>, node: u32) -> PyResult<u64> {
        Ok(self.finished(py)?.sizes().node_offset(NodeId::new(node)))
    }

    /// Bytes of a leaf's scalar, and where its entry lies in a cell.
    fn entry_offset(&self, py: Python<'_>, leaf: u32, entry: u32) -> PyResult<(u64, u64)> {
        let tree = self.finished(py)?;
        let leaf = LeafId::new(leaf);
        let scalar =
            u64::from(tree.outline().leaf(leaf).element.elem().map_or(1, octants::ir::Scalar::bytes));
        Ok((scalar, tree.sizes().leaf_offset(leaf) + u64::from(entry) * scalar))
    }
}

/// A node of a tree, or a leaf, or one entry of a leaf. The base of the class that users see.
#[pyclass(frozen, subclass, weakref, module = "octants")]
pub struct Node {
    tree: Py<Tree>,
    number: u32,
    /// The leaf's number, and which of its entries.
    leaf: Option<(u32, u32)>,
}

impl Node {
    /// The memory of its tree, if cells of some node there come and go, and its number.
    pub fn sparse(&self, py: Python<'_>) -> PyResult<Option<(Arc<octants::Tree>, u32)>> {
        if !self.tree.get().is_sparse() {
            return Ok(None);
        }
        self.tree.get().finished(py).map(|tree| Some((tree, self.number)))
    }

    pub fn session(&self) -> Session {
        self.tree.get().session.clone()
    }

    /// What a loop over its cells visits, in its own resolution: shape and digits; the strides mean nothing. Interned.
    pub fn loop_layout(&self) -> Arc<Layout> {
        let tree = self.tree.get();
        let layout = tree.state().outline().loop_layout(NodeId::new(self.number));
        tree.session.intern_layout(layout)
    }
}

#[pymethods]
impl Node {
    #[new]
    #[pyo3(signature = (tree, node, leaf=None))]
    fn new(tree: Py<Tree>, node: u32, leaf: Option<(u32, u32)>) -> Self {
        Self { tree, number: node, leaf }
    }

    #[getter]
    fn _tree(&self, py: Python<'_>) -> Py<Tree> {
        self.tree.clone_ref(py)
    }

    #[getter]
    fn _node(&self) -> u32 {
        self.number
    }

    /// A number that no other node of the process has: the tree's, the node's, the leaf's.
    #[getter(_id)]
    fn id(&self) -> u128 {
        let (leaf, entry) = self.leaf.map_or((0, 0), |(leaf, entry)| (leaf + 1, entry));
        let parts = [self.tree.get().serial, self.number.into(), leaf.into(), entry.into()];
        parts.into_iter().fold(0, |id, part| id << 32 | u128::from(part))
    }

    #[getter]
    fn _leaf(&self) -> Option<(u32, u32)> {
        self.leaf
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> bool {
        let same = other.cast::<Node>().is_ok_and(|other| {
            let other = other.get();
            self.tree.is(&other.tree) && (self.number, self.leaf) == (other.number, other.leaf)
        });
        matches!(op, CompareOp::Eq) == same
    }

    fn __hash__(&self) -> u64 {
        let id = self.id();
        (id >> 48 ^ id) as u64
    }
}

/// The pool that the cells of a node lie in, if they come and go.
fn pool_of(tree: &octants::Tree, node: u32) -> Option<usize> {
    let (shape, _) = tree.sparse_tree()?;
    shape
        .pools
        .iter()
        .enumerate()
        .skip(1)
        .find(|(_, pool)| pool.node == node as usize)
        .map(|(number, _)| number)
}
