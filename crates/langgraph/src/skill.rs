//! Skills in the API's format, and the report of an installation.

use pudu_skills::{CatalogEntry, Finding, FindingSeverity, Installed};
use schemars::JsonSchema;
use serde::Serialize;

/// A skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Skill")]
pub struct ListedSkill {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// Its licence, if it names one.
    pub license: Option<String>,
    /// Its origin.
    pub category: &'static str,
    /// Whether agents can use it.
    pub enabled: bool,
    /// Whether its text can be changed.
    pub editable: bool,
}

/// The skills, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SkillList {
    /// The skills.
    pub skills: Vec<ListedSkill>,
}

/// An installed skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InstalledSkill {
    /// Whether the skill was installed: always true.
    pub success: bool,
    /// Its name.
    pub skill_name: String,
    /// The confirmation as text.
    pub message: String,
    /// Findings of the scan that do not block the skill.
    pub findings: Vec<ListedFinding>,
    /// Keys without effect, and texts and names that were repaired.
    pub notes: Vec<String>,
}

/// A finding of the scan of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ListedFinding {
    /// `warn` or `block`.
    pub severity: &'static str,
    /// The file.
    pub file: String,
    /// The line.
    pub line: u64,
    /// The rule that found it.
    pub rule: String,
    /// Description of the finding.
    pub what: String,
}

impl From<&CatalogEntry> for ListedSkill {
    fn from(entry: &CatalogEntry) -> Self {
        Self {
            name: entry.name.clone(),
            description: entry.about.clone(),
            license: entry.license.clone(),
            category: entry.category.name(),
            enabled: entry.enabled,
            editable: entry.editable,
        }
    }
}

impl From<Installed> for InstalledSkill {
    fn from(Installed { name, report, notes, .. }: Installed) -> Self {
        Self {
            success: true,
            message: format!("Skill '{name}' installed successfully"),
            findings: report.findings.iter().map(ListedFinding::from).collect(),
            skill_name: name,
            notes,
        }
    }
}

impl From<&Finding> for ListedFinding {
    fn from(finding: &Finding) -> Self {
        let severity = match finding.severity {
            FindingSeverity::Warn => "warn",
            FindingSeverity::Block => "block",
        };
        let Finding { file, line, rule, what, .. } = finding;
        Self {
            severity,
            file: file.clone(),
            line: *line as u64,
            rule: (*rule).to_owned(),
            what: what.clone(),
        }
    }
}
