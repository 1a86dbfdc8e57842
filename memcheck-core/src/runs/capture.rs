//! The part of a stream that is kept: its head and its tail. The memory is bounded, however much
//! the stream writes.

use memcheck_limits::size::Size;

/// The most bytes that are kept of one stream of one process.
pub const STREAM: usize = 8 << 20;

/// Collects a stream and leaves out its middle if it is longer than the limit.
#[derive(Debug)]
pub struct StreamCapture {
    most: usize,
    head: Vec<u8>,
    /// A ring after the head: the last byte that arrived is before `next`.
    tail: Vec<u8>,
    next: usize,
    total: u64,
}

impl StreamCapture {
    /// Keeps at most `most` bytes.
    pub fn new(most: usize) -> Self {
        Self { most, head: Vec::new(), tail: Vec::new(), next: 0, total: 0 }
    }

    fn for_head(&self) -> usize {
        self.most - self.most / 2
    }

    fn for_tail(&self) -> usize {
        self.most / 2
    }

    /// Adds the next bytes of the stream.
    pub fn add(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(self.for_head() - self.head.len()));
        self.head.extend_from_slice(first);
        let size = self.for_tail();
        // Earlier bytes of a long piece would be overwritten at once.
        let mut rest = &rest[rest.len().saturating_sub(size)..];
        while !rest.is_empty() {
            if self.tail.len() < size {
                let (now, later) = rest.split_at(rest.len().min(size - self.tail.len()));
                self.tail.extend_from_slice(now);
                rest = later;
                self.next = self.tail.len() % size;
            } else {
                let (now, later) = rest.split_at(rest.len().min(size - self.next));
                self.tail[self.next..self.next + now.len()].copy_from_slice(now);
                self.next = (self.next + now.len()) % size;
                rest = later;
            }
        }
    }

    /// The bytes of the stream that are not kept.
    pub fn left_out(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    fn tail(&self) -> Vec<u8> {
        // The ring is full if bytes are left out; before that it begins at its start.
        let start = if self.tail.len() < self.for_tail() { 0 } else { self.next };
        [&self.tail[start..], &self.tail[..start]].concat()
    }

    /// The text, with a line that marks the bytes that are left out. Bytes that are not UTF-8 are
    /// replaced.
    pub fn text(&self) -> String {
        let left_out = self.left_out();
        if left_out == 0 {
            let whole = [&self.head[..], &self.tail()].concat();
            return bounded(String::from_utf8_lossy(&whole).into_owned(), self.most);
        }
        let tail = self.tail();
        let (head, tail) = (without_begun(&self.head), without_rest(&tail));
        let kept = (head.len() + tail.len()) as u64;
        joined(
            before(&String::from_utf8_lossy(head), self.for_head()),
            after(&String::from_utf8_lossy(tail), self.for_tail()),
            self.total - kept,
        )
    }
}

/// A replaced byte has three bytes, so that the text can be longer than the stream.
fn bounded(text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let (head, tail) = (before(&text, most - most / 2), after(&text, most / 2));
    joined(head, tail, (text.len() - head.len() - tail.len()) as u64)
}

fn joined(head: &str, tail: &str, left_out: u64) -> String {
    format!("{head}\n… {} left out …\n{tail}", Size(left_out))
}

fn before(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
    &text[..end.unwrap_or(0)]
}

fn after(text: &str, most: usize) -> &str {
    let from = text.len().saturating_sub(most);
    let start = (from..text.len()).find(|&at| text.is_char_boundary(at));
    &text[start.unwrap_or(text.len())..]
}

/// Without a character at the end whose last bytes are left out.
fn without_begun(bytes: &[u8]) -> &[u8] {
    match bytes.utf8_chunks().last() {
        Some(chunk) if is_begun(chunk.invalid()) => &bytes[..bytes.len() - chunk.invalid().len()],
        _ => bytes,
    }
}

fn is_begun(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// Without the last bytes of a character whose first byte is left out.
fn without_rest(bytes: &[u8]) -> &[u8] {
    let rest = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
    &bytes[rest..]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random and are the same in each run.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, most: usize) -> usize {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.0 >> 33) as usize % most
        }
    }

    #[test]
    fn head_tail_and_count_add_up_to_the_stream() {
        let mut numbers = Numbers(7);
        for _ in 0..2000 {
            let (most, length) = (1 + numbers.below(40), numbers.below(200));
            let stream: Vec<u8> = (0..length).map(|_| b'a' + numbers.below(26) as u8).collect();
            let mut capture = StreamCapture::new(most);
            let mut left = &stream[..];
            while !left.is_empty() {
                let (piece, rest) = left.split_at(1 + numbers.below(left.len()));
                capture.add(piece);
                left = rest;
            }
            let tail = capture.tail();
            let kept = capture.head.len() + tail.len();
            assert!(kept <= most && kept as u64 + capture.left_out() == length as u64);
            assert!(stream.starts_with(&capture.head) && stream.ends_with(&tail));
            assert_eq!(kept, most.min(length), "no byte is left out without need");
            if length <= most {
                assert_eq!(capture.text().as_bytes(), stream);
            }
        }
    }

    #[test]
    fn the_cut_is_marked_and_divides_no_character() {
        let mut capture = StreamCapture::new(9);
        capture.add("ééééééééé".as_bytes());
        assert_eq!(capture.left_out(), 9);
        assert_eq!(capture.text(), "éé\n… 10 B left out …\néé");
        let mut capture = StreamCapture::new(8);
        capture.add(b"begin");
        capture.add(&[b'.'; 3 << 20]);
        capture.add(b"end");
        assert_eq!(capture.text(), "begi\n… 3.00 MiB left out …\n.end");
    }

    #[test]
    fn a_stream_that_is_not_text_stays_within_the_limit() {
        for length in [10, 100, 1000] {
            let mut capture = StreamCapture::new(100);
            capture.add(&vec![0xff; length]);
            assert!(capture.text().len() <= 100 + "\n… 1000 B left out …\n".len(), "{length}");
        }
    }

    #[test]
    fn a_short_stream_is_unchanged() {
        let mut capture = StreamCapture::new(STREAM);
        capture.add(b"a\xff");
        capture.add(b"\nb\n");
        assert_eq!(capture.text(), "a\u{fffd}\nb\n");
        assert_eq!(StreamCapture::new(STREAM).text(), "");
    }
}
