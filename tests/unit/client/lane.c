/* SPDX-License-Identifier: Apache-2.0 */
/* Opening lanes: what is sent, what is taken, what is refused. */
#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../clients/c/client.h"
#include "base/fd.h"

/* ---- what is sent ---- */

static struct control_open_lane message_of(const struct feeder_lane_config *config)
{
	struct control_open_lane message;

	assert_int_equal(fdr_config_message(&message, config), 0);
	return message;
}

static void training_is_crop_flip_store(void **state)
{
	struct feeder_lane_config config;
	struct control_open_lane m;

	(void)state;
	feeder_lane_config_init(&config);
	config.height = 192;
	config.seed = 77;
	config.takeover = 1;
	m = message_of(&config);
	assert_int_equal(m.operation_count, 3);
	assert_int_equal(m.operations[0].code, CONTROL_OP_RANDOM_RESIZED_CROP);
	assert_int_equal(m.operations[0].version, 1);
	assert_true(m.operations[0].parameter.f[0] == 0.08f && m.operations[0].parameter.f[1] == 1);
	assert_true(m.operations[0].parameter.f[2] == 0.75f);
	assert_int_equal(m.operations[0].parameter.u[4], 192);
	assert_int_equal(m.operations[0].parameter.u[5], 224);
	assert_int_equal(m.operations[0].parameter.u[6], FEEDER_BILINEAR);
	assert_int_equal(m.operations[1].code, CONTROL_OP_HORIZONTAL_FLIP);
	assert_true(m.operations[1].parameter.f[0] == 0.5f);
	assert_int_equal(m.operations[2].code, CONTROL_OP_NORMALIZE);
	assert_int_equal(m.operations[2].parameter.u[0], FEEDER_UINT8);
	assert_int_equal(m.operations[2].parameter.u[1], FEEDER_NHWC);
	assert_int_equal(m.operations[2].parameter.u[2], 0);
	assert_int_equal(m.order, FEEDER_ORDER_TORCH);
	assert_int_equal(m.bad, FEEDER_BAD_SUBSTITUTE);
	assert_int_equal(m.tail, FEEDER_TAIL_PAD);
	assert_int_equal(m.seed, 77);
	assert_int_equal(m.flags, CONTROL_LANE_TAKEOVER);
	assert_int_equal(m.numa_node, -1);
	assert_int_equal(m.max_epochs, 0);
	config.max_batches = 9;
	config.max_epochs = 2;
	config.epoch = 5;
	assert_int_equal(message_of(&config).max_batches, 9);
	assert_int_equal(message_of(&config).max_epochs, 2);
	assert_int_equal(message_of(&config).epoch, 5);
	config.hflip = 0;
	assert_int_equal(message_of(&config).operation_count, 2);
}

static void evaluation_is_resize_crop_store(void **state)
{
	struct feeder_lane_config config;
	struct control_open_lane m;

	(void)state;
	feeder_lane_config_init(&config);
	config.train = 0;
	config.apply_orientation = 1;
	config.dtype = FEEDER_FLOAT32;
	config.layout = FEEDER_NCHW;
	config.normalize = 1;
	config.mean[2] = 0.406f;
	config.std[0] = 0.229f;
	m = message_of(&config);
	assert_int_equal(m.operation_count, 4);
	assert_int_equal(m.operations[0].code, CONTROL_OP_DECODE);
	assert_int_equal(m.operations[0].parameter.u[0], 1);
	assert_int_equal(m.operations[1].code, CONTROL_OP_RESIZE);
	assert_int_equal(m.operations[1].parameter.u[0], 256);
	assert_int_equal(m.operations[2].code, CONTROL_OP_CENTER_CROP);
	assert_int_equal(m.operations[2].parameter.u[1], 224);
	assert_int_equal(m.operations[3].code, CONTROL_OP_NORMALIZE);
	assert_int_equal(m.operations[3].parameter.u[2], 1);
	assert_true(m.operations[3].parameter.f[5] == 0.406f);
	assert_true(m.operations[3].parameter.f[6] == 0.229f);
	assert_int_equal(m.order, FEEDER_ORDER_SEQUENTIAL);
	assert_int_equal(m.bad, FEEDER_BAD_MASK);
}

