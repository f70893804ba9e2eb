# The program in its image; read by scripts/host/starters/finish.
# shellcheck shell=bash
install -d -m 0755 /opt/codex
cp -R /mnt/vendor/*/. /opt/codex
chown -R root:root /opt/codex
ln -s /opt/codex/bin/codex /usr/local/bin/codex
