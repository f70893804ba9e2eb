/* What a runc that starts CRIU works with. */
#pragma once

/* Adds the directories of images, work, state and root of the runc that is our parent, and what the container mounts. */
void see_what_runc_uses(void);
