/* The system calls for mounts that criu-preload.c redirects. */
#pragma once

/* Makes open_tree and move_mount inside a sandbox's root. Returns 1 and sets `*result` and errno; 0 for any other call. */
int move_inside(long number, long arguments[6], long *result, long (*real)(long, ...));
