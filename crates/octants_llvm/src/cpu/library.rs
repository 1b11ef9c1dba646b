//! Math functions: LLVM's intrinsics, which become calls of the C library, or of a library of vector functions where functions may
//! be approximated; some are arithmetic there (`written_out`).

use octants_ir::Scalar;

use crate::emitter::Emitter;
use crate::lowering::LibraryFunction;
use crate::options::CpuOptions;
use crate::value::{Typed, Val};

/// Its name in double precision, if the C library has it.
pub(super) fn c_name(function: LibraryFunction) -> Option<&'static str> {
    match function {
        LibraryFunction::Exp => Some("exp"),
        LibraryFunction::Log => Some("log"),
        LibraryFunction::Log2 => Some("log2"),
        LibraryFunction::Sin => Some("sin"),
        LibraryFunction::Cos => Some("cos"),
        LibraryFunction::Tan => Some("tan"),
        LibraryFunction::Tanh => Some("tanh"),
        LibraryFunction::Asin => Some("asin"),
        LibraryFunction::Acos => Some("acos"),
        LibraryFunction::Erf => Some("erf"),
        LibraryFunction::Pow => Some("pow"),
        LibraryFunction::Atan2 => Some("atan2"),
        LibraryFunction::Remainder => None,
    }
}

impl Emitter<'_> {
    pub(super) fn library_function(
        &mut self,
        options: CpuOptions,
        function: LibraryFunction,
        operands: &[Val],
    ) -> Val {
        match self.written_out(options, function, operands) {
            Some(result) => result,
            None => self.call_library(options, function, operands),
        }
    }

    /// Of a library, whether or not there is another form.
    pub(super) fn call_library(
        &mut self,
        options: CpuOptions,
        function: LibraryFunction,
        operands: &[Val],
    ) -> Val {
        let library = options.vector_library;
        let vectors = c_name(function).and_then(|name| self.vector_function(library, name, operands));
        if let Some(result) = vectors {
            return result;
        }
        let intrinsic = match function {
            LibraryFunction::Exp => "llvm.exp",
            LibraryFunction::Log => "llvm.log",
            LibraryFunction::Log2 => "llvm.log2",
            LibraryFunction::Sin => "llvm.sin",
            LibraryFunction::Cos => "llvm.cos",
            LibraryFunction::Tan => "llvm.tan",
            LibraryFunction::Tanh => "llvm.tanh",
            LibraryFunction::Asin => "llvm.asin",
            LibraryFunction::Acos => "llvm.acos",
            LibraryFunction::Pow => "llvm.pow",
            LibraryFunction::Atan2 => {
                return self.by_lane(operands, |e, v| e.c_function("atan2", "atan2f", v));
            }
            LibraryFunction::Remainder => {
                return self.by_lane(operands, |e, v| e.real_binary("frem", v[0], v[1]));
            }
            LibraryFunction::Erf => return self.by_lane(operands, |e, v| e.c_function("erf", "erff", v)),
        };
        self.intrinsic_by_lane(intrinsic, operands)
    }

    /// A function that LLVM has no intrinsic of, on scalars: its names in double and in single precision.
    fn c_function(&mut self, double: &str, single: &str, operands: &[Val]) -> Val {
        match operands[0].ty {
            Scalar::F64 => self.library_call(double, operands),
            Scalar::F32 => self.library_call(single, operands),
            _ => {
                let wide: Vec<_> = operands.iter().map(|&v| self.cast(v, Scalar::F32)).collect();
                let result = self.library_call(single, &wide);
                self.cast(result, Scalar::F16)
            }
        }
    }

    /// A call of a function of the C library on scalars.
    fn library_call(&mut self, name: &str, operands: &[Val]) -> Val {
        let ty = operands[0].ty();
        let flags = self.function_flags();
        self.module.declare(name, || {
            let types = vec![ty.to_string(); operands.len()];
            format!("declare {ty} @{name}({}) #1", types.join(", "))
        });
        let typed: Vec<_> = operands.iter().map(|&v| Typed(v).to_string()).collect();
        self.f.value(ty, format_args!("call {flags}{ty} @{name}({})", typed.join(", ")))
    }
}
