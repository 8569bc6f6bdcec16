/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening a dataset: the daemon gets an O_PATH descriptor of what the caller's path names here,
 * so that a container's mounts decide, and answers with its size and class names.
 */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#define CLASS_BYTES_MAX (256u << 20)

void fdr_dataset_deinit(struct fdr_dataset *dataset)
{
	free(dataset->class_bytes);
	free(dataset->class_names);
	free(dataset->paths.records);
	dataset->class_bytes = NULL;
	dataset->class_names = NULL;
	dataset->paths.records = NULL;
}

static int fail_path(const char *path)
{
	return fdr_fail(-errno, "dataset %s: %s", path, strerror(errno));
}

/* A list file's samples are relative to its directory: that is the second descriptor. */
static int open_path(const char *path, int fds[2], unsigned int *ret_count)
{
	char copy[CONTROL_PATH_MAX];
	struct stat st;

	if (strlen(path) >= CONTROL_PATH_MAX)
		return fdr_fail(-ENAMETOOLONG, "dataset %s: the path is too long", path);
	fds[0] = open(path, O_PATH | O_CLOEXEC);
	if (fds[0] < 0 || fstat(fds[0], &st) < 0)
		return fail_path(path);
	*ret_count = 1;
	if (!S_ISREG(st.st_mode))
		return 0;
	strcpy(copy, path);
	fds[1] = open(dirname(copy), O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fds[1] < 0)
		return fail_path(path);
	*ret_count = 2;
	return 0;
}

static int fail_classes(const char *path)
{
	return fdr_fail(-EPROTO, "dataset %s: the daemon's list of classes is malformed", path);
}

/* Splits the bytes into exactly count names; the last byte must be a NUL. */
static int split_classes(struct fdr_dataset *dataset, size_t bytes, const char *path)
{
	uint32_t count = dataset->reply.class_count;
	char *p = dataset->class_bytes;
	char *end = p + bytes;

	if (count > bytes || bytes == 0 || end[-1] != '\0')
		return fail_classes(path);
	dataset->class_names = calloc(count, sizeof(*dataset->class_names));
	if (!dataset->class_names)
		return fdr_fail_memory();
	for (uint32_t i = 0; i < count; i++) {
		if (p == end)
			return fail_classes(path);
		dataset->class_names[i] = p;
		p += strlen(p) + 1;
	}
	return p == end ? 0 : fail_classes(path);
}

