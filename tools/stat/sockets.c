/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Daemons that this user may see. A private daemon's directory must be the user's own, as for
 * libfeeder: what others put into /tmp is not looked at.
 */
#include "sockets.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"

void socket_places_init(struct socket_places *ret)
{
	*ret = (struct socket_places){
		.named = getenv("FEEDER_SOCKET"),
		.service = "/run/feeder/feeder.sock",
		.runtime = getenv("XDG_RUNTIME_DIR"),
		.tmp = "/tmp",
		.kernel = "/proc/net/unix",
	};
}

static int append(struct socket_list *list, const char *path)
{
	size_t length = strlen(path);
	char(*grown)[SOCKET_MAX];

	if (length == 0 || length >= SOCKET_MAX)
		return -ENAMETOOLONG;
	grown = realloc(list->paths, (list->count + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	list->paths = grown;
	memcpy(grown[list->count++], path, length + 1);
	return 0;
}

/* Appends a socket unless it is listed already, under whatever name. */
static int consider(struct socket_list *list, const char *path)
{
	struct stat st, other;
	int r;

	if (stat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return 0;
	for (unsigned int i = 0; i < list->count; i++) {
		if (stat(list->paths[i], &other) == 0 && st.st_dev == other.st_dev &&
			st.st_ino == other.st_ino)
			return 0;
	}
	r = append(list, path);
	return r == -ENAMETOOLONG ? 0 : r;
}

static bool ends_with(const char *text, const char *end)
{
	size_t a = strlen(text), b = strlen(end);

	return a >= b && !strcmp(text + a - b, end);
}

static int consider_directory(struct socket_list *list, const char *directory)
{
	struct dirent *entry;
	struct stat st;
	int r = 0;
	DIR *dir;

	if (lstat(directory, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
		(st.st_mode & 022))
		return 0;
	dir = opendir(directory);
	if (!dir)
		return 0;
	while (r == 0 && (entry = readdir(dir))) {
		char path[4096];

		if (ends_with(entry->d_name, ".sock") &&
			snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name) <
				(int)sizeof(path))
			r = consider(list, path);
	}
	closedir(dir);
	return r;
}

/* Num RefCount Protocol Flags Type St Inode Path; type 5 is SOCK_SEQPACKET. */
static int consider_kernel(struct socket_list *list, const char *table)
{
	FILE *f = fopen(table, "re");
	char line[512], path[256];
	unsigned int flags, type;
	int r = 0;

	if (!f)
		return 0;
	while (r == 0 && fgets(line, sizeof(line), f)) {
		const char *name;

		if (sscanf(line, "%*s %*s %*s %x %x %*s %*s %255[^\n]", &flags, &type, path) != 3 ||
			type != SOCK_SEQPACKET || !(flags & 0x10000) || path[0] != '/')
			continue;
		name = strrchr(path, '/') + 1;
		if (!strcmp(name, "feeder.sock") || !strcmp(name, "feederd.sock") ||
			!strcmp(name, "feeder"))
			r = consider(list, path);
	}
	fclose(f);
	return r;
}

int sockets_find(struct socket_list *ret, const struct socket_places *places)
{
	struct socket_list list = { .paths = NULL };
	char directory[4096];
	int r = 0;

	if (places->named)
		r = consider(&list, places->named);
	if (r == 0 && places->service)
		r = consider(&list, places->service);
	if (r == 0 && places->runtime && places->runtime[0] == '/') {
		snprintf(directory, sizeof(directory), "%s/feeder", places->runtime);
		r = consider_directory(&list, directory);
	}
	if (r == 0 && places->tmp) {
		snprintf(directory, sizeof(directory), "%s/feeder-%u", places->tmp,
			(unsigned int)geteuid());
		r = consider_directory(&list, directory);
	}
	if (r == 0 && places->kernel)
		r = consider_kernel(&list, places->kernel);
	if (r < 0) {
		sockets_free(&list);
		return r;
	}
	*ret = list;
	return 0;
}

int sockets_one(struct socket_list *ret, const char *path)
{
	struct socket_list list = { .paths = NULL };
	int r = append(&list, path);

	if (r == 0)
		*ret = list;
	return r;
}

void sockets_free(struct socket_list *list)
{
	free(list->paths);
	*list = (struct socket_list){ .paths = NULL };
}

bool socket_alive(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	CLEANUP(fd_closep) int fd = -1;

	if (strlen(path) >= sizeof(address.sun_path))
		return false;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return false;
	/* EAGAIN: it listens, and many ask at once */
	return connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 || errno == EAGAIN;
}
