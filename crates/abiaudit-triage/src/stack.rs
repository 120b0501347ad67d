//! Stacks: the frames that gdb, sanitizers, glibc's `backtrace_symbols` and Python's faulthandler print.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::text::Line;

/// Frames of a stack that are kept; an endless recursion has its cause among the first.
const MAX_FRAMES: usize = 1024;
/// Lines that one frame of gdb may be wrapped into.
const MAX_FRAME_LINES: u64 = 60;
/// Lines between two frames that belong to none: variables of `bt full`, the rest of a wrapped path.
const MAX_FOREIGN: u64 = 100;
/// Bytes of a frame that are kept.
const MAX_FRAME: usize = 8 * 1024;
/// Lines between what an abort says and the stack that follows it.
const MESSAGE_DISTANCE: u64 = 20;

/// A frame.
#[derive(Debug, Clone, Default)]
pub struct Frame {
    /// Where it returns to, if that is printed.
    pub address: Option<u64>,
    /// Function and arguments, as printed.
    pub text: String,
    /// The file that the code is in, if that is printed (`from FILE`): a path.
    pub file: Option<String>,
    /// First line of the input that it is on.
    pub first: u64,
    /// Last line of the input that it is on.
    pub last: u64,
}

impl Frame {
    /// The text up to the arguments. The end of what templates and parentheses make of a name is not looked for:
    /// enough for the functions that signatures ask about.
    pub fn calls(&self, function: &str) -> bool {
        self.text.match_indices(function).any(|(at, _)| {
            let before = self.text[..at].chars().next_back();
            let after = self.text[at + function.len()..].chars().next();
            let inside = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
            !inside(before) && !inside(after)
        })
    }

    /// Last part of the path of its file.
    pub fn file_name(&self) -> Option<&str> {
        self.file.as_deref().and_then(|file| file.rsplit('/').next())
    }
}

/// Frames of one thread, innermost first.
#[derive(Debug, Clone, Default)]
pub struct Stack {
    /// Innermost first.
    pub frames: Vec<Frame>,
    /// Line of a complaint of the allocator shortly before the stack.
    pub heap_message: Option<u64>,
}

/// What a predicate found in a stack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sighting {
    /// Indexes of the frames that make the signature.
    pub frames: Vec<usize>,
    /// What is worth naming, by kind.
    pub details: Vec<(&'static str, String)>,
}

/// Collects frames into stacks.
pub struct Stacks {
    current: Stack,
    level: Option<u64>,
    heap_message: Option<u64>,
    /// Lines of the current stack that belong to no frame.
    foreign: u64,
    /// Characters of the last line of the current stack.
    last_width: usize,
    /// Characters of its widest line.
    widest: usize,
}

/// The forms of frames.
struct Formats {
    /// gdb and the sanitizers: `#1  0x00007ffff7ca1ed3 in f (x=1) from /lib/libf.so`.
    numbered: Regex,
    /// glibc's `backtrace_symbols`: `/lib/libf.so(f+0x12)[0x7ffff7ca1ed3]`.
    glibc: Regex,
    /// faulthandler since Python 3.14: `Binary file "/lib/libf.so", at f+0x12 [0x7ffff7ca1ed3]`.
    faulthandler: Regex,
    /// glog and absl: `@     0x7ffff7ca1ed3  f`.
    glog: Regex,
    /// The place at the end of a frame of gdb.
    placed: Regex,
    /// `from FILE` of gdb, `(FILE+0x12)` of the sanitizers.
    file: Regex,
    /// The allocator's messages (glibc malloc.c).
    heap: Regex,
}

/// Forms were tested: they compile. If one did not, no frame would be seen, and the tests would say so.
static FORMATS: LazyLock<Option<Formats>> = LazyLock::new(|| {
    Some(Formats {
        numbered: Regex::new(
            r"^ *(?:\(gdb\) *)?#([0-9]{1,7}) +(?:(0x[0-9a-fA-F]+) +(?:<[^>]*> *)?in +)?([^0-9# ].*)$",
        )
        .ok()?,
        glibc: Regex::new(r"^ *(/[^ ()]+|\[[a-z]+\])\(([^()+]*)(?:\+0x[0-9a-f]+)?\) ?\[(0x[0-9a-f]+)\]$")
            .ok()?,
        faulthandler: Regex::new(
            r#"^ *Binary file "([^"]*)"(?:, at ([^ ]*?)(?:\+0x[0-9a-f]+)?)? \[(0x[0-9a-f]+)\]$"#,
        )
        .ok()?,
        glog: Regex::new(r"^ *@ +(0x[0-9a-f]+) +(.+)$").ok()?,
        placed: Regex::new(r"(?: at [^ ]+:[0-9]+| from [^ ]+|<signal handler called>)$").ok()?,
        file: Regex::new(r"(?: from +([^ ]+)|\((/[^ ()]+)\+0x[0-9a-f]+\))(?: \(BuildId: [0-9a-f]+\))?$")
            .ok()?,
        heap: Regex::new(concat!(
            r"double free or corruption|free\(\): (?:invalid (?:pointer|size)|double free detected)",
            r"|munmap_chunk\(\): invalid pointer|corrupted (?:size vs\. prev_size|double-linked list)"
        ))
        .ok()?,
    })
});

