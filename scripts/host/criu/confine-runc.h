/* The directories of the runc that starts CRIU. */
#pragma once

/* Adds the directories of images, work, state and root of the runc that is our parent, and what the container mounts. */
void see_what_runc_uses(void);
