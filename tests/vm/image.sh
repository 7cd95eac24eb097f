#!/bin/sh
# Builds the disk of a Debian 12 VM, its kernel and initrd, and a key that logs in as
# root and as `dev`, an ordinary user without sudo.
#
#     image.sh FOLDER        as root; FOLDER is the cache's: what is there already is kept
#
# The disk has no machine id and no host key: like a cloud's image it makes them when it
# first boots, so that a fresh boot is another machine.
set -eu
folder=$1
recipe=$(sha256sum "$0" | cut -d' ' -f1)
mkdir -p "$folder"
cd "$folder"
exec 9>lock
flock 9
if [ "$(cat recipe 2>/dev/null)" = "$recipe" ]; then
    exit 0
fi
missing=
for pair in mmdebstrap:mmdebstrap mkfs.ext4:e2fsprogs qemu-system-x86_64:qemu-system-x86; do
    PATH=$PATH:/usr/sbin:/sbin command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair#*:}"
done
if [ -n "$missing" ]; then
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086  # a list of words
    if ! { apt-get -q update && apt-get -q install -y --no-install-recommends $missing; } >apt.log 2>&1; then
        tail -n 20 apt.log >&2
        echo "error: missing:$missing" >&2
        echo "hint: this round builds a Debian VM: run it as root on Debian or Ubuntu" >&2
        exit 1
    fi
fi

suite=bookworm
# The mirror that this machine uses itself.
mirror=${MIRROR:-$(apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' |
    awk -v suite="$suite" '$2 == suite {print $1; exit}')}
if [ -z "$mirror" ]; then
    echo "error: apt knows no mirror of Debian $suite" >&2
    echo "hint: name one: MIRROR=http://… $0 $folder" >&2
    exit 1
fi
[ -f id ] || ssh-keygen -q -t ed25519 -N '' -C vm -f id
root=$folder/rootfs
rm -rf --one-file-system "$root"
packages=linux-image-cloud-amd64,initramfs-tools,systemd-sysv,dbus,udev,libpam-systemd
packages=$packages,openssh-server,iproute2,ca-certificates,curl,git,sudo,procps,python3
mmdebstrap --variant=minbase --include="$packages" \
    --aptopt='Acquire::Languages "none"' --dpkgopt='path-exclude=/usr/share/{doc,man,locale}/*' \
    "$suite" "$root" "$mirror" >mmdebstrap.log 2>&1 || {
    tail -n 5 mmdebstrap.log >&2
    exit 1
}
cp -L "$root"/boot/vmlinuz-* vmlinuz
cp -L "$root"/boot/initrd.img-* initrd.img

echo boxvm >"$root/etc/hostname"
echo '127.0.1.1 boxvm' >>"$root/etc/hosts"
echo '/dev/vda / ext4 defaults 0 1' >"$root/etc/fstab"
mkdir -p "$root/etc/systemd/network" "$root/etc/systemd/system/ssh.service.d"
printf '[Match]\nType=ether\n[Network]\nAddress=10.0.2.15/24\nGateway=10.0.2.2\n' \
    >"$root/etc/systemd/network/10-eth.network"
chroot "$root" systemctl enable systemd-networkd ssh >/dev/null 2>&1
# It looks for snapshots of LVM, for half a minute.
chroot "$root" systemctl mask e2scrub_reap.service >/dev/null 2>&1
chroot "$root" useradd --create-home --shell /bin/bash dev
for home in root home/dev; do
    install -d -m 700 "$root/$home/.ssh"
    install -m 600 id.pub "$root/$home/.ssh/authorized_keys"
done
chroot "$root" chown -R dev:dev /home/dev

rm -f "$root"/etc/ssh/ssh_host_*
: >"$root/etc/machine-id"
cat >"$root/usr/sbin/own-key" <<'OWN'
#!/bin/sh
key=/etc/ssh/ssh_host_ed25519_key
[ -f "$key" ] || ssh-keygen -q -t ed25519 -N '' -C "" -f "$key"
OWN
printf '[Service]\nExecStartPre=\nExecStartPre=/usr/sbin/own-key\nExecStartPre=/usr/sbin/sshd -t\n' \
    >"$root/etc/systemd/system/ssh.service.d/own-key.conf"
# The first process where systemd isn't the point: twice as fast.
cat >"$root/usr/sbin/fast-init" <<'INIT'
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tmpfs -o mode=755 run /run
mkdir -p /run/sshd /run/user
mount -t cgroup2 cg /sys/fs/cgroup
ip link set lo up
ip link set eth0 up
ip address add 10.0.2.15/24 dev eth0
ip route add default via 10.0.2.2
hostname boxvm
[ -s /etc/machine-id ] || systemd-machine-id-setup
/usr/sbin/own-key
exec /usr/sbin/sshd -D -e
INIT
chmod 755 "$root/usr/sbin/own-key" "$root/usr/sbin/fast-init"
rm -f disk.raw
truncate -s 3G disk.raw
# no loop device is needed
PATH=$PATH:/usr/sbin:/sbin mkfs.ext4 -q -F -d "$root" disk.raw
rm -rf --one-file-system "$root"
echo "$recipe" >recipe
