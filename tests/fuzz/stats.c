/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon's statistics segment, read as feeder-stat reads it, and what it prints of it. */
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "tools/stat/delta.h"
#include "tools/stat/snapshot.h"
#include "tools/stat/view.h"

static void must_end(const char *s, size_t size)
{
	REQUIRE(memchr(s, '\0', size));
}

static void check_strings(const struct snapshot *s)
{
	must_end(s->header.version, sizeof(s->header.version));
	must_end(s->header.reader, sizeof(s->header.reader));
	must_end(s->header.reader_note, sizeof(s->header.reader_note));
	must_end(s->header.codec, sizeof(s->header.codec));
	must_end(s->header.simd, sizeof(s->header.simd));
	must_end(s->header.entropy, sizeof(s->header.entropy));
	for (uint32_t i = 0; i < s->header.lane_count; i++) {
		must_end(s->lanes[i].job, sizeof(s->lanes[i].job));
		must_end(s->lanes[i].name, sizeof(s->lanes[i].name));
		must_end(s->lanes[i].dataset, sizeof(s->lanes[i].dataset));
		must_end(s->lanes[i].client, sizeof(s->lanes[i].client));
	}
	for (uint32_t i = 0; i < s->header.case_count; i++) {
		must_end(s->cases[i].path, sizeof(s->cases[i].path));
		must_end(s->cases[i].text, sizeof(s->cases[i].text));
	}
}

/* A terminal obeys no byte of it but that top's lines clear what is behind them; lines end. */
static void check_printed(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		REQUIRE((uint8_t)text[i] >= 0x20 || text[i] == '\n' || text[i] == '\t' ||
			strncmp(text + i, "\033[K\n", 4) == 0);
	REQUIRE(size == 0 || text[size - 1] == '\n');
}

static void print_all(const struct views *views)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	REQUIRE(out);
	top_print(out, views, 80, 24);
	top_print(out, views, 0, 0);
	why_print(out, views, false);
	why_print(out, views, true);
	errors_print(out, views, false);
	errors_print(out, views, true);
	digest_print(out, views);
	json_print(out, views);
	metrics_print(out, views);
	health_print(out, views, "0.1.0");
	fclose(out);
	check_printed(text, size);
	free(text);
}

/* The two halves of the input are two looks at one daemon; or one look, where they are not two. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int before = fuzz_lowest_fd();
	int fd = fuzz_memfd(data, size), later = fuzz_memfd(data + size / 2, size - size / 2);
	struct view view = { .socket = "/run/feeder/feeder.sock", .cpus = 4 };
	struct views views = { .rows = &view, .count = 1 };
	char text[256] = "";

	if (snapshot_read(&view.now, fd, text, sizeof(text)) < 0) {
		REQUIRE(text[0]);
	} else {
		check_strings(&view.now);
		if (snapshot_read(&view.before, later, text, sizeof(text)) == 0) {
			check_strings(&view.before);
			view.compared = true;
		}
		if (view.now.header.lane_count <= 64 && view.now.header.case_count <= 64) {
			print_all(&views);
			view.compared = view.compared && delta_follows(&view.before, &view.now);
			print_all(&views);
			snapshot_lane(&view.now, view.now.header.lane_count);
		}
		snapshot_free(&view.before);
		snapshot_free(&view.now);
	}
	close(fd);
	close(later);
	REQUIRE(fuzz_lowest_fd() == before);
	return 0;
}
