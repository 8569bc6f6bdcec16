/* SPDX-License-Identifier: Apache-2.0 */
/* Which descriptors are beneath a root, and for whom. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/config.h"
#include "control/roots.h"

static char top[] = "/tmp/feeder-roots-XXXXXX";

/* top/root/set/a.jpg, top/root/set/list.txt, top/other/b.jpg, links and a FIFO in the set. */
static int make_tree(void **state)
{
	(void)state;
	if (!mkdtemp(top) || chdir(top) < 0 || mkdir("root", 0755) < 0 ||
		mkdir("root/set", 0755) < 0 || mkdir("other", 0755) < 0 || mkdir("root2", 0755) < 0)
		return -1;
	static const char *const files[] = { "root/set/a.jpg", "root/set/list.txt", "other/b.jpg",
		"other/list.txt", "root/c.jpg", "root2/d.jpg" };
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		int fd = open(files[i], O_CREAT | O_WRONLY, 0644);

		if (fd < 0)
			return -1;
		close(fd);
	}
	if (symlink("../../other", "root/set/out") < 0 ||
		symlink("../c.jpg", "root/set/in.jpg") < 0 ||
		symlink("../../other/b.jpg", "root/set/out.jpg") < 0 ||
		symlink("../../root2/d.jpg", "root/set/second.jpg") < 0 ||
		symlink("loop.jpg", "root/set/loop.jpg") < 0 ||
		symlink("../fifo", "root/set/fifo.jpg") < 0 || mkfifo("root/fifo", 0644) < 0)
		return -1;
	return 0;
}

static int remove_tree(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return chdir("/") || system(command);
}

static struct roots *make_roots(const char *const *allow, size_t count)
{
	struct config config;
	struct roots *roots;
	char path[128], text[CONFIG_TEXT] = "";

	config_init(&config);
	for (size_t i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", top, allow[2 * i]);
		assert_int_equal(config_add_root(&config, path), 0);
		if (allow[2 * i + 1]) {
			struct config_root *root = &config.roots[i];

			root->uids = malloc(sizeof(uid_t));
			root->uids[0] = (uid_t)atoi(allow[2 * i + 1]);
			root->uid_count = 1;
		}
	}
	if (roots_new(&roots, &config, false, text, sizeof(text)) < 0)
		fail_msg("%s", text);
	config_deinit(&config);
	return roots;
}

static int judge(
	struct roots *roots, uid_t uid, const char *path, const char *directory, char *text)
{
	int fd = open(path, O_PATH | O_CLOEXEC);
	int dirfd = directory ? open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

	assert_true(fd >= 0);
	text[0] = '\0';
	int r = roots_judge(roots, uid, fd, dirfd, path, text, CONFIG_TEXT);
	close(fd);
	if (dirfd >= 0)
		close(dirfd);
	return r;
}

static const char *const one_root[] = { "root", "4242" };

static void directories_and_list_files(void **state)
{
	struct roots *roots = make_roots(one_root, 1);
	char text[CONFIG_TEXT];

	(void)state;
	assert_int_equal(judge(roots, 4242, "root", NULL, text), 0);
	assert_int_equal(judge(roots, 4242, "root/set", NULL, text), 0);
	assert_int_equal(judge(roots, 4242, "other", NULL, text), -EACCES);
	assert_non_null(strstr(text, "other is not beneath a root"));
	assert_non_null(strstr(text, top));
	assert_int_equal(judge(roots, 4242, "root/..", NULL, text), -EACCES);
	assert_int_equal(judge(roots, 4242, "root/set/out", NULL, text), -EACCES);
	assert_int_equal(judge(roots, 4242, "root2", NULL, text), -EACCES);
	assert_int_equal(judge(roots, 4242, "/", NULL, text), -EACCES);
	assert_int_equal(judge(roots, 4242, "root/set/list.txt", "root/set", text), 0);
	assert_int_equal(judge(roots, 4242, "other/list.txt", "other", text), -EACCES);
	/* a list from elsewhere with the directory of one that may be read */
	assert_int_equal(judge(roots, 4242, "other/list.txt", "root/set", text), -EACCES);
	assert_int_equal(judge(roots, 4242, "root/set/list.txt", "other", text), -EACCES);
	assert_int_equal(judge(roots, 4242, "root/set/list.txt", NULL, text), -EINVAL);
	roots_free(roots);
}

static void neither_directory_nor_file(void **state)
{
	struct roots *roots = make_roots(one_root, 1);
	char text[CONFIG_TEXT];

	(void)state;
	assert_int_equal(judge(roots, 4242, "root/fifo", "root", text), -EINVAL);
	assert_non_null(strstr(text, "FIFO"));
	assert_int_equal(judge(roots, 4242, "/dev/null", "/dev", text), -EINVAL);
	roots_free(roots);
}

