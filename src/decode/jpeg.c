/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JPEG codec: open, limits, the verdict of the end.
 *
 * The decompress object outlives images, but nothing of one image may reach the next: libjpeg
 * keeps quantisation and Huffman tables from image to image, so that a file without its own would
 * decode with whatever came before it. Here tables live in the image's own pool and every image
 * starts with none, as in a new object. (A file without Huffman tables then gets the standard
 * ones from libjpeg-turbo.)
 *
 * libjpeg allocates its row buffers anew for each image: 7 malloc calls, 35 kB in all for a usual
 * photo, far below a thousandth of its time and below malloc's mmap threshold, so that once warm
 * they come from the thread's arena without a system call. That is left as it is.
 */
#include "decode/jpeg.h"

#include <errno.h>
#include <jerror.h>
#include <stdlib.h>
#include <string.h>

/*
 * libjpeg's own bound on its whole-image arrays stands behind ours, which is checked before; it
 * counts padding to whole blocks too, which is at most 31 pixels a side.
 */
#define MEMORY_SLACK (64ll << 20)

/* Progress calls between looks at the clock. */
#define TICKS_PER_LOOK 32

static void *alloc_small(j_common_ptr info, int pool, size_t size)
{
	struct jpeg *j = info->client_data;

	/* Once created, all that libjpeg makes permanent are tables. */
	return j->alloc_small(info, j->created ? JPOOL_IMAGE : pool, size);
}

static void source_init(j_decompress_ptr info)
{
	(void)info;
}

/* Only called past the end: an EOI, again and again, so that every cut ends in bounded time. */
static boolean source_fill(j_decompress_ptr info)
{
	static const JOCTET end[2] = { 0xff, JPEG_EOI };
	struct jpeg *j = info->client_data;

	j->source_ended = true;
	info->src->next_input_byte = end;
	info->src->bytes_in_buffer = sizeof(end);
	return TRUE;
}

static void source_skip(j_decompress_ptr info, long count)
{
	if (count <= 0)
		return;
	if ((size_t)count > info->src->bytes_in_buffer) {
		source_fill(info);
		return;
	}
	info->src->next_input_byte += count;
	info->src->bytes_in_buffer -= (size_t)count;
}

static void progress_monitor(j_common_ptr common)
{
	struct jpeg *j = common->client_data;
	const struct jpeg_decompress_struct *info = &j->info;

	if ((uint32_t)info->input_scan_number > j->limits->max_scans)
		jpeg_fail(j, FEEDER_STATUS_TOO_MANY_SCANS, "more than %u scans",
			j->limits->max_scans);
	for (int i = 0; i < info->comps_in_scan; i++)
		j->components_seen |= 1u << info->cur_comp_info[i]->component_index;
	if (++j->ticks % TICKS_PER_LOOK == 0)
		jpeg_check_budget(j);
}

void jpeg_check_budget(struct jpeg *j)
{
	if (budget_spent(&j->budget))
		jpeg_fail(j, FEEDER_STATUS_DECODE_TIMEOUT, "more than %llu ms of CPU time",
			(unsigned long long)(j->limits->max_cpu_ns / NS_PER_MS));
}

void jpeg_reset(struct jpeg *j)
{
	jpeg_abort_decompress(&j->info);
	for (int i = 0; i < NUM_QUANT_TBLS; i++)
		j->info.quant_tbl_ptrs[i] = NULL;
	for (int i = 0; i < NUM_HUFF_TBLS; i++) {
		j->info.dc_huff_tbl_ptrs[i] = NULL;
		j->info.ac_huff_tbl_ptrs[i] = NULL;
	}
}

static void jpeg_destroy_state(void *state)
{
	struct jpeg *j = state;

	if (!j)
		return;
	jpeg_destroy_decompress(&j->info);
	pixels_deinit(&j->pixels);
	pixels_deinit(&j->inks);
	free(j);
}

