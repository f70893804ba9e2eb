# The program in its image; read by scripts/host/starters/finish.
# shellcheck shell=bash
install -d -m 0755 /opt/claude
install -m 0755 /mnt/claude /opt/claude/claude
ln -s /opt/claude/claude /usr/local/bin/claude
