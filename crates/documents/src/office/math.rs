//! Formulas of Office documents (OMML) as LaTeX. Letters and symbols stay unchanged.

use crate::xml::Element;

/// Operators over a range, and their commands.
const OPERATORS: [(&str, &str); 12] = [
    ("∑", "\\sum"),
    ("∏", "\\prod"),
    ("∐", "\\coprod"),
    ("∫", "\\int"),
    ("∬", "\\iint"),
    ("∭", "\\iiint"),
    ("∮", "\\oint"),
    ("⋃", "\\bigcup"),
    ("⋂", "\\bigcap"),
    ("⋁", "\\bigvee"),
    ("⋀", "\\bigwedge"),
    ("⨁", "\\bigoplus"),
];
/// Accents, and their commands.
const ACCENTS: [(&str, &str); 12] = [
    ("\u{302}", "\\hat"),
    ("\u{303}", "\\tilde"),
    ("\u{304}", "\\bar"),
    ("\u{305}", "\\overline"),
    ("\u{306}", "\\breve"),
    ("\u{307}", "\\dot"),
    ("\u{308}", "\\ddot"),
    ("\u{30C}", "\\check"),
    ("\u{300}", "\\grave"),
    ("\u{301}", "\\acute"),
    ("\u{20D7}", "\\vec"),
    ("\u{20DB}", "\\dddot"),
];
/// Names of functions that are LaTeX commands.
const FUNCTIONS: [&str; 23] = [
    "sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "log",
    "ln", "lg", "exp", "lim", "max", "min", "sup", "inf", "det", "gcd",
];

/// Returns a formula, or the formulas of a paragraph, as LaTeX.
pub(crate) fn latex(formula: &Element) -> String {
    if formula.name == "oMathPara" {
        let formulas = formula.elements().filter(|child| child.name == "oMath").map(content);
        return formulas.map(|formula| format!("$${formula}$$")).collect::<Vec<_>>().join(" ");
    }
    format!("${}$", content(formula))
}

/// Returns the content of an element.
fn content(element: &Element) -> String {
    let parts = element.elements().filter(|child| !child.name.ends_with("Pr")).map(convert);
    parts.collect::<String>().trim().to_owned()
}

/// Returns the content of a child; empty if there is no such child.
fn part(element: &Element, name: &str) -> String {
    element.child(name).map(content).unwrap_or_default()
}

/// Returns the value of a property, for example `chr` in `naryPr`.
fn property<'a>(element: &'a Element, name: &str) -> Option<&'a str> {
    let properties = element.elements().find(|child| child.name.ends_with("Pr"))?;
    Some(properties.child(name)?.attribute("val").unwrap_or_default())
}

/// Returns whether a property is enabled.
fn is_on(element: &Element, name: &str) -> bool {
    property(element, name).is_some_and(|value| !matches!(value, "0" | "off" | "false"))
}

fn convert(element: &Element) -> String {
    let part = |name| part(element, name);
    let base = || grouped(&part("e"));
    match element.name.as_str() {
        "r" => run(element),
        "f" => fraction(element),
        "rad" => match part("deg").as_str() {
            "" => format!("\\sqrt{{{}}}", part("e")),
            _ if is_on(element, "degHide") => format!("\\sqrt{{{}}}", part("e")),
            degree => format!("\\sqrt[{degree}]{{{}}}", part("e")),
        },
        "sSup" => format!("{}^{{{}}}", base(), part("sup")),
        "sSub" => format!("{}_{{{}}}", base(), part("sub")),
        "sSubSup" => format!("{}_{{{}}}^{{{}}}", base(), part("sub"), part("sup")),
        "sPre" => format!("{{}}_{{{}}}^{{{}}}{}", part("sub"), part("sup"), base()),
        "nary" => operator(element),
        "d" => delimited(element),
        "func" => format!("{} {}", function(&part("fName")), base()),
        "limLow" => match function(&part("e")) {
            name if name.starts_with('\\') => format!("{name}_{{{}}}", part("lim")),
            other => format!("\\underset{{{}}}{{{other}}}", part("lim")),
        },
        "limUpp" => format!("\\overset{{{}}}{{{}}}", part("lim"), part("e")),
        "bar" if property(element, "pos") == Some("top") => format!("\\overline{{{}}}", part("e")),
        "bar" => format!("\\underline{{{}}}", part("e")),
        "acc" => {
            let accent = property(element, "chr").unwrap_or("\u{302}");
            format!("{}{{{}}}", command(&ACCENTS, accent).unwrap_or("\\hat"), part("e"))
        }
        "groupChr" => match property(element, "chr").unwrap_or("⏟") {
            "⏟" => format!("\\underbrace{{{}}}", part("e")),
            "⏞" => format!("\\overbrace{{{}}}", part("e")),
            other => format!("\\overset{{{other}}}{{{}}}", part("e")),
        },
        "borderBox" => format!("\\boxed{{{}}}", part("e")),
        "m" => {
            let rows = element.elements().filter(|child| child.name == "mr");
            table("matrix", rows.map(|row| row.elements().map(content).collect::<Vec<_>>().join(" & ")))
        }
        "eqArr" => table("aligned", element.elements().filter(|child| child.name == "e").map(content)),
        _ => content(element),
    }
}

