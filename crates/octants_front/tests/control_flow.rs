//! Random programs of loops, branches, `break` and `continue`: what the interpreter makes of the lowered kernel is what walking the
//! program's own tree gives.

mod fake_host;

use std::fmt::Write;

use fake_host::{FakeHost, Object};
use octants_front::{LowerOptions, Sources, lower_kernel};
use octants_interp::{Buffers, Limits, run};
use octants_ir::text;

enum Stmt {
    /// `count += by`
    Add(i32),
    If(Cond, Vec<Stmt>, Vec<Stmt>),
    /// `if oc.static(…)`
    StaticIf(bool, Vec<Stmt>, Vec<Stmt>),
    For(u32, i32, Vec<Stmt>),
    While(u32, i32, Vec<Stmt>),
    /// `for … in oc.static(range(n))`, whose body is not left.
    Unrolled(u32, i32, Vec<Stmt>),
    Break,
    Continue,
}

/// `(variable + offset) % modulus == 0`; no variable means the count.
struct Cond {
    variable: Option<u32>,
    offset: i32,
    modulus: i32,
}

/// A small generator of numbers; its sequence is the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

struct Maker {
    random: Random,
    variables: u32,
}

impl Maker {
    fn block(&mut self, depth: u32, in_loop: bool, visible: &mut Vec<u32>) -> Vec<Stmt> {
        let count = 1 + self.random.below(4);
        (0..count).map(|_| self.stmt(depth, in_loop, visible)).collect()
    }

    fn stmt(&mut self, depth: u32, in_loop: bool, visible: &mut Vec<u32>) -> Stmt {
        let kinds = if depth == 0 { 2 } else { 10 };
        match self.random.below(kinds) {
            1 if in_loop => match self.random.below(2) {
                0 => Stmt::Break,
                _ => Stmt::Continue,
            },
            0 | 1 => Stmt::Add(1 + self.random.below(100) as i32),
            2..=5 => {
                let cond = self.cond(visible);
                let then = self.block(depth - 1, in_loop, visible);
                let otherwise = if self.random.below(2) == 0 {
                    self.block(depth - 1, in_loop, visible)
                } else {
                    Vec::new()
                };
                Stmt::If(cond, then, otherwise)
            }
            6 => {
                let holds = self.random.below(2) == 0;
                Stmt::StaticIf(
                    holds,
                    self.block(depth - 1, in_loop, visible),
                    self.block(depth - 1, in_loop, visible),
                )
            }
            kind => {
                let variable = self.variables;
                self.variables += 1;
                let times = self.random.below(5) as i32;
                visible.push(variable);
                let body = self.block(depth - 1, kind != 9, visible);
                visible.pop();
                match kind {
                    7 => Stmt::For(variable, times, body),
                    8 => Stmt::While(variable, times, body),
                    _ => Stmt::Unrolled(variable, times, body),
                }
            }
        }
    }

    fn cond(&mut self, visible: &[u32]) -> Cond {
        let pick = self.random.below(visible.len() as u64 + 1) as usize;
        Cond {
            variable: visible.get(pick).copied(),
            offset: self.random.below(4) as i32,
            modulus: 2 + self.random.below(2) as i32,
        }
    }
}

