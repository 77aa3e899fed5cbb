//! Secrets that users provide for skills: environment variables of commands, with harmless names. The port hides their
//! values from callers that need only the names.

use std::fmt;

/// Maximum length of a secret's name, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Reserved variables: they change which files a program loads, runs or trusts, so skills and users cannot set them.
const TAKEN: [&str; 61] = [
    "ALL_PROXY",
    "BROWSER",
    "CDPATH",
    "CLASSPATH",
    "CURL_CA_BUNDLE",
    "CURL_HOME",
    "EDITOR",
    "ENV",
    "FPATH",
    "GCONV_PATH",
    "GIT_ASKPASS",
    "GIT_DIR",
    "GIT_EDITOR",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_TEMPLATE_DIR",
    "GIT_WORK_TREE",
    "GLOBIGNORE",
    "HISTFILE",
    "HOME",
    "HOSTALIASES",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "IFS",
    "INPUTRC",
    "LANG",
    "LANGUAGE",
    "LESSOPEN",
    "LESSCLOSE",
    "LOCALDOMAIN",
    "LOCPATH",
    "LOGNAME",
    "MANPAGER",
    "MODULE_PATH",
    "NLSPATH",
    "NO_PROXY",
    "OLDPWD",
    "OPENSSL_CONF",
    "OPENSSL_MODULES",
    "PAGER",
    "PATH",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "PROMPT_COMMAND",
    "PS4",
    "PWD",
    "REQUESTS_CA_BUNDLE",
    "RES_OPTIONS",
    "SHELL",
    "SHELLOPTS",
    "SSH_ASKPASS",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "SUDO_ASKPASS",
    "TMPDIR",
    "USER",
    "VISUAL",
];

/// Prefixes of further reserved names.
const TAKEN_PREFIXES: [&str; 22] = [
    "BASH",
    "CARGO_",
    "DEERFLOW_",
    "DEER_FLOW_",
    "DYLD_",
    "GIT_CONFIG",
    "GLIBC_",
    "JAVA_",
    "JDK_",
    "_JAVA_",
    "LC_",
    "LD_",
    "LUA_",
    "MALLOC_",
    "NODE_",
    "NPM_CONFIG_",
    "PERL",
    "PIP_",
    "PUDU_",
    "PYTHON",
    "RUBY",
    "RUST",
];

/// Returns whether a name is allowed for a secret: it is well formed and not reserved.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let upper = name.to_ascii_uppercase();
    let is_reserved = TAKEN.contains(&upper.as_str())
        || TAKEN_PREFIXES.iter().any(|prefix| upper.starts_with(prefix))
        || upper.chars().all(|c| c == '_');
    begins && name.len() <= MAX_NAME_CHARS && name.chars().all(plain) && !is_reserved
}

/// An environment variable of one command.
#[derive(Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Variable").field("name", &self.name).finish_non_exhaustive()
    }
}

/// One user's secrets, as available to a run.
pub trait SecretSource: Send + Sync {
    /// Returns the existing secrets among these names, as variables of a command.
    fn variables(&self, names: &[String]) -> Vec<Variable>;

    /// Removes the values of secrets from a text.
    fn hide(&self, text: String) -> String;
}

/// No secrets.
pub struct NoSecrets;

impl SecretSource for NoSecrets {
    fn variables(&self, _: &[String]) -> Vec<Variable> {
        Vec::new()
    }

    fn hide(&self, text: String) -> String {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secrets_name_is_a_variable_that_affects_no_program() {
        for name in
            ["ERP_TOKEN", "github_token", "A", "_KEY", "GIT_TOKEN", "NPM_TOKEN", "KEY2", &"A".repeat(64)]
        {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "",
            "2A",
            "A-B",
            "A B",
            "A=B",
            "Ä",
            "A\n",
            "__",
            "PATH",
            "path",
            "LD_PRELOAD",
            "ld_audit",
            "BASH_ENV",
            "BASH_FUNC_ls",
            "ENV",
            "IFS",
            "PYTHONPATH",
            "PYTHONSTARTUP",
            "NODE_OPTIONS",
            "PERL5OPT",
            "RUBYOPT",
            "GIT_SSH_COMMAND",
            "GIT_CONFIG_COUNT",
            "https_proxy",
            "SSL_CERT_FILE",
            "LC_ALL",
            "DYLD_INSERT_LIBRARIES",
            "JAVA_TOOL_OPTIONS",
            "_JAVA_OPTIONS",
            "PUDU_COMMAND",
            "DEERFLOW_CHANNEL_USER_ID",
            "NODE_PATH",
            &"A".repeat(65),
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn a_value_is_not_printed() {
        let variable = Variable { name: "KEY".into(), value: "hush".into() };
        assert_eq!(format!("{variable:?}"), "Variable { name: \"KEY\", .. }");
    }
}