impl Stacks {
    pub fn new() -> Self {
        Self {
            current: Stack::default(),
            level: None,
            heap_message: None,
            foreign: 0,
            last_width: 0,
            widest: 0,
        }
    }

    /// Takes a line; gives the stack that it ends, if it ends one.
    pub fn push(&mut self, line: &Line) -> Option<Stack> {
        let formats = FORMATS.as_ref()?;
        if formats.heap.is_match(&line.text) {
            self.heap_message = Some(line.number);
        }
        if let Some(captures) = formats.numbered.captures(&line.text) {
            let level = captures.get(1).and_then(|level| level.as_str().parse().ok()).unwrap_or(0);
            let ended = self.level.is_none_or(|last| level <= last).then(|| self.end()).flatten();
            self.level = Some(level);
            self.foreign = 0;
            self.measure(line);
            self.add(numbered(&captures, line));
            return ended;
        }
        if let Some(frame) = plain(formats, line) {
            let ended = self.level.take().and_then(|_| self.end());
            self.add(frame);
            return ended;
        }
        if self.level.is_some() && !is_boundary(&line.text) && self.foreign < MAX_FOREIGN {
            if !self.continues(formats, line) {
                self.foreign += 1;
            }
            return None;
        }
        self.end()
    }

    /// The last stack.
    pub fn end(&mut self) -> Option<Stack> {
        self.level = None;
        (self.foreign, self.last_width, self.widest) = (0, 0, 0);
        let mut stack = std::mem::take(&mut self.current);
        let first = stack.frames.first()?.first;
        stack.heap_message = self.heap_message.filter(|&line| first.saturating_sub(line) <= MESSAGE_DISTANCE);
        if let Some(formats) = FORMATS.as_ref() {
            for frame in &mut stack.frames {
                find_file(formats, frame);
            }
        }
        Some(stack)
    }

    fn add(&mut self, frame: Frame) {
        if self.current.frames.len() < MAX_FRAMES {
            self.current.frames.push(frame);
        }
    }

    /// Appends a line to the frame that it continues: indented by gdb, or wrapped by a terminal in the middle of
    /// the frame.
    fn continues(&mut self, formats: &Formats, line: &Line) -> bool {
        let Some(frame) = self.current.frames.last_mut() else { return false };
        let pager = line.text.starts_with("--Type <RET>");
        let room = line.number.saturating_sub(frame.first) < MAX_FRAME_LINES;
        // After its place a frame is at its end; what is indented then are variables (`bt full`).
        if pager || !room || formats.placed.is_match(&frame.text) {
            return false;
        }
        let indented = line.text.starts_with("  ");
        let wrapped = !frame.text.ends_with(')') || self.last_width >= self.widest;
        if !indented && !wrapped {
            return false;
        }
        // A terminal cuts words where gdb has no blank.
        if indented {
            frame.text.push(' ');
            append(&mut frame.text, line.text.trim_start());
        } else {
            append(&mut frame.text, &line.text);
        }
        frame.last = line.number;
        self.measure(line);
        true
    }

    /// Keeps the width of the line and of the widest line, at which a terminal may have wrapped.
    fn measure(&mut self, line: &Line) {
        self.last_width = line.text.chars().count();
        self.widest = self.widest.max(self.last_width);
    }
}

/// Whether a line certainly ends a stack.
fn is_boundary(text: &str) -> bool {
    let text = text.trim_start();
    text.is_empty() || text == "..." || text.starts_with("Thread ") || text.starts_with("(gdb)")
}

fn append(text: &mut String, more: &str) {
    let mut room = MAX_FRAME.saturating_sub(text.len()).min(more.len());
    while !more.is_char_boundary(room) {
        room -= 1;
    }
    text.push_str(&more[..room]);
}

fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}

fn numbered(captures: &Captures<'_>, line: &Line) -> Frame {
    let mut text = String::new();
    append(&mut text, captures.get(3).map_or("", |text| text.as_str()));
    let address = captures.get(2).and_then(|address| hexadecimal(address.as_str()));
    Frame { address, text, file: None, first: line.number, last: line.number }
}

