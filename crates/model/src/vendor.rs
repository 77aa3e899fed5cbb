//! Providers as data: their URLs, wires and deviations.

use crate::{CallIdForm, Dialect, SchemaForm, WireKind};

/// A provider of models, or a model server.
#[derive(Debug)]
pub struct Vendor {
    /// Name in lower case.
    pub name: &'static str,
    /// The wire protocol.
    pub wire: WireKind,
    /// Base URL of its API.
    pub base_url: &'static str,
    /// Suffixes of its host names, which identify it regardless of the class in a configuration.
    pub hosts: &'static [&'static str],
    /// Path that is added to a base URL without one, which the vendor's own clients accept.
    pub path: &'static str,
    /// Environment variables for the base URL in order of precedence, as in the vendor's own clients.
    pub url_variables: &'static [&'static str],
    /// Environment variables for the key.
    pub key_variables: &'static [&'static str],
    /// Deviations from the wire.
    pub dialect: Dialect,
    /// Boolean keys of a request's body that are true by default.
    pub switches: &'static [&'static str],
}

/// Returns all known vendors.
#[must_use]
pub fn vendors() -> &'static [Vendor] {
    VENDORS
}

impl Vendor {
    /// Returns the vendor with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        VENDORS.iter().find(|vendor| vendor.name == name)
    }

    /// Returns the vendor with this host.
    #[must_use]
    pub fn at(host: &str) -> Option<&'static Self> {
        let is_of =
            |end: &&str| host == *end || host.strip_suffix(*end).is_some_and(|rest| rest.ends_with('.'));
        VENDORS.iter().find(|vendor| vendor.hosts.iter().any(is_of))
    }
}

/// Dialect in which thoughts are sent back.
const THOUGHTS_BACK: Dialect = Dialect { thoughts: Some("reasoning_content"), ..Dialect::PLAIN };
/// Dialect in which thoughts have to be sent back with each call.
const THOUGHTS_NEEDED: Dialect = Dialect { needs_thoughts: true, ..THOUGHTS_BACK };

const fn vendor(
    name: &'static str,
    base_url: &'static str,
    hosts: &'static [&'static str],
    key_variables: &'static [&'static str],
    dialect: Dialect,
) -> Vendor {
    Vendor {
        name,
        wire: WireKind::Chat,
        base_url,
        hosts,
        path: "",
        url_variables: &[],
        key_variables,
        dialect,
        switches: &[],
    }
}

