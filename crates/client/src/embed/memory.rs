//! Memory as one document, as in the gateway.

use crate::Client;
use pudu_agent::{MemoryOf, MemoryTrouble, memory};
use pudu_langgraph::memory::{AddedFact, FactChange};
use pudu_memory::{DocumentDetail, MemoryDocument};
use serde_json::{Value, json};

impl Client {
    /// Returns a memory. Each call reads its files again.
    ///
    /// # Errors
    /// If its files cannot be read.
    pub async fn get_memory(&self, of: &MemoryOf) -> Result<Value, MemoryTrouble> {
        document_to_json(self.agent().memories().read(of).await)
    }

    /// Same as [`Client::get_memory`], since there is no cache.
    ///
    /// # Errors
    /// If its files cannot be read.
    pub async fn reload_memory(&self, of: &MemoryOf) -> Result<Value, MemoryTrouble> {
        self.get_memory(of).await
    }

    /// Deletes a user's memory for all agents, and returns the empty memory.
    ///
    /// # Errors
    /// If its files cannot be written.
    pub async fn clear_memory(&self, of: &MemoryOf) -> Result<Value, MemoryTrouble> {
        self.agent().memories().forget_all(of).await?;
        self.get_memory(of).await
    }

    /// Returns the whole memory as one document for [`Client::import_memory`].
    ///
    /// # Errors
    /// If its files cannot be read.
    pub async fn export_memory(&self, of: &MemoryOf) -> Result<Value, MemoryTrouble> {
        self.agent().memories().export(of).await
    }

    /// Replaces a memory with a document, and returns the new memory.
    ///
    /// # Errors
    /// If the document is not a memory, or the files cannot be written.
    pub async fn import_memory(&self, of: &MemoryOf, document: Value) -> Result<Value, MemoryTrouble> {
        self.agent().memories().import(of, document).await?;
        self.get_memory(of).await
    }

    /// Stores a fact, and returns the memory with it.
    ///
    /// # Errors
    /// If the fact is empty, too long or already known, or the files cannot be written.
    pub async fn create_memory_fact(&self, of: &MemoryOf, fact: AddedFact) -> Result<Value, MemoryTrouble> {
        document_to_json(self.agent().memories().add(of, fact.into()).await)
    }

    /// Changes a fact, and returns the memory with it.
    ///
    /// # Errors
    /// If there is no fact with this id, the change is invalid, or the files cannot be written.
    pub async fn update_memory_fact(
        &self,
        of: &MemoryOf,
        id: &str,
        change: FactChange,
    ) -> Result<Value, MemoryTrouble> {
        document_to_json(self.agent().memories().edit(of, id, change.into()).await)
    }

    /// Deletes a fact, and returns the memory without it.
    ///
    /// # Errors
    /// If there is no fact with this id, or the files cannot be written.
    pub async fn delete_memory_fact(&self, of: &MemoryOf, id: &str) -> Result<Value, MemoryTrouble> {
        self.agent().memories().forget(of, id).await?;
        self.get_memory(of).await
    }

    /// Returns the memory settings.
    #[must_use]
    pub fn get_memory_config(&self) -> Value {
        let setup = self.agent().setup();
        let memory = setup.memory.as_ref();
        memory::settings(memory.map(|memory| (&memory.rules, memory.named.as_deref())))
    }

    /// Returns the memory settings and the memory.
    ///
    /// # Errors
    /// If its files cannot be read.
    pub async fn get_memory_status(&self, of: &MemoryOf) -> Result<Value, MemoryTrouble> {
        Ok(json!({ "config": self.get_memory_config(), "data": self.get_memory(of).await? }))
    }
}

fn document_to_json(document: Result<MemoryDocument, MemoryTrouble>) -> Result<Value, MemoryTrouble> {
    document.map(|document| document.to_json(DocumentDetail::Api))
}