/* round(size / 0.875), as Python computes it for these sizes */
static void the_short_side_follows_the_size(void **state)
{
	static const uint32_t sides[][2] = { { 224, 256 }, { 192, 219 }, { 176, 201 }, { 299, 342 },
		{ 1, 1 }, { 3, 3 }, { 4, 5 }, { 10, 11 }, { 160, 183 }, { 384, 439 } };
	struct feeder_lane_config config;

	(void)state;
	feeder_lane_config_init(&config);
	config.train = 0;
	for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
		config.width = sides[i][0];
		config.height = sides[i][0] + 1;
		assert_int_equal(message_of(&config).operations[0].parameter.u[0], sides[i][1]);
	}
	config.resize = 300;
	assert_int_equal(message_of(&config).operations[0].parameter.u[0], 300);
}

static void contradictions_are_refused_here(void **state)
{
	struct feeder_lane_config config;
	struct control_open_lane m;

	(void)state;
	feeder_lane_config_init(&config);
	config.normalize = 1;
	assert_int_equal(fdr_config_message(&m, &config), -EINVAL);
	assert_error_says("normalize needs a float dtype");
	config.normalize = 0;
	config.cursor = "x";
	config.cursor_size = 257;
	assert_int_equal(fdr_config_message(&m, &config), -EINVAL);
	assert_error_says("a cursor of 257 bytes");
	config.cursor_size = 1;
	config.timeout_ms = -2;
	assert_int_equal(fdr_config_message(&m, &config), -EINVAL);
}

/* ---- opening ---- */

struct seen {
	char path[CONTROL_PATH_MAX];
	uint32_t flags;
	unsigned int fd_count;
	ino_t inodes[2];
	char name[CONTROL_NAME_MAX];
	char job[CONTROL_JOB_MAX];
	struct control_operation first;
};

static int keep_seen(struct fake *fake, int fd, const struct control_packet *packet, void *context)
{
	struct seen *seen = context;
	struct control_open_dataset dataset;
	struct control_open_lane lane;
	struct stat st;

	(void)fake;
	(void)fd;
	if (packet->header.type == CONTROL_OPEN_DATASET) {
		control_body(packet, &dataset, sizeof(dataset), NULL, NULL);
		strcpy(seen->path, dataset.path);
		seen->flags = dataset.flags;
		seen->fd_count = packet->fd_count;
		for (unsigned int i = 0; i < packet->fd_count && i < 2; i++) {
			fstat(packet->fds[i], &st);
			seen->inodes[i] = st.st_ino;
		}
	} else if (packet->header.type == CONTROL_OPEN_LANE) {
		control_body(packet, &lane, sizeof(lane), NULL, NULL);
		strcpy(seen->name, lane.name);
		strcpy(seen->job, lane.job);
		seen->first = lane.operations[0];
	}
	return 0;
}

static void a_folder_is_sent_as_it_is_seen_here(void **state)
{
	struct seen seen = { .fd_count = 0 };
	struct fixture x;
	struct stat st;

	(void)state;
	fixture_start(&x, &(struct fake_config){ .on_packet = keep_seen, .context = &seen }, 0);
	stat("/tmp", &st);
	assert_string_equal(seen.path, "/tmp");
	assert_int_equal(seen.fd_count, 1);
	assert_int_equal(seen.inodes[0], st.st_ino);
	assert_string_equal(seen.name, "train:/tmp:0");
	assert_string_equal(seen.job, "test");
	fixture_stop(&x);
}

static void a_list_comes_with_its_directory(void **state)
{
	struct seen seen = { .fd_count = 0 };
	struct fixture x;
	struct feeder_lane_config config;
	struct stat st;
	char path[] = "/tmp/feeder-list-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	close(fd);
	fixture_connect(&x, &(struct fake_config){ .on_packet = keep_seen, .context = &seen });
	feeder_lane_config_init(&config);
	config.hidden = 1;
	config.rebuild = 1;
	assert_int_equal(feeder_lane_open(&x.lane, x.f, path, &config), 0);
	assert_int_equal(seen.fd_count, 2);
	stat(path, &st);
	assert_int_equal(seen.inodes[0], st.st_ino);
	stat("/tmp", &st);
	assert_int_equal(seen.inodes[1], st.st_ino);
	assert_int_equal(seen.flags, CONTROL_DATASET_HIDDEN | CONTROL_DATASET_REBUILD);
	fixture_stop(&x);
	unlink(path);
}

