/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feeder: batches of decoded images out of a daemon's shared ring.
 *
 *	struct feeder *f;
 *	struct feeder_lane *lane;
 *	struct feeder_lane_config config;
 *	struct feeder_batch batch = { .size = sizeof(batch) };
 *
 *	feeder_connect(&f, NULL);
 *	feeder_lane_config_init(&config);
 *	config.batch_size = 256;
 *	feeder_lane_open(&lane, f, "/data/train", &config);
 *	while (feeder_next(lane, &batch, -1) == 0) {
 *		… batch.images, batch.labels …
 *		feeder_release(lane, batch.number);
 *	}
 *
 * ERRORS. Functions return 0 or more, or a negative errno. feeder_last_error() gives the calling
 * thread's last error as one sentence that names dataset, file, sample and stage, and the remedy.
 * THREADS. A struct feeder and its lanes may be used by one thread at a time; different
 * connections are independent. feeder_last_error() is per thread.
 * FORK. After fork() the child's handles are dead: calls give -ECHILD. The ring is not mapped
 * there.
 * SIGNALS. Waiting calls return -EINTR when a signal handler ran; calling again goes on.
 * UNITS. Times are nanoseconds of CLOCK_MONOTONIC, time-outs milliseconds, sizes bytes.
 * VERSIONS. Structs carry their size: set it with the initialiser or by hand, and new members
 * are only ever added at the end.
 */
#ifndef FEEDER_FEEDER_H
#define FEEDER_FEEDER_H

#include <stddef.h>
#include <stdint.h>

#include <feeder/status.h>
#include <feeder/version.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FEEDER_API __attribute__((visibility("default")))
#else
#define FEEDER_API
#endif

struct feeder;
struct feeder_lane;

/* The version of the library, "0.1.0". */
FEEDER_API const char *feeder_version(void);
/*
 * The calling thread's last error, one sentence; "" if there was none. Valid until its next call.
 */
FEEDER_API const char *feeder_last_error(void);
/* The sentence of a place's status ("the image data ends early"). */
FEEDER_API const char *feeder_status_text(int status);

/* ---- connection ---- */

struct feeder_connect_options {
	size_t size;
	const char *socket; /* NULL: FEEDER_SOCKET, /run/feeder/feeder.sock, a private daemon */
	const char *job;    /* NULL: FEEDER_JOB, Slurm's job.step, MASTER_ADDR:PORT, this process */
	const char *program; /* name shown by feeder-stat; NULL: the process's */
	int timeout_ms; /* wait for the socket named by argument or FEEDER_SOCKET; default 30000 */
	unsigned int workers; /* of a private daemon started by this call; 0: its default */
	const char *const
		*set; /* NULL-terminated KEY=VALUE for a private daemon started by this call */
	const char
		*daemon_path; /* feederd of a private daemon; NULL: beside libfeeder, then PATH */
	unsigned int fresh;   /* 1: a private daemon of this connection's own, never a shared one */
	/* called with one line when a fallback is taken (system socket refused); NULL: stderr */
	void (*notice)(void *context, const char *line);
	void *context;
};

FEEDER_API void feeder_connect_options_init(struct feeder_connect_options *options);

/*
 * Connects to the daemon. A socket named by argument or FEEDER_SOCKET is waited for (while absent
 * or refusing) up to the time-out and never replaced by another; else the system's socket; else
 * the private daemon of (uid, job, CPU mask), started if need be.
 * -ETIMEDOUT, -EACCES, -ECONNREFUSED, -EPROTO (version), -ENOENT (no feederd), -ENOMEM.
 */
FEEDER_API int feeder_connect(struct feeder **ret, const struct feeder_connect_options *options);
/* Closes all lanes and the connection. NULL is fine. Batches' memory is unmapped. */
FEEDER_API void feeder_disconnect(struct feeder *f);
/* The job this connection belongs to, and whether its daemon is private. */
FEEDER_API const char *feeder_job(const struct feeder *f);
FEEDER_API int feeder_is_private(const struct feeder *f);
FEEDER_API const char *feeder_socket_path(const struct feeder *f);
/* The socket, for poll() in an event loop: readable or hung up when an event waits. */
FEEDER_API int feeder_fd(const struct feeder *f);

/* ---- lanes ---- */

/* Numbers are those of the protocol. */
enum feeder_order {
	FEEDER_ORDER_TORCH = 1,
	FEEDER_ORDER_FEISTEL = 2,
	FEEDER_ORDER_SEQUENTIAL = 3,
	FEEDER_ORDER_DATALOADER = 5,
	FEEDER_ORDER_IDS = 6,
};
enum feeder_tail { FEEDER_TAIL_PAD = 1, FEEDER_TAIL_DROP = 2, FEEDER_TAIL_MASK = 3 };
enum feeder_bad { FEEDER_BAD_FAIL = 1, FEEDER_BAD_MASK = 2, FEEDER_BAD_SUBSTITUTE = 3 };
enum feeder_filter { FEEDER_BILINEAR = 1, FEEDER_BICUBIC = 2 };
enum feeder_dtype {
	FEEDER_UINT8 = 1,
	FEEDER_FLOAT32 = 2,
	FEEDER_FLOAT16 = 3,
	FEEDER_BFLOAT16 = 4,
	FEEDER_INT64 = 5,
	FEEDER_INT32 = 6,
};
enum feeder_layout { FEEDER_NHWC = 1, FEEDER_NCHW = 2 };

