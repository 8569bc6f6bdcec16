/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzz harnesses share: input, memfds, a scratch directory, poison. */
#include "fuzz.h"

#include <fcntl.h>
#include <ftw.h>
#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/relaxed.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#endif
#ifndef WITH_ASAN
#define WITH_ASAN 0
#endif

#if WITH_ASAN
/* Of <sanitizer/allocator_interface.h>, which gcc 12 lacks. */
int __sanitizer_install_malloc_and_free_hooks(
	void (*allocated)(const volatile void *p, size_t size),
	void (*freed)(const volatile void *p));
#endif

/* ASan takes larger blocks from the kernel, and knows that these are zero. */
#define POISON_MAX ((size_t)64 << 10)

const uint8_t *input_take(struct input *in, size_t size, size_t *ret_size)
{
	const uint8_t *at = in->at;

	*ret_size = size < in->left ? size : in->left;
	in->left -= *ret_size;
	if (*ret_size > 0)
		in->at += *ret_size;
	return at;
}

static uint64_t take_number(struct input *in, size_t size)
{
	uint64_t number = 0;
	size_t given;
	const uint8_t *bytes = input_take(in, size, &given);

	for (size_t i = 0; i < given; i++)
		number |= (uint64_t)bytes[i] << (8 * i);
	return number;
}

uint8_t input_u8(struct input *in)
{
	return (uint8_t)take_number(in, 1);
}

uint16_t input_u16(struct input *in)
{
	return (uint16_t)take_number(in, 2);
}

uint32_t input_u32(struct input *in)
{
	return (uint32_t)take_number(in, 4);
}

uint64_t input_u64(struct input *in)
{
	return take_number(in, 8);
}

uint8_t *fuzz_copy(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	REQUIRE(copy);
	if (size > 0)
		memcpy(copy, data, size);
	return copy;
}

uint64_t fuzz_hash(const uint8_t *data, size_t size)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < size; i++)
		h = (h ^ data[i]) * 0x100000001b3ull;
	return h ^ h >> 29;
}

int fuzz_memfd(const void *bytes, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	REQUIRE(fd >= 0);
	REQUIRE(pwrite(fd, bytes, size, 0) == (ssize_t)size);
	return fd;
}

static char directory[256];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void remove_directory(void)
{
	nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *fuzz_directory(void)
{
	const char *parent = getenv("TMPDIR");

	if (directory[0])
		return directory;
	snprintf(directory, sizeof(directory), "%s/feeder-fuzz-XXXXXX",
		parent && *parent ? parent : "/tmp");
	REQUIRE(mkdtemp(directory));
	atexit(remove_directory);
	return directory;
}

int fuzz_lowest_fd(void)
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);

	REQUIRE(fd >= 0);
	close(fd);
	return fd;
}

#if WITH_ASAN

static uint8_t poisoning; /* atomic, relaxed */
static uint8_t poison;    /* likewise */

static void fill(const volatile void *p, size_t size)
{
	if (relaxed_load_u8(&poisoning) && size <= POISON_MAX)
		memset((void *)(uintptr_t)p, relaxed_load_u8(&poison), size);
}

static void leave(const volatile void *p)
{
	(void)p;
}

void fuzz_poison(uint8_t pattern)
{
	static int installed;

	if (!installed)
		REQUIRE(__sanitizer_install_malloc_and_free_hooks(fill, leave) > 0);
	installed = 1;
	relaxed_store_u8(&poison, pattern);
	relaxed_store_u8(&poisoning, 1);
}

void fuzz_poison_end(void)
{
	relaxed_store_u8(&poisoning, 0);
}

#else

void fuzz_poison(uint8_t pattern)
{
	mallopt(M_PERTURB, pattern ^ 0xff); /* glibc fills with the complement */
}

void fuzz_poison_end(void)
{
	mallopt(M_PERTURB, 0);
}

#endif
