# The program in its image; read by scripts/host/starters/finish.
# shellcheck shell=bash
install -d -m 0755 /opt/opencode
install -m 0755 /mnt/bin/opencode /opt/opencode/opencode
ln -s /opt/opencode/opencode /usr/local/bin/opencode
