//! Import cycles: files of one crate that import each other, directly or indirectly. Cargo refuses cycles of crates but
//! not these, and a reader of one such file has to read them all.

use super::{is_test, none, root};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};
use syn::{
    Attribute, File, Item, ItemMod, ItemUse, Macro, Meta, UseTree, Visibility,
    ext::IdentExt as _,
    visit::{self, Visit},
};

/// Maximum number of modules, outside of the channels, that use their submodules and are used by them.
const MAX_FAMILIES: usize = 13;

/// The root files of the crates.
fn crates() -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> = fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().path().join("src/lib.rs"))
        .collect();
    roots.extend(["src/main.rs", "channels/src/lib.rs", "tests/main.rs"].map(|at| root().join(at)));
    roots.sort();
    roots
}

type Names = Vec<String>;

/// The files that each file uses, with the paths.
type Edges<'a> = BTreeMap<&'a Path, BTreeMap<&'a Path, BTreeSet<String>>>;

/// A module's source.
#[derive(Default)]
struct Module {
    file: PathBuf,
    /// Items that it defines.
    items: BTreeSet<String>,
    /// Imports and re-exports: the local name, and the path that it stands for.
    imports: BTreeMap<String, Names>,
    globs: Vec<Names>,
    /// All paths in its code, and all imports except for re-exports of submodules.
    paths: BTreeSet<Names>,
}

/// The modules of one crate by their paths from its root.
#[derive(Default)]
struct Modules(BTreeMap<Names, Module>);

impl Modules {
    fn read(root: &Path) -> Self {
        let mut modules = Self::default();
        modules.add_file(Vec::new(), root, root.parent().unwrap());
        modules
    }

    /// Adds a file's module and its submodules. `folder` contains the files of its children.
    fn add_file(&mut self, path: Names, file: &Path, folder: &Path) {
        let source = fs::read_to_string(file).unwrap();
        let parsed: File = syn::parse_file(&source).unwrap();
        self.add(path, file, folder, &parsed.items);
    }

    fn add(&mut self, path: Names, file: &Path, folder: &Path, items: &[Item]) {
        let mut reader = Reader::default();
        reader.module.file = file.to_owned();
        items.iter().for_each(|item| reader.visit_item(item));
        for child in reader.children {
            let name = child.ident.unraw().to_string();
            let below = [path.as_slice(), std::slice::from_ref(&name)].concat();
            let here = folder.join(&name);
            match &child.content {
                Some((_, items)) => self.add(below, file, &here, items),
                None => {
                    let named = value_of(&child.attrs, "path").map(|at| folder.join(at));
                    let file = named.unwrap_or_else(|| here.with_extension("rs"));
                    if !is_test(file.strip_prefix(folder).unwrap()) {
                        self.add_file(below, &file, &here);
                    }
                }
            }
        }
        self.0.insert(path, reader.module);
    }

    /// Finds the file with the definition of a path in a module.
    fn file_of(&self, module: &[String], path: &[String], depth: usize) -> Option<&Path> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.below(&[], rest, depth),
            "self" => self.below(module, rest, depth),
            "super" => self.below(module.split_last()?.1, rest, depth),
            _ => self.below(module, path, depth),
        }
    }

    /// Resolves a path in a module, following re-exports.
    fn below(&self, module: &[String], path: &[String], depth: usize) -> Option<&Path> {
        let here = self.0.get(module)?;
        let (first, rest) = path.split_first()?;
        if first == "super" {
            return self.file_of(module, path, depth);
        }
        let child = [module, std::slice::from_ref(first)].concat();
        if self.0.contains_key(&child) {
            return self.below(&child, rest, depth);
        }
        if here.items.contains(first) {
            return Some(&here.file);
        }
        let depth = depth.checked_sub(1)?;
        if let Some(stands_for) = here.imports.get(first).filter(|stands_for| *stands_for != path) {
            return self.file_of(module, &[stands_for, rest].concat(), depth);
        }
        here.globs.iter().find_map(|glob| self.file_of(module, &[glob, path].concat(), depth))
    }

    /// Lists for each file the files whose items it uses, and the paths.
    fn edges(&self) -> Edges<'_> {
        let mut edges = Edges::new();
        for (path, module) in &self.0 {
            let used =
                module.paths.iter().filter_map(|used| Some((self.file_of(path, used, 8)?, used.join("::"))));
            let from = edges.entry(&module.file).or_default();
            for (file, used) in used.filter(|(file, _)| *file != module.file) {
                from.entry(file).or_default().insert(used);
            }
        }
        edges
    }
}

