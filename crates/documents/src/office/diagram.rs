//! Texts of SmartArt, from the data part of a diagram.

use crate::xml::Element;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum nesting depth of texts.
const MAX_DEPTH: usize = 8;

/// Returns the texts of a diagram in its order, each with its level, starting at 0.
pub(crate) fn texts(data: &str) -> Vec<(usize, String)> {
    let tree = Element::parse(data);
    let points = tree.all("pt");
    let words: BTreeMap<&str, String> = points
        .iter()
        .filter_map(|point| Some((point.attribute("modelId")?, point.child("t")?.joined_text())))
        .filter(|(_, words)| !words.is_empty())
        .collect();
    let mut below: BTreeMap<&str, Vec<(usize, &str)>> = BTreeMap::new();
    for connection in tree.all("cxn") {
        let parent_of = connection.attribute("type").unwrap_or("parOf") == "parOf";
        let ends = connection.attribute("srcId").zip(connection.attribute("destId"));
        if let (true, Some((from, to))) = (parent_of, ends) {
            let order = connection.attribute("srcOrd").and_then(|order| order.parse().ok()).unwrap_or(0);
            below.entry(from).or_default().push((order, to));
        }
    }
    below.values_mut().for_each(|children| children.sort_unstable());
    let mut walk = DiagramWalk { words: &words, below: &below, seen: BTreeSet::new(), texts: Vec::new() };
    let documents = points.iter().filter(|point| point.attribute("type") == Some("doc"));
    documents.filter_map(|point| point.attribute("modelId")).for_each(|id| walk.children(id, 0));
    // Points without incoming connections.
    points.iter().filter_map(|point| point.attribute("modelId")).for_each(|id| walk.visit(id, 0));
    walk.texts
}

struct DiagramWalk<'a> {
    words: &'a BTreeMap<&'a str, String>,
    below: &'a BTreeMap<&'a str, Vec<(usize, &'a str)>>,
    seen: BTreeSet<&'a str>,
    texts: Vec<(usize, String)>,
}

impl<'a> DiagramWalk<'a> {
    fn visit(&mut self, id: &'a str, level: usize) {
        if !self.seen.insert(id) {
            return;
        }
        let words = self.words.get(id);
        self.texts.extend(words.map(|words| (level, words.clone())));
        self.children(id, level + usize::from(words.is_some()));
    }

    fn children(&mut self, id: &'a str, level: usize) {
        if level <= MAX_DEPTH {
            let below = self.below;
            below.get(id).into_iter().flatten().for_each(|(_, child)| self.visit(child, level));
        }
    }
}

/// Returns texts on one line, with nested ones in parentheses.
pub(crate) fn line(texts: &[(usize, String)]) -> String {
    let (mut line, mut depth) = (String::new(), 0);
    for (at, (level, words)) in texts.iter().enumerate() {
        if *level > depth {
            line.push_str(" (");
            depth += 1;
        } else {
            line.push_str(&")".repeat(depth - level));
            line.push_str(if at > 0 { "; " } else { "" });
            depth = *level;
        }
        line.push_str(words);
    }
    line + &")".repeat(depth)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(id: &str, kind: &str, text: &str) -> String {
        format!(
            "<dgm:pt modelId=\"{id}\" type=\"{kind}\"><dgm:t><a:p><a:r><a:t>{text}</a:t></a:r></a:p></dgm:t></dgm:pt>"
        )
    }

    fn connection(from: &str, to: &str, order: usize) -> String {
        format!("<dgm:cxn modelId=\"{from}{to}\" srcId=\"{from}\" destId=\"{to}\" srcOrd=\"{order}\"/>")
    }

    #[test]
    fn texts_have_the_order_and_depth_of_the_diagram() {
        let points = [
            point("d", "doc", ""),
            point("b", "node", "second"),
            point("a", "node", "first"),
            point("c", "node", "detail"),
            point("t", "sibTrans", ""),
            point("x", "node", "alone"),
        ]
        .concat();
        let connections = [
            connection("d", "a", 0),
            connection("d", "b", 1),
            connection("a", "c", 0),
            // A cycle terminates.
            connection("c", "a", 0),
        ]
        .concat();
        let data = format!(
            "<dgm:dataModel><dgm:ptLst>{points}</dgm:ptLst><dgm:cxnLst>{connections}</dgm:cxnLst></dgm:dataModel>"
        );
        assert_eq!(line(&texts(&data)), "first (detail); second; alone");
        let flat =
            format!("<m><ptLst>{}{}</ptLst></m>", point("0", "node", "one"), point("1", "node", "two"));
        assert_eq!(line(&texts(&flat)), "one; two");
        assert!(texts("<m><ptLst>").is_empty());
    }
}
