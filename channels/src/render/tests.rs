use super::{fenced, parse, telegram::html};

mod answers;

fn check(cases: &[(&str, &str)]) {
    for (markdown, expected) in cases {
        assert_eq!(html(&parse(markdown)), *expected, "for {markdown:?}");
    }
}

#[test]
fn inline_styles_become_telegrams_tags() {
    check(&[
        ("plain", "plain"),
        ("**bold** *italic* ~~gone~~", "<b>bold</b> <i>italic</i> <s>gone</s>"),
        ("**bold *both* bold**", "<b>bold <i>both</i> bold</b>"),
        ("a `b < c` d", "a <code>b &lt; c</code> d"),
        ("1 < 2 & \"3\" > 2", "1 &lt; 2 &amp; &quot;3&quot; &gt; 2"),
        ("line one\nline two", "line one\nline two"),
        ("one<br>two <u>x</u>", "one\ntwo &lt;u&gt;x&lt;/u&gt;"),
    ]);
}

#[test]
fn styles_that_telegram_does_not_nest_are_split() {
    check(&[
        ("**bold `code` bold**", "<b>bold </b><code>code</code><b> bold</b>"),
        ("[see `code` **now**](https://a.b)", "<a href=\"https://a.b\">see code <b>now</b></a>"),
        ("# A `b`", "<b>A </b><code>b</code>"),
        ("> quote\n> > inner\n>\n> end", "<blockquote>quote\n\ninner\n\nend</blockquote>"),
        (
            "> see\n> ```rust\n> x\n> ```",
            "<blockquote>see\n\n</blockquote><pre><code class=\"language-rust\">x</code></pre>",
        ),
        ("**a [b](https://c.d) e**", "<b>a </b><a href=\"https://c.d\"><b>b</b></a><b> e</b>"),
    ]);
}

#[test]
fn only_harmless_links_are_links() {
    check(&[
        ("[a](https://x.y/?q=1&r=\"2\")", "<a href=\"https://x.y/?q=1&amp;r=&quot;2&quot;\">a</a>"),
        ("[citation:Deer](https://x.y)", "<a href=\"https://x.y\">Deer</a>"),
        ("[a](tg://user?id=1)", "a (tg://user?id=1)"),
        ("[a](TG://user?id=1)", "a (TG://user?id=1)"),
        ("<me@x.y>", "<a href=\"mailto:me@x.y\">me@x.y</a>"),
        ("[a](javascript:alert(1))", "a (javascript:alert(1))"),
        ("[a](./file.md)", "a (./file.md)"),
        ("[](https://x.y)", "<a href=\"https://x.y\">https://x.y</a>"),
        ("![a cat](https://x.y/cat.png)", "<a href=\"https://x.y/cat.png\">a cat</a>"),
        ("[![logo](https://x.y/l.png)](https://x.y)", "<a href=\"https://x.y\">logo</a>"),
    ]);
}

#[test]
fn blocks_become_lines() {
    check(&[
        ("# Title\ntext", "<b>Title</b>\n\ntext"),
        ("one\n\n\n\ntwo", "one\n\ntwo"),
        ("- a\n- b\n  - c\n    - d\n- e", "• a\n• b\n  ◦ c\n    ▪ d\n• e"),
        ("3. a\n4. b\n   - c", "3. a\n4. b\n  ◦ c"),
        ("- a\n\n  more\n- b\n\nend", "• a\n  more\n• b\n\nend"),
        ("- [x] done\n- [ ] open", "☑ done\n☐ open"),
        ("a\n\n---\n\nb", "a\n\n———\n\nb"),
        ("before\n\n> quote", "before\n\n<blockquote>quote</blockquote>"),
        ("> quote\n\nend", "<blockquote>quote</blockquote>\n\nend"),
        ("- a\n  ```\n  x\n  ```", "• a\n<pre>x</pre>"),
    ]);
}

#[test]
fn code_keeps_its_white_space_and_its_language() {
    check(&[
        (
            "```rust,ignore\nfn a() {\n    b\n}\n```",
            "<pre><code class=\"language-rust\">fn a() {\n    b\n}</code></pre>",
        ),
        ("```\n  a & b\n\n\nc\n```\nend", "<pre>  a &amp; b\n\n\nc</pre>\n\nend"),
        ("```a\"b\nx\n```", "<pre>x</pre>"),
        ("```py\nunfinished", "<pre><code class=\"language-py\">unfinished</code></pre>"),
    ]);
}

#[test]
fn tables_are_drawn() {
    let markdown = "| Name | Qty |\n|:--|--:|\n| **apple** | 3 |\n| 梨 [x](https://y.z) | 12 |";
    let drawn = "<pre>Name               │ Qty\n\
                 ───────────────────┼────\n\
                 apple              │   3\n\
                 梨 x (https://y.z) │  12</pre>";
    assert_eq!(html(&parse(markdown)), drawn);
}

#[test]
fn text_that_would_render_as_nothing_is_shown_unchanged() {
    check(&[("", ""), ("[a]: https://b.c", "[a]: https://b.c"), ("```\n```", "```\n```")]);
}

#[test]
fn content_of_code_cannot_end_the_code() {
    let check = |text: &str, fence: &str| {
        assert_eq!(fenced(text), format!("{fence}\n{text}\n{fence}"));
    };
    check("ls", "```");
    check("a `b` ```` c", "`````");
}
