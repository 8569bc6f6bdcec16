/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: what is taken, and that everything else is refused with its line. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/config.h"

static char path[] = "/tmp/feeder-config-XXXXXX";

static int make_file(void **state)
{
	(void)state;
	int fd = mkstemp(path);
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

static int read_text(struct config *config, const char *content, char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fputs(content, f) < 0, 0);
	fclose(f);
	config_init(config);
	return config_read(config, path, text, CONFIG_TEXT);
}

static void takes_every_key(void **state)
{
	struct config c;
	char text[CONFIG_TEXT];

	(void)state;
	assert_int_equal(
		read_text(&c,
			"\xef\xbb\xbf# a comment\n[daemon]\nsocket = /run/x.sock ; here\n"
			"workers = 6\nreadahead=128M\nslots = 8\nreader = pread\n"
			"entropy = libjpeg\ncheckpoints = off\nidle_exit = 60\nread_deadline = 5\n"
			"max_pixels = 1000\nmax_scans = 7\ndecode_memory = 2G\ndecode_time = 3\n"
			"cache_dir = /var/cache/x\n\n[limits]\nring_bytes = 3g\nlanes = 5\n"
			"sessions=6\nworkers_share = 50\n",
			text),
		0);
	assert_string_equal(c.socket, "/run/x.sock");
	assert_string_equal(c.cache_dir, "/var/cache/x");
	assert_int_equal(c.workers, 6);
	assert_int_equal(c.readahead, 128ull << 20);
	assert_int_equal(c.slots, 8);
	assert_int_equal(c.reader, CONFIG_READER_PREAD);
	assert_int_equal(c.idle_exit_ns, 60000000000ull);
	assert_int_equal(c.read_deadline_ns, 5000000000ull);
	assert_int_equal(c.max_pixels, 1000);
	assert_int_equal(c.max_scans, 7);
	assert_int_equal(c.decode_memory, 2ull << 30);
	assert_int_equal(c.decode_time_ns, 3000000000ull);
	assert_int_equal(c.limits.ring_bytes, 3ull << 30);
	assert_int_equal(c.limits.lanes, 5);
	assert_int_equal(c.limits.sessions, 6);
	assert_int_equal(c.limits.workers_share, 50);
	config_deinit(&c);
}

static void roots_with_long_names_and_lists(void **state)
{
	char content[2048], text[CONFIG_TEXT], longest[600];
	struct config c;

	(void)state;
	memset(longest, 'a', sizeof(longest));
	longest[0] = '/';
	longest[sizeof(longest) - 1] = '\0';
	snprintf(content, sizeof(content),
		"[root /data]\nallow = 1000, root\n  @0 @77\n[root %s]\n[root /with space ]\n"
		"[root /data]\nallow = 1001\n",
		longest);
	assert_int_equal(read_text(&c, content, text), 0);
	assert_int_equal(c.root_count, 3);
	assert_string_equal(c.roots[0].path, "/data");
	assert_int_equal(c.roots[0].uid_count, 3);
	assert_int_equal(c.roots[0].uids[0], 1000);
	assert_int_equal(c.roots[0].uids[1], 0);
	assert_int_equal(c.roots[0].uids[2], 1001);
	assert_int_equal(c.roots[0].gid_count, 2);
	assert_int_equal(c.roots[0].gids[1], 77);
	assert_string_equal(c.roots[1].path, longest);
	assert_true(config_admits_others(&c));
	config_deinit(&c);
}

