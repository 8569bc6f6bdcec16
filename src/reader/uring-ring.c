/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a ring. Whether io_uring works is found out by using it, never from the kernel's version:
 * containers, sysctls and gVisor forbid it in several ways, and old kernels have it in part.
 */
#include "reader/uring-ring.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "reader/faults.h"

#define TRIES          4 /* of ENOMEM: the kernel frees a closed ring's memory late */
#define WORKERS_FILES  16
#define WORKERS_OTHERS 4

static int sysctl_disabled(void)
{
	int CLEANUP(fd_closep) fd =
		open("/proc/sys/kernel/io_uring_disabled", O_RDONLY | O_CLOEXEC);
	char digit = 0;

	if (fd < 0 || read(fd, &digit, 1) != 1)
		return -1;
	return digit - '0';
}

/* The sentence for a refused ring; returns rc. */
static int explain(int rc, char *text, size_t size)
{
	struct rlimit limit = { 0, 0 };
	int disabled;

	switch (-rc) {
	case EPERM:
		disabled = sysctl_disabled();
		if (disabled > 0)
			snprintf(text, size,
				"io_uring is forbidden (EPERM): kernel.io_uring_disabled is %d",
				disabled);
		else
			snprintf(text, size,
				"io_uring is forbidden (EPERM), probably by the container's "
				"seccomp profile");
		break;
	case ENOSYS:
		snprintf(text, size,
			"there is no io_uring (ENOSYS): a seccomp profile or sandbox hides it, or "
			"the kernel was built without it");
		break;
	case ENOMEM:
		getrlimit(RLIMIT_MEMLOCK, &limit);
		snprintf(text, size,
			"no memory for a ring (ENOMEM): the cgroup's limit, or, before Linux 5.12, "
			"the locked memory limit of %llu KiB",
			(unsigned long long)limit.rlim_cur / 1024);
		break;
	default:
		snprintf(text, size, "no ring (%s)", strerrorname_np(-rc));
	}
	return rc;
}

/* The best set of flags that this kernel takes. */
static int setup(struct io_uring *ring, unsigned int entries)
{
	static const unsigned int flags[] = {
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, /* 6.1 */
		IORING_SETUP_COOP_TASKRUN,                               /* 5.19 */
		0,
	};
	int rc = -EINVAL;

	for (unsigned int i = 0; i < sizeof(flags) / sizeof(flags[0]) && rc == -EINVAL; i++)
		rc = io_uring_queue_init(entries, ring, flags[i]);
	return rc;
}

static int setup_patiently(struct io_uring *ring, unsigned int entries,
	const struct reader_faults *faults, unsigned int number)
{
	int rc = -ENOMEM;

	for (unsigned int i = 0; i < TRIES && rc == -ENOMEM; i++) {
		faults_sleep(i * 10 * NS_PER_MS);
		if (faults && faults->ring_from > 0 && number >= faults->ring_from)
			rc = -faults->ring_error;
		else
			rc = setup(ring, entries);
	}
	return rc;
}

static int probe_opcodes(struct io_uring *ring, const struct reader_faults *faults, bool *ret_opens,
	char *text, size_t size)
{
	static const struct {
		int opcode;
		const char *name;
	} needed[] = {
		{ IORING_OP_READ, "READ" },
		{ IORING_OP_POLL_ADD, "POLL_ADD" },
		{ IORING_OP_ASYNC_CANCEL, "ASYNC_CANCEL" },
	};
	struct io_uring_probe *probe = io_uring_get_probe_ring(ring);
	int missing = faults ? (int)faults->missing_opcode : 0;
	int rc = 0;

	if (!probe) {
		snprintf(text, size, "io_uring does not tell what it can (before Linux 5.6?)");
		return -EOPNOTSUPP;
	}
	for (unsigned int i = 0; i < sizeof(needed) / sizeof(needed[0]) && rc == 0; i++) {
		int opcode = needed[i].opcode;

		if (opcode != missing && io_uring_opcode_supported(probe, opcode))
			continue;
		snprintf(text, size, "io_uring of this kernel lacks IORING_OP_%s", needed[i].name);
		rc = -EOPNOTSUPP;
	}
	*ret_opens =
		IORING_OP_OPENAT2 != missing && io_uring_opcode_supported(probe, IORING_OP_OPENAT2);
	io_uring_free_probe(probe);
	return rc;
}

/* Reads half of a few bytes through the ring and looks at them. */
static int read_through(struct io_uring *ring, char *text, size_t size)
{
	static const char wanted[16] = "feeder self-read";
	int CLEANUP(fd_closep) fd = memfd_create("feeder-self-read", MFD_CLOEXEC);
	struct __kernel_timespec second = { .tv_sec = 1 };
	struct io_uring_cqe *cqe = NULL;
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	/* Static: a read that comes too late must not find a stack that is in use again. */
	static _Thread_local char got[sizeof(wanted)];
	int rc;

	if (fd < 0 || write(fd, wanted, sizeof(wanted)) != (ssize_t)sizeof(wanted)) {
		snprintf(text, size, "no memfd to try io_uring with (%s)", strerrorname_np(errno));
		return -EIO;
	}
	memset(got, 0, sizeof(got));
	io_uring_prep_read(sqe, fd, got, sizeof(got) / 2, sizeof(got) / 2);
	rc = io_uring_submit_and_wait_timeout(ring, &cqe, 1, &second, NULL);
	if (rc >= 0 && cqe) {
		rc = cqe->res;
		io_uring_cqe_seen(ring, cqe);
	}
	if (rc == -EPERM || rc == -ENOSYS)
		return explain(rc, text, size);
	if (rc != (int)sizeof(got) / 2 ||
		memcmp(got, wanted + sizeof(got) / 2, sizeof(got) / 2) != 0) {
		snprintf(text, size, "io_uring does not read (%s)",
			rc < 0 ? strerrorname_np(-rc) : "wrong bytes");
		return -EIO;
	}
	return 0;
}

/* Kernel worker threads: few, and only where this thread may run. What an old kernel lacks here
 * does no harm. */
static void limit_workers(struct io_uring *ring)
{
	unsigned int most[2] = { WORKERS_FILES, WORKERS_OTHERS };
	cpu_set_t cpus;

	(void)io_uring_register_iowq_max_workers(ring, most);
	if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
		(void)io_uring_register_iowq_aff(ring, sizeof(cpus), &cpus);
}

int uring_ring_open(struct io_uring *ring, unsigned int entries, const struct reader_faults *faults,
	unsigned int number, bool *ret_opens, char *text, size_t size)
{
	int rc = setup_patiently(ring, entries, faults, number);

	if (rc < 0)
		return explain(rc, text, size);
	if (!(ring->features & IORING_FEAT_EXT_ARG) || !(ring->features & IORING_FEAT_NODROP)) {
		snprintf(text, size, "io_uring of this kernel is too old (before Linux 5.11)");
		rc = -EOPNOTSUPP;
	}
	if (rc == 0)
		rc = probe_opcodes(ring, faults, ret_opens, text, size);
	if (rc == 0)
		rc = read_through(ring, text, size);
	if (rc < 0) {
		io_uring_queue_exit(ring);
		return rc;
	}
	limit_workers(ring);
	return 0;
}
