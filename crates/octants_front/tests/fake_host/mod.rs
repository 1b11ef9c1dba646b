//! A host language of a few Rust values, enough to lower kernels without Python.
//!
//! Names resolve to entries of a table; annotations are read off the text of the signature.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use octants_front::host::{BinaryOp, CompareOp, UnaryOp};
use octants_front::{
    Annotation, ArrayAnnotation, ElementAnnotation, ExprId, FieldKind, FunctionSource, Host, HostException,
    HostResult, Intrinsic, Meaning, ScalarAnnotation, Tracer,
};
use octants_ir::{Boundary, Scalar};

type Callable = dyn Fn(&[Object], &mut dyn Tracer<Object>) -> HostResult<Object>;

/// An object of the fake language.
#[derive(Clone)]
#[allow(dead_code, reason = "each test uses its part")]
pub enum Object {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(String),
    Tuple(Vec<Object>),
    List(Vec<Object>),
    Dtype(Scalar),
    Intrinsic(Intrinsic),
    /// A function of the source text.
    Func(String),
    Kernel(String),
    Callable(Rc<Callable>),
    /// The package.
    Module,
    Ndarray,
    Field(Arc<FieldKind>),
    Annotation(Annotation),
    Expr(ExprId),
}

pub struct FakeHost {
    text: Arc<str>,
    globals: RefCell<BTreeMap<String, Object>>,
    traces: Cell<u64>,
}

fn raise<T>(type_name: &str, message: &str) -> HostResult<T> {
    Err(HostException::new(type_name, message))
}

impl FakeHost {
    /// Every `def` of the text is a func, but for those whose line above says `@oc.kernel`.
    pub fn new(text: &str) -> Self {
        let host = Self { text: text.into(), globals: RefCell::default(), traces: Cell::new(0) };
        let mut above = "";
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("def ").and_then(|rest| rest.split('(').next()) {
                let object = match above.trim() {
                    "@oc.kernel" => Object::Kernel(name.to_owned()),
                    _ => Object::Func(name.to_owned()),
                };
                host.set(name, object);
            }
            above = line;
        }
        host.set("oc", Object::Module);
        host
    }

    pub fn set(&self, name: &str, object: Object) {
        self.globals.borrow_mut().insert(name.to_owned(), object);
    }

    fn name_of(object: &Object) -> &str {
        match object {
            Object::Func(name) | Object::Kernel(name) => name,
            _ => "?",
        }
    }

    /// The pieces of a function's signature: `name: annotation = default`, and what is returned.
    fn signature(&self, object: &Object) -> (Vec<String>, Option<String>) {
        let head = format!("def {}(", Self::name_of(object));
        let start = self.text.find(&head).expect("the function is in the text") + head.len();
        let rest = &self.text[start..];
        let (mut depth, mut pieces, mut piece) = (0, Vec::new(), String::new());
        let mut end = 0;
        for (at, c) in rest.char_indices() {
            match c {
                '(' | '[' => depth += 1,
                ')' if depth == 0 => {
                    end = at;
                    break;
                }
                ')' | ']' => depth -= 1,
                ',' if depth == 0 => {
                    pieces.push(std::mem::take(&mut piece));
                    continue;
                }
                _ => {}
            }
            piece.push(c);
        }
        pieces.push(piece);
        let after = &rest[end + 1..];
        let returns = after.split_once(':').and_then(|(head, _)| head.trim().strip_prefix("->"));
        (pieces, returns.map(|text| text.trim().to_owned()))
    }

    fn evaluate_annotation(text: &str) -> HostResult<Object> {
        let text = text.trim();
        let annotation = match text {
            "int" => Annotation::Scalar(ScalarAnnotation::DefaultInt),
            "float" => Annotation::Scalar(ScalarAnnotation::DefaultFloat),
            "bool" => Annotation::Scalar(ScalarAnnotation::Is(Scalar::U1)),
            "None" => Annotation::None,
            "..." => Annotation::Ellipsis,
            "oc.template()" => Annotation::Template,
            _ if text.starts_with("oc.types.ndarray(") => Annotation::Array(ArrayAnnotation {
                scalar: None,
                element: ElementAnnotation::Any,
                ndim: None,
                boundary: Boundary::Unsafe,
                needs_grad: None,
                optional: false,
            }),
            _ if text.starts_with("tuple[") => {
                let items = text["tuple[".len()..text.len() - 1].split(',');
                let items = items.map(|item| match Self::evaluate_annotation(item) {
                    Ok(Object::Annotation(annotation)) => Ok(annotation),
                    _ => raise("TypeError", item),
                });
                Annotation::Tuple(items.collect::<HostResult<_>>()?)
            }
            _ => match text.strip_prefix("oc.").and_then(Scalar::from_name) {
                Some(scalar) => Annotation::Scalar(ScalarAnnotation::Is(scalar)),
                None if text.starts_with('"') => return raise("NameError", "name 'Missing' is not defined"),
                None => Annotation::Other(text.to_owned()),
            },
        };
        Ok(Object::Annotation(annotation))
    }

    fn items(object: &Object) -> Option<&[Object]> {
        match object {
            Object::Tuple(items) | Object::List(items) => Some(items),
            _ => None,
        }
    }

    fn number(object: &Object) -> Option<f64> {
        match object {
            Object::Bool(value) => Some(f64::from(u8::from(*value))),
            Object::Int(value) => Some(*value as f64),
            Object::Float(value) => Some(*value),
            _ => None,
        }
    }
}

