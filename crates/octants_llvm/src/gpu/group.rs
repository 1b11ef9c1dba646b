//! The points that one thread runs of a tile.
//!
//! Where the whole tile lies inside the last axis and the arrays are aligned, a thread has a *group* of neighbouring points: the body is
//! written once for each, in [stages](super::stages) if it branches, and LLVM joins their accesses ([`runs`](super::runs)). Elsewhere the tile's points are dealt to its threads
//! one by one, in turn, so that neighbouring threads touch neighbouring cells; a loop runs the body for each of a thread's points.
//! Which of the two holds is the same for all threads of a block, but for those that lack the last of several rows. A group whose [guards](super::guards) do not all hold goes through
//! that loop too.

use octants_ir::{Const, Op, Region, Scalar};

use super::bounds::Axis;
use super::choose::{Grouping, Tiling};
use super::exchange::Exchanges;
use super::registers::Register;
use super::stages::Stages;
use super::tile::{Piece, Tiles};
use crate::emitter::Emitter;
use crate::iterations::Group;
use crate::iterations::WholeWarp;
use crate::value::{Ty, Val};

const NUMBER: Ty = Ty { scalar: Scalar::I64, lanes: 1 };

impl Emitter<'_> {
    /// The whole task of a `parallel_for` whose blocks take tiles. Gives the thread's totals.
    pub(super) fn tiled_range(&mut self, op: Op, tiling: Tiling, grouping: &Grouping) -> Vec<Val> {
        let several = tiling.points > 1;
        let aligned = self.arrays_are_aligned(&grouping.aligned, several);
        if let (Some(aligned), false) = (aligned, several) {
            let with = |e: &mut Self| e.loop_over_tiles(op, tiling, (grouping, None));
            let none = Grouping::default();
            let without = |e: &mut Self| e.loop_over_tiles(op, tiling, (&none, None));
            return self.either(aligned, with, without);
        }
        self.loop_over_tiles(op, tiling, (grouping, aligned))
    }

    /// Runs one or the other, whose totals are alike.
    pub(super) fn either(
        &mut self,
        condition: Val,
        run: impl FnOnce(&mut Self) -> Vec<Val>,
        otherwise: impl FnOnce(&mut Self) -> Vec<Val>,
    ) -> Vec<Val> {
        let (yes, no, done) = (self.f.new_label(), self.f.new_label(), self.f.new_label());
        self.f.branch(condition, yes, no);
        self.f.begin(yes);
        let from_yes = run(self);
        let after_yes = self.f.block();
        self.f.jump(done);
        self.f.begin(no);
        let from_no = otherwise(self);
        let after_no = self.f.block();
        self.f.jump(done);
        self.f.begin(done);
        let incoming = from_yes.iter().zip(&from_no);
        incoming.map(|(&a, &b)| self.f.join(a.ty(), &[(a, after_yes), (b, after_no)])).collect()
    }

    /// The loop over the tiles of a block. A single point of a thread has its arrays aligned; whether those of several points are, is asked.
    fn loop_over_tiles(
        &mut self,
        op: Op,
        tiling: Tiling,
        (grouping, aligned_arrays): (&Grouping, Option<Val>),
    ) -> Vec<Val> {
        let kernel = self.kernel;
        let parallel = kernel.parallel_loop(op).unwrap_or_else(|| panic!("{op} is no parallel loop"));
        let tiles = self.tiles(op, tiling);
        let count = self.tile_count(op, &tiles);
        let exchanges = Exchanges::of(kernel, self.task_of(op), op, (tiling, self.vendor().lanes));
        let (block, blocks) = (self.wide_register(Register::Block), self.wide_register(Register::Blocks));
        let steps = tiling.stepped.then(|| {
            let is_empty = self.task_of(op).needs_temps().then(|| self.compare("eq", count, Val::i64(0)));
            self.steps(&tiles, count, is_empty)
        });
        let initial = self.identities(&parallel);
        let (head, inside, done) = (self.f.new_label(), self.f.new_label(), self.f.new_label());
        let before = self.f.block();
        self.f.jump(head);

        self.f.begin(head);
        // The tile's number, or its digits.
        let first = steps.as_ref().map_or(vec![block], |steps| steps.first.clone());
        let place: Vec<_> = first.iter().map(|digit| self.f.phi(digit.ty())).collect();
        let digits: Vec<_> = place.iter().map(|digit| digit.value).collect();
        let phis: Vec<_> = initial.iter().map(|value| self.f.phi(value.ty())).collect();
        let totals: Vec<_> = phis.iter().map(|phi| phi.value).collect();
        let more = match &steps {
            Some(steps) => self.is_tile(&digits, steps),
            None => self.compare("ult", digits[0], count),
        };
        self.f.branch(more, inside, done);

        self.f.begin(inside);
        let piece = match &steps {
            Some(_) => self.enter_tile_of(&tiles, &digits),
            None => self.enter_tile(&tiles, digits[0]),
        };
        // Words that lanes exchange are no sums.
        let warp = if exchanges.is_none() {
            self.warp_of_piece(&tiles, &piece, parallel.body, tiling)
        } else {
            None
        };
        let next = self.if_inside(piece.inside, &totals, |e| {
            if let Some(exchanges) = &exchanges {
                let body = (parallel.body, exchanges);
                e.point_with_exchanges(&tiles, &piece, body, &grouping.aligned, &totals)
            } else if tiling.points == 1 {
                let x = e.resize(tiles.x, piece.column.ty);
                let column = e.binary(add_of(x), piece.column, x);
                e.warp = warp;
                let next = e.one_point(&tiles, parallel.body, column, &grouping.aligned, &totals);
                e.warp = None;
                next
            } else {
                let group = (tiling, grouping, aligned_arrays);
                e.points_of_tile(&tiles, &piece, (parallel.body, warp), group, &totals)
            }
        });
        let stepped = match &steps {
            Some(steps) => self.stepped_digits(&digits, steps),
            None => vec![self.binary("add", digits[0], blocks)],
        };
        let latch = self.f.block();
        let facts = [self.module.not_unrolled()];
        self.back_edge(head, &facts);
        self.fill_phis(&place, &first, before, &stepped, latch);
        self.fill_phis(&phis, &initial, before, &next, latch);

        self.f.begin(done);
        totals
    }

    /// Whether all lanes of a warp have all their points of a tile, asked before some of them turn away.
    fn warp_of_piece(
        &mut self,
        tiles: &Tiles,
        piece: &Piece,
        body: Region,
        tiling: Tiling,
    ) -> Option<WholeWarp> {
        let axis = tiles.axes[tiles.axes.len() - 1].index;
        let sharing = self.shared_updates((body, axis), tiling)?;
        let mut has_points = piece.inside;
        let also = if tiling.points == 1 {
            let x = self.resize(tiles.x, piece.column.ty);
            let column = self.binary(add_of(x), piece.column, x);
            Some(self.is_inside(tiles, column))
        } else {
            self.has_last_row(tiles, piece)
        };
        if let Some(also) = also {
            has_points = Some(match has_points {
                Some(row) => self.binary("and", row, also),
                None => also,
            });
        }
        Some(self.whole_warp(sharing, has_points))
    }

    /// Whether the last of several rows of a thread is inside its axis, which is each thread's own.
    fn has_last_row(&mut self, tiles: &Tiles, piece: &Piece) -> Option<Val> {
        let first = piece.row.filter(|_| tiles.rows_of_thread > 1)?;
        let axis = tiles.axes[tiles.axes.len() - 2];
        let last = self.binary("add nsw", first, Val::i64(i64::from(tiles.rows_of_thread) - 1));
        Some(self.compare("slt", last, axis.hi))
    }

    /// Whether the last axis has a column.
    fn is_inside(&mut self, tiles: &Tiles, column: Val) -> Val {
        let axis = tiles.axes[tiles.axes.len() - 1];
        // From `lo` on, as an unsigned number.
        let lo = self.resize(axis.lo, column.ty);
        let position = self.binary("sub", column, lo);
        let extent = self.binary("sub", axis.hi, axis.lo);
        let extent = self.resize(extent, column.ty);
        self.compare("ult", position, extent)
    }

    /// Runs something where a condition holds; otherwise the totals stay.
    pub(super) fn if_inside(
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

    /// The body for one column, if the axis has it, with these arrays aligned.
    fn one_point(
        &mut self,
        tiles: &Tiles,
        body: Region,
        column: Val,
        aligned: &[usize],
        totals: &[Val],
    ) -> Vec<Val> {
        let axis = tiles.axes[tiles.axes.len() - 1];
        let inside = self.is_inside(tiles, column);
        self.if_inside(Some(inside), totals, |e| {
            e.group = (!aligned.is_empty()).then(|| Group {
                axis: axis.index,
                lane: 0,
                points: 1,
                aligned: aligned.to_vec(),
            });
            let column = e.resize(column, Scalar::I64);
            let next = e.body_at(tiles, body, column, totals);
            e.group = None;
            next
        })
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
        (body, warp): (Region, Option<WholeWarp>),
        (tiling, grouping, aligned_arrays): (Tiling, &Grouping, Option<Val>),
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
        let rows = self.rows_of_piece(tiles, piece);
        // Each thread's own, unlike the rest; a warp that exchanges something in the group has voted on it.
        if let Some(there) = self.has_last_row(tiles, piece) {
            whole = self.binary("and", whole, there);
        }
        let points = tiling.points;
        let shift = self.binary("mul", tiles.x, Val::i64(points.into()));
        let first = self.binary("add nsw", piece.column, shift);
        let apart = self.binary("mul", tiles.across, Val::i64(points.into()));
        let mut columns = Vec::new();
        let mut group_at = first;
        for group in 0..tiling.groups {
            if group > 0 {
                group_at = self.binary("add nsw", group_at, apart);
            }
            columns.extend((0..points).map(|lane| self.binary("add nsw", group_at, Val::i64(lane.into()))));
        }
        // Where the tile is whole, a thread's own points, one behind the other; else all threads side by side.
        let mut turns_from = (self.binary("add nsw", piece.column, tiles.x), tiles.across);
        let (mut group, turns, done) = (self.f.new_label(), self.f.new_label(), self.f.new_label());
        let before = self.f.block();
        self.f.branch(whole, group, turns);
        let mut guarded = None;
        if !grouping.guards.ifs.is_empty() {
            self.f.begin(group);
            group = self.f.new_label();
            let mut hold = Val::constant(Const::bool(true));
            for &(row_axis, row) in &rows {
                self.place_index(&row_axis, row);
                hold = self.all_guards_hold(tiles, grouping, &columns, hold);
            }
            if rows.is_empty() {
                hold = self.all_guards_hold(tiles, grouping, &columns, hold);
            }
            guarded = Some(self.f.block());
            self.f.branch(hold, group, turns);
        }

        self.f.begin(group);
        let mut grouped = totals.to_vec();
        self.taken.clone_from(&grouping.guards.ifs);
        // Guards are each thread's own.
        self.warp = warp.filter(|_| guarded.is_none());
        let stages = Stages::of(self.kernel, body, axis.index, &grouping.guards.ifs, self.options.noalias);
        for row in 0..rows.len().max(1) {
            if let Some(&(row_axis, row)) = rows.get(row) {
                self.place_index(&row_axis, row);
            }
            if let Some(stages) = &stages {
                let columns = (&columns[..], points);
                grouped = self.points_in_stages(tiles, (body, stages), columns, grouping, &grouped);
                continue;
            }
            for (&column, lane) in columns.iter().zip((0..points).cycle()) {
                let aligned = grouping.aligned.clone();
                self.group = Some(Group { axis: axis.index, lane, points, aligned });
                grouped = self.body_at(tiles, body, column, &grouped);
            }
        }
        self.group = None;
        self.warp = None;
        self.taken.clear();
        let after_group = self.f.block();
        self.f.jump(done);

        self.f.begin(turns);
        if let Some(guarded) = guarded {
            let (column, step) = turns_from;
            turns_from = (
                self.f.join(column.ty(), &[(column, before), (first, guarded)]),
                self.f.join(step.ty(), &[(step, before), (Val::i64(1), guarded)]),
            );
        }
        let in_turn = self.rows_in_turn(tiles, &rows, totals, |e, totals| {
            e.points_in_turn(tiles, body, turns_from, tiling.columns(), totals)
        });
        let after_turns = self.f.block();
        self.f.jump(done);

        self.f.begin(done);
        let incoming = grouped.iter().zip(&in_turn);
        incoming.map(|(&a, &b)| self.f.join(a.ty(), &[(a, after_group), (b, after_turns)])).collect()
    }

    /// The rows that a thread has of a tile, the first of which is inside its axis; none where there is one axis.
    fn rows_of_piece(&mut self, tiles: &Tiles, piece: &Piece) -> Vec<(Axis, Val)> {
        let Some(first) = piece.row else { return Vec::new() };
        let axis = tiles.axes[tiles.axes.len() - 2];
        let rows = 0..i64::from(tiles.rows_of_thread);
        rows.map(|row| (axis, self.binary("add nsw", first, Val::i64(row)))).collect()
    }

    /// Runs something for each of these rows that is inside its axis, or once, where there are none.
    fn rows_in_turn(
        &mut self,
        tiles: &Tiles,
        rows: &[(Axis, Val)],
        totals: &[Val],
        run: impl FnOnce(&mut Self, &[Val]) -> Vec<Val>,
    ) -> Vec<Val> {
        let Some(&(axis, first)) = rows.first() else { return run(self, totals) };
        if rows.len() == 1 {
            self.place_index(&axis, first);
            return run(self, totals);
        }
        let end = self.binary("add nsw", first, Val::i64(tiles.rows_of_thread.into()));
        let end = self.intrinsic("llvm.smin", &[end, axis.hi], "");
        let (head, inside, done) = (self.f.new_label(), self.f.new_label(), self.f.new_label());
        let before = self.f.block();
        self.f.jump(head);

        self.f.begin(head);
        let row = self.f.phi(NUMBER);
        let phis: Vec<_> = totals.iter().map(|value| self.f.phi(value.ty())).collect();
        let so_far: Vec<_> = phis.iter().map(|phi| phi.value).collect();
        let more = self.compare("slt", row.value, end);
        self.f.branch(more, inside, done);

        self.f.begin(inside);
        self.place_index(&axis, row.value);
        let next = run(self, &so_far);
        let next_row = self.binary("add nsw", row.value, Val::i64(1));
        let latch = self.f.block();
        let facts = [self.module.not_unrolled()];
        self.back_edge(head, &facts);
        self.f.fill(row, &[(first, before), (next_row, latch)]);
        self.fill_phis(&phis, totals, before, &next, latch);

        self.f.begin(done);
        so_far
    }

    /// Whether the guards hold for the points of all these columns, and others did before.
    fn all_guards_hold(&mut self, tiles: &Tiles, grouping: &Grouping, columns: &[Val], others: Val) -> Val {
        let mut all = others;
        for &column in columns {
            self.place_index(&tiles.axes[tiles.axes.len() - 1], column);
            if let Some(hold) = self.guards_hold(&grouping.guards) {
                all = self.binary("and", all, hold);
            }
        }
        all
    }

    /// The body for so many columns, a step apart.
    fn points_in_turn(
        &mut self,
        tiles: &Tiles,
        body: Region,
        (first, step): (Val, Val),
        points: u32,
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
        let next = self.one_point(tiles, body, column.value, &[], &so_far);
        let next_turn = self.binary("add", turn.value, Val::i64(1));
        let next_column = self.binary("add nsw", column.value, step);
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

/// The instruction that adds such numbers: those of 32 bits have no sign.
fn add_of(number: Val) -> &'static str {
    if number.ty.is_signed() { "add nsw" } else { "add" }
}
