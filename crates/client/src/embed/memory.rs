//! Memory, as the gateway shows it: one document.

use crate::{
    Client, MemoryOf, MemoryTrouble,
    memories::{DocumentDetail, MemoryDocument},
    memory,
    wire::memory::{AddedFact, FactChange},
};
use serde_json::{Value, json};

impl Client {
    /// Returns a memory, read again at each call.
    ///
    /// # Errors
    /// When its files cannot be read.
    pub async fn get_memory(&self, of: &MemoryOf) -> Result<Value, MemoryTrouble> {
        document_to_json(self.memories().read(of).await)
    }

    /// Returns a memory, as [`Client::get_memory`] does: there is no cache to clear.
    ///
    /// # Errors
    /// When its files cannot be read.
    pub async fn reload_memory(&self, of: &MemoryOf) -> Result<Value, MemoryTrouble> {
        self.get_memory(of).await
    }

    /// Deletes all memory of a user, of every agent, and returns the empty memory.
    ///
    /// # Errors
    /// When its files cannot be written.
    pub async fn clear_memory(&self, of: &MemoryOf) -> Result<Value, MemoryTrouble> {
        self.memories().forget_all(of).await?;
        self.get_memory(of).await
    }

    /// Returns the whole memory as one document, which [`Client::import_memory`] reads.
    ///
    /// # Errors
    /// When its files cannot be read.
    pub async fn export_memory(&self, of: &MemoryOf) -> Result<Value, MemoryTrouble> {
        self.memories().export(of).await
    }

    /// Replaces a memory by a document, and returns the new memory.
    ///
    /// # Errors
    /// When it is not such a document, or the files cannot be written.
    pub async fn import_memory(&self, of: &MemoryOf, document: Value) -> Result<Value, MemoryTrouble> {
        self.memories().import(of, document).await?;
        self.get_memory(of).await
    }

    /// Stores a fact, and returns the memory with it.
    ///
    /// # Errors
    /// When it is empty, too long or already known, or the files cannot be written.
    pub async fn create_memory_fact(&self, of: &MemoryOf, fact: AddedFact) -> Result<Value, MemoryTrouble> {
        document_to_json(self.memories().add(of, fact.into()).await)
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
        document_to_json(self.memories().edit(of, id, change.into()).await)
    }

    /// Deletes a fact, and returns the memory without it.
    ///
    /// # Errors
    /// When there is none with that id, or its files cannot be written.
    pub async fn delete_memory_fact(&self, of: &MemoryOf, id: &str) -> Result<Value, MemoryTrouble> {
        self.memories().forget(of, id).await?;
        self.get_memory(of).await
    }

    /// Returns the settings of memory.
    #[must_use]
    pub fn get_memory_config(&self) -> Value {
        let setup = self.setup();
        let memory = setup.memory.as_ref();
        memory::settings(memory.map(|memory| (&memory.rules, memory.named.as_deref())))
    }

    /// Returns the settings of memory, and the memory.
    ///
    /// # Errors
    /// When its files cannot be read.
    pub async fn get_memory_status(&self, of: &MemoryOf) -> Result<Value, MemoryTrouble> {
        Ok(json!({ "config": self.get_memory_config(), "data": self.get_memory(of).await? }))
    }
}

fn document_to_json(document: Result<MemoryDocument, MemoryTrouble>) -> Result<Value, MemoryTrouble> {
    document.map(|document| document.to_json(DocumentDetail::Api))
}
