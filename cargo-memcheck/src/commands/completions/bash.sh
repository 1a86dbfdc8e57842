# Completions of `cargo memcheck` and `cargo-memcheck` for bash. Source it after cargo's own.

_cargo_memcheck() {
    local line=${COMP_LINE:0:COMP_POINT} words current prefix IFS
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=('')
    current=${words[${#words[@]} - 1]}
    IFS=$'\n'
    COMPREPLY=($(cargo-memcheck memcheck complete --shell bash -- "${words[@]}" 2>/dev/null))
    # bash takes `:` and `=` for ends of words, and completes what follows the last one.
    prefix=${current%"${current##*[:=]}"}
    COMPREPLY=("${COMPREPLY[@]#"$prefix"}")
    # A folder or a flag with a value goes on.
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=/] ]] && compopt -o nospace
    return 0
}
complete -F _cargo_memcheck cargo-memcheck

# The completion that cargo has already goes on to complete everything else.
if ! complete -p cargo >/dev/null 2>&1 && declare -F _completion_loader >/dev/null; then
    _completion_loader cargo 2>/dev/null || true
fi
_cargo_without_memcheck=$(complete -p cargo 2>/dev/null | sed -n 's/.*-F \([^ ]*\).*/\1/p')
[[ $_cargo_without_memcheck == _cargo_or_memcheck ]] && _cargo_without_memcheck=
_cargo_or_memcheck() {
    if [[ ${COMP_WORDS[1]} == memcheck && $COMP_CWORD -gt 1 ]]; then
        _cargo_memcheck
    elif [[ -n $_cargo_without_memcheck ]]; then
        "$_cargo_without_memcheck" "$@"
    fi
}
complete -o bashdefault -o default -F _cargo_or_memcheck cargo
