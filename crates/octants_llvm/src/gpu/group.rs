//! The points that one thread runs of a tile.
//!
//! Where the whole tile lies inside the last axis and the arrays are aligned, a thread has a *group* of neighbouring points: the body is
//! written once for each, and LLVM joins their accesses ([`runs`](super::runs)). Elsewhere the tile's points are dealt to its threads
//! one by one, in turn, so that neighbouring threads touch neighbouring cells; a loop runs the body for each of a thread's points.
//! Which of the two holds is the same for all threads of a block.

use octants_ir::{Op, Region, Scalar};

use super::choose::Tiling;
use super::registers::Register;
use super::runs::Group;
use super::tile::{Piece, Tiles};
use crate::emitter::Emitter;
use crate::value::{Ty, Val};

const NUMBER: Ty = Ty { scalar: Scalar::I64, lanes: 1 };

impl Emitter<'_> {
    /// The whole task of a `parallel_for` whose blocks take tiles. Gives the thread's totals.
    pub(super) fn tiled_range(&mut self, op: Op, tiling: Tiling, aligned: &[usize]) -> Vec<Val> {
        let kernel = self.kernel;
        let parallel = kernel.parallel_loop(op).unwrap_or_else(|| panic!("{op} is no parallel loop"));
        let tiles = self.tiles(op, tiling);
        let count = self.tile_count(op, &tiles);
        let (block, blocks) = (self.wide_register(Register::Block), self.wide_register(Register::Blocks));
        let aligned_arrays = self.arrays_are_aligned(aligned);
        let initial = self.identities(&parallel);
        let (head, inside, done) = (self.f.new_label(), self.f.new_label(), self.f.new_label());
        let before = self.f.block();
        self.f.jump(head);

        self.f.begin(head);
        let tile = self.f.phi(NUMBER);
        let phis: Vec<_> = initial.iter().map(|value| self.f.phi(value.ty())).collect();
        let totals: Vec<_> = phis.iter().map(|phi| phi.value).collect();
        let more = self.compare("ult", tile.value, count);
        self.f.branch(more, inside, done);

        self.f.begin(inside);
        let piece = self.enter_tile(&tiles, tile.value);
        let next = self.if_inside(piece.inside, &totals, |e| {
            if tiling.points == 1 {
                let column = e.binary("add nsw", piece.column, tiles.x);
                e.one_point(&tiles, parallel.body, column, &totals)
            } else {
                e.points_of_tile(
                    &tiles,
                    &piece,
                    parallel.body,
                    tiling.points,
                    (aligned, aligned_arrays),
                    &totals,
                )
            }
        });
        let stepped = self.binary("add", tile.value, blocks);
        let latch = self.f.block();
        let facts = [self.module.not_unrolled()];
        self.back_edge(head, &facts);
        self.f.fill(tile, &[(block, before), (stepped, latch)]);
        self.fill_phis(&phis, &initial, before, &next, latch);

        self.f.begin(done);
        totals
    }

    /// Runs something where a condition holds; otherwise the totals stay.
    fn if_inside(
        &mut self,
        condition: Option<Val>,
        totals: &[Val],
        run: impl FnOnce(&mut Self) -> Vec<Val>,
    ) -> Vec<Val> {
        let Some(condition) = condition else { return run(self) };
        let (inside, done) = (self.f.new_label(), self.f.new_label());
        let before = self.f.block();
        self.f.branch(condition, inside, done);
        self.f.begin(inside);
        let next = run(self);
        let after = self.f.block();
        self.f.jump(done);
        self.f.begin(done);
        let incoming = totals.iter().zip(&next);
        incoming.map(|(&old, &new)| self.f.join(old.ty(), &[(old, before), (new, after)])).collect()
    }

    /// The body for one column, if the axis has it.
    fn one_point(&mut self, tiles: &Tiles, body: Region, column: Val, totals: &[Val]) -> Vec<Val> {
        let axis = tiles.axes[tiles.axes.len() - 1];
        // From `lo` on, as an unsigned number.
        let position = self.binary("sub", column, axis.lo);
        let extent = self.binary("sub", axis.hi, axis.lo);
        let inside = self.compare("ult", position, extent);
        self.if_inside(Some(inside), totals, |e| e.body_at(tiles, body, column, totals))
    }

    fn body_at(&mut self, tiles: &Tiles, body: Region, column: Val, totals: &[Val]) -> Vec<Val> {
        self.place_index(&tiles.axes[tiles.axes.len() - 1], column);
        let accumulators = &self.kernel.regions[body].params[tiles.axes.len()..];
        for (&accumulator, &total) in accumulators.iter().zip(totals) {
            self.set(accumulator, total);
        }
        self.region(body)
    }

    /// Several points of a tile: a group, or in turn.
    fn points_of_tile(
        &mut self,
        tiles: &Tiles,
        piece: &Piece,
        body: Region,
        points: u32,
        (aligned, aligned_arrays): (&[usize], Option<Val>),
        totals: &[Val],
    ) -> Vec<Val> {
        let axis = tiles.axes[tiles.axes.len() - 1];
        let from = self.compare("sle", axis.lo, piece.column);
        let end = self.binary("add nsw", piece.column, tiles.width);
        let to = self.compare("sle", end, axis.hi);
        let mut whole = self.binary("and", from, to);
        if let Some(aligned) = aligned_arrays {
            whole = self.binary("and", whole, aligned);
        }
        let (group, turns, done) = (self.f.new_label(), self.f.new_label(), self.f.new_label());
        self.f.branch(whole, group, turns);

        self.f.begin(group);
        let shift = self.binary("mul", tiles.x, Val::i64(points.into()));
        let first = self.binary("add nsw", piece.column, shift);
        let mut grouped = totals.to_vec();
        for lane in 0..points {
            let column = if lane == 0 { first } else { self.binary("add nsw", first, Val::i64(lane.into())) };
            self.group = Some(Group { axis: axis.index, lane, points, aligned: aligned.to_vec() });
            grouped = self.body_at(tiles, body, column, &grouped);
        }
        self.group = None;
        let after_group = self.f.block();
        self.f.jump(done);

        self.f.begin(turns);
        let column = self.binary("add nsw", piece.column, tiles.x);
        let in_turn = self.points_in_turn(tiles, body, (column, points), totals);
        let after_turns = self.f.block();
        self.f.jump(done);

        self.f.begin(done);
        let incoming = grouped.iter().zip(&in_turn);
        incoming.map(|(&a, &b)| self.f.join(a.ty(), &[(a, after_group), (b, after_turns)])).collect()
    }

    /// The body for so many columns, as far apart as there are threads along the axis.
    fn points_in_turn(
        &mut self,
        tiles: &Tiles,
        body: Region,
        (first, points): (Val, u32),
        totals: &[Val],
    ) -> Vec<Val> {
        let (head, inside, done) = (self.f.new_label(), self.f.new_label(), self.f.new_label());
        let before = self.f.block();
        self.f.jump(head);

        self.f.begin(head);
        let (turn, column) = (self.f.phi(NUMBER), self.f.phi(NUMBER));
        let phis: Vec<_> = totals.iter().map(|value| self.f.phi(value.ty())).collect();
        let so_far: Vec<_> = phis.iter().map(|phi| phi.value).collect();
        let more = self.compare("ult", turn.value, Val::i64(points.into()));
        self.f.branch(more, inside, done);

        self.f.begin(inside);
        let next = self.one_point(tiles, body, column.value, &so_far);
        let next_turn = self.binary("add", turn.value, Val::i64(1));
        let next_column = self.binary("add nsw", column.value, tiles.across);
        let latch = self.f.block();
        let facts = [self.module.not_unrolled()];
        self.back_edge(head, &facts);
        self.f.fill(turn, &[(Val::i64(0), before), (next_turn, latch)]);
        self.f.fill(column, &[(first, before), (next_column, latch)]);
        self.fill_phis(&phis, totals, before, &next, latch);

        self.f.begin(done);
        so_far
    }
}
