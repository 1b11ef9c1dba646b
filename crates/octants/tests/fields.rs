//! Trees of fields: where leaves lie, what is shared, and who refuses when.

use std::sync::Arc;

use octants::ir::{Const, Data, NodeKind, Scalar, TensorShape, TensorType};
use octants::{
    Arch, AxisSplit, Error, FieldLeaf, HostQueue, HostStride, NodeId, Outline, Session, SessionOptions, Tree,
};

fn session() -> Session {
    Session::new(SessionOptions { arch: Arch::Reference, ..SessionOptions::default() }).unwrap()
}

fn splits(all: &[(u8, u32)]) -> Vec<AxisSplit> {
    all.iter().map(|&(axis, extent)| AxisSplit { axis, extent }).collect()
}

fn vector(elem: Scalar, n: u16) -> Data {
    Data::Tensor(TensorType { elem, shape: TensorShape::Vector(n) })
}

/// One node with the elements in it, each in a leaf.
fn leaves(session: &Session, all: &[(u8, u32)], elements: &[Data]) -> Vec<FieldLeaf> {
    let mut outline = Outline::new();
    let node = outline.add_node(NodeId::ROOT, NodeKind::Dense, &splits(all)).unwrap();
    let ids: Vec<_> = elements.iter().map(|&one| outline.add_leaf(node, one, &[]).unwrap()).collect();
    let tree = Tree::new(session, outline).unwrap();
    ids.into_iter().map(|id| tree.leaf(session, id, "x".into())).collect()
}

#[test]
fn children_lie_one_after_the_other_on_multiples_of_their_alignment() {
    let mut outline = Outline::new();
    let outer = outline.add_node(NodeId::ROOT, NodeKind::Dense, &splits(&[(0, 3), (1, 5)])).unwrap();
    let byte = outline.add_leaf(outer, Scalar::U8.into(), &[]).unwrap();
    let inner = outline.add_node(outer, NodeKind::Dense, &splits(&[(0, 2)])).unwrap();
    let real = outline.add_leaf(inner, vector(Scalar::F64, 2), &[1, -1]).unwrap();
    let sizes = outline.sizes();
    assert_eq!((sizes.cell(inner), sizes.node_offset(inner), sizes.cell(outer)), (16, 8, 40));
    assert_eq!((sizes.leaf_offset(byte), sizes.leaf_offset(real), sizes.tree()), (0, 0, 600));
    assert_eq!((outline.shape(outer), outline.shape(inner)), (vec![3, 5], vec![6, 5]));
    let (layout, offset) = outline.leaf_layout(real, &sizes);
    assert_eq!((layout.shape.as_slice(), layout.origin.as_slice(), offset), (&[6, 5][..], &[1, -1][..], 8));
    // Element (3, 4) from the origin: block (1, 4) of 5 in a row, second cell.
    assert_eq!(layout.offset_of(&[4, 3]), Some((5 + 4) * 40 + 16));
    assert_eq!(layout.check(16, 8), Ok(()));
}

#[test]
fn what_no_index_reaches_is_refused_and_leaves_the_tree_as_it_was() {
    let mut outline = Outline::new();
    let node = outline.add_node(NodeId::ROOT, NodeKind::Dense, &splits(&[(0, 1 << 20)])).unwrap();
    let refused = |outcome: Result<(), Error>| outcome.unwrap_err().to_string();
    let longer = outline.add_node(node, NodeKind::Dense, &splits(&[(0, 1 << 12)]));
    assert!(refused(longer.map(|_| ())).contains("axis 0 would have 4294967296 elements"));
    assert!(
        refused(outline.add_node(node, NodeKind::Dense, &splits(&[(12, 2)])).map(|_| ())).contains("axis 12")
    );
    assert!(
        refused(outline.add_node(node, NodeKind::Dense, &splits(&[(1, 0)])).map(|_| ())).contains("positive")
    );
    assert!(
        refused(outline.add_leaf(node, Scalar::F32.into(), &[1, 2]).map(|_| ())).contains("offset has 2")
    );
    let late = outline.add_leaf(node, Scalar::F32.into(), &[i32::MAX]);
    assert!(refused(late.map(|_| ())).contains("beyond the largest index"));
    assert!(outline.node(node).children.is_empty() && outline.node(NodeId::ROOT).children.len() == 1);
}

#[test]
fn fields_that_are_laid_out_alike_share_their_layout_and_kind() {
    let session = session();
    let one = leaves(&session, &[(0, 4)], &[Scalar::F32.into(), Scalar::F32.into()]);
    let same = leaves(&session, &[(0, 4)], &[Scalar::I32.into(), Scalar::F32.into()]);
    let other = leaves(&session, &[(0, 4)], &[Scalar::F32.into()]);
    assert!(Arc::ptr_eq(one[0].layout(), one[1].layout()) && Arc::ptr_eq(one[0].layout(), same[1].layout()));
    assert!(!Arc::ptr_eq(one[0].layout(), other[0].layout()));
    let kind = |leaf: &FieldLeaf| session.intern_field_kind(leaf.kind());
    assert!(Arc::ptr_eq(&kind(&one[0]), &kind(&same[1])) && !Arc::ptr_eq(&kind(&one[0]), &kind(&same[0])));
}

