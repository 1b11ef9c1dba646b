//! Entries of vectors and matrices: indices, constant slices, swizzles; read and written.

use octants_diag::{Code, Span};
use octants_ir::ops::{AssertKind, BitOp, CompareOp};
use octants_ir::{Boundary, Data, OpKind, TensorShape, TensorType, Type, Value};

use crate::ast::{Expr, ExprKind};
use crate::host::Host;
use crate::lower::Lowerer;
use crate::lower::data::term::{Choice, Entries, Method, Place, Term};
use crate::lower::error::{Fallible, counted};
use crate::lower::values::promote::promote;

/// One of the things between the brackets.
pub(crate) enum Part<O> {
    Index(Term<O>, Span),
    /// The positions that a slice picks are known once the axis is.
    Slice([Option<i128>; 3], Span),
}

/// One axis of what is picked.
enum Axis {
    At(Value),
    Several(Vec<Value>),
}

const LETTERS: [&str; 3] = ["xyzw", "rgba", "stpq"];

/// The positions that a name such as `xyz` picks.
fn swizzle(name: &str) -> Option<(Vec<usize>, &'static str)> {
    if !(1..=4).contains(&name.len()) {
        return None;
    }
    LETTERS.iter().find_map(|letters| {
        let positions: Option<Vec<usize>> = name.chars().map(|letter| letters.find(letter)).collect();
        positions.map(|positions| (positions, *letters))
    })
}

