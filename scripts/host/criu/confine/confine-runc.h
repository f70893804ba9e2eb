/* Finds the directories of the runc process that starts CRIU. */
#pragma once

/* Adds the image, work, state and root directories of runc, our parent process, and the mounts of the container. */
void see_what_runc_uses(void);
