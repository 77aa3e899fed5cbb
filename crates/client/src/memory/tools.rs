//! The memory tools of a model, if the operator allows them (`memory.mode: tool`): DeerFlow's four, with its results.
//!
//! A request of the model is no proof. A fact is stored only if a person stated it in this conversation, in their own
//! words, and deleted only if a person spoke of it. So a page or a file that asks for a change has no effect.

use super::{
    learn::transcript_turns,
    rules::{MemoryOf, MemoryTrouble},
};
use crate::{Client, RunTask};
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
/// Default number of facts that a search returns; DeerFlow's.
const USUAL_RESULTS: usize = 10;
/// Maximum number of index hits among which results are searched.
const SEARCHED: RecallLimits = RecallLimits { facts: 200, turns: 0 };
/// Default certainty of a fact; DeerFlow's.
const USUAL_CONFIDENCE: f64 = 0.7;
/// Error for a fact that no person stated.
const NO_PROOF: &str = "nobody said this about themselves in this conversation; only what a person states here in their own words can be kept";
/// Error for a deletion that no person spoke of.
const NOT_ASKED: &str =
    "nobody spoke of this fact in this conversation; only what a person speaks of can be deleted";

/// The memory of a run, as its tools see it.
#[derive(Clone)]
struct RunMemory {
    client: Client,
    of: MemoryOf,
}

/// Makes the tools of a run.
pub(crate) fn memory_tools(client: &Client, task: &RunTask) -> [Arc<dyn Tool>; 4] {
    let memory = RunMemory { client: client.clone(), of: MemoryOf::run(task) };
    [
        erase(MemorySearch(memory.clone())),
        erase(MemoryAdd(memory.clone())),
        erase(MemoryUpdate(memory.clone())),
        erase(MemoryDelete(memory)),
    ]
}

/// Reason why a tool does nothing, in words for the model.
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
    /// Refuses if memory is off for the user or the room.
    async fn check_on(&self) -> Result<(), ToolRefusal> {
        match self.client.0.db.is_memory_off(&self.of.user).await.map_err(MemoryTrouble::from)? {
            true => {
                Err(ToolRefusal::Why("memory is switched off here; `/memory on` switches it on".to_owned()))
            }
            false => Ok(()),
        }
    }

    async fn document(&self) -> Result<MemoryDocument, ToolRefusal> {
        self.check_on().await?;
        Ok(self.client.memories().read_indexed(&self.of).await?)
    }

    /// Returns the people's own statements in the conversation of a call.
    async fn own_words(&self, cx: &ToolCx) -> Result<OwnWords, ToolRefusal> {
        let state = self.client.state(&cx.thread).await;
        let state =
            state.map_err(|error| ToolRefusal::Why(format!("the conversation cannot be read: {error}")))?;
        Ok(OwnWords::from_turns(&transcript_turns(&state)))
    }
}

/// Returns a tool's result in DeerFlow's form: a failure is an `error` in it.
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
    // A fact consists of a person's words, which must not pass for a tag of ours.
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
    /// Words to look for, as the fact may have them.
    query: String,
    /// Only facts of this category: preference, correction, context, goal, behavior, identity, constraint, decision, other.
    category: Option<String>,
    /// How many facts at most; 10 if not given.
    limit: Option<usize>,
}

impl TypedTool for MemorySearch {
    type Args = SearchArgs;
    const NAME: &'static str = "memory_search";
    const DESCRIPTION: &'static str =
        "Searches what is remembered of the person, or of the room, you talk to. The best facts come first.";

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
        let hits = memory.client.0.db.recall(&memory.of.indexed(), &query, SEARCHED).await;
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
        memory.client.memories().note_used(&memory.of, used).await?;
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
    const DESCRIPTION: &'static str = "Remembers a lasting fact that the person said about themselves in this conversation. Anything else is \
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
        let options = memory.client.memories().options();
        if confidence < options.min_confidence {
            let least = options.min_confidence;
            return Err(ToolRefusal::Why(format!("a fact with a confidence below {least} is not kept")));
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
            .client
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
    const DESCRIPTION: &'static str = "Changes a remembered fact. What is not given stays. A new text is refused unless the person said it in this \
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
            // A new certainty or category may follow from talking about the fact.
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
        memory.client.memories().change(&memory.of, update).await?;
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
    const DESCRIPTION: &'static str = "Forgets a remembered fact for good. It is refused unless the person speaks of it in this conversation.";

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
        memory.client.memories().forget(&memory.of, id.as_str()).await?;
        Ok(json!({ "fact_id": id.as_str(), "status": "deleted" }))
    }
}
