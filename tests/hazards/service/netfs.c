/* SPDX-License-Identifier: Apache-2.0 */
/* A socket's directory on a file system of another machine: statfs is wrapped and says so. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/config.h"
#include "control/server.h"

#define NFS   0x6969
#define SMB   0x517b
#define CIFS  0xff534d42
#define FUSE  0x65735546
#define TMPFS 0x01021994

static long filesystem;
static int statfs_error;
static char directory[] = "/tmp/feeder-netfs-XXXXXX";
static char path[64];

int __wrap_statfs64(const char *at, struct statfs *ret);

int __wrap_statfs64(const char *at, struct statfs *ret)
{
	assert_string_equal(at, directory);
	if (statfs_error) {
		errno = statfs_error;
		return -1;
	}
	memset(ret, 0, sizeof(*ret));
	ret->f_type = filesystem;
	return 0;
}

struct outcome {
	int r;
	char warning[CONFIG_TEXT];
	char text[CONFIG_TEXT];
};

/* Binds and closes again; nothing may be left of it. */
static struct outcome bind_on(long type)
{
	struct outcome o = { .text = "" };
	struct server server;
	struct stat st;

	filesystem = type;
	server_init(&server);
	o.r = server_bind(&server, path, false, o.warning, o.text, sizeof(o.text));
	assert_int_equal(stat(path, &st) == 0, o.r == 0);
	server_close(&server);
	assert_int_equal(rmdir(directory), 0); /* it is empty */
	assert_int_equal(mkdir(directory, 0700), 0);
	return o;
}

static void b30_a_directory_on_a_network_file_system_is_refused(void **state)
{
	/* the kernel sign-extends on some architectures: the low 32 bits are the magic number */
	static const long types[] = { NFS, SMB, CIFS, (long)(int32_t)CIFS, 0xfe534d42, 0x0bd00bd0 };

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct outcome o = bind_on(types[i]);

		assert_int_equal(o.r, -EINVAL);
		assert_non_null(strstr(o.text, directory));
		assert_non_null(strstr(o.text, "network file system"));
		assert_non_null(strstr(o.text, "/run"));
	}
}

static void b30_fuse_is_warned_of_and_the_rest_is_not(void **state)
{
	struct outcome o = bind_on(FUSE);

	(void)state;
	assert_int_equal(o.r, 0);
	assert_non_null(strstr(o.warning, directory));
	assert_non_null(strstr(o.warning, "FUSE"));
	o = bind_on(TMPFS);
	assert_int_equal(o.r, 0);
	assert_string_equal(o.warning, "");
	/* what cannot be told is not held against it */
	statfs_error = ENOSYS;
	o = bind_on(NFS);
	statfs_error = 0;
	assert_int_equal(o.r, 0);
	assert_string_equal(o.warning, "");
}

static int make_directory(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/feeder.sock", directory);
	return 0;
}

static int remove_directory(void **state)
{
	(void)state;
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(b30_a_directory_on_a_network_file_system_is_refused),
		cmocka_unit_test(b30_fuse_is_warned_of_and_the_rest_is_not),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
