//! The memory tools of a model, if enabled (`memory.mode: tool`): DeerFlow's four, with the same results.
//!
//! A request of the model is not sufficient. A fact is stored only if a person stated it in this conversation, in their
//! own words, and deleted only if a person mentioned it. So a page or a file that asks for a change has no effect.

use super::{
    learn::transcript_turns,
    rules::{MemoryOf, MemoryTrouble},
};
use crate::{Agent, RunTask};
use pudu_base::{Tool, ToolCx, ToolError, ToolOutput, TypedTool, erase, foreign};
use pudu_memory::{
    Fact, FactCategory, FactEdit, FactId, FactSource, MemoryDocument, MemoryError, MemoryRefusal, NewFact,
    extract::OwnWords,
};
use pudu_store::RecallLimits;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Maximum number of facts that one search returns.
const MAX_RESULTS: usize = 50;
/// Default number of facts that a search returns, as in DeerFlow.
const USUAL_RESULTS: usize = 10;
/// Maximum number of index hits that a search considers.
const SEARCHED: RecallLimits = RecallLimits { facts: 200, turns: 0 };
/// Default certainty of a fact, as in DeerFlow.
const USUAL_CONFIDENCE: f64 = 0.7;
/// Error for storing a fact that no person stated.
const NO_PROOF: &str = "no person said this about themselves in this conversation; only statements that a person makes here in their own words can be stored";
/// Error for deleting a fact that no person mentioned.
const NOT_ASKED: &str =
    "no person mentioned this fact in this conversation; only facts that a person mentions can be deleted";

/// The memory of a run, for its tools.
#[derive(Clone)]
struct RunMemory {
    agent: Agent,
    of: MemoryOf,
}

/// Creates the tools of a run.
pub(crate) fn memory_tools(agent: &Agent, task: &RunTask) -> [Arc<dyn Tool>; 4] {
    let memory = RunMemory { agent: agent.clone(), of: MemoryOf::run(task) };
    [
        erase(MemorySearch(memory.clone())),
        erase(MemoryAdd(memory.clone())),
        erase(MemoryUpdate(memory.clone())),
        erase(MemoryDelete(memory)),
    ]
}

/// Why a tool does nothing, as text for the model.
enum ToolRefusal {
    Why(String),
    Trouble(MemoryTrouble),
}

impl From<MemoryTrouble> for ToolRefusal {
    fn from(trouble: MemoryTrouble) -> Self {
        Self::Trouble(trouble)
    }
}

impl From<MemoryRefusal> for ToolRefusal {
    fn from(refusal: MemoryRefusal) -> Self {
        Self::Trouble(MemoryError::from(refusal).into())
    }
}

impl RunMemory {
    /// Fails if memory is off for the user or the group.
    async fn check_on(&self) -> Result<(), ToolRefusal> {
        match self.agent.0.db.is_memory_off(&self.of.user).await.map_err(MemoryTrouble::from)? {
            true => Err(ToolRefusal::Why("memory is turned off here; `/memory on` turns it on".to_owned())),
            false => Ok(()),
        }
    }

    async fn document(&self) -> Result<MemoryDocument, ToolRefusal> {
        self.check_on().await?;
        Ok(self.agent.memories().read_indexed(&self.of).await?)
    }

    /// Returns people's own statements in the conversation of a call.
    async fn own_words(&self, cx: &ToolCx) -> Result<OwnWords, ToolRefusal> {
        let state = self.agent.state(&cx.thread).await;
        let state =
            state.map_err(|error| ToolRefusal::Why(format!("the conversation cannot be read: {error}")))?;
        Ok(OwnWords::from_turns(&transcript_turns(&state)))
    }
}

/// Returns a tool's result in DeerFlow's format, which reports a failure as `error`.
fn result(done: Result<Value, ToolRefusal>) -> Result<ToolOutput, ToolError> {
    let error = match done {
        Ok(value) => return Ok(value.to_string().into()),
        Err(ToolRefusal::Why(why)) => why,
        Err(ToolRefusal::Trouble(MemoryTrouble::Files(error))) => match error {
            MemoryError::Refused(why) => why.to_string(),
            MemoryError::UnknownFact(id) => format!("Memory fact '{id}' not found."),
            MemoryError::Conflict { .. } | MemoryError::Busy { .. } => {
                "Memory changed concurrently; reload and retry.".to_owned()
            }
            error => {
                tracing::error!(%error, "failed to use memory");
                "the memory cannot be read at the moment".to_owned()
            }
        },
        Err(ToolRefusal::Trouble(error)) => {
            tracing::error!(%error, "failed to use memory");
            "the memory cannot be read at the moment".to_owned()
        }
    };
    Ok(json!({ "error": error }).to_string().into())
}

