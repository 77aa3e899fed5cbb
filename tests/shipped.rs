//! Built-in skills and others of the same name: the program's lists, its doctor and installation.

use crate::{house::House, skills::archive};

#[tokio::test]
async fn a_shipped_skill_gives_way_to_one_of_its_name_and_nothing_calls_it_broken() {
    let house = House::build("").await;
    std::fs::write(
        house.path("own.skill"),
        archive(&[("SKILL.md", "---\nname: code-review\ndescription: Ours\n---\nx\n")]),
    )
    .unwrap();
    let (well, said) = house.pudu(&["skill", "install", "own.skill"]);
    assert!(!well && said.contains("`pudu skill install --replace`"), "{said}");
    let (well, said) = house.pudu(&["skill", "install", "own.skill", "--replace"]);
    assert!(well && said.contains("Installed code-review"), "{said}");
    let (_, list) = house.pudu(&["skill", "list"]);
    let used = list.lines().find(|line| line.contains("Ours")).unwrap_or_else(|| panic!("{list}"));
    assert!(used.starts_with("on   custom  code-review"), "{list}");
    assert!(!list.contains("BROKEN") && list.contains("hidden       code-review"), "{list}");
    let (_, found) = house.pudu(&["doctor"]);
    assert!(!found.contains("give it another name"), "{found}");
    assert!(found.contains("1 built-in ones replaced by installed ones"), "{found}");
    house.pudu(&["skill", "remove", "code-review"]);
    let (_, list) = house.pudu(&["skill", "list"]);
    assert!(!list.contains("hidden") && !list.contains("Ours"), "{list}");
}
