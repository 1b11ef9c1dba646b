//! A function's signature, checked where it is decorated.

use octants_diag::{Code, Diagnostic, Span};
use octants_ir::{Scalar, TensorType};

use crate::ast::{Param, ParamKind};
use crate::host::{Annotation, Host, HostException, describe_shape};
use crate::sources::Sources;

/// Kernels and funcs have different rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FunctionKind {
    Kernel,
    Func,
}

#[derive(Clone, Debug)]
pub struct ParamSpec {
    pub name: String,
    pub span: Span,
    /// `None` for a receiver, and for a func's parameter that has none.
    pub annotation: Option<Annotation>,
    /// Whether it is the `self` of a method.
    pub is_receiver: bool,
    pub has_default: bool,
}

/// A checked signature.
#[derive(Clone, Debug)]
pub struct Signature {
    pub name: String,
    pub qualname: String,
    /// The function's name in its `def`.
    pub span: Span,
    pub params: Vec<ParamSpec>,
    /// `Annotation::None` where there is none.
    pub returns: Annotation,
}

/// What a kernel returns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Returns {
    Nothing,
    One(Returned),
    Tuple(Vec<Returned>),
}

/// One returned value. Its scalars are results of the kernel, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Returned {
    Scalar(Scalar),
    Tensor(TensorType),
    Struct(Vec<(String, Returned)>),
}

/// Checks a signature when a function is decorated. All mistakes are reported at once.
pub fn check_signature<H: Host>(
    host: &H,
    sources: &Sources,
    object: &H::Object,
    kind: FunctionKind,
) -> Result<Signature, Vec<Diagnostic>> {
    let source = host.function(object).map_err(|exception| vec![source_unavailable(&exception)])?;
    let function = sources.function(&source).map_err(|error| vec![*error])?;
    let mut check = Check { host, object, kind, name: &source.name, errors: Vec::new() };
    if function.is_async {
        check.refuse(
            Diagnostic::new(Code::UnsupportedStatement, "Unsupported node \"AsyncFunctionDef\"")
                .at(function.name_span)
                .help("kernels and funcs are plain `def` functions"),
        );
    }
    for &span in &function.variadic {
        check.refuse(
            Diagnostic::new(
                Code::VariadicParameter,
                format!("{} `{}` has a variadic parameter", check.noun(), source.name),
            )
            .at(span)
            .help("give every parameter a name; a tuple can be passed as one `oc.template()` parameter"),
        );
    }
    let params = function
        .params
        .iter()
        .enumerate()
        .map(|(index, param)| check.param(index, param, source.is_method))
        .collect();
    let returns = function.returns.map_or(Annotation::None, |span| check.returns(span));
    if !check.errors.is_empty() {
        return Err(check.errors);
    }
    Ok(Signature {
        name: source.name.clone(),
        qualname: source.qualname.to_string(),
        span: function.name_span,
        params,
        returns,
    })
}

/// The host could not say where a function's text is.
pub(crate) fn source_unavailable(exception: &HostException) -> Diagnostic {
    if exception.type_name == "SourceChanged" {
        let mut diagnostic = Diagnostic::new(Code::SourceUnavailable, exception.message.clone())
            .help("import the module again, or start the program again: a kernel is compiled from the text that Python imported");
        diagnostic.cause.clone_from(&exception.cause);
        return diagnostic;
    }
    let mut diagnostic = Diagnostic::new(
        Code::SourceUnavailable,
        format!("the function's source cannot be found: {}", exception.message),
    )
    .help("define it in a file, a notebook cell or an interactive session; text given to exec() is not kept by Python");
    diagnostic.cause.clone_from(&exception.cause);
    diagnostic
}

struct Check<'a, H: Host> {
    host: &'a H,
    object: &'a H::Object,
    kind: FunctionKind,
    name: &'a str,
    errors: Vec<Diagnostic>,
}

