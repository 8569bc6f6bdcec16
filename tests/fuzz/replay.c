/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a harness on files: the arguments, and what lies in those that are directories. Each file
 * is named before it runs, so that the last one named is the one that failed.
 */
#include "fuzz.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

static unsigned int count;

static void run_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *bytes;
	struct stat st;
	size_t size;

	printf("%s\n", path);
	fflush(stdout);
	REQUIRE(f && fstat(fileno(f), &st) == 0);
	size = (size_t)st.st_size;
	bytes = malloc(size ? size : 1);
	REQUIRE(bytes && fread(bytes, 1, size, f) == size);
	fclose(f);
	LLVMFuzzerTestOneInput(bytes, size);
	free(bytes);
	count++;
}

static void run_directory(const char *path)
{
	struct dirent **names;
	int n = scandir(path, &names, NULL, alphasort);

	REQUIRE(n >= 0);
	for (int i = 0; i < n; i++) {
		char file[4096];

		if (names[i]->d_name[0] != '.') {
			snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name);
			run_file(file);
		}
		free(names[i]);
	}
	free(names);
}

int main(int argc, char **argv)
{
	struct stat st;

	for (int i = 1; i < argc; i++) {
		REQUIRE(stat(argv[i], &st) == 0);
		if (S_ISDIR(st.st_mode))
			run_directory(argv[i]);
		else
			run_file(argv[i]);
	}
	printf("%u files\n", count);
	return count == 0; /* nothing was proved */
}
