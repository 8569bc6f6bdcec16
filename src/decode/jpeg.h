/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JPEG codec's inside: one libjpeg-turbo decompress object for the decoder's whole life.
 *
 *	jpeg.c         the object's life, open, limits, the verdict of the end
 *	jpeg-fault.c   libjpeg's errors and warnings, as statuses
 *	jpeg-header.c  what libjpeg does not tell: process, precision, orientation, the end
 *	jpeg-region.c  the hot path
 *	jpeg-colour.c  CMYK
 *
 * Errors leave libjpeg by longjmp to the setjmp of the entry point that was called. Everything
 * that changes after a setjmp is in this struct, reached by pointer; no local is read after a
 * jump, and nothing is allocated between the two but by libjpeg's own pools.
 */
#ifndef DECODE_JPEG_H
#define DECODE_JPEG_H

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

#include "decode/budget.h"
#include "decode/codec.h"
#include "decode/pixels.h"

struct jpeg {
	/* constant after start */
	const struct decode_limits *limits;
	struct jpeg_error_mgr error;
	struct jpeg_source_mgr source;
	struct jpeg_progress_mgr progress;
	void *(*alloc_small)(j_common_ptr info, int pool, size_t size); /* libjpeg's own */

	/* owned by one thread */
	struct jpeg_decompress_struct info;
	bool created;
	jmp_buf jump;        /* valid while an entry point runs */
	struct fault *fault; /* of the entry point that runs */
	bool in_header;      /* errors are the header's */
	const uint8_t *bytes;
	size_t size;
	struct budget budget;
	unsigned int ticks;       /* progress calls of this image */
	bool source_ended;        /* all bytes were given and more were asked */
	uint32_t components_seen; /* bit i: a scan of component i was met */
	struct pixels pixels;
	struct pixels inks; /* a few rows of CMYK on their way to RGB */
};

/* jpeg.c */
void jpeg_reset(struct jpeg *j);        /* ends the image, from any state */
void jpeg_check_budget(struct jpeg *j); /* jumps when it is spent */

/* jpeg-fault.c */
void jpeg_faults_install(struct jpeg *j);
/* Sets the running entry point's fault and ends it. Also for our own limits. */
_Noreturn void jpeg_fail(struct jpeg *j, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* jpeg-header.c: a walk over the segments before the first scan; nothing in them is trusted. */
struct jpeg_header {
	uint8_t process;   /* the SOF marker, 0xc0..0xcf; 0 if there was none */
	uint8_t precision; /* bits a sample */
	uint32_t orientation;
};
void jpeg_header_read(const uint8_t *bytes, size_t size, struct jpeg_header *ret);
/* "lossless (SOF3)", for a process that libjpeg-turbo may not decode; else NULL. */
const char *jpeg_process_name(uint8_t process);
/* Whether the bytes end in EOI, zero and 0xFF padding aside. */
bool jpeg_ends(const uint8_t *bytes, size_t size);

/* jpeg-region.c: decodes the box into j->pixels. Jumps. */
void jpeg_decode_box(struct jpeg *j, const struct box *box, struct region *ret);

/* jpeg-colour.c */
void jpeg_inks_to_rgb(const uint8_t *inks, uint8_t *rgb, size_t count);

#endif