impl Host for FakeHost {
    type Object = Object;

    fn begin_trace(&self) -> u64 {
        self.traces.set(self.traces.get() + 1);
        self.traces.get()
    }

    fn function(&self, function: &Object) -> HostResult<Arc<FunctionSource>> {
        let name = Self::name_of(function);
        let at = self
            .text
            .find(&format!("def {name}("))
            .ok_or_else(|| HostException::new("OSError", "no source"))?;
        Ok(Arc::new(FunctionSource {
            file_name: "kernels.py".to_owned(),
            text: self.text.clone(),
            line: self.text[..at].matches('\n').count() as u32 + 1,
            name: name.to_owned(),
            qualname: name.into(),
            is_method: false,
        }))
    }

    fn global(&self, _function: &Object, name: &str) -> HostResult<Option<Object>> {
        if let Some(object) = self.globals.borrow().get(name) {
            return Ok(Some(object.clone()));
        }
        let builtins = ["range", "min", "max", "abs", "int", "float", "bool", "len", "print", "pow", "round"];
        Ok(builtins.contains(&name).then(|| Intrinsic::from_name(name)).flatten().map(Object::Intrinsic))
    }

    fn annotation_of(&self, function: &Object, param: &str) -> HostResult<Option<Object>> {
        let (params, returns) = self.signature(function);
        if param == "return" {
            return returns.map(|text| Self::evaluate_annotation(&text)).transpose();
        }
        for piece in params {
            let Some((name, rest)) = piece.split_once(':') else { continue };
            if name.trim() == param {
                let text = if rest.contains('(') { rest } else { rest.split('=').next().unwrap_or(rest) };
                return Self::evaluate_annotation(text).map(Some);
            }
        }
        Ok(None)
    }

    fn default_of(&self, function: &Object, param: &str) -> HostResult<Option<Object>> {
        let (params, _) = self.signature(function);
        let piece = params.iter().find(|piece| piece.trim().split([':', '=', ' ']).next() == Some(param));
        let default = piece.and_then(|piece| piece.split_once('=')).map(|(_, text)| text.trim().to_owned());
        Ok(default.map(|text| match text.parse() {
            Ok(value) => Object::Int(value),
            Err(_) => text.parse().map_or(Object::Str(text), Object::Float),
        }))
    }

