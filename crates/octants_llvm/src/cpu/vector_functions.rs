//! Math functions on whole vectors: calls of a library that whoever compiles the text knows.
//!
//! A loop over lanes becomes the same calls, by LLVM's vectoriser, but goes through memory and costs LLVM a loop for each function. So lanes are taken apart here
//! only where no such function is known, or where functions may not be approximated.

use octants_ir::Scalar;

use super::vector_library::VectorFunction;
use crate::cpu::VectorLibrary;
use crate::emitter::Emitter;
use crate::value::{Ty, Typed, Val};

impl Emitter<'_> {
    /// The function of all lanes, a register's at a time, where the library has it and functions may be approximated.
    pub(super) fn vector_function(
        &mut self,
        library: VectorLibrary,
        name: &str,
        operands: &[Val],
    ) -> Option<Val> {
        let lanes = operands.iter().map(|v| v.lanes).max().unwrap_or(1);
        let scalar = operands[0].ty;
        if lanes == 1 || !self.is_fast() || !matches!(scalar, Scalar::F32 | Scalar::F64) {
            return None;
        }
        let bits = scalar.bits();
        let at_once = lanes.min(self.lowering.vector_bits() / bits);
        let (find, arguments) = (library.0, operands.len());
        let symbol = find(VectorFunction { name, arguments, bits, lanes: at_once })?;
        let operands: Vec<_> = operands.iter().map(|&v| self.spread(v, lanes)).collect();
        Some(self.call_on_parts(&symbol, &operands, at_once))
    }

    /// Calls a function of so many lanes on vectors of a multiple of that.
    fn call_on_parts(&mut self, symbol: &str, operands: &[Val], at_once: u32) -> Val {
        let ty = operands[0].ty();
        if ty.lanes > at_once {
            let [low, high] = [0, ty.lanes / 2].map(|from| {
                let half: Vec<_> = operands.iter().map(|&v| self.half(v, from)).collect();
                self.call_on_parts(symbol, &half, at_once)
            });
            let all: Vec<_> = (0..ty.lanes).map(|lane| format!("i32 {lane}")).collect();
            let (lanes, all) = (ty.lanes, all.join(", "));
            let parts = format!("{}, {}", Typed(low), Typed(high));
            return self.f.value(ty, format_args!("shufflevector {parts}, <{lanes} x i32> < {all} >"));
        }
        self.module.declare(symbol, || {
            format!("declare {ty} @{symbol}({}) #1", vec![ty.to_string(); operands.len()].join(", "))
        });
        let flags = self.function_flags();
        let typed: Vec<_> = operands.iter().map(|&v| Typed(v).to_string()).collect();
        self.f.value(
            Ty::new(ty.scalar, at_once),
            format_args!("call {flags}{ty} @{symbol}({})", typed.join(", ")),
        )
    }
}