static int jpeg_create(void **ret, const struct decode_limits *limits)
{
	struct fault fault;
	struct jpeg *j = calloc(1, sizeof(*j));

	if (!j)
		return -ENOMEM;
	j->limits = limits;
	j->fault = &fault;
	j->in_header = true;
	jpeg_faults_install(j);
	j->info.client_data = j; /* kept by jpeg_create_decompress, as err is */
	if (setjmp(j->jump)) {
		/* The library is not the one whose header was compiled in, or memory is out. */
		int r = j->error.msg_code == JERR_OUT_OF_MEMORY ? -ENOMEM : -ENOTSUP;

		jpeg_destroy_state(j);
		return r;
	}
	jpeg_create_decompress(&j->info);
	j->alloc_small = j->info.mem->alloc_small;
	j->info.mem->alloc_small = alloc_small;
	j->created = true;
	j->source.init_source = source_init;
	j->source.fill_input_buffer = source_fill;
	j->source.skip_input_data = source_skip;
	j->source.resync_to_restart = jpeg_resync_to_restart;
	j->source.term_source = source_init;
	j->info.src = &j->source;
	j->progress.progress_monitor = progress_monitor;
	j->info.progress = &j->progress;
	*ret = j;
	return 0;
}

static void check_colour(struct jpeg *j)
{
	switch (j->info.num_components) {
	case 1:
	case 3:
	case 4:
		return;
	default:
		jpeg_fail(j, FEEDER_STATUS_UNSUPPORTED_COLOUR, "%d colour components",
			j->info.num_components);
	}
}

/*
 * Coefficients of the whole picture are kept for several scans: what they take, without padding
 * to whole blocks, so that the largest allowed picture of three full components fits 6 bytes a
 * pixel exactly.
 */
static uint64_t coefficient_bytes(const struct jpeg_decompress_struct *info)
{
	uint64_t samples = 0;

	for (int i = 0; i < info->num_components; i++)
		samples += (uint64_t)info->comp_info[i].downsampled_width *
			   info->comp_info[i].downsampled_height;
	return samples * sizeof(JCOEF);
}

/*
 * Huffman coding takes at least a bit for each block's DC coefficient: a file of a few bytes that
 * claims a huge picture is told before its memory is touched.
 */
static void check_size(struct jpeg *j)
{
	uint64_t blocks = 0;

	if (j->info.arith_code)
		return;
	for (int i = 0; i < j->info.num_components; i++)
		blocks += (uint64_t)j->info.comp_info[i].width_in_blocks *
			  j->info.comp_info[i].height_in_blocks;
	if (blocks / 8 > j->size)
		jpeg_fail(j, FEEDER_STATUS_TRUNCATED,
			"%zu bytes cannot hold the %u x %u pixels of the header", j->size,
			j->info.image_width, j->info.image_height);
}

static void check_limits(struct jpeg *j)
{
	const struct decode_limits *limits = j->limits;
	uint64_t pixels = (uint64_t)j->info.image_width * j->info.image_height;
	uint64_t memory = jpeg_has_multiple_scans(&j->info) ? coefficient_bytes(&j->info) : 0;

	if (pixels > limits->max_pixels)
		jpeg_fail(j, FEEDER_STATUS_TOO_LARGE, "%u x %u pixels, the limit is %llu in all",
			j->info.image_width, j->info.image_height,
			(unsigned long long)limits->max_pixels);
	if (memory > limits->max_memory)
		jpeg_fail(j, FEEDER_STATUS_MEMORY_LIMIT,
			"memory cap: %u x %u pixels in several scans take %llu bytes, the limit is "
			"%llu",
			j->info.image_width, j->info.image_height, (unsigned long long)memory,
			(unsigned long long)limits->max_memory);
	check_size(j);
}