struct feeder_lane_config {
	size_t size;
	unsigned int train; /* 1: RandomResizedCrop + flip; 0: Resize + CenterCrop */
	unsigned int batch_size;
	unsigned int rank;
	unsigned int world_size;
	unsigned int part; /* of a replicate group: places [part·B/parts, (part + 1)·B/parts) */
	unsigned int parts;
	unsigned int accumulate;
	unsigned int order; /* 0: torch when training, else sequential */
	unsigned int tail;  /* default pad */
	unsigned int bad;   /* 0: substitute when training, else mask */
	uint64_t seed;
	unsigned int height; /* of the output, pixels; default 224 */
	unsigned int width;
	unsigned int resize;    /* evaluation: short side; 0: round(min(height, width) / 0.875) */
	float scale[2];         /* RandomResizedCrop: area range; default .08, 1 */
	float ratio[2];         /* aspect range; default 3/4, 4/3 */
	float hflip;            /* probability; default .5 */
	unsigned int filter;    /* default bilinear */
	unsigned int dtype;     /* default uint8 */
	unsigned int layout;    /* default NHWC */
	unsigned int normalize; /* 1: (x/255 - mean) / std, for float dtypes */
	float mean[3];
	float std[3];
	unsigned int apply_orientation; /* EXIF; default 0, as torchvision */
	unsigned int pixel_digest;      /* 1: batches carry a pixel digest (costs some CPU) */
	unsigned int slots;             /* of the ring; 0: the daemon's default (4) */
	unsigned int hidden;            /* dataset: count hidden names */
	unsigned int allow_empty;       /* dataset: classes without a sample */
	unsigned int rebuild;           /* dataset: ignore an existing index */
	unsigned int reopen;            /* after the death of daemon or client */
	unsigned int takeover;          /* replace an earlier attach of this rank */
	const char
		*lane_name; /* NULL: train or eval, dataset path, lowest number not in use here */
	const void *cursor; /* start here; NULL: epoch 0 */
	size_t cursor_size;
	unsigned int epoch;  /* start epoch where no cursor is given */
	unsigned int weight; /* of the job in the daemon's scheduling; 0 = 1 */
	int numa_node;       /* of the device that the ring feeds; -1: none */
	int timeout_ms; /* for opening, indexing included while it progresses; default 120000 */
	/* called about once a second while the dataset is being indexed; may be NULL */
	void (*progress)(void *context, uint64_t files, uint64_t directories);
	void *context;
	uint64_t max_batches; /* prepare no more than this many batches; 0: without end */
	uint64_t max_epochs;  /* prepare this epoch and so many less one; 0: epochs without end */
};

FEEDER_API void feeder_lane_config_init(struct feeder_lane_config *config); /* training defaults */

/*
 * Opens a lane over a dataset (a folder of class folders, a flat folder, a list file). The path
 * is the caller's: the daemon works on the descriptor that is sent with it.
 * -ENOENT, -EACCES, -EINVAL, -EBUSY (the rank is attached already), -ESTALE (the cursor is of
 * another dataset), -EEXIST (the ranks of this lane disagree), -ENOMEM, -ENOSPC (quota), …
 */
FEEDER_API int feeder_lane_open(struct feeder_lane **ret, struct feeder *f, const char *path,
	const struct feeder_lane_config *config);
FEEDER_API void feeder_lane_close(struct feeder_lane *lane);

struct feeder_lane_info {
	size_t size;
	uint64_t samples; /* of the dataset, N */
	uint8_t fingerprint[16];
	uint32_t class_count;
	uint32_t capacity; /* places of a batch of this lane */
	uint32_t slots;
	uint64_t steps; /* batches from where the lane was opened (or sought) to the epoch's end */
	uint64_t steps_epoch; /* batches of a whole epoch */
	uint64_t ring_bytes;
	uint64_t image_bytes; /* of one place of `images` */
	const char *name;     /* lane name; lives as long as the lane */
	const char *format;   /* "folder", "list" */
	uint32_t index_used;  /* 1: the dataset's index was already there */
	uint32_t moved;       /* 1: the cursor was at its epoch's end: the next epoch was started */
	uint64_t lane;        /* the lane's number in its daemon, as feeder-stat shows it */
};

