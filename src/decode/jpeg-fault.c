/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libjpeg's errors and warnings, as statuses.
 *
 * Errors jump. Of the warnings those that mean lost data jump too, at once: their sample is bad
 * whatever follows, and a decode that goes on would only make up pixels. They are HIT_MARKER,
 * HUFF_BAD_CODE, MUST_RESYNC and the arithmetic decoder's bad code. All other warnings (surplus
 * data, odd Adobe or JFIF versions, a missing EOI) are silent: other decoders take such files.
 */
#include "decode/jpeg.h"

#include <jerror.h>
#include <stdarg.h>
#include <string.h>

_Noreturn void jpeg_fail(struct jpeg *j, int status, const char *format, ...)
{
	char text[FAULT_TEXT_MAX];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	fault_set(j->fault, status, 0, "%s", text);
	longjmp(j->jump, 1);
}

/* What libjpeg's message stands for; -1 where the place of the error decides. */
static int error_status(const struct jpeg *j, int code)
{
	switch (code) {
	case JERR_IMAGE_TOO_BIG:
	case JERR_WIDTH_OVERFLOW:
		return FEEDER_STATUS_TOO_LARGE;
	case JERR_EMPTY_IMAGE:
		return j->info.image_height == 0 ? FEEDER_STATUS_HEIGHT_ZERO : -1;
	case JERR_SOF_UNSUPPORTED:
	case JERR_BAD_PRECISION:
#if JPEG_LIB_VERSION < 70 /* later ABIs have no such message */
	case JERR_ARITH_NOTIMPL:
#endif
	case JERR_NOTIMPL:
	case JERR_NOT_COMPILED:
	case JERR_FRACT_SAMPLE_NOTIMPL:
	case JERR_CCIR601_NOTIMPL:
		return FEEDER_STATUS_UNSUPPORTED_PROCESS;
	case JERR_COMPONENT_COUNT:
	case JERR_CONVERSION_NOTIMPL:
	case JERR_BAD_J_COLORSPACE:
		return FEEDER_STATUS_UNSUPPORTED_COLOUR;
	case JERR_NO_BACKING_STORE:
	case JERR_OUT_OF_MEMORY:
		return FEEDER_STATUS_MEMORY_LIMIT;
	default:
		return -1;
	}
}

static void error_exit(j_common_ptr info)
{
	struct jpeg *j = info->client_data;
	char text[JMSG_LENGTH_MAX];
	int status = error_status(j, j->error.msg_code);

	j->error.format_message(info, text);
	/* Past the end the header's numbers are our source's EOI bytes: whatever they break. */
	if (j->source_ended && status != FEEDER_STATUS_MEMORY_LIMIT)
		status = FEEDER_STATUS_TRUNCATED;
	if (status < 0)
		status = j->in_header ? FEEDER_STATUS_BAD_HEADER : FEEDER_STATUS_DAMAGED;
	if (status == FEEDER_STATUS_TRUNCATED)
		jpeg_fail(j, status, "ends after %zu bytes: %.120s", j->size, text);
	if (status == FEEDER_STATUS_MEMORY_LIMIT)
		jpeg_fail(j, status, "memory cap of %llu bytes: %.80s",
			(unsigned long long)j->limits->max_memory, text);
	jpeg_fail(j, status, "%.150s", text);
}

/* Where the input stands, as near as libjpeg tells without cost. */
static unsigned int row_reached(const struct jpeg *j)
{
	unsigned int row = j->info.input_iMCU_row * 8u * (unsigned int)j->info.max_v_samp_factor;

	return row < j->info.image_height ? row : j->info.image_height;
}

/* Data ran out at EOI: the file's own, or the one that our source puts behind its end. */
static bool ran_out(const struct jpeg *j, int code)
{
	if (code == JWRN_ARITH_BAD_CODE)
		return j->source_ended;
	return code != JWRN_HUFF_BAD_CODE && j->info.unread_marker == JPEG_EOI;
}

static _Noreturn void fail_by_warning(struct jpeg *j, int code)
{
	char text[JMSG_LENGTH_MAX];

	if (ran_out(j, code))
		jpeg_fail(j, FEEDER_STATUS_TRUNCATED,
			"image data ends early, near row %u of %u of scan %d", row_reached(j),
			j->info.image_height, j->info.input_scan_number);
	j->error.format_message((j_common_ptr)&j->info, text);
	jpeg_fail(j, FEEDER_STATUS_DAMAGED, "near row %u of %u of scan %d: %.80s", row_reached(j),
		j->info.image_height, j->info.input_scan_number, text);
}

static void emit_message(j_common_ptr info, int level)
{
	struct jpeg *j = info->client_data;

	if (level >= 0)
		return; /* a trace */
	switch (j->error.msg_code) {
	case JWRN_HIT_MARKER:
	case JWRN_HUFF_BAD_CODE:
	case JWRN_MUST_RESYNC:
	case JWRN_ARITH_BAD_CODE:
		fail_by_warning(j, j->error.msg_code);
	default:
		return;
	}
}

static void output_message(j_common_ptr info)
{
	(void)info; /* the default prints on stderr */
}

void jpeg_faults_install(struct jpeg *j)
{
	j->info.err = jpeg_std_error(&j->error);
	j->error.error_exit = error_exit;
	j->error.emit_message = emit_message;
	j->error.output_message = output_message;
}
