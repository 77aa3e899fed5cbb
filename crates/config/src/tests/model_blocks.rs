//! Each kind of model entry in DeerFlow's example: it is read without a message, or with exactly the
//! expected one.

use super::messages;

/// Keys of nearly every entry.
const USUAL: &str = "max_retries: 2, context_window: 262144, supports_vision: true";
/// Keys that switch thinking on and off in the body.
const SWITCHED: &str = "supports_thinking: true, when_thinking_enabled: {extra_body: {thinking: {type: enabled}}}, \
                        when_thinking_disabled: {extra_body: {thinking: {type: disabled}}}";
/// The same keys within one provider's limits.
const ADAPTIVE: &str = "temperature: 1.0, supports_thinking: true, \
                        when_thinking_enabled: {extra_body: {thinking: {type: adaptive}}}, \
                        when_thinking_disabled: {extra_body: {thinking: {type: disabled}}}";

const DEEPSEEK: &str = "deerflow.models.patched_deepseek:PatchedChatDeepSeek";
const OPENAI: &str = "langchain_openai:ChatOpenAI";
const PATCHED: &str = "deerflow.models.patched_openai:PatchedChatOpenAI";
const MINIMAX: &str = "deerflow.models.patched_minimax:PatchedChatMiniMax";
const OLLAMA: &str = "langchain_ollama:ChatOllama";

#[test]
fn every_model_of_deerflows_example_starts_or_reports_the_reason() {
    let entries = [
        // Volcengine, its coding plan with two more vendors, Kimi: one class, with different base URLs.
        (
            DEEPSEEK,
            "doubao-seed-1-8",
            "api_base: https://ark.cn-beijing.volces.com/api/v3, timeout: 600.0, supports_reasoning_effort: true",
            SWITCHED,
        ),
        (
            DEEPSEEK,
            "glm-5.2",
            "api_base: https://ark.cn-beijing.volces.com/api/coding/v3, timeout: 600.0, supports_reasoning_effort: true",
            SWITCHED,
        ),
        (DEEPSEEK, "deepseek-v4-pro", "timeout: 600.0, max_tokens: 8192", SWITCHED),
        (
            DEEPSEEK,
            "kimi-k2.5",
            "api_base: https://api.moonshot.cn/v1, timeout: 600.0, max_tokens: 32768",
            SWITCHED,
        ),
        // OpenAI with both of its protocols, and gateways that support the first.
        (OPENAI, "gpt-4", "request_timeout: 600.0, max_tokens: 4096, temperature: 0.7", ""),
        (
            OPENAI,
            "gpt-5",
            "request_timeout: 600.0, use_responses_api: true, output_version: responses/v1",
            "",
        ),
        (
            OPENAI,
            "deepseek/deepseek-v3.2",
            "base_url: https://api.novita.ai/openai, request_timeout: 600.0, temperature: 0.7",
            SWITCHED,
        ),
        (
            OPENAI,
            "google/gemini-2.5-flash",
            "base_url: https://openrouter.ai/api/v1, request_timeout: 600.0, max_tokens: 8192",
            "",
        ),
        (
            OPENAI,
            "deepseek-ai/DeepSeek-V3.2",
            "base_url: https://api.atlascloud.ai/v1, request_timeout: 600.0, temperature: 0.7",
            "",
        ),
        (
            PATCHED,
            "google/gemini-2.5-pro",
            "base_url: https://gateway.example/v1, request_timeout: 600.0, max_tokens: 16384",
            SWITCHED,
        ),
        (
            PATCHED,
            "qwen/qwen3-235b-thinking",
            "base_url: https://api.atlascloud.ai/v1, request_timeout: 600.0",
            SWITCHED,
        ),
        // Vendors with their own classes.
        (
            "deerflow.models.patched_mimo:PatchedChatMiMo",
            "mimo-v2.5-pro",
            "base_url: https://api.xiaomimimo.com/v1, request_timeout: 600.0",
            SWITCHED,
        ),
        (
            "deerflow.models.patched_stepfun:PatchedChatStepFun",
            "step-3.7-flash",
            "base_url: https://api.stepfun.com/v1, request_timeout: 600.0, supports_reasoning_effort: true, supports_thinking: true",
            "when_thinking_enabled: {extra_body: {reasoning_format: deepseek-style}}, when_thinking_disabled: {extra_body: {reasoning_format: deepseek-style}}",
        ),
        (MINIMAX, "MiniMax-M3", "base_url: https://api.minimax.io/v1, request_timeout: 600.0", ADAPTIVE),
        (
            MINIMAX,
            "MiniMax-M2.7",
            "base_url: https://api.minimaxi.com/v1, request_timeout: 600.0, temperature: 1.0",
            "supports_thinking: true",
        ),
        (
            "deerflow.models.vllm_provider:VllmChatModel",
            "Qwen/Qwen3-32B",
            "base_url: http://localhost:8000/v1, cumulative_stream_usage: true, request_timeout: 600.0",
            "supports_thinking: true, when_thinking_enabled: {extra_body: {chat_template_kwargs: {enable_thinking: true}}}",
        ),
        (
            "deerflow.models.mindie_provider:MindIEChatModel",
            "Qwen3-Coder-480B",
            "base_url: http://localhost:8989/v1, temperature: 0, read_timeout: 900.0, connect_timeout: 30.0, write_timeout: 60.0, pool_timeout: 30.0",
            "supports_thinking: false, supports_reasoning_effort: false",
        ),
        // Vendors with their own protocols.
        (
            OLLAMA,
            "qwen3:32b",
            "base_url: http://localhost:11434, num_predict: 8192, temperature: 0.7, reasoning: true",
            "supports_thinking: true",
        ),
        (
            "langchain_anthropic:ChatAnthropic",
            "claude-sonnet-4",
            "default_request_timeout: 600.0, max_tokens: 16000, supports_thinking: true",
            "when_thinking_enabled: {thinking: {type: enabled, budget_tokens: 4096}}, when_thinking_disabled: {thinking: {type: disabled}}",
        ),
        (
            "langchain_google_genai:ChatGoogleGenerativeAI",
            "gemini-2.5-pro",
            "gemini_api_key: $KEY, timeout: 600.0, max_tokens: 8192",
            "",
        ),
    ];
    let mut problems = Vec::new();
    for (class, model, own, thinking) in entries {
        let key = if own.contains("gemini_api_key") { "" } else { ", api_key: $KEY" };
        let thinking = if thinking.is_empty() { String::new() } else { format!(", {thinking}") };
        let entry =
            format!("{{name: a, use: \"{class}\", model: \"{model}\"{key}, {USUAL}, {own}{thinking}}}");
        let reported = messages(&format!("models: [{entry}]\n"), [("KEY", "sk-test-0123456789")]);
        problems.extend((!reported.is_empty()).then(|| format!("{model}: {reported}")));
    }
    // The phases of a request have no separate limits: `read_timeout` limits each wait for bytes.
    let expected = "Qwen3-Coder-480B: config.yaml: note: not used by this version: models[].connect_timeout, \
                    models[].pool_timeout, models[].write_timeout";
    assert_eq!(problems.join("\n"), expected);
}