#[test]
fn an_entry_lies_inside_of_its_vector() {
    let session = session();
    let [v, x] = &leaves(&session, &[(0, 4)], &[vector(Scalar::F32, 3), Scalar::F32.into()])[..] else {
        panic!("two leaves")
    };
    let y = v.entry(1, "v[1]".into()).unwrap();
    assert_eq!(y.address().unwrap(), v.address().unwrap() + 4);
    // What a launch compares: an entry begins inside of the first element that it is a part of, another leaf outside.
    let first = v.address().unwrap()..v.address().unwrap() + 12;
    assert!(first.contains(&y.address().unwrap()));
    assert!(!first.contains(&x.address().unwrap()));
    assert_eq!(v.tree().sizes().tree(), 64);
    v.set(v.place(&[2]).unwrap(), 0, &[1.0, 2.0, 3.0].map(Const::f32), HostQueue::default()).unwrap();
    assert_eq!(y.get(y.place(&[2]).unwrap(), HostQueue::default()).unwrap(), [Const::f32(2.0)]);
    y.fill(&[Const::f32(7.0)], HostQueue::default()).unwrap();
    assert_eq!(v.get(v.place(&[2]).unwrap(), HostQueue::default()).unwrap(), [1.0, 7.0, 3.0].map(Const::f32));
    assert_eq!(x.get(x.place(&[2]).unwrap(), HostQueue::default()).unwrap(), [Const::f32(0.0)]);
    assert!(v.entry(3, "".into()).is_err() && v.place(&[4]).is_none() && v.place(&[-1]).is_none());
}

#[test]
fn elements_are_copied_in_rows_and_among_others() {
    let session = session();
    // Columns of 70 elements: transposed, and more than one tile.
    let leaf = &leaves(&session, &[(1, 45), (0, 70)], &[Scalar::I32.into()])[0];
    let numbers: Vec<u8> = (0..70 * 45_u32).flat_map(u32::to_le_bytes).collect();
    leaf.write(&numbers, None, HostQueue::default()).unwrap();
    assert_eq!(
        leaf.get(leaf.place(&[69, 3]).unwrap(), HostQueue::default()).unwrap(),
        [Const::i32(69 * 45 + 3)]
    );
    let mut back = vec![0; numbers.len()];
    leaf.read(&mut back, None, HostQueue::default()).unwrap();
    assert!(back == numbers);
    let mut pairs = vec![0; 2 * numbers.len()];
    leaf.read(&mut pairs, Some(HostStride { stride: 8, offset: 4 }), HostQueue::default()).unwrap();
    assert!(
        pairs
            .chunks(8)
            .zip(numbers.chunks(4))
            .all(|(pair, number)| pair[..4] == [0; 4] && pair[4..] == *number)
    );
    assert!(leaf.read(&mut back, Some(HostStride { stride: 4, offset: 1 }), HostQueue::default()).is_err());
    assert!(leaf.write(&numbers[1..], None, HostQueue::default()).is_err());
}

#[test]
fn destroyed_trees_and_ended_sessions_refuse() {
    let session = session();
    let first = leaves(&session, &[(0, 4)], &[Scalar::F32.into()]).remove(0);
    let second = leaves(&session, &[(0, 4)], &[Scalar::F32.into()]).remove(0);
    let place = first.place(&[0]).unwrap();
    let held = first.tree().memory().unwrap();
    first.tree().destroy().unwrap();
    assert_eq!(session.live_bytes(), 32, "somebody uses it");
    drop(held);
    assert_eq!(session.live_bytes(), 16);
    assert!(matches!(first.address(), Err(Error::Destroyed { .. })));
    assert!(matches!(first.get(place, HostQueue::default()), Err(Error::Destroyed { .. })));
    assert!(matches!(first.fill(&[Const::f32(1.0)], HostQueue::default()), Err(Error::Destroyed { .. })));
    assert!(matches!(first.tree().destroy(), Err(Error::Destroyed { .. })));
    session.reset();
    assert!(matches!(second.address(), Err(Error::Stale { .. })));
    assert!(matches!(second.get(place, HostQueue::default()), Err(Error::Stale { .. })));
    assert!(matches!(Tree::new(&session, Outline::new()), Err(Error::SessionEnded)));
    drop(second);
    assert_eq!(session.live_bytes(), 0);
}

#[test]
fn trees_that_cannot_be_are_out_of_memory() {
    let session = session();
    let mut outline = Outline::new();
    let axes: Vec<_> = (0..12).map(|axis| (axis, i32::MAX as u32)).collect();
    let node = outline.add_node(NodeId::ROOT, NodeKind::Dense, &splits(&axes)).unwrap();
    outline.add_leaf(node, Scalar::F64.into(), &[]).unwrap();
    assert!(matches!(Tree::new(&session, outline), Err(Error::OutOfMemory { bytes: u64::MAX })));
}