    fn annotation(&self, object: &Object) -> Annotation {
        match object {
            Object::Annotation(annotation) => annotation.clone(),
            Object::Dtype(scalar) => Annotation::Scalar(ScalarAnnotation::Is(*scalar)),
            other => Annotation::Other(self.repr(other)),
        }
    }

    fn meaning(&self, object: &Object) -> Meaning<Object> {
        match object.clone() {
            Object::None => Meaning::None,
            Object::Bool(value) => Meaning::Bool(value),
            Object::Int(value) => Meaning::Int(value),
            Object::Float(value) => Meaning::Float(value),
            Object::Str(text) => Meaning::Str(text),
            Object::Tuple(_) => Meaning::Tuple,
            Object::List(_) => Meaning::List,
            Object::Dtype(scalar) => Meaning::Dtype(scalar),
            Object::Intrinsic(intrinsic) => Meaning::Intrinsic(intrinsic),
            Object::Func(_) => Meaning::Func { receiver: None },
            Object::Kernel(_) => Meaning::Kernel,
            Object::Callable(_) => Meaning::Callable { known: false },
            Object::Module => Meaning::Module,
            Object::Ndarray => Meaning::Ndarray,
            Object::Field(_) => Meaning::Field,
            Object::Annotation(_) => Meaning::Other,
            Object::Expr(id) => Meaning::Expr(id),
        }
    }

    fn items(&self, object: &Object) -> Vec<Object> {
        match object {
            Object::Tuple(items) | Object::List(items) => items.clone(),
            _ => Vec::new(),
        }
    }

    fn pairs(&self, _object: &Object) -> Vec<(Object, Object)> {
        Vec::new()
    }

    fn repr(&self, object: &Object) -> String {
        match object {
            Object::None => "None".to_owned(),
            Object::Bool(value) => (if *value { "True" } else { "False" }).to_owned(),
            Object::Int(value) => value.to_string(),
            Object::Float(value) => value.to_string(),
            Object::Str(text) => format!("'{text}'"),
            other => format!("<{}>", self.type_name(other)),
        }
    }

    fn type_name(&self, object: &Object) -> String {
        match object {
            Object::Module => "module",
            Object::Callable(_) => "function",
            Object::Tuple(_) => "tuple",
            Object::List(_) => "list",
            _ => "object",
        }
        .to_owned()
    }

    fn same(&self, a: &Object, b: &Object) -> bool {
        match (a, b) {
            (Object::Field(a), Object::Field(b)) => Arc::ptr_eq(a, b),
            (a, b) => matches!((a, b), (Object::None, Object::None)),
        }
    }

    fn field(&self, object: &Object) -> HostResult<Arc<FieldKind>> {
        match object {
            Object::Field(kind) => Ok(kind.clone()),
            _ => raise("TypeError", "no field"),
        }
    }

    fn make_none(&self) -> Object {
        Object::None
    }

    fn make_bool(&self, value: bool) -> Object {
        Object::Bool(value)
    }

    fn make_int(&self, value: i128) -> Object {
        Object::Int(value)
    }

    fn make_float(&self, value: f64) -> Object {
        Object::Float(value)
    }

    fn make_str(&self, value: &str) -> Object {
        Object::Str(value.to_owned())
    }

    fn make_tuple(&self, items: Vec<Object>) -> Object {
        Object::Tuple(items)
    }

    fn make_list(&self, items: Vec<Object>) -> Object {
        Object::List(items)
    }

    fn make_dict(&self, _items: Vec<(Object, Object)>) -> HostResult<Object> {
        raise("NotImplementedError", "dict")
    }

    fn make_slice(&self, start: Object, stop: Object, step: Object) -> Object {
        Object::Tuple(vec![start, stop, step])
    }

    fn make_dtype(&self, scalar: Scalar) -> Object {
        Object::Dtype(scalar)
    }

