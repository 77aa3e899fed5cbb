//! Finds the program of a command behind those that only pass a command on.

use super::syntax::ShellWord;

/// A program that passes a command on.
struct Wrapper {
    name: &'static str,
    /// Its short options that take a value.
    valued: &'static str,
    /// Number of its own words before the command.
    operands: usize,
}

const fn wrapper(name: &'static str, valued: &'static str, operands: usize) -> Wrapper {
    Wrapper { name, valued, operands }
}

const WRAPPERS: [Wrapper; 21] = [
    wrapper("sudo", "ughpCrtTDR", 0),
    wrapper("doas", "uC", 0),
    wrapper("env", "uC", 0),
    wrapper("nohup", "", 0),
    wrapper("nice", "n", 0),
    wrapper("ionice", "cnpPu", 0),
    wrapper("time", "fo", 0),
    wrapper("timeout", "sk", 1),
    wrapper("xargs", "IaEnLPsd", 0),
    wrapper("command", "", 0),
    wrapper("builtin", "", 0),
    wrapper("exec", "a", 0),
    wrapper("setsid", "", 0),
    wrapper("stdbuf", "ioe", 0),
    wrapper("chroot", "", 1),
    wrapper("flock", "wE", 1),
    wrapper("watch", "n", 0),
    wrapper("strace", "eopu", 0),
    wrapper("unshare", "", 0),
    wrapper("busybox", "", 0),
    wrapper("caffeinate", "tw", 0),
];
/// Long options whose value may be the next word.
const LONG: [&str; 8] =
    ["--signal", "--kill-after", "--adjustment", "--unset", "--chdir", "--user", "--max-args", "--max-procs"];

/// A command without the programs that pass it on.
pub(super) struct Bare<'a> {
    pub(super) words: &'a [ShellWord],
    /// Whether something asks for more rights first.
    pub(super) rights: bool,
    /// Whether more words come from its input.
    pub(super) fed: bool,
}

impl<'a> Bare<'a> {
    pub(super) fn new(words: &'a [ShellWord]) -> Self {
        let mut bare = Self { words, rights: false, fed: false };
        bare.skip(is_value);
        while let Some(wrapper) = WRAPPERS.iter().find(|wrapper| bare.program() == Some(wrapper.name)) {
            bare.rights |= matches!(wrapper.name, "sudo" | "doas");
            bare.fed |= wrapper.name == "xargs";
            bare.pass(wrapper);
        }
        bare.rights |= bare.program() == Some("su");
        bare
    }

    /// Returns the words of each program in turn: of those that pass a command on, and of the one behind them.
    pub(super) fn layers(words: &'a [ShellWord]) -> Vec<&'a [ShellWord]> {
        let mut bare = Self { words, rights: false, fed: false };
        let mut layers = Vec::new();
        bare.skip(is_value);
        while !bare.words.is_empty() {
            layers.push(bare.words);
            let Some(wrapper) = WRAPPERS.iter().find(|wrapper| bare.program() == Some(wrapper.name)) else {
                break;
            };
            bare.pass(wrapper);
        }
        layers
    }

    /// Returns the program, without the folder it is in.
    pub(super) fn program(&self) -> Option<&'a str> {
        self.words.first()?.text.rsplit('/').next()
    }

    /// Returns the words behind the program.
    pub(super) fn arguments(&self) -> &'a [ShellWord] {
        self.words.get(1..).unwrap_or_default()
    }

    fn pass(&mut self, wrapper: &Wrapper) {
        self.words = self.arguments();
        while let Some(option) = self.words.first().filter(|word| word.text.starts_with('-')) {
            let text = option.text.as_str();
            let short = !text.starts_with("--") && text.ends_with(|c| wrapper.valued.contains(c));
            let own = 1 + usize::from(short || LONG.contains(&text));
            self.words = self.words.get(own..).unwrap_or_default();
        }
        self.skip(is_value);
        self.words = self.words.get(wrapper.operands..).unwrap_or_default();
    }

    fn skip(&mut self, passes: fn(&ShellWord) -> bool) {
        let from = self.words.iter().take_while(|word| passes(word)).count();
        self.words = self.words.get(from..).unwrap_or_default();
    }
}

/// Returns whether a word is an assignment, `NAME=value`.
fn is_value(word: &ShellWord) -> bool {
    let name = word.text.split_once('=').map(|(name, _)| name.trim_end_matches('+'));
    name.is_some_and(|name| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_[]".contains(c))
    })
}
