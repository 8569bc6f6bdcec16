/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole control with the fake pipeline on one thread, and clients that speak packets to it.
 * Waiting runs the loop, so a test that waits for what never comes fails after two seconds.
 */
#ifndef BENCH_H
#define BENCH_H

#include "base/loop.h"
#include "control/control.h"
#include "protocol/control.h"

struct bench {
	struct loop *loop;
	struct server server;
	struct control *control;
	struct pipeline *pipeline;
	struct config config;
	char directory[32]; /* holds the socket, and the root "data" with "data/set" */
	char socket[64];
};

/* private_daemon: no roots, the own uid's rights. */
void bench_start(struct bench *b, bool private_daemon);
void bench_stop(struct bench *b);
/* Some rounds, for what is on its way. */
void bench_settle(struct bench *b);

/* A connection that has not said hello. */
int bench_connect(struct bench *b);
/* And one that has. */
int bench_client(struct bench *b);

/* Sends; the reply's or event's type, 0 for the end of the stream. fds are given, not closed. */
void bench_send(int fd, uint32_t type, uint32_t serial, const void *body, size_t size,
	const int *fds, unsigned int fd_count);
uint32_t bench_receive(struct bench *b, int fd, struct control_packet *ret);
/* Sends and receives the answer with that serial; events before it are dropped. */
uint32_t bench_call(struct bench *b, int fd, uint32_t type, const void *body, size_t size,
	const int *fds, unsigned int fd_count, struct control_packet *ret);
/* Nothing comes. */
void bench_expect_silence(struct bench *b, int fd);

/* Opens data/set: the handle; 0 with the error in ret. */
uint32_t bench_open_dataset(struct bench *b, int fd, uint32_t flags, struct control_packet *ret);
void bench_lane_request(struct control_open_lane *ret, uint32_t dataset, uint32_t rank);
/* The lane's handle (descriptors stay in ret); 0 with the error in ret. */
uint32_t bench_open_lane(struct bench *b, int fd, const struct control_open_lane *request,
	struct control_packet *ret);
const struct control_error *bench_error(const struct control_packet *packet);

/* Around every test: no descriptor may be left. */
int remember_fds(void **state);
int check_fds(void **state);
#define TEST(name) cmocka_unit_test_setup_teardown(name, remember_fds, check_fds)

#endif
