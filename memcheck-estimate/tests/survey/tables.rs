//! The tables of the page.

use super::one_request::OneRequest;
use super::rows::{GgufRow, ManyRequests, PublishedRow, TinyRow};

/// A table: its two first lines, and a line for each row.
pub(crate) struct Table {
    head: &'static str,
    lines: Vec<String>,
}

const REQUEST: &str = "\
| architecture | weights | tables | peak of a prompt | needed | factor | a token | remark |
|---|---|---|---|---|---|---|---|
";
const PUBLISHED: &str = "\
| configuration | architecture | type | weights | tables | peak of a prompt | needed | factor | a token | remark |
|---|---|---|---|---|---|---|---|---|---|
";
const REQUESTS: &str = "\
| architecture | kept after 8 | after 64 | cleared: after 8 | after 64 | left | by a second model | refused | refused after clearing |
|---|---|---|---|---|---|---|---|---|
";
const HOST: &str = "\
| architecture | file | host, mapped | host, buffered |
|---|---|---|---|
";
const FAULTS: &str = "\
| architecture | refused in loading | panics | left | refused in a prompt | panics | leave bytes | most bytes | after clearing | after dropping |
|---|---|---|---|---|---|---|---|---|---|
";
const GGUF: &str = "\
| architecture | tensors of the file | host |
|---|---|---|
";

/// All tables of the page for these rows.
pub(crate) fn tables(tiny: &[TinyRow], published: &[PublishedRow], gguf: &[GgufRow]) -> Vec<Table> {
    let of_tiny = |line: fn(&TinyRow) -> String| tiny.iter().map(line).collect();
    vec![
        Table {
            head: REQUEST,
            lines: of_tiny(|tiny| row(&tiny.request.name, &request(&tiny.request))),
        },
        Table { head: REQUESTS, lines: of_tiny(requests) },
        Table { head: HOST, lines: of_tiny(host) },
        Table { head: FAULTS, lines: of_tiny(faults) },
        Table { head: GGUF, lines: gguf.iter().map(gguf_line).collect() },
        Table { head: PUBLISHED, lines: published.iter().map(published_line).collect() },
    ]
}

impl Table {
    pub(crate) fn new(head: &'static str, lines: Vec<String>) -> Self {
        Self { head, lines }
    }

    /// Replaces the lines of this table in a page.
    pub(crate) fn written_to(&self, page: &str) -> String {
        let (before, below) = page.split_once(self.head).expect("the table of the page");
        let after = below.lines().skip_while(|line| line.starts_with('|')).map(str::to_owned);
        let lines = self.lines.iter().cloned().chain(after).map(|line| line + "\n");
        format!("{before}{}{}", self.head, lines.collect::<String>())
    }
}

fn row(name: &str, cells: &[String]) -> String {
    format!("| `{name}` | {} |", cells.join(" | "))
}

pub(crate) fn cell(figure: Option<u64>) -> String {
    figure.map_or_else(|| "—".to_owned(), grouped)
}

fn request(one: &OneRequest) -> Vec<String> {
    let OneRequest { name: _, weights, tables, prompt_peak, needed, bytes_per_token, remark } = one;
    let mut cells = [*weights, *tables, *prompt_peak, *needed].map(cell).to_vec();
    cells.push(factor(one).map_or_else(|| "—".to_owned(), |factor| format!("{factor:.1}")));
    cells.extend([cell(*bytes_per_token), remark.clone()]);
    cells
}

fn published_line(published: &PublishedRow) -> String {
    let dtype = published.dtype.as_deref().unwrap_or("—").to_owned();
    let cells = [format!("`{}`", published.architecture), dtype];
    row(&published.request.name, &[cells.to_vec(), request(&published.request)].concat())
}

/// The bytes of a prompt beyond the weights, divided by those that it needs.
fn factor(one: &OneRequest) -> Option<f64> {
    let weights = one.weights?;
    Some((one.prompt_peak? - weights) as f64 / (one.needed? - weights) as f64)
}

fn requests(tiny: &TinyRow) -> String {
    let kept = |many: &ManyRequests| [many.after_8, many.after_64].map(cell);
    let left = tiny.left.map(grouped);
    let refused = [tiny.uncleared.refused.clone(), tiny.cleared.refused.clone()];
    let cells = [kept(&tiny.uncleared), kept(&tiny.cleared), left, refused].concat();
    row(&tiny.request.name, &cells)
}

fn host(tiny: &TinyRow) -> String {
    let figures = tiny.host.map(|host| [host.file, host.mapped, host.buffered]);
    let cells = (0..3).map(|at| cell(figures.map(|figures| figures[at])));
    row(&tiny.request.name, &cells.collect::<Vec<_>>())
}

fn faults(tiny: &TinyRow) -> String {
    let figures = tiny.faults.map(|faults| {
        let (loading, prompt) = (faults.loading, faults.prompt);
        [
            Some(loading.refused),
            Some(loading.panics),
            Some(loading.most_left),
            Some(prompt.refused),
            Some(prompt.panics),
            Some(prompt.leaving),
            Some(prompt.most_left),
            faults.most_after_clearing,
            Some(faults.most_after_dropping),
        ]
    });
    let cells = figures.unwrap_or_default().map(cell);
    row(&tiny.request.name, &cells)
}

fn gguf_line(gguf: &GgufRow) -> String {
    row(&gguf.name, &[gguf.tensors, gguf.host].map(grouped))
}

/// Groups the digits of a number by three.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    groups.map(|group| String::from_utf8_lossy(group).into_owned()).collect::<Vec<_>>().join(",")
}
