/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live-client: a trainer that does what a test says, a line at a time, over libfeeder.
 *
 *	connect [socket=P] [job=J] [timeout=MS] [workers=N]
 *	open DATASET [key=value]…        keys: those of take_key
 *	next LANE [MS]                   the batch stays held; its places are shown
 *	release LANE NUMBER
 *	drain LANE STEPS                 0: to the end of the epoch
 *	cursor LANE                      in hexadecimal, as open's key takes it
 *	close LANE
 *	cycle N DATASET [key=value]…     opens, reads one batch, closes, N times
 *	disconnect
 *
 * Each line is answered by one JSON object: r is what libfeeder returned, text its sentence.
 * Words hold no blanks, as the paths of tests do not.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <feeder/feeder.h>

#define LANES_MAX 64
#define WORDS_MAX 32

static struct feeder *connection;
static struct feeder_lane *lanes[LANES_MAX];

/* ---- answers ---- */

static void put_string(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			printf("\\%c", *text);
		else if ((unsigned char)*text < ' ')
			printf("\\u%04x", (unsigned int)*text);
		else
			putchar(*text);
	}
	putchar('"');
}

static void begin(int r)
{
	printf("{\"r\": %d", r);
	if (r < 0) {
		printf(", \"text\": ");
		put_string(feeder_last_error());
	}
}

static void end(void)
{
	puts("}");
	fflush(stdout);
}

static void answer(int r)
{
	begin(r);
	end();
}

/* ---- words ---- */

static const char *word_value(char **words, const char *key)
{
	size_t length = strlen(key);

	for (; *words; words++) {
		if (!strncmp(*words, key, length) && (*words)[length] == '=')
			return *words + length + 1;
	}
	return NULL;
}

static int word_int(char **words, const char *key, int otherwise)
{
	const char *value = word_value(words, key);

	return value ? atoi(value) : otherwise;
}

static void take_cursor(struct feeder_lane_config *c, const char *value)
{
	static unsigned char cursor[FEEDER_CURSOR_MAX];

	c->cursor = cursor;
	c->cursor_size = strlen(value) / 2;
	for (size_t i = 0; i < c->cursor_size && i < sizeof(cursor); i++) {
		unsigned int byte = 0;

		sscanf(value + 2 * i, "%2x", &byte);
		cursor[i] = (unsigned char)byte;
	}
}

static bool take_key(struct feeder_lane_config *c, const char *key, const char *value)
{
	const struct {
		const char *name;
		unsigned int *field;
	} fields[] = {
		{ "train", &c->train },
		{ "batch", &c->batch_size },
		{ "rank", &c->rank },
		{ "world", &c->world_size },
		{ "part", &c->part },
		{ "parts", &c->parts },
		{ "accumulate", &c->accumulate },
		{ "order", &c->order },
		{ "tail", &c->tail },
		{ "bad", &c->bad },
		{ "slots", &c->slots },
		{ "takeover", &c->takeover },
		{ "reopen", &c->reopen },
		{ "rebuild", &c->rebuild },
		{ "epoch", &c->epoch },
	};
	unsigned int number = (unsigned int)strtoul(value, NULL, 10);

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (!strcmp(key, fields[i].name)) {
			*fields[i].field = number;
			return true;
		}
	}
	if (!strcmp(key, "size"))
		c->height = c->width = number;
	else if (!strcmp(key, "seed"))
		c->seed = strtoull(value, NULL, 10);
	else if (!strcmp(key, "name"))
		c->lane_name = value;
	else if (!strcmp(key, "cursor"))
		take_cursor(c, value);
	else if (!strcmp(key, "timeout"))
		c->timeout_ms = (int)number;
	else
		return false;
	return true;
}

static void take_config(struct feeder_lane_config *ret, char **words)
{
	feeder_lane_config_init(ret);
	for (; *words; words++) {
		char *equals = strchr(*words, '=');

		if (equals)
			*equals = '\0';
		if (!equals || !take_key(ret, *words, equals + 1)) {
			fprintf(stderr, "live-client: unknown key %s\n", *words);
			exit(2);
		}
	}
}

static struct feeder_lane *lane_of(const char *word)
{
	unsigned int i = word ? (unsigned int)atoi(word) : LANES_MAX;

	if (i >= LANES_MAX || !lanes[i]) {
		fprintf(stderr, "live-client: no lane %s\n", word ? word : "");
		exit(2);
	}
	return lanes[i];
}

/* ---- commands ---- */

static void do_connect(char **words)
{
	struct feeder_connect_options options;

	feeder_connect_options_init(&options);
	options.socket = word_value(words, "socket");
	options.job = word_value(words, "job");
	options.timeout_ms = word_int(words, "timeout", options.timeout_ms);
	options.workers = (unsigned int)word_int(words, "workers", 0);
	begin(feeder_connect(&connection, &options));
	if (connection) {
		printf(", \"private\": %d, \"socket\": ", feeder_is_private(connection));
		put_string(feeder_socket_path(connection));
		printf(", \"job\": ");
		put_string(feeder_job(connection));
	}
	end();
}