static VENDORS: &[Vendor] = &[
    Vendor {
        url_variables: &["OPENAI_BASE_URL", "OPENAI_API_BASE"],
        ..vendor(
            "openai",
            "https://api.openai.com/v1",
            &["api.openai.com"],
            &["OPENAI_API_KEY"],
            // Its thinking models do not accept another name.
            Dialect { limit_field: "max_completion_tokens", ..Dialect::PLAIN },
        )
    },
    Vendor {
        url_variables: &["AZURE_OPENAI_ENDPOINT"],
        ..vendor(
            "azure",
            "",
            &["openai.azure.com", "cognitiveservices.azure.com", "services.ai.azure.com"],
            &["AZURE_OPENAI_API_KEY"],
            Dialect {
                limit_field: "max_completion_tokens",
                key_header: Some(("api-key", "")),
                ..Dialect::PLAIN
            },
        )
    },
    vendor(
        "deepseek",
        "https://api.deepseek.com/v1",
        &["api.deepseek.com"],
        &["DEEPSEEK_API_KEY"],
        THOUGHTS_NEEDED,
    ),
    vendor(
        "qwen",
        "https://dashscope.aliyuncs.com/compatible-mode/v1",
        &["dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com"],
        &["DASHSCOPE_API_KEY"],
        THOUGHTS_BACK,
    ),
    vendor(
        "kimi",
        "https://api.moonshot.cn/v1",
        &["api.moonshot.cn", "api.moonshot.ai"],
        &["MOONSHOT_API_KEY"],
        Dialect { schema: SchemaForm::Plain, ..THOUGHTS_NEEDED },
    ),
    vendor(
        "doubao",
        "https://ark.cn-beijing.volces.com/api/v3",
        &["volces.com", "bytepluses.com"],
        &["ARK_API_KEY", "VOLCENGINE_API_KEY"],
        THOUGHTS_BACK,
    ),
    Vendor {
        // Without this switch, the thoughts are part of the text.
        switches: &["reasoning_split"],
        ..vendor(
            "minimax",
            "https://api.minimax.io/v1",
            &["api.minimax.io", "api.minimaxi.com", "api.minimax.chat"],
            &["MINIMAX_API_KEY"],
            Dialect::PLAIN,
        )
    },
    vendor(
        "glm",
        "https://open.bigmodel.cn/api/paas/v4",
        &["open.bigmodel.cn", "api.z.ai"],
        &["ZHIPUAI_API_KEY", "ZAI_API_KEY"],
        THOUGHTS_BACK,
    ),
    vendor(
        "mimo",
        "https://api.xiaomimimo.com/v1",
        &["api.xiaomimimo.com"],
        &["MIMO_API_KEY"],
        THOUGHTS_BACK,
    ),
    vendor(
        "stepfun",
        "https://api.stepfun.com/v1",
        &["api.stepfun.com"],
        &["STEPFUN_API_KEY"],
        THOUGHTS_BACK,
    ),
    vendor(
        "mistral",
        "https://api.mistral.ai/v1",
        &["api.mistral.ai"],
        &["MISTRAL_API_KEY"],
        // Mistral always reports the usage, and refuses unknown fields.
        Dialect { call_ids: CallIdForm::Nine, asks_usage: false, ..Dialect::PLAIN },
    ),
    vendor("groq", "https://api.groq.com/openai/v1", &["api.groq.com"], &["GROQ_API_KEY"], Dialect::PLAIN),
    vendor("xai", "https://api.x.ai/v1", &["api.x.ai"], &["XAI_API_KEY"], Dialect::PLAIN),
    vendor(
        "openrouter",
        "https://openrouter.ai/api/v1",
        &["openrouter.ai"],
        &["OPENROUTER_API_KEY"],
        Dialect { schema: SchemaForm::Plain, ..Dialect::PLAIN },
    ),
    vendor(
        "perplexity",
        "https://api.perplexity.ai",
        &["api.perplexity.ai"],
        &["PERPLEXITY_API_KEY", "PPLX_API_KEY"],
        Dialect { asks_usage: false, ..Dialect::PLAIN },
    ),
    Vendor {
        wire: WireKind::Messages,
        url_variables: &["ANTHROPIC_API_URL", "ANTHROPIC_BASE_URL"],
        ..vendor(
            "anthropic",
            "https://api.anthropic.com",
            &["api.anthropic.com"],
            &["ANTHROPIC_API_KEY"],
            Dialect { schema: SchemaForm::Plain, ..Dialect::PLAIN },
        )
    },
    Vendor {
        wire: WireKind::Gemini,
        url_variables: &["GOOGLE_GEMINI_BASE_URL"],
        ..vendor(
            "gemini",
            "https://generativelanguage.googleapis.com",
            &["generativelanguage.googleapis.com"],
            &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            Dialect { schema: SchemaForm::OpenApi, ..Dialect::PLAIN },
        )
    },
    vendor(
        "vllm",
        "http://127.0.0.1:8000/v1",
        &[],
        &["VLLM_API_KEY"],
        Dialect { thoughts: Some("reasoning"), ..Dialect::PLAIN },
    ),
    Vendor {
        wire: WireKind::Ollama,
        url_variables: &["OLLAMA_HOST"],
        ..vendor(
            "ollama",
            "http://127.0.0.1:11434",
            &[],
            &[],
            // Its server parses schemas into its own types: it drops references, and refuses `true`.
            Dialect { thoughts: Some("thinking"), schema: SchemaForm::Plain, ..Dialect::PLAIN },
        )
    },
    vendor(
        "mindie",
        "http://127.0.0.1:8989/v1",
        &[],
        &[],
        Dialect { text_calls: true, asks_usage: false, ..Dialect::PLAIN },
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ollama_gets_only_schemas_that_its_server_can_parse() {
        let schema = serde_json::json!({"$defs": {"P": {"type": "string"}},
            "properties": {"any": true, "at": {"$ref": "#/$defs/P"}}});
        let form = Vendor::named("ollama").map(|ollama| ollama.dialect.schema).unwrap();
        let expect =
            serde_json::json!({"type": "object", "properties": {"any": {}, "at": {"type": "string"}}});
        assert_eq!(*form.reduce(&schema), expect);
    }

    #[test]
    fn a_vendor_is_identified_only_by_its_own_hosts() {
        let at = |host: &str| Vendor::at(host).map(|vendor| vendor.name);
        assert_eq!(at("api.mistral.ai"), Some("mistral"));
        assert_eq!(at("my-team.openai.azure.com"), Some("azure"));
        assert_eq!(at("ark.cn-beijing.volces.com"), Some("doubao"));
        assert_eq!(at("notapi.mistral.ai"), None);
        assert_eq!(at("localhost"), None);
        for vendor in vendors() {
            assert!(
                Vendor::named(vendor.name).is_some_and(|named| std::ptr::eq(named, vendor)),
                "{}",
                vendor.name
            );
        }
    }
}
