# $1 the copy, $2 its marker. Removes it, its marker last.
[ ! -h "$1" ] && [ ! -h "$1/.boxery-copy" ] || exit 80
case $(head -n 1 "$1/.boxery-copy") in "$2" | "$2 unfinished") ;; *) exit 81 ;; esac
find "$1" -mindepth 1 -maxdepth 1 ! -name .boxery-copy -exec rm -rf -- {} + || exit 82
rm -rf -- "$1"
