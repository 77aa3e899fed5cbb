//! The table that maps each of DeerFlow's `use:` paths to a part of pudu.
//!
//! DeerFlow loads a Python class by its path. In pudu each path either names a native part, or is known but not
//! implemented yet, or is refused with a reason and an alternative. Paths begin with `src.` in older DeerFlow versions
//! and with `deerflow.` in newer ones; both are accepted.

use super::{
    problem::nearest,
    reader::Section,
    web::{Provider, WebKind},
};

/// Meaning of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// A model of the vendor with this name in the vendor table.
    Model(&'static str),
    /// Sandboxes on this machine.
    Sandbox,
    /// Sandboxes in containers.
    Containers,
    /// Sandboxes in Pods.
    Pods,
    /// A tool.
    Tool(Native),
    /// A model or sandbox that is not available, with the reason and the alternative.
    Refused(ClassKind, &'static str),
    /// A tool that this version does not have.
    NotYet,
}

/// The kinds of parts that have a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClassKind {
    /// An entry of `models`.
    Model,
    /// `sandbox.use`.
    Sandbox,
    /// An entry of `tools`.
    Tool,
}

/// The tools that pudu has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Native {
    /// Lists a folder.
    Ls,
    /// Reads a file.
    ReadFile,
    /// Writes a file.
    WriteFile,
    /// Replaces text in a file.
    StrReplace,
    /// Finds files by name.
    Glob,
    /// Finds lines in files.
    Grep,
    /// Runs a shell command.
    Bash,
    /// Shows files to people.
    PresentFiles,
    /// Lists the files that people sent.
    ListUploadedFiles,
    /// Accesses the web.
    Web(WebKind, Provider),
}

impl Native {
    /// The tools that the agent has if none is listed, including web tools that need no key.
    pub const ALL: [Self; 12] = [
        Self::Web(WebKind::Search, Provider::DuckDuckGo),
        Self::Web(WebKind::Fetch, Provider::Own),
        Self::Web(WebKind::Images, Provider::DuckDuckGo),
        Self::Ls,
        Self::ReadFile,
        Self::WriteFile,
        Self::StrReplace,
        Self::Glob,
        Self::Grep,
        Self::Bash,
        Self::PresentFiles,
        Self::ListUploadedFiles,
    ];

    /// Returns whether the agent always has it, as in DeerFlow.
    pub fn is_built_in(self) -> bool {
        matches!(self, Self::PresentFiles | Self::ListUploadedFiles)
    }

    /// Returns its default group, as in DeerFlow's file.
    pub fn group(self) -> &'static str {
        match self {
            Self::Web(..) => "web",
            Self::Ls | Self::ReadFile | Self::Glob | Self::Grep => "file:read",
            Self::WriteFile | Self::StrReplace => "file:write",
            Self::Bash => "bash",
            Self::PresentFiles | Self::ListUploadedFiles => "",
        }
    }

    /// Returns the tool's name for the model.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ls => "ls",
            Self::ReadFile => "read_file",
            Self::WriteFile => "write_file",
            Self::StrReplace => "str_replace",
            Self::Glob => "glob",
            Self::Grep => "grep",
            Self::Bash => "bash",
            Self::PresentFiles => "present_files",
            Self::Web(WebKind::Search, _) => "web_search",
            Self::Web(WebKind::Fetch, _) => "web_fetch",
            Self::Web(WebKind::Images, _) => "image_search",
            Self::ListUploadedFiles => "list_uploaded_files",
        }
    }
}

const NO_LOGIN: &str = "it uses the login of a command line program, which pudu does not support; use \
                        langchain_anthropic:ChatAnthropic or langchain_openai:ChatOpenAI with an API key";
const NO_SANDBOX: &str = "this version does not support this sandbox; use \
                          deerflow.community.aio_sandbox:AioSandboxProvider for containers, \
                          deerflow.sandbox.local:LocalSandboxProvider for this machine, or omit `use`";

const fn web(kind: WebKind, provider: Provider) -> Class {
    Class::Tool(Native::Web(kind, provider))
}

