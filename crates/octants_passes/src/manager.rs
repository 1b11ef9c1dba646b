//! The pass manager: the one list of passes, and what every pass gets from it: dumps, timing, bisection, verification.

use std::time::{Duration, Instant};

use octants_ir::text::print;
use octants_ir::{Kernel, Loc, Phase, Plan, verify};

use crate::assumptions::Assumptions;
use crate::carry_elements::carry_elements;
use crate::check_arithmetic::check_arithmetic;
use crate::check_tapes::check_tapes;
use crate::demote_atomics::demote_atomics;
use crate::erase_detach::erase_detach;
use crate::expand_field_loops::expand_field_loops;
use crate::gather_updates::gather_updates;
use crate::keep_rounding::{keep_rounding, settle_rounding};
use crate::loop_over_lanes::{check_whole_blocks, loop_over_lanes};
use crate::lower_random::lower_random;
use crate::make_plan::make_plan;
use crate::merge_accesses::merge_accesses;
use crate::partition_by_rows::partition_by_rows;
use crate::partition_by_words::partition_by_words;
use crate::place_tapes::place_tapes;
use crate::privatise_reductions::privatise_reductions;
use crate::promote_locals::promote_locals;
use crate::recognise_reductions::recognise_reductions;
use crate::reuse_cells::reuse_cells;
use crate::scalarise::scalarise;
use crate::simplify::simplify;
use crate::sink_updates::sink_updates;
use crate::slice_bits::slice_bits;
use crate::split_digits::split_digits;
use crate::split_tasks::split_tasks;
use crate::stage_updates::stage_updates;
use crate::strip_by_cells::strip_by_cells;

/// What passes found out about the program that its author may want to know.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Findings {
    /// Assignments in parallel loops that other iterations overwrite or see.
    pub races: Vec<Loc>,
}

/// What a pass is run for. **Which passes run at a level follows from this alone, and not from how many stand before them.**
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// Without it the result is no plan; bisection leaves it in.
    Plan,
    /// Without it an assignment in a parallel loop may not be seen to be an update, and be told as a race: what a program means, and what is found
    /// out about it, is the same at every level.
    Meaning,
    /// Without it code is slower.
    Speed,
}

/// One entry of the pipeline.
pub struct Pass {
    pub name: &'static str,
    pub need: Need,
    /// Why it stands where it stands.
    pub reason: &'static str,
    /// The phase that it leaves; those up to `split_tasks` expect the structured one.
    pub leaves: Phase,
    run: fn(&mut Kernel, Assumptions, &mut Findings),
}

