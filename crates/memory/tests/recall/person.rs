//! The memory of one person in a private chat: statements and the facts that were learned from them, questions about
//! them, and everyday questions about other things. There are no names and few entries, so each word is rare.

use crate::{chinese::CHINESE, corpus::Language, english::ENGLISH};
use jiff::tz::TimeZone;
use pudu_memory::{FactTime, RECALL_LIMITS, RecallBudget, RecallableFact, choose_recalled};
use pudu_store::{Db, RecallEntry, RecallKind, RecallScope};
use serde::Deserialize;
use std::collections::HashSet;

/// A statement, and the fact that was learned from it.
#[derive(Deserialize)]
pub(crate) struct Learnt {
    said: String,
    fact: String,
}

pub(crate) struct PersonMemory {
    pub(crate) scope: RecallScope,
    learnt: Vec<Learnt>,
    pub(crate) language: &'static Language,
    /// Questions, each with a part of the fact that answers it.
    pub(crate) asked: &'static [(&'static str, &'static str)],
}

const ENGLISH_ASKED: &[(&str, &str)] = &[
    ("What is my dog called?", "Biscuit"),
    ("Which city do I live in?", "Tromsø"),
    ("What am I allergic to?", "penicillin"),
    ("On which day do I go climbing?", "climbing"),
    ("How many kids do we have?", "three kids"),
    ("Which languages do I speak?", "Portuguese"),
    ("Where do I work at night?", "night shifts at the port"),
    ("What's my favourite language?", "Elixir"),
    ("What car do I drive?", "Volvo"),
    ("Can my wife eat cheese?", "vegan"),
    ("Where did I grow up?", "Durban"),
    ("When can I deploy next?", "Deploys"),
    ("When is my birthday?", "3 April"),
    ("Which cloud do we use at work?", "AWS"),
    ("How is my Korean coming along?", "Korean"),
    ("What do I play in the band?", "bass"),
    ("Where is my bakery?", "Ghent"),
    ("What am I training for?", "Ironman"),
    ("Which pens should I add to my collection?", "fountain pens"),
    ("Who is my manager?", "Ines"),
    ("When do I have breakfast?", "breakfast"),
    ("Which Linux runs on my laptop?", "Fedora"),
    ("Where was I born?", "Izmir"),
    ("Which app do I keep my notes in?", "Obsidian"),
    ("How old is my son?", "Emil"),
    ("Find a Thai restaurant that I would love", "Thai food"),
    ("Which football club do I support?", "Everton"),
    ("Where are my bees?", "bees"),
    ("Do I eat pork?", "pork"),
    ("Do I drink alcohol?", "alcohol"),
    ("Do I have a car?", "no car"),
    ("What do I think of olives?", "olives"),
    ("When did I quit smoking?", "smoking"),
    ("Which editor did I switch to?", "Helix"),
    ("What do I prefer, Rust or Go?", "Rust over Go"),
    ("Should I plan with tea or coffee for me?", "tea"),
    ("Did I used to be a lawyer?", "lawyer"),
    ("What do you know about my sourdough?", "sourdough"),
    ("Where do I want to retire?", "retire"),
    ("How do I get to work, ferry or bus?", "ferry"),
];
const CHINESE_ASKED: &[(&str, &str)] = &[
    ("我的狗叫什么名字？", "豆豆"),
    ("我住在哪个城市？", "昆明"),
    ("我对什么过敏？", "青霉素"),
    ("我星期几去攀岩？", "攀岩"),
    ("我们有几个孩子？", "三个孩子"),
    ("我会说哪些语言？", "葡萄牙语"),
    ("我在哪里上夜班？", "夜班"),
    ("我最喜欢的编程语言是什么？", "Elixir"),
    ("我开什么车？", "沃尔沃"),
    ("我在哪里长大？", "大连"),
    ("我教什么课？", "数学"),
    ("我的生日是哪天？", "四月三号"),
    ("我们公司用什么聊天软件？", "飞书"),
    ("我学韩语多久了？", "韩语"),
    ("我在乐队里做什么？", "贝斯"),
    ("我收集什么？", "钢笔"),
    ("我几点吃早饭？", "早饭"),
    ("我怎么去上班？", "渡轮"),
    ("我儿子多大了？", "小宝"),
    ("我吃猪肉吗？", "猪肉"),
    ("我喝酒吗？", "酒"),
    ("我以前做什么工作，是律师吗？", "律师"),
    ("我什么时候戒的烟？", "烟"),
    ("我喜欢猫还是狗？", "猫"),
    ("我家的狗", "豆豆"),
];

