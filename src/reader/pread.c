/* SPDX-License-Identifier: Apache-2.0 */
/* The pread back end: each thread makes one call at a time and waits in it. */
#include "base/clock.h"
#include "reader/backend.h"
#include "reader/faults.h"

static int pread_open(struct reader_thread *t, char *text, size_t size)
{
	(void)t;
	(void)text;
	(void)size;
	return 0;
}

static void pread_close(struct reader_thread *t)
{
	(void)t;
}

static void pread_wake(struct reader_thread *t)
{
	pthread_cond_signal(&t->wakeup);
}

/* The next operation to go on with; NULL: the thread may end. */
static struct operation *next_operation(struct reader_thread *t)
{
	struct reader *r = t->reader;
	struct operation *op;

	pthread_mutex_lock(&r->lock);
	for (;;) {
		op = thread_due(t, now_ns());
		if (!op)
			op = thread_take(t);
		if (op || thread_may_end(t))
			break;
		t->sleeping = true;
		reader_cond_wait(&t->wakeup, &r->lock, thread_next_due(t));
		t->sleeping = false;
		t->woken = false;
	}
	if (r->abandoned)
		op = NULL;
	reader_unlock(r);
	return op;
}

static ssize_t call(struct operation *op)
{
	const struct reader_faults *faults = op->thread->reader->config.faults;
	ssize_t result;

	if (!faults)
		return operation_call(op);
	if (faults_stick(faults, op))
		faults_block(faults, op);
	result = faults_error(faults, op);
	if (result == 0)
		result = operation_call(op);
	faults_sleep(faults_delay_ns(faults, op));
	return result;
}

static void pread_run(struct reader_thread *t)
{
	struct operation *op;

	while ((op = next_operation(t))) {
		while (op->stage == OPERATION_OPEN || op->stage == OPERATION_READ)
			operation_step(op, call(op));
		if (op->stage == OPERATION_WAIT)
			thread_delay(t, op);
		else
			operation_finish(op);
	}
}

const struct reader_ops reader_ops_pread = {
	.name = "pread",
	.threads = 8,
	.threads_max = READER_THREADS_MAX,
	.depth = 8,
	.open = pread_open,
	.run = pread_run,
	.wake = pread_wake,
	.close = pread_close,
};
