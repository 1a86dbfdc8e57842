//! Text inside Markdown. Names and messages can contain any character, and a page that CI publishes
//! must not contain their links, images, mentions or HTML.

use crate::system::escape;

/// A name as code, also inside a table.
pub(in crate::presentation::presenters) fn code(name: &str) -> String {
    let name = escape::line(name);
    if name.is_empty() {
        return "(empty)".to_owned();
    }
    // Backticks need a longer fence, and a backslash before a bar means different things to
    // different renderers.
    let is_plain =
        !name.contains(['`', '|', '\\']) && !name.starts_with(' ') && !name.ends_with(' ');
    if is_plain { format!("`{name}`") } else { format!("<code>{}</code>", entities(&name)) }
}

/// A message in which backticks enclose code.
pub(in crate::presentation::presenters) fn message(text: &str) -> String {
    let text = escape::line(text);
    let parts: Vec<&str> = text.split('`').collect();
    let is_balanced = parts.len() % 2 == 1;
    let part = |(number, part): (usize, &&str)| match number % 2 {
        1 if is_balanced => code(part),
        0 | 1 if is_balanced || number == 0 => entities(part),
        _ => format!("&#96;{}", entities(part)),
    };
    parts.iter().enumerate().map(part).collect()
}

/// Markdown and HTML have a meaning for most punctuation, but not for its entities. Brackets as in
/// `[64,256] f32` have one only if a link can follow them.
fn entities(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        let is_web = c == '.' && out.to_ascii_lowercase().ends_with("www");
        let is_plain = match c {
            '[' => true,
            ']' => letters.peek().is_none_or(|next| !"([:".contains(*next)),
            c => "-.,:;()'+=%_".contains(c),
        };
        if c.is_ascii_punctuation() && (is_web || !is_plain) {
            out.push_str(&format!("&#{};", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

/// Lines as they are. The fence is longer than all fences in the text.
pub(in crate::presentation::presenters) fn fenced(text: &str) -> String {
    let text = escape::escape(text, escape::Form::Text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{text}\n{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_fence_is_longer_than_the_fences_inside_it() {
        assert_eq!(fenced("a `b` c"), "```text\na `b` c\n```");
        assert_eq!(fenced("```\nnot the end"), "````text\n```\nnot the end\n````");
        assert_eq!(fenced("a\r```"), "````text\na\\r```\n````");
    }

    #[test]
    fn a_name_is_code_that_cannot_end() {
        assert_eq!(code("app::mem"), "`app::mem`");
        assert_eq!(code("a<b>@c ![x](y)"), "`a<b>@c ![x](y)`");
        assert_eq!(code("a|b`c"), "<code>a&#124;b&#96;c</code>");
        assert_eq!(code("a\\|b"), "<code>a&#92;&#124;b</code>");
        assert_eq!(code("a\nb"), "<code>a&#92;nb</code>");
        assert_eq!(code(""), "(empty)");
    }

    #[test]
    fn a_message_keeps_its_words_and_its_code() {
        assert_eq!(message("run `cargo a` (1.5 %, a::b)"), "run `cargo a` (1.5 %, a::b)");
        assert_eq!(
            message("<b> ![x](http://y) @z #1"),
            "&#60;b&#62; &#33;[x&#93;(http:&#47;&#47;y) &#64;z &#35;1"
        );
        assert_eq!(message("[64,256] f32 and [x]: y"), "[64,256] f32 and [x&#93;: y");
        assert_eq!(message("WWW.a.b *c*"), "WWW&#46;a.b &#42;c&#42;");
        assert_eq!(message("a ` <b>"), "a &#96; &#60;b&#62;");
        assert_eq!(message("a `b | c`"), "a <code>b &#124; c</code>");
    }
}
