//! Draws flame graphs as SVG: the frames as tiles whose color is the kind of their memory. A label that
//! does not fit into its tile loses its folders, then its file. One that still does not fit is in a list
//! below the graph, where none is cut.

use maud::{Markup, html};
use memcheck_core::measurement::attribution::HolderKind;
use memcheck_core::size::{Size, both};

use super::{PeakGraph, Tile};

const WIDTH: f64 = 1_600.0;
const MARGIN: f64 = 16.0;
const ROW: f64 = 22.0;
/// The advance of a character of the monospace font, which is 0.6 em or a little more.
const CHARACTER: f64 = 7.9;
const FONT_SIZE: u32 = 13;
/// The columns of a line of the list.
const COLUMNS: usize = 190;

/// A tile of several kinds.
const MIXED: &str = "#e3e6ea";

/// The ink of a text outside of the tiles, and the paper. A viewer without style sheets has the light ones.
const STYLE: &str =
    "@media (prefers-color-scheme: dark) { .paper { fill: #14181d } .ink { fill: #e6edf3 } }";

/// Dark text on each of them has a contrast of more than 7.
fn color(kind: HolderKind) -> &'static str {
    match kind {
        HolderKind::Setup => "#c4c9d2",
        HolderKind::Activations => "#9dc0e1",
        HolderKind::Gradients => "#ecc681",
        HolderKind::Optimizer => "#c5ade3",
        HolderKind::Kept => "#e8a4ad",
    }
}

/// What is drawn so far, from the top.
struct Canvas {
    height: f64,
    parts: Vec<Markup>,
}

/// A narrow window shows the whole width, and scrolls down.
const FITS: &str = "max-width:100%;height:auto";

/// The graphs below one another, after these lines.
pub(super) fn picture(lines: &[String], graphs: &[PeakGraph]) -> String {
    let mut page = Canvas { height: MARGIN, parts: Vec::new() };
    for line in lines {
        page.text(line, false);
    }
    for graph in graphs {
        page.graph(graph);
    }
    let (width, height) = (number(WIDTH), number(page.height + MARGIN));
    let svg = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(width) height=(height) style=(FITS)
            viewBox={ "0 0 " (width) " " (height) }
            font-family="ui-monospace, 'DejaVu Sans Mono', monospace" font-size=(FONT_SIZE) {
            title { "Memory at the peak" }
            style { (STYLE) }
            rect.paper width="100%" height="100%" fill="#ffffff" {}
            @for part in &page.parts { (part) }
        }
    };
    svg.into_string() + "\n"
}

