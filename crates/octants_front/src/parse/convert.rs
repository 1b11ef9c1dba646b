//! Expressions from the parser's tree.

use octants_diag::FileId;
use ruff_python_ast as py;
use ruff_text_size::Ranged;

use super::span_of;
use crate::ast::{Expr, ExprKind, Generator, Keyword, LogicalOp, TextPart};
use crate::host::{BinaryOp, CompareOp, UnaryOp};

pub(super) fn expr(file: FileId, expression: &py::Expr) -> Expr {
    let one = |e: &py::Expr| Box::new(expr(file, e));
    let list = |items: &[py::Expr]| items.iter().map(|item| expr(file, item)).collect::<Vec<_>>();
    let maybe = |e: &Option<Box<py::Expr>>| e.as_ref().map(|e| Box::new(expr(file, e)));
    let kind = match expression {
        py::Expr::NoneLiteral(_) => ExprKind::None,
        py::Expr::BooleanLiteral(e) => ExprKind::Bool(e.value),
        py::Expr::NumberLiteral(e) => number(&e.value),
        py::Expr::StringLiteral(e) => ExprKind::Str(e.value.to_str().into()),
        py::Expr::FString(e) => ExprKind::FString(fstring(file, &e.value)),
        py::Expr::Name(e) => ExprKind::Name(e.id.as_str().into()),
        py::Expr::Attribute(e) => ExprKind::Attribute { value: one(&e.value), name: e.attr.as_str().into() },
        py::Expr::Subscript(e) => ExprKind::Subscript { value: one(&e.value), index: one(&e.slice) },
        py::Expr::Slice(e) => {
            ExprKind::Slice { start: maybe(&e.lower), stop: maybe(&e.upper), step: maybe(&e.step) }
        }
        py::Expr::Tuple(e) => ExprKind::Tuple(list(&e.elts)),
        py::Expr::List(e) => ExprKind::List(list(&e.elts)),
        py::Expr::Dict(e) => {
            let item =
                |item: &py::DictItem| (item.key.as_ref().map(|key| expr(file, key)), expr(file, &item.value));
            ExprKind::Dict(e.items.iter().map(item).collect())
        }
        py::Expr::ListComp(e) => {
            ExprKind::ListComp { element: one(&e.elt), generators: generators(file, &e.generators) }
        }
        py::Expr::DictComp(e) => match &e.key {
            Some(key) => ExprKind::DictComp {
                key: one(key),
                value: one(&e.value),
                generators: generators(file, &e.generators),
            },
            None => ExprKind::Unsupported("DictComp"),
        },
        py::Expr::Starred(e) => ExprKind::Starred(one(&e.value)),
        py::Expr::BinOp(e) => return operator_chain(file, e),
        py::Expr::UnaryOp(e) => ExprKind::Unary { op: unary_op(e.op), operand: one(&e.operand) },
        py::Expr::BoolOp(e) => ExprKind::Logical {
            op: match e.op {
                py::BoolOp::And => LogicalOp::And,
                py::BoolOp::Or => LogicalOp::Or,
            },
            operands: list(&e.values),
        },
        py::Expr::Compare(e) => ExprKind::Compare {
            left: one(&e.left),
            rest: e
                .ops
                .iter()
                .zip(&e.comparators)
                .map(|(&op, right)| (compare_op(op), expr(file, right)))
                .collect(),
        },
        py::Expr::If(e) => {
            ExprKind::IfElse { test: one(&e.test), body: one(&e.body), orelse: one(&e.orelse) }
        }
        py::Expr::Call(e) => ExprKind::Call {
            callee: one(&e.func),
            args: list(&e.arguments.args),
            keywords: e.arguments.keywords.iter().map(|k| keyword(file, k)).collect(),
        },
        py::Expr::Named(e) => match &*e.target {
            py::Expr::Name(target) => ExprKind::Named {
                name: target.id.as_str().into(),
                name_span: span_of(file, target.range()),
                value: one(&e.value),
            },
            _ => ExprKind::Unsupported("NamedExpr"),
        },
        py::Expr::Lambda(_) => ExprKind::Unsupported("Lambda"),
        py::Expr::Set(_) => ExprKind::Unsupported("Set"),
        py::Expr::SetComp(_) => ExprKind::Unsupported("SetComp"),
        py::Expr::Generator(_) => ExprKind::Unsupported("GeneratorExp"),
        py::Expr::Await(_) => ExprKind::Unsupported("Await"),
        py::Expr::Yield(_) => ExprKind::Unsupported("Yield"),
        py::Expr::YieldFrom(_) => ExprKind::Unsupported("YieldFrom"),
        py::Expr::TString(_) => ExprKind::Unsupported("TemplateStr"),
        py::Expr::BytesLiteral(_) => ExprKind::Unsupported("Bytes"),
        py::Expr::EllipsisLiteral(_) => ExprKind::Unsupported("Ellipsis"),
        py::Expr::IpyEscapeCommand(_) => ExprKind::Unsupported("IpyEscapeCommand"),
    };
    Expr { span: span_of(file, expression.range()), kind }
}

pub(super) use super::statements::function;