/// Collects the definitions, imports and paths of one module.
#[derive(Default)]
struct Reader<'a> {
    module: Module,
    children: Vec<&'a ItemMod>,
}

impl<'a> Visit<'a> for Reader<'a> {
    fn visit_item(&mut self, item: &'a Item) {
        let (attributes, name) = match item {
            Item::Const(item) => (&item.attrs, Some(&item.ident)),
            Item::Enum(item) => (&item.attrs, Some(&item.ident)),
            Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
            Item::Macro(item) => (&item.attrs, item.ident.as_ref()),
            Item::Static(item) => (&item.attrs, Some(&item.ident)),
            Item::Struct(item) => (&item.attrs, Some(&item.ident)),
            Item::Trait(item) => (&item.attrs, Some(&item.ident)),
            Item::Type(item) => (&item.attrs, Some(&item.ident)),
            Item::Union(item) => (&item.attrs, Some(&item.ident)),
            Item::Impl(item) => (&item.attrs, None),
            Item::Mod(item) => (&item.attrs, None),
            Item::Use(item) => (&item.attrs, None),
            _ => return visit::visit_item(self, item),
        };
        if attributes.iter().any(is_for_tests) {
            return;
        }
        self.module.items.extend(name.map(|name| name.unraw().to_string()));
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, item: &'a ItemMod) {
        self.children.push(item);
    }

    fn visit_item_use(&mut self, item: &'a ItemUse) {
        self.import(&item.tree, &mut Vec::new(), matches!(item.vis, Visibility::Inherited));
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        self.module.paths.insert(path.segments.iter().map(|part| part.ident.unraw().to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'a Macro) {
        self.read_tokens(&call.tokens.to_string());
        visit::visit_macro(self, call);
    }

    /// Attributes may name functions in strings: `#[serde(default = "crate::config::yes")]`.
    fn visit_attribute(&mut self, attribute: &'a Attribute) {
        if let Meta::List(list) = &attribute.meta {
            self.read_tokens(&list.tokens.to_string().replace('"', " "));
        }
    }
}

impl Reader<'_> {
    fn import(&mut self, tree: &UseTree, prefix: &mut Names, private: bool) {
        match tree {
            UseTree::Path(tree) => {
                prefix.push(tree.ident.unraw().to_string());
                self.import(&tree.tree, prefix, private);
                prefix.pop();
            }
            UseTree::Name(tree) => self.import_as(&tree.ident.unraw().to_string(), None, prefix, private),
            UseTree::Rename(tree) => {
                let name = tree.ident.unraw().to_string();
                self.import_as(&name, Some(tree.rename.unraw().to_string()), prefix, private);
            }
            UseTree::Glob(_) => self.module.globs.push(prefix.clone()),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.import(tree, prefix, private)),
        }
    }

    fn import_as(&mut self, name: &str, rename: Option<String>, prefix: &[String], private: bool) {
        let mut full = prefix.to_vec();
        if name != "self" {
            full.push(name.to_owned());
        }
        let called = rename.or_else(|| full.last().cloned()).unwrap_or_default();
        if private {
            self.module.paths.insert(full.clone());
        }
        self.module.imports.insert(called, full);
    }

    /// Collects the paths in unparsed tokens.
    fn read_tokens(&mut self, tokens: &str) {
        let joined = tokens.replace(" :: ", "::").replace(":: ", "::");
        for word in joined.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')) {
            let path: Names = word.split("::").map(str::to_owned).collect();
            if path.len() > 1 && path.iter().all(|part| !part.is_empty() && !part.contains(':')) {
                self.module.paths.insert(path);
            }
        }
    }
}

fn is_for_tests(attribute: &Attribute) -> bool {
    match &attribute.meta {
        Meta::List(list) if attribute.path().is_ident("cfg") => list.tokens.to_string().contains("test"),
        _ => attribute.path().is_ident("test"),
    }
}

fn value_of(attributes: &[Attribute], name: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.path().is_ident(name))?;
    let Meta::NameValue(pair) = &found.meta else { return None };
    match &pair.value {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
        _ => None,
    }
}

