/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service manager's notification protocol (sd_notify(3), section Notes: stable and meant to
 * be implemented without libsystemd): one datagram of NAME=VALUE lines to $NOTIFY_SOCKET.
 */
#ifndef BASE_NOTIFY_H
#define BASE_NOTIFY_H

#include <stdbool.h>

/* 1 sent, 0 nobody asked (no NOTIFY_SOCKET), negative errno. */
int notify_send(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Descriptors that the service manager passed: their number (the first is
 * NOTIFY_LISTEN_START), 0 where they are not for this process. Takes LISTEN_* out of the
 * environment and sets close-on-exec.
 */
#define NOTIFY_LISTEN_START 3
int notify_listen_fds(void);

#endif