/// `a + b + c + …`: nested to the left, without recursion, because generated code has thousands of terms.
fn operator_chain(file: FileId, outermost: &py::ExprBinOp) -> Expr {
    let mut chain = vec![outermost];
    let mut innermost = &*outermost.left;
    while let py::Expr::BinOp(inner) = innermost {
        chain.push(inner);
        innermost = &inner.left;
    }
    let mut result = expr(file, innermost);
    for node in chain.into_iter().rev() {
        let kind = ExprKind::Binary {
            op: binary_op(node.op),
            left: Box::new(result),
            right: Box::new(expr(file, &node.right)),
        };
        result = Expr { span: span_of(file, node.range()), kind };
    }
    result
}

fn keyword(file: FileId, keyword: &py::Keyword) -> Keyword {
    Keyword {
        name: keyword.arg.as_ref().map(|name| name.as_str().into()),
        span: span_of(file, keyword.range()),
        value: expr(file, &keyword.value),
    }
}

fn generators(file: FileId, list: &[py::Comprehension]) -> Vec<Generator> {
    list.iter()
        .map(|generator| Generator {
            target: expr(file, &generator.target),
            iter: expr(file, &generator.iter),
            conditions: generator.ifs.iter().map(|condition| expr(file, condition)).collect(),
        })
        .collect()
}

fn number(value: &py::Number) -> ExprKind {
    match value {
        py::Number::Int(int) => int
            .as_u64()
            .map(i128::from)
            .or_else(|| parse_long(&int.to_string()))
            .map_or(ExprKind::HugeInt, ExprKind::Int),
        py::Number::Float(value) => ExprKind::Float(*value),
        py::Number::Complex { .. } => ExprKind::Unsupported("Complex"),
    }
}

/// An integer literal of more than 64 bits, as it is written.
fn parse_long(text: &str) -> Option<i128> {
    let digits = text.replace('_', "").to_ascii_lowercase();
    match digits.get(..2) {
        Some("0x") => i128::from_str_radix(&digits[2..], 16).ok(),
        Some("0o") => i128::from_str_radix(&digits[2..], 8).ok(),
        Some("0b") => i128::from_str_radix(&digits[2..], 2).ok(),
        _ => digits.parse().ok(),
    }
}

fn fstring(file: FileId, value: &py::FStringValue) -> Vec<TextPart> {
    let mut parts = Vec::new();
    for part in value {
        match part {
            py::FStringPart::Literal(literal) => parts.push(TextPart::Text((*literal.value).into())),
            py::FStringPart::FString(text) => {
                parts.extend(text.elements.iter().flat_map(|element| text_parts(file, element)));
            }
        }
    }
    parts
}

fn text_parts(file: FileId, element: &py::InterpolatedStringElement) -> Vec<TextPart> {
    match element {
        py::InterpolatedStringElement::Literal(literal) => vec![TextPart::Text((*literal.value).into())],
        py::InterpolatedStringElement::Interpolation(field) => {
            let debug = field.debug_text.as_ref().map(|debug| TextPart::Text(debug.as_str().into()));
            let spec = field.format_spec.iter().flat_map(|spec| spec.elements.iter());
            let value = TextPart::Field {
                value: expr(file, &field.expression),
                is_repr: matches!(field.conversion, py::ConversionFlag::Repr | py::ConversionFlag::Ascii),
                spec: spec.flat_map(|element| text_parts(file, element)).collect(),
            };
            debug.into_iter().chain([value]).collect()
        }
    }
}

pub(super) fn binary_op(op: py::Operator) -> BinaryOp {
    match op {
        py::Operator::Add => BinaryOp::Add,
        py::Operator::Sub => BinaryOp::Sub,
        py::Operator::Mult => BinaryOp::Mul,
        py::Operator::MatMult => BinaryOp::MatMul,
        py::Operator::Div => BinaryOp::Div,
        py::Operator::Mod => BinaryOp::Mod,
        py::Operator::Pow => BinaryOp::Pow,
        py::Operator::LShift => BinaryOp::Shl,
        py::Operator::RShift => BinaryOp::Shr,
        py::Operator::BitOr => BinaryOp::BitOr,
        py::Operator::BitXor => BinaryOp::BitXor,
        py::Operator::BitAnd => BinaryOp::BitAnd,
        py::Operator::FloorDiv => BinaryOp::FloorDiv,
    }
}

fn unary_op(op: py::UnaryOp) -> UnaryOp {
    match op {
        py::UnaryOp::Invert => UnaryOp::Invert,
        py::UnaryOp::Not => UnaryOp::Not,
        py::UnaryOp::UAdd => UnaryOp::Pos,
        py::UnaryOp::USub => UnaryOp::Neg,
    }
}

fn compare_op(op: py::CmpOp) -> CompareOp {
    match op {
        py::CmpOp::Eq => CompareOp::Eq,
        py::CmpOp::NotEq => CompareOp::Ne,
        py::CmpOp::Lt => CompareOp::Lt,
        py::CmpOp::LtE => CompareOp::Le,
        py::CmpOp::Gt => CompareOp::Gt,
        py::CmpOp::GtE => CompareOp::Ge,
        py::CmpOp::Is => CompareOp::Is,
        py::CmpOp::IsNot => CompareOp::IsNot,
        py::CmpOp::In => CompareOp::In,
        py::CmpOp::NotIn => CompareOp::NotIn,
    }
}
