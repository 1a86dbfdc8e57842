#compdef cargo-memcheck
# Completions of `cargo memcheck` and `cargo-memcheck` for zsh. As a file `_cargo-memcheck` in a folder
# of `fpath`; cargo's own completion calls this function for `cargo memcheck`.

_cargo-memcheck() {
    local -a candidates
    candidates=("${(@f)$(cargo-memcheck memcheck complete --shell zsh -- "${(@)words[1,CURRENT]}" 2>/dev/null)}")
    candidates=("${(@)candidates:#}")
    _describe 'cargo memcheck' candidates
}

if [ "$funcstack[1]" = "_cargo-memcheck" ]; then
    _cargo-memcheck "$@"
else
    compdef _cargo-memcheck cargo-memcheck
fi
