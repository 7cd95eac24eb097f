# $1 the copy, $2 its marker. Writes the names in it, each ended by NUL, and an
# empty one; reads those that count in the same form; writes them as a tar stream.
cd -- "$1" 2>/dev/null || exit 80
[ -f .boxery-copy ] || exit 81
case $(cat .boxery-copy) in
    "$2") ;;
    "$2 unfinished") exit 83 ;;
    *) exit 82 ;;
esac
export LC_ALL=C
find . -name .git -prune -o -print0 || exit 84
printf '\0'
case $(tar --version 2>/dev/null) in
    *GNU*) exec tar --no-recursion --null --files-from=- -cf - ;;
    *bsdtar*) exec tar -n --null -T - -cf - ;;
    # This one reads no list: everything goes, and what doesn't count is left out here.
    *) exec tar -cf - . ;;
esac
