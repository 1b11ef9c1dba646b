//! What tests of a GPU's code are written with.

use octants_ir::{Const, Kernel, Scalar};
use octants_llvm::{EmitOptions, GpuOptions, Target, TaskText, emit};

use super::oracle::{Input, Random};

pub fn kernel(text: &str) -> Kernel {
    octants_ir::text::parse(text).unwrap_or_else(|error| panic!("{error:?}\n{text}"))
}

pub fn tasks(text: &str) -> Vec<TaskText> {
    tasks_for(text, GpuOptions::default())
}

pub fn tasks_for(text: &str, options: GpuOptions) -> Vec<TaskText> {
    let kernel = kernel(text);
    let target = Target::Gpu(options);
    emit(&kernel, &super::plan_of(&kernel), &EmitOptions { target, ..EmitOptions::default() })
}

/// Integers, so that sums are exact in any order.
pub fn whole_numbers(ty: Scalar, count: usize) -> Vec<Const> {
    let mut random = Random(count as u64 + 1);
    (0..count).map(|_| Const::from_f64(ty, (random.next() % 100) as f64)).collect()
}

pub fn input(ty: Scalar, shape: &[i32]) -> Input {
    let count = shape.iter().product::<i32>() as usize;
    Input::array(ty, &whole_numbers(ty, count), shape)
}
