//! Random kernels mean the same before the pipeline and after it, whatever is assumed and however many passes run. The
//! interpreter says what they mean.

mod generate;
mod random;

use octants_interp::{Arg, Buffers, Datum, Limits, RunContext};
use octants_ir::plan::{ArgLayout, leaves_of, size_and_align};
use octants_ir::text::print;
use octants_ir::{
    ArrayType, Const, Data, Kernel, Op, SiteNumbers, SiteScope, SiteTable, TensorType, Type, verify,
};
use octants_passes::{Assumptions, PipelineOptions, run_pipeline};
use random::Random;

use generate::{EXTENT, MATRIX, PAIR, outer};

/// What a run leaves: results, the arrays' contents, and what it printed.
type Outcome = Result<(Vec<Datum>, Vec<Vec<Const>>, String), String>;

fn arguments(kernel: &Kernel, seed: u64, aliased: bool) -> (Vec<Arg>, Buffers, Vec<u64>) {
    let mut random = Random::new(seed ^ 0xabcd);
    let mut buffers = Buffers::new();
    let mut integers = |count: usize| -> Vec<u8> {
        (0..count).flat_map(|_| (random.below(40) as i32 - 20).to_le_bytes()).collect()
    };
    let span = |position: usize| ArgLayout::of(kernel).slots[position].span as usize;
    let words =
        |position: usize, elements: usize| match kernel.ty(kernel.regions[kernel.body].params[position]) {
            Type::Array(ArrayType { layout: Some(_), .. }) => span(position) / 4,
            _ => elements,
        };
    let a = buffers.add(integers(words(0, 8)));
    let reals = (0..words(1, 8)).flat_map(|i| (i as f32 * 0.75 - 2.0).to_le_bytes());
    let b = buffers.add(reals.collect());
    let c = buffers.add(integers(words(2, 16)));
    let d = if aliased { a } else { buffers.add(integers(words(3, 8))) };
    let e = buffers.add(integers(words(4, 64)));
    let size = size_and_align(kernel, outer()).0 as usize;
    let s = Datum::from_bytes(kernel, outer(), &(1..=size as u8).map(|byte| byte % 7).collect::<Vec<_>>());
    let f = buffers.add((0..size * EXTENT as usize).map(|byte| (byte % 5) as u8).collect());
    let array = |position: usize, address, rank| match kernel.ty(kernel.regions[kernel.body].params[position])
    {
        Type::Array(ArrayType { layout: Some(_), .. }) => Arg::Field { address },
        _ => Arg::Array { address, shape: vec![EXTENT; rank] },
    };
    let tensor = |data: Data, entries: &[f64]| {
        let Data::Tensor(ty) = data else { unreachable!("a tensor") };
        let ty: TensorType = ty;
        Datum::Tensor(ty, entries.iter().map(|&entry| Const::from_f64(ty.elem, entry)).collect())
    };
    let args = vec![
        array(0, a, 1),
        array(1, b, 1),
        array(2, c, 1),
        array(3, d, 1),
        array(4, e, 2),
        array(5, f, 1),
        Arg::Data(Datum::Scalar(Const::i32(Random::new(seed).below(12) as i32 - 2))),
        Arg::Data(Datum::Scalar(Const::f32(1.25))),
        Arg::Data(tensor(MATRIX, &[1.0, -2.5, 0.0, 4.0, 1e10, 0.1])),
        Arg::Data(tensor(PAIR, &[3.0, -7.0])),
        Arg::Data(s),
    ];
    (args, buffers, vec![a, b, c, d, e, f])
}

fn run(kernel: &Kernel, seed: u64, aliased: bool) -> Outcome {
    let (args, mut buffers, addresses) = arguments(kernel, seed, aliased);
    let limits = Limits { steps: Some(20_000_000), cancel: None };
    let mut printed = String::new();
    let sites = SiteTable::of(kernel, SiteScope::Reports);
    let numbers = SiteNumbers::of(kernel, SiteScope::Reports);
    let mut on_print = |op: Op, values: &[Const]| {
        printed.extend(sites.print_text(numbers.number(op), values, &|_| String::new()));
    };
    let context = RunContext { key: seed, on_print: Some(&mut on_print), ..RunContext::default() };
    let results = octants_interp::run_in(kernel, &args, &mut buffers, &limits, context)
        .map_err(|trap| format!("{trap:?}"))?;
    let params = kernel.regions[kernel.body].params.iter().zip(&addresses);
    let contents = params.map(|(&param, &address)| {
        let Type::Array(array) = kernel.ty(param) else { unreachable!("arrays come first") };
        scalars(kernel, array.elem, buffers.bytes(address))
    });
    let contents = contents.collect();
    Ok((results.iter().map(canonical).collect(), contents, printed))
}