/// Finds all sets of files that import each other.
fn strongly_connected<'a>(edges: &Edges<'a>) -> BTreeSet<BTreeSet<&'a Path>> {
    let reached = |from: &'a Path| {
        let mut found = BTreeSet::new();
        let mut open = vec![from];
        while let Some(file) = open.pop() {
            open.extend(edges[file].keys().filter(|next| found.insert(**next)));
        }
        found
    };
    let reached: BTreeMap<&Path, BTreeSet<&Path>> = edges.keys().map(|file| (*file, reached(file))).collect();
    let circle = |file| reached[file].iter().copied().filter(|other| reached[other].contains(file)).collect();
    edges.keys().map(|file| circle(*file)).filter(|circle: &BTreeSet<&Path>| circle.len() > 1).collect()
}

/// Returns whether a file belongs to a parent module of another file.
fn is_above(above: &Path, file: &Path) -> bool {
    let folder = match above.file_name().and_then(|name| name.to_str()) {
        Some("lib.rs" | "main.rs") => above.parent().unwrap().to_owned(),
        _ => above.with_extension(""),
    };
    above != file && file.starts_with(folder)
}

/// Classifies cycles: between unrelated files, or in a family of a module and its submodules. Without the imports of
/// the family's head, no cycle may remain in it.
fn sort<'a>(edges: &Edges<'a>, circles: &mut Vec<String>, families: &mut Vec<String>) {
    for circle in strongly_connected(edges) {
        let names: Vec<String> = circle.iter().map(|file| name(file)).collect();
        let head = circle.iter().find(|head| circle.iter().all(|file| file == *head || is_above(head, file)));
        let mut inside: Edges<'a> = circle.iter().map(|file| (*file, edges[file].clone())).collect();
        for used in inside.values_mut() {
            used.retain(|file, _| circle.contains(file) && Some(file) != head);
        }
        if head.is_some() {
            families.push(names.join(" "));
            sort(&inside, circles, families);
        } else {
            circles.extend(inside.iter().flat_map(|(file, used)| {
                used.iter().map(|(other, paths)| {
                    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
                    format!("{} uses {}: {}", name(file), name(other), paths.join(", "))
                })
            }));
            circles.push(String::new());
        }
    }
}

fn name(file: &Path) -> String {
    file.strip_prefix(root()).unwrap().display().to_string()
}

#[test]
fn no_files_import_each_other() {
    let (mut circles, mut families) = (Vec::new(), Vec::new());
    for crate_root in crates() {
        sort(&Modules::read(&crate_root).edges(), &mut circles, &mut families);
    }
    none("circles of files", &circles);
    families.retain(|files| !files.starts_with("channels/"));
    println!("{} families:\n{}", families.len(), families.join("\n"));
    assert!(families.len() <= MAX_FAMILIES, "more than {MAX_FAMILIES} families:\n{}", families.join("\n"));
}

#[test]
fn circles_are_found_over_inline_paths_attributes_and_re_exports() {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| fs::write(folder.path().join(file), text).unwrap();
    fs::create_dir(folder.path().join("room")).unwrap();
    write("lib.rs", "mod room; mod a; mod b; mod c; mod d; pub use b::Beta; #[cfg(test)] mod not_there;");
    write("a.rs", "pub struct Alpha(crate::Beta);");
    write("b.rs", "use crate::c; pub struct Beta; fn f() { println!(\"{}\", c::g()) }");
    write("c.rs", "pub fn g() {} #[serde(default = \"crate::a::Alpha::new\")] struct Gamma;");
    write("d.rs", "use super::a::*; fn h(_: Alpha) {} #[cfg(test)] mod tests { use crate::room; }");
    write("room.rs", "mod chair; pub struct Room; fn sit() { chair::sit() }");
    write("room/chair.rs", "use super::Room; pub fn sit() {}");
    let modules = Modules::read(&folder.path().join("lib.rs"));
    let edges = modules.edges();
    let found: Vec<Vec<String>> = strongly_connected(&edges)
        .iter()
        .map(|circle| circle.iter().map(|file| file.file_name().unwrap().display().to_string()).collect())
        .collect();
    assert_eq!(found, [vec!["a.rs", "b.rs", "c.rs"], vec!["chair.rs", "room.rs"]]);
    assert!(is_above(&folder.path().join("room.rs"), &folder.path().join("room/chair.rs")));
    assert!(!is_above(&folder.path().join("a.rs"), &folder.path().join("b.rs")));
}
