# The program in its image; read by scripts/host/starters/finish.
# shellcheck shell=bash
install -d -m 0755 /opt/amp
install -m 0755 /mnt/amp /opt/amp/amp
ln -s /opt/amp/amp /usr/local/bin/amp
# The version is the one of the image: a sandbox does not change it by itself.
install -d -m 0755 -o user -g user /home/user/.config /home/user/.config/amp
install -m 0644 -o user -g user /dev/stdin /home/user/.config/amp/settings.json <<<'{ "amp.updates.mode": "disabled" }'
