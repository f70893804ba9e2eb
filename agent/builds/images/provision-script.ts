/**
 * Scripts that run as root in a foreign image, with its /bin/sh: POSIX only, with no programs beyond busybox's. Two
 * parts: the installation of packages may fail, the rest must not.
 */

import { addUser } from "../steps/add-user-script.ts";

/** Increased when the scripts change, so that images are provisioned again. */
export const PROVISIONING = "6";

/** Programs that the packages must provide: sandboxes and helpers of the SDK use them. */
const DISTRIBUTION = `
id=none; like=; name="an image without /etc/os-release"
if [ -r /etc/os-release ]; then
  id=$(. /etc/os-release; echo "\${ID:-none}"); like=$(. /etc/os-release; echo "\${ID_LIKE:-}")
  name=$(. /etc/os-release; echo "\${PRETTY_NAME:-\${ID:-}}")
fi
case "$id" in
  debian|ubuntu) family=apt;; alpine|wolfi|chainguard) family=apk;; fedora|rhel|centos|amzn) family=dnf;;
  arch|archlinux) family=pacman;;
  none) family=none;;
  *) case " $like " in
      *" debian "*|*" ubuntu "*) family=apt;; *" arch "*) family=pacman;; *" alpine "*) family=apk;;
      *" fedora "*|*" rhel "*|*" centos "*) family=dnf;; *" suse "*) family=zypper;;
      *) family=unsupported;;
    esac;;
esac`;

/** Exit 3: the distribution is not supported; the last line says why. */
export const CHECK_SCRIPT = `${DISTRIBUTION}
echo "The image is $name"
if [ "$family" = unsupported ]; then
  echo "the distribution with ID='$id' is not supported; Debian, Ubuntu, Alpine, Fedora, RHEL, SUSE, Arch and those like them are" >&2
  exit 3
fi
exit 0`;

/**
 * Makes the directories, its arguments, that the image declares with `VOLUME` and does not have: `svc-runc` leaves the volumes
 * out, and Docker would make the directories with them.
 */
export const VOLUMES_SCRIPT = 'for path; do [ -e "$path" ] || mkdir -p -- "$path"; done';

/** Installs what is missing, if possible. Exit 4: something is still missing. */
export const PACKAGES_SCRIPT = `${DISTRIBUTION}
missing() {
  lacking=
  for program in bash curl ss pgrep sudo tar; do command -v "$program" >/dev/null 2>&1 || lacking="$lacking $program"; done
  [ -s /etc/ssl/certs/ca-certificates.crt ] || [ -s /etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem ] ||
    [ -s /etc/ssl/cert.pem ] || lacking="$lacking ca-certificates"
}
packages() { # SS PGREP: prints the packages to install; SS and PGREP are the packages of ss and pgrep
  for program in $lacking; do
    case "$program" in ss) echo "$1";; pgrep) echo "$2";; *) echo "$program";; esac
  done
}
missing
[ -n "$lacking" ] || exit 0
echo "Missing:$lacking"
case "$family" in
  apt)
    export DEBIAN_FRONTEND=noninteractive
    # No init runs in a sandbox: packages must not try to start their services.
    [ -e /usr/sbin/policy-rc.d ] || { printf '#!/bin/sh\\nexit 101\\n' >/usr/sbin/policy-rc.d && chmod 0755 /usr/sbin/policy-rc.d; }
    apt-get -o Acquire::Retries=1 update -q && apt-get install -y -q --no-install-recommends $(packages iproute2 procps)
    rm -rf /var/lib/apt/lists/*;;
  apk) apk add --no-cache $(packages iproute2-ss procps) || apk add --no-cache $(packages iproute2 procps);;
  dnf)
    dnf=$(command -v dnf || command -v microdnf || command -v yum) && "$dnf" install -y --setopt=install_weak_deps=0 $(packages iproute procps-ng)
    [ -z "$dnf" ] || "$dnf" clean all >/dev/null 2>&1;;
  zypper)
    zypper --non-interactive install --no-recommends $(packages iproute2 procps)
    zypper clean --all >/dev/null 2>&1;;
  pacman) pacman -Sy --noconfirm --needed $(packages iproute2 procps-ng); rm -rf /var/cache/pacman/pkg/*;;
esac
missing
[ -n "$lacking" ] || exit 0
echo "Not installed:$lacking" >&2
exit 4`;

/** Creates the user, the login shell and the place of certificates. May run repeatedly. */
export const USER_SCRIPT = `set -e
umask 022
[ -e /etc/passwd ] || echo 'root:x:0:0:root:/root:/bin/sh' >/etc/passwd
[ -e /etc/group ] || echo 'root:x:0:' >/etc/group
mkdir -p /root /tmp /etc/profile.d /usr/local/share/ca-certificates
chmod 1777 /tmp
if ! command -v bash >/dev/null 2>&1; then
  # Clients run every command with bash: the shell that is there has to do.
  mkdir -p /bin
  printf '#!/bin/sh\\nexec /bin/sh "$@"\\n' >/bin/bash
  chmod 0755 /bin/bash
  echo "bash is missing and could not be installed: /bin/bash runs /bin/sh instead" >&2
elif [ ! -x /bin/bash ]; then
  mkdir -p /bin && ln -sf "$(command -v bash)" /bin/bash
fi
${addUser("user", 1000)}
if [ -d /etc/sudoers.d ] || command -v sudo >/dev/null 2>&1; then
  mkdir -p /etc/sudoers.d
  echo 'user ALL=(ALL:ALL) NOPASSWD: ALL' >/etc/sudoers.d/user
  printf 'Defaults !fqdn, env_keep += "http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY NODE_USE_ENV_PROXY SSL_CERT_FILE NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE"\\n' >/etc/sudoers.d/svc
  chmod 0440 /etc/sudoers.d/user /etc/sudoers.d/svc
  if [ -s /etc/sudoers ] && [ -n "$(tail -c 1 /etc/sudoers)" ]; then echo >>/etc/sudoers; fi
  if [ -e /etc/sudoers ] && ! grep -Eq '^[#@]includedir[[:space:]]+/etc/sudoers.d' /etc/sudoers; then
    echo '@includedir /etc/sudoers.d' >>/etc/sudoers
  fi
fi
# Commands run in a login shell, and many images' profile forgets the PATH of the image and of ENV steps.
[ -e /etc/profile ] || echo 'for script in /etc/profile.d/*.sh; do [ ! -r "$script" ] || . "$script"; done; unset script' >/etc/profile
if ! grep -q 'svc: keep PATH' /etc/profile; then
  { echo 'svc_path=$PATH # svc: keep PATH'; cat /etc/profile
    echo; echo 'if [ -n "\${svc_path:-}" ]; then PATH=$svc_path; export PATH; fi; unset svc_path # svc: keep PATH'
  } >/etc/profile.svc-new
  chmod 0644 /etc/profile.svc-new
  mv /etc/profile.svc-new /etc/profile
fi`;
