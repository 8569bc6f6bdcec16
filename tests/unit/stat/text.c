/* SPDX-License-Identifier: Apache-2.0 */
/* Names that a terminal, JSON or OpenMetrics must not get as they are; and where sockets lie. */
#include "sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tools/stat/sockets.h"
#include "tools/stat/text.h"

static void names_are_cleaned_for_terminals(void **state)
{
	char ret[64];

	(void)state;
	assert_string_equal(text_clean(ret, sizeof(ret), "plain"), "plain");
	assert_string_equal(text_clean(ret, sizeof(ret), "\x1b[2J\n"), "\\x1b[2J\\x0a");
	assert_string_equal(text_clean(ret, sizeof(ret), "\xc3\xa4\xff"), "\xc3\xa4\\xff");
	assert_string_equal(text_clean(ret, sizeof(ret), "\xc2\x9b"), "\\xc2\\x9b"); /* C1: CSI */
	assert_string_equal(text_clean(ret, sizeof(ret), "\xed\xa0\x80"), "\\xed\\xa0\\x80");
	assert_string_equal(text_clean(ret, 6, "\xc3\xa4\xc3\xa4\xc3\xa4"), "\xc3\xa4\xc3\xa4");
	assert_string_equal(text_clean(ret, 6, "ab\xff"), "ab");
}

static void the_front_gives_way(void **state)
{
	char ret[64];

	(void)state;
	assert_string_equal(text_fit(ret, sizeof(ret), "abcdefgh", 8), "abcdefgh");
	assert_string_equal(text_fit(ret, sizeof(ret), "abcdefghi", 8), "...efghi");
	assert_string_equal(
		text_fit(ret, sizeof(ret), "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f!", 4), "...!");
	assert_string_equal(text_fit(ret, sizeof(ret), "abc\xc3\xa4\xc3\xb6\xc3\xbc", 5),
		"...\xc3\xb6\xc3\xbc");
	assert_int_equal(text_columns("\xc3\xa4\xc3\xb6x"), 3);
}

static const char *written(void (*put)(FILE *out, const char *name), const char *name)
{
	static char ret[256];
	FILE *out = fmemopen(ret, sizeof(ret), "w");

	assert_non_null(out);
	put(out, name);
	fclose(out);
	return ret;
}

static void strings_are_escaped_for_programs(void **state)
{
	(void)state;
	assert_string_equal(written(text_json, "a\"b\\c\n\x7f"), "\"a\\\"b\\\\c\\u000a\\u007f\"");
	assert_string_equal(written(text_json, "\xff\xc3\xa4"), "\"\\u00ff\xc3\xa4\"");
	assert_string_equal(written(text_json, "\xed\xa0\x80"), "\"\\u00ed\\u00a0\\u0080\"");
	assert_string_equal(written(text_label, "a\"b\\c\n\xff"), "\"a\\\"b\\\\c\\\\x0a\\\\xff\"");
	assert_string_equal(text_status(FEEDER_STATUS_TRUNCATED), "truncated");
	assert_string_equal(text_status(999), "unknown");
}

static int listener(const char *path, bool stale)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	if (stale) {
		close(fd);
		return -1;
	}
	assert_int_equal(listen(fd, 4), 0);
	return fd;
}

static bool holds(const struct socket_list *list, const char *path)
{
	for (unsigned int i = 0; i < list->count; i++) {
		if (!strcmp(list->paths[i], path))
			return true;
	}
	return false;
}

static void sockets_are_found_once_and_stale_ones_are_known(void **state)
{
	char base[] = "/tmp/stat-sockets-XXXXXX", directory[64], one[100], two[100], own[100];
	char kernel[64];
	struct socket_places places = { .named = one, .service = one, .tmp = base };
	struct socket_list list;
	FILE *table;
	int fds[2];

	(void)state;
	assert_non_null(mkdtemp(base));
	snprintf(directory, sizeof(directory), "%s/feeder-%u", base, (unsigned int)geteuid());
	assert_int_equal(mkdir(directory, 0700), 0);
	snprintf(one, sizeof(one), "%s/feeder.sock", base);
	snprintf(own, sizeof(own), "%s/0123.sock", directory);
	snprintf(two, sizeof(two), "%s/stale.sock", directory);
	snprintf(kernel, sizeof(kernel), "%s/unix", base);
	fds[0] = listener(one, false);
	fds[1] = listener(own, false);
	listener(two, true);
	assert_int_equal(sockets_find(&list, &places), 0);
	assert_int_equal(list.count, 3);
	assert_true(holds(&list, one) && holds(&list, two) && holds(&list, own));
	assert_true(socket_alive(one) && socket_alive(own));
	assert_false(socket_alive(two));
	assert_false(socket_alive("/nonexistent/feeder.sock"));
	sockets_free(&list);

	/* the kernel's table: listeners with our name only */
	table = fopen(kernel, "w");
	assert_non_null(table);
	fprintf(table, "Num       RefCount Protocol Flags    Type St Inode Path\n");
	fprintf(table, "0000000000000000: 00000002 00000000 00010000 0005 01 1 %s\n", one);
	fprintf(table, "0000000000000000: 00000002 00000000 00010000 0001 01 2 %s\n", own);
	fprintf(table, "0000000000000000: 00000003 00000000 00000000 0005 03 3\n");
	fprintf(table, "0000000000000000: 00000002 00000000 00010000 0005 01 4 %s\n", own);
	fclose(table);
	assert_int_equal(sockets_find(&list, &(struct socket_places){ .kernel = kernel }), 0);
	assert_int_equal(list.count, 1);
	assert_true(holds(&list, one));
	sockets_free(&list);

	/* a directory that others may write to is not looked at */
	assert_int_equal(chmod(directory, 0777), 0);
	assert_int_equal(sockets_find(&list, &(struct socket_places){ .tmp = base }), 0);
	assert_int_equal(list.count, 0);
	sockets_free(&list);
	close(fds[0]);
	close(fds[1]);
	unlink(one);
	unlink(two);
	unlink(own);
	unlink(kernel);
	rmdir(directory);
	rmdir(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_cleaned_for_terminals),
		cmocka_unit_test(the_front_gives_way),
		cmocka_unit_test(strings_are_escaped_for_programs),
		cmocka_unit_test(sockets_are_found_once_and_stale_ones_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
