//! Arguments and results as text: `1`, `0.5`, `true`, `inf`, `-inf`, `nan`, `0x7fc00000` (the bits of a real), `[1, 2]` for a tensor and
//! for an array (outermost axis first, the tensor's entries innermost), `{1.0, 2}` for a struct, `zeros(0, 3)` for an array of a
//! shape. An argument may be preceded by its parameter's name, `x = [1, 2]`.

use octants_interp::{Arg, Buffers, Datum};
use octants_ir::plan::size_and_align;
use octants_ir::text::number_of;
use octants_ir::{ArrayType, Const, Data, Kernel, Layout, Scalar, Type};

enum Item {
    Word(String),
    List(Vec<Item>),
    Members(Vec<Item>),
    Zeros(Vec<i32>),
}

/// The arguments that the text says; arrays are put into the memory.
pub fn arguments(kernel: &Kernel, text: &str, memory: &mut Buffers) -> Result<Vec<Arg>, String> {
    let mut reader = Reader { chars: text.chars().collect(), at: 0 };
    let params = &kernel.regions[kernel.body].params;
    let mut args = Vec::new();
    while !reader.is_at_end() {
        if !args.is_empty() {
            reader.expect(',')?;
        }
        let Some(&param) = params.get(args.len()) else {
            return Err(format!("more arguments than the {} parameters", params.len()));
        };
        let item = reader.argument(&kernel.params[args.len()].name)?;
        args.push(match kernel.ty(param) {
            Type::Data(data) => Arg::Data(datum(kernel, data, &item)?),
            Type::Array(array) => {
                let (shape, bytes) = array_of(kernel, array, &item)?;
                match kernel.layout(array) {
                    Some(layout) => {
                        Arg::Field { address: memory.add(laid_out(kernel, array, layout, &shape, &bytes)?) }
                    }
                    None => Arg::Array { address: memory.add(bytes), shape },
                }
            }
            other => return Err(format!("a parameter cannot be {other}")),
        });
    }
    if args.len() == params.len() {
        Ok(args)
    } else {
        Err(format!("{} arguments for {} parameters", args.len(), params.len()))
    }
}

/// From row-major order to the field's own; what lies between elements is 0xaa.
fn laid_out(
    kernel: &Kernel,
    array: ArrayType,
    layout: &Layout,
    shape: &[i32],
    elements: &[u8],
) -> Result<Vec<u8>, String> {
    if !shape.iter().zip(&layout.shape).all(|(&found, &extent)| found == extent as i32) {
        return Err(format!("{shape:?} for a field of {:?}", layout.shape));
    }
    let (size, _) = size_and_align(kernel, array.elem);
    let mut bytes = vec![0xaa; layout.span(size) as usize];
    for (offset, element) in offsets(layout).zip(elements.chunks_exact(size as usize)) {
        bytes[offset..][..size as usize].copy_from_slice(element);
    }
    Ok(bytes)
}

/// A field's elements in row-major order.
pub fn row_major(kernel: &Kernel, array: ArrayType, layout: &Layout, bytes: &[u8]) -> Vec<u8> {
    let (size, _) = size_and_align(kernel, array.elem);
    offsets(layout).flat_map(|offset| bytes[offset..][..size as usize].to_vec()).collect()
}

/// Where each element lies, in row-major order.
fn offsets(layout: &Layout) -> impl Iterator<Item = usize> + '_ {
    (0..layout.count()).map(|mut number| {
        let mut index = vec![0; layout.rank()];
        for axis in (0..layout.rank()).rev() {
            let extent = u64::from(layout.shape[axis]);
            index[axis] = (number % extent) as i64 + i64::from(layout.origin[axis]);
            number /= extent;
        }
        layout.offset_of(&index).expect("inside the shape") as usize
    })
}

fn array_of(kernel: &Kernel, array: ArrayType, item: &Item) -> Result<(Vec<i32>, Vec<u8>), String> {
    let (size, _) = size_and_align(kernel, array.elem);
    if let Item::Zeros(shape) = item {
        if shape.len() != array.rank as usize {
            return Err(format!("zeros of rank {} for an array of rank {}", shape.len(), array.rank));
        }
        let count: usize = shape.iter().map(|&extent| extent as usize).product();
        return Ok((shape.clone(), vec![0; count * size as usize]));
    }
    let mut shape = Vec::new();
    let mut level = vec![item];
    for axis in 0..array.rank {
        let mut next = Vec::new();
        let mut extent = None;
        for item in &level {
            let Item::List(items) = item else { return Err(format!("axis {axis} of an array is no list")) };
            if *extent.get_or_insert(items.len()) != items.len() {
                return Err(format!("lists of axis {axis} differ in length"));
            }
            next.extend(items);
        }
        shape.push(extent.unwrap_or(0) as i32);
        level = next;
    }
    let mut bytes = Vec::new();
    for item in level {
        let mut element = vec![0; size as usize];
        datum(kernel, array.elem, item)?.to_bytes(kernel, &mut element);
        bytes.extend(element);
    }
    Ok((shape, bytes))
}

fn datum(kernel: &Kernel, data: Data, item: &Item) -> Result<Datum, String> {
    match (data, item) {
        (Data::Scalar(scalar), Item::Word(word)) => {
            constant(scalar, word).map(Datum::Scalar).ok_or_else(|| format!("{word} is no {scalar}"))
        }
        (Data::Tensor(tensor), item) => {
            let mut level = vec![item];
            for extent in tensor.shape.dims() {
                let mut next = Vec::new();
                for item in level {
                    match item {
                        Item::List(items) if items.len() == extent as usize => next.extend(items),
                        _ => return Err(format!("a list of {extent} is expected for {data}")),
                    }
                }
                level = next;
            }
            let entries: Result<Vec<_>, _> =
                level.into_iter().map(|item| datum(kernel, tensor.elem.into(), item)).collect();
            Ok(Datum::Tensor(tensor, entries?.iter().map(Datum::scalar).collect()))
        }
        (Data::Struct(id), Item::Members(items)) => {
            let members = &kernel.structs[id].members;
            if members.len() != items.len() {
                return Err(format!("{} members are expected for {data}", members.len()));
            }
            let values: Result<_, _> =
                members.iter().zip(items).map(|(&(_, data), item)| datum(kernel, data, item)).collect();
            Ok(Datum::Struct(id, values?))
        }
        _ => Err(format!("that is no {data}")),
    }
}

