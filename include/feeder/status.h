/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feeder: what can be wrong with one sample.
 *
 * These numbers stand in ring descriptors, in the index's verdicts and in statistics; they are
 * never renumbered. FEEDER_STATUS_LIST(X) calls X(NAME, number, "word", "sentence") for each.
 * A status is a case, never the end of a run: what happens to the place is the lane's bad-sample
 * policy.
 */
#ifndef FEEDER_STATUS_H
#define FEEDER_STATUS_H

#define FEEDER_STATUS_LIST(X)                                                                 \
	X(OK, 0, "ok", "delivered")                                                           \
	X(EMPTY, 1, "empty", "the file is empty")                                             \
	X(MISSING, 2, "missing", "the file is not there")                                     \
	X(NOT_REGULAR, 3, "not-regular", "not a regular file")                                \
	X(NO_PERMISSION, 4, "no-permission", "the daemon may not read the file")              \
	X(OUTSIDE_ROOT, 5, "outside-root", "the link leads out of every root")                \
	X(READ_ERROR, 6, "read-error", "reading failed")                                      \
	X(READ_TIMEOUT, 7, "read-timeout", "reading took longer than its deadline")           \
	X(CHANGED, 8, "changed", "the file is not the one that was indexed")                  \
	X(SHORT_FILE, 9, "short-file", "the file ended before the sample did")                \
	X(UNKNOWN_FORMAT, 10, "unknown-format", "no known image format")                      \
	X(OTHER_FORMAT, 11, "other-format", "an image format that feeder does not decode")    \
	X(LFS_POINTER, 12, "lfs-pointer", "a Git LFS pointer and not the file itself")        \
	X(TRUNCATED, 13, "truncated", "the image data ends early")                            \
	X(DAMAGED, 14, "damaged", "the image data is damaged")                                \
	X(BAD_HEADER, 15, "bad-header", "the image header is damaged")                        \
	X(TOO_LARGE, 16, "too-large", "more pixels than the limit")                           \
	X(TOO_MANY_SCANS, 17, "too-many-scans", "more progressive scans than the limit")      \
	X(MEMORY_LIMIT, 18, "memory-limit", "decoding needs more memory than the limit")      \
	X(UNSUPPORTED_PROCESS, 19, "unsupported-process",                                     \
		"a coding process (arithmetic, lossless, 12 bit) that is not decoded")        \
	X(UNSUPPORTED_COLOUR, 20, "unsupported-colour", "a colour model that is not decoded") \
	X(HEIGHT_ZERO, 21, "height-zero", "the header gives no height")                       \
	X(DECODE_TIMEOUT, 22, "decode-timeout", "decoding took longer than its limit")        \
	X(BAD_ID, 23, "bad-id", "the id is not in the dataset")                               \
	X(INTERNAL, 24, "internal", "a fault of feeder itself")

enum feeder_status {
#define FEEDER_STATUS_ENUM(name, number, word, sentence) FEEDER_STATUS_##name = number,
	FEEDER_STATUS_LIST(FEEDER_STATUS_ENUM)
#undef FEEDER_STATUS_ENUM
		FEEDER_STATUS_COUNT
};

#endif
