//! Random kernels mean the same before the pipeline and after it, whatever is assumed and however many passes run. The
//! interpreter says what they mean.

mod generate;
mod random;

use octants_interp::{Arg, Buffers, Datum, Limits};
use octants_ir::text::print;
use octants_ir::{Const, Data, Kernel, Scalar, TensorType, verify};
use octants_passes::{Assumptions, PipelineOptions, run_pipeline};
use random::Random;

use generate::{EXTENT, MATRIX, PAIR};

/// What a run leaves: results, and the arrays' contents.
type Outcome = Result<(Vec<Datum>, Vec<Vec<u8>>), String>;

fn arguments(seed: u64, aliased: bool) -> (Vec<Arg>, Buffers, Vec<u64>) {
    let mut random = Random::new(seed ^ 0xabcd);
    let mut buffers = Buffers::new();
    let mut integers = |count: usize| -> Vec<u8> {
        (0..count).flat_map(|_| (random.below(40) as i32 - 20).to_le_bytes()).collect()
    };
    let a = buffers.add(integers(8));
    let b = buffers.add((0..8_u8).flat_map(|i| (f32::from(i) * 0.75 - 2.0).to_le_bytes()).collect());
    let c = buffers.add(integers(16));
    let d = if aliased { a } else { buffers.add(integers(8)) };
    let e = buffers.add(integers(64));
    let array = |address, rank| Arg::Array { address, shape: vec![EXTENT; rank] };
    let tensor = |data: Data, entries: &[f64]| {
        let Data::Tensor(ty) = data else { unreachable!("a tensor") };
        let ty: TensorType = ty;
        Datum::Tensor(ty, entries.iter().map(|&entry| Const::from_f64(ty.elem, entry)).collect())
    };
    let args = vec![
        array(a, 1),
        array(b, 1),
        array(c, 1),
        array(d, 1),
        array(e, 2),
        Arg::Data(Datum::Scalar(Const::i32(Random::new(seed).below(12) as i32 - 2))),
        Arg::Data(Datum::Scalar(Const::f32(1.25))),
        Arg::Data(tensor(MATRIX, &[1.0, -2.5, 0.0, 4.0, 1e10, 0.1])),
        Arg::Data(tensor(PAIR, &[3.0, -7.0])),
    ];
    (args, buffers, vec![a, b, c, d, e])
}

fn run(kernel: &Kernel, seed: u64, aliased: bool) -> Outcome {
    let (args, mut buffers, addresses) = arguments(seed, aliased);
    let limits = Limits { steps: Some(2_000_000), cancel: None };
    let results =
        octants_interp::run(kernel, &args, &mut buffers, &limits).map_err(|trap| format!("{trap:?}"))?;
    let contents = addresses.iter().map(|&address| buffers.bytes(address).to_vec()).collect();
    Ok((results.iter().map(|datum| datum.map(without_payload)).collect(), contents))
}

/// Which NaN it is says nothing.
fn without_payload(c: Const) -> Const {
    if c.ty().is_real() && c.as_f64().is_nan() { Const::from_f64(c.ty(), f64::NAN) } else { c }
}

fn same(a: &Outcome, b: &Outcome) -> bool {
    let (Ok((a_results, a_arrays)), Ok((b_results, b_arrays))) = (a, b) else { return false };
    let words = |bytes: &[u8], real: bool| -> Vec<Const> {
        let ty = if real { Scalar::F32 } else { Scalar::I32 };
        bytes.chunks_exact(4).map(|word| without_payload(Const::from_bytes(ty, word))).collect()
    };
    let arrays = a_arrays.iter().zip(b_arrays).enumerate();
    a_results == b_results
        && arrays.into_iter().all(|(index, (a, b))| words(a, index == 1) == words(b, index == 1))
}

/// How often the passes had something to do.
#[derive(Debug, Default)]
struct Acted {
    reductions: usize,
    demotions: usize,
    temporaries: usize,
    loads_of_bounds: usize,
}

impl Acted {
    fn count(&mut self, before: &str, after: &str) {
        let atomics = |text: &str| text.matches(" = atomic_").count() - text.matches(" reduce (").count();
        self.reductions += text_has(after, " reduce (");
        self.demotions += usize::from(atomics(after) < atomics(before));
        self.temporaries += text_has(after, "= temp\n");
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
            assumptions: Assumptions { noalias },
            limit,
            verify: true,
            ..PipelineOptions::default()
        };
        let made = run_pipeline(kernel.clone(), options);
        let after = run(&made.kernel, seed, aliased);
        acted.count(&print(&kernel), &print(&made.kernel));
        assert!(
            same(&before, &after),
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
}
