# Completions of `cargo memcheck` and `cargo-memcheck` for fish.

function __cargo_memcheck_candidates
    cargo-memcheck memcheck complete --shell fish -- (commandline --cut-at-cursor --tokenize) (commandline --current-token) 2>/dev/null
end
complete --command cargo --no-files --condition '__fish_seen_subcommand_from memcheck' --arguments '(__cargo_memcheck_candidates)'
complete --command cargo-memcheck --no-files --arguments '(__cargo_memcheck_candidates)'
