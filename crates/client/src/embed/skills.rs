//! Skills, as the gateway shows them.

use crate::{
    Client,
    base::UserId,
    skills::{SkillError, Skills},
    wire::skill::{InstalledSkill, ListedSkill, SkillList},
};
use pudu_kit::blocking;
use std::path::Path;

impl Client {
    /// Lists the shared skills, by name.
    pub async fn list_skills(&self) -> SkillList {
        SkillList { skills: self.catalog().await.entries.iter().map(ListedSkill::from).collect() }
    }

    /// Returns a shared skill.
    ///
    /// # Errors
    /// When there is none of this name.
    pub async fn get_skill(&self, name: &str) -> Result<ListedSkill, SkillError> {
        let catalog = self.catalog().await;
        catalog.get(name).map(ListedSkill::from).ok_or_else(|| SkillError::Unknown(name.to_owned()))
    }

    /// Enables or disables a skill, from the next run on: one of this user's, or, for [`UserId::local`], a shared one.
    ///
    /// # Errors
    /// When there is none of this name, or the state cannot be stored.
    pub async fn update_skill(
        &self,
        whose: &UserId,
        name: &str,
        enabled: bool,
    ) -> Result<ListedSkill, SkillError> {
        let (whose, name) = (whose.clone(), name.to_owned());
        let entry =
            self.with_skills(move |skills| skills.for_user(&whose).set_enabled(&name, enabled)).await?;
        Ok(ListedSkill::from(&entry))
    }

    /// Installs a shared skill from a local archive, after scanning it.
    ///
    /// # Errors
    /// When the archive is invalid, the scan blocks it, or the skill exists already.
    pub async fn install_skill(&self, archive: &Path) -> Result<InstalledSkill, SkillError> {
        let archive = archive.to_owned();
        self.with_skills(move |skills| skills.install(&archive, false)).await.map(InstalledSkill::from)
    }

    /// Runs blocking work on skills.
    ///
    /// # Errors
    /// When the work fails.
    pub async fn with_skills<T: Send + 'static>(
        &self,
        work: impl FnOnce(Skills) -> Result<T, SkillError> + Send + 'static,
    ) -> Result<T, SkillError> {
        let skills = self.skills();
        let broken = |error| SkillError::Io { path: "skills".into(), why: std::io::Error::other(error) };
        blocking(move || work(skills), broken).await
    }
}