static void allow_lists(void **state)
{
	static const char *const two[] = { "root", "4242", "root2", NULL };
	struct roots *roots = make_roots(two, 2);
	struct peer listed = { .uid = 4242, .gid = 1 }, stranger = { .uid = 4243, .gid = 1 };
	struct peer own = { .uid = geteuid() }, root = { .uid = 0 };
	char text[CONFIG_TEXT];

	(void)state;
	assert_true(roots_admit(roots, &listed));
	assert_false(roots_admit(roots, &stranger));
	assert_true(roots_admit(roots, &own));
	assert_true(roots_admit(roots, &root));
	assert_int_equal(roots_mask(roots, 4242), 1);
	assert_int_equal(roots_mask(roots, 4243), 0);
	assert_int_equal(roots_mask(roots, geteuid()), 3);
	assert_int_equal(judge(roots, 4242, "root2", NULL, text), -EACCES);
	assert_null(strstr(text, "root2/")); /* what others may read is not told */
	assert_int_equal(judge(roots, 4243, "root", NULL, text), -EACCES);
	assert_int_equal(judge(roots, geteuid(), "root2", NULL, text), 0);
	roots_free(roots);
}

static void groups_count_while_their_peer_is_there(void **state)
{
	struct config config;
	struct roots *roots;
	gid_t groups[] = { 5, 9001 };
	struct peer peer = { .uid = 4242, .gid = 1, .groups = groups, .group_count = 2 };
	char path[128], text[CONFIG_TEXT];

	(void)state;
	config_init(&config);
	snprintf(path, sizeof(path), "%s/root", top);
	assert_int_equal(config_add_root(&config, path), 0);
	config.roots[0].gids = malloc(sizeof(gid_t));
	config.roots[0].gids[0] = 9001;
	config.roots[0].gid_count = 1;
	assert_int_equal(roots_new(&roots, &config, false, text, sizeof(text)), 0);
	assert_true(roots_admit(roots, &peer));
	assert_int_equal(roots_mask(roots, 4242), 0);
	assert_int_equal(roots_enter(roots, &peer), 0);
	assert_int_equal(roots_mask(roots, 4242), 1);
	roots_leave(roots, 4242);
	assert_int_equal(roots_mask(roots, 4242), 0);
	config_deinit(&config);
	roots_free(roots);
}

static int outside(struct roots *roots, uid_t uid, const char *name, int flags)
{
	int dirfd = open("root/set", O_PATH | O_DIRECTORY);
	int fd = roots_open_outside(roots, uid, dirfd, name, flags);

	close(dirfd);
	return fd;
}

static void links_are_judged_by_where_they_end(void **state)
{
	static const char *const two[] = { "root", "4242", "root2", "4243" };
	struct roots *roots = make_roots(two, 2);
	struct stat st;

	(void)state;
	int fd = outside(roots, 4242, "in.jpg", O_RDONLY);
	assert_true(fd >= 0);
	char byte;
	assert_int_equal(read(fd, &byte, 1), 0);
	close(fd);
	assert_int_equal(outside(roots, 4242, "out.jpg", O_RDONLY), -EXDEV);
	assert_int_equal(outside(roots, 4242, "out", O_RDONLY | O_DIRECTORY), -EXDEV);
	assert_int_equal(outside(roots, 4242, "second.jpg", O_RDONLY), -EXDEV);
	assert_int_equal(outside(roots, 4242, "loop.jpg", O_RDONLY), -ELOOP);
	assert_int_equal(outside(roots, 4242, "none.jpg", O_RDONLY), -ENOENT);
	fd = outside(roots, geteuid(), "second.jpg", O_RDONLY | O_NOFOLLOW);
	assert_true(fd >= 0);
	close(fd);
	/* must not wait for a writer: what comes back is a descriptor that only fstat works on */
	fd = outside(roots, 4242, "fifo.jpg", O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	assert_int_equal(read(fd, &byte, 1), -1);
	assert_int_equal(errno, EBADF);
	close(fd);
	assert_int_equal(outside(roots, 4242, "in.jpg", O_RDONLY | O_DIRECTORY), -ENOTDIR);
	roots_free(roots);
}

/* The name is believed only as far as it leads to the same thing. */
static void swapped_directory(void **state)
{
	struct roots *roots = make_roots(one_root, 1);
	char text[CONFIG_TEXT];

	(void)state;
	assert_int_equal(mkdir("root/swap", 0755), 0);
	int fd = open("root/swap", O_PATH | O_DIRECTORY);
	assert_true(fd >= 0);
	assert_int_equal(rename("root/swap", "other/swap"), 0);
	assert_int_equal(mkdir("root/swap", 0755), 0);
	assert_int_equal(
		roots_judge(roots, 4242, fd, -1, "root/swap", text, sizeof(text)), -EACCES);
	close(fd);
	/* and the root itself may be moved: it is the directory, not the name */
	assert_int_equal(rename("root", "moved"), 0);
	assert_int_equal(judge(roots, 4242, "moved/set", NULL, text), 0);
	assert_int_equal(rename("moved", "root"), 0);
	assert_int_equal(rmdir("other/swap"), 0);
	roots_free(roots);
}

/*
 * In a mount namespace of his own a user binds a directory that he may not have read below a
 * root: going up from it by ".." leads into the root. Exit status: 0 as it should be, 77 where
 * one may not make namespaces.
 */
static int attack(void)
{
	char text[CONFIG_TEXT] = "";
	struct roots *roots = make_roots(one_root, 1);
	int daemons = open("/proc/self/ns/mnt", O_RDONLY);

	if (unshare(CLONE_NEWNS) < 0)
		return 77;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("other", "root/set", NULL, MS_BIND, NULL) < 0)
		return 77;
	int fd = open("root/set", O_PATH | O_DIRECTORY);
	/* The daemon is in the namespace outside: what it finds under the name is another one. */
	if (umount2("root/set", MNT_DETACH) < 0)
		return 77;
	int detached = roots_judge(roots, 4242, fd, -1, "root/set", text, sizeof(text));
	if (mount("other", "root/set", NULL, MS_BIND, NULL) < 0)
		return 77;
	int inside = open("root/set", O_PATH | O_DIRECTORY);
	struct stat st, root;
	int up = openat(inside, "..", O_PATH | O_DIRECTORY);
	/* The trap is set: a plain ".." does lead into the root. */
	if (fstat(up, &st) < 0 || stat("root", &root) < 0 || st.st_ino != root.st_ino)
		return 1;
	/* A namespace lives as long as a process is in it. */
	pid_t keeper = fork();
	if (keeper == 0) {
		pause();
		_exit(0);
	}
	if (setns(daemons, CLONE_NEWNS) < 0 || chdir(top) < 0)
		return 2;
	int attached = roots_judge(roots, 4242, inside, -1, "root/set", text, sizeof(text));
	kill(keeper, SIGKILL);
	waitpid(keeper, NULL, 0);
	return detached == -EACCES && attached == -EACCES ? 0 : 3;
}