static void names_take_the_lowest_number_that_is_free(void **state)
{
	struct fixture x;
	struct feeder_lane_config config;
	struct feeder_lane_info info = { .size = sizeof(info) };
	struct feeder_lane *second = NULL;
	struct feeder_lane *third = NULL;
	struct feeder_lane *eval = NULL;

	(void)state;
	fixture_start(&x, NULL, 0);
	feeder_lane_config_init(&config);
	/* another way to the same place */
	assert_int_equal(feeder_lane_open(&second, x.f, "/tmp/../tmp/.", &config), 0);
	feeder_lane_info(second, &info);
	assert_string_equal(info.name, "train:/tmp:1");
	feeder_lane_close(x.lane);
	assert_int_equal(feeder_lane_open(&third, x.f, "/tmp", &config), 0);
	feeder_lane_info(third, &info);
	assert_string_equal(info.name, "train:/tmp:0");
	config.train = 0;
	assert_int_equal(feeder_lane_open(&eval, x.f, "/tmp", &config), 0);
	feeder_lane_info(eval, &info);
	assert_string_equal(info.name, "eval:/tmp:0");
	feeder_lane_close(eval);
	config.lane_name = "mine";
	assert_int_equal(feeder_lane_open(&eval, x.f, "/tmp", &config), 0);
	feeder_lane_info(eval, &info);
	assert_string_equal(info.name, "mine");
	fixture_stop(&x);
}

static void info_and_classes_are_the_daemons(void **state)
{
	struct fixture x;
	struct feeder_lane_info info = { .size = sizeof(info) };
	struct feeder_lane_info old = { .size = offsetof(struct feeder_lane_info, fingerprint) };

	(void)state;
	fixture_start(&x, NULL, 0);
	assert_int_equal(feeder_lane_info(x.lane, &info), 0);
	assert_int_equal(info.samples, FAKE_SAMPLES);
	assert_int_equal(info.fingerprint[2], 3);
	assert_int_equal(info.class_count, 3);
	assert_int_equal(info.capacity, 4);
	assert_int_equal(info.slots, 4);
	assert_int_equal(info.steps_epoch, 5);
	assert_int_equal(info.image_bytes, 8 * 8 * 3);
	assert_string_equal(info.format, "folder");
	assert_int_equal(feeder_lane_info(x.lane, &old), 0);
	assert_int_equal(old.samples, FAKE_SAMPLES);
	assert_null(old.name);
	old.size = 4;
	assert_int_equal(feeder_lane_info(x.lane, &old), -EINVAL);
	assert_string_equal(feeder_class_name(x.lane, 0), "ant");
	assert_string_equal(feeder_class_name(x.lane, 2), "cat");
	assert_null(feeder_class_name(x.lane, 3));
	fixture_stop(&x);
}

static int count_paths(
	struct fake *fake, int fd, const struct control_packet *packet, void *context)
{
	(void)fake;
	(void)fd;
	*(unsigned int *)context += packet->header.type == CONTROL_PATHS;
	return 0;
}

static void samples_are_fetched_by_the_page(void **state)
{
	struct fixture x;
	unsigned int requests = 0;
	char path[32];
	char expected[32];
	int64_t label = -1;

	(void)state;
	fixture_start(
		&x, &(struct fake_config){ .on_packet = count_paths, .context = &requests }, 0);
	for (unsigned int id = 0; id < FAKE_SAMPLES; id++) {
		int length = snprintf(expected, sizeof(expected), "bee/%06u.jpg", id);

		assert_int_equal(feeder_sample_path(x.lane, id, path, sizeof(path)), length);
		assert_string_equal(path, expected);
		assert_int_equal(feeder_sample_label(x.lane, id, &label), 0);
		assert_int_equal(label, id % 3);
	}
	assert_int_equal(requests, 2);
	assert_int_equal(feeder_sample_path(x.lane, 5, path, sizeof(path)), 14);
	assert_int_equal(feeder_sample_path(x.lane, 5, path, 14), -ERANGE);
	assert_error_says("has 14 bytes");
	assert_int_equal(feeder_sample_path(x.lane, FAKE_SAMPLES, path, sizeof(path)), -ENOENT);
	assert_error_says("no sample 1000: it has 1000");
	assert_int_equal(requests, 3);
	fixture_stop(&x);
}

