use super::*;
use crate::fixture::ProbeTool;
use pudu_base::{BoxFuture, Cut, SandboxError, Tool};
use std::sync::Mutex;

/// Stores results in memory, or refuses to.
#[derive(Default)]
struct MemoryFiles {
    full: bool,
    kept: Mutex<Vec<(String, String)>>,
}

impl ResultFiles for MemoryFiles {
    fn keep<'a>(&'a self, tool: &'a str, text: &'a str) -> BoxFuture<'a, Result<String, SandboxError>> {
        Box::pin(async move {
            if self.full {
                return Err(SandboxError::Refused("full".into()));
            }
            self.kept.lock().unwrap().push((tool.into(), text.into()));
            Ok("/mnt/kept".into())
        })
    }
}

fn rules() -> ResultRules {
    ResultRules {
        longest: 20,
        shown: (4, 3),
        uncut: 30,
        left: (6, 2),
        tools: [("more".to_owned(), 40), ("never".to_owned(), 0)].into(),
        ..ResultRules::default()
    }
}

fn tools(names: &[&str]) -> Toolbox {
    Toolbox::new(names.iter().map(|name| ProbeTool::new(name, true) as Arc<dyn Tool>))
}

/// Fits a text, and returns the text for the model and the number of stored results.
async fn fit(rules: ResultRules, full: bool, tool: &str, text: &str, cut: Option<Cut>) -> (String, usize) {
    let shelf = Arc::new(MemoryFiles { full, ..MemoryFiles::default() });
    let results = Results { rules: Arc::new(rules), files: shelf.clone() };
    let output = ToolOutput { text: text.into(), cut, ..ToolOutput::default() };
    let fitted = results.fit(tool, output, &tools(&["read_file"]), 128_000).await;
    assert_eq!(fitted.cut, None);
    let stored = shelf.kept.lock().unwrap().clone();
    assert!(stored.iter().all(|one| *one == (tool.to_owned(), text.to_owned())), "the whole text is stored");
    (fitted.text, stored.len())
}

const NOTE: &str = "is in /mnt/kept: read_file reads parts of it by start_line and end_line, or by offset …]";

#[tokio::test]
async fn a_long_result_is_stored_in_full_and_shown_by_both_ends() {
    let long = format!("ÄÖÜß{}\n日本語", "x".repeat(14));
    let preview = format!("ÄÖÜß\n[… 15 characters left out. The whole result, 2 lines, {NOTE}\n日本語");
    let cut = Some(Cut::Middle(2));
    assert_eq!(fit(rules(), false, "bash", &long, cut).await, (preview.clone(), 1));
    assert_eq!(kept_in(&preview), Some("/mnt/kept"));
    assert_eq!(kept_in("[… 9 lines, is in /etc/passwd: read it …]"), None);
    assert_eq!(fit(rules(), false, "bash", &long, None).await, (preview, 1));
    let fits = "x".repeat(20);
    assert_eq!(fit(rules(), false, "bash", &fits, None).await, (fits.clone(), 0));
    // The tool's own limit applies only if the result is not stored.
    assert_eq!(fit(rules(), false, "bash", &fits, cut).await.0, "x\n[… 18 characters left out …]\nx");
}

#[tokio::test]
async fn a_partial_result_is_not_called_complete() {
    let results = Results { rules: Arc::new(rules()), files: Arc::new(MemoryFiles::default()) };
    let output = ToolOutput { text: "x".repeat(30), partial: true, ..ToolOutput::default() };
    let fitted = results.fit("bash", output, &tools(&["read_file"]), 128_000).await.text;
    let said = "too long to be stored in full: its beginning and its end, 1 lines, are in /mnt/kept: ";
    assert!(fitted.contains(said) && !fitted.contains("The whole result"), "{fitted}");
    assert_eq!(kept_in(&fitted), Some("/mnt/kept"));
}

#[tokio::test]
async fn tools_have_their_own_limits_and_readers_none() {
    let long = "x".repeat(35);
    let shown = async |tool: &str, rules: ResultRules| fit(rules, false, tool, &long, None).await;
    let cut = "xxxxxx\n[… 27 characters left out; they could not be stored. Request less at a time …]\nxx";
    assert_eq!(shown("bash", rules()).await.1, 1);
    assert_eq!(shown("more", rules()).await, (cut.to_owned(), 0));
    assert_eq!(shown("never", rules()).await, (cut.to_owned(), 0));
    let read = "[… 5 more characters after line 1 of this result: continue with start_line or offset …]";
    assert_eq!(shown("read_file", rules()).await, (format!("{}\n{read}", "x".repeat(30)), 0));
    assert_eq!(shown("bash", ResultRules { enabled: false, ..rules() }).await, (long.clone(), 0));
    assert_eq!(shown("never", ResultRules { uncut: 0, ..rules() }).await, (long.clone(), 0));
    let read = fit(rules(), false, "read_file", &long, Some(Cut::End(4))).await.0;
    assert_eq!(read, "xxxx\n[… 31 more characters …]");
    // A result that fits completely is not stored.
    let wide = ResultRules { shown: (30, 30), ..rules() };
    assert_eq!(shown("bash", wide).await.1, 0);
}

#[tokio::test]
async fn no_result_exceeds_a_quarter_of_a_small_window() {
    let results = Results { rules: Arc::default(), files: Arc::new(MemoryFiles::default()) };
    let fit = async |tool: &str, cut: Option<Cut>, window: u64| {
        let output = ToolOutput { text: "x".repeat(100_000), cut, ..ToolOutput::default() };
        results.fit(tool, output, &tools(&["read_file"]), window).await.text.len()
    };
    let own = Some(Cut::End(50_000));
    for (tool, cut, window, most) in [
        ("read_file", own, 128_000, 30_200),
        ("read_file", own, 32_000, 24_200),
        ("read_file", None, 8_000, 6_200),
        ("bash", own, 8_000, 3_300),
    ] {
        let length = fit(tool, cut, window).await;
        assert!(length <= most, "{tool} shows {length} bytes in a window of {window}");
    }
}

#[tokio::test]
async fn a_result_that_cannot_be_stored_is_cut() {
    let said = fit(rules(), true, "bash", &"x".repeat(25), None).await;
    assert_eq!(said, ("x".repeat(25), 0));
    let said = fit(rules(), true, "bash", &"x".repeat(31), None).await;
    let expect = "xxxxxx\n[… 23 characters left out; they could not be stored. Request less at a time …]\nxx";
    assert_eq!(said, (expect.to_owned(), 0));
    let said = fit(rules(), true, "bash", &"x".repeat(31), Some(Cut::End(2))).await;
    assert_eq!(said, ("xx\n[… 29 more characters …]".to_owned(), 0));
    // A tool with a larger own limit than the maximum is not asked to shorten.
    let said = fit(rules(), true, "bash", &"x".repeat(31), Some(Cut::Middle(31))).await;
    assert_eq!(said, (expect.to_owned(), 0));
}

#[test]
fn the_reading_hint_names_available_tools() {
    let check = |names: &[&str], expect: Option<&str>| {
        let said = reading_hint(&tools(names)).map(|way| way.split(' ').next().unwrap());
        assert_eq!(said, expect, "{names:?}");
    };
    check(&["bash", "read_file", "grep"], Some("read_file"));
    check(&["grep", "bash"], Some("grep"));
    check(&["bash"], Some("bash"));
    check(&["web_search"], None);
}