fn constant(scalar: Scalar, word: &str) -> Option<Const> {
    match word {
        "true" | "false" if scalar == Scalar::U1 => Some(Const::bool(word == "true")),
        "nan" if scalar.is_real() => Some(Const::from_f64(scalar, f64::NAN)),
        "inf" if scalar.is_real() => Some(Const::from_f64(scalar, f64::INFINITY)),
        "-inf" if scalar.is_real() => Some(Const::from_f64(scalar, f64::NEG_INFINITY)),
        _ => number_of(scalar, word),
    }
}

/// A value as text.
pub fn show(datum: &Datum) -> String {
    match datum {
        Datum::Scalar(c) => show_constant(*c),
        Datum::Tensor(tensor, entries) => {
            let shown: Vec<_> = entries.iter().map(|&c| show_constant(c)).collect();
            nest(&tensor.shape.dims(), &shown)
        }
        Datum::Struct(_, members) => {
            let shown: Vec<_> = members.iter().map(show).collect();
            format!("{{{}}}", shown.join(", "))
        }
    }
}

/// An array's contents as text.
pub fn show_array(kernel: &Kernel, array: ArrayType, shape: &[i32], bytes: &[u8]) -> String {
    let (size, _) = size_and_align(kernel, array.elem);
    let elements = bytes.chunks_exact(size as usize);
    let shown: Vec<_> = elements.map(|bytes| show(&Datum::from_bytes(kernel, array.elem, bytes))).collect();
    nest(&shape.iter().map(|&extent| extent as u32).collect::<Vec<_>>(), &shown)
}

/// Items in row-major order as lists in lists.
fn nest(shape: &[u32], items: &[String]) -> String {
    match shape {
        [] => items.first().cloned().unwrap_or_default(),
        [extent, inner @ ..] => {
            let stride = inner.iter().product::<u32>() as usize;
            let rows = (0..*extent as usize).map(|row| nest(inner, &items[row * stride..(row + 1) * stride]));
            format!("[{}]", rows.collect::<Vec<_>>().join(", "))
        }
    }
}

fn show_constant(c: Const) -> String {
    match c.ty() {
        Scalar::U1 => (c.bits() != 0).to_string(),
        Scalar::F16 | Scalar::F32 | Scalar::F64 if c.as_f64().is_nan() => "nan".into(),
        Scalar::F16 | Scalar::F32 => format!("{:?}", c.as_f64() as f32),
        Scalar::F64 => format!("{:?}", c.as_f64()),
        _ => c.as_i128().map_or_else(String::new, |v| v.to_string()),
    }
}

struct Reader {
    chars: Vec<char>,
    at: usize,
}

impl Reader {
    fn skip_blank(&mut self) {
        while self.chars.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
    }

    fn is_at_end(&mut self) -> bool {
        self.skip_blank();
        self.at == self.chars.len()
    }

    fn eat(&mut self, c: char) -> bool {
        self.skip_blank();
        let found = self.chars.get(self.at) == Some(&c);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, c: char) -> Result<(), String> {
        if self.eat(c) { Ok(()) } else { Err(format!("`{c}` is expected before {:?}", self.rest())) }
    }

    fn rest(&self) -> String {
        self.chars[self.at..].iter().collect()
    }

    fn word(&mut self) -> Result<String, String> {
        self.skip_blank();
        let start = self.at;
        let is_word = |c: char| c.is_ascii_alphanumeric() || "_.+-".contains(c);
        while self.chars.get(self.at).is_some_and(|&c| is_word(c)) {
            self.at += 1;
        }
        if self.at == start {
            return Err(format!("a value is expected before {:?}", self.rest()));
        }
        Ok(self.chars[start..self.at].iter().collect())
    }

    /// A value, its parameter's name before it or not.
    fn argument(&mut self, name: &str) -> Result<Item, String> {
        let start = self.at;
        if let Ok(word) = self.word()
            && self.eat('=')
        {
            if word != name {
                return Err(format!("the parameter is called {name:?}, not {word:?}"));
            }
            return self.item();
        }
        self.at = start;
        self.item()
    }

    fn item(&mut self) -> Result<Item, String> {
        if self.eat('[') {
            return Ok(Item::List(self.list(']')?));
        }
        if self.eat('{') {
            return Ok(Item::Members(self.list('}')?));
        }
        let word = self.word()?;
        if word == "zeros" && self.eat('(') {
            let extents = self.list(')')?;
            let extent = |item: &Item| match item {
                Item::Word(word) => word.parse::<i32>().ok().filter(|&extent| extent >= 0),
                _ => None,
            };
            let extents: Option<Vec<_>> = extents.iter().map(extent).collect();
            return extents.map(Item::Zeros).ok_or_else(|| "an extent is no number".to_string());
        }
        Ok(Item::Word(word))
    }

    fn list(&mut self, close: char) -> Result<Vec<Item>, String> {
        let mut items = Vec::new();
        while !self.eat(close) {
            if !items.is_empty() {
                self.expect(',')?;
            }
            items.push(self.item()?);
        }
        Ok(items)
    }
}