/* ---- refusals ---- */

struct refusal {
	uint32_t type;
	int code;
};

static int refuse(struct fake *fake, int fd, const struct control_packet *packet, void *context)
{
	struct refusal *refusal = context;

	(void)fake;
	if (packet->header.type != refusal->type)
		return 0;
	fake_send_error(fd, packet->header.serial, refusal->code,
		refusal->code ? "lane train:/tmp:0: rank 0 is attached already" : "");
	return 1;
}

static int open_with(struct fixture *x, const char *path)
{
	struct feeder_lane_config config;

	feeder_lane_config_init(&config);
	config.timeout_ms = 200;
	return feeder_lane_open(&x->lane, x->f, path, &config);
}

static void the_daemons_refusal_is_passed_on(void **state)
{
	struct refusal refusal = { .type = CONTROL_OPEN_LANE, .code = -EBUSY };
	struct fixture x;
	unsigned int closed = 0;

	(void)state;
	fixture_connect(&x, &(struct fake_config){ .on_packet = refuse, .context = &refusal });
	assert_int_equal(open_with(&x, "/tmp"), -EBUSY);
	assert_string_equal(feeder_last_error(), "lane train:/tmp:0: rank 0 is attached already");
	/* nothing of it is left: neither the dataset nor the name */
	for (unsigned int i = 0; i < 500 && closed == 0; i++)
		closed = fake_count(x.fake, &x.fake->datasets_closed);
	assert_int_equal(closed, 1);
	fake_set(x.fake, &refusal.code, &(int){ 0 }, sizeof(int));
	assert_int_equal(open_with(&x, "/tmp"), -EPROTO);
	assert_error_says("refused: Protocol error");
	fake_set(x.fake, &refusal,
		&(struct refusal){ .type = CONTROL_OPEN_DATASET, .code = -ENOENT },
		sizeof(refusal));
	assert_int_equal(open_with(&x, "/tmp"), -ENOENT);
	fake_set(x.fake, &refusal.type, &(uint32_t){ 0 }, sizeof(uint32_t));
	assert_int_equal(open_with(&x, "/tmp"), 0);
	fixture_stop(&x);
}

