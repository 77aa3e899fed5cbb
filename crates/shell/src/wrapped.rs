//! Finds the program that a command runs through wrappers such as `sudo` or `env`.

use crate::syntax::ShellWord;

/// A program that runs the command given in its arguments.
pub(crate) struct Wrapper {
    pub(crate) name: &'static str,
    /// Short options that take a value.
    valued: &'static str,
    /// Number of the program's own operands before the command.
    pub(crate) operands: usize,
    /// Short options with which the command is still certain: those without a value, and those whose value is the next
    /// word. `None` if the command is never certain.
    pub(crate) certain: Option<(&'static str, &'static str)>,
}

const fn wrapper(name: &'static str, valued: &'static str, operands: usize) -> Wrapper {
    Wrapper { name, valued, operands, certain: None }
}

impl Wrapper {
    const fn certain(self, flags: &'static str, valued: &'static str) -> Self {
        Self { certain: Some((flags, valued)), ..self }
    }

    /// Returns the wrapper with this name.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        WRAPPERS.iter().find(|wrapper| wrapper.name == name)
    }
}

const WRAPPERS: [Wrapper; 21] = [
    wrapper("sudo", "ughpCrtTDR", 0).certain("nE", "u"),
    wrapper("doas", "uC", 0),
    wrapper("env", "uC", 0).certain("i", ""),
    wrapper("nohup", "", 0).certain("", ""),
    wrapper("nice", "n", 0).certain("", "n"),
    wrapper("ionice", "cnpPu", 0),
    wrapper("time", "fo", 0).certain("p", ""),
    wrapper("timeout", "sk", 1).certain("", "ks"),
    wrapper("xargs", "IaEnLPsd", 0).certain("0rt", "nPLI"),
    wrapper("command", "", 0).certain("p", ""),
    wrapper("builtin", "", 0).certain("", ""),
    wrapper("exec", "a", 0).certain("", ""),
    wrapper("setsid", "", 0).certain("", ""),
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
const LONG_OPTIONS: [&str; 8] =
    ["--signal", "--kill-after", "--adjustment", "--unset", "--chdir", "--user", "--max-args", "--max-procs"];

/// Returns the words after each option of `find` that runs a command.
pub(crate) fn found_commands(words: &[ShellWord]) -> impl Iterator<Item = &[ShellWord]> {
    let runs = |word: &ShellWord| matches!(word.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
    words.iter().enumerate().filter(move |(_, word)| runs(word)).filter_map(|(at, _)| words.get(at + 1..))
}

/// Returns the words of a command that `find` runs, up to its end.
pub(crate) fn until_end(words: &[ShellWord]) -> &[ShellWord] {
    words.split(|word| word.text == ";" || word.text == "+").next().unwrap_or_default()
}

/// Splits a shell's arguments before the first operand.
pub(crate) fn options(arguments: &[ShellWord]) -> (&[ShellWord], &[ShellWord]) {
    let option = |word: &&ShellWord| word.text.starts_with(['-', '+']) && word.text.len() > 1;
    arguments.split_at(arguments.iter().take_while(option).count())
}

/// Returns whether a shell's options make its first operand a script.
pub(crate) fn takes_script(options: &[ShellWord]) -> bool {
    options.iter().any(|word| !word.text.starts_with("--") && word.text.contains('c'))
}

/// A command without its wrappers.
pub(crate) struct Bare<'a> {
    pub(crate) words: &'a [ShellWord],
    /// The words from each program onwards: first those of each wrapper in order, then those of the wrapped program.
    pub(crate) layers: Vec<&'a [ShellWord]>,
    /// Whether the command asks for more privileges.
    pub(crate) rights: bool,
    /// Whether `xargs` appends words from its input.
    pub(crate) fed: bool,
}

impl<'a> Bare<'a> {
    pub(crate) fn new(words: &'a [ShellWord]) -> Self {
        let mut bare = Self { words, layers: Vec::new(), rights: false, fed: false };
        bare.skip_values();
        while let Some(program) = bare.program() {
            bare.layers.push(bare.words);
            let Some(wrapper) = Wrapper::find(program) else { break };
            bare.rights |= matches!(wrapper.name, "sudo" | "doas");
            bare.fed |= wrapper.name == "xargs";
            bare.pass(wrapper);
        }
        bare.rights |= bare.program() == Some("su");
        bare
    }

    /// Returns the program without its folder.
    pub(crate) fn program(&self) -> Option<&'a str> {
        self.words.first()?.text.rsplit('/').next()
    }

    /// Returns the words after the program.
    pub(crate) fn arguments(&self) -> &'a [ShellWord] {
        self.words.get(1..).unwrap_or_default()
    }

    fn pass(&mut self, wrapper: &Wrapper) {
        self.words = self.arguments();
        while let Some(option) = self.words.first().filter(|word| word.text.starts_with('-')) {
            let text = option.text.as_str();
            let short = !text.starts_with("--") && text.ends_with(|c| wrapper.valued.contains(c));
            let own = 1 + usize::from(short || LONG_OPTIONS.contains(&text));
            self.words = self.words.get(own..).unwrap_or_default();
        }
        self.skip_values();
        self.words = self.words.get(wrapper.operands..).unwrap_or_default();
    }

    fn skip_values(&mut self) {
        let from = self.words.iter().take_while(|word| is_value(word)).count();
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
