# Makes the embedded VM's view of the machine and starts the server in it.
# Run by unshare in a mount and a process namespace of its own.
#   $1 the folder that becomes /   $2 the VM's folder   $3 the binary   $4… its arguments
set -eu
root=$1 folder=$2 program=$3
shift 3
mkdir -p "$root"
chmod 755 "$root"
for d in /usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc /opt /nix /snap; do
	[ -e "$d" ] || continue
	if [ -L "$d" ]; then
		[ -L "$root$d" ] || ln -s "$(readlink "$d")" "$root$d"
	else
		mkdir -p "$root$d"
		mount --rbind "$d" "$root$d"
		# In a user namespace some mounts keep their flags; then they stay as they are.
		mount -o remount,bind,ro "$root$d" 2>/dev/null || :
	fi
done
for d in /dev /sys; do
	mkdir -p "$root$d"
	mount --rbind "$d" "$root$d"
done
mkdir -p "$root/proc" "$root/root" "$root/home" "$root/run/boxery/vm" "$root/var/tmp" "$root/tmp"
chmod 1777 "$root/tmp" "$root/var/tmp"
mount -t proc proc "$root/proc"
mount --bind "$folder" "$root/run/boxery/vm"
: >"$root/run/boxery/program"
mount --bind "$program" "$root/run/boxery/program"
exec chroot "$root" /run/boxery/program "$@" /run/boxery/vm /
