//! Shows where two texts differ.

/// Lines of the two texts in a row, those only in one marked, runs of equal lines cut short.
pub fn lines(expected: &str, found: &str) -> String {
    let a: Vec<_> = expected.lines().collect();
    let b: Vec<_> = found.lines().collect();
    // Length of the longest common part of the ends from each pair of positions on.
    let mut common = vec![vec![0_u32; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i][j] =
                if a[i] == b[j] { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
        }
    }
    let mut rows = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            rows.push((' ', a[i]));
            i += 1;
            j += 1;
        } else if i < a.len() && (j == b.len() || common[i + 1][j] >= common[i][j + 1]) {
            rows.push(('-', a[i]));
            i += 1;
        } else {
            rows.push(('+', b[j]));
            j += 1;
        }
    }
    shorten(&rows)
}

fn shorten(rows: &[(char, &str)]) -> String {
    const CONTEXT_LINES: usize = 3;
    let near = |at: usize| {
        let from = at.saturating_sub(CONTEXT_LINES);
        rows[from..(at + CONTEXT_LINES + 1).min(rows.len())].iter().any(|&(mark, _)| mark != ' ')
    };
    let mut text = String::new();
    let mut skipping = false;
    for (at, &(mark, line)) in rows.iter().enumerate() {
        if near(at) {
            text.extend([mark, ' ']);
            text += line;
            text.push('\n');
            skipping = false;
        } else if !skipping {
            text += "  …\n";
            skipping = true;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn shows_what_went_and_what_came() {
        let shown = super::lines("a\nb\nc\nd\ne\nf\ng\n", "a\nB\nc\nd\ne\nf\ng\n");
        assert_eq!(shown, "  a\n- b\n+ B\n  c\n  d\n  e\n  …\n");
    }
}
