# The desktop in its image; read by scripts/host/starters/finish.
# shellcheck shell=bash
install -d -m 0755 /opt/desktop
install -m 0755 /srv/start /srv/in-place-of /opt/desktop/
# They come before those of /usr/bin on the path.
for name in Xvfb xdpyinfo startxfce4; do ln -s /opt/desktop/in-place-of "/usr/local/bin/$name"; done
# Users take turns at it; the second file says that nobody has taken the session yet.
install -d -m 0777 /var/lib/desktop
install -m 0666 /dev/null /var/lib/desktop/turn
install -m 0666 /dev/null /var/lib/desktop/free
ln -s /usr/share/novnc /opt/noVNC

# Chromium's own sandbox needs namespaces that a sandbox of the platform does not have: the platform's is the one that holds. There
# is no graphics processor, and no keyring that would ask for a password.
cat >/etc/chromium.d/sandbox <<'FLAGS'
export CHROMIUM_FLAGS="$CHROMIUM_FLAGS --no-sandbox --disable-gpu --no-first-run --no-default-browser-check --password-store=basic"
FLAGS
install -d -m 0755 /etc/chromium/policies/managed
printf '%s\n' '{ "CommandLineFlagSecurityWarningsEnabled": false, "MetricsReportingEnabled": false }' \
  >/etc/chromium/policies/managed/sandbox.json
cat >/etc/xdg/mimeapps.list <<'LIST'
[Default Applications]
text/html=chromium.desktop
x-scheme-handler/http=chromium.desktop
x-scheme-handler/https=chromium.desktop
text/plain=org.xfce.mousepad.desktop
LIST
# A program that does not start shows it here, and not first in a build of the template.
for program in Xvfb xdpyinfo startxfce4 xdotool scrot x11vnc xrandr netstat xdg-open gtk-launch chromium mousepad; do
  command -v "$program" >/dev/null
done
test -x /opt/noVNC/utils/novnc_proxy
