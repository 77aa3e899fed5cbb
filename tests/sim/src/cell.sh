# Builds a container's root and starts its own process: ROOT BINDS ro|rw first|child COMMAND...
set -e
umask 022
root=$1 binds=$2 mode=$3 place=$4
shift 4
mount -t tmpfs -o mode=755 none "$root"
for name in bin sbin lib lib32 lib64 libx32 usr etc; do
  if [ -L "/$name" ]; then
    cp -P "/$name" "$root/$name"
  elif [ -d "/$name" ]; then
    mkdir "$root/$name"
    mount --bind "/$name" "$root/$name"
    mount -o remount,bind,ro,nosuid "$root/$name"
  fi
done
mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/var/tmp" "$root/run" "$root/mnt"
mkdir -m 700 "$root/root"
mount -t proc -o nosuid,nodev,noexec none "$root/proc"
# An engine hides and locks these.
for name in kcore keys sysrq-trigger timer_list kallsyms; do
  if [ -e "$root/proc/$name" ]; then mount --bind /dev/null "$root/proc/$name"; fi
done
for name in sys irq bus fs; do
  if [ -d "$root/proc/$name" ]; then
    mount --bind "$root/proc/$name" "$root/proc/$name"
    mount -o remount,bind,ro "$root/proc/$name"
  fi
done
for name in null zero full random urandom; do
  : > "$root/dev/$name"
  mount --bind "/dev/$name" "$root/dev/$name"
done
ln -s /proc/self/fd "$root/dev/fd"
for name in tmp var/tmp run; do mount -t tmpfs -o mode=1777,nosuid,nodev none "$root/$name"; done
tab=$(printf '\t')
printf '%s' "$binds" | while IFS="$tab" read -r how source target; do
  mkdir -p "$root$target"
  mount --bind "$source" "$root$target"
  if [ "$how" = ro ]; then mount -o remount,bind,ro "$root$target"; fi
done
cd "$root"
mkdir .old
pivot_root . .old
cd /
umount -l /.old
rmdir /.old
if [ "$mode" = ro ]; then mount -o remount,bind,ro /; fi
if [ "$place" = first ]; then
  echo ready
  exec "$@" >/dev/null 2>&1
fi
"$@" >/dev/null 2>&1 &
echo ready
exec >/dev/null 2>&1
# The first process buries the dead.
wait $!
