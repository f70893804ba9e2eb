# The browsers in their image; read by scripts/host/starters/finish.
# shellcheck shell=bash
install -d -m 0755 /opt/browser /opt/google/chrome /home/node_modules/playwright-core
install -m 0755 /srv/start /opt/browser/
install -m 0644 /srv/front.mjs /srv/first.mjs /opt/browser/
cp -R /mnt/. /home/node_modules/playwright-core
chown -R root:root /home/node_modules
chmod -R u=rwX,go=rX /home/node_modules
# Where Playwright and Puppeteer look for the channel `chrome`.
ln -s /usr/bin/chromium /opt/google/chrome/chrome

# Chromium's own sandbox needs namespaces that a sandbox of the platform does not have: the platform's is the one that holds. There
# is no graphics processor, and no keyring that would ask for a password.
cat >/etc/chromium.d/sandbox <<'FLAGS'
export CHROMIUM_FLAGS="$CHROMIUM_FLAGS --no-sandbox --disable-gpu --no-first-run --no-default-browser-check --password-store=basic"
FLAGS
# A program that does not start shows it here, and not first in a build of the template.
for program in chromium firefox-esr node; do command -v "$program" >/dev/null; done
node --check /opt/browser/front.mjs