    fn make_expr(&self, id: ExprId) -> Object {
        Object::Expr(id)
    }

    fn truth(&self, object: &Object, _tracer: &mut dyn Tracer<Object>) -> HostResult<bool> {
        Ok(Self::items(object).is_none_or(|items| !items.is_empty()))
    }

    fn iterate(&self, object: &Object, _tracer: &mut dyn Tracer<Object>) -> HostResult<Vec<Object>> {
        Self::items(object).map_or_else(|| raise("TypeError", "not iterable"), |items| Ok(items.to_vec()))
    }

    fn getattr(&self, object: &Object, name: &str, _tracer: &mut dyn Tracer<Object>) -> HostResult<Object> {
        let found = match object {
            Object::Module => Scalar::from_name(name)
                .map(Object::Dtype)
                .or_else(|| Intrinsic::from_name(name).map(Object::Intrinsic)),
            _ => None,
        };
        found.map_or_else(|| raise("AttributeError", &format!("no attribute '{name}'")), Ok)
    }

    fn getitem(
        &self,
        object: &Object,
        index: &Object,
        _tracer: &mut dyn Tracer<Object>,
    ) -> HostResult<Object> {
        match (Self::items(object), index) {
            (Some(items), Object::Int(at)) => {
                let at = if *at < 0 { *at + items.len() as i128 } else { *at };
                let item = usize::try_from(at).ok().and_then(|at| items.get(at));
                item.cloned().map_or_else(|| raise("IndexError", "list index out of range"), Ok)
            }
            _ => raise("TypeError", "not subscriptable"),
        }
    }

    fn binary(
        &self,
        op: BinaryOp,
        _a: &Object,
        b: &Object,
        _tracer: &mut dyn Tracer<Object>,
    ) -> HostResult<Object> {
        match (op, Self::number(b)) {
            (BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::Mod, Some(0.0)) => {
                raise("ZeroDivisionError", "division by zero")
            }
            _ => raise("TypeError", "unsupported operand type(s)"),
        }
    }

    fn unary(&self, _op: UnaryOp, _a: &Object, _tracer: &mut dyn Tracer<Object>) -> HostResult<Object> {
        raise("TypeError", "bad operand type for unary operator")
    }

    fn compare(
        &self,
        op: CompareOp,
        a: &Object,
        b: &Object,
        _tracer: &mut dyn Tracer<Object>,
    ) -> HostResult<Object> {
        match op {
            CompareOp::Is => Ok(Object::Bool(self.same(a, b))),
            CompareOp::IsNot => Ok(Object::Bool(!self.same(a, b))),
            CompareOp::In => {
                let items = Self::items(b).unwrap_or_default();
                Ok(Object::Bool(items.iter().any(|item| Self::number(item) == Self::number(a))))
            }
            _ => raise("TypeError", "not comparable"),
        }
    }

    fn call(
        &self,
        callee: &Object,
        args: &[Object],
        _kwargs: &[(String, Object)],
        tracer: &mut dyn Tracer<Object>,
    ) -> HostResult<Object> {
        match (callee, args) {
            (Object::Callable(function), _) => function(args, tracer),
            (Object::Intrinsic(Intrinsic::Range), [Object::Int(end)]) => {
                Ok(Object::List((0..*end).map(Object::Int).collect()))
            }
            (Object::Intrinsic(Intrinsic::Range), [Object::Int(begin), Object::Int(end)]) => {
                Ok(Object::List((*begin..*end).map(Object::Int).collect()))
            }
            (Object::Intrinsic(Intrinsic::Len), [object]) => {
                Ok(Object::Int(Self::items(object).unwrap_or_default().len() as i128))
            }
            _ => raise("TypeError", "not callable"),
        }
    }

    fn format(&self, object: &Object, _spec: &str, _tracer: &mut dyn Tracer<Object>) -> HostResult<String> {
        Ok(self.repr(object).trim_matches('\'').to_owned())
    }
}
