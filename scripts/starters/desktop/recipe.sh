# The template desktop: what its image holds beside that of the base template, and how it starts. Its hash, with that of the files
# beside it and of the base image, names the image.
# shellcheck shell=bash disable=SC2034

STARTER_ABOUT='a screen with Xfce, Chromium, an editor and noVNC, as @e2b/desktop drives it; its session is up at the start'
STARTER_IMAGE=svc/starter/desktop

# What @e2b/desktop calls, a browser, an editor, and fonts that also have Chinese, Japanese and Korean characters and emoji. Xfce's
# parts are named one by one where the metapackage brings what nobody sees here.
STARTER_PACKAGES=(
  xvfb xfce4 xfce4-terminal mousepad dbus-x11 x11-utils x11-xserver-utils xdotool scrot x11vnc novnc websockify net-tools xdg-utils
  libgtk-3-bin chromium fonts-dejavu-core fonts-wqy-zenhei fonts-noto-color-emoji
)
declare -A STARTER_SETS=()
STARTER_BUILT=
STARTER_NPM=()
# Programs look for no bus of assistive technology, which nobody starts.
STARTER_CHANGES=("ENV NO_AT_BRIDGE=1")

STARTER_CPU_COUNT=2
STARTER_MEMORY_MB=2048
STARTER_START='/opt/desktop/start'
# The seconds afterwards let the session come to rest, because each sandbox begins with the memory of this moment.
STARTER_READY='/usr/bin/xdpyinfo -display :0 >/dev/null && pgrep -x xfce4-session && pgrep -x xfwm4 && pgrep -x xfdesktop && pgrep -x xfce4-panel && sleep 5'
# What a client does first, and what its answer has.
STARTER_FIRST='DISPLAY=:0 scrot --pointer --overwrite ~/first.png && file ~/first.png'
STARTER_ANSWER='PNG image data, 1024 x 768'
STARTER_HINT='Sandbox.create() of @e2b/desktop, or Sandbox.create("desktop")'
