//! Draws the output of a command as a terminal shows it, on a light and on a dark background.

use anstream::adapter::strip_str;
use anstyle::{Color, RgbColor};
use anstyle_svg::{Palette, Term};

/// Columns of the terminal. Lines that are longer would make the letters of the picture small.
const COLUMNS: usize = 104;

struct Theme {
    name: &'static str,
    text: RgbColor,
    background: RgbColor,
    palette: Palette,
}

const fn rgb(hex: u32) -> RgbColor {
    RgbColor((hex >> 16) as u8, (hex >> 8) as u8, hex as u8)
}

const fn palette(hex: [u32; 8]) -> Palette {
    let mut colors = [rgb(0); 16];
    let mut color = 0;
    while color < 16 {
        colors[color] = rgb(hex[color % 8]);
        color += 1;
    }
    Palette(colors)
}

/// Each color has a contrast of at least 4.5 to its background.
const THEMES: [Theme; 2] = [
    Theme {
        name: "light",
        text: rgb(0x1f2328),
        background: rgb(0xf6f8fa),
        palette: palette([
            0x24292f, 0xcf222e, 0x116329, 0x7d4e00, 0x0969da, 0x8250df, 0x1b7c83, 0x57606a,
        ]),
    },
    Theme {
        name: "dark",
        text: rgb(0xe6edf3),
        background: rgb(0x161b22),
        palette: palette([
            0x8b949e, 0xff7b72, 0x3fb950, 0xd29922, 0x58a6ff, 0xbc8cff, 0x39c5cf, 0xb1bac4,
        ]),
    },
];

/// The pictures of a command and its output, by their paths.
pub(super) fn pictures(path: &str, typed: &str, output: &str) -> Vec<(String, String)> {
    let screen: String =
        format!("$ \x1b[1m{typed}\x1b[0m\n{output}").lines().map(wrapped).collect();
    let draw = |theme: &Theme| {
        let term = Term::new()
            .palette(theme.palette)
            .fg_color(Color::Rgb(theme.text))
            .bg_color(Color::Rgb(theme.background));
        let svg = term.render_svg(screen.trim_end());
        // Dimmed text would be hard to read.
        let svg = svg.replace("opacity: 0.4", "opacity: 0.7");
        (format!("{path}-{}.svg", theme.name), svg)
    };
    THEMES.iter().map(draw).collect()
}

/// A line with escape sequences, broken between words. The parts have the indentation of the line.
fn wrapped(line: &str) -> String {
    let width = |text: &str| strip_str(text).to_string().chars().count();
    let plain = strip_str(line).to_string();
    let indent = plain.len() - plain.trim_start().len();
    let (mut wrapped, mut column) = (String::new(), 0);
    for word in line.split_inclusive(' ') {
        if column > indent && column + width(word.trim_end()) > COLUMNS {
            wrapped.truncate(wrapped.trim_end().len());
            wrapped.push('\n');
            wrapped.push_str(&" ".repeat(indent));
            column = indent;
        }
        wrapped.push_str(word);
        column += width(word);
    }
    wrapped.push('\n');
    wrapped
}