/// The scalars of all elements.
fn scalars(kernel: &Kernel, elem: Data, bytes: &[u8]) -> Vec<Const> {
    let leaves = leaves_of(kernel, elem);
    let elements = bytes.chunks_exact(size_and_align(kernel, elem).0 as usize);
    elements
        .flat_map(|element| {
            leaves
                .iter()
                .map(|&(offset, ty)| without_payload(Const::from_bytes(ty, &element[offset as usize..])))
        })
        .collect()
}

fn canonical(datum: &Datum) -> Datum {
    match datum {
        Datum::Struct(id, members) => Datum::Struct(*id, members.iter().map(canonical).collect()),
        Datum::Scalar(_) | Datum::Tensor(..) => datum.map(without_payload),
    }
}

/// Which NaN it is says nothing.
fn without_payload(c: Const) -> Const {
    if c.ty().is_real() && c.as_f64().is_nan() { Const::from_f64(c.ty(), f64::NAN) } else { c }
}

/// How often the passes had something to do.
#[derive(Debug, Default)]
struct Acted {
    reductions: usize,
    demotions: usize,
    temporaries: usize,
    loads_of_bounds: usize,
    calls: usize,
    prints: usize,
    draws: usize,
}

impl Acted {
    fn count(&mut self, before: &str, after: &str) {
        let atomics = |text: &str| text.matches(" = atomic_").count() - text.matches(" reduce (").count();
        self.reductions += text_has(after, " reduce (");
        self.demotions += usize::from(atomics(after) < atomics(before));
        self.temporaries += text_has(after, "= temp\n");
        self.calls += text_has(after, "call func");
        self.prints += text_has(after, "print \"");
        self.draws += text_has(before, "= random\n");
        self.loads_of_bounds +=
            usize::from(after.lines().any(|line| line.starts_with("  %") && line.contains("= load")));
    }
}

fn text_has(text: &str, what: &str) -> usize {
    usize::from(text.contains(what))
}

fn check(seed: u64, acted: &mut Acted) {
    let kernel = generate::kernel(seed);
    verify(&kernel).unwrap_or_else(|broken| panic!("seed {seed}: {}\n{}", broken[0], print(&kernel)));
    for (noalias, aliased, limit) in [
        (true, false, None),
        (false, false, None),
        (false, true, None),
        (true, false, Some(seed as usize % 6)),
    ] {
        let before = run(&kernel, seed, aliased);
        assert!(before.is_ok(), "seed {seed} traps: {before:?}\n{}", print(&kernel));
        let options = PipelineOptions {
            assumptions: Assumptions { noalias, ..Assumptions::default() },
            limit,
            verify: true,
            ..PipelineOptions::default()
        };
        let made = run_pipeline(kernel.clone(), options);
        let after = run(&made.kernel, seed, aliased);
        acted.count(&print(&kernel), &print(&made.kernel));
        assert!(
            before == after,
            "seed {seed}, noalias {noalias}, aliased {aliased}, limit {limit:?}\nbefore: {before:?}\nafter:  {after:?}\n{}\n{}",
            print(&kernel),
            print(&made.kernel)
        );
    }
}

/// `OCTANTS_SEEDS=first..end` runs others.
#[test]
fn random_kernels_mean_the_same_after_the_pipeline() {
    let seeds = std::env::var("OCTANTS_SEEDS").unwrap_or_else(|_| "0..200".into());
    let range: Vec<u64> = seeds.split("..").filter_map(|end| end.parse().ok()).collect();
    let &[first, end] = &range[..] else { panic!("OCTANTS_SEEDS is `first..end`") };
    let mut acted = Acted::default();
    for seed in first..end {
        check(seed, &mut acted);
    }
    println!("{acted:?}");
    let enough = (end - first) as usize / 40;
    assert!(acted.reductions >= enough && acted.demotions >= enough, "too little to do: {acted:?}");
    assert!(acted.temporaries >= enough && acted.loads_of_bounds >= enough, "too little to do: {acted:?}");
    assert!(
        acted.calls >= enough && acted.prints >= enough && acted.draws >= enough,
        "too little to do: {acted:?}"
    );
}
