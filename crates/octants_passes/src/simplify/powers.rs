//! Powers with a constant exponent become multiplications.
//!
//! An integral exponent means repeated squaring, so writing that out changes no bit. A real exponent means the library function,
//! which only `fast_math` lets us replace.

use octants_ir::ops::{ArithOp, MathOp, MathUnary};
use octants_ir::{OpKind, Value};

use super::Round;
use super::identities::Site;

/// Beyond this exponent the function `pow` is called. Chosen, not measured: up to 32 a power is at most nine products, by squaring.
const MAX_EXPONENT: u32 = 32;

impl Round<'_> {
    pub(super) fn power(&mut self, site: &Site, op: MathOp, a: Value, b: Value) -> Option<Value> {
        if op != MathOp::Pow {
            return None;
        }
        let exponent = self.kernel.as_const(b)?;
        let (magnitude, negative) = match exponent.as_i128() {
            Some(n) => (n.unsigned_abs(), n < 0),
            None if !self.kernel.options.rewrites_reals() => return None,
            None => {
                let exponent = exponent.as_f64();
                let root = if exponent == 0.5 { Some(MathUnary::Sqrt) } else { None };
                let root = root.or((exponent == -0.5).then_some(MathUnary::Rsqrt));
                if let Some(root) = root {
                    return self.replace_with(site, OpKind::MathUnary(root), &[a]);
                }
                if exponent.fract() != 0.0 || exponent.abs() > MAX_EXPONENT.into() {
                    return None;
                }
                (exponent.abs() as u128, exponent < 0.0)
            }
        };
        let magnitude = u32::try_from(magnitude).ok().filter(|&n| n <= MAX_EXPONENT)?;
        let product = self.squared(site, a, magnitude)?;
        if negative && site.ty.is_real() {
            let one = self.number(site, 1)?;
            return self.replace_with(site, OpKind::Arith(ArithOp::Div), &[one, product]);
        }
        Some(product)
    }

    /// The product of the squares that the exponent's bits choose, lowest first.
    fn squared(&mut self, site: &Site, a: Value, mut exponent: u32) -> Option<Value> {
        let multiply = OpKind::Arith(ArithOp::Mul);
        let mut product = None;
        let mut square = a;
        while exponent > 0 {
            if exponent & 1 == 1 {
                product = match product {
                    None => Some(square),
                    Some(product) => self.replace_with(site, multiply.clone(), &[product, square]),
                };
            }
            exponent >>= 1;
            if exponent > 0 {
                square = self.replace_with(site, multiply.clone(), &[square, square])?;
            }
        }
        match product {
            None => self.number(site, 1),
            product => product,
        }
    }
}
