/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the daemon so that the trainer does not notice: no zombie, no SIGCHLD, no copied page
 * tables, no fork handlers.
 *
 * A middle process is cloned with shared memory and without an exit signal (waitpid(-1) of the
 * trainer does not see it); it starts its own session, clones the daemon and exits, so that the
 * daemon is a child of init. Shared memory and CLONE_VFORK mean that the caller stands still
 * until exec has happened or failed, and reads the error from the same struct. Everything
 * between clone and exec is a plain system call on the copied descriptor and signal tables: the C
 * library's wrappers keep books in the memory that is shared.
 */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

#define STACK_SIZE (64 * 1024)
#define SHARED     __attribute__((no_sanitize("address", "thread", "undefined")))

#if defined(__SANITIZE_THREAD__)
/* TSan's own clone takes every child for a fork; glibc's has a second name. */
extern __typeof__(clone) __clone;
#define clone __clone
#endif

struct child {
	const struct fdr_spawn *spawn;
	char *stacks; /* two: of the middle process, of the daemon before exec */
	pid_t pid;    /* of the daemon */
	int error;    /* errno of clone or exec */
};

static SHARED void reset_signals(void)
{
	/* the kernel's struct sigaction and mask: zeros are SIG_DFL and an empty mask */
	static const unsigned long zeros[8];

	/* exec resets handlers, but what is ignored stays ignored */
	for (int i = 1; i < NSIG; i++)
		syscall(SYS_rt_sigaction, i, zeros, NULL, 8);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, zeros, NULL, 8);
}

static SHARED void reset_descriptors(void)
{
	long null = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);

	/* messages go where the trainer's errors go; its standard output stays its own */
	syscall(SYS_dup3, null, 0, 0);
	if (syscall(SYS_dup3, 2, 1, 0) < 0) {
		syscall(SYS_dup3, null, 1, 0);
		syscall(SYS_dup3, null, 2, 0);
	}
	syscall(SYS_close_range, 3, ~0u, 0);
}

static SHARED int run_daemon(void *argument)
{
	struct child *child = argument;
	const struct fdr_spawn *spawn = child->spawn;

	reset_descriptors();
	syscall(SYS_chdir, "/");
	if (spawn->cpu_mask)
		sched_setaffinity(0, spawn->cpu_mask_size, spawn->cpu_mask);
	reset_signals();
	execve(spawn->path, spawn->argv, spawn->envp);
	child->error = errno;
	syscall(SYS_exit_group, 127);
	return 0;
}

static SHARED int run_middle(void *argument)
{
	struct child *child = argument;

	setsid();
	child->pid =
		clone(run_daemon, child->stacks + 2 * STACK_SIZE, CLONE_VM | CLONE_VFORK, child);
	if (child->pid < 0)
		child->error = errno;
	syscall(SYS_exit_group, 0);
	return 0;
}

static int clone_both(struct child *child)
{
	sigset_t all;
	sigset_t saved;
	pid_t middle;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &saved);
	middle = clone(run_middle, child->stacks + STACK_SIZE, CLONE_VM | CLONE_VFORK, child);
	if (middle < 0)
		child->error = errno;
	else
		waitpid(middle, NULL, __WCLONE);
	pthread_sigmask(SIG_SETMASK, &saved, NULL);
	return -child->error;
}

int fdr_spawn(const struct fdr_spawn *spawn, pid_t *ret_pid, int *ret_pidfd)
{
	struct child child = { .spawn = spawn };
	void *stacks = mmap(NULL, 2 * STACK_SIZE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	int r;

	if (stacks == MAP_FAILED)
		return -errno;
	child.stacks = stacks;
	r = clone_both(&child);
	munmap(stacks, 2 * STACK_SIZE);
	if (r < 0)
		return r;
	*ret_pid = child.pid;
	*ret_pidfd = (int)syscall(SYS_pidfd_open, child.pid, 0);
	return 0;
}
