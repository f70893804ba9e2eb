# The template browser: what its image holds beside that of the base template, and how it starts. Its hash, with that of the files
# beside it, of what it takes from the checkout and of the base image, names the image.
# shellcheck shell=bash disable=SC2034

STARTER_ABOUT='Chromium, headless and up at the start on port 9222, Firefox, and playwright-core'
STARTER_IMAGE=svc/starter/browser

STARTER_PACKAGES=(chromium firefox-esr fonts-dejavu-core fonts-liberation fonts-wqy-zenhei fonts-noto-color-emoji)
declare -A STARTER_SETS=()

# playwright-core has no dependencies, and its version is that of the checkout's lock file.
STARTER_BUILT=node_modules/playwright-core
STARTER_NPM=()
STARTER_CHANGES=("ENV PUPPETEER_EXECUTABLE_PATH=/usr/bin/chromium" "ENV PUPPETEER_SKIP_DOWNLOAD=1")

STARTER_CPU_COUNT=2
STARTER_MEMORY_MB=2048
STARTER_START='/opt/browser/start'
STARTER_READY='curl -fsS -o /dev/null http://localhost:9222/json/version && sleep 2'
# What a client does first, and what its answer has.
STARTER_FIRST='node /opt/browser/first.mjs'
STARTER_ANSWER='6 * 7 = 42'
