# SPDX-License-Identifier: Apache-2.0
# Sourced by tools/demo and tools/check: the Debian packages that they need.
# shellcheck shell=bash disable=SC2034,SC2154 # its variables are used there, and the other way
# Uses: fail WHAT REMEDY (of the script that sources this), $log (a file for apt's output).

build_packages='meson ninja-build gcc libc6-dev pkg-config libjpeg62-turbo-dev liburing-dev
	libspng-dev libxxhash-dev libnuma-dev libinih-dev'
check_packages='g++ clang libclang-rt-14-dev clang-format libcmocka-dev scdoc python3
	python3-numpy python3-pil systemd procps'

# Those of the named packages that are not installed.
packages_missing() {
	local package

	for package in "$@"; do
		dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null |
			grep -qx installed || printf '%s ' "$package"
	done
}

# The prefix for a command that needs root; asks for a password only on a terminal.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif [ -t 0 ] && [ -z "${CI:-}" ]; then
		sudo "$@"
	else
		sudo -n "$@"
	fi
}

# The lists of packages are fetched only where there are none, as on a system that was just made.
package_lists_fetch() {
	local try

	ls /var/lib/apt/lists/*_Packages* >/dev/null 2>&1 && return 0
	for try in 1 2 3; do
		echo "fetching the lists of packages (try $try of 3)"
		if as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq >>"$log" 2>&1 &&
			ls /var/lib/apt/lists/*_Packages* >/dev/null 2>&1; then
			return 0
		fi
		sleep $((try * 3))
	done
	return 1
}

# Installs what is missing of the named packages, and says before what that is.
packages_install() {
	local missing

	if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
		echo "no apt on this system: trusting that these are there:" "$@"
		return 0
	fi
	missing=$(packages_missing "$@")
	[ -n "$missing" ] || return 0
	echo "about to install these Debian packages: $missing"
	if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
		fail "packages are missing, and installing them needs root or sudo" \
			"as root: apt-get install $missing"
	fi
	package_lists_fetch || fail "the lists of packages could not be fetched" \
		"look at the network and at /etc/apt; apt-get's words: $(tail -n 1 "$log")"
	# shellcheck disable=SC2086 # a list of words
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
		-o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 $missing >>"$log" 2>&1 </dev/null ||
		fail "apt-get could not install $missing($(grep -a '^E:' "$log" | tail -n 1))" \
			"if the lists are old: apt-get update, then start this again"
}
