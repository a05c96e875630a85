# SPDX-License-Identifier: MIT
# bash completion for pathprof. tools/check_docs.py compares the options with the program's tables.

# The options of a subcommand.
_pathprof_options()
{
	local options='' common='-q --quiet -v --verbose --color --no-pager -h --help --version'

	case $1 in
	record) options='-e --event -c --count -F --freq --trigger --inherit --jitter --seed -o --output --duration --delay --memory --wall --gil' ;;
	report) options='--by --threads --tree --inverted --event --state --split-state --limit --min-share --source --json' ;;
	export) options='--format --event -o --output' ;;
	archive) options='-o --output' ;;
	list) options='--json' ;;
	doctor) options='--json' ;;
	esac
	printf '%s\n' "$options $common"
}

# The events that can be sampled here by their names. The rows with "-" for a period cannot; those with
# a colon, a slash or CODE are no names but forms of them; below the first empty line stand reasons.
_pathprof_events()
{
	pathprof list -q 2>/dev/null |
		awk '/^$/ { exit } NR > 1 && $4 != "-" && $1 !~ /[:\/]|^rCODE$/ { print $1 }'
}

# The values of an option that are words; nothing for others.
_pathprof_values()
{
	case $1 in
	--color) echo 'auto always never' ;;
	--format) echo 'collapsed speedscope flamegraph jsonl' ;;
	--by) echo 'function line file' ;;
	--jitter) echo 'yes no' ;;
	--trigger) echo 'perf-sigtrap perf-async cpu-timer cpu-clock' ;;
	--state) echo 'running gil gil-wait runnable waiting unseen' ;;
	-e | --event) [[ $2 == record ]] && _pathprof_events ;;
	esac
}

# The place of COMMAND among the words of `pathprof record`: after "--", or the first operand.
_pathprof_command_at()
{
	local i

	for ((i = 2; i <= COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--)
			((i == COMP_CWORD)) && return # the beginning of an option, so far
			echo $((i + 1))
			return
			;;
		-[eFco] | --event | --freq | --count | --trigger | --jitter | --seed | --output | --duration | --delay | --memory | --color)
			i=$((i + 1))
			[[ ${COMP_WORDS[i]} == '=' ]] && i=$((i + 1))
			;;
		-*) ;;
		*)
			echo "$i"
			return
			;;
		esac
	done
}

_pathprof()
{
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
	local command=${COMP_WORDS[1]} commands='record report export archive list doctor'
	local option=$previous values command_at before=''

	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W "$commands help --help --version" -- "$current")
		return
	fi
	if [[ $command == help ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$current")
		return
	fi
	if [[ $command == record ]]; then
		command_at=$(_pathprof_command_at)
		if [[ $command_at ]]; then
			if ((COMP_CWORD == command_at)); then
				mapfile -t COMPREPLY < <(compgen -c -- "$current")
			else
				mapfile -t COMPREPLY < <(compgen -f -- "$current")
			fi
			return
		fi
	fi
	# "--format=x" comes as three words.
	if [[ $current == '=' ]]; then
		current=''
	elif [[ $previous == '=' ]]; then
		option=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	values=$(_pathprof_values "$option" "$command")
	# Of a list with commas only the last word is completed.
	if [[ $option =~ ^(-e|--event|--by|--state)$ && $current == *,* ]]; then
		before=${current%,*},
	fi
	if [[ $values ]]; then
		mapfile -t COMPREPLY < <(compgen -P "$before" -W "$values" -- "${current#"$before"}")
	elif [[ $current == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_pathprof_options "$command")" -- "$current")
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
	fi
}

complete -o filenames -F _pathprof pathprof