fn fact_to_json(fact: &Fact) -> Value {
    // A fact is a person's text and must not be able to imitate pudu's tags.
    json!({
        "id": fact.id.as_str(),
        "content": foreign::text(&fact.content),
        "category": foreign::line(fact.category.label(), 60),
        "confidence": fact.confidence,
        "createdAt": fact.created_at.to_string(),
        "source": fact.source.text(),
    })
}

fn id(name: &str) -> Result<FactId, ToolRefusal> {
    let unknown = |_| MemoryTrouble::from(MemoryError::UnknownFact(name.to_owned()));
    Ok(FactId::new(name.trim()).map_err(unknown)?)
}

struct MemorySearch(RunMemory);

#[derive(Deserialize, JsonSchema)]
struct SearchArgs {
    /// Words to search for, as they may occur in the fact.
    query: String,
    /// Only facts of this category: preference, correction, context, goal, behavior, identity, constraint, decision, other.
    category: Option<String>,
    /// Maximum number of facts; 10 if not given.
    limit: Option<usize>,
}

impl TypedTool for MemorySearch {
    type Args = SearchArgs;
    const NAME: &'static str = "memory_search";
    const DESCRIPTION: &'static str =
        "Searches the memory of the person or the room that you talk to. Returns the best matches first.";

    async fn run(&self, args: SearchArgs, _: &ToolCx) -> Result<ToolOutput, ToolError> {
        result(self.search(args).await)
    }
}

impl MemorySearch {
    async fn search(&self, SearchArgs { query, category, limit }: SearchArgs) -> Result<Value, ToolRefusal> {
        let memory = &self.0;
        let document = memory.document().await?;
        let limit = limit.unwrap_or(USUAL_RESULTS).clamp(1, MAX_RESULTS);
        let wanted =
            category.as_deref().map(str::trim).filter(|name| !name.is_empty()).map(str::to_lowercase);
        let hits = memory.agent.0.db.recall(&memory.of.indexed(), &query, SEARCHED).await;
        let hits = hits.map_err(MemoryTrouble::from)?.facts;
        let found =
            hits.iter().filter_map(|hit| document.facts.iter().find(|fact| fact.id.as_str() == hit.doc));
        let mut facts: Vec<&Fact> = found.collect();
        if facts.is_empty() && !query.trim().is_empty() {
            facts = document.containing(&query);
        }
        facts.retain(|fact| {
            wanted.as_ref().is_none_or(|name| {
                fact.category.label().to_lowercase() == *name || fact.category.name() == name
            })
        });
        facts.truncate(limit);
        let used = facts.iter().map(|fact| fact.id.clone()).collect();
        memory.agent.memories().note_used(&memory.of, used).await?;
        let results: Vec<Value> = facts.into_iter().map(fact_to_json).collect();
        Ok(json!({ "count": results.len(), "results": results }))
    }
}

struct MemoryAdd(RunMemory);

#[derive(Deserialize, JsonSchema)]
struct AddArgs {
    /// The fact: one sentence about the person, in their language and words, understood without the conversation.
    content: String,
    /// Its category: preference, correction, context, goal, behavior, identity, constraint, decision, other; context if not given.
    category: Option<String>,
    /// How certain it is, from 0 to 1; 0.7 if not given.
    confidence: Option<f64>,
}

impl TypedTool for MemoryAdd {
    type Args = AddArgs;
    const NAME: &'static str = "memory_add";
    const DESCRIPTION: &'static str = "Stores a lasting fact that the person said about themselves in this conversation. Anything else is \
         refused.";

    async fn run(&self, args: AddArgs, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        result(self.add(args, cx).await)
    }
}

