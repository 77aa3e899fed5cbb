//! Builds anew when a file is added to the shipped skills: the macro that embeds them sees only those that
//! it knew.

fn main() {
    println!("cargo::rerun-if-changed=../../skills/public");
}
