//! Converts MathML formulas to text: to the file's own annotation or, without one, to LaTeX.

use crate::xml::Element;

/// Returns a formula; `None` if it is empty.
pub(crate) fn text(math: &Element) -> Option<String> {
    let annotation = math.all("annotation").first().map(|note| note.content().trim().to_owned());
    let formula = annotation.filter(|note| !note.is_empty()).unwrap_or_else(|| content(math));
    let formula = formula.split_whitespace().collect::<Vec<_>>().join(" ");
    (!formula.is_empty()).then_some(formula)
}

fn content(element: &Element) -> String {
    element.elements().map(latex).collect()
}

fn latex(element: &Element) -> String {
    let parts: Vec<String> = element.elements().map(latex).collect();
    let part = |at: usize| parts.get(at).map_or("", String::as_str);
    match element.name.as_str() {
        "mi" | "mn" => element.content().trim().to_owned(),
        "mo" => match element.content().trim() {
            "|" => "\\vert ".to_owned(),
            sign @ ("{" | "}") => format!("\\{sign}"),
            sign => sign.to_owned(),
        },
        "mtext" => format!("\\text{{{}}}", element.content().trim()),
        "mfrac" => format!("\\frac{{{}}}{{{}}}", part(0), part(1)),
        "msqrt" => format!("\\sqrt{{{}}}", parts.concat()),
        "mroot" => format!("\\sqrt[{}]{{{}}}", part(1), part(0)),
        "msup" => format!("{{{}}}^{{{}}}", part(0), part(1)),
        "msub" => format!("{{{}}}_{{{}}}", part(0), part(1)),
        "msubsup" | "munderover" => format!("{{{}}}_{{{}}}^{{{}}}", part(0), part(1), part(2)),
        "munder" => format!("\\underset{{{}}}{{{}}}", part(1), part(0)),
        "mover" => format!("\\overset{{{}}}{{{}}}", part(1), part(0)),
        "mtable" => format!("\\begin{{matrix}}{}\\end{{matrix}}", parts.join(" \\\\ ")),
        "mtr" => parts.join(" & "),
        "annotation" | "annotation-xml" => String::new(),
        _ => parts.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_distinguished() {
        for (xml, expect) in [
            (
                "<math><mi>r</mi><mo>=</mo><mfrac><mn>0.07</mn><mn>12</mn></mfrac></math>",
                Some("r=\\frac{0.07}{12}"),
            ),
            (
                "<math><mrow><msqrt><msup><mi>b</mi><mn>2</mn></msup><mo>-</mo><mn>4</mn></msqrt></mrow></math>",
                Some("\\sqrt{{b}^{2}-4}"),
            ),
            ("<math><munderover><mo>∑</mo><mi>i</mi><mi>n</mi></munderover></math>", Some("{∑}_{i}^{n}")),
            (
                "<math><mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>2</mn></mtd></mtr><mtr><mtd><mn>3</mn></mtd></mtr></mtable></math>",
                Some("\\begin{matrix}1 & 2 \\\\ 3\\end{matrix}"),
            ),
            (
                "<math><semantics><mi>x</mi><annotation encoding=\"StarMath 5.0\">x over 2</annotation></semantics></math>",
                Some("x over 2"),
            ),
            ("<math/>", None),
        ] {
            let tree = Element::parse(xml);
            assert_eq!(tree.child("math").and_then(text).as_deref(), expect, "{xml}");
        }
    }
}
