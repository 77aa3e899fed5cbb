//! Rebuilds when a file is added to the shipped skills: the embedding macro only tracks the files that it knew.

fn main() {
    println!("cargo::rerun-if-changed=../../skills/public");
}
