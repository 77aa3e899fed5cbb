//! Memory, as the gateway shows it: one document.

use crate::{
    Client, MemoryOf, MemoryTrouble,
    memories::{DocumentDetail, MemoryDocument},
    wire::memory::{self, AddedFact, FactChange},
};
use serde_json::{Value, json};

impl Client {
    /// Returns what is remembered. It is read anew each time.
    ///
    /// # Errors
    /// When its files cannot be read.
    pub async fn get_memory(&self, of: &MemoryOf) -> Result<Value, MemoryTrouble> {
        shown(self.memories().read(of).await)
    }

    /// Returns what is remembered, as [`Client::get_memory`] does: nothing has to be forgotten before.
    ///
    /// # Errors
    /// When its files cannot be read.
    pub async fn reload_memory(&self, of: &MemoryOf) -> Result<Value, MemoryTrouble> {
        self.get_memory(of).await
    }

    /// Forgets everything that any agent remembers of a user, and returns what is left.
    ///
    /// # Errors
    /// When its files cannot be written.
    pub async fn clear_memory(&self, of: &MemoryOf) -> Result<Value, MemoryTrouble> {
        self.memories().forget_all(of).await?;
        self.get_memory(of).await
    }

    /// Returns everything as one document, which [`Client::import_memory`] reads.
    ///
    /// # Errors
    /// When its files cannot be read.
    pub async fn export_memory(&self, of: &MemoryOf) -> Result<Value, MemoryTrouble> {
        self.memories().export(of).await
    }

    /// Replaces what is remembered by a document, and returns what is remembered then.
    ///
    /// # Errors
    /// When it is none, or its files cannot be written.
    pub async fn import_memory(&self, of: &MemoryOf, document: Value) -> Result<Value, MemoryTrouble> {
        self.memories().import(of, document).await?;
        self.get_memory(of).await
    }

    /// Remembers a fact, and returns the memory with it.
    ///
    /// # Errors
    /// When it cannot be: it is empty, too long, known already, or its files cannot be written.
    pub async fn create_memory_fact(&self, of: &MemoryOf, fact: AddedFact) -> Result<Value, MemoryTrouble> {
        shown(self.memories().add(of, fact.into()).await)
    }

    /// Changes a fact, and returns the memory with it.
    ///
    /// # Errors
    /// When there is none with that id, it cannot be changed so, or its files cannot be written.
    pub async fn update_memory_fact(
        &self,
        of: &MemoryOf,
        id: &str,
        change: FactChange,
    ) -> Result<Value, MemoryTrouble> {
        shown(self.memories().edit(of, id, change.into()).await)
    }

    /// Forgets a fact, and returns the memory without it.
    ///
    /// # Errors
    /// When there is none with that id, or its files cannot be written.
    pub async fn delete_memory_fact(&self, of: &MemoryOf, id: &str) -> Result<Value, MemoryTrouble> {
        self.memories().forget(of, id).await?;
        self.get_memory(of).await
    }

    /// Returns how memory is set up.
    #[must_use]
    pub fn get_memory_config(&self) -> Value {
        let setup = self.setup();
        let memory = setup.memory.as_ref();
        memory::settings(memory.map(|memory| (&memory.rules, memory.named.as_deref())))
    }

    /// Returns how memory is set up, and what is remembered.
    ///
    /// # Errors
    /// When its files cannot be read.
    pub async fn get_memory_status(&self, of: &MemoryOf) -> Result<Value, MemoryTrouble> {
        Ok(json!({ "config": self.get_memory_config(), "data": self.get_memory(of).await? }))
    }
}

fn shown(document: Result<MemoryDocument, MemoryTrouble>) -> Result<Value, MemoryTrouble> {
    document.map(|document| document.to_json(DocumentDetail::Api))
}
