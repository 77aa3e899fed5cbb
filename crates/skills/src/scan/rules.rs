//! The table of the scan's rules. Patterns match in time linear in the length of the text.

use super::finding::FindingSeverity::{self, Block, Warn};
use regex::Regex;
use std::sync::LazyLock;

/// One rule.
pub(super) struct Rule {
    /// Name in a report.
    pub(super) name: &'static str,
    /// Severity of a match.
    pub(super) severity: FindingSeverity,
    /// Whether the rule applies only to Markdown.
    pub(super) prose: bool,
    /// Description of a match.
    pub(super) what: &'static str,
    /// The pattern.
    pub(super) pattern: Regex,
}

type RuleRow = (&'static str, FindingSeverity, bool, &'static str, &'static str);

/// Pattern for files that contain a user's keys.
const KEYS: &str = r"(?:~|\$HOME|\$\{HOME\}|/(?:home)/[^/\s]+|/root|expanduser\([^)]{0,20})/?[^\s]{0,4}\.(?:ssh|aws|gnupg|kube|netrc|npmrc|pypirc|docker/config|git-credentials|config/gcloud)\b|\bid_(?:rsa|ed25519|ecdsa)\b|/etc/shadow\b|/proc/(?:self|\d+|\*)/environ";

const ROWS: &[RuleRow] = &[
    // Keys and tokens.
    ("secrets", Block, false, "it accesses keys or credentials", KEYS),
    (
        "secrets",
        Block,
        false,
        "it reads the browser's or the system's stored passwords",
        r"(?i)\b(?:Login Data|logins\.json|key4\.db|security\s+find-(?:generic|internet)-password|secret-tool\s+lookup)\b",
    ),
    (
        "secrets",
        Block,
        false,
        "it sends or prints the whole environment",
        r"(?m)(?:^|[;&|`(]\s*)\s*(?:printenv|env|set|export\s+-p)\s*(?:\||>)|json\.dumps\((?:dict\()?os\.environ\b|print\((?:dict\()?os\.environ\)",
    ),
    (
        "secrets",
        Warn,
        false,
        "it reads a secret from the environment",
        r#"(?i)(?:os\.environ(?:\.get)?|getenv|process\.env)[\[(.]?\s*["']?\w*(?:TOKEN|SECRET|PASSWORD|API_?KEY|CREDENTIAL)\w*"#,
    ),
    // Download and run.
    (
        "download-and-run",
        Block,
        false,
        "it runs code that it downloads",
        r"(?i)\b(?:curl|wget|fetch|iwr|invoke-webrequest)\b[^\n;]{0,300}\|\s*(?:sudo\s+)?(?:ba|z|da|k)?sh\b",
    ),
    (
        "download-and-run",
        Block,
        false,
        "it runs code that it downloads",
        r"(?i)\b(?:curl|wget|iwr|invoke-webrequest)\b[^\n;]{0,300}\|\s*(?:sudo\s+)?(?:python[0-9.]*|perl|ruby|node|iex|php)\b",
    ),
    (
        "download-and-run",
        Block,
        false,
        "it runs code that it downloads",
        r"(?i)(?:\b(?:ba|z)?sh|\beval|\bsource|\bpython[0-9.]*|\bperl|\bnode)\b[^\n]{0,40}(?:<\(|\$\(|`)\s*(?:curl|wget)\b",
    ),
    (
        "download-and-run",
        Block,
        false,
        "it runs code that it downloads",
        r"(?i)\b(?:exec|eval)\s*\(\s*(?:compile\()?\s*(?:requests\.get|urllib\.request\.urlopen|urlopen|httpx\.get|fetch)\b",
    ),
    (
        "download-and-run",
        Block,
        false,
        "it downloads a program and makes it executable",
        r"(?i)\b(?:curl|wget)\b[^\n]{0,300}(?:&&|;)\s*(?:sudo\s+)?(?:chmod\s+(?:\+x|[0-7]*[1357][0-7]*)|(?:ba)?sh\s)",
    ),
    (
        "download-and-run",
        Warn,
        false,
        "it installs a package from a URL",
        r"(?i)\b(?:pip[0-9]?|uv\s+pip)\s+install\b[^\n]{0,80}(?:git\+|https?://|--(?:extra-)?index.url)|\bnpm\s+(?:i|install)\b[^\n]{0,80}(?:https?://|git\+)",
    ),
    // Hidden code.
    (
        "obfuscation",
        Block,
        false,
        "it runs code that it decodes",
        r"(?i)\bbase64\b[^\n]{0,60}(?:-d|-D|--decode)\b[^\n]{0,60}\|\s*(?:sudo\s+)?(?:(?:ba|z)?sh|python[0-9.]*|perl|node)\b",
    ),
    (
        "obfuscation",
        Block,
        false,
        "it runs code that it decodes",
        r"(?i)\b(?:exec|eval)\s*\(\s*(?:compile\()?\s*(?:\w+\.)?(?:b64decode|b32decode|unhexlify|fromhex|decompress|loads|atob|from_base64)\b",
    ),
    (
        "obfuscation",
        Block,
        false,
        "it runs code that it decodes",
        r"(?i)\b(?:exec|eval)\s*\(\s*(?:__import__|codecs\.decode|bytes\.fromhex|zlib\.|marshal\.|base64\.)",
    ),
    ("obfuscation", Warn, false, "a long line of unreadable code", r"[A-Za-z0-9+/]{1500,}={0,2}"),
    // Exfiltration.
    (
        "exfiltration",
        Block,
        false,
        "it uploads a file",
        r"(?i)\bcurl\b[^\n]{0,300}(?:(?:-d|--data(?:-binary|-raw)?|-F|--form|-T|--upload-file)\s*=?\s*['\x22]?(?:\w+=)?@?[~/$])",
    ),
    (
        "exfiltration",
        Block,
        false,
        "it sends data to a request-capture service",
        r"(?i)(?:webhook\.site|requestbin|pipedream\.net|ngrok(?:-free)?\.(?:io|app)|burpcollaborator|oast\.(?:fun|live|site|pro|me)|interact\.sh|transfer\.sh|pastebin\.com/api|discord(?:app)?\.com/api/webhooks|api\.telegram\.org/bot|hooks\.slack\.com/services)",
    ),
    (
        "exfiltration",
        Block,
        false,
        "it opens a remote shell",
        r"/dev/(?:tcp|udp)/|(?i)\bn(?:c|cat)\b[^\n]{0,60}\s-(?:e|c)\b|\bsocat\b[^\n]{0,80}\bexec\b",
    ),
    (
        "exfiltration",
        Warn,
        false,
        "it sends data",
        r"(?i)\b(?:requests|httpx|session)\.(?:post|put)\s*\(|\burlopen\s*\([^)\n]{0,120}data\s*=|\bfetch\s*\([^)\n]{0,200}method\s*:\s*['\x22](?:POST|PUT)|\bcurl\b[^\n]{0,200}\s-X\s*(?:POST|PUT)",
    ),
    (
        "exfiltration",
        Warn,
        true,
        "an image whose URL leaks data",
        r"!\[[^\]]*\]\(https?://[^)\s]*[?&][^)\s]*(?:\{|\$|%7B|<)[^)\s]*\)",
    ),
    // Persistence.
    (
        "persistence",
        Block,
        false,
        "it makes itself persistent",
        r"(?i)\bcrontab\s+-|/etc/cron|\bsystemctl\s+(?:--user\s+)?enable\b|\blaunchctl\s+(?:load|bootstrap)\b|LaunchAgents/|/etc/(?:rc\.local|profile\.d|ld\.so\.preload)|authorized_keys|\bschtasks\s+/create",
    ),
    (
        "persistence",
        Block,
        false,
        "it changes the start-up files of a shell",
        r"(?:>>?|tee(?:\s+-a)?|open\()\s*[^\n]{0,40}\.(?:bashrc|bash_profile|zshrc|profile|zprofile|bash_login)\b",
    ),
    (
        "persistence",
        Block,
        false,
        "it installs code as a git hook",
        r"(?:>>?|tee|cp|mv|ln\s+-s|open\()[^\n]{0,60}\.git/hooks/",
    ),
    (
        "persistence",
        Warn,
        false,
        "it leaves a process running",
        r"(?m)\b(?:nohup|setsid|disown)\b\s+\S|\bstart_new_session\s*=\s*True",
    ),
    // Damage and permissions.
    (
        "damage",
        Block,
        false,
        "it deletes files outside of its folder",
        r"(?m)\brm\s+-(?:[a-zA-Z]*r[a-zA-Z]*f|[a-zA-Z]*f[a-zA-Z]*r)[a-zA-Z]*\s+(?:--no-preserve-root\s+)?(?:/|~|\$HOME|/\*)(?:\s|$)|\bmkfs\.|\bdd\s+[^\n]{0,60}of=/dev/|:\(\)\s*\{\s*:\s*\|\s*:",
    ),
    (
        "damage",
        Warn,
        false,
        "it requests more rights",
        r"(?m)(?:^|[;&|`(]\s*)\s*sudo\s+\S|\bchmod\s+(?:-R\s+)?0?777\b",
    ),
    // Instructions to the model.
    (
        "injection",
        Block,
        false,
        "text that tells the assistant to ignore its instructions",
        r"(?i)\b(?:ignore|disregard|forget|override)\s+(?:all\s+|any\s+|every\s+)?(?:of\s+)?(?:the\s+|your\s+|these\s+|those\s+)?(?:previous|prior|above|earlier|preceding|foregoing|system|original|safety|developer)\s+(?:\w+\s+){0,2}(?:instructions?|prompts?|rules?|guidelines?|messages?|directives?)",
    ),
    (
        "injection",
        Block,
        false,
        "text that makes the assistant hide its actions",
        r"(?i)\b(?:do\s+not|don't|never|without)\s+(?:ever\s+)?(?:tell(?:ing)?|inform(?:ing)?|notify(?:ing)?|alert(?:ing)?|mention(?:ing)?(?:\s+\w+){0,3}\s+to|show(?:ing)?|reveal(?:ing)?(?:\s+\w+){0,3}\s+to|warn(?:ing)?|ask(?:ing)?)\s+(?:\w+\s+){0,3}?(?:the\s+)?(?:user|human|operator|owner)s?\b[^.\n]{0,60}(?:that|about|what|before|of|$)",
    ),
    (
        "injection",
        Block,
        false,
        "text that tells the assistant to ignore its instructions",
        r"忽略(?:之前|以上|上述|所有|先前|前面)[^\n。]{0,12}(?:指令|指示|提示|规则)|不要(?:告诉|通知|提醒|告知)(?:用户|任何人)",
    ),
    (
        "injection",
        Warn,
        false,
        "text that gives the assistant another role",
        r"(?i)\byou\s+are\s+(?:now\s+)?(?:in\s+)?(?:DAN|developer\s+mode|jailbroken|unrestricted|god\s+mode)\b|\b(?:reveal|print|repeat|output)\s+(?:\w+\s+){0,3}(?:system|developer|hidden)\s+prompt",
    ),
    (
        "injection",
        Warn,
        false,
        "tokens that models read as a change of speaker",
        r"<\|(?:im_start|im_end|system|user|assistant|endoftext)\|>|\[/?INST\]|<</?SYS>>|(?m)^\s*(?:###\s*)?(?:System|SYSTEM)\s*:\s+\S",
    ),
    // Text that is invisible in the rendered page.
    (
        "hidden-comment",
        Warn,
        true,
        "a link definition with text that is invisible on the page",
        r"(?m)^\[(?://|comment|_)\]:\s*#\s*[\x22(][^\n]{20,}",
    ),
];

/// Returns all rules, which are compiled once. A test checks that all patterns are valid.
pub(super) fn all() -> &'static [Rule] {
    static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
        let rule = |(name, severity, prose, what, pattern): &RuleRow| {
            let pattern = Regex::new(pattern).ok()?;
            Some(Rule { name, severity: *severity, prose: *prose, what, pattern })
        };
        ROWS.iter().filter_map(rule).collect()
    });
    &RULES
}

/// Returns the pattern for comments with instructions to the model.
pub(super) fn for_models() -> Option<&'static Regex> {
    static WORDS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let words = r"(?i)\b(?:curl|wget|bash|powershell|python3?\s|exec|eval|base64|chmod|assistant|agent|system\s+prompt|ignore|disregard|secretly|do\s+not\s+tell|password|token|secret)\b";
        Regex::new(words).ok()
    });
    WORDS.as_ref()
}

#[cfg(test)]
pub(super) fn rows() -> usize {
    ROWS.len()
}