const CLASSES: &[(&str, Class)] = &[
    ("langchain_openai:ChatOpenAI", Class::Model("openai")),
    ("langchain_openai:AzureChatOpenAI", Class::Model("azure")),
    ("langchain_mistralai:ChatMistralAI", Class::Model("mistral")),
    ("langchain_groq:ChatGroq", Class::Model("groq")),
    ("langchain_xai:ChatXAI", Class::Model("xai")),
    ("langchain_openrouter:ChatOpenRouter", Class::Model("openrouter")),
    ("langchain_perplexity:ChatPerplexity", Class::Model("perplexity")),
    ("langchain_qwq:ChatQwen", Class::Model("qwen")),
    ("langchain_qwq:ChatQwQ", Class::Model("qwen")),
    ("langchain_community.chat_models:ChatTongyi", Class::Model("qwen")),
    ("langchain_community.chat_models:ChatZhipuAI", Class::Model("glm")),
    ("langchain_community.chat_models:MoonshotChat", Class::Model("kimi")),
    ("langchain_deepseek:ChatDeepSeek", Class::Model("deepseek")),
    ("langchain_anthropic:ChatAnthropic", Class::Model("anthropic")),
    ("langchain_google_genai:ChatGoogleGenerativeAI", Class::Model("gemini")),
    ("langchain_ollama:ChatOllama", Class::Model("ollama")),
    ("deerflow.models.patched_openai:PatchedChatOpenAI", Class::Model("openai")),
    ("deerflow.models.patched_deepseek:PatchedChatDeepSeek", Class::Model("deepseek")),
    ("deerflow.models.patched_minimax:PatchedChatMiniMax", Class::Model("minimax")),
    ("deerflow.models.patched_mimo:PatchedChatMiMo", Class::Model("mimo")),
    ("deerflow.models.patched_stepfun:PatchedChatStepFun", Class::Model("stepfun")),
    ("deerflow.models.vllm_provider:VllmChatModel", Class::Model("vllm")),
    ("deerflow.models.mindie_provider:MindIEChatModel", Class::Model("mindie")),
    ("deerflow.models.claude_provider:ClaudeChatModel", Class::Model("anthropic")),
    ("deerflow.models.openai_codex_provider:CodexChatModel", Class::Refused(ClassKind::Model, NO_LOGIN)),
    ("deerflow.sandbox.local:LocalSandboxProvider", Class::Sandbox),
    ("deerflow.community.aio_sandbox:AioSandboxProvider", Class::Containers),
    ("pudu.sandbox:KubernetesProvider", Class::Pods),
    ("deerflow.community.boxlite:BoxliteProvider", Class::Refused(ClassKind::Sandbox, NO_SANDBOX)),
    ("deerflow.community.tenki:TenkiSandboxProvider", Class::Refused(ClassKind::Sandbox, NO_SANDBOX)),
    ("deerflow.community.e2b_sandbox:E2BSandboxProvider", Class::Refused(ClassKind::Sandbox, NO_SANDBOX)),
    ("deerflow.sandbox.tools:ls_tool", Class::Tool(Native::Ls)),
    ("deerflow.sandbox.tools:read_file_tool", Class::Tool(Native::ReadFile)),
    ("deerflow.sandbox.tools:write_file_tool", Class::Tool(Native::WriteFile)),
    ("deerflow.sandbox.tools:str_replace_tool", Class::Tool(Native::StrReplace)),
    ("deerflow.sandbox.tools:bash_tool", Class::Tool(Native::Bash)),
    ("deerflow.tools.builtins:present_file_tool", Class::Tool(Native::PresentFiles)),
    ("pudu.web:web_fetch_tool", web(WebKind::Fetch, Provider::Own)),
    ("deerflow.sandbox.tools:glob_tool", Class::Tool(Native::Glob)),
    ("deerflow.sandbox.tools:grep_tool", Class::Tool(Native::Grep)),
    ("deerflow.community.ddg_search.tools:web_search_tool", web(WebKind::Search, Provider::DuckDuckGo)),
    ("deerflow.community.searxng.tools:web_search_tool", web(WebKind::Search, Provider::SearXng)),
    ("deerflow.community.serper.tools:web_search_tool", web(WebKind::Search, Provider::Serper)),
    ("deerflow.community.serper.tools:image_search_tool", web(WebKind::Images, Provider::Serper)),
    ("deerflow.community.brave.tools:web_search_tool", web(WebKind::Search, Provider::Brave)),
    ("deerflow.community.brave.tools:image_search_tool", web(WebKind::Images, Provider::Brave)),
    ("deerflow.community.tavily.tools:web_search_tool", web(WebKind::Search, Provider::Tavily)),
    ("deerflow.community.tavily.tools:web_fetch_tool", web(WebKind::Fetch, Provider::Tavily)),
    ("deerflow.community.infoquest.tools:web_search_tool", Class::NotYet),
    ("deerflow.community.infoquest.tools:web_fetch_tool", Class::NotYet),
    ("deerflow.community.infoquest.tools:image_search_tool", Class::NotYet),
    ("deerflow.community.exa.tools:web_search_tool", web(WebKind::Search, Provider::Exa)),
    ("deerflow.community.exa.tools:web_fetch_tool", web(WebKind::Fetch, Provider::Exa)),
    ("deerflow.community.firecrawl.tools:web_search_tool", web(WebKind::Search, Provider::Firecrawl)),
    ("deerflow.community.firecrawl.tools:web_fetch_tool", web(WebKind::Fetch, Provider::Firecrawl)),
    ("deerflow.community.groundroute.tools:web_search_tool", Class::NotYet),
    ("deerflow.community.groundroute.tools:web_fetch_tool", Class::NotYet),
    ("deerflow.community.fastcrw.tools:web_search_tool", Class::NotYet),
    ("deerflow.community.fastcrw.tools:web_fetch_tool", Class::NotYet),
    ("deerflow.community.browserless.tools:web_fetch_tool", Class::NotYet),
    ("deerflow.community.browserless.tools:web_capture_tool", Class::NotYet),
    ("deerflow.community.crawl4ai.tools:web_fetch_tool", Class::NotYet),
    ("deerflow.community.jina_ai.tools:web_fetch_tool", web(WebKind::Fetch, Provider::Jina)),
    ("deerflow.community.image_search.tools:image_search_tool", web(WebKind::Images, Provider::DuckDuckGo)),
    ("deerflow.community.browser_automation.tools:browser_navigate_tool", Class::NotYet),
    ("deerflow.community.browser_automation.tools:browser_snapshot_tool", Class::NotYet),
    ("deerflow.community.browser_automation.tools:browser_click_tool", Class::NotYet),
    ("deerflow.community.browser_automation.tools:browser_type_tool", Class::NotYet),
    ("deerflow.community.browser_automation.tools:browser_get_text_tool", Class::NotYet),
    ("deerflow.community.browser_automation.tools:browser_back_tool", Class::NotYet),
    ("deerflow.community.browser_automation.tools:browser_screenshot_tool", Class::NotYet),
    ("deerflow.community.browser_automation.tools:browser_close_tool", Class::NotYet),
];

