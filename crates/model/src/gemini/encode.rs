//! Encodes requests for the wire. Messages are borrowed: a long thread is serialized without being copied. Each request
//! repeats the bytes of the previous one.

use super::{
    decode::SIGNATURE,
    options::{has_budgets, options},
};
use crate::{
    Dialect, ModelSettings,
    order::{OrderedPiece, in_order},
    parts::own_parts,
    turns::{SideTurn, TurnSide, TurnWriter, turns},
    wire,
};
use base64::prelude::{BASE64_STANDARD, Engine};
use pudu_base::{Assistant, ModelImage, Request, ToolCall, ToolResult, ToolSpec};
use serde::Serialize;
use serde_json::{Map, Value};
use std::{borrow::Cow, collections::HashMap};

/// Signature for calls without one, which come from another provider or an older version. Gemini 3 refuses unsigned
/// calls, and Google documents this signature for such calls.
const FOREIGN_SIGNATURE: &str = "skip_thought_signature_validator";

/// Serializes a request's body. The operator's keys override ours.
pub(super) fn body(settings: &ModelSettings, request: &Request) -> serde_json::Result<Vec<u8>> {
    let mut options = options(settings, request);
    for ours in ["contents", "tools", "systemInstruction", "system_instruction", "model", "stream"] {
        options.remove(ours);
    }
    let mut writer = PartWriter {
        origin: settings.origin(),
        needs_signatures: !has_budgets(&settings.model),
        ids: HashMap::new(),
    };
    let mut contents = turns(&request.messages, &mut writer);
    show(&request.images, &mut contents);
    let system = (!request.system.trim().is_empty()).then(|| SystemInstruction {
        parts: [TurnPart::Text { text: (&request.system).into(), signature: None }],
    });
    let tools = tools(&request.tools, &settings.dialect);
    wire::written(&GenerateBody { options, tools, system_instruction: system, contents })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerateBody<'a> {
    #[serde(flatten)]
    options: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Declarations<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<SystemInstruction<'a>>,
    /// Must be the last field, so that the bytes before it never change.
    #[serde(serialize_with = "write_contents")]
    contents: Vec<SideTurn<TurnPart<'a>>>,
}

#[derive(Serialize)]
struct SystemInstruction<'a> {
    parts: [TurnPart<'a>; 1],
}

fn write_contents<S: serde::Serializer>(
    turns: &[SideTurn<TurnPart<'_>>],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct RoleContent<'a> {
        role: &'static str,
        parts: &'a [TurnPart<'a>],
    }
    serializer.collect_seq(turns.iter().map(|turn| RoleContent {
        role: if turn.side == TurnSide::User { "user" } else { "model" },
        parts: &turn.parts,
    }))
}

#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum TurnPart<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(rename = "thoughtSignature", skip_serializing_if = "Option::is_none")]
        signature: Option<&'a str>,
    },
    InlineData {
        inline_data: InlineData<'a>,
    },
    Call {
        function_call: GeminiCall<'a>,
        #[serde(rename = "thoughtSignature", skip_serializing_if = "Option::is_none")]
        signature: Option<&'a str>,
    },
    Response {
        function_response: FunctionResponse<'a>,
    },
    /// An unchanged part of Google's reply.
    Kept(&'a Value),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'a> {
    mime_type: &'a str,
    data: String,
}

#[derive(Serialize)]
struct GeminiCall<'a> {
    /// The ID, if Google set one. Not all of its servers support the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    args: &'a Value,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    response: ResultText<'a>,
}

/// A tool's result, under a key that Google's models expect. As plain text, it cannot contain a keyword that the API
/// refuses.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum ResultText<'a> {
    Output(&'a str),
    Error(&'a str),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declarations<'a> {
    function_declarations: Vec<Declaration<'a>>,
}

#[derive(Serialize)]
struct Declaration<'a> {
    name: &'a str,
    description: &'a str,
    /// `None` for a tool without arguments: an object without properties is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Cow<'a, Value>>,
}

fn tools<'a>(specs: &'a [std::sync::Arc<ToolSpec>], dialect: &Dialect) -> Option<[Declarations<'a>; 1]> {
    let has_properties = |schema: &Cow<'a, Value>| {
        schema.get("properties").and_then(Value::as_object).is_some_and(|map| !map.is_empty())
    };
    let declarations = specs.iter().map(|spec| Declaration {
        name: &spec.name,
        description: &spec.description,
        parameters: Some(dialect.schema.reduce(&spec.parameters)).filter(has_properties),
    });
    (!specs.is_empty()).then(|| [Declarations { function_declarations: declarations.collect() }])
}

