//! Where the entries of a sparse square matrix are.

/// The rows of the entries of each column, in compressed form.
pub struct Pattern {
    starts: Vec<usize>,
    rows: Vec<u32>,
}

impl Pattern {
    /// Column `j` has the entries `starts[j]..starts[j + 1]`. Nothing if these are no columns of a square matrix.
    pub fn new(starts: Vec<usize>, rows: Vec<u32>) -> Option<Self> {
        let size = starts.len().checked_sub(1)?;
        let is_ordered = starts[0] == 0 && starts.is_sorted() && starts[size] == rows.len();
        let is_inside = u32::try_from(size).is_ok_and(|size| rows.iter().all(|&row| row < size));
        (is_ordered && is_inside).then_some(Self { starts, rows })
    }

    /// How many rows and columns there are.
    pub fn size(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many entries there are.
    pub fn entries(&self) -> usize {
        self.rows.len()
    }

    /// The numbers of the entries of a column.
    pub(crate) fn range(&self, column: usize) -> std::ops::Range<usize> {
        self.starts[column]..self.starts[column + 1]
    }

    pub(crate) fn row(&self, entry: usize) -> u32 {
        self.rows[entry]
    }

    pub(crate) fn column(&self, column: usize) -> &[u32] {
        &self.rows[self.range(column)]
    }

    /// The neighbours of each row and column in the graph of `A + Aᵀ`.
    pub(crate) fn neighbours(&self) -> Vec<Vec<u32>> {
        let mut neighbours = vec![Vec::new(); self.size()];
        for column in 0..self.size() {
            for &row in self.column(column) {
                if row as usize != column {
                    neighbours[column].push(row);
                    neighbours[row as usize].push(column as u32);
                }
            }
        }
        without_repeats(&mut neighbours);
        neighbours
    }

    /// The neighbours of each column in the graph of `AᵀA`: columns that have an entry in the same row. Rows with so many entries that they would join nearly all
    /// columns are left out.
    pub(crate) fn column_neighbours(&self) -> Vec<Vec<u32>> {
        let mut columns_of = vec![Vec::new(); self.size()];
        for column in 0..self.size() {
            for &row in self.column(column) {
                columns_of[row as usize].push(column as u32);
            }
        }
        let limit = dense_degree(self.size());
        let mut neighbours = vec![Vec::new(); self.size()];
        for (column, own) in neighbours.iter_mut().enumerate() {
            for &row in self.column(column) {
                let others = &columns_of[row as usize];
                if others.len() <= limit {
                    own.extend(others.iter().filter(|&&other| other as usize != column));
                }
            }
        }
        without_repeats(&mut neighbours);
        neighbours
    }
}

/// How many neighbours a node has at most that an ordering looks at.
pub(crate) fn dense_degree(size: usize) -> usize {
    // Ten times the square root, as orderings by minimum degree use since Amestoy, Davis and Duff. Not measured here.
    (10.0 * (size as f64).sqrt()).max(16.0) as usize
}

fn without_repeats(lists: &mut [Vec<u32>]) {
    for list in lists {
        list.sort_unstable();
        list.dedup();
        list.shrink_to_fit();
    }
}
