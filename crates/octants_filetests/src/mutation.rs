//! Damaged kernels: text that almost is one. Whatever it says, it is refused by the parser or the verifier, or it runs, and
//! passes keep what it does.

use std::path::Path;

use octants_interp::{Arg, Buffers, Datum, Limits, run};
use octants_ir::plan::size_and_align;
use octants_ir::text::{parse, print};
use octants_ir::{Const, Data, Kernel, Phase, Type, verify};
use octants_passes::{Assumptions, PipelineOptions, run_pipeline};

use crate::file::TestFile;
use crate::values;

/// What became of the mutants.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    pub unparsed: u32,
    pub unlawful: u32,
    pub ran: u32,
}

/// Makes some mutants of each kernel in the files, always the same ones, and sees each through. A panic is a failure.
pub fn run_mutants(files: &[impl AsRef<Path>], each: u32) -> Result<Outcome, String> {
    let mut outcome = Outcome::default();
    let mut random_bits = Xorshift(0x9e37_79b9_7f4a_7c15);
    for path in files {
        let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
        let file = TestFile::parse(&text).map_err(|e| format!("{}: {e}", path.as_ref().display()))?;
        for case in &file.cases {
            for _ in 0..each {
                let mutant = mutate(&case.input, &mut random_bits);
                let Ok(kernel) = parse(&mutant) else {
                    outcome.unparsed += 1;
                    continue;
                };
                // Printing is total: it says something of any kernel, and the same thing always.
                let printed = print(&kernel);
                if verify(&kernel).is_err() {
                    outcome.unlawful += 1;
                    continue;
                }
                let again = parse(&printed).map_err(|e| format!("{e}\n{printed}"))?;
                if print(&again) != printed {
                    return Err(format!("does not round-trip:\n{printed}"));
                }
                run_both(&kernel, &mut random_bits)
                    .map_err(|e| format!("{}: {e}", path.as_ref().display()))?;
                outcome.ran += 1;
            }
        }
    }
    Ok(outcome)
}

/// Runs the kernel, and what the pipeline makes of it; both must do the same, unless the kernel traps.
fn run_both(kernel: &Kernel, random_bits: &mut Xorshift) -> Result<(), String> {
    let seed = random_bits.0;
    let Some(before) = run_once(kernel, &mut Xorshift(seed)) else { return Ok(()) };
    if kernel.phase == Phase::Tasks {
        return Ok(());
    }
    for noalias in [false, true] {
        let assumptions = Assumptions { noalias, ..Assumptions::default() };
        let options = PipelineOptions { assumptions, verify: true, ..PipelineOptions::default() };
        let split = run_pipeline(kernel.clone(), options).kernel;
        let after = run_once(&split, &mut Xorshift(seed));
        if after.as_ref() != Some(&before) {
            let (kernel, split) = (print(kernel), print(&split));
            return Err(format!("{before} before, {after:?} after (noalias {noalias}):\n{kernel}\n{split}"));
        }
    }
    Ok(())
}

/// Results and arrays after a run with arrays of two along each axis and small numbers; `None` if it traps.
fn run_once(kernel: &Kernel, random_bits: &mut Xorshift) -> Option<String> {
    let mut memory = Buffers::new();
    let mut arrays = Vec::new();
    let params = kernel.regions[kernel.body].params.iter();
    let args: Vec<_> = params
        .map(|&param| match kernel.ty(param) {
            Type::Data(data) | Type::Local(data) | Type::Temp(data) => {
                Arg::Data(random(kernel, data, random_bits))
            }
            Type::Tape(_) => unreachable!("no parameter is a tape"),
            Type::Array(array) => {
                let (size, _) = size_and_align(kernel, array.elem);
                let mut bytes = vec![0; (1_usize << array.rank.min(8)) * size as usize];
                for element in bytes.chunks_exact_mut(size as usize) {
                    random(kernel, array.elem, random_bits).to_bytes(kernel, element);
                }
                let shape = vec![2; array.rank.into()];
                let address = memory.add(bytes);
                arrays.push((array, address, shape.clone()));
                Arg::Array { address, shape }
            }
        })
        .collect();
    let limits = Limits { steps: Some(20_000), cancel: None };
    let results = run(kernel, &args, &mut memory, &limits).ok()?;
    let shown = results.iter().map(values::show);
    let arrays = arrays
        .iter()
        .map(|(ty, address, shape)| values::show_array(kernel, *ty, shape, memory.bytes(*address)));
    Some(shown.chain(arrays).collect::<Vec<_>>().join("; "))
}

/// Numbers from 0 to 3, so that sums and products of reals are exact and indices are often inside; structs are zero.
fn random(kernel: &Kernel, data: Data, random_bits: &mut Xorshift) -> Datum {
    let first = random_bits.below(4) as i128;
    Datum::zero(kernel, data).map(|zero| Const::from_i128(zero.ty(), first))
}

/// A small generator of numbers that look random (xorshift).
struct Xorshift(u64);

impl Xorshift {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

/// One change: a word replaced by another of the text, a line removed, doubled or moved, a character removed.
fn mutate(text: &str, random_bits: &mut Xorshift) -> String {
    let mut lines: Vec<_> = text.lines().map(str::to_string).collect();
    let (at, other) = (random_bits.below(lines.len()), random_bits.below(lines.len()));
    match random_bits.below(8) {
        0 => {
            lines.remove(at);
        }
        1 => lines.insert(other, lines[at].clone()),
        2 => lines.swap(at, other),
        3 => {
            let characters = lines[at].chars().count();
            let gone = random_bits.below(characters);
            lines[at] = lines[at].chars().enumerate().filter(|&(i, _)| i != gone).map(|(_, c)| c).collect();
        }
        _ => {
            let is_word = |c: char| c.is_ascii_alphanumeric() || "_%.".contains(c);
            let words: Vec<_> = text.split(|c| !is_word(c)).filter(|word| !word.is_empty()).collect();
            let here: Vec<_> = lines[at].split(|c| !is_word(c)).filter(|word| !word.is_empty()).collect();
            if !here.is_empty() {
                let (from, to) =
                    (here[random_bits.below(here.len())].to_string(), words[random_bits.below(words.len())]);
                lines[at] = lines[at].replacen(&from, to, 1);
            }
        }
    }
    lines.join("\n")
}