impl MemoryAdd {
    async fn add(&self, args: AddArgs, cx: &ToolCx) -> Result<Value, ToolRefusal> {
        let memory = &self.0;
        memory.check_on().await?;
        let confidence = args.confidence.unwrap_or(USUAL_CONFIDENCE);
        let options = memory.agent.memories().options();
        if confidence < options.min_confidence {
            let least = options.min_confidence;
            return Err(ToolRefusal::Why(format!("a fact with a confidence below {least} is not stored")));
        }
        let content = args.content.trim().to_owned();
        if content.is_empty() {
            return Err(MemoryRefusal::EmptyContent.into());
        }
        let origin = memory.own_words(cx).await?.proof(&content);
        let origin = origin.ok_or_else(|| ToolRefusal::Why(NO_PROOF.to_owned()))?;
        let new = NewFact {
            content,
            category: FactCategory::parse(args.category.as_deref().unwrap_or("context"), None),
            confidence,
            source: FactSource::conversation(cx.thread.as_str()),
            origin: Some(origin),
        };
        let (id, _) = memory
            .agent
            .memories()
            .change(&memory.of, move |store, scope, now| store.add(scope, new, now))
            .await?;
        Ok(json!({ "fact_id": id.as_str(), "status": "added" }))
    }
}

struct MemoryUpdate(RunMemory);

#[derive(Deserialize, JsonSchema)]
struct UpdateArgs {
    /// The fact's id, as memory_search shows it.
    fact_id: String,
    /// Its new text: one sentence in the person's language and words.
    content: Option<String>,
    /// Its new category.
    category: Option<String>,
    /// Its new certainty, from 0 to 1.
    confidence: Option<f64>,
}

impl TypedTool for MemoryUpdate {
    type Args = UpdateArgs;
    const NAME: &'static str = "memory_update";
    const DESCRIPTION: &'static str = "Changes a stored fact. Omitted fields stay unchanged. A new text is refused unless the person said it in this \
         conversation.";

    async fn run(&self, args: UpdateArgs, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        result(self.update(args, cx).await)
    }
}

impl MemoryUpdate {
    async fn update(&self, args: UpdateArgs, cx: &ToolCx) -> Result<Value, ToolRefusal> {
        let memory = &self.0;
        let (document, id) = (memory.document().await?, id(&args.fact_id)?);
        let own = memory.own_words(cx).await?;
        let fact = document.fact(&id);
        let fact = fact.ok_or_else(|| MemoryTrouble::from(MemoryError::UnknownFact(id.to_string())))?;
        let is_proven = match &args.content {
            Some(content) => content.trim() == fact.content || own.proof(content).is_some(),
            // To change only the certainty or the category, it is enough that a person mentioned the fact.
            None => own.speak_of(&fact.content),
        };
        if !is_proven {
            return Err(ToolRefusal::Why(NO_PROOF.to_owned()));
        }
        let edit = FactEdit {
            content: args.content,
            category: args.category.map(|name| FactCategory::parse(&name, None)),
            confidence: args.confidence,
            revision: Some(fact.revision),
        };
        let changed = id.clone();
        let update = move |store: &pudu_memory::MemoryStore, scope: &pudu_memory::MemoryScope, now| {
            Ok(((), store.update(scope, &changed, edit, now)?))
        };
        memory.agent.memories().change(&memory.of, update).await?;
        Ok(json!({ "fact_id": id.as_str(), "status": "updated" }))
    }
}

struct MemoryDelete(RunMemory);

#[derive(Deserialize, JsonSchema)]
struct DeleteArgs {
    /// The fact's id, as memory_search shows it.
    fact_id: String,
}

impl TypedTool for MemoryDelete {
    type Args = DeleteArgs;
    const NAME: &'static str = "memory_delete";
    const DESCRIPTION: &'static str =
        "Deletes a stored fact permanently. Refused unless the person mentions it in this conversation.";

    async fn run(&self, args: DeleteArgs, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        result(self.delete(&args, cx).await)
    }
}

impl MemoryDelete {
    async fn delete(&self, args: &DeleteArgs, cx: &ToolCx) -> Result<Value, ToolRefusal> {
        let memory = &self.0;
        let (document, id) = (memory.document().await?, id(&args.fact_id)?);
        let fact = document.fact(&id);
        let fact = fact.ok_or_else(|| MemoryTrouble::from(MemoryError::UnknownFact(id.to_string())))?;
        if !memory.own_words(cx).await?.speak_of(&fact.content) {
            return Err(ToolRefusal::Why(NOT_ASKED.to_owned()));
        }
        memory.agent.memories().forget(&memory.of, id.as_str()).await?;
        Ok(json!({ "fact_id": id.as_str(), "status": "deleted" }))
    }
}