fn table(name: &str, rows: impl Iterator<Item = String>) -> String {
    let rows: Vec<String> = rows.collect();
    format!("\\begin{{{name}}}{}\\end{{{name}}}", rows.join(" \\\\ "))
}

fn command(known: &[(&str, &'static str)], sign: &str) -> Option<&'static str> {
    known.iter().find(|(other, _)| *other == sign).map(|(_, command)| *command)
}

/// Returns the text of a run. Non-mathematical text is marked.
fn run(element: &Element) -> String {
    let texts = element.elements().filter(|child| child.name == "t");
    let text: String = texts.map(|text| escaped(&text.content())).collect();
    if is_on(element, "nor") && text.chars().any(char::is_alphabetic) {
        format!("\\text{{{text}}}")
    } else {
        text
    }
}

/// Escapes characters that have a meaning in LaTeX or would end a table cell.
fn escaped(text: &str) -> String {
    let escape = |c: char| match c {
        '%' | '#' | '&' | '_' | '{' | '}' | '$' => format!("\\{c}"),
        '\\' => "\\backslash ".to_owned(),
        '|' => "\\vert ".to_owned(),
        '\n' | '\r' => " ".to_owned(),
        c => c.to_string(),
    };
    text.chars().map(escape).collect()
}

fn fraction(element: &Element) -> String {
    let (above, below) = (part(element, "num"), part(element, "den"));
    match property(element, "type") {
        Some("lin" | "skw") => format!("{}/{}", grouped(&above), grouped(&below)),
        Some("noBar") => format!("{{{above} \\atop {below}}}"),
        _ => format!("\\frac{{{above}}}{{{below}}}"),
    }
}

fn operator(element: &Element) -> String {
    let sign = property(element, "chr").unwrap_or("∫");
    let mut text = command(&OPERATORS, sign).unwrap_or(sign).to_owned();
    for (name, hidden, mark) in [("sub", "subHide", '_'), ("sup", "supHide", '^')] {
        let limit = part(element, name);
        if !limit.is_empty() && !is_on(element, hidden) {
            text.push_str(&format!("{mark}{{{limit}}}"));
        }
    }
    format!("{text} {}", grouped(&part(element, "e")))
}

fn delimited(element: &Element) -> String {
    let sign = |name, usual| match property(element, name).unwrap_or(usual) {
        "" => ".".to_owned(),
        "|" => "\\vert".to_owned(),
        sign @ ("{" | "}") => format!("\\{sign}"),
        sign => sign.to_owned(),
    };
    let between = match property(element, "sepChr").unwrap_or("|") {
        "|" => " \\vert ",
        other => other,
    };
    let parts: Vec<String> = element.elements().filter(|child| child.name == "e").map(content).collect();
    format!("\\left{} {} \\right{}", sign("begChr", "("), parts.join(between), sign("endChr", ")"))
}

fn function(name: &str) -> String {
    if FUNCTIONS.contains(&name) { format!("\\{name}") } else { name.to_owned() }
}

/// Returns a part, in braces if it has more than one character.
fn grouped(part: &str) -> String {
    if part.chars().count() == 1 { part.to_owned() } else { format!("{{{part}}}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn r(text: &str) -> String {
        format!("<m:r><m:t>{text}</m:t></m:r>")
    }

    #[test]
    fn formulas_are_converted_to_latex() {
        let (a, b, n) = (r("a"), r("b"), r("n"));
        for (omml, expect) in [
            (
                format!("{}<m:f><m:num>{a}</m:num><m:den>{}</m:den></m:f>", r("r="), r("12")),
                "r=\\frac{a}{12}",
            ),
            (
                format!(
                    "<m:f><m:fPr><m:type m:val=\"lin\"/></m:fPr><m:num>{a}</m:num><m:den>{b}</m:den></m:f>"
                ),
                "a/b",
            ),
            (
                format!(
                    "<m:f><m:fPr><m:type m:val=\"noBar\"/></m:fPr><m:num>{n}</m:num><m:den>{a}</m:den></m:f>"
                ),
                "{n \\atop a}",
            ),
            (
                format!("<m:rad><m:radPr><m:degHide m:val=\"1\"/></m:radPr><m:deg/><m:e>{a}</m:e></m:rad>"),
                "\\sqrt{a}",
            ),
            (format!("<m:rad><m:deg>{}</m:deg><m:e>{a}</m:e></m:rad>", r("3")), "\\sqrt[3]{a}"),
            (format!("<m:sSup><m:e>{}</m:e><m:sup>{}</m:sup></m:sSup>", r("ab"), r("2")), "{ab}^{2}"),
            (format!("<m:sSub><m:e>{a}</m:e><m:sub>{n}</m:sub></m:sSub>"), "a_{n}"),
            (
                format!("<m:sSubSup><m:e>{a}</m:e><m:sub>{n}</m:sub><m:sup>{b}</m:sup></m:sSubSup>"),
                "a_{n}^{b}",
            ),
            (format!("<m:sPre><m:sub>{n}</m:sub><m:sup>{b}</m:sup><m:e>{a}</m:e></m:sPre>"), "{}_{n}^{b}a"),
            (
                format!(
                    "<m:nary><m:naryPr><m:chr m:val=\"∑\"/></m:naryPr><m:sub>{}</m:sub><m:sup>{n}</m:sup><m:e>{a}</m:e></m:nary>",
                    r("i=1")
                ),
                "\\sum_{i=1}^{n} a",
            ),
            (format!("<m:nary><m:sub/><m:sup/><m:e>{a}</m:e></m:nary>"), "\\int a"),
            (format!("<m:d><m:e>{a}</m:e><m:e>{b}</m:e></m:d>"), "\\left( a \\vert b \\right)"),
            (
                format!(
                    "<m:d><m:dPr><m:begChr m:val=\"{{\"/><m:endChr m:val=\"\"/></m:dPr><m:e>{a}</m:e></m:d>"
                ),
                "\\left\\{ a \\right.",
            ),
            (format!("<m:func><m:fName>{}</m:fName><m:e>{a}</m:e></m:func>", r("sin")), "\\sin a"),
            (
                format!(
                    "<m:func><m:fName><m:limLow><m:e>{}</m:e><m:lim>{}</m:lim></m:limLow></m:fName><m:e>{a}</m:e></m:func>",
                    r("lim"),
                    r("n→∞")
                ),
                "\\lim_{n→∞} a",
            ),
            (
                format!("<m:acc><m:accPr><m:chr m:val=\"\u{20D7}\"/></m:accPr><m:e>{a}</m:e></m:acc>"),
                "\\vec{a}",
            ),
            (format!("<m:acc><m:e>{a}</m:e></m:acc>"), "\\hat{a}"),
            (
                format!("<m:bar><m:barPr><m:pos m:val=\"top\"/></m:barPr><m:e>{a}</m:e></m:bar>"),
                "\\overline{a}",
            ),
            (format!("<m:groupChr><m:e>{a}</m:e></m:groupChr>"), "\\underbrace{a}"),
            (
                format!(
                    "<m:m><m:mr><m:e>{a}</m:e><m:e>{b}</m:e></m:mr><m:mr><m:e>{b}</m:e><m:e>{a}</m:e></m:mr></m:m>"
                ),
                "\\begin{matrix}a & b \\\\ b & a\\end{matrix}",
            ),
            (
                format!("<m:eqArr><m:e>{a}</m:e><m:e>{b}</m:e></m:eqArr>"),
                "\\begin{aligned}a \\\\ b\\end{aligned}",
            ),
            ("<m:r><m:rPr><m:nor/></m:rPr><m:t>if 5% &lt; x</m:t></m:r>".to_owned(), "\\text{if 5\\% < x}"),
            (format!("<m:box><m:e>{}</m:e></m:box>", r("a|b_c")), "a\\vert b\\_c"),
            (format!("<m:unknown><m:e>{a}</m:e></m:unknown>"), "a"),
        ] {
            let tree = Element::parse(&format!("<m:oMath>{omml}</m:oMath>"));
            let formula = tree.child("oMath").map(latex);
            assert_eq!(formula, Some(format!("${expect}$")), "{omml}");
        }
        let two = Element::parse(&format!(
            "<m:oMathPara><m:oMathParaPr/><m:oMath>{a}</m:oMath><m:oMath>{b}</m:oMath></m:oMathPara>"
        ));
        assert_eq!(two.child("oMathPara").map(latex).as_deref(), Some("$$a$$ $$b$$"));
    }
}