/// Adds images after the newest message, each preceded by its path.
fn show<'a>(images: &'a [ModelImage], contents: &mut Vec<SideTurn<TurnPart<'a>>>) {
    if images.is_empty() {
        return;
    }
    let parts = images.iter().flat_map(|shown| {
        let data = BASE64_STANDARD.encode(&shown.bytes);
        let name = TurnPart::Text { text: shown.image.path.as_str().into(), signature: None };
        [name, TurnPart::InlineData { inline_data: InlineData { mime_type: &shown.image.mime, data } }]
    });
    match contents.last_mut().filter(|turn| turn.side == TurnSide::User) {
        Some(turn) => turn.parts.extend(parts),
        None => contents.push(SideTurn { side: TurnSide::User, parts: parts.collect() }),
    }
}

/// Writes messages as parts.
struct PartWriter<'a> {
    origin: String,
    needs_signatures: bool,
    /// Google's call IDs, by ours.
    ids: HashMap<&'a str, &'a str>,
}

impl<'a> TurnWriter<'a, TurnPart<'a>> for PartWriter<'a> {
    fn text_part(&mut self, text: Cow<'a, str>) -> TurnPart<'a> {
        TurnPart::Text { text, signature: None }
    }

    fn reply(&mut self, reply: &'a Assistant) -> Vec<TurnPart<'a>> {
        let pieces = own_parts(reply, &self.origin).and_then(|parts| in_order(reply, parts));
        let mut parts: Vec<TurnPart<'a>> = match pieces {
            Some(pieces) => pieces.into_iter().filter_map(|piece| self.piece(piece)).collect(),
            None => {
                let calls = reply.calls.iter().map(|call| written(call, None, None));
                signed_text(&reply.text, None).into_iter().chain(calls).collect()
            }
        };
        if self.needs_signatures {
            sign_first(&mut parts);
        }
        parts
    }

    fn result(&mut self, result: &'a ToolResult) -> TurnPart<'a> {
        let text = &result.text;
        let response = if result.error { ResultText::Error(text) } else { ResultText::Output(text) };
        let id = self.ids.get(result.call.as_str()).copied();
        TurnPart::Response { function_response: FunctionResponse { id, name: &result.tool, response } }
    }
}

impl<'a> PartWriter<'a> {
    fn piece(&mut self, piece: OrderedPiece<'a>) -> Option<TurnPart<'a>> {
        let field = |extra: Option<&'a Value>, name: &str| extra?.get(name)?.as_str();
        match piece {
            OrderedPiece::Words(text, extra) => signed_text(text, field(extra, SIGNATURE)),
            OrderedPiece::Call(call, extra) => {
                let id = field(extra, "id");
                self.ids.extend(id.map(|id| (call.id.as_str(), id)));
                Some(written(call, id, field(extra, SIGNATURE)))
            }
            OrderedPiece::Part(part) => Some(TurnPart::Kept(part)),
        }
    }
}

/// Google refuses empty text unless it carries a signature.
fn signed_text<'a>(text: &'a str, signature: Option<&'a str>) -> Option<TurnPart<'a>> {
    (!text.is_empty() || signature.is_some()).then(|| TurnPart::Text { text: text.into(), signature })
}

fn written<'a>(call: &'a ToolCall, id: Option<&'a str>, signature: Option<&'a str>) -> TurnPart<'a> {
    TurnPart::Call { function_call: GeminiCall { id, name: &call.name, args: &call.args }, signature }
}

/// Signs the first of parallel calls if it is unsigned. Google signs and checks only this one.
fn sign_first(parts: &mut [TurnPart<'_>]) {
    let first = parts.iter_mut().find_map(|part| match part {
        TurnPart::Call { signature, .. } => Some(signature),
        _ => None,
    });
    if let Some(signature) = first {
        signature.get_or_insert(FOREIGN_SIGNATURE);
    }
}

#[cfg(test)]
mod tests;
