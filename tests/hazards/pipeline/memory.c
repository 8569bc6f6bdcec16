/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose memory a ring is and where: taken by the daemon before a client has it, on the node that
 * was asked for. mbind and fallocate are wrapped and noted.
 */
#include "unit/pipeline/fixture.h"

#include <numaif.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOTES_MAX 32

/* One of the two calls: mbind (fd -1) with its mask's lowest bit, or fallocate. */
struct note {
	int fd;
	uint64_t bytes;
	int node;
	int mode;
	unsigned int flags;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct note notes[NOTES_MAX];
static unsigned int note_count;
static int mbind_error;

long __real_mbind(void *addr, unsigned long len, int mode, const unsigned long *nodemask,
	unsigned long maxnode, unsigned int flags);
long __wrap_mbind(void *addr, unsigned long len, int mode, const unsigned long *nodemask,
	unsigned long maxnode, unsigned int flags);
int __real_fallocate64(int fd, int mode, off_t offset, off_t len);
int __wrap_fallocate64(int fd, int mode, off_t offset, off_t len);

static void put_note(struct note note)
{
	pthread_mutex_lock(&lock);
	assert_true(note_count < NOTES_MAX);
	notes[note_count++] = note;
	pthread_mutex_unlock(&lock);
}

long __wrap_mbind(void *addr, unsigned long len, int mode, const unsigned long *nodemask,
	unsigned long maxnode, unsigned int flags)
{
	int node = 0;

	while (!(nodemask[node / 64] >> (node % 64) & 1))
		node++;
	assert_true((unsigned long)node < maxnode);
	put_note((struct note){ -1, len, node, mode, flags });
	if (mbind_error) {
		errno = mbind_error;
		return -1;
	}
	return __real_mbind(addr, len, mode, nodemask, maxnode, flags);
}

int __wrap_fallocate64(int fd, int mode, off_t offset, off_t len)
{
	put_note((struct note){ fd, (uint64_t)len, -1, mode, 0 });
	return __real_fallocate64(fd, mode, offset, len);
}

/* Two batches of a lane on a node; the notes of its opening stay. */
static void run_on(struct folder *f, int node, struct consumer *ret)
{
	struct pipeline_options options = { .workers = 1 };
	struct control_open_lane open;
	struct ring_descriptor d;
	struct pipeline *p = pipeline_make(&options);

	request_init(&open);
	open.numa_node = node;
	note_count = 0;
	consumer_open(ret, p, f, &open);
	assert_true(consumer_next(ret, &d));
	assert_true(consumer_next(ret, &d));
	consumer_close(ret);
	pipeline_free(p);
}

static void d64_the_node_is_said_before_the_first_touch(void **state)
{
	struct consumer none, bound;
	struct folder f;

	(void)state;
	folder_make(&f);
	folder_open(&f);
	run_on(&f, -1, &none);
	for (unsigned int i = 0; i < note_count; i++)
		assert_true(notes[i].fd >= 0);
	run_on(&f, 0, &bound);
	assert_true(bound.bytes_hash == none.bytes_hash);
	assert_true(note_count >= 3);
	/* the whole payload, and only then its first slot */
	assert_int_equal(notes[0].fd, -1);
	assert_int_equal(notes[0].bytes, bound.reply.ring_bytes);
	assert_int_equal(notes[0].node, 0);
	assert_int_equal(notes[0].mode, MPOL_PREFERRED);
	assert_true(notes[1].fd >= 0);
	folder_free(&f);
}

/* Nodes that are not there, numbers that are none, a kernel or container that forbids mbind. */
static void d64_a_node_that_is_absent_is_harmless(void **state)
{
	static const int nodes[] = { 1, 63, 64, 1023, 1024, 1 << 30, -2 };
	struct consumer none, other;
	struct folder f;

	(void)state;
	folder_make(&f);
	folder_open(&f);
	run_on(&f, -1, &none);
	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		run_on(&f, nodes[i], &other);
		assert_true(other.bytes_hash == none.bytes_hash);
	}
	mbind_error = EPERM;
	run_on(&f, 0, &other);
	mbind_error = 0;
	assert_true(other.bytes_hash == none.bytes_hash);
	folder_free(&f);
}

static uint64_t allocated(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/*
 * Pages are charged to who touches them first. When a client gets the descriptors every page is
 * there: whatever it touches, it pays for nothing.
 */
static void d59_every_page_is_there_before_a_client_is(void **state)
{
	struct pipeline_options options = { .workers = 1 };
	struct control_open_lane open;
	struct lane_request request = { .open = &open, .job_key = 1 };
	struct control_lane reply;
	struct pipeline *p;
	struct lane *lane;
	struct folder f;
	char text[512] = "";
	int fds[3];

	(void)state;
	folder_make(&f);
	folder_open(&f);
	p = pipeline_make(&options);
	request_init(&open);
	open.slots = 7;
	request.dataset = f.dataset;
	if (pipeline_lane_new(&lane, p, &request, &reply, fds, text, sizeof(text)) < 0)
		fail_msg("%s", text);
	for (unsigned int i = 0; i < 2; i++) {
		struct stat st;
		uint64_t before = allocated(fds[i]);
		const volatile uint8_t *map;

		assert_int_equal(fstat(fds[i], &st), 0);
		assert_true(st.st_size > 0 && before >= (uint64_t)st.st_size);
		map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fds[i], 0);
		assert_true(map != MAP_FAILED);
		for (off_t at = 0; at < st.st_size; at += 4096)
			(void)map[at];
		assert_int_equal(allocated(fds[i]), before);
		munmap((void *)map, (size_t)st.st_size);
	}
	for (unsigned int i = 0; i < 3; i++)
		close(fds[i]);
	pipeline_lane_free(lane);
	pipeline_free(p);
	folder_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(d64_the_node_is_said_before_the_first_touch),
		cmocka_unit_test(d64_a_node_that_is_absent_is_harmless),
		cmocka_unit_test(d59_every_page_is_there_before_a_client_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
