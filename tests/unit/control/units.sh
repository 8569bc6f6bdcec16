#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The units are in order: systemd-analyze verify has nothing to say about them.
set -eu
feederd=$(realpath "$1") system=$2 user=$3
if ! command -v systemd-analyze >/dev/null; then
	echo "systemd-analyze is not here"
	exit 77
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
status=0
check() { # FLAG UNIT NAME
	mkdir -p "$dir/$3"
	# the program is not installed yet
	sed "s,^ExecStart=[^ ]*,ExecStart=$feederd," "$2" >"$dir/$3/feeder.service"
	XDG_RUNTIME_DIR=$dir systemd-analyze $1 verify --man=no "$dir/$3/feeder.service" \
		>"$dir/out" 2>&1 || status=1
	if grep -qF feeder.service "$dir/out"; then
		status=1
	fi
	[ $status = 0 ] || cat "$dir/out"
}
check --system "$system" system
check --user "$user" user
exit $status
