# The interpreter in its image; read by scripts/host/starters/finish.
# shellcheck shell=bash
mkdir -p "$INTERPRETER_DIR"
cp -R /mnt/. "$INTERPRETER_DIR"
chown -R root:root "$INTERPRETER_DIR"
chmod -R u=rwX,go=rX "$INTERPRETER_DIR"
# Templates of users may begin the path without sudo: they must be able to reach the file, and nothing else there.
chmod 0711 /root
install -d -m 0755 /root/.jupyter
install -m 0755 /srv/start-up.sh /root/.jupyter/start-up.sh
# The first plot would otherwise wait until all fonts are read.
HOME=/root MPLBACKEND=agg python3 -c 'import matplotlib.font_manager'
python3 -m compileall -q "$INTERPRETER_DIR/python"
# What the user installs with pip goes where the kernels of root find it.
install -d -m 0777 /usr/local/lib/python3.*/dist-packages
# An interpreter that does not start shows it here, and not first in a build of the template.
/usr/local/bin/node --check "$INTERPRETER_DIR/main.js"
