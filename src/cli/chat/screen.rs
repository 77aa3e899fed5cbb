//! The bottom of the terminal: lines that are printed permanently, and below them a few that change.
//!
//! Each change is a single write that overwrites the old lines, so nothing flickers. This module does not know the
//! meaning of the lines.

use super::wrap::clip;
use std::io::{self, Write};

/// Restores the previous title of the window.
const OLD_TITLE: &str = "\x1b[23;2t";

/// The bottom of the terminal.
pub(super) struct Screen<W> {
    out: W,
    /// The changing lines on the terminal. The cursor is at the end of the last one.
    drawn: Vec<String>,
    entitled: bool,
}

impl<W: Write> Screen<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, drawn: Vec::new(), entitled: false }
    }

    /// Redraws the changing lines for a terminal of this size.
    pub(super) fn draw(&mut self, lines: &[String], (columns, rows): (usize, usize)) -> io::Result<()> {
        let surplus = lines.len().saturating_sub(rows.saturating_sub(1).max(1));
        let lines: Vec<String> = lines.iter().skip(surplus).map(|line| fit(line, columns)).collect();
        if lines == self.drawn {
            return Ok(());
        }
        let text = format!(
            "{}\x1b[?25l{}",
            self.home(),
            lines.iter().map(|line| format!("{line}\x1b[K")).collect::<Vec<_>>().join("\r\n")
        );
        self.drawn = lines;
        self.write(&format!("{text}\x1b[J"))
    }

    /// Prints lines permanently. Removes the changing lines until the next `draw`.
    pub(super) fn print(&mut self, lines: &[String]) -> io::Result<()> {
        let mut text = self.home();
        text.extend(lines.iter().map(|line| format!("{line}\x1b[K\r\n")));
        self.drawn.clear();
        self.write(&format!("{text}\x1b[J"))
    }

    /// Sets the window's title to that of the conversation, which may be empty. The previous title is saved.
    pub(super) fn entitle(&mut self, title: &str) -> io::Result<()> {
        let keep = if std::mem::replace(&mut self.entitled, true) { "" } else { "\x1b[22;2t" };
        let gap = if title.is_empty() { "" } else { " · " };
        self.write(&format!("{keep}\x1b]2;{title}{gap}pudu\x07"))
    }

    /// Removes the changing lines.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        if self.drawn.is_empty() {
            return Ok(());
        }
        self.print(&[])?;
        self.write("\x1b[?25h")
    }

    /// Restores the terminal.
    pub(super) fn leave(&mut self) -> io::Result<()> {
        self.clear()?;
        if self.entitled { self.write(OLD_TITLE) } else { Ok(()) }
    }

    /// Returns the sequence that moves the cursor to the first changing line.
    fn home(&self) -> String {
        match self.drawn.len() {
            0 | 1 => "\r".to_owned(),
            count => format!("\r\x1b[{}A", count - 1),
        }
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

/// Cuts a line that would wrap, because each drawn line must take a single row.
fn fit(line: &str, columns: usize) -> String {
    if line.contains('\x1b') { clip_styled(line, columns) } else { clip(line, columns) }
}

/// Like `clip`, but style sequences have no width.
fn clip_styled(line: &str, columns: usize) -> String {
    let (mut out, mut room) = (String::new(), columns);
    for (at, part) in line.split('\x1b').enumerate() {
        let (code, text) = match part.split_once('m') {
            Some((code, text)) if at > 0 => (format!("\x1b{code}m"), text),
            _ => (String::new(), part),
        };
        let text = clip(text, room);
        room -= unicode_width::UnicodeWidthStr::width(text.as_str()).min(room);
        out.push_str(&code);
        out.push_str(&text);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the rows that a terminal shows of some bytes: enough of one to follow this module.
    fn visible_lines(bytes: &[u8]) -> Vec<String> {
        let (mut rows, mut row, mut column) = (vec![Vec::new()], 0_usize, 0_usize);
        let mut chars = std::str::from_utf8(bytes).unwrap().chars();
        while let Some(c) = chars.next() {
            match c {
                '\r' => column = 0,
                '\n' => {
                    row += 1;
                    rows.resize(rows.len().max(row + 1), Vec::new());
                }
                '\x1b' => {
                    let (number, letter) = sequence(&mut chars);
                    match letter {
                        'A' => row -= number.parse::<usize>().unwrap(),
                        'K' => rows[row].truncate(column),
                        'J' => {
                            rows[row].truncate(column);
                            rows.truncate(row + 1);
                        }
                        _ => {}
                    }
                }
                c => {
                    let wide = rows[row].len().max(column + 1);
                    rows[row].resize(wide, ' ');
                    rows[row][column] = c;
                    column += 1;
                }
            }
        }
        rows.into_iter().map(String::from_iter).collect()
    }

    fn sequence(chars: &mut std::str::Chars<'_>) -> (String, char) {
        let mut number = String::new();
        loop {
            match chars.next().unwrap() {
                '[' => {}
                letter if letter.is_ascii_alphabetic() => return (number, letter),
                digit => number.push(digit),
            }
        }
    }

    fn lines(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn what_changes_stays_below_what_is_printed() {
        let mut bytes = Vec::new();
        let mut screen = Screen::new(&mut bytes);
        screen.draw(&lines(&["grow", "status"]), (20, 10)).unwrap();
        screen.draw(&lines(&["growing", "more", "status"]), (20, 10)).unwrap();
        screen.print(&lines(&["growing", ""])).unwrap();
        screen.draw(&lines(&["x", "status"]), (20, 10)).unwrap();
        screen.clear().unwrap();
        screen.print(&lines(&["end"])).unwrap();
        assert_eq!(visible_lines(&bytes), ["growing", "", "end", ""]);
    }

    #[test]
    fn what_changes_never_takes_more_room_than_there_is() {
        let mut bytes = Vec::new();
        Screen::new(&mut bytes).draw(&lines(&["1", "2", "3", "\x1b[1m45678\x1b[0m"]), (3, 3)).unwrap();
        assert_eq!(visible_lines(&bytes), ["3", "456"]);
    }

    #[test]
    fn what_has_not_changed_is_not_written() {
        let mut bytes = Vec::new();
        let mut screen = Screen::new(&mut bytes);
        screen.draw(&lines(&["a"]), (9, 9)).unwrap();
        screen.draw(&lines(&["a"]), (9, 9)).unwrap();
        assert_eq!(bytes, b"\r\x1b[?25la\x1b[K\x1b[J");
    }
}
