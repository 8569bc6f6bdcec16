/* SPDX-License-Identifier: Apache-2.0 */
/* Seeds of what is read from files: index, verdicts, list, config, stats. */
#include <stddef.h>
#include <string.h>
#include <xxhash.h>

#include "fuzz.h"
#include "protocol/stats.h"
#include "seeds.h"
#include "source/image.h"
#include "source/verdicts.h"

static void add_sample(struct chunk *c, uint32_t directory, uint32_t label, const char *name)
{
	uint64_t at;
	struct index_sample *s;

	REQUIRE(chunk_add_name(c, name, strlen(name), &at) == 0);
	s = chunk_add_sample(c);
	REQUIRE(s);
	*s = (struct index_sample){
		.size = 100 + at, .mtime_ns = 1, .name = at, .directory = directory, .label = label
	};
}

static void add_directory(struct chunk *c, const char *path, uint32_t flags)
{
	uint64_t at;
	struct index_directory *d;

	REQUIRE(chunk_add_name(c, path, strlen(path), &at) == 0);
	d = chunk_add_directory(c);
	REQUIRE(d);
	d->path = at;
	d->flags = flags;
	d->entries = 2;
}

static void put_index(const char *name, uint32_t format, const char *warning, const char *sample)
{
	static const char *const classes[] = { "cat", "dog" };
	static const int64_t labels[] = { 0, 1 };
	struct chunk c = { .samples = NULL };
	struct image_parts parts = { .format = format,
		.chunks = &c,
		.chunk_count = 1,
		.classes = classes,
		.class_count = format == 1 ? 2 : 0,
		.labels = labels,
		.label_count = 2,
		.warning = warning };
	struct image image;

	add_directory(&c, "cat", 0);
	add_directory(&c, "dog", DIRECTORY_LINKED | DIRECTORY_RECENT);
	add_directory(&c, "", DIRECTORY_NO_TIME);
	add_sample(&c, 0, 0, "a.jpg");
	add_sample(&c, 1, 1, "b.jpg");
	add_sample(&c, 2, 1, sample);
	REQUIRE(image_build(&image, &parts) == 0);
	seed_put("index", name, image.base, image.size);
	image_free(&image);
	chunk_free(&c);
}

static void seeds_verdicts(void)
{
	uint8_t bytes[16] = { 0, 1, 17, 29, 16, 255 };
	struct verdicts_header h = { .byte_order = INDEX_BYTE_ORDER,
		.version = 1,
		.count = sizeof(bytes),
		.index_checksum = 0x1234 };
	struct row row = { .size = 0 };

	memcpy(h.magic, VERDICTS_MAGIC, sizeof(h.magic));
	h.checksum = XXH3_64bits_withSeed(bytes, sizeof(bytes), h.index_checksum);
	row_put(&row, &h, sizeof(h));
	row_put(&row, bytes, sizeof(bytes));
	seed_put("verdicts", "plain", row.bytes, row.size);
	seed_put("verdicts", "short", row.bytes, row.size - 3);
}

static void put_text(const char *harness, const char *name, const char *text)
{
	seed_put(harness, name, text, strlen(text));
}

static void seeds_text(void)
{
	put_text("list", "integers", "a/x.jpg\t3\nb/y.png\t-7\r\na/z\t3\nw\t9223372036854775807\n");
	put_text("list", "classes", "a.jpg\tdog\n./b//c.jpg\tcat\nd.jpg\t12\n");
	put_text("list", "last-line", "a\t1\nb\t2");
	put_text("list", "range", "a\t99999999999999999999\n");
	put_text("list", "parent", "a/../../b\t1\n");
	put_text("list", "absolute", "/etc/passwd\t1\n");
	put_text("list", "tabs", "a\tb\tc\n");
	put_text("list", "lfs",
		"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 3\n");
	put_text("list", "bom",
		"\xef\xbb\xbf"
		"a\t1\n");
	put_text("list", "empty", "");
	seed_put("list", "nul", "a\0b\t1\n", 6);
	put_text("config", "all",
		"# a comment\n[daemon]\nsocket = /run/x.sock ; here\nworkers = 6\nreadahead=128M\n"
		"slots = 8\nreader = pread\nentropy = libjpeg\ncheckpoints = off\nidle_exit = 60\n"
		"read_deadline = 5\nmax_pixels = 1000\nmax_scans = 7\ndecode_memory = 2G\n"
		"decode_time = 3\ncache_dir = /var/cache/x\n\n[limits]\nring_bytes = 3g\n"
		"lanes = 5\nsessions=6\nworkers_share = 50\n");
	put_text("config", "roots",
		"\xef\xbb\xbf[root /data]\nallow = 1000, root @0\n  1001\n[root /data]\n"
		"[root /data two]\nallow: @100\n");
	put_text("config", "wrong", "[daemon]\nworkers = many\n[nothing]\nx\n[root x]\n[daemon\n");
	put_text("config", "set", "workers=3\nlimits.lanes=9\nslots=9999\n=3\nreadahead=1T\n");
	put_text("config", "relative-root", "[root data]\n");
	put_text("config", "empty", "");
}

static void seeds_stats(void)
{
	static const struct stats_header header = { .magic = STATS_MAGIC,
		.major = STATS_MAJOR,
		.header_size = sizeof(header),
		.daemon_offset = sizeof(header),
		.daemon_count = STATS_DAEMON_COUNT,
		.lane_offset = sizeof(header) + STATS_DAEMON_COUNT * 8,
		.lane_count = 1,
		.lane_size = sizeof(struct stats_lane_record),
		.case_offset =
			sizeof(header) + STATS_DAEMON_COUNT * 8 + sizeof(struct stats_lane_record),
		.case_count = 1,
		.case_size = sizeof(struct stats_case),
		.pid = 42,
		.snapshot_ns = 1000000000,
		.version = "0.1.0",
		.reader = "pread",
		.codec = "libjpeg-turbo 2.1.5" };
	uint64_t counters[STATS_DAEMON_COUNT] = { 5, 6, 7 };
	struct stats_lane_record lane = { .lane = 1,
		.world = 2,
		.batch = 8,
		.order = 1,
		.tail = 1,
		.job = "job",
		.name = "train:/x\x1b[2J:0",
		.dataset = "/x\xff",
		.client = "python" };
	struct stats_case bad = { .lane = 1,
		.id = 3,
		.status = 13,
		.count = 1,
		.path = "a/\"b\n.jpg",
		.text = "ends early" };
	struct row row = { .size = 0 };

	for (int i = 0; i < STATS_LANE_COUNT; i++)
		lane.counters[i] = (uint64_t)i * 1000;
	row_put(&row, &header, sizeof(header));
	row_put(&row, counters, sizeof(counters));
	row_put(&row, &lane, sizeof(lane));
	row_put(&row, &bad, sizeof(bad));
	seed_put("stats", "one", row.bytes, row.size);
	row_put(&row, row.bytes, row.size);
	seed_put("stats", "two", row.bytes, row.size);
	memset(row.bytes + header.case_offset + offsetof(struct stats_case, path), 'x',
		sizeof(bad.path));
	seed_put("stats", "unended", row.bytes, header.case_offset + sizeof(bad));
	seed_put("stats", "header", row.bytes, sizeof(header));
}

void seeds_file(void)
{
	put_index("folder", 1, "careful", "c");
	put_index("list", 2, "", "c");
	put_index("empty-name", 1, "", "");
	put_index("parent", 1, "", "..");
	put_index("slash", 1, "", "a/b");
	seeds_verdicts();
	seeds_text();
	seeds_stats();
}
