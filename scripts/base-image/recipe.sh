# What the base template holds. Its hash, with that of the files beside it, names the image.
# shellcheck shell=bash disable=SC2034

SUITE=bookworm

# The tools SDK clients and their users count on in every sandbox: a login shell, python and python3,
# curl, git with its daemon, ss, tput with terminfo, and what people first reach for.
PACKAGES=(
  bash bzip2 ca-certificates curl dnsutils file git gnupg iproute2 iputils-ping jq less lsof nano
  ncurses-bin ncurses-term netcat-openbsd openssh-client patch procps psmisc python-is-python3 python3
  python3-pip python3-venv sudo tzdata unzip vim-tiny wget xz-utils zip
)

# Manuals are left out, because programs do not read them; the copyright files stay.
DPKG_OPTIONS=(
  path-exclude=/usr/share/man/*
  path-exclude=/usr/share/locale/*
  path-exclude=/usr/share/info/*
  path-exclude=/usr/share/doc/*
  path-include=/usr/share/doc/*/copyright
  force-unsafe-io
)

IMAGE_CHANGES=(
  "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
  "ENV LANG=C.UTF-8"
  "WORKDIR /home/user"
  'CMD ["/bin/bash"]'
)
