//! Typical answers of models, on all platforms.

use crate::{
    render::{Rich, Style, dingtalk, discord, feishu, parse, parse_within, slack, telegram},
    split::{Limit, Unit, split},
};
use pulldown_cmark::{Event, Parser, Tag, TagEnd};

const BOLD: &str = include_str!("bold.md");

/// Returns the messages of an answer for each platform.
fn on_all_platforms(markdown: &str) -> Vec<(&'static str, Vec<String>)> {
    type Rendering = (&'static str, usize, usize, fn(&Rich) -> String);
    let platforms: [Rendering; 6] = [
        ("Telegram", 4096, 40, telegram::html),
        ("Slack", 3500, 64, slack::mrkdwn),
        ("Slack's streams", 3500, 64, slack::markdown),
        ("Discord", 1900, 48, discord::markdown),
        ("DingTalk", 2000, 40, dingtalk::markdown),
        ("Feishu", 20_000, 56, feishu::card_markdown),
    ];
    let shown = |(name, max, columns, write): (&'static str, usize, usize, fn(&Rich) -> String)| {
        let limit = Limit { unit: Unit::Chars, max, columns };
        (name, split(&parse_within(markdown, columns), limit).iter().map(write).collect())
    };
    platforms.into_iter().map(shown).collect()
}

/// Returns the texts that a CommonMark renderer shows in bold or italics, and the whole shown text.
fn read_strictly(markdown: &str) -> (Vec<String>, String) {
    let (mut marked, mut open, mut all) = (Vec::new(), None::<String>, String::new());
    for event in Parser::new(markdown) {
        match event {
            Event::Start(Tag::Strong | Tag::Emphasis) => open = Some(String::new()),
            Event::End(TagEnd::Strong | TagEnd::Emphasis) => marked.extend(open.take()),
            Event::Text(text) => {
                all.push_str(&text);
                if let Some(open) = &mut open {
                    open.push_str(&text);
                }
            }
            _ => {}
        }
    }
    let visible = |text: &String| text.replace('\u{200b}', "");
    (marked.iter().map(visible).collect(), visible(&all))
}

#[test]
fn emphasis_needs_no_spaces_beside_chinese_japanese_and_korean() {
    let bold = ["“重点”", "注意：", "粗体（说明）", "「強調」", "太字。", "\"강조\"", "중요(重要)", "bold"];
    let rich = parse(BOLD);
    let marked = |wanted: &Style| -> Vec<&str> {
        rich.spans
            .iter()
            .filter(|span| span.style == *wanted)
            .map(|span| rich.part(span.range.clone()))
            .collect()
    };
    assert_eq!(marked(&Style::Bold), bold);
    assert_eq!(marked(&Style::Italic), ["“quoted”"]);
    assert!(!rich.text.contains('*'), "{}", rich.text);
    for (platform, messages) in on_all_platforms(BOLD) {
        let text = messages.concat();
        match platform {
            "Telegram" => bold.iter().for_each(|bold| {
                let bold = bold.replace('"', "&quot;");
                assert!(text.contains(&format!("<b>{bold}</b>")), "{text}");
            }),
            // This renderer has no rules about adjacent characters.
            "Discord" => {
                bold.iter().for_each(|bold| assert!(text.contains(&format!("**{bold}**")), "{text}"))
            }
            // A mark is next to whitespace, ASCII punctuation or characters without width.
            "Slack" => bold.iter().for_each(|bold| {
                let (before, after) = text.split_once(&format!("*{bold}*")).unwrap();
                let is_edge = |c: Option<char>| c.is_none_or(|c| c == '\u{200b}' || c.is_whitespace());
                assert!(is_edge(before.chars().next_back()) && is_edge(after.chars().next()), "{text}");
            }),
            _ => {
                let (marked, all) = read_strictly(&text);
                assert_eq!(marked[..bold.len()], bold, "{platform}: {text}");
                assert!(!all.contains('*'), "{platform}: {all}");
            }
        }
    }
}

#[test]
fn a_long_cell_pads_no_row() {
    let long = "This one row explains at length why the value is what it is. ".repeat(16);
    let row = |n: usize| format!("| item {n} | {} | 1 |\n", if n == 3 { &long } else { "ok" });
    let table: String = (0..12).map(row).collect();
    let markdown = format!("Here is the list.\n\n| name | note | n |\n|---|---|---|\n{table}\nThat is all.");
    for (platform, messages) in on_all_platforms(&markdown) {
        let max = if matches!(platform, "Discord" | "DingTalk") { 2 } else { 1 };
        assert!(messages.len() <= max, "{platform}: {} messages", messages.len());
        let text = messages.concat();
        assert!(!text.contains(&" ".repeat(100)), "{platform}: {text}");
        for word in markdown.split_whitespace().filter(|word| word.starts_with(char::is_alphanumeric)) {
            assert!(text.contains(word), "{platform} lacks {word:?}: {text}");
        }
    }
}

#[test]
fn a_table_of_any_width_is_laid_out_within_its_own_size() {
    for columns in [1, 2, 7, 30] {
        for width in [1, 40, 400] {
            let row = |cell: String| format!("|{}\n", format!("{cell}|").repeat(columns));
            let rows = row("x".repeat(width)) + &row("y".to_owned()).repeat(20);
            let table = row("h".to_owned()) + &row("-".to_owned()) + &rows;
            for (platform, messages) in on_all_platforms(&table) {
                let length: usize = messages.iter().map(String::len).sum();
                assert!(length < table.len() * 8 + 500, "{platform}: {columns} of {width}: {length}");
                assert!(!messages.concat().contains(&" ".repeat(100)));
            }
        }
    }
}

#[test]
fn wide_tables_are_stacked_with_their_marks() {
    let check = |markdown: &str, shown: &str| assert_eq!(telegram::html(&parse_within(markdown, 16)), shown);
    check("|a|b|\n|-|-|\n|1|2|", "<pre>a │ b\n──┼──\n1 │ 2</pre>");
    check(
        "|Name|What it is|\n|-|-|\n|**one**|`x` and [y](https://y.z)|\n|two||",
        "• <b>Name:</b> <b>one</b>\n  <b>What it is:</b> <code>x</code> and <a href=\"https://y.z\">y</a>\n• <b>Name:</b> two",
    );
    check("||long column name|\n|-|-|\n|row|1|", "• row\n  <b>long column name:</b> 1");
    check("|only a header|of two columns|\n|-|-|", "• only a header\n• of two columns");
    // A client would reorder text that runs from right to left.
    check("|اسم|n|\n|-|-|\n|علي|1|", "• <b>اسم:</b> علي\n  <b>n:</b> 1");
    check("- a\n\n  |x|y|\n  |-|-|\n  |a<br>b|\\||", "• a\n<pre>x   │ y\n────┼──\na b │ |</pre>");
}

/// Inputs of public reports about bots that show Markdown in chats.
#[test]
fn reported_answers_read_well() {
    let check = |report: &str, markdown: &str, shown: &str| {
        assert_eq!(telegram::html(&parse(markdown)), shown, "{report}");
    };
    check(
        "openclaw/openclaw#101120",
        "边界：**社区显示：**Fable 与 **有效**。",
        "边界：<b>社区显示：</b>Fable 与 <b>有效</b>。",
    );
    check("futuregene/future-os#744", "**复现：**10 轮对话", "<b>复现：</b>10 轮对话");
    check(
        "vm0-ai/vm0#25503",
        "~~删除线（test）~~后面 *斜体（x）*后面",
        "<s>删除线（test）</s>后面 <i>斜体（x）</i>后面",
    );
    check(
        "KiroCrew#2323",
        "**重要提示（Important Notice）：**请注意。",
        "<b>重要提示（Important Notice）：</b>请注意。",
    );
    check(
        "HKUDS/nanobot#1107",
        "**Status:**Healthy\n**CPU:**45%\n- **Name:**x **y:** z",
        "<b>Status:</b>Healthy\n<b>CPU:</b>45%\n\n• <b>Name:</b>x <b>y:</b> z",
    );
    check("NousResearch/hermes-agent#50871", "分组：1~10,11~20", "分组：1~10,11~20");
    check(
        "skoropadas/telegramify-markdown#3",
        "- To make text **bold**, use (`**`): `**This.**`",
        "• To make text <b>bold</b>, use (<code>**</code>): <code>**This.**</code>",
    );
    check("skoropadas/telegramify-markdown#4", "1. Foo:\n\n```\nBar\n```", "1. Foo:\n\n<pre>Bar</pre>");
    check(
        "nesquena/hermes-webui#3830",
        "1. First step:\n$$\nx = 1\n$$\n2. Second step:\n$y = x + 1$",
        "1. First step:\n  <code>x = 1</code>\n2. Second step:\n  $y = x + 1$",
    );
    check(
        "fla9ua/markdown_to_mrkdwn#30",
        "結果:\n```\n| a | b |\n|---|---|\n```",
        "結果:\n\n<pre>| a | b |\n|---|---|</pre>",
    );
    check(
        "xqicxx/dsh-telegram#19",
        "| 消息 | 文件 |\n|---|---|\n| ① | `石棉汉源万源开江_男_简阳户籍_可报岗位75个_全部对照.xlsx` |",
        "• <b>消息:</b> ①\n  <b>文件:</b> <code>石棉汉源万源开江_男_简阳户籍_可报岗位75个_全部对照.xlsx</code>",
    );
    check("codeaholicguy/ai-devkit#170", "- **a** `b` <script>", "• <b>a</b> <code>b</code> &lt;script&gt;");
    let on_slack = |report: &str, markdown: &str, shown: &str| {
        assert_eq!(slack::mrkdwn(&parse(markdown)), shown, "{report}");
    };
    on_slack(
        "thesmallstar/slackify-markdown-python#10",
        "### **Step 1**: Description here",
        "*Step 1: Description here*",
    );
    on_slack(
        "BaseIntelligence/bounty-challenge#50969",
        "~~gone **bold** [x](https://a.b)~~",
        "~gone~ *~bold~* ~<https://a.b|x>~",
    );
    on_slack("PostHog/posthog#62322", "**<https://a.b/pull/123>**", "*<https://a.b/pull/123>*");
}

#[test]
fn one_tilde_is_a_tilde() {
    let check = |markdown: &str, shown: &str| assert_eq!(telegram::html(&parse(markdown)), shown);
    check("~5 min ~/path", "~5 min ~/path");
    check("about ~100~ and H~2~O", "about ~100~ and H~2~O");
    check("cp ~/a ~/b, then ~~gone~~", "cp ~/a ~/b, then <s>gone</s>");
    check("价格~100~200元", "价格~100~200元");
    check("~**5**~ min", "~<b>5</b>~ min");
}

#[test]
fn formulas_keep_their_signs() {
    let check =
        |markdown: &str, shown: &str| assert_eq!(telegram::html(&parse(markdown)), shown, "{markdown}");
    check("so \\(a_1 * b_1 = c\\{x\\}\\) holds", "so <code>a_1 * b_1 = c\\{x\\}</code> holds");
    check(
        "\\[\n\\frac{a}{b} \\\\ *c*\n\\]",
        "<pre><code class=\"language-latex\">\\frac{a}{b} \\\\ *c*</code></pre>",
    );
    check("$$x_1 + x_2$$", "<pre><code class=\"language-latex\">x_1 + x_2</code></pre>");
    check("and $$x^2$$ too", "and <code>x^2</code> too");
    check("- \\(x\\)\n> \\(y\\)", "• <code>x</code>\n\n<blockquote><code>y</code></blockquote>");
    check("$5 to $10, US$5, $HOME/$USER", "$5 to $10, US$5, $HOME/$USER");
    check("inline $a_1 * b_1 * c$", "inline $a_1 * b_1 * c$");
    check("\\(see below\\) \\[x\\](https://a.b)", "(see below) [x](https://a.b)");
    check("`\\(x\\)` \\(open", "<code>\\(x\\)</code> (open");
    check("|a|\n|-|\n|\\(x_1\\) $5|", "<pre>a\n──────\nx_1 $5</pre>");
}

#[test]
fn lists_below_check_boxes_are_lists() {
    let check =
        |markdown: &str, shown: &str| assert_eq!(telegram::html(&parse(markdown)), shown, "{markdown}");
    check("- [ ] a\n  - b\n    - c\n- [x] d\n  1. e", "☐ a\n  ◦ b\n    ▪ c\n☑ d\n  1. e");
    check("- [ ] a\n\n  more\n\n  - b", "☐ a\n  more\n  ◦ b");
    check("1. [x] a\n   - b", "1. ☑ a\n  ◦ b");
    check("- a\n  - [ ] b\n    - c", "• a\n  ☐ b\n    ▪ c");
}

#[test]
fn footnotes_are_numbered_and_none_is_lost() {
    let check =
        |markdown: &str, shown: &str| assert_eq!(telegram::html(&parse(markdown)), shown, "{markdown}");
    check("a[^1] b[^n].\n\n[^1]: one **x**\n[^n]: two", "a[1] b[n].\n\n[1] one <b>x</b>\n[n] two");
    check("a[^1]", "a[1]");
    check("a\n\n[^9]: nothing refers to this", "a\n\n[9] nothing refers to this");
    check("a[^1]\n\n[^1]: one\n\n    more\n\nend", "a[1]\n\n[1] one\n  more\n\nend");
    check("[^a-z] is a class", "[^a-z] is a class");
    check("a[^1]\n\n[^1]: https://x.y", "a[1]\n\n[1] https://x.y");
}

#[test]
fn collapsible_blocks_are_shown_open() {
    let shown =
        telegram::html(&parse("<details>\n<summary>Log</summary>\n\nall **well**\n\n</details>\n\nend"));
    assert_eq!(shown, "Log\n\nall <b>well</b>\n\nend");
}

#[test]
fn thousands_of_marks_are_parsed_quickly() {
    for sign in
        ["\\(", "\\[", "$", "$$", "*", "**。", "~", "[^1]", "[^", "|", "> ", "- [ ] ", "`", "(", "|-|\n"]
    {
        let start = std::time::Instant::now();
        let rich = parse(&sign.repeat(30_000));
        let _ = slack::settled(&rich);
        assert!(start.elapsed().as_secs() < 20, "{sign:?}: {:?}", start.elapsed());
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(300))]

    #[test]
    fn any_mixture_of_marks_is_written_everywhere_within_bounds(pieces in proptest::collection::vec(
        proptest::sample::select(vec![
            "**", "*", "_", "~", "~~", "`", "```\n", "。", "“", "字", "a", "é", " ", "\n", "\n\n", "|", "|-|-|\n", "- ", "- [ ] ",
            "1. ", "> ", "# ", "\\(", "\\)", "\\[", "\\]", "$", "$$", "[^1]", "[^1]: ", "[x](https://a.b)", "<details>\n",
            "</details>\n", "<br>", "عربي", "👩‍🚀", "\u{200b}", "\0", "a long cell with many words in it",
        ]), 0..60)) {
        let markdown = pieces.concat();
        for (platform, messages) in on_all_platforms(&markdown) {
            let length: usize = messages.iter().map(String::len).sum();
            proptest::prop_assert!(length <= markdown.len() * 12 + 400, "{platform}: {length} of {}", markdown.len());
            proptest::prop_assert!(!messages.concat().contains(&" ".repeat(100)));
        }
    }
}