/* What the daemon itself sees mounted inside a root belongs to it, though ".." stops there. */
static int mounted_inside(void)
{
	char text[CONFIG_TEXT] = "";
	struct roots *roots = make_roots(one_root, 1);

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 77;
	roots_free(roots);
	roots = make_roots(one_root, 1); /* opened in this namespace */
	if (mount("none", "root/set", "tmpfs", 0, NULL) < 0 || mkdir("root/set/deep", 0755) < 0)
		return 77;
	int fd = open("root/set/deep", O_PATH | O_DIRECTORY);
	return roots_judge(roots, 4242, fd, -1, "root/set/deep", text, sizeof(text)) == 0 ? 0 : 1;
}

static void run_in_child(int (*test)(void))
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
		_exit(test());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_bind_of_ones_own_proves_nothing(void **state)
{
	(void)state;
	run_in_child(attack);
}

static void a_mount_of_the_daemons_own_is_in_its_root(void **state)
{
	(void)state;
	run_in_child(mounted_inside);
}

static void reload_keeps_the_old_set_on_failure(void **state)
{
	struct roots *roots = make_roots(one_root, 1);
	unsigned int generation = roots_generation(roots);
	struct config config;
	char text[CONFIG_TEXT];

	(void)state;
	config_init(&config);
	assert_int_equal(config_add_root(&config, "/nonexistent/root"), 0);
	assert_int_equal(roots_reload(roots, &config, text, sizeof(text)), -ENOENT);
	assert_non_null(strstr(text, "/nonexistent/root"));
	assert_int_equal(roots_generation(roots), generation);
	assert_int_equal(judge(roots, 4242, "root/set", NULL, text), 0);
	config_deinit(&config);
	config_init(&config);
	assert_int_equal(roots_reload(roots, &config, text, sizeof(text)), 0);
	assert_true(roots_generation(roots) != generation);
	assert_int_equal(judge(roots, 4242, "root/set", NULL, text), -EACCES);
	config_deinit(&config);
	roots_free(roots);
}

static void a_root_hidden_by_the_unit_names_the_setting(void **state)
{
	struct config config;
	struct roots *roots;
	char text[CONFIG_TEXT];

	(void)state;
	config_init(&config);
	assert_int_equal(config_add_root(&config, "/home/nobody-has-this/data"), 0);
	setenv("INVOCATION_ID", "1", 1);
	assert_int_equal(roots_new(&roots, &config, false, text, sizeof(text)), -ENOENT);
	unsetenv("INVOCATION_ID");
	assert_non_null(strstr(text, "ProtectHome="));
	config_deinit(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(directories_and_list_files),
		cmocka_unit_test(neither_directory_nor_file),
		cmocka_unit_test(allow_lists),
		cmocka_unit_test(groups_count_while_their_peer_is_there),
		cmocka_unit_test(links_are_judged_by_where_they_end),
		cmocka_unit_test(swapped_directory),
		cmocka_unit_test(a_bind_of_ones_own_proves_nothing),
		cmocka_unit_test(a_mount_of_the_daemons_own_is_in_its_root),
		cmocka_unit_test(reload_keeps_the_old_set_on_failure),
		cmocka_unit_test(a_root_hidden_by_the_unit_names_the_setting),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
