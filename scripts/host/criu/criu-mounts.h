/* The system calls for mounts that criu-preload.c redirects. */
#pragma once

/* Performs open_tree and move_mount in a sandbox's root: returns 1 and sets `*result` and errno. 0: another call. */
int move_inside(long number, long arguments[6], long *result, long (*real)(long, ...));
