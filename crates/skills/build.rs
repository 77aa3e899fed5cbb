//! Triggers a rebuild when a file is added to the shipped skills. The embedding macro tracks only known files.

fn main() {
    println!("cargo::rerun-if-changed=../../skills/public");
}