/// Indexes the memory of two people, one for each language.
pub(crate) async fn keep(db: &Db) -> Vec<PersonMemory> {
    let tables = [
        (&ENGLISH, ENGLISH_ASKED, include_str!("../../../../tests/memory/claims/honest.en.jsonl")),
        (&CHINESE, CHINESE_ASKED, include_str!("../../../../tests/memory/claims/honest.zh.jsonl")),
    ];
    let mut all = Vec::new();
    for (number, (language, asked, table)) in tables.into_iter().enumerate() {
        let learnt: Vec<Learnt> = table.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let scope = crate::found::scope(&format!("person-{number}"));
        let memory = PersonMemory { scope, learnt, language, asked };
        db.index(&memory.entries()).await.unwrap();
        all.push(memory);
    }
    all
}

/// Indexes the memory of a person with these messages, each of which is also a fact.
#[allow(dead_code, reason = "the bench has no such lines")]
pub(crate) async fn keep_lines(db: &Db, lines: &[&str]) -> PersonMemory {
    let learnt = lines.iter().map(|line| Learnt { said: (*line).to_owned(), fact: (*line).to_owned() });
    let scope = crate::found::scope("person-of-reports");
    let memory = PersonMemory { scope, learnt: learnt.collect(), language: &ENGLISH, asked: &[] };
    db.index(&memory.entries()).await.unwrap();
    memory
}

impl PersonMemory {
    fn entries(&self) -> Vec<RecallEntry> {
        let entry = |kind, doc: usize, text: &str| RecallEntry {
            scope: self.scope.clone(),
            kind,
            doc: doc.to_string(),
            thread: String::new(),
            author: "Robin".into(),
            at: i64::try_from(doc).unwrap() * 86_400_000,
            confidence: 0.9,
            text: text.to_owned(),
        };
        let facts = self.learnt.iter().enumerate().map(|(at, line)| entry(RecallKind::Fact, at, &line.fact));
        let turns = self.learnt.iter().enumerate().map(|(at, line)| entry(RecallKind::Turn, at, &line.said));
        // The person has asked the same questions before.
        let asked = self.others().enumerate().map(|(at, text)| entry(RecallKind::Turn, at + 1_000, text));
        facts.chain(turns).chain(asked).collect()
    }

    /// Questions about other things.
    pub(crate) fn others(&self) -> impl Iterator<Item = &'static str> {
        self.language.unrelated.iter().chain(self.language.everyday).copied()
    }

    /// Returns the lines that a question recalls.
    pub(crate) async fn recalled(&self, db: &Db, question: &str) -> Vec<String> {
        let hits = db.recall(&self.scope, question, RECALL_LIMITS).await.unwrap();
        let ids: Vec<String> = (0..self.learnt.len()).map(|at| at.to_string()).collect();
        let fact = |(id, line): (&'_ String, &'_ Learnt)| (id.clone(), line.fact.clone());
        let texts: Vec<(String, String)> = ids.iter().zip(&self.learnt).map(fact).collect();
        let facts: Vec<RecallableFact<'_>> = texts
            .iter()
            .map(|(id, text)| RecallableFact {
                id,
                category: "context",
                confidence: 0.9,
                text,
                at: FactTime::default(),
                author: None,
            })
            .collect();
        let budget = RecallBudget { question, tokens: 2_000, given: &HashSet::new(), zone: &TimeZone::UTC };
        let recalled = choose_recalled(&hits, &facts, &budget);
        recalled.facts.into_iter().chain(recalled.turns).collect()
    }

    /// Counts the questions whose fact is recalled, and the unrelated ones that recall anything, each with its total.
    pub(crate) async fn measure(&self, db: &Db) -> ((usize, usize), (usize, usize)) {
        let (mut found, mut false_recalls) = (0, 0);
        for (question, piece) in self.asked {
            let recalled = self.recalled(db, question).await;
            let is_there = recalled.iter().any(|line| line.contains(piece));
            if !is_there {
                println!("  missed: {question} / {piece}");
            }
            found += usize::from(is_there);
        }
        for question in self.others() {
            let recalled = self.recalled(db, question).await;
            if !recalled.is_empty() {
                println!("  false: {question} -> {:?}", recalled.first());
            }
            false_recalls += usize::from(!recalled.is_empty());
        }
        ((found, self.asked.len()), (false_recalls, self.others().count()))
    }
}