static void do_open(char **words)
{
	struct feeder_lane_config config;
	struct feeder_lane_info info = { .size = sizeof(info) };
	unsigned int i = 0;

	take_config(&config, words + 1);
	while (lanes[i])
		i++;
	begin(feeder_lane_open(&lanes[i], connection, words[0], &config));
	if (lanes[i] && feeder_lane_info(lanes[i], &info) == 0)
		printf(", \"lane\": %u, \"samples\": %" PRIu64 ", \"steps\": %" PRIu64
		       ", \"capacity\": %u, \"slots\": %u, \"ring_bytes\": %" PRIu64,
			i, info.samples, info.steps_epoch, info.capacity, info.slots,
			info.ring_bytes);
	end();
}

/* One line a place: asked, id, position, status, valid, and the first pixel's red. */
static void put_places(struct feeder_lane *lane, const struct feeder_batch *batch)
{
	printf(", \"places\": [");
	for (uint32_t i = 0; i < batch->count; i++) {
		struct feeder_place place;
		const uint8_t *pixels =
			(const uint8_t *)batch->images + i * (size_t)batch->image_stride;

		if (feeder_batch_place(lane, batch->number, i, &place) < 0)
			exit(2);
		printf("%s[%" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %u, %u, %u]", i ? ", " : "",
			place.id_asked, place.id, place.position, place.status, place.valid,
			pixels[0]);
	}
	putchar(']');
}

static void do_next(char **words)
{
	struct feeder_lane *lane = lane_of(words[0]);
	struct feeder_batch batch = { .size = sizeof(batch) };
	int r = feeder_next(lane, &batch, words[1] ? atoi(words[1]) : -1);

	begin(r);
	if (r == 0) {
		printf(", \"number\": %" PRIu64 ", \"epoch\": %" PRIu64 ", \"step\": %" PRIu64
		       ", \"count\": %u, \"last\": %u",
			batch.number, batch.epoch, batch.step, batch.count, batch.last_of_epoch);
		put_places(lane, &batch);
	}
	end();
}

static void do_drain(char **words)
{
	struct feeder_lane *lane = lane_of(words[0]);
	struct feeder_batch batch = { .size = sizeof(batch) };
	unsigned long long want = strtoull(words[1], NULL, 10), steps = 0, images = 0;
	int r = 0;

	while (r == 0 && (want ? steps < want : !batch.last_of_epoch)) {
		r = feeder_next(lane, &batch, -1);
		if (r == 0)
			r = feeder_release(lane, batch.number);
		if (r == 0) {
			steps++;
			images += batch.count;
		}
	}
	begin(r);
	printf(", \"steps\": %llu, \"images\": %llu, \"order_digest\": %" PRIu64, steps, images,
		feeder_order_digest(lane));
	end();
}

static void do_cursor(char **words)
{
	unsigned char cursor[FEEDER_CURSOR_MAX];
	int n = feeder_cursor(lane_of(words[0]), cursor, sizeof(cursor));

	begin(n);
	printf(", \"cursor\": \"");
	for (int i = 0; i < n; i++)
		printf("%02x", cursor[i]);
	putchar('"');
	end();
}

static void do_close(char **words)
{
	lane_of(words[0]);
	feeder_lane_close(lanes[atoi(words[0])]);
	lanes[atoi(words[0])] = NULL;
	answer(0);
}

static void do_cycle(char **words)
{
	struct feeder_lane_config config;
	int r = 0;

	take_config(&config, words + 2);
	for (int i = 0; r == 0 && i < atoi(words[0]); i++) {
		struct feeder_batch batch = { .size = sizeof(batch) };
		struct feeder_lane *lane = NULL;

		r = feeder_lane_open(&lane, connection, words[1], &config);
		if (r == 0)
			r = feeder_next(lane, &batch, -1);
		/* every other one goes with its batch held */
		if (r == 0 && i % 2)
			r = feeder_release(lane, batch.number);
		if (r == 0)
			feeder_lane_close(lane);
	}
	answer(r);
}

static void do_disconnect(void)
{
	feeder_disconnect(connection);
	connection = NULL;
	memset(lanes, 0, sizeof(lanes));
	answer(0);
}

static void obey(const char *command, char **words)
{
	if (!strcmp(command, "connect"))
		do_connect(words);
	else if (!strcmp(command, "open"))
		do_open(words);
	else if (!strcmp(command, "next"))
		do_next(words);
	else if (!strcmp(command, "release"))
		answer(feeder_release(lane_of(words[0]), strtoull(words[1], NULL, 10)));
	else if (!strcmp(command, "drain"))
		do_drain(words);
	else if (!strcmp(command, "cursor"))
		do_cursor(words);
	else if (!strcmp(command, "close"))
		do_close(words);
	else if (!strcmp(command, "cycle"))
		do_cycle(words);
	else if (!strcmp(command, "disconnect"))
		do_disconnect();
	else
		exit(2);
}

int main(void)
{
	char line[8192];

	while (fgets(line, sizeof(line), stdin)) {
		char *words[WORDS_MAX + 1] = { NULL };
		size_t count = 0;

		for (char *w = strtok(line, " \n"); w && count < WORDS_MAX; w = strtok(NULL, " \n"))
			words[count++] = w;
		if (count > 0)
			obey(words[0], words + 1);
	}
	feeder_disconnect(connection);
	return 0;
}