impl<H: Host> Lowerer<'_, H> {
    /// The parts of an index expression.
    pub(crate) fn index_parts(&mut self, index: &Expr) -> Fallible<Vec<Part<H::Object>>> {
        let mut parts = Vec::new();
        for item in index.index_items() {
            if let ExprKind::Slice { start, stop, step } = &item.kind {
                let mut bounds = [None; 3];
                for (bound, expr) in bounds.iter_mut().zip([start, stop, step]) {
                    if let Some(expr) = expr {
                        *bound = self.slice_bound(expr)?;
                    }
                }
                parts.push(Part::Slice(bounds, item.span));
            } else {
                let index = self.operand(item)?;
                parts.push(Part::Index(self.pinned(index), item.span));
            }
        }
        Ok(parts)
    }

    fn slice_bound(&mut self, expr: &Expr) -> Fallible<Option<i128>> {
        let bound = self.operand(expr)?;
        match self.pinned(bound) {
            Term::Int(value) => Ok(Some(value)),
            Term::None => Ok(None),
            _ => Err(self.error_with_help(
                Code::StaticIndex,
                expr.span,
                "the bounds of a slice must be compile-time integers",
                "use constants or variables of static loops",
            )),
        }
    }

    /// `tensor[parts…]` of a tensor in a register or in memory.
    pub(crate) fn tensor_item(
        &mut self,
        base: Term<H::Object>,
        parts: Vec<Part<H::Object>>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let base = match base {
            term @ (Term::Place(_) | Term::Value(_) | Term::Entries(_) | Term::Encoded(_)) => term,
            other => Term::Value(self.value(other, span)?),
        };
        let Some(shape) = self.term_shape(&base) else {
            let what = self.describe(&base);
            return Err(self.error(Code::NotIndexable, span, format!("{what} cannot be indexed")));
        };
        let clamps = self.clamps_entries(&base);
        let axes = self.axes(shape, parts, clamps, span)?;
        let mut lengths = Vec::new();
        let mut picked: Vec<Vec<Value>> = vec![Vec::new()];
        for axis in axes {
            let choices = match axis {
                Axis::At(value) => vec![value],
                Axis::Several(values) => {
                    lengths.push(values.len() as u16);
                    values
                }
            };
            let extended = picked.iter().flat_map(|prefix| {
                choices.iter().map(move |&choice| prefix.iter().copied().chain([choice]).collect())
            });
            picked = extended.collect();
        }
        let shape = match *lengths {
            [] => return Ok(self.single_entry(&base, &picked[0], span)),
            [n] => TensorShape::Vector(n),
            [n, m, ..] => TensorShape::Matrix(n, m),
        };
        self.several_entries(&base, picked, shape, span)
    }

    fn single_entry(&mut self, base: &Term<H::Object>, components: &[Value], span: Span) -> Term<H::Object> {
        match base {
            Term::Place(place) => {
                let path = place.path.iter().chain(components).copied().collect();
                Term::Place(Place { path, ..place.clone() })
            }
            Term::Entries(entries) => {
                if let Some(place) = self.entry_place(entries, components) {
                    return Term::Place(place);
                }
                Term::Choice(Choice { entries: entries.clone(), components: components.to_vec() })
            }
            Term::Encoded(place) => self.encoded_entry(place, components, span),
            Term::Value(value) => {
                let entry = self.tensor_entry(*value, components, span);
                self.varying_entry(*value, entry).unwrap_or(Term::Value(entry))
            }
            _ => Term::None,
        }
    }

    /// The place of one entry, where its components are known.
    fn entry_place(&self, entries: &Entries, components: &[Value]) -> Option<Place> {
        let mut at = 0;
        for (&component, extent) in components.iter().zip(entries.shape.dims()) {
            let component = self.kernel.as_const(component)?.as_i128()?;
            at = at * extent as usize + usize::try_from(component).ok()?;
        }
        entries.places.get(at).cloned()
    }

    fn several_entries(
        &mut self,
        base: &Term<H::Object>,
        components: Vec<Vec<Value>>,
        shape: TensorShape,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        Ok(match base {
            Term::Place(of) => {
                let place = |components: Vec<Value>| Place {
                    path: of.path.iter().copied().chain(components).collect(),
                    ..of.clone()
                };
                Term::Entries(Entries { places: components.into_iter().map(place).collect(), shape })
            }
            Term::Entries(of) => {
                let places: Option<Vec<_>> =
                    components.iter().map(|components| self.entry_place(of, components)).collect();
                if let Some(places) = places {
                    return Ok(Term::Entries(Entries { places, shape }));
                }
                let value = self.load_entries(of, span);
                return self.several_entries(&Term::Value(value), components, shape, span);
            }
            Term::Encoded(of) => {
                if let Some(entries) = self.encoded_entries(of, &components, shape, span) {
                    return Ok(entries);
                }
                let whole = self.load_encoded(of, span)?;
                return self.several_entries(&whole, components, shape, span);
            }
            Term::Value(value) => {
                let entries: Vec<_> =
                    components.iter().map(|entry| self.tensor_entry(*value, entry, span)).collect();
                let elem = self.elem(*value);
                Term::Value(self.at(span).tensor(Data::Tensor(TensorType { elem, shape }), entries))
            }
            _ => Term::None,
        })
    }

    /// What each axis of a tensor is indexed with.
    fn axes(
        &mut self,
        shape: TensorShape,
        parts: Vec<Part<H::Object>>,
        clamps: bool,
        span: Span,
    ) -> Fallible<Vec<Axis>> {
        let dims = shape.dims();
        let mut axes = Vec::new();
        for part in parts {
            match part {
                Part::Slice(bounds, at) => {
                    let Some(&extent) = dims.get(axes.len()) else {
                        return Err(self.component_count(shape, axes.len() + 1, span));
                    };
                    let positions = sliced(extent.into(), bounds);
                    if positions.is_empty() {
                        return Err(self.error(
                            Code::StaticIndexRange,
                            at,
                            format!(
                                "the slice of an axis of {} is empty",
                                counted(extent as usize, "entry", "entries")
                            ),
                        ));
                    }
                    let mut builder = self.at(at);
                    axes.push(Axis::Several(positions.iter().map(|&i| builder.i32(i as i32)).collect()));
                }
                Part::Index(term, at) => {
                    if let (Term::Int(below @ i128::MIN..0), Some(&extent), false) =
                        (&term, dims.get(axes.len()), clamps)
                    {
                        return Err(self.negative_component(*below, extent, at));
                    }
                    let mut values = Vec::new();
                    if clamps {
                        self.index_from(term, i32::MIN, at, &mut values)?;
                    } else {
                        self.index_term(term, self.narrowing(), at, &mut values)?;
                    }
                    for mut value in values {
                        match dims.get(axes.len()) {
                            Some(&extent) if clamps => value = self.clamped_component(value, extent, at),
                            Some(&extent) => self.check_component(value, extent, at)?,
                            None => {}
                        }
                        axes.push(Axis::At(value));
                    }
                }
            }
        }
        if axes.len() != dims.len() {
            return Err(self.component_count(shape, axes.len(), span));
        }
        Ok(axes)
    }

    /// An entry counted from the end; how many there are is known.
    fn negative_component(&self, index: i128, extent: u32, span: Span) -> Box<octants_diag::Diagnostic> {
        let entries = counted(extent as usize, "entry", "entries");
        let help = match index + i128::from(extent) {
            wanted @ 0.. => format!("this axis has {entries}: write {wanted}"),
            _ => format!("this axis has {entries}, from 0 to {}", extent - 1),
        };
        let message = "Negative indices are not supported in a kernel";
        self.error_with_help(Code::NegativeIndex, span, message, help)
    }

    fn component_count(&self, shape: TensorShape, count: usize, span: Span) -> Box<octants_diag::Diagnostic> {
        let rank = shape.rank();
        self.error_with_help(
            Code::IndexCount,
            span,
            format!("Expected {}, got {count}", counted(rank, "index", "indices")),
            if rank == 2 { "write `m[i, j]`; a row is `m[i, :]`" } else { "write one index, `v[i]`" },
        )
    }

    /// Whether a tensor is an element of an array whose indices are clamped: those of its entries are, too.
    fn clamps_entries(&self, base: &Term<H::Object>) -> bool {
        let Term::Place(place) = base else { return false };
        matches!(self.kernel.ty(place.base), Type::Array(array) if array.boundary == Boundary::Clamp)
    }

    /// The nearest index that is inside of an axis.
    fn clamped_component(&mut self, component: Value, extent: u32, span: Span) -> Value {
        let last = extent as i32 - 1;
        if let Some(known) = self.kernel.as_const(component).and_then(octants_ir::Const::as_i128) {
            return self.at(span).i32(known.clamp(0, last.into()) as i32);
        }
        let mut builder = self.at(span);
        let (first, last) = (builder.i32(0), builder.i32(last));
        self.cut(component, first, last, span)
    }

    /// A constant index must be inside of its axis; debug mode asserts it of any other.
    fn check_component(&mut self, component: Value, extent: u32, span: Span) -> Fallible<()> {
        let known = self.kernel.as_const(component).and_then(octants_ir::Const::as_i128);
        match known {
            Some(at) if at >= i128::from(extent) => {
                return Err(self.error(
                    Code::StaticIndexRange,
                    span,
                    format!(
                        "index {at} is out of range of an axis with {}",
                        counted(extent as usize, "entry", "entries")
                    ),
                ));
            }
            None if self.options.check_bounds => {
                let shown = self.whole_index(component);
                let mut builder = self.at(span);
                let zero = builder.i32(0);
                let end = builder.i32(extent as i32);
                let above = builder.compare(CompareOp::Ge, component, zero);
                let below = builder.compare(CompareOp::Lt, component, end);
                let inside = builder.bit(BitOp::And, above, below);
                let entries = counted(extent as usize, "entry", "entries");
                let message = format!("index {{}} is out of bounds of an axis with {entries}");
                builder.op(OpKind::Assert(AssertKind::Bounds, message.into()), [inside, shown], [], []);
            }
            _ => {}
        }
        Ok(())
    }

    /// The shape of a tensor in a register or in memory.
    pub(crate) fn term_shape(&self, term: &Term<H::Object>) -> Option<TensorShape> {
        match term {
            Term::Value(value) => self.data(*value).tensor_shape(),
            Term::Place(place) => self.place_data(place).tensor_shape(),
            Term::Entries(entries) => Some(entries.shape),
            Term::Encoded(place) => place.shape,
            Term::Index(values) => Some(TensorShape::Vector(values.len() as u16)),
            _ => None,
        }
    }

    /// `tensor.name`: its shape, components by letters, or a method.
    pub(crate) fn tensor_attribute(
        &mut self,
        base: Term<H::Object>,
        shape: TensorShape,
        name: &str,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let (n, m) = match shape {
            TensorShape::Vector(n) => (n, 1),
            TensorShape::Matrix(n, m) => (n, m),
        };
        match name {
            "n" => return Ok(Term::Int(n.into())),
            "m" => return Ok(Term::Int(m.into())),
            "ndim" => return Ok(Term::Int(shape.rank() as i128)),
            _ => {}
        }
        if let Some((positions, letters)) = swizzle(name) {
            return self.swizzled(base, shape, (name, positions, letters), span);
        }
        let Some(function) = self.host.tensor_method(name) else {
            let what = self.describe(&base);
            let diagnostic =
                self.diagnostic(Code::NoAttribute, span, format!("{what} has no attribute `{name}`"));
            return Err(Box::new(match name {
                "T" => diagnostic.help("write `transpose()`"),
                "shape" | "size" => diagnostic.help("write `n` for the rows of it, `m` for the columns"),
                "length" | "magnitude" | "len" => {
                    diagnostic.help("write `norm()`, or `n` for the number of entries")
                }
                "length_squared" | "dot_self" => diagnostic.help("write `norm_sqr()`"),
                "normalize" | "unit" => diagnostic.help("write `normalized()`"),
                "mean" => diagnostic.help("write `sum()`, and divide by the number of entries"),
                _ => diagnostic,
            }));
        };
        Ok(Term::Method(Box::new(Method { function, receiver: base, by_reference: false })))
    }

    fn swizzled(
        &mut self,
        base: Term<H::Object>,
        shape: TensorShape,
        (name, positions, letters): (&str, Vec<usize>, &str),
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let TensorShape::Vector(n) = shape else {
            let what = self.describe(&base);
            return Err(self.error_with_help(
                Code::Swizzle,
                span,
                format!("{what} has no components such as `{name}`"),
                "swizzles are of vectors; index a matrix: `m[i, j]`",
            ));
        };
        if positions.iter().any(|&at| at >= n.into()) {
            let has: Vec<_> = letters.chars().take(n.into()).map(|letter| format!("`{letter}`")).collect();
            return Err(self.error(
                Code::Swizzle,
                span,
                format!(
                    "a vector of {n} entries has the components {}; `{name}` asks for another",
                    has.join(", ")
                ),
            ));
        }
        let base = match base {
            term @ (Term::Place(_) | Term::Value(_) | Term::Entries(_) | Term::Encoded(_)) => term,
            other => Term::Value(self.value(other, span)?),
        };
        let components: Vec<Vec<Value>> =
            positions.iter().map(|&at| vec![self.at(span).i32(at as i32)]).collect();
        Ok(if let [single] = &*components {
            self.single_entry(&base, single, span)
        } else {
            let shape = TensorShape::Vector(components.len() as u16);
            self.several_entries(&base, components, shape, span)?
        })
    }

    /// The type of entries as a tensor: the one in which all of them meet.
    pub(crate) fn entries_data(&self, entries: &Entries) -> Data {
        let types = entries.places.iter().filter_map(|place| self.place_data(place).elem());
        let elem = types.reduce(promote).unwrap_or(octants_ir::Scalar::I32);
        Data::Tensor(TensorType { elem, shape: entries.shape })
    }

    /// Entries as a tensor in a register.
    pub(crate) fn load_entries(&mut self, entries: &Entries, span: Span) -> Value {
        let data = self.entries_data(entries);
        let elem = data.elem().unwrap_or(octants_ir::Scalar::I32);
        let mut loaded = Vec::with_capacity(entries.places.len());
        for place in &entries.places {
            let value = self.load_place(place, span);
            loaded.push(self.cast(value, elem, span));
        }
        self.at(span).tensor(data, loaded)
    }

    /// What is written to entries, one scalar for each, cast to its type.
    pub(crate) fn values_for_entries(
        &mut self,
        entries: &Entries,
        term: Term<H::Object>,
        span: Span,
    ) -> Fallible<Vec<Value>> {
        let places = &entries.places;
        let same = |&a: &Value, &b: &Value| {
            a == b
                || (self.kernel.as_const(a).is_some() && self.kernel.as_const(a) == self.kernel.as_const(b))
        };
        let repeated = places.iter().enumerate().any(|(at, place)| {
            places[..at].iter().any(|earlier| {
                earlier.base == place.base && earlier.path.iter().zip(&place.path).all(|(a, b)| same(a, b))
            })
        });
        if repeated {
            return Err(self.error(
                Code::Swizzle,
                span,
                "a swizzle that names a component twice cannot be written",
            ));
        }
        // A number fills all of them.
        let value = self.value_for(self.entries_data(entries), term, span)?;
        let values = self.tensor_entries(value, span);
        let mut cast = Vec::with_capacity(values.len());
        for (place, value) in places.iter().zip(values) {
            let elem = self.place_data(place).elem().unwrap_or(octants_ir::Scalar::I32);
            cast.push(self.cast(value, elem, span));
        }
        Ok(cast)
    }

    pub(crate) fn store_entries(
        &mut self,
        entries: &Entries,
        term: Term<H::Object>,
        span: Span,
    ) -> Fallible<()> {
        let values = self.values_for_entries(entries, term, span)?;
        for (place, value) in entries.places.iter().zip(values) {
            self.store_place(place, value, span);
        }
        Ok(())
    }
}

