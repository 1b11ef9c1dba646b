//! Functions of reals: calls of the vendor's library of device functions, which whoever compiles the text links by need.

use octants_ir::Scalar;

use crate::emitter::Emitter;
use crate::shape::LibraryFunction;
use crate::value::{Ty, Typed, Val};

impl Emitter<'_> {
    /// On scalars of 32 or 64 bits; halves are computed in 32.
    pub(super) fn device_function(&mut self, function: LibraryFunction, operands: &[Val]) -> Val {
        self.by_lane(operands, |e, operands| {
            if operands[0].ty != Scalar::F16 {
                return e.device_call(function, operands);
            }
            let wide: Vec<_> = operands.iter().map(|&operand| e.cast(operand, Scalar::F32)).collect();
            let result = e.device_call(function, &wide);
            e.cast(result, Scalar::F16)
        })
    }

    fn device_call(&mut self, function: LibraryFunction, operands: &[Val]) -> Val {
        let scalar = operands[0].ty;
        let name = match function {
            LibraryFunction::Exp => "exp",
            LibraryFunction::Log => "log",
            LibraryFunction::Log2 => "log2",
            LibraryFunction::Sin => "sin",
            LibraryFunction::Cos => "cos",
            LibraryFunction::Tan => "tan",
            LibraryFunction::Tanh => "tanh",
            LibraryFunction::Asin => "asin",
            LibraryFunction::Acos => "acos",
            LibraryFunction::Pow => "pow",
            LibraryFunction::Atan2 => "atan2",
            LibraryFunction::Erf => "erf",
            // LLVM's own code for `frem` rounds the quotient.
            LibraryFunction::Remainder => "fmod",
        };
        let symbol = format!("__nv_{name}{}", if scalar == Scalar::F32 { "f" } else { "" });
        let ty = Ty::new(scalar, 1);
        self.module.declare(&symbol, || {
            let types = vec![ty.to_string(); operands.len()];
            format!("declare {ty} @{symbol}({}) #1", types.join(", "))
        });
        let typed: Vec<_> = operands.iter().map(|&operand| Typed(operand).to_string()).collect();
        self.f.value(ty, format_args!("call {ty} @{symbol}({})", typed.join(", ")))
    }
}
