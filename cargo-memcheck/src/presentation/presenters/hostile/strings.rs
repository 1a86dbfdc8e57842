//! Strings that do harm somewhere: in a terminal, a CI runner, a parser, a page, a shell or a file
//! system.

const PARTS: [&str; 58] = [
    // The terminal: colors, hidden text, screen, title, clipboard, links, keys, device queries.
    "\x1b[31m",
    "\x1b[8mhidden\x1b[0m",
    "\x1b[2J\x1b[H",
    "\x1b]0;title\x07",
    "\x1b]52;c;cm0gLXJmIH4=\x07",
    "\x1b]52;c;cm0gLXJmIH4=\x1b\\",
    "\x1b]8;;https://evil.example\x1b\\text\x1b]8;;\x1b\\",
    "\x1b]1337;File=name=eA==:AAAA\x07",
    "\x1bP+q544e\x1b\\",
    "\x1b_Gi=1;AAAA\x1b\\",
    "\x1bc",
    "\x1b[6n",
    "\x1b[",
    "\x1b]",
    "\x1b",
    "\u{9b}31m",
    "\u{9d}0;title\u{9c}",
    "\u{90}q\u{9c}",
    "\u{85}",
    "\x08\x08\x08",
    "\x07",
    "\x7f",
    "\0",
    "\t",
    "\x0b\x0c",
    "\r",
    "\r\n",
    "\n",
    // Text that is shown in another order, or begins another line.
    "\u{202e}desrever\u{202c}",
    "\u{2066}a\u{2069}",
    "\u{2028}",
    "\u{2029}",
    "\u{feff}",
    "\u{fffe}",
    "\u{ffff}",
    // Commands of CI runners.
    "\n::error::x",
    "\n  ::set-env name=PATH::/evil",
    "::error file=a.rs,line=1::x",
    "\u{a0}::add-mask::x",
    "##[error]x",
    "##[add-path]/evil",
    "##vso[task.setvariable variable=x]y",
    "##teamcity[buildStatus text='x']",
    // Markup.
    "]]>",
    "<script>alert(1)</script>",
    "</script><script>",
    "\"><img src=x onerror=alert(1)>",
    "<!-- <svg onload=alert(1)> <details open ontoggle=x>",
    "&lt;script&gt; &#x1b; &amp;",
    "![x](https://evil.example/x.png) [a](javascript:x)",
    "https://evil.example www.evil.example <https://evil.example> @everyone #1",
    "| a | b |\n|---|---|",
    "`` ` ```\n# h\n```",
    "\\| \\` \\",
    // Files, shells and JSON.
    "../../../etc/passwd",
    "/etc/passwd\0.snap",
    "$(touch x) `id`; 'a' \"b\" && rm",
    "\\ud800 \",\"x\":\"",
];

/// The parts, then combinations of them, and texts without end.
pub(super) fn strings() -> Vec<String> {
    let mut strings: Vec<String> = PARTS.map(str::to_owned).into();
    strings.extend(["x".repeat(4_000), "\x1b[31m".repeat(100), "é".repeat(300), "::".repeat(300)]);
    let mut state = 1_u64;
    let mut next = |below: usize| {
        // Knuth's linear congruential generator: the strings must be the same in every run.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    while strings.len() < 1_000 {
        let count = 2 + next(4);
        let text: String = (0..count).map(|_| PARTS[next(PARTS.len())]).collect();
        let between = ["", " ", "a", "\n", "::"][next(5)];
        strings.push(format!("{between}{text}{between}"));
    }
    strings
}