impl<H: Host> Check<'_, H> {
    fn noun(&self) -> &'static str {
        match self.kind {
            FunctionKind::Kernel => "kernel",
            FunctionKind::Func => "func",
        }
    }

    fn refuse(&mut self, diagnostic: Diagnostic) {
        self.errors.push(diagnostic);
    }

    fn param(&mut self, index: usize, param: &Param, is_method: bool) -> ParamSpec {
        let is_receiver = is_method && index == 0;
        if param.kind != ParamKind::Plain {
            let word = if param.kind == ParamKind::KeywordOnly { "keyword-only" } else { "positional-only" };
            self.refuse(
                Diagnostic::new(
                    Code::ParameterKind,
                    format!("parameter `{}` of {} `{}` is {word}", param.name, self.noun(), self.name),
                )
                .at(param.span)
                .help("remove the `*` or `/` from the signature"),
            );
        }
        if self.kind == FunctionKind::Kernel {
            if let Some(default) = param.default {
                self.refuse(
                    Diagnostic::new(
                        Code::DefaultValue,
                        format!("parameter `{}` of kernel `{}` has a default value", param.name, self.name),
                    )
                    .at(default)
                    .help("pass the value at each call, or wrap the kernel in a Python function"),
                );
            }
            if param.annotation.is_none() && !is_receiver {
                self.refuse(
                    Diagnostic::new(
                        Code::MissingAnnotation,
                        format!("parameter `{}` of kernel `{}` is not annotated", param.name, self.name),
                    )
                    .at(param.span)
                    .marked("needs a type")
                    .help("for example `x: oc.f32`, `x: oc.types.ndarray()` or `x: oc.template()`"),
                );
            }
        }
        let annotation = param.annotation.and_then(|span| self.annotation(index, &param.name, span));
        ParamSpec {
            name: param.name.to_string(),
            span: param.span,
            annotation,
            is_receiver,
            has_default: param.default.is_some(),
        }
    }

    fn annotation(&mut self, index: usize, name: &str, span: Span) -> Option<Annotation> {
        let annotation = match self.host.annotation_of(self.object, name) {
            Ok(object) => self.host.annotation(&object?),
            Err(exception) => {
                self.refuse(unresolved(Code::InvalidAnnotation, &exception, span));
                return None;
            }
        };
        let what = match &annotation {
            Annotation::Scalar(_)
            | Annotation::Tensor(..)
            | Annotation::Struct(_)
            | Annotation::Ref
            | Annotation::Array(_)
            | Annotation::AnyTensor
            | Annotation::View(_)
            | Annotation::Dataclass(_)
            | Annotation::Optional(_)
            | Annotation::Template => return Some(annotation),
            Annotation::Shape(_) if self.kind == FunctionKind::Func => return Some(annotation),
            Annotation::Shape(shape) => format!("{} without a data type", describe_shape(*shape)),
            Annotation::None => "None".to_owned(),
            Annotation::Tuple(_) => "a tuple of types".to_owned(),
            Annotation::Ellipsis => "...".to_owned(),
            Annotation::Other(repr) => repr.clone(),
        };
        let is_optional = what.ends_with("| None") || what.starts_with("typing.Optional[");
        let help = if is_optional {
            "`T | None` is for arrays, structs, dataclasses and what is known while compiling: `oc.Tensor`, `oc.types.NDArray`, `oc.Template`"
        } else {
            "use a scalar type such as `oc.f32`, `oc.types.ndarray(...)` or `oc.template()`"
        };
        self.refuse(
            Diagnostic::new(
                Code::InvalidAnnotation,
                format!(
                    "invalid type annotation (argument {index}) of {} `{}`: {what}",
                    self.noun(),
                    self.name
                ),
            )
            .at(span)
            .help(help),
        );
        None
    }

    fn returns(&mut self, span: Span) -> Annotation {
        let annotation = match self.host.annotation_of(self.object, "return") {
            Ok(Some(object)) => self.host.annotation(&object),
            Ok(None) => Annotation::None,
            Err(exception) => {
                self.refuse(unresolved(Code::InvalidReturnAnnotation, &exception, span));
                return Annotation::None;
            }
        };
        let is_func = self.kind == FunctionKind::Func;
        let is_value = |a: &Annotation| match a {
            Annotation::Scalar(_) | Annotation::Tensor(..) | Annotation::Struct(_) => true,
            Annotation::Shape(_) => is_func,
            _ => false,
        };
        let valid = match &annotation {
            Annotation::None => true,
            Annotation::Tuple(items) => items.iter().all(is_value),
            // What a func returns may be anything; only what names a type of the language is checked.
            Annotation::Other(_)
            | Annotation::Template
            | Annotation::Dataclass(_)
            | Annotation::Optional(_) => is_func,
            other => is_value(other),
        };
        if !valid {
            let what = match &annotation {
                Annotation::Other(repr) => format!(": {repr}"),
                Annotation::Shape(shape) => format!(": {} without a data type", describe_shape(*shape)),
                Annotation::Ellipsis => ": ...".to_owned(),
                _ => String::new(),
            };
            self.refuse(
                Diagnostic::new(
                    Code::InvalidReturnAnnotation,
                    format!("invalid return annotation of {} `{}`{what}", self.noun(), self.name),
                )
                .at(span)
                .help("return a scalar, `-> oc.f32`, or several, `-> tuple[oc.f32, oc.i32]`"),
            );
        }
        annotation
    }
}

fn unresolved(code: Code, exception: &HostException, span: Span) -> Diagnostic {
    let mut diagnostic = Diagnostic::new(
        code,
        format!("the annotation cannot be evaluated: {}: {}", exception.type_name, exception.message),
    )
    .at(span);
    diagnostic.cause.clone_from(&exception.cause);
    diagnostic
}
