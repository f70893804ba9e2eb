# What the scripts take from the user's environment, and what not: every script reads this file first. The scripts start with
# `bash -p`, which ignores BASH_ENV, CDPATH and functions of the environment before the first line.
# shellcheck shell=bash

# Files that a service of another user reads must not depend on the user's mask; files for root alone set theirs.
umask 022

# What changes how a tool finds, prints or loads things. Programs that the scripts start must not inherit it either.
unset CDPATH BASH_ENV ENV GLOBIGNORE POSIXLY_CORRECT GREP_OPTIONS GREP_COLOR GREP_COLORS TAR_OPTIONS LANGUAGE
unset NODE_ENV NODE_OPTIONS NODE_PATH NODE_V8_COVERAGE NODE_PENDING_DEPRECATION NODE_REDIRECT_WARNINGS
unset DOCKER_HOST DOCKER_CONTEXT DOCKER_CONFIG DOCKER_TLS_VERIFY DOCKER_CERT_PATH DOCKER_API_VERSION DOCKER_DEFAULT_PLATFORM
# The public SDK reads these; the scripts use it with the platform's own.
unset "${!E2B_@}"
export LC_ALL=C.UTF-8

# A shell of root that `su` has opened lacks the directories of system programs.
case ":${PATH:-}:" in
  *:/usr/sbin:*) ;;
  *) export PATH=${PATH:+$PATH:}/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin ;;
esac

# mktemp needs a directory that exists.
if [ -n "${TMPDIR:-}" ] && ! [ -d "$TMPDIR" ]; then unset TMPDIR; fi

# A proxy is for what leaves the machine. Programs that read these variables keep it, and reach this machine without it.
local_names=localhost,.localhost,127.0.0.1,::1
case ",${no_proxy:-}," in
  *",$local_names,"*) ;;
  *)
    no_proxy=${no_proxy:-${NO_PROXY:-}}
    export no_proxy=${no_proxy:+$no_proxy,}$local_names
    ;;
esac
export NO_PROXY=$no_proxy
unset local_names

# local_curl ARGUMENT…: curl to this machine: without any proxy, because requests have tokens in them, and without the
# user's .curlrc, which could name one.
local_curl() { command curl -q --noproxy '*' "$@"; }
