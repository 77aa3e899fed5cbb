//! Skills, as the gateway shows them.

use crate::Client;
use pudu_base::UserId;
use pudu_kit::blocking;
use pudu_langgraph::skill::{InstalledSkill, ListedSkill, SkillList};
use pudu_skills::{SkillError, Skills};
use std::path::Path;

impl Client {
    /// Lists the shared skills, by name.
    pub async fn list_skills(&self) -> SkillList {
        SkillList { skills: self.agent().catalog().await.entries.iter().map(ListedSkill::from).collect() }
    }

    /// Returns a shared skill.
    ///
    /// # Errors
    /// If there is no skill with this name.
    pub async fn get_skill(&self, name: &str) -> Result<ListedSkill, SkillError> {
        let catalog = self.agent().catalog().await;
        catalog.get(name).map(ListedSkill::from).ok_or_else(|| SkillError::Unknown(name.to_owned()))
    }

    /// Enables or disables a user's own skill, or a shared one for [`UserId::local`]. This takes effect with the next
    /// run.
    ///
    /// # Errors
    /// If there is no skill with this name, or the state cannot be stored.
    pub async fn update_skill(
        &self,
        user: &UserId,
        name: &str,
        enabled: bool,
    ) -> Result<ListedSkill, SkillError> {
        let (user, name) = (user.clone(), name.to_owned());
        let entry =
            self.with_skills(move |skills| skills.for_user(&user).set_enabled(&name, enabled)).await?;
        Ok(ListedSkill::from(&entry))
    }

    /// Installs a shared skill from a local archive, after scanning it.
    ///
    /// # Errors
    /// If the archive is invalid, the scan blocks it, or the skill exists already.
    pub async fn install_skill(&self, archive: &Path) -> Result<InstalledSkill, SkillError> {
        let archive = archive.to_owned();
        self.with_skills(move |skills| skills.install(&archive, false)).await.map(InstalledSkill::from)
    }

    /// Runs blocking work on skills.
    ///
    /// # Errors
    /// If the work fails.
    pub async fn with_skills<T: Send + 'static>(
        &self,
        work: impl FnOnce(Skills) -> Result<T, SkillError> + Send + 'static,
    ) -> Result<T, SkillError> {
        let skills = self.agent().skills();
        let broken = |error| SkillError::Io { path: "skills".into(), why: std::io::Error::other(error) };
        blocking(move || work(skills), broken).await
    }
}
