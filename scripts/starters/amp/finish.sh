# The program in its image; read by scripts/host/starters/finish.
# shellcheck shell=bash
install -d -m 0755 /opt/amp
install -m 0755 /mnt/bin/amp /opt/amp/amp
ln -s /opt/amp/amp /usr/local/bin/amp
