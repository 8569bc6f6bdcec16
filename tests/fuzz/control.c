/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's request handling, over real sockets, with doubles of the pipeline and the sources.
 *
 * The input is a row of records: type u8, options u8, length u16, body. Two clients send them.
 * Every request must be answered once, by its reply or by an error with a sentence, unless the
 * session ends; when the clients have gone, nothing of them is left.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "bench.h"
#include "control/state.h"
#include "fake-pipeline.h"
#include "fuzz.h"

#define CLIENTS      2
#define RECORDS_MOST 24
#define PATIENCE_NS  (20 * NS_PER_SEC)

/* Record types: below 0x10 a request, else 0x100 + type. Options: */
#define SECOND_CLIENT 0x01u
#define NO_SERIAL     0x02u
#define RAW_SIZE      0x04u /* the body's size word is not mended */
#define NO_WAIT       0x08u /* the next record comes before the answer */
/* bits 4 to 6: the descriptor that comes along; bit 7: twice */

struct client {
	int fd;          /* -1: the session ended */
	uint32_t serial; /* of the last request */
	uint32_t waited; /* bit n: request n has no answer yet */
};

static struct bench bench;
static int descriptors[8] = { -1, -1, -1, -1, -1, -1, -1, -1 };

static int ids_memfd(int seals)
{
	static const int64_t ids[4] = { 3, 1, 4, 1 };
	int fd = fuzz_memfd(ids, sizeof(ids));

	REQUIRE(fcntl(fd, F_ADD_SEALS, seals) == 0);
	return fd;
}

static void start(void)
{
	char path[96];
	int list;

	bench_start(&bench, false);
	log_set_level(0);
	fake.lane_bytes = 4096;
	snprintf(path, sizeof(path), "%s/data/set", bench.directory);
	descriptors[1] = open(path, O_PATH | O_CLOEXEC);
	descriptors[2] = open("/", O_PATH | O_CLOEXEC);
	descriptors[3] = ids_memfd(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	descriptors[4] = ids_memfd(0);
	snprintf(path, sizeof(path), "%s/data/list", bench.directory);
	list = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	REQUIRE(list >= 0);
	close(list);
	descriptors[5] = open(path, O_PATH | O_CLOEXEC);
	descriptors[6] = open("/dev/null", O_RDWR | O_CLOEXEC);
	snprintf(path, sizeof(path), "%s/data", bench.directory);
	descriptors[7] = open(path, O_PATH | O_CLOEXEC);
	for (int i = 1; i < 8; i++)
		REQUIRE(descriptors[i] >= 0);
	atexit((void (*)(void))0 == NULL ? fuzz_poison_end : fuzz_poison_end);
}
