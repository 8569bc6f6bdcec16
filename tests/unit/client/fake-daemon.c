/* SPDX-License-Identifier: Apache-2.0 */
/* The fake daemon's thread: sessions, commands of the test, doorbells. */
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "fake-parts.h"

static void drop_session(struct fake *fake, unsigned int i)
{
	for (unsigned int k = 0; k < FAKE_LANES; k++) {
		if (fake->lanes[k].used && fake->lanes[k].session == fake->sessions[i])
			fake_free_lane(&fake->lanes[k]);
	}
	fake->sessions[i] = fd_close(fake->sessions[i]);
}

static void serve(struct fake *fake, unsigned int i)
{
	int fd = fake->sessions[i];
	int r = control_receive(fd, fake->packet, MSG_DONTWAIT);
	int handled = 0;

	if (r == -EAGAIN)
		return;
	if (r != 1) {
		drop_session(fake, i);
		return;
	}
	if (fake->config.on_packet)
		handled = fake->config.on_packet(fake, fd, fake->packet, fake->config.context);
	if (handled == 0)
		fake_answer(fake, fd, fake->packet);
	control_packet_close(fake->packet);
	if (handled < 0)
		drop_session(fake, i);
}

static void attach(struct fake *fake)
{
	int fd = accept4(fake->listener, NULL, NULL, SOCK_CLOEXEC);

	for (unsigned int i = 0; fd >= 0 && i < FAKE_SESSIONS; i++) {
		if (fake->sessions[i] < 0) {
			fake->sessions[i] = fd;
			fake->attached++;
			return;
		}
	}
	fd_close(fd);
}

static void run_job(struct fake *fake)
{
	uint64_t value;

	if (read(fake->command, &value, sizeof(value)) < 0)
		return;
	pthread_mutex_lock(&fake->lock);
	if (fake->job)
		fake->job(fake, fake->argument);
	fake->job = NULL;
	pthread_cond_broadcast(&fake->done);
	pthread_mutex_unlock(&fake->lock);
}

static void turn(struct fake *fake)
{
	struct pollfd fds[2 + FAKE_SESSIONS + FAKE_LANES] = {
		{ .fd = fake->command, .events = POLLIN },
		{ .fd = fake->frozen ? -1 : fake->listener, .events = POLLIN },
	};

	for (unsigned int i = 0; i < FAKE_SESSIONS; i++)
		fds[2 + i] = (struct pollfd){ .fd = fake->frozen ? -1 : fake->sessions[i],
			.events = POLLIN };
	for (unsigned int i = 0; i < FAKE_LANES; i++)
		fds[2 + FAKE_SESSIONS + i] = (struct pollfd){
			.fd = fake->lanes[i].used && !fake->frozen ? fake->lanes[i].doorbell : -1,
			.events = POLLIN,
		};
	poll(fds, sizeof(fds) / sizeof(fds[0]), -1);
	if (fds[0].revents)
		run_job(fake);
	if (fake->frozen)
		return;
	if (fds[1].revents)
		attach(fake);
	for (unsigned int i = 0; i < FAKE_SESSIONS; i++) {
		if (fds[2 + i].revents && fake->sessions[i] == fds[2 + i].fd)
			serve(fake, i);
	}
	for (unsigned int i = 0; i < FAKE_LANES; i++) {
		uint64_t rung = 0;

		if (!fake->lanes[i].used)
			continue;
		/* unlike a daemon, which leaves it to epoll's edges */
		if (read(fake->lanes[i].doorbell, &rung, sizeof(rung)) == sizeof(rung))
			fake->lanes[i].bells += rung;
		fake_publish(fake, &fake->lanes[i]);
	}
}

static void *run(void *argument)
{
	struct fake *fake = argument;

	while (!fake->stop)
		turn(fake);
	return NULL;
}

void fake_run(struct fake *fake, void (*fn)(struct fake *fake, void *argument), void *argument)
{
	uint64_t one = 1;

	pthread_mutex_lock(&fake->lock);
	fake->job = fn;
	fake->argument = argument;
	MUST(write(fake->command, &one, sizeof(one)) == sizeof(one));
	while (fake->job)
		pthread_cond_wait(&fake->done, &fake->lock);
	pthread_mutex_unlock(&fake->lock);
}

struct copy {
	void *to;
	const void *from;
	size_t size;
};

static void do_copy(struct fake *fake, void *argument)
{
	struct copy *copy = argument;

	(void)fake;
	memcpy(copy->to, copy->from, copy->size);
}

void fake_set(struct fake *fake, void *to, const void *from, size_t size)
{
	fake_run(fake, do_copy, &(struct copy){ .to = to, .from = from, .size = size });
}

unsigned int fake_count(struct fake *fake, const unsigned int *counter)
{
	unsigned int value = 0;

	fake_set(fake, &value, counter, sizeof(value));
	return value;
}

static void do_lanes_open(struct fake *fake, void *argument)
{
	for (unsigned int i = 0; i < FAKE_LANES; i++)
		*(unsigned int *)argument += fake->lanes[i].used;
}