FEEDER_API int feeder_lane_info(struct feeder_lane *lane, struct feeder_lane_info *ret);
/* NULL if there is no class i. Lives as long as the lane. */
FEEDER_API const char *feeder_class_name(struct feeder_lane *lane, uint32_t i);
/* Path of a sample relative to the dataset; its length, -ERANGE (size too small), -ENOENT. */
FEEDER_API int feeder_sample_path(struct feeder_lane *lane, uint64_t id, char *ret, size_t size);
/* Its label. Walking the ids in order costs one request for every few hundred. -ENOENT. */
FEEDER_API int feeder_sample_label(struct feeder_lane *lane, uint64_t id, int64_t *ret);

/* ---- batches ---- */

/* What one place holds. */
struct feeder_place {
	uint64_t id_asked;
	uint64_t id;       /* delivered */
	uint64_t position; /* p of the epoch's order */
	int64_t label;
	uint32_t valid;                      /* 0: masked or past the end: zeros, label -100 */
	uint32_t status;                     /* of the asked id, enum feeder_status; 0 = good */
	uint32_t box_x, box_y, box_w, box_h; /* crop in the source image, pixels */
	uint32_t flip;
	uint32_t source_w, source_h;
	uint32_t substitute; /* 0: the asked id, else number of the substitute */
};

struct feeder_batch {
	size_t size;
	uint64_t number; /* n, running for the lane's life: give it to feeder_release */
	uint32_t generation;
	uint32_t count; /* places to use: the arrays are `capacity` long */
	uint32_t capacity;
	uint32_t last_of_epoch;
	uint64_t epoch;
	uint64_t step; /* from the lane's opening, seek or set epoch; 0 at each epoch's start */
	uint64_t batches_left; /* in this epoch, after this one */
	const void *images;    /* inside the ring, read-only, until feeder_release */
	uint64_t images_bytes; /* of all `capacity` places */
	uint64_t image_stride; /* bytes from place to place */
	const int64_t *labels; /* capacity entries */
	uint32_t bad_count;
	uint32_t dtype;
	uint64_t order_digest; /* of this batch */
	uint64_t pixel_digest;
	uint64_t read_ns;  /* the first sample's read began */
	uint64_t ready_ns; /* the last sample landed in the slot */
	uint64_t published_ns;
	uint64_t wait_ns; /* time that this feeder_next call waited */
};

/*
 * The next batch, in order, waiting up to timeout_ms (-1: the lane's time-out with no progress;
 * 0: do not wait). 0; -EAGAIN (not ready in time); -ETIMEDOUT (the waits since the last batch, of
 * this and earlier calls, add up to the lane's time-out: the sentence says what the daemon was
 * doing, and counting starts again); -EINTR; -EDEADLK (the next batch's slot is held by the
 * caller: release it first); -ENODATA (max_batches or max_epochs were delivered; else epochs
 * follow one another without end: watch last_of_epoch); -EPIPE (the daemon died or drained and
 * all batches are read); -EBADMSG (bad sample under `fail`, or the budget is spent); -ESTALE (the
 * lane was taken over); -ECHILD.
 */
FEEDER_API int feeder_next(struct feeder_lane *lane, struct feeder_batch *ret, int timeout_ms);
/* Gives a batch back; its memory may change at once. Any order. -EINVAL: not held. */
FEEDER_API int feeder_release(struct feeder_lane *lane, uint64_t number);
/* Place i < capacity of a batch that is held. -EINVAL. */
FEEDER_API int feeder_batch_place(
	struct feeder_lane *lane, uint64_t number, uint32_t i, struct feeder_place *ret);
/* A field of a held batch by name. -ENOENT. */
FEEDER_API int feeder_batch_field(struct feeder_lane *lane, uint64_t number, const char *name,
	const void **ret_data, uint64_t *ret_bytes);

/* ---- position ---- */

#define FEEDER_CURSOR_MAX 256

/*
 * The cursor after the last batch that feeder_next returned (or where the lane stands): the bytes
 * to put into a checkpoint, the same on every rank. Its length, or -ERANGE.
 */
FEEDER_API int feeder_cursor(struct feeder_lane *lane, void *ret, size_t size);
/* Continues at a cursor; prefetched batches are dropped, held ones stay valid until released. */
FEEDER_API int feeder_seek(struct feeder_lane *lane, const void *cursor, size_t size);
/* Starts an epoch from its beginning. Free when the lane stands there already. */
FEEDER_API int feeder_set_epoch(struct feeder_lane *lane, uint64_t epoch);
/* The same for order `ids`: one epoch's ids. */
FEEDER_API int feeder_set_epoch_ids(
	struct feeder_lane *lane, uint64_t epoch, const int64_t *ids, uint64_t count);

/* Sums over the batches that feeder_next returned since the lane was opened. */
FEEDER_API uint64_t feeder_order_digest(const struct feeder_lane *lane);
FEEDER_API uint64_t feeder_pixel_digest(const struct feeder_lane *lane);

/* ---- statistics ---- */

/*
 * A snapshot of the daemon's statistics (protocol/stats.h) of what this uid may see, as a sealed
 * memfd descriptor, the caller's to close.
 */
FEEDER_API int feeder_stats(struct feeder *f, int *ret_fd);

#ifdef __cplusplus
}
#endif

#endif