static void a_path_that_is_not_there_needs_no_daemon(void **state)
{
	struct fixture x;
	char path[CONTROL_PATH_MAX + 8];

	(void)state;
	fixture_connect(&x, NULL);
	assert_int_equal(open_with(&x, "/tmp/feeder-none"), -ENOENT);
	assert_string_equal(
		feeder_last_error(), "dataset /tmp/feeder-none: No such file or directory");
	memset(path, '/', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(open_with(&x, path), -ENAMETOOLONG);
	fixture_stop(&x);
}

static int other_answers(
	struct fake *fake, int fd, const struct control_packet *packet, void *context)
{
	struct control_dataset dataset = {
		.size = sizeof(dataset), .dataset = 7, .class_count = 3
	};
	struct control_lane lane = { .size = sizeof(lane), .lane = 1, .first = 1 };
	uint32_t type = packet->header.type;
	uint32_t serial = packet->header.serial;
	CLEANUP(fd_closep) int names = memfd_create("names", MFD_CLOEXEC);

	(void)fake;
	switch (*(int *)context) {
	case 0: /* classes, and no descriptor */
		if (type != CONTROL_OPEN_DATASET)
			return 0;
		control_send(fd, type | CONTROL_REPLY, serial, &dataset, sizeof(dataset), NULL, 0,
			NULL, 0);
		return 1;
	case 1: /* fewer names than classes */
		if (type != CONTROL_OPEN_DATASET)
			return 0;
		if (write(names, "ant\0bee", 8) != 8)
			abort();
		control_send(fd, type | CONTROL_REPLY, serial, &dataset, sizeof(dataset), NULL, 0,
			&names, 1);
		return 1;
	case 2: /* a ring without descriptors: D06 */
		if (type != CONTROL_OPEN_LANE)
			return 0;
		control_send(
			fd, type | CONTROL_REPLY, serial, &lane, sizeof(lane), NULL, 0, NULL, 0);
		return 1;
	case 3: /* another message than was asked for */
		if (type != CONTROL_OPEN_LANE)
			return 0;
		control_send(fd, CONTROL_STATS | CONTROL_REPLY, serial, &lane, sizeof(lane), NULL,
			0, NULL, 0);
		return 1;
	case 4: /* a body that is cut */
		if (type != CONTROL_OPEN_LANE)
			return 0;
		lane.size = 4000;
		control_send(
			fd, type | CONTROL_REPLY, serial, &lane, sizeof(lane), NULL, 0, NULL, 0);
		return 1;
	case 5: /* the session ends instead */
		return type == CONTROL_OPEN_LANE ? -1 : 0;
	}
	return 0;
}

static void answers_that_are_none_are_named(void **state)
{
	static const struct {
		int code;
		const char *words;
	} expected[] = {
		{ -EPROTO, "list of classes is malformed" },
		{ -EPROTO, "list of classes is malformed" },
		{ -EPROTO, "no doorbell" },
		{ -EPROTO, "a message of type 262" },
		{ -EPROTO, "a malformed reply" },
		{ -EPIPE, "died: connect again" },
	};
	int which = 0;
	struct fixture x;

	(void)state;
	fixture_connect(&x, &(struct fake_config){ .on_packet = other_answers, .context = &which });
	for (int i = 0; i < 6; i++) {
		fake_set(x.fake, &which, &i, sizeof(i));
		assert_int_equal(open_with(&x, "/tmp"), expected[i].code);
		assert_error_says(expected[i].words);
	}
	assert_int_equal(open_with(&x, "/tmp"), -EPIPE);
	fixture_stop(&x);
}

static int slow_index(struct fake *fake, int fd, const struct control_packet *packet, void *context)
{
	bool moving = *(bool *)context;
	struct control_progress body = { .size = sizeof(body) };

	(void)fake;
	if (packet->header.type != CONTROL_OPEN_DATASET)
		return 0;
	for (unsigned int i = 0; i < 6; i++) {
		body.files += moving || i == 0;
		control_send(fd, CONTROL_PROGRESS, packet->header.serial, &body, sizeof(body), NULL,
			0, NULL, 0);
		usleep(60000);
	}
	return 0;
}

static void count_progress(void *context, uint64_t files, uint64_t directories)
{
	assert_true(files > 0 && directories == 0);
	++*(unsigned int *)context;
}

/* A late reply of a request that was given up leaves nothing open. */
static void progress_keeps_an_open_waiting(void **state)
{
	bool moving = true;
	unsigned int reports = 0;
	struct fixture x;
	struct feeder_lane_config config;

	(void)state;
	fixture_connect(&x, &(struct fake_config){ .on_packet = slow_index, .context = &moving });
	feeder_lane_config_init(&config);
	config.timeout_ms = 200;
	config.progress = count_progress;
	config.context = &reports;
	assert_int_equal(feeder_lane_open(&x.lane, x.f, "/tmp", &config), 0);
	assert_int_equal(reports, 6);
	fake_set(x.fake, &moving, &(bool){ false }, sizeof(bool));
	assert_int_equal(feeder_lane_open(&x.lane, x.f, "/tmp", &config), -ETIMEDOUT);
	assert_error_says("gave no answer within 200 ms");
	fake_set(x.fake, &moving, &(bool){ true }, sizeof(bool));
	assert_int_equal(feeder_lane_open(&x.lane, x.f, "/tmp", &config), 0);
	assert_int_equal(fake_count(x.fake, &x.fake->datasets_closed), 1);
	fixture_stop(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(training_is_crop_flip_store),
		cmocka_unit_test(evaluation_is_resize_crop_store),
		cmocka_unit_test(the_short_side_follows_the_size),
		cmocka_unit_test(contradictions_are_refused_here),
		cmocka_unit_test(a_folder_is_sent_as_it_is_seen_here),
		cmocka_unit_test(a_list_comes_with_its_directory),
		cmocka_unit_test(names_take_the_lowest_number_that_is_free),
		cmocka_unit_test(info_and_classes_are_the_daemons),
		cmocka_unit_test(samples_are_fetched_by_the_page),
		cmocka_unit_test(the_daemons_refusal_is_passed_on),
		cmocka_unit_test(a_path_that_is_not_there_needs_no_daemon),
		cmocka_unit_test(answers_that_are_none_are_named),
		cmocka_unit_test(progress_keeps_an_open_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