unsigned int fake_lanes_open(struct fake *fake)
{
	unsigned int lanes = 0;

	fake_run(fake, do_lanes_open, &lanes);
	return lanes;
}

static void do_allow(struct fake *fake, void *argument)
{
	for (unsigned int i = 0; i < FAKE_LANES; i++)
		fake->lanes[i].allowed += fake->lanes[i].used ? *(uint64_t *)argument : 0;
}

void fake_allow(struct fake *fake, uint64_t batches)
{
	fake_run(fake, do_allow, &batches);
}

static void do_die(struct fake *fake, void *argument)
{
	(void)argument;
	for (unsigned int i = 0; i < FAKE_SESSIONS; i++)
		drop_session(fake, i);
}

void fake_die(struct fake *fake)
{
	fake_run(fake, do_die, NULL);
}

static void do_freeze(struct fake *fake, void *argument)
{
	fake->frozen = *(bool *)argument;
}

void fake_freeze(struct fake *fake, bool frozen)
{
	fake_run(fake, do_freeze, &frozen);
}

static void do_state(struct fake *fake, void *argument)
{
	for (unsigned int i = 0; i < FAKE_LANES; i++) {
		struct fake_lane *lane = &fake->lanes[i];

		if (!lane->used)
			continue;
		ring_store_release(&fake_words(lane)->state, *(uint32_t *)argument); /* E4 */
		ring_futex_wake(&fake_words(lane)->published);
	}
}

void fake_set_state(struct fake *fake, uint32_t state)
{
	fake_run(fake, do_state, &state);
}

struct event {
	uint32_t type;
	const void *body;
	size_t size;
};

static void do_event(struct fake *fake, void *argument)
{
	struct event *event = argument;

	for (unsigned int i = 0; i < FAKE_SESSIONS; i++) {
		if (fake->sessions[i] >= 0)
			control_send(fake->sessions[i], event->type, 0, event->body, event->size,
				NULL, 0, NULL, 0);
	}
}

void fake_event(struct fake *fake, uint32_t type, const void *body, size_t size)
{
	fake_run(fake, do_event, &(struct event){ .type = type, .body = body, .size = size });
}

static void do_lane_error(struct fake *fake, void *argument)
{
	for (unsigned int i = 0; i < FAKE_LANES; i++) {
		struct control_error *body = argument;

		if (!fake->lanes[i].used)
			continue;
		body->lane = fake->lanes[i].handle;
		control_send(fake->lanes[i].session, CONTROL_ERROR, 0, body, sizeof(*body), NULL, 0,
			NULL, 0);
	}
}

void fake_lane_error(struct fake *fake, int code, const char *text)
{
	struct control_error body = { .size = sizeof(body), .code = code };

	snprintf(body.text, sizeof(body.text), "%s", text);
	fake_run(fake, do_lane_error, &body);
}

static int listen_on(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	MUST(fd >= 0 && strlen(path) < sizeof(address.sun_path));
	strcpy(address.sun_path, path);
	MUST(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	MUST(listen(fd, 16) == 0);
	return fd;
}

struct fake *fake_start(const char *path, const struct fake_config *config)
{
	static unsigned int count;
	struct fake *fake = calloc(1, sizeof(*fake));

	MUST(fake);
	if (config)
		fake->config = *config;
	fake->config.slots = fake->config.slots ? fake->config.slots : 4;
	fake->config.capacity = fake->config.capacity ? fake->config.capacity : 4;
	fake->config.side = fake->config.side ? fake->config.side : 8;
	fake->config.steps = fake->config.steps ? fake->config.steps : 5;
	if (path)
		snprintf(fake->path, sizeof(fake->path), "%s", path);
	else
		snprintf(fake->path, sizeof(fake->path), "/tmp/feeder-fake-%d-%u.sock",
			(int)getpid(), __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED));
	unlink(fake->path);
	for (unsigned int i = 0; i < FAKE_SESSIONS; i++)
		fake->sessions[i] = -1;
	fake->packet = calloc(1, sizeof(*fake->packet));
	fake->listener = listen_on(fake->path);
	fake->command = eventfd(0, EFD_CLOEXEC);
	pthread_mutex_init(&fake->lock, NULL);
	pthread_cond_init(&fake->done, NULL);
	MUST(fake->packet && pthread_create(&fake->thread, NULL, run, fake) == 0);
	return fake;
}

static void do_stop(struct fake *fake, void *argument)
{
	(void)argument;
	fake->stop = true;
}

void fake_stop(struct fake *fake)
{
	fake_run(fake, do_stop, NULL);
	pthread_join(fake->thread, NULL);
	do_die(fake, NULL);
	fd_close(fake->listener);
	fd_close(fake->command);
	unlink(fake->path);
	pthread_mutex_destroy(&fake->lock);
	pthread_cond_destroy(&fake->done);
	free(fake->packet);
	free(fake);
}
