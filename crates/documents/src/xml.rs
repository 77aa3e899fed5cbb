//! Small XML documents as trees. Names have no namespaces.

use quick_xml::{
    Reader, XmlVersion,
    events::{BytesStart, Event},
};

/// Maximum depth of a tree.
const MAX_DEPTH: usize = 512;

/// Element of a tree.
#[derive(Debug, Default)]
pub(crate) struct Element {
    pub(crate) name: String,
    attributes: Vec<(String, String)>,
    pub(crate) children: Vec<XmlNode>,
}

/// Content of an element.
#[derive(Debug)]
pub(crate) enum XmlNode {
    Element(Element),
    Text(String),
}

impl Element {
    /// Parses a document up to the first error.
    pub(crate) fn parse(xml: &str) -> Self {
        let mut reader = Reader::from_str(xml);
        reader.config_mut().check_end_names = false;
        Self { children: children(&mut reader, 0), ..Self::default() }
    }

    /// Reads the element that has just begun, up to its end.
    pub(crate) fn read(reader: &mut Reader<&[u8]>, start: &BytesStart<'_>) -> Self {
        Self { children: children(reader, 0), ..Self::empty(start) }
    }

    fn empty(start: &BytesStart<'_>) -> Self {
        let mut attributes = start.attributes();
        let attributes = attributes.with_checks(false).flatten().map(|attribute| {
            let value = attribute.normalized_value(XmlVersion::Implicit1_0).unwrap_or_default();
            (attribute.key.local_name().as_ref().to_owned(), value.into_owned())
        });
        Self {
            name: start.local_name().as_ref().to_owned(),
            attributes: attributes.collect(),
            children: Vec::new(),
        }
    }

    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the values of all attributes with a name, in any namespace.
    pub(crate) fn attributes_named(&self, name: &str) -> impl Iterator<Item = &str> {
        self.attributes.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn elements(&self) -> impl Iterator<Item = &Self> {
        self.children.iter().filter_map(|child| match child {
            XmlNode::Element(element) => Some(element),
            XmlNode::Text(_) => None,
        })
    }

    /// Returns the first child with a name.
    pub(crate) fn child(&self, name: &str) -> Option<&Self> {
        self.elements().find(|child| child.name == name)
    }

    /// Returns all elements with a name below this one, in order, excluding ones nested in another match.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> Vec<&'a Self> {
        let mut found = Vec::new();
        for child in self.elements() {
            if child.name == name {
                found.push(child);
            } else {
                found.extend(child.all(name));
            }
        }
        found
    }

    /// Returns the text directly in this element.
    pub(crate) fn content(&self) -> String {
        let texts = self.children.iter().filter_map(|child| match child {
            XmlNode::Text(text) => Some(text.as_str()),
            XmlNode::Element(_) => None,
        });
        texts.collect()
    }

    /// Returns the text of all elements named `t` or `text`, with spaces between paragraphs.
    pub(crate) fn joined_text(&self) -> String {
        let mut words = String::new();
        self.collect_text(&mut words);
        words.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn collect_text(&self, words: &mut String) {
        for child in &self.children {
            match child {
                XmlNode::Text(text) if matches!(self.name.as_str(), "t" | "text") => words.push_str(text),
                XmlNode::Element(element) => element.collect_text(words),
                XmlNode::Text(_) => {}
            }
        }
        if matches!(self.name.as_str(), "p" | "br" | "tab" | "text") {
            words.push(' ');
        }
    }
}

/// Reads the content of an element up to its end. Elements deeper than [`MAX_DEPTH`] are omitted.
fn children(reader: &mut Reader<&[u8]>, depth: usize) -> Vec<XmlNode> {
    let mut children = Vec::new();
    loop {
        match reader.read_event() {
            Ok(Event::Start(start)) if depth < MAX_DEPTH => {
                let children_of = self::children(reader, depth + 1);
                children.push(XmlNode::Element(Element { children: children_of, ..Element::empty(&start) }));
            }
            Ok(Event::Start(start)) => {
                if reader.read_to_end(start.name()).is_err() {
                    return children;
                }
            }
            Ok(Event::Empty(start)) => children.push(XmlNode::Element(Element::empty(&start))),
            Ok(Event::Text(text)) => {
                children.push(XmlNode::Text(text.xml_content(XmlVersion::Implicit1_0).into_owned()));
            }
            Ok(Event::CData(text)) => {
                children.push(XmlNode::Text(text.xml_content(XmlVersion::Implicit1_0).into_owned()));
            }
            Ok(Event::GeneralRef(name)) => {
                let known = match name.resolve_char_ref() {
                    Ok(Some(c)) => c.to_string(),
                    _ => quick_xml::escape::resolve_xml_entity(&name).unwrap_or_default().to_owned(),
                };
                children.push(XmlNode::Text(known));
            }
            Ok(Event::End(_) | Event::Eof) | Err(_) => return children,
            Ok(_) => {}
        }
    }
}

/// Returns an attribute by its local name.
pub(crate) fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let mut all = tag.attributes();
    let found =
        all.with_checks(false).flatten().find(|attribute| attribute.key.local_name().as_ref() == name)?;
    found.normalized_value(XmlVersion::Implicit1_0).ok().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_end_at_the_maximum_depth_and_at_damage() {
        let deep = format!("{}<t>x</t>{}<t>after</t>", "<a>".repeat(100_000), "</a>".repeat(100_000));
        assert_eq!(Element::parse(&deep).joined_text(), "after");
        for (xml, expect) in [
            ("<p><t>a</t></p><p><t>b &amp; &#x20AC;</t></p>", "a b & €"),
            ("<t>a</t><t>b", "ab"),
            ("<t><![CDATA[<c>]]></t>", "<c>"),
            ("no xml", ""),
            ("<", ""),
        ] {
            assert_eq!(Element::parse(xml).joined_text(), expect, "{xml}");
        }
    }
}