fn number(value: f64) -> String {
    // Two decimals are exact enough for a screen, and the same on every machine.
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn width_of(text: &str) -> f64 {
    console::measure_text_width(text) as f64 * CHARACTER
}

impl Canvas {
    fn text(&mut self, line: &str, strong: bool) {
        let weight = if strong { "bold" } else { "normal" };
        let y = number(self.height + ROW - 6.0);
        self.parts.push(html! {
            text.ink x=(number(MARGIN)) y=(y) fill="#1c2128" font-weight=(weight) { (line) }
        });
        self.height += ROW;
    }

    fn graph(&mut self, PeakGraph { title, root }: &PeakGraph) {
        self.text(title, true);
        self.legend(root);
        let mut listed = Vec::new();
        let deepest = self.tile(root, root, MARGIN, self.height, &mut listed);
        self.height = deepest + ROW / 2.0;
        for (number, tile) in &listed {
            let share = tile.bytes as f64 * 100.0 / root.bytes.max(1) as f64;
            let line =
                format!("{number:>4}  {:>9}  {share:>5.1} %  ", Size(tile.bytes).to_string());
            let further = " ".repeat(line.len());
            let options =
                textwrap::Options::new(COLUMNS).initial_indent(&line).subsequent_indent(&further);
            for part in textwrap::wrap(&tile.label, options) {
                // XML has no spaces at the start of a text.
                self.text(&part.replace(' ', "\u{a0}"), false);
            }
        }
        self.height += ROW;
    }

    fn legend(&mut self, root: &Tile) {
        let mut x = MARGIN;
        for (kind, bytes) in &root.kinds {
            let text = format!("{} {}", kind.name(), Size(*bytes));
            let (y, room) = (self.height, width_of(&text));
            self.parts.push(html! {
                rect x=(number(x)) y=(number(y + 5.0)) width="12" height="12" fill=(color(*kind)) {}
                text.ink x=(number(x + 18.0)) y=(number(y + ROW - 6.0)) fill="#1c2128" { (text) }
            });
            x += 18.0 + room + 24.0;
        }
        self.height += ROW;
    }

    /// Draws a tile and those below it; returns their lower end. `listed` are the tiles whose labels do
    /// not fit, with their numbers.
    fn tile<'a>(
        &mut self,
        tile: &'a Tile,
        root: &Tile,
        x: f64,
        y: f64,
        listed: &mut Vec<(usize, &'a Tile)>,
    ) -> f64 {
        let width = (WIDTH - 2.0 * MARGIN) * (tile.bytes as f64 / root.bytes.max(1) as f64);
        let room = width - 8.0;
        let mark = (listed.len() + 1).to_string();
        let fits = |label: &str| width_of(label) <= room;
        let label = match shorter(&tile.label).into_iter().find(|label| fits(label)) {
            Some(label) => label,
            None if fits(&mark) => {
                listed.push((listed.len() + 1, tile));
                mark
            }
            None => String::new(),
        };
        let fill = match tile.kinds.as_slice() {
            [(kind, _)] => color(*kind),
            _ => MIXED,
        };
        let share = tile.bytes as f64 * 100.0 / root.bytes.max(1) as f64;
        let blocks = format!("{}: {}, {share:.1} %", tile.label, both(tile.bytes));
        self.parts.push(html! {
            g {
                title { (blocks) }
                rect x=(number(x)) y=(number(y)) width=(number(width)) height=(number(ROW - 1.0))
                    fill=(fill) stroke="#ffffff" stroke-width="0.5" {}
                @if !label.is_empty() {
                    text x=(number(x + 4.0)) y=(number(y + ROW - 7.0)) fill="#1c2128" { (label) }
                }
            }
        });
        let (mut at, mut deepest) = (x, y + ROW);
        for call in &tile.calls {
            deepest = deepest.max(self.tile(call, root, at, y + ROW, listed));
            at += (WIDTH - 2.0 * MARGIN) * (call.bytes as f64 / root.bytes.max(1) as f64);
        }
        deepest
    }
}

/// The label of a tile, and shorter forms of it: `Tensor::randn (candle-core/src/tensor.rs:407)`, without
/// the folders, and without the file. The label of an operation has no shorter form.
fn shorter(label: &str) -> Vec<String> {
    let mut forms = vec![label.to_owned()];
    let place = label.strip_suffix(')').and_then(|label| label.rsplit_once(" ("));
    if let Some((function, place)) = place.filter(|(_, place)| place.contains(':')) {
        let file = place.rsplit_once('/').map_or(place, |(_, file)| file);
        forms.extend([format!("{function} ({file})"), function.to_owned()]);
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(label: &str, bytes: u64, kind: HolderKind) -> Tile {
        Tile { label: label.to_owned(), bytes, kinds: vec![(kind, bytes)], calls: Vec::new() }
    }

    #[test]
    fn a_label_that_does_not_fit_is_whole_in_the_list() {
        let long = format!("app::{}", "a".repeat(60));
        let calls = vec![
            leaf("wide", 980, HolderKind::Activations),
            leaf(&long, 15, HolderKind::Kept),
            leaf("tiny", 5, HolderKind::Kept),
        ];
        let kinds = vec![(HolderKind::Activations, 980), (HolderKind::Kept, 20)];
        let root = Tile { label: "host".to_owned(), bytes: 1_000, kinds, calls };
        let svg = picture(&[], &[PeakGraph { title: "a test".to_owned(), root }]);
        assert!(svg.contains(">wide</text>") && svg.contains(">1</text>"), "{svg}");
        let row = format!("1{}15 B{}1.5 %  {long}<", " ".repeat(7), " ".repeat(4));
        let row = row.replace(' ', "\u{a0}");
        assert!(svg.contains(&row), "{svg}");
        assert!(
            svg.contains("<title>tiny: 5 B, 0.5 %</title>") && !svg.contains(">tiny<"),
            "{svg}"
        );
    }

    #[test]
    fn a_function_stays_on_its_tile_if_its_file_does_not_fit() {
        let label = "Tensor::randn (candle-core-0.11.1/src/tensor.rs:407)";
        let forms = [label, "Tensor::randn (tensor.rs:407)", "Tensor::randn"];
        assert_eq!(shorter(label), forms);
        for whole in ["add [2,3] f32 (set-up)", "host at its peak of 3.00 MiB", ")", " ()"] {
            assert_eq!(shorter(whole), [whole]);
        }
        for (bytes, shown) in [(100, 0), (20, 1), (9, 2)] {
            let calls = vec![leaf(label, bytes, HolderKind::Kept)];
            let kinds = vec![(HolderKind::Kept, 100)];
            let root = Tile { label: "host".to_owned(), bytes: 100, kinds, calls };
            let svg = picture(&[], &[PeakGraph { title: String::new(), root }]);
            assert!(svg.contains(&format!(">{}</text>", forms[shown])), "{bytes}: {svg}");
        }
    }

    #[test]
    fn a_tile_has_the_color_of_its_kind() {
        let calls = vec![
            leaf("weights", 60, HolderKind::Setup),
            leaf("outputs", 40, HolderKind::Activations),
        ];
        let kinds = vec![(HolderKind::Setup, 60), (HolderKind::Activations, 40)];
        let root = Tile { label: "host".to_owned(), bytes: 100, kinds, calls };
        let svg = picture(&[], &[PeakGraph { title: String::new(), root }]);
        let fills: Vec<&str> = svg.split("fill=\"").skip(1).filter_map(|it| it.get(..7)).collect();
        for (fill, count) in [(MIXED, 1), ("#c4c9d2", 2), ("#9dc0e1", 2)] {
            assert_eq!(fills.iter().filter(|it| **it == fill).count(), count, "{fill} in {svg}");
        }
        assert!(svg.contains(">set-up 60 B<") && svg.contains(">activations 40 B<"), "{svg}");
    }
}