/// All passes, in order.
pub static PIPELINE: &[Pass] = &[
    Pass {
        name: "erase_detach",
        need: Need::Meaning,
        reason: "first: whoever looks for updates and patterns sees the values themselves",
        leaves: Phase::Structured,
        run: |kernel, _, _| erase_detach(kernel),
    },
    Pass {
        name: "keep_rounding",
        need: Need::Plan,
        reason: "before the rest: the others ask whether they may round otherwise",
        leaves: Phase::Structured,
        run: |kernel, _, _| keep_rounding(kernel),
    },
    Pass {
        name: "scalarise",
        need: Need::Plan,
        reason: "before all others: every pass after it knows scalars only, and fixed components of locals become locals of their own",
        leaves: Phase::Structured,
        run: |kernel, _, _| scalarise(kernel),
    },
    Pass {
        name: "check_arithmetic",
        need: Need::Plan,
        reason: "after scalarise, since it knows scalars only; before all that rewrites or adds arithmetic",
        leaves: Phase::Structured,
        run: |kernel, _, _| check_arithmetic(kernel),
    },
    Pass {
        name: "expand_field_loops",
        need: Need::Plan,
        reason: "after check_arithmetic, since an index that digits make up never overflows; before all that asks for a loop's bounds",
        leaves: Phase::Structured,
        run: |kernel, _, _| expand_field_loops(kernel),
    },
    Pass {
        name: "lower_random",
        need: Need::Plan,
        reason: "before promote_locals, which makes values of its counters, and before loops are dropped, which it counts",
        leaves: Phase::Structured,
        run: |kernel, _, _| lower_random(kernel),
    },
    Pass {
        name: "promote_locals",
        need: Need::Meaning,
        reason: "after scalarise, whose locals it promotes; before all that looks at values",
        leaves: Phase::Structured,
        run: |kernel, _, _| promote_locals(kernel),
    },
    Pass {
        name: "split_digits",
        need: Need::Plan,
        reason: "after check_arithmetic, since an index outside a field is no overflow; before simplify, which cancels what it adds, so that \
                 passes after it see which iteration owns an element",
        leaves: Phase::Structured,
        run: |kernel, _, _| split_digits(kernel),
    },
    Pass {
        name: "simplify",
        need: Need::Meaning,
        reason: "after promotion, which leaves slots that nobody reads; index forms and invariant places are plain after it",
        leaves: Phase::Structured,
        run: |kernel, _, _| simplify(kernel),
    },
    Pass {
        name: "recognise_reductions",
        need: Need::Plan,
        reason: "needs plain values and index forms; before demote_atomics and privatise_reductions, which make its updates cheap",
        leaves: Phase::Structured,
        run: |kernel, assumptions, findings| findings.races = recognise_reductions(kernel, assumptions),
    },
    Pass {
        name: "keep_rounding",
        need: Need::Plan,
        reason: "again, for assignments that turned out to be such updates",
        leaves: Phase::Structured,
        run: |kernel, _, _| keep_rounding(kernel),
    },
    Pass {
        name: "slice_bits",
        need: Need::Speed,
        reason: "needs plain index forms; behind recognise_reductions, which tells of races in the loop as it was written; before all that asks what \
                 an iteration does",
        leaves: Phase::Structured,
        run: |kernel, assumptions, _| slice_bits(kernel, assumptions),
    },
    Pass {
        name: "partition_by_words",
        need: Need::Speed,
        reason: "behind slice_bits, for what it leaves; before all that asks what an iteration does",
        leaves: Phase::Structured,
        run: |kernel, assumptions, _| partition_by_words(kernel, assumptions),
    },
    Pass {
        name: "gather_updates",
        need: Need::Speed,
        reason: "needs plain index forms, and updates that are no assignments any more; before demote_atomics, which makes its updates plain ones",
        leaves: Phase::Structured,
        run: |kernel, assumptions, _| gather_updates(kernel, assumptions),
    },
    Pass {
        name: "partition_by_rows",
        need: Need::Speed,
        reason: "needs plain index forms, and updates that are still atomic; before privatise_reductions, which makes a reduction of its check",
        leaves: Phase::Structured,
        run: |kernel, assumptions, _| partition_by_rows(kernel, assumptions),
    },
    Pass {
        name: "demote_atomics",
        need: Need::Speed,
        reason: "needs plain index forms; before privatise_reductions, so that what is owned is not taken for shared",
        leaves: Phase::Structured,
        run: |kernel, assumptions, _| demote_atomics(kernel, assumptions),
    },
    Pass {
        name: "privatise_reductions",
        need: Need::Speed,
        reason: "what is still atomic is shared by iterations; leaves its accumulators as locals",
        leaves: Phase::Structured,
        run: |kernel, assumptions, _| privatise_reductions(kernel, assumptions),
    },
    Pass {
        name: "sink_updates",
        need: Need::Speed,
        reason: "after demote_atomics and privatise_reductions: what is still atomic and shared by iterations costs most inside loops",
        leaves: Phase::Structured,
        run: |kernel, assumptions, _| sink_updates(kernel, assumptions),
    },
    Pass {
        name: "carry_elements",
        need: Need::Speed,
        reason: "after demote_atomics, whose plain updates it finds; before promote_locals, which makes values of its variables",
        leaves: Phase::Structured,
        run: |kernel, assumptions, _| carry_elements(kernel, assumptions),
    },
    Pass {
        name: "promote_locals",
        need: Need::Speed,
        reason: "again, for the accumulators and for locals that only atomics kept",
        leaves: Phase::Structured,
        run: |kernel, _, _| promote_locals(kernel),
    },
    Pass {
        name: "check_tapes",
        need: Need::Plan,
        reason: "behind all that changes what is kept; before place_tapes, after which nothing says how many cells a tape has",
        leaves: Phase::Structured,
        run: |kernel, _, _| check_tapes(kernel),
    },
    Pass {
        name: "place_tapes",
        need: Need::Plan,
        reason: "after demote_atomics and privatise_reductions, which ask which iteration owns an element: it makes several iterations one; \
                 before the last simplify",
        leaves: Phase::Structured,
        run: |kernel, _, _| place_tapes(kernel),
    },
    Pass {
        name: "simplify",
        need: Need::Speed,
        reason: "again, for what the accumulators' slots and demoted updates left",
        leaves: Phase::Structured,
        run: |kernel, _, _| simplify(kernel),
    },
    Pass {
        name: "reuse_cells",
        need: Need::Speed,
        reason: "behind simplify, which makes equal arguments one value; before merge_accesses, which remembers nothing across the calls that it takes out",
        leaves: Phase::Structured,
        run: |kernel, _, _| reuse_cells(kernel),
    },
    Pass {
        name: "strip_by_cells",
        need: Need::Speed,
        reason: "behind reuse_cells, which leaves one look for each cell of an iteration; before merge_accesses, which sees the loops that it makes",
        leaves: Phase::Structured,
        run: |kernel, assumptions, _| strip_by_cells(kernel, assumptions),
    },
    Pass {
        name: "merge_accesses",
        need: Need::Speed,
        reason: "after demote_atomics and gather_updates, which make several accesses of an element, and behind simplify, which makes equal \
                 indices one value",
        leaves: Phase::Structured,
        run: |kernel, assumptions, _| merge_accesses(kernel, assumptions),
    },
    Pass {
        name: "stage_updates",
        need: Need::Speed,
        reason: "behind gather_updates, demote_atomics and privatise_reductions, which leave fewer updates and make them of indices that it hides; \
                 before loop_over_lanes, which looks at what blocks do",
        leaves: Phase::Structured,
        run: |kernel, assumptions, _| stage_updates(kernel, assumptions),
    },
    Pass {
        name: "loop_over_lanes",
        need: Need::Plan,
        reason: "behind all that makes values of a lane fewer: those that outlive a meeting lie in memory; before split_tasks, which needs the \
                 bounds that it makes",
        leaves: Phase::Structured,
        run: |kernel, assumptions, _| {
            if assumptions.blocks {
                check_whole_blocks(kernel);
            } else {
                loop_over_lanes(kernel);
            }
        },
    },
    Pass {
        name: "split_tasks",
        need: Need::Plan,
        reason: "behind all that moves anything: nothing may move between tasks after it",
        leaves: Phase::Tasks,
        run: |kernel, _, _| split_tasks(kernel),
    },
    Pass {
        name: "settle_rounding",
        need: Need::Plan,
        reason: "last: it looks at the arithmetic that is emitted",
        leaves: Phase::Tasks,
        run: |kernel, _, _| settle_rounding(kernel),
    },
];