static void refuses_with_line(void **state)
{
	static const struct {
		const char *content;
		const char *where;
		const char *what;
	} cases[] = {
		{ "[daemon]\nworkers = 2\nwokers = 3\n", ":3: ", "no key \"wokers\"" },
		{ "[daemon]\n\n[deamon]\n", ":3: ", "unknown section [deamon]" },
		{ "workers = 1\n", ":1: ", "before the first section" },
		{ "[daemon]\nworkers = 0\n", ":2: ", "from 1 to 4096" },
		{ "[daemon]\nworkers = -1\n", ":2: ", "whole number" },
		{ "[daemon]\nworkers = 4x\n", ":2: ", "whole number" },
		{ "[daemon]\nworkers = 99999999999999999999999\n", ":2: ", "whole number" },
		{ "[daemon]\nreadahead = 64MB\n", ":2: ", "number of bytes" },
		{ "[daemon]\nreadahead = 99999999999T\n", ":2: ", "number of bytes" },
		{ "[daemon]\nslots = 1\n", ":2: ", "from 2 to 1024" },
		{ "[daemon]\nreader = mmap\n", ":2: ", "auto uring pread" },
		{ "[daemon]\nentropy = own\n", ":2: ", "later version" },
		{ "[daemon]\ncheckpoints = on\n", ":2: ", "later version" },
		{ "[daemon]\njust words\nworkers = x\n", ":2: ", "neither" },
		{ "[daemon\n", ":1: ", "ends with ]" },
		{ "[root data]\n", ":1: ", "must begin with /" },
		{ "[root /data]\nallow = nobody-has-this-name\n", ":2: ", "no user" },
		{ "[root /data]\nallow = @nobody-has-this-name\n", ":2: ", "no group" },
		{ "[root /data]\nallow =\n", ":2: ", "needs users" },
		{ "[root /data]\nworkers = 2\n", ":2: ", "no key \"workers\"" },
		{ "[limits]\nlanes = 1\nsocket = /x\n", ":3: ", "no key \"socket\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[CONFIG_TEXT] = "";
		struct config c;

		assert_int_equal(read_text(&c, cases[i].content, text), -EINVAL);
		if (!strstr(text, cases[i].where) || !strstr(text, cases[i].what))
			fail_msg("case %zu: \"%s\" lacks \"%s\" or \"%s\"", i, text, cases[i].where,
				cases[i].what);
		assert_int_equal(strncmp(text, path, strlen(path)), 0);
		config_deinit(&c);
	}
}

/* inih would cut the line in two and take the rest as another one. */
static void refuses_lines_too_long(void **state)
{
	char content[1024] = "[daemon]\nsocket = /", text[CONFIG_TEXT];
	struct config c;

	(void)state;
	memset(content + strlen(content), 'b', 500);
	assert_int_equal(read_text(&c, content, text), -EINVAL);
	assert_non_null(strstr(text, ":2: longer than"));
	assert_null(c.socket);
	config_deinit(&c);
}

static void missing_file(void **state)
{
	struct config c;
	char text[CONFIG_TEXT];

	(void)state;
	config_init(&c);
	assert_int_equal(config_read(&c, "/nonexistent/feeder.conf", text, sizeof(text)), -ENOENT);
	assert_non_null(strstr(text, "/nonexistent/feeder.conf"));
	config_deinit(&c);
}

static void set_is_the_same_table(void **state)
{
	struct config c;
	char text[CONFIG_TEXT];

	(void)state;
	config_init(&c);
	assert_int_equal(config_set(&c, "slots=6", text, sizeof(text)), 0);
	assert_int_equal(c.slots, 6);
	assert_int_equal(config_set(&c, "workers=auto", text, sizeof(text)), 0);
	assert_int_equal(config_set(&c, "limits.lanes=3", text, sizeof(text)), 0);
	assert_int_equal(c.limits.lanes, 3);
	assert_int_equal(config_set(&c, "slot=6", text, sizeof(text)), -EINVAL);
	assert_non_null(strstr(text, "no key \"slot\""));
	assert_int_equal(config_set(&c, "slots", text, sizeof(text)), -EINVAL);
	assert_int_equal(config_set(&c, "=6", text, sizeof(text)), -EINVAL);
	assert_int_equal(config_set(&c, "limits.workers=1", text, sizeof(text)), -EINVAL);
	config_deinit(&c);
}

static const char *manual; /* man/feeder.conf.5.scd */
static char manual_text[32768];

static void find_in_manual(void *context, const char *section, const char *key)
{
	char word[64];

	snprintf(word, sizeof(word), "*%s*", key);
	if (!strstr(manual_text, word))
		fail_msg("%s: [%s] %s is not described", manual, section, key);
	++*(int *)context;
}

static void the_manual_has_every_key(void **state)
{
	FILE *f = fopen(manual, "r");
	int keys = 0;

	(void)state;
	assert_non_null(f);
	assert_true(fread(manual_text, 1, sizeof(manual_text) - 1, f) > 0);
	fclose(f);
	config_list(find_in_manual, &keys);
	assert_true(keys > 15);
}

int main(int argc, char **argv)
{
	manual = argc > 1 ? argv[1] : "man/feeder.conf.5.scd";
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_every_key),
		cmocka_unit_test(roots_with_long_names_and_lists),
		cmocka_unit_test(refuses_with_line),
		cmocka_unit_test(refuses_lines_too_long),
		cmocka_unit_test(missing_file),
		cmocka_unit_test(set_is_the_same_table),
		cmocka_unit_test(the_manual_has_every_key),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
