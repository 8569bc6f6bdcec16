#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes: builds the harnesses with clang's libFuzzer, ASan and UBSan, and runs each.
#
# usage: tests/fuzz/run.sh SECONDS [HARNESS]...
#
# As many run at once as there are CPUs. Inputs that reach new code are kept in
# build-fuzz/scratch/HARNESS/found and are where the next run goes on. One line a harness; the
# exit status is 1 if something was found (its line names the file), or could not be run.
set -u

root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root" || exit 1
build=build-fuzz
sanitizers='halt_on_error=1:abort_on_error=1:print_stacktrace=1'

fuzz_one() { # SECONDS HARNESS
	local name=$2 scratch=$build/scratch/$2 status=0 runs kept crash temporary

	mkdir -p "$scratch/found"
	# in memory where that is possible: some harnesses write files, and sync them
	temporary=$(mktemp -d /dev/shm/feeder-fuzz.XXXXXX 2>/dev/null || mktemp -d) || return 1
	rm -f "$scratch"/crash-* "$scratch"/leak-* "$scratch"/timeout-* "$scratch"/oom-*
	set -- -max_total_time="$1" -timeout=25 -rss_limit_mb=2048 -print_final_stats=1 \
		-artifact_prefix="$scratch/"
	[ ! -e "tests/fuzz/$name.dict" ] || set -- "$@" -dict="tests/fuzz/$name.dict"
	TMPDIR=$temporary ASAN_OPTIONS=$sanitizers UBSAN_OPTIONS=$sanitizers \
		"$build/tests/fuzz/fuzz-$name" "$@" "$scratch/found" "tests/fuzz/corpus/$name" \
		>"$scratch/log" 2>&1 </dev/null || status=$?
	rm -rf "$temporary"
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$scratch/log")
	kept=$(sed -n 's/^stat::new_units_added: *//p' "$scratch/log")
	if [ "$status" -eq 0 ]; then
		echo "fuzz: $name: ${runs:-0} runs, ${kept:-0} new inputs kept, nothing found"
		return 0
	fi
	crash=$(find "$scratch" -maxdepth 1 -name '*-[0-9a-f]*' -type f | head -n 1)
	if [ -n "$crash" ]; then
		echo "fuzz: $name: FOUND $root/$crash (what it does: $root/$scratch/log)"
	else
		tail -n 20 "$scratch/log"
		echo "fuzz: $name: FAILED with status $status (see $root/$scratch/log)"
	fi
	return 1
}

if [ "${1:-}" = --one ]; then
	fuzz_one "$2" "$3"
	exit
fi
case "${1:-}" in
'' | *[!0-9]*)
	echo "usage: tests/fuzz/run.sh SECONDS [HARNESS]..." >&2
	exit 2
	;;
esac
seconds=$1
shift
if [ ! -e "$build/build.ninja" ] &&
	! CC=clang meson setup "$build" -Dfuzz=enabled -Dtests=enabled -Dman=disabled \
		-Db_sanitize=address,undefined -Db_lundef=false \
		-Dc_args=-fsanitize=fuzzer-no-link >"$build.log" 2>&1; then
	cat "$build.log"
	echo "fuzz: the build could not be configured" >&2
	exit 1
fi
rm -f "$build.log"
if ! log=$(ninja -C "$build" fuzzers 2>&1); then
	printf '%s\n' "$log" | tail -n 40
	echo "fuzz: the harnesses did not compile" >&2
	exit 1
fi
if [ $# -eq 0 ]; then
	for program in tests/fuzz/corpus/*/; do
		program=${program%/}
		set -- "$@" "${program##*/}"
	done
fi
printf '%s\n' "$@" | xargs -P "$(nproc)" -n 1 "$0" --one "$seconds"
[ $? -eq 0 ] # xargs: 123 if one of them failed