fn print(stmts: &[Stmt], indent: usize, out: &mut String) {
    let pad = "    ".repeat(indent);
    for stmt in stmts {
        match stmt {
            Stmt::Add(by) => writeln!(out, "{pad}count += {by}").unwrap(),
            Stmt::Break => writeln!(out, "{pad}break").unwrap(),
            Stmt::Continue => writeln!(out, "{pad}continue").unwrap(),
            Stmt::If(cond, then, otherwise) => {
                let variable = cond.variable.map_or("count".to_owned(), |v| format!("v{v}"));
                writeln!(out, "{pad}if ({variable} + {}) % {} == 0:", cond.offset, cond.modulus).unwrap();
                print(then, indent + 1, out);
                if !otherwise.is_empty() {
                    writeln!(out, "{pad}else:").unwrap();
                    print(otherwise, indent + 1, out);
                }
            }
            Stmt::StaticIf(holds, then, otherwise) => {
                writeln!(out, "{pad}if oc.static({}):", if *holds { "True" } else { "False" }).unwrap();
                print(then, indent + 1, out);
                writeln!(out, "{pad}else:").unwrap();
                print(otherwise, indent + 1, out);
            }
            Stmt::For(variable, times, body) => {
                writeln!(out, "{pad}oc.loop_config(serialize=True)").unwrap();
                writeln!(out, "{pad}for v{variable} in range({times}):").unwrap();
                print(body, indent + 1, out);
            }
            Stmt::While(variable, times, body) => {
                writeln!(out, "{pad}v{variable} = -1").unwrap();
                writeln!(out, "{pad}while v{variable} < {times} - 1:").unwrap();
                writeln!(out, "{pad}    v{variable} += 1").unwrap();
                print(body, indent + 1, out);
            }
            Stmt::Unrolled(variable, times, body) => {
                writeln!(out, "{pad}for v{variable} in oc.static(range({times})):").unwrap();
                print(body, indent + 1, out);
            }
        }
    }
}

#[derive(PartialEq)]
enum Flow {
    Next,
    Break,
    Continue,
}

fn walk(stmts: &[Stmt], count: &mut i32, variables: &mut [i32]) -> Flow {
    for stmt in stmts {
        let flow = match stmt {
            Stmt::Add(by) => {
                *count = count.wrapping_add(*by);
                Flow::Next
            }
            Stmt::Break => Flow::Break,
            Stmt::Continue => Flow::Continue,
            Stmt::If(cond, then, otherwise) => {
                let value = cond.variable.map_or(*count, |v| variables[v as usize]);
                let holds = (value + cond.offset).rem_euclid(cond.modulus) == 0;
                walk(if holds { then } else { otherwise }, count, variables)
            }
            Stmt::StaticIf(holds, then, otherwise) => {
                walk(if *holds { then } else { otherwise }, count, variables)
            }
            Stmt::For(variable, times, body)
            | Stmt::While(variable, times, body)
            | Stmt::Unrolled(variable, times, body) => {
                for i in 0..*times {
                    variables[*variable as usize] = i;
                    if walk(body, count, variables) == Flow::Break {
                        break;
                    }
                }
                Flow::Next
            }
        };
        if flow != Flow::Next {
            return flow;
        }
    }
    Flow::Next
}

#[test]
fn leaving_loops_early_is_structural_and_right() {
    for seed in 0..400 {
        let mut maker = Maker { random: Random(seed * 7919 + 17), variables: 0 };
        let program = maker.block(5, false, &mut Vec::new());
        let mut source = "@oc.kernel\ndef f() -> oc.i32:\n    count = 0\n".to_owned();
        print(&program, 1, &mut source);
        source.push_str("    return count\n");
        let mut expected = 0;
        walk(&program, &mut expected, &mut vec![0; maker.variables as usize]);

        let host = FakeHost::new(&source);
        let sources = Sources::new();
        let function = Object::Kernel("f".to_owned());
        let lowered = lower_kernel(&host, &sources, &function, &[], &LowerOptions::default(), &[])
            .unwrap_or_else(|errors| {
                let text = octants_diag::render_all(&errors, sources.map(), octants_diag::Style::Plain);
                panic!("seed {seed}\n{source}\n{text}")
            });
        let results =
            run(&lowered.kernel, &[], &mut Buffers::new(), &Limits::default()).unwrap_or_else(|trap| {
                panic!("seed {seed}: {trap:?}\n{source}\n{}", text::print(&lowered.kernel))
            });
        let found = results[0].scalar().as_i128();
        assert_eq!(found, Some(expected.into()), "seed {seed}\n{source}\n{}", text::print(&lowered.kernel));
    }
}
