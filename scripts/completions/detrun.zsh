#compdef detrun
# zsh completion of detrun; written by scripts/check_man.py --write from `detrun --help`; not edited by hand
_detrun() {
  local context state line
  local -a commands
  commands=(
    'record:run a model once and log the run'
    'replay:execute recorded runs again and compare every step'
    'verify:check the seals of a ledger, without any model'
    'list:list the runs of a ledger'
    'show:show one run\: its fields, tokens, margins and stack'
    'stress:run one prompt many times in varied configurations'
    'bench:measure speed against what the machine can do at most'
    'fingerprint:print the stack that runs here as canonical JSON'
    'tokenize:print the token ids of a text'
    'help:print the help of a command\: detrun help record'
  )
  _arguments -C \
    '*-v[log what is done; twice\: in detail]' \
    '*--verbose[log what is done; twice\: in detail]' \
    '(-q --quiet)-q[only results and errors]' \
    '(-q --quiet)--quiet[only results and errors]' \
    '(--log-file)--log-file[append the log to FILE as well]:FILE:_files' \
    '(--color)--color[colours; auto\: on a terminal, unless NO_COLOR is set]:auto or always or never:(auto always never)' \
    '(-h --help)-h[print this help]' \
    '(-h --help)--help[print this help]' \
    '(--version)--version[print version, build and backends]' \
    '1: :->command' \
    '*:: :->arguments'
  case $state in
    command) _describe command commands ;;
    arguments)
      case $words[1] in
        record)
          _arguments \
            '(-m --model)-m[the model file, GGUF \[$DETRUN_MODEL\]]:MODEL:_files' \
            '(-m --model)--model[the model file, GGUF \[$DETRUN_MODEL\]]:MODEL:_files' \
            '(-p --prompt)-p[the text itself; an empty one is valid]:TEXT: ' \
            '(-p --prompt)--prompt[the text itself; an empty one is valid]:TEXT: ' \
            '(-f --file)-f[the bytes of a file, as they are]:FILE:_files' \
            '(-f --file)--file[the bytes of a file, as they are]:FILE:_files' \
            '(--tokens)--tokens[token ids, used as they are\: 1,2,3]:IDS: ' \
            '(--prompts)--prompts[a JSON object a line, each a run of its own]:FILE:_files' \
            '(--strict)--strict[with --prompts\: one bad line, and nothing is recorded]' \
            '(-n --n)-n[most tokens to generate \[until the model ends\]]:N: ' \
            '(-n --n)--n[most tokens to generate \[until the model ends\]]:N: ' \
            '(--ctx)--ctx[context in tokens \[the model'\''s own, at most 4096\]]:N: ' \
            '(--kv)--kv[type of the KV cache \[f16\]]:f16 or f32:(f16 f32)' \
            '(--numerics)--numerics[arithmetic profile \[portable\]]:PROFILE: ' \
            '(--chunk)--chunk[tokens computed at once \[by cache size, on a GPU 512\]; no influence on any portable bit]:N: ' \
            '(--threads)--threads[threads \[all cores\]; no influence on any bit]:N: ' \
            '(--backend)--backend[where to compute \[auto\: CUDA where it can\]; no influence on any portable bit]:auto or cpu or cuda:(auto cpu cuda)' \
            '(--device)--device[which GPU, by index or UUID \[0\]; no influence on any portable bit]:DEVICE: ' \
            '(--no-graph)--no-graph[CUDA\: launch the kernels of a step one by one; no influence on any bit]' \
            '(--ledger)--ledger[the ledger \[$DETRUN_LEDGER or detrun.db\]]:FILE:_files' \
            '(--no-ledger)--no-ledger[only run, log nothing]' \
            '*--tag[a note to the run; may be repeated]:K=V: ' \
            '(--echo)--echo[print the prompt before the text]' \
            '(--json)--json[print a JSON document instead of text]' \
            '*-v[log what is done; twice\: in detail]' \
            '*--verbose[log what is done; twice\: in detail]' \
            '(-q --quiet)-q[only results and errors]' \
            '(-q --quiet)--quiet[only results and errors]' \
            '(--log-file)--log-file[append the log to FILE as well]:FILE:_files' \
            '(--color)--color[colours; auto\: on a terminal, unless NO_COLOR is set]:auto or always or never:(auto always never)' \
            '(-h --help)-h[print this help]' \
            '(-h --help)--help[print this help]' \
            '*: : '
          ;;
        replay)
          _arguments \
            '(--all)--all[every run of the ledger]' \
            '*--tag[runs with this tag; repeated\: with all of them]:K=V: ' \
            '(--since)--since[runs started then or later\: a UTC date or time, or 2h, 7d]:TIME: ' \
            '(--sample)--sample[about this share of the runs, by run id]:N%: ' \
            '(--seed)--seed[another sample for another number \[0\]]:S: ' \
            '(--shard)--shard[the I-th of N parts of the selection, by run id]:I/N: ' \
            '(-m --model)-m[where the model file is now \[as recorded\]; its digest must be the recorded one]:MODEL:_files' \
            '(-m --model)--model[where the model file is now \[as recorded\]; its digest must be the recorded one]:MODEL:_files' \
            '(--mode)--mode[how to replay \[auto\]; no influence on any bit]:auto or step or parallel:(auto step parallel)' \
            '(--force)--force[go on past a broken seal or a missing model digest; the verdict says so]' \
            '(--strict)--strict[an interrupted run is INCONCLUSIVE]' \
            '(--fail-fast)--fail-fast[stop at the first run that is not REPRODUCED]' \
            '(--jobs)--jobs[runs replayed at once, on cores of their own \[1\]]:N: ' \
            '(--threads)--threads[threads \[all cores\]; no influence on any bit]:N: ' \
            '(--backend)--backend[where to compute \[auto\: CUDA where it can\]; no influence on any portable bit]:auto or cpu or cuda:(auto cpu cuda)' \
            '(--device)--device[which GPU, by index or UUID \[0\]; no influence on any portable bit]:DEVICE: ' \
            '(--no-graph)--no-graph[CUDA\: launch the kernels of a step one by one; no influence on any bit]' \
            '(--chunk)--chunk[tokens computed at once \[by cache size, on a GPU 512\]; no influence on any portable bit]:N: ' \
            '(--ledger)--ledger[the ledger \[$DETRUN_LEDGER or detrun.db\]]:FILE:_files' \
            '(--junit)--junit[write a JUnit report as well]:FILE:_files' \
            '(--json)--json[print a JSON document instead of text]' \
            '*-v[log what is done; twice\: in detail]' \
            '*--verbose[log what is done; twice\: in detail]' \
            '(-q --quiet)-q[only results and errors]' \
            '(-q --quiet)--quiet[only results and errors]' \
            '(--log-file)--log-file[append the log to FILE as well]:FILE:_files' \
            '(--color)--color[colours; auto\: on a terminal, unless NO_COLOR is set]:auto or always or never:(auto always never)' \
            '(-h --help)-h[print this help]' \
            '(-h --help)--help[print this help]' \
            '*:run:(latest)'
          ;;
        verify)
          _arguments \
            '(--ledger)--ledger[the ledger \[$DETRUN_LEDGER or detrun.db\]]:FILE:_files' \
            '(--json)--json[print a JSON document instead of text]' \
            '*-v[log what is done; twice\: in detail]' \
            '*--verbose[log what is done; twice\: in detail]' \
            '(-q --quiet)-q[only results and errors]' \
            '(-q --quiet)--quiet[only results and errors]' \
            '(--log-file)--log-file[append the log to FILE as well]:FILE:_files' \
            '(--color)--color[colours; auto\: on a terminal, unless NO_COLOR is set]:auto or always or never:(auto always never)' \
            '(-h --help)-h[print this help]' \
            '(-h --help)--help[print this help]' \
            '*: : '
          ;;
        list)
          _arguments \
            '(--ledger)--ledger[the ledger \[$DETRUN_LEDGER or detrun.db\]]:FILE:_files' \
            '(--json)--json[print a JSON document instead of text]' \
            '*-v[log what is done; twice\: in detail]' \
            '*--verbose[log what is done; twice\: in detail]' \
            '(-q --quiet)-q[only results and errors]' \
            '(-q --quiet)--quiet[only results and errors]' \
            '(--log-file)--log-file[append the log to FILE as well]:FILE:_files' \
            '(--color)--color[colours; auto\: on a terminal, unless NO_COLOR is set]:auto or always or never:(auto always never)' \
            '(-h --help)-h[print this help]' \
            '(-h --help)--help[print this help]' \
            '*: : '
          ;;
        show)
          _arguments \
            '(--ledger)--ledger[the ledger \[$DETRUN_LEDGER or detrun.db\]]:FILE:_files' \
            '(--json)--json[print a JSON document instead of text]' \
            '*-v[log what is done; twice\: in detail]' \
            '*--verbose[log what is done; twice\: in detail]' \
            '(-q --quiet)-q[only results and errors]' \
            '(-q --quiet)--quiet[only results and errors]' \
            '(--log-file)--log-file[append the log to FILE as well]:FILE:_files' \
            '(--color)--color[colours; auto\: on a terminal, unless NO_COLOR is set]:auto or always or never:(auto always never)' \
            '(-h --help)-h[print this help]' \
            '(-h --help)--help[print this help]' \
            '*:run:(latest)'
          ;;
        stress)
          _arguments \
            '(-m --model)-m[the model file, GGUF \[$DETRUN_MODEL\]]:MODEL:_files' \
            '(-m --model)--model[the model file, GGUF \[$DETRUN_MODEL\]]:MODEL:_files' \
            '(-p --prompt)-p[the text itself; an empty one is valid]:TEXT: ' \
            '(-p --prompt)--prompt[the text itself; an empty one is valid]:TEXT: ' \
            '(-f --file)-f[the bytes of a file, as they are]:FILE:_files' \
            '(-f --file)--file[the bytes of a file, as they are]:FILE:_files' \
            '(--tokens)--tokens[token ids, used as they are\: 1,2,3]:IDS: ' \
            '(--runs)--runs[how many runs \[100\]]:N: ' \
            '(-n --n)-n[most tokens of a run \[16\]]:N: ' \
            '(-n --n)--n[most tokens of a run \[16\]]:N: ' \
            '(--ctx)--ctx[context in tokens \[the model'\''s own, at most 4096\]]:N: ' \
            '(--kv)--kv[type of the KV cache \[f16\]]:f16 or f32:(f16 f32)' \
            '(--seed)--seed[order of the configurations \[0\]]:S: ' \
            '(--expect)--expect[distinct outputs that make the exit code 0 \[1\]]:N: ' \
            '(--threads)--threads[threads \[1,2,3,4,5,6,7,8\]]:LIST: ' \
            '(--chunk)--chunk[tokens of a prefill pass \[1,2,3,7,8,63,64,65,512 and the whole prompt\]]:LIST: ' \
            '(--isa)--isa[instruction sets \[all that this CPU has\]]:LIST: ' \
            '(--state)--state[context\: fresh, or reused after another run \[both\]]:LIST: ' \
            '(--mode)--mode[step, parallel \[both\]]:LIST: ' \
            '(--json)--json[print a JSON document instead of text]' \
            '*-v[log what is done; twice\: in detail]' \
            '*--verbose[log what is done; twice\: in detail]' \
            '(-q --quiet)-q[only results and errors]' \
            '(-q --quiet)--quiet[only results and errors]' \
            '(--log-file)--log-file[append the log to FILE as well]:FILE:_files' \
            '(--color)--color[colours; auto\: on a terminal, unless NO_COLOR is set]:auto or always or never:(auto always never)' \
            '(-h --help)-h[print this help]' \
            '(-h --help)--help[print this help]' \
            '*: : '
          ;;
        bench)
          _arguments \
            '(-m --model)-m[the model file, GGUF \[$DETRUN_MODEL\]]:MODEL:_files' \
            '(-m --model)--model[the model file, GGUF \[$DETRUN_MODEL\]]:MODEL:_files' \
            '(--shape)--shape[instead of a file\: weights made up, 135m, 1.1b or 8b]:SHAPE: ' \
            '(--type)--type[with --shape\: f16, q8_0, q4_k_m and others]:TYPE: ' \
            '(--only)--only[results to measure, separated by commas\: decode, prefill, prefill_128, record, replay_step, replay_parallel \[all\]; ceilings\: those alone, without a model]:LIST: ' \
            '(--repeat)--repeat[measurements of each result \[5\]]:R: ' \
            '(-n --n)-n[steps of decode, record and replay_step \[64\]]:N: ' \
            '(-n --n)--n[steps of decode, record and replay_step \[64\]]:N: ' \
            '(--ctx)--ctx[context in tokens \[as many as are needed\]]:N: ' \
            '(--numerics)--numerics[arithmetic profile \[portable\]]:PROFILE: ' \
            '(--threads)--threads[threads \[all cores\]; no influence on any bit]:N: ' \
            '(--backend)--backend[where to compute \[auto\: CUDA where it can\]; no influence on any portable bit]:auto or cpu or cuda:(auto cpu cuda)' \
            '(--device)--device[which GPU, by index or UUID \[0\]; no influence on any portable bit]:DEVICE: ' \
            '(--no-graph)--no-graph[CUDA\: launch the kernels of a step one by one; no influence on any bit]' \
            '(--chunk)--chunk[tokens computed at once \[by cache size, on a GPU 512\]; no influence on any portable bit]:N: ' \
            '(--json)--json[print a JSON document instead of text]' \
            '*-v[log what is done; twice\: in detail]' \
            '*--verbose[log what is done; twice\: in detail]' \
            '(-q --quiet)-q[only results and errors]' \
            '(-q --quiet)--quiet[only results and errors]' \
            '(--log-file)--log-file[append the log to FILE as well]:FILE:_files' \
            '(--color)--color[colours; auto\: on a terminal, unless NO_COLOR is set]:auto or always or never:(auto always never)' \
            '(-h --help)-h[print this help]' \
            '(-h --help)--help[print this help]' \
            '*: : '
          ;;
        fingerprint)
          _arguments \
            '(--threads)--threads[threads \[all cores\]; no influence on any bit]:N: ' \
            '(--backend)--backend[where to compute \[auto\: CUDA where it can\]; no influence on any portable bit]:auto or cpu or cuda:(auto cpu cuda)' \
            '(--device)--device[which GPU, by index or UUID \[0\]; no influence on any portable bit]:DEVICE: ' \
            '(--no-graph)--no-graph[CUDA\: launch the kernels of a step one by one; no influence on any bit]' \
            '(--pretty)--pretty[indented, for reading]' \
            '*-v[log what is done; twice\: in detail]' \
            '*--verbose[log what is done; twice\: in detail]' \
            '(-q --quiet)-q[only results and errors]' \
            '(-q --quiet)--quiet[only results and errors]' \
            '(--log-file)--log-file[append the log to FILE as well]:FILE:_files' \
            '(--color)--color[colours; auto\: on a terminal, unless NO_COLOR is set]:auto or always or never:(auto always never)' \
            '(-h --help)-h[print this help]' \
            '(-h --help)--help[print this help]' \
            '*: : '
          ;;
        tokenize)
          _arguments \
            '(-m --model)-m[the model file, GGUF \[$DETRUN_MODEL\]]:MODEL:_files' \
            '(-m --model)--model[the model file, GGUF \[$DETRUN_MODEL\]]:MODEL:_files' \
            '(-p --prompt)-p[the text itself; an empty one is valid]:TEXT: ' \
            '(-p --prompt)--prompt[the text itself; an empty one is valid]:TEXT: ' \
            '(-f --file)-f[the bytes of a file, as they are]:FILE:_files' \
            '(-f --file)--file[the bytes of a file, as they are]:FILE:_files' \
            '(--bos)--bos[put the begin token first, where the model has one]' \
            '(--special)--special[spelled control tokens become control tokens; without it they stay text]' \
            '*-v[log what is done; twice\: in detail]' \
            '*--verbose[log what is done; twice\: in detail]' \
            '(-q --quiet)-q[only results and errors]' \
            '(-q --quiet)--quiet[only results and errors]' \
            '(--log-file)--log-file[append the log to FILE as well]:FILE:_files' \
            '(--color)--color[colours; auto\: on a terminal, unless NO_COLOR is set]:auto or always or never:(auto always never)' \
            '(-h --help)-h[print this help]' \
            '(-h --help)--help[print this help]' \
            '*: : '
          ;;
        help) _describe command commands ;;
      esac
      ;;
  esac
}
_detrun "$@"