/// Is told the pass's number and name and the kernel after it.
pub type Dump<'a> = &'a mut dyn FnMut(usize, &str, &Kernel);

/// How to run the pipeline.
#[derive(Default)]
pub struct PipelineOptions<'a> {
    pub assumptions: Assumptions,
    /// Called with the kernel as it came (number 0, "input") and after each pass.
    pub dump: Option<Dump<'a>>,
    /// Of the passes that are not required, only this many are run: halve it to find the pass that breaks a kernel.
    pub limit: Option<usize>,
    /// Leave out what is needed for speed alone.
    pub unoptimised: bool,
    /// Verify after each pass. Debug builds always do.
    pub verify: bool,
}

/// What the pipeline made of a kernel.
#[derive(Debug)]
pub struct Outcome {
    /// In the tasks phase.
    pub kernel: Kernel,
    pub plan: Plan,
    pub findings: Findings,
    /// Each pass that ran.
    pub timings: Vec<PassTiming>,
}

/// When a pass ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PassTiming {
    pub name: &'static str,
    /// Since the pipeline began.
    pub begin: Duration,
    pub time: Duration,
}

/// From the structured phase to tasks and a plan.
///
/// # Panics
/// If verification is on and a pass broke a law: that is a bug of the pass.
pub fn run_pipeline(mut kernel: Kernel, mut options: PipelineOptions<'_>) -> Outcome {
    let started = Instant::now();
    let mut timings = Vec::with_capacity(PIPELINE.len());
    let mut findings = Findings::default();
    if let Some(dump) = options.dump.as_mut() {
        dump(0, "input", &kernel);
    }
    let mut left = options.limit.unwrap_or(usize::MAX);
    for (index, pass) in PIPELINE.iter().enumerate() {
        if pass.need == Need::Speed && options.unoptimised {
            continue;
        }
        if pass.need != Need::Plan {
            if left == 0 {
                continue;
            }
            left -= 1;
        }
        let begin = Instant::now();
        (pass.run)(&mut kernel, options.assumptions, &mut findings);
        timings.push(PassTiming { name: pass.name, begin: begin - started, time: begin.elapsed() });
        if let Some(dump) = options.dump.as_mut() {
            dump(index + 1, pass.name, &kernel);
        }
        if options.verify || cfg!(debug_assertions) {
            verify_after(pass, &kernel);
        }
    }
    let plan = make_plan(&kernel, options.assumptions);
    Outcome { kernel, plan, findings, timings }
}