/// The positions that Python's slice picks of an axis.
fn sliced(extent: i128, [start, stop, step]: [Option<i128>; 3]) -> Vec<i128> {
    let step = step.unwrap_or(1);
    if step == 0 {
        return Vec::new();
    }
    let (low, high) = if step > 0 { (0, extent) } else { (-1, extent - 1) };
    let clamp = |bound: i128| (if bound < 0 { bound + extent } else { bound }).clamp(low, high);
    let mut at = start.map_or(if step > 0 { 0 } else { extent - 1 }, clamp);
    let end = stop.map_or(if step > 0 { extent } else { -1 }, clamp);
    let mut positions = Vec::new();
    while (step > 0 && at < end) || (step < 0 && at > end) {
        positions.push(at);
        at += step;
    }
    positions
}

#[cfg(test)]
mod tests {
    use super::sliced;

    #[test]
    fn slices_pick_what_python_picks() {
        assert_eq!(sliced(5, [None, None, None]), [0, 1, 2, 3, 4]);
        assert_eq!(sliced(5, [Some(1), Some(-1), Some(2)]), [1, 3]);
        assert_eq!(sliced(5, [None, None, Some(-2)]), [4, 2, 0]);
        assert_eq!(sliced(5, [Some(3), Some(9), None]), [3, 4]);
        assert!(sliced(5, [Some(3), Some(2), None]).is_empty());
    }
}
