# bash completion of detrun; written by scripts/check_man.py --write from `detrun --help`; not edited by hand
_detrun() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
  local command= words= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      record|replay|verify|list|show|stress|bench|fingerprint|tokenize|help) command=${COMP_WORDS[i]}; break ;;
    esac
  done
  case "$command $prev" in
    " --log-file") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    " --color") COMPREPLY=($(compgen -W "auto always never" -- "$cur")); return ;;
    "record -m"|"record --model") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    "record -p"|"record --prompt") return ;;
    "record -f"|"record --file") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    "record --tokens") return ;;
    "record --prompts") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    "record -n"|"record --n") return ;;
    "record --ctx") return ;;
    "record --kv") COMPREPLY=($(compgen -W "f16 f32" -- "$cur")); return ;;
    "record --numerics") return ;;
    "record --chunk") return ;;
    "record --threads") return ;;
    "record --backend") COMPREPLY=($(compgen -W "auto cpu cuda" -- "$cur")); return ;;
    "record --device") return ;;
    "record --ledger") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    "record --tag") return ;;
    "record --log-file") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    "record --color") COMPREPLY=($(compgen -W "auto always never" -- "$cur")); return ;;
    "replay --tag") return ;;
    "replay --since") return ;;
    "replay --sample") return ;;
    "replay --seed") return ;;
    "replay --shard") return ;;
    "replay -m"|"replay --model") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    "replay --mode") COMPREPLY=($(compgen -W "auto step parallel" -- "$cur")); return ;;
    "replay --jobs") return ;;
    "replay --threads") return ;;
    "replay --backend") COMPREPLY=($(compgen -W "auto cpu cuda" -- "$cur")); return ;;
    "replay --device") return ;;
    "replay --chunk") return ;;
    "replay --ledger") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    "replay --junit") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    "replay --log-file") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    "replay --color") COMPREPLY=($(compgen -W "auto always never" -- "$cur")); return ;;
    "verify --ledger") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    "verify --log-file") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    "verify --color") COMPREPLY=($(compgen -W "auto always never" -- "$cur")); return ;;
    "list --ledger") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    "list --log-file") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    "list --color") COMPREPLY=($(compgen -W "auto always never" -- "$cur")); return ;;
    "show --ledger") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    "show --log-file") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    "show --color") COMPREPLY=($(compgen -W "auto always never" -- "$cur")); return ;;
    "stress -m"|"stress --model") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    "stress -p"|"stress --prompt") return ;;
    "stress -f"|"stress --file") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    "stress --tokens") return ;;
    "stress --runs") return ;;
    "stress -n"|"stress --n") return ;;
    "stress --ctx") return ;;
    "stress --kv") COMPREPLY=($(compgen -W "f16 f32" -- "$cur")); return ;;
    "stress --seed") return ;;
    "stress --expect") return ;;
    "stress --threads") return ;;
    "stress --chunk") return ;;
    "stress --isa") return ;;
    "stress --state") return ;;
    "stress --mode") return ;;
    "stress --log-file") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    "stress --color") COMPREPLY=($(compgen -W "auto always never" -- "$cur")); return ;;
    "bench -m"|"bench --model") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    "bench --shape") return ;;
    "bench --type") return ;;
    "bench --only") return ;;
    "bench --repeat") return ;;
    "bench -n"|"bench --n") return ;;
    "bench --ctx") return ;;
    "bench --numerics") return ;;
    "bench --threads") return ;;
    "bench --backend") COMPREPLY=($(compgen -W "auto cpu cuda" -- "$cur")); return ;;
    "bench --device") return ;;
    "bench --chunk") return ;;
    "bench --log-file") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    "bench --color") COMPREPLY=($(compgen -W "auto always never" -- "$cur")); return ;;
    "fingerprint --threads") return ;;
    "fingerprint --backend") COMPREPLY=($(compgen -W "auto cpu cuda" -- "$cur")); return ;;
    "fingerprint --device") return ;;
    "fingerprint --log-file") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    "fingerprint --color") COMPREPLY=($(compgen -W "auto always never" -- "$cur")); return ;;
    "tokenize -m"|"tokenize --model") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    "tokenize -p"|"tokenize --prompt") return ;;
    "tokenize -f"|"tokenize --file") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    "tokenize --log-file") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    "tokenize --color") COMPREPLY=($(compgen -W "auto always never" -- "$cur")); return ;;
  esac
  case $command in
    record) words="-m --model -p --prompt -f --file --tokens --prompts --strict -n --n --ctx --kv --numerics --chunk --threads --backend --device --no-graph --ledger --no-ledger --tag --echo --json -v --verbose -q --quiet --log-file --color -h --help" ;;
    replay) words="--all --tag --since --sample --seed --shard -m --model --mode --force --strict --fail-fast --jobs --threads --backend --device --no-graph --chunk --ledger --junit --json -v --verbose -q --quiet --log-file --color -h --help latest" ;;
    verify) words="--ledger --json -v --verbose -q --quiet --log-file --color -h --help" ;;
    list) words="--ledger --json -v --verbose -q --quiet --log-file --color -h --help" ;;
    show) words="--ledger --json -v --verbose -q --quiet --log-file --color -h --help latest" ;;
    stress) words="-m --model -p --prompt -f --file --tokens --runs -n --n --ctx --kv --seed --expect --threads --chunk --isa --state --mode --json -v --verbose -q --quiet --log-file --color -h --help" ;;
    bench) words="-m --model --shape --type --only --repeat -n --n --ctx --numerics --threads --backend --device --no-graph --chunk --json -v --verbose -q --quiet --log-file --color -h --help" ;;
    fingerprint) words="--threads --backend --device --no-graph --pretty -v --verbose -q --quiet --log-file --color -h --help" ;;
    tokenize) words="-m --model -p --prompt -f --file --bos --special -v --verbose -q --quiet --log-file --color -h --help" ;;
    help) words="record replay verify list show stress bench fingerprint tokenize" ;;
    *) words="record replay verify list show stress bench fingerprint tokenize help -v --verbose -q --quiet --log-file --color -h --help --version" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -F _detrun detrun
