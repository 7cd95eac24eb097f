# $1 the copy, $2 its marker, $3 the id of the repository and $4 its number, $5 the object
# format, $6 the branch to begin on, $7 what is to be ignored; then settings, each a name
# and a value. Makes the repository where there is none.
cd -- "$1" || exit 83
[ -f .boxery-copy ] && [ ! -h .boxery-copy ] && [ "$(cat .boxery-copy)" = "$2" ] || exit 81
if [ ! -e .git ] && [ ! -h .git ]; then
    # Under another name until it is whole.
    rm -rf .boxery-git
    mkdir .boxery-git || exit 84
    if [ "$5" = sha1 ]; then
        quiet init -q --template= .boxery-git || exit 84
    else
        quiet init -q --template= --object-format="$5" .boxery-git || exit 84
    fi
    [ -z "$6" ] || quiet -C .boxery-git symbolic-ref HEAD "$6" || exit 84
    mv .boxery-git/.git .git && rmdir .boxery-git || exit 84
fi
[ -d .git ] && [ ! -h .git ] || exit 82
mkdir -p .git/info
{
    [ ! -f .git/info/exclude ] || sed '/^# boxery begin$/,/^# boxery end$/d' .git/info/exclude
    printf '# boxery begin\n/.boxery-*\n.boxery-moving-*\n%s\n# boxery end\n' "$7"
} >.git/info/exclude.new && mv -f .git/info/exclude.new .git/info/exclude || exit 85
printf '%s %s\n' "$3" "$4" >.git/boxery.new || exit 85
shift 7
while [ $# -gt 1 ]; do
    quiet config "$1" "$2" || exit 85
    shift 2
done
mv -f .git/boxery.new .git/boxery || exit 85
