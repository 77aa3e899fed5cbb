//! Makes functions of the catalogues, so that a text that is missing somewhere, or an argument, is an error of the
//! build, and a text costs nothing before it is used.

mod catalogue;
mod functions;

use catalogue::Catalogue;
use std::{env, error::Error, fs, path::Path};

/// The catalogues: the variant of `Language` and the file. The first one decides the names.
const CATALOGUES: [(&str, &str); 2] = [("English", "catalogue/en.ftl"), ("Chinese", "catalogue/zh-Hans.ftl")];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build");
    let mut catalogues = Vec::new();
    for (language, path) in CATALOGUES {
        println!("cargo::rerun-if-changed={path}");
        catalogues.push(Catalogue::parse(language, path, &fs::read_to_string(path)?)?);
    }
    let source = functions::functions(&catalogues)?;
    fs::write(Path::new(&env::var("OUT_DIR")?).join("texts.rs"), source)?;
    Ok(())
}
