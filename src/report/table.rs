//! Rows and columns, for people (aligned), documents (Markdown) and programs (CSV).

use std::fmt::{self, Display, Write};

use serde::Serialize;

/// What stands in a cell whose figure nobody knows.
pub const UNKNOWN: &str = "-";

#[derive(Clone, Debug, Default, Serialize)]
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new<S: Into<String>>(head: impl IntoIterator<Item = S>) -> Self {
        Self {
            head: head.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }

    /// A row; missing cells stay empty, surplus ones are dropped.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let mut row: Vec<String> = cells.into_iter().map(Into::into).collect();
        row.resize(self.head.len(), String::new());
        self.rows.push(row);
    }

    /// Without the columns in which no row has a figure.
    pub fn without_unknown(mut self) -> Table {
        let known: Vec<bool> = (0..self.head.len())
            .map(|i| self.rows.is_empty() || self.rows.iter().any(|row| row[i] != UNKNOWN))
            .collect();
        for row in self.rows.iter_mut().chain([&mut self.head]) {
            let mut kept = known.iter();
            row.retain(|_| *kept.next().expect("a column each"));
        }
        self
    }

    pub fn head(&self) -> &[String] {
        &self.head
    }

    pub fn to_csv(&self) -> String {
        let mut out = String::new();
        for row in std::iter::once(&self.head).chain(&self.rows) {
            let cells: Vec<String> = row.iter().map(|c| csv_cell(c)).collect();
            let _ = writeln!(out, "{}", cells.join(","));
        }
        out
    }

    pub fn to_markdown(&self) -> String {
        let cell = |cell: &String| cell.replace('|', "\\|").replace('\n', " ");
        let line = |row: &[String]| {
            let cells: Vec<String> = row.iter().map(cell).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let rule: Vec<String> = (0..self.head.len())
            .map(|i| if i == 0 { "---" } else { "---:" }.to_owned())
            .collect();
        let mut out = line(&self.head) + &line(&rule);
        for row in &self.rows {
            out += &line(row);
        }
        out
    }

    fn widths(&self) -> Vec<usize> {
        (0..self.head.len())
            .map(|i| {
                std::iter::once(&self.head)
                    .chain(&self.rows)
                    .map(|row| row[i].chars().count())
                    .max()
                    .unwrap_or(0)
            })
            .collect()
    }
}

fn csv_cell(cell: &str) -> String {
    if cell.contains([',', '"', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

impl Display for Table {
    /// The first column to the left, figures to the right.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let widths = self.widths();
        for row in std::iter::once(&self.head).chain(&self.rows) {
            let mut line = String::new();
            for (i, cell) in row.iter().enumerate() {
                let width = widths[i];
                if i == 0 {
                    let _ = write!(line, "{cell:<width$}");
                } else {
                    let _ = write!(line, "  {cell:>width$}");
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut t = Table::new(["name", "figure"]);
        t.row(["a", "1.5"]);
        t.row(["long, \"name\""]);
        t
    }

    #[test]
    fn columns_line_up() {
        let text = table().to_string();
        assert_eq!(
            text,
            "name          figure\na                1.5\nlong, \"name\"\n"
        );
    }

    #[test]
    fn a_column_that_nobody_has_figures_for_is_left_out() {
        let mut t = Table::new(["name", "known", "unknown"]);
        t.row(["a", "-", "-"]);
        t.row(["b", "1", "-"]);
        let text = t.without_unknown().to_string();
        assert_eq!(text, "name  known\na         -\nb         1\n");
    }

    #[test]
    fn a_bar_in_a_name_does_not_end_a_markdown_cell() {
        let mut t = Table::new(["name", "figure"]);
        t.row(["a|b", "1"]);
        let text = t.to_markdown();
        assert_eq!(text, "| name | figure |\n| --- | ---: |\n| a\\|b | 1 |\n");
    }

    #[test]
    fn csv_quotes_what_must_be_quoted() {
        assert_eq!(
            table().to_csv(),
            "name,figure\na,1.5\n\"long, \"\"name\"\"\",\n"
        );
    }
}