/// A frame without a number.
fn plain(formats: &Formats, line: &Line) -> Option<Frame> {
    let (file, function, address) = if let Some(captures) =
        formats.glibc.captures(&line.text).or_else(|| formats.faulthandler.captures(&line.text))
    {
        (captures.get(1), captures.get(2), captures.get(3))
    } else {
        let captures = formats.glog.captures(&line.text)?;
        (None, captures.get(2), captures.get(1))
    };
    let mut text = String::new();
    append(&mut text, function.map_or("", |function| function.as_str()));
    Some(Frame {
        address: address.and_then(|address| hexadecimal(address.as_str())),
        text,
        file: file.map(|file| file.as_str().to_owned()),
        first: line.number,
        last: line.number,
    })
}

fn find_file(formats: &Formats, frame: &mut Frame) {
    if frame.file.is_none()
        && let Some(captures) = formats.file.captures(&frame.text)
    {
        frame.file = captures.get(1).or(captures.get(2)).map(|file| file.as_str().to_owned());
        let end = captures.get(0).map_or(frame.text.len(), |whole| whole.start());
        frame.text.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stacks(text: &str) -> Vec<Stack> {
        let mut stacks = Stacks::new();
        let lines = text.lines().zip(1..);
        let mut all: Vec<Stack> = lines
            .filter_map(|(text, number)| stacks.push(&Line { number, text: text.trim_end().to_owned() }))
            .collect();
        all.extend(stacks.end());
        all
    }

    #[test]
    fn frames_of_gdb() {
        let text = "\
(gdb) bt
#0  0x0000000000000000 in ?? ()
#1  0x00007f00 in outer<int> (a=1,
    b=<optimized out>)
    at ./dir/file.c:116
#2  inner () from /lib/libinner.so.1

Thread 2 (Thread 0x7f (LWP 2)):
#0  wait () from /lib/libc.so.6
";
        let stacks = stacks(text);
        assert_eq!(stacks.len(), 2);
        let frames = &stacks[0].frames;
        assert_eq!((frames[0].address, frames[0].text.as_str()), (Some(0), "?? ()"));
        assert_eq!(frames[1].text, "outer<int> (a=1, b=<optimized out>) at ./dir/file.c:116");
        assert_eq!((frames[1].first, frames[1].last), (3, 5));
        assert_eq!(frames[2].file_name(), Some("libinner.so.1"));
        assert_eq!(stacks[1].frames.len(), 1);
    }

    #[test]
    fn a_terminal_may_wrap_in_the_middle_of_a_word() {
        let stacks = stacks("#0  0x1 in blas_thread_ser\nver () from /lib/liba.so\n#1  0x2 in start ()\n");
        assert!(stacks[0].frames[0].calls("blas_thread_server"));
        assert_eq!(stacks[0].frames[0].file.as_deref(), Some("/lib/liba.so"));
        assert_eq!(stacks[0].frames.len(), 2);
    }

    #[test]
    fn other_forms() {
        let text = "    #0 0x7f in f (/lib/a.so+0x12) (BuildId: 0a)\n    #1 0x8 in g /src/g.cc:12:3\n";
        assert_eq!(stacks(text)[0].frames[0].file.as_deref(), Some("/lib/a.so"));
        let text = "/lib/a.so(f+0x12)[0x7f]\n/lib/b.so(+0x2) [0x8]\n\n";
        let glibc = stacks(text);
        assert_eq!(glibc[0].frames.len(), 2);
        assert!(glibc[0].frames[0].calls("f"));
        let text = "  Binary file \"/lib/a.so\", at f+0x12 [0x7f]\n  Binary file \"/lib/b.so\" [0x7f]\n";
        assert_eq!(stacks(text)[0].frames[1].file_name(), Some("b.so"));
        assert_eq!(stacks("    @     0x7f00  f\n")[0].frames[0].text, "f");
    }

    #[test]
    fn logs_are_no_frames() {
        for text in ["#12 45.6 cc -c x.c", "# 1 heading", "#12 DONE", "fixes #12", "/lib/a.so: error (f)"] {
            let found = stacks(text);
            assert!(
                found.iter().all(|stack| stack.frames.iter().all(|f| !f.calls("cc"))),
                "{text}: {found:?}"
            );
        }
    }

    #[test]
    fn names_are_whole_words() {
        let frame = Frame { text: "my_abort_handler (abort=1)".to_owned(), ..Frame::default() };
        assert!(frame.calls("abort") && frame.calls("my_abort_handler") && !frame.calls("abort_handler"));
    }

    #[test]
    fn stacks_are_bounded() {
        use std::fmt::Write;
        let mut text = String::new();
        for level in 0..5000 {
            writeln!(text, "#{level}  0x1 in f (").expect("a string");
        }
        assert_eq!(stacks(&text)[0].frames.len(), MAX_FRAMES);
    }
}
