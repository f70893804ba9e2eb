/* A read-only mount of a directory of the host, with inodes of its own. */
#pragma once

/* Two mounts of one directory share its data in memory and nothing else: the kernel ties locks, leases and watches to
 * inodes, so what holds a file of one mount is not seen in the other. Returns a descriptor of the mount, which is nowhere
 * yet, or -1 with errno. */
int own_inodes(const char *directory);
