//! The files of the web page.

pub(crate) mod vendor;
#[cfg(test)]
mod words;

/// The page's document. `{version}` is replaced by the version of its files, `{links}` by the links to them.
pub(crate) const PAGE: &str = include_str!("console/page/page.html");

macro_rules! page_files {
    ($($name:literal)*) => { &[$(($name, include_str!(concat!("console/page/", $name)))),*] };
}

/// Files of the page by their names. The page also loads libraries ([`vendor`]) when it needs them.
pub(crate) const PAGE_FILES: &[(&str, &str)] = page_files![
    "base.css" "layout.css" "talk.css" "dialogs.css" "deer.svg"
    "main.js" "account.js" "api.js" "approval.js" "changes.js" "commands.js" "composer.js" "conversation.js" "dialogs.js"
    "dom.js" "draw.js" "files.js" "form.js" "help.js" "inline.js" "markdown.js" "markup.js" "notices.js" "schedules.js"
    "sidebar.js" "signin.js" "step.js" "stream.js" "theme.js" "thread.js" "times.js" "transcript.js" "turn.js" "words.js" "zh-hans.js"
];

/// The documents of sandboxed frames and their scripts. Each frame has an origin of its own.
pub(crate) const FRAME_FILES: &[(&str, &str)] = &[
    ("frame/diagram.html", include_str!("console/frame/diagram.html")),
    ("frame/diagram.js", include_str!("console/frame/diagram.js")),
];
