//! Shell scripts that run in a container: one to idle, one to start a command, and one to kill it.

/// Environment variable that identifies the processes of a command.
pub(super) const MARK: &str = "PUDU_COMMAND";
/// Value of the variable for processes that do not belong to a command and are never killed.
pub(super) const NOBODY: &str = "nobody";

/// Script of the container's first process.
pub(super) const IDLE: &str = "while :; do sleep 86400; done";

/// Starts a command in bash if available, otherwise in sh. The command is passed as an argument and needs no quoting.
pub(super) const BEGIN: &str =
    "if command -v bash >/dev/null 2>&1; then exec bash -c \"$1\"; else exec /bin/sh -c \"$1\"; fi";

/// Kills all processes of the command with the mark given as argument, and exits with 0 when none is left.
///
/// A process belongs to the command if its environment has the command's mark or no mark at all, because a process may
/// have cleared its environment. Processes with another command's mark are left alone. All are stopped before they are
/// killed, so that none can start new ones. The script needs only `/proc` and the shell's own `kill`.
pub(super) const KILL: &str = r#"
look() {
  found=
  for folder in /proc/[0-9]*; do
    pid=${folder#/proc/}
    if [ "$pid" = 1 ] || [ "$pid" = $$ ]; then continue; fi
    state=Z
    { while read -r key value rest; do
        if [ "$key" = State: ]; then state=$value; break; fi
      done < "$folder/status"; } 2>/dev/null
    case $state in Z*|X*) continue;; esac
    text=
    { while IFS= read -r line || [ -n "$line" ]; do text=$text$line; done < "$folder/environ"; } 2>/dev/null
    case $text in *"PUDU_COMMAND=$1"*) ;; *PUDU_COMMAND=*) continue;; esac
    if [ "$2" = STOP ]; then case $state in [Tt]*) continue;; esac; fi
    kill -s "$2" "$pid" 2>/dev/null
    found=yes
  done
  [ -n "$found" ]
}
for signal in STOP KILL; do
  turns=0
  while look "$1" "$signal"; do
    turns=$((turns + 1))
    if [ "$turns" -ge 300 ]; then break; fi
  done
done
if look "$1" KILL; then exit 1; fi
"#;
