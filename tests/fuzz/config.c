/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's settings: the bytes as a file, and each of its lines as --set's argument. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "control/config.h"
#include "fuzz.h"

static void must_be_sane(const struct config *c)
{
	REQUIRE(c->workers <= 4096);
	REQUIRE(c->readahead >= 1 << 20);
	REQUIRE(c->slots >= 2 && c->slots <= 1024);
	REQUIRE(c->reader <= CONFIG_READER_PREAD);
	REQUIRE(c->entropy == 0 && c->checkpoints == 0);
	REQUIRE(c->limits.workers_share >= 1 && c->limits.workers_share <= 100);
	REQUIRE(c->limits.lanes >= 1 && c->limits.sessions >= 1);
	REQUIRE(!c->socket || c->socket[0]);
	REQUIRE(!c->cache_dir || c->cache_dir[0]);
	for (size_t i = 0; i < c->root_count; i++) {
		REQUIRE(c->roots[i].path[0] == '/');
		for (size_t k = 0; k < i; k++)
			REQUIRE(strcmp(c->roots[i].path, c->roots[k].path) != 0);
	}
}

static void read_file(const uint8_t *data, size_t size)
{
	int before = fuzz_lowest_fd(), fd = fuzz_memfd(data, size);
	char path[64], text[CONFIG_TEXT] = "";
	struct config config;
	int r;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	config_init(&config);
	r = config_read(&config, path, text, sizeof(text));
	REQUIRE(r <= 0);
	if (r == 0)
		must_be_sane(&config);
	else
		REQUIRE(strncmp(text, path, strlen(path)) == 0 && strlen(text) > strlen(path) + 2);
	config_admits_others(&config);
	config_deinit(&config);
	close(fd);
	REQUIRE(fuzz_lowest_fd() == before);
}

static void set_lines(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + 1), *state, *line;
	char text[CONFIG_TEXT];
	struct config config;

	REQUIRE(copy);
	if (size > 0)
		memcpy(copy, data, size);
	copy[size] = '\0';
	config_init(&config);
	for (line = strtok_r(copy, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
		text[0] = '\0';
		REQUIRE(config_set(&config, line, text, sizeof(text)) == 0 || text[0]);
		must_be_sane(&config);
	}
	config_deinit(&config);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_file(data, size);
	set_lines(data, size);
	return 0;
}