/* Starts the image at its first byte and reads the header. Jumps. */
static void read_header(struct jpeg *j)
{
	j->in_header = true;
	j->source_ended = false;
	j->components_seen = 0;
	j->ticks = 0;
	j->source.next_input_byte = j->bytes;
	j->source.bytes_in_buffer = j->size;
	/* Also undoes what the environment's JPEGMEM asks. */
	j->info.mem->max_memory_to_use = (long)j->limits->max_memory + MEMORY_SLACK;
	jpeg_read_header(&j->info, TRUE);
	for (int i = 0; i < j->info.comps_in_scan; i++)
		j->components_seen |= 1u << j->info.cur_comp_info[i]->component_index;
	j->in_header = false;
}

/* Processes that no libjpeg-turbo, or only a later one without regions, decodes. */
static int check_process(const struct jpeg_header *h, struct fault *fault)
{
	const char *name = jpeg_process_name(h->process);

	if (name)
		return fault_set(fault, FEEDER_STATUS_UNSUPPORTED_PROCESS, 0,
			"%s JPEG, %u bits a sample", name, h->precision);
	if (h->process != 0 && h->precision != 8)
		return fault_set(fault, FEEDER_STATUS_UNSUPPORTED_PROCESS, 0,
			"%u bits a sample (SOF%u), only 8 are decoded", h->precision,
			h->process - 0xc0u);
	return 0;
}

static int jpeg_open(
	void *state, const uint8_t *bytes, size_t size, struct image_info *ret, struct fault *fault)
{
	struct jpeg *j = state;
	struct jpeg_header header;
	int r;

	if (size >= 3 && bytes[2] != 0xff)
		return fault_set(fault, FEEDER_STATUS_BAD_HEADER, 0,
			"%02x and no marker follows the start of image", bytes[2]);
	jpeg_header_read(bytes, size, &header);
	r = check_process(&header, fault);
	if (r != 0)
		return r;
	j->bytes = bytes;
	j->size = size;
	j->fault = fault;
	budget_start(&j->budget, j->limits->max_cpu_ns);
	if (setjmp(j->jump)) {
		jpeg_reset(j);
		return j->fault->status;
	}
	read_header(j);
	check_colour(j);
	check_limits(j);
	*ret = (struct image_info){
		.width = j->info.image_width,
		.height = j->info.image_height,
		.orientation = header.orientation,
		.complete = jpeg_ends(bytes, size),
		.progressive = j->info.progressive_mode,
		.codec = codec_jpeg.name,
	};
	return 0;
}

/*
 * The last row's first pixel takes all entropy-coded data to decode, and hardly anything else.
 */
static int jpeg_check_end(void *state, struct fault *fault)
{
	struct jpeg *j = state;
	const struct box last = { 0, j->info.image_height - 1, 1, 1 };
	struct region region;

	j->fault = fault;
	fault->status = FEEDER_STATUS_OK;
	if (!setjmp(j->jump))
		jpeg_decode_box(j, &last, &region);
	jpeg_reset(j);
	if (setjmp(j->jump)) {
		jpeg_reset(j);
		return j->fault->status;
	}
	read_header(j);
	return j->fault->status;
}

static int jpeg_region(void *state, const struct box *box, struct region *ret, struct fault *fault)
{
	struct jpeg *j = state;

	j->fault = fault;
	if (setjmp(j->jump)) {
		jpeg_reset(j);
		return j->fault->status;
	}
	jpeg_decode_box(j, box, ret);
	jpeg_reset(j);
	return 0;
}

static void jpeg_close(void *state)
{
	struct jpeg *j = state;

	jpeg_reset(j);
	pixels_trim(&j->pixels);
	pixels_trim(&j->inks);
}

const struct codec codec_jpeg = {
	.name = "jpeg",
	.create = jpeg_create,
	.destroy = jpeg_destroy_state,
	.open = jpeg_open,
	.check_end = jpeg_check_end,
	.region = jpeg_region,
	.close = jpeg_close,
};