impl Class {
    fn kind(self) -> ClassKind {
        match self {
            Self::Model(_) => ClassKind::Model,
            Self::Sandbox | Self::Containers | Self::Pods => ClassKind::Sandbox,
            Self::Tool(_) | Self::NotYet => ClassKind::Tool,
            Self::Refused(kind, _) => kind,
        }
    }
}

/// Reads the `use` of a section. Reports a refused or unknown path and returns `None` for it.
pub(super) fn read(section: &Section<'_>, kind: ClassKind, default: Option<&'static str>) -> Option<Class> {
    let about = match kind {
        ClassKind::Model => "DeerFlow's class path of the model; it selects the provider and its protocol.",
        ClassKind::Sandbox => "DeerFlow's path of the provider.",
        ClassKind::Tool => "DeerFlow's path of the tool.",
    };
    let setting = section.text("use").about(about);
    let path = match default {
        Some(default) => setting.or(default.to_owned()),
        None => setting
            .eg("deerflow.community.tavily.tools:web_search_tool")
            .required("use one of the paths listed in docs/configuration.md")?,
    };
    let modern = path.strip_prefix("src.").map_or_else(|| path.clone(), |rest| format!("deerflow.{rest}"));
    let known = || CLASSES.iter().filter(|(_, class)| class.kind() == kind);
    match known().find(|(path, _)| *path == modern) {
        Some((_, Class::Refused(_, reason))) => {
            section.refuse("use", format!("invalid entry \"{path}\""), *reason);
            None
        }
        Some((_, class)) => Some(*class),
        None => {
            let what = format!("unknown path \"{path}\"");
            section.refuse("use", what, advice(&modern, known().map(|(path, _)| *path).collect()));
            None
        }
    }
}

/// Lists the known paths, nearest first.
fn advice(path: &str, mut known: Vec<&'static str>) -> String {
    let class = |path: &str| path.rsplit(':').next().unwrap_or_default().to_lowercase();
    let wanted = class(path);
    known.sort_by_key(|other| {
        (strsim::damerau_levenshtein(&wanted, &class(other)), strsim::damerau_levenshtein(path, other))
    });
    let guess = nearest(path, known.iter().copied())
        .map_or_else(String::new, |near| format!("did you mean {near}? "));
    format!("{guess}known, nearest first: {}", known.join(", "))
}

/// Lists all paths, for the test that searches for them in the docs.
#[cfg(test)]
pub(super) fn paths() -> impl Iterator<Item = &'static str> {
    CLASSES.iter().map(|(path, _)| *path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_unique() {
        let mut paths: Vec<_> = CLASSES.iter().map(|(path, _)| *path).collect();
        paths.sort_unstable();
        paths.dedup();
        assert_eq!(paths.len(), CLASSES.len());
    }

    #[test]
    fn the_known_paths_are_listed_nearest_first() {
        let known = vec!["langchain_openai:ChatOpenAI", "langchain_ollama:ChatOllama", "other:Class"];
        assert_eq!(
            advice("my_company.models:MyOllama", known.clone()),
            "known, nearest first: langchain_ollama:ChatOllama, other:Class, langchain_openai:ChatOpenAI"
        );
        assert!(
            advice("langchain_openai:ChatOpenAi", known)
                .starts_with("did you mean langchain_openai:ChatOpenAI? ")
        );
    }
}