/// Runs one pass by its name; `false` if there is none of that name.
pub fn run_pass(name: &str, kernel: &mut Kernel, assumptions: Assumptions) -> bool {
    let Some(pass) = PIPELINE.iter().find(|pass| pass.name == name) else { return false };
    (pass.run)(kernel, assumptions, &mut Findings::default());
    true
}

fn verify_after(pass: &Pass, kernel: &Kernel) {
    assert_eq!(kernel.phase, pass.leaves, "{} leaves another phase", pass.name);
    if let Err(broken) = verify(kernel) {
        let broken: Vec<_> = broken.iter().map(ToString::to_string).collect();
        panic!("{} broke laws of the IR:\n{}\n{}", pass.name, broken.join("\n"), print(kernel));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octants_ir::text::parse;

    fn double() -> Kernel {
        let text = r#"kernel @double(%0 "a": array<i32, 1>, %1 "n": i32) {
            %2: i32 = const 0
            parallel_for (%3: i32) in (%2..%1) {
              %4: local<i32> = local
              store %4, %3
              %5: i32 = load %4
              %6: i32 = atomic_add %0[%3], %5
            }
            return
        }"#;
        parse(text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_limit_runs_the_first_passes_and_those_that_are_required() {
        let names = |limit| {
            let mut seen = Vec::new();
            let mut dump = |_: usize, name: &str, _: &Kernel| seen.push(name.to_string());
            let options = PipelineOptions { limit, dump: Some(&mut dump), ..PipelineOptions::default() };
            let outcome = run_pipeline(double(), options);
            assert_eq!(outcome.timings.len() + 1, seen.len());
            (seen, print(&outcome.kernel))
        };
        let (none, text) = names(Some(0));
        let required = [
            "keep_rounding",
            "scalarise",
            "check_arithmetic",
            "expand_field_loops",
            "lower_random",
            "split_digits",
            "recognise_reductions",
            "keep_rounding",
            "check_tapes",
            "place_tapes",
            "loop_over_lanes",
            "split_tasks",
            "settle_rounding",
        ];
        assert_eq!(none, [&["input"], &required[..]].concat());
        assert!(text.contains("local") && text.contains("atomic_add"));
        let (three, text) = names(Some(3));
        let first = [
            "input",
            "erase_detach",
            "keep_rounding",
            "scalarise",
            "check_arithmetic",
            "expand_field_loops",
            "lower_random",
        ];
        assert_eq!(
            three,
            [
                &first[..],
                &[
                    "promote_locals",
                    "split_digits",
                    "simplify",
                    "recognise_reductions",
                    "keep_rounding",
                    "check_tapes",
                    "place_tapes",
                    "loop_over_lanes",
                    "split_tasks",
                    "settle_rounding"
                ]
            ]
            .concat()
        );
        assert!(!text.contains("local") && text.contains("atomic_add"));
        let (all, text) = names(None);
        assert_eq!(all.len(), PIPELINE.len() + 1);
        assert!(!text.contains("atomic_add"));
    }

    #[test]
    fn what_a_program_means_is_found_out_by_the_same_passes_at_every_level() {
        let names = |unoptimised| {
            let mut seen = Vec::new();
            let mut dump = |_: usize, name: &str, _: &Kernel| seen.push(name.to_string());
            let options =
                PipelineOptions { unoptimised, dump: Some(&mut dump), ..PipelineOptions::default() };
            run_pipeline(double(), options);
            seen
        };
        let until_findings = |names: &[String]| {
            let found = names.iter().position(|name| name == "recognise_reductions");
            names[..=found.expect("it runs at every level")].to_vec()
        };
        let (plain, all) = (names(true), names(false));
        assert_eq!(until_findings(&plain), until_findings(&all));
        assert!(plain.len() < all.len());
    }

    #[test]
    #[should_panic(expected = "broke laws of the IR")]
    fn a_pass_that_breaks_a_law_is_named() {
        let mut kernel = double();
        let body = kernel.body;
        kernel.regions[body].ops.reverse();
        verify_after(&PIPELINE[0], &kernel);
    }
}
