# $1 the folder for copies, then folders that may be copies elsewhere. Writes for each
# copy, each ended by NUL: folder, marker, size in KiB, second of its marker.
dir=$1
shift
for copy in "$dir"/*/ "$@"; do
    copy=${copy%/}
    [ ! -h "$copy" ] && [ ! -h "$copy/.boxery-copy" ] && [ -f "$copy/.boxery-copy" ] || continue
    marker=$(head -n 1 "$copy/.boxery-copy")
    case $marker in "boxery copy "*) ;; *) continue ;; esac
    size=$(du -sk -- "$copy" 2>/dev/null | cut -f 1)
    made=$(date -r "$copy/.boxery-copy" +%s 2>/dev/null)
    printf '%s\0%s\0%s\0%s\0' "$copy" "$marker" "${size:-0}" "${made:-0}"
done
