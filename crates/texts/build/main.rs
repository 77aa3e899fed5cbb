//! Generates functions from the catalogues, so that a missing text or argument is a build error, and unused texts cost
//! nothing.

mod catalogue;
mod functions;

use catalogue::Catalogue;
use std::{env, error::Error, fs, path::Path};

/// Variant of `Language` and file of each catalogue. The first catalogue defines the names of the texts.
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