/* Copied and not mapped: nothing that the daemon does to the file can fault later. */
static int read_classes(struct fdr_dataset *dataset, int fd, const char *path)
{
	struct stat st;
	size_t done = 0;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > CLASS_BYTES_MAX)
		return fail_classes(path);
	dataset->class_bytes = malloc((size_t)st.st_size);
	if (!dataset->class_bytes)
		return fdr_fail_memory();
	while (done < (size_t)st.st_size) {
		ssize_t n = pread(
			fd, dataset->class_bytes + done, (size_t)st.st_size - done, (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail_classes(path);
		done += (size_t)n;
	}
	return split_classes(dataset, done, path);
}

static int take_reply(struct fdr_dataset *dataset, struct feeder *f, const char *path)
{
	CLEANUP(fd_closep) int fd = -1;
	int r = fdr_reply(f, &dataset->reply, sizeof(dataset->reply), NULL, NULL);

	fd = fdr_take_fd(f, 0);
	control_packet_close(f->packet);
	if (r < 0)
		return r;
	dataset->reply.format[sizeof(dataset->reply.format) - 1] = '\0';
	if (dataset->reply.class_count > 0)
		r = read_classes(dataset, fd, path);
	if (r < 0)
		fdr_send_close(f, 0, dataset->reply.dataset);
	return r;
}

int fdr_dataset_open(struct fdr_dataset *ret, struct feeder *f, const char *path,
	const struct feeder_lane_config *config)
{
	struct control_open_dataset body = {
		.size = sizeof(body),
		.flags = (config->hidden ? CONTROL_DATASET_HIDDEN : 0) |
			 (config->allow_empty ? CONTROL_DATASET_ALLOW_EMPTY : 0) |
			 (config->rebuild ? CONTROL_DATASET_REBUILD : 0),
	};
	int fds[2] = { -1, -1 };
	struct fdr_call call = {
		.type = CONTROL_OPEN_DATASET,
		.body = &body,
		.size = sizeof(body),
		.fds = fds,
		.timeout_ms = config->timeout_ms,
		.progress = config->progress,
		.context = config->context,
	};
	int r = open_path(path, fds, &call.fd_count);

	if (r == 0) {
		strcpy(body.path, path);
		r = fdr_call(f, &call);
	}
	fd_close(fds[0]);
	fd_close(fds[1]);
	if (r == 0)
		r = take_reply(ret, f, path);
	if (r < 0)
		fdr_dataset_deinit(ret);
	return r;
}

const char *feeder_class_name(struct feeder_lane *lane, uint32_t i)
{
	return i < lane->dataset.reply.class_count ? lane->dataset.class_names[i] : NULL;
}

/* ---- paths of samples, a page at a time ---- */

/* Record i of the page: its bounds are checked against what was received. */
static int find_record(const struct fdr_paths *paths, uint64_t id, int64_t *ret_label,
	const uint8_t **ret_path, uint32_t *ret_length)
{
	size_t at = 0;

	for (uint64_t i = paths->first;; i++) {
		uint32_t length;

		if (paths->bytes - at < sizeof(*ret_label) + sizeof(length))
			return -EPROTO;
		memcpy(ret_label, paths->records + at, sizeof(*ret_label));
		memcpy(&length, paths->records + at + sizeof(*ret_label), sizeof(length));
		at += sizeof(*ret_label) + sizeof(length);
		if (length > paths->bytes - at || length > PATH_MAX)
			return -EPROTO;
		*ret_path = paths->records + at;
		*ret_length = length;
		if (i == id)
			return 0;
		at += length;
	}
}

static int fetch_page(struct feeder_lane *lane, uint64_t first)
{
	struct fdr_paths *paths = &lane->dataset.paths;
	struct control_paths body = {
		.size = sizeof(body),
		.dataset = lane->dataset.reply.dataset,
		.first = first,
		.count = CONTROL_PATHS_MAX,
	};
	struct fdr_call call = {
		.type = CONTROL_PATHS,
		.body = &body,
		.size = sizeof(body),
		.timeout_ms = lane->timeout_ms,
	};
	struct control_paths_reply reply;
	const uint8_t *records = NULL;
	size_t bytes = 0;
	int r;

	if (lane->dataset.reply.samples - first < body.count)
		body.count = (uint32_t)(lane->dataset.reply.samples - first);
	r = fdr_call(lane->f, &call);
	if (r < 0)
		return r;
	r = fdr_reply(lane->f, &reply, sizeof(reply), &records, &bytes);
	control_packet_close(lane->f->packet);
	if (r < 0)
		return r;
	if (reply.bytes != bytes || reply.count == 0 || reply.count > body.count)
		return fdr_fail(
			-EPROTO, "dataset %s: the daemon's list of paths is malformed", lane->path);
	free(paths->records);
	*paths = (struct fdr_paths){ .records = malloc(bytes ? bytes : 1) };
	if (!paths->records)
		return fdr_fail_memory();
	memcpy(paths->records, records, bytes);
	paths->bytes = bytes;
	paths->first = first;
	paths->count = reply.count;
	return 0;
}

static int find_sample(struct feeder_lane *lane, uint64_t id, int64_t *ret_label,
	const uint8_t **ret_path, uint32_t *ret_length)
{
	const struct fdr_paths *paths = &lane->dataset.paths;
	int r;

	if (lane->f->forked)
		return fdr_fail_forked();
	if (id >= lane->dataset.reply.samples)
		return fdr_fail(-ENOENT, "dataset %s has no sample %llu: it has %llu", lane->path,
			(unsigned long long)id, (unsigned long long)lane->dataset.reply.samples);
	if (!paths->records || id < paths->first || id - paths->first >= paths->count) {
		r = fetch_page(lane, id);
		if (r < 0)
			return r;
	}
	r = find_record(paths, id, ret_label, ret_path, ret_length);
	if (r < 0)
		return fdr_fail(
			r, "dataset %s: the daemon's list of paths is malformed", lane->path);
	return 0;
}

int feeder_sample_path(struct feeder_lane *lane, uint64_t id, char *ret, size_t size)
{
	const uint8_t *path = NULL;
	uint32_t length = 0;
	int64_t label;
	int r = find_sample(lane, id, &label, &path, &length);

	if (r < 0)
		return r;
	if (length >= size)
		return fdr_fail(-ERANGE,
			"the path of sample %llu has %u bytes: give room for one more",
			(unsigned long long)id, length);
	memcpy(ret, path, length);
	ret[length] = '\0';
	return (int)length;
}

int feeder_sample_label(struct feeder_lane *lane, uint64_t id, int64_t *ret)
{
	const uint8_t *path = NULL;
	uint32_t length = 0;
	int64_t label = 0;
	int r = find_sample(lane, id, &label, &path, &length);

	if (r < 0)
		return r;
	*ret = label;
	return 0;
}
