//! The few lines of shell that a container needs of us: to wait, to begin a command, to kill one.

/// The variable by which the processes of a command are known.
pub(super) const MARK: &str = "PUDU_COMMAND";
/// Its value for what belongs to no command and is never killed.
pub(super) const NOBODY: &str = "nobody";

/// Script of the container's first process.
pub(super) const IDLE: &str = "while :; do sleep 86400; done";

/// Begins a command in the better shell that there is. The command's text is an argument: nothing is put into it.
pub(super) const BEGIN: &str =
    "if command -v bash >/dev/null 2>&1; then exec bash -c \"$1\"; else exec /bin/sh -c \"$1\"; fi";

/// Kills all processes of one command, which it gets as an argument, and ends with 0 when none is left.
///
/// A process is the command's if its environment has the command's mark, or no mark at all: what cleared its
/// environment to hide is killed too. What has the mark of another command is left alone. First all are stopped, so
/// that none can make new ones, then all are killed; `kill` of the shell itself and `/proc` are all that it needs.
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
