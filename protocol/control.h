/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket protocol: Unix SOCK_SEQPACKET, one message a packet, at most CONTROL_PACKET_MAX
 * bytes. protocol/control.md explains each message, its errors and the crash points.
 *
 * A packet is a struct control_header and a body. Bodies begin with their own size, only grow at
 * the end, and what the receiver does not know must be zero. Requests carry a serial > 0 that
 * the reply repeats; events carry serial 0. A failed request is answered by CONTROL_ERROR with
 * its serial. Strings are NUL-terminated inside their array, bytes in between are zero.
 */
#ifndef PROTOCOL_CONTROL_H
#define PROTOCOL_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#define CONTROL_MAJOR      1
#define CONTROL_MINOR      0
#define CONTROL_PACKET_MAX 65536
#define CONTROL_FDS_MAX    4
#define CONTROL_TEXT_MAX   1024
#define CONTROL_PATH_MAX   4096
#define CONTROL_JOB_MAX    128
#define CONTROL_NAME_MAX   320 /* lane name: "train:<path tail>:0" */
#define CONTROL_OPS_MAX    16
#define CONTROL_CURSOR_MAX 256

enum control_type {
	/* requests and their replies (reply = request | CONTROL_REPLY) */
	CONTROL_HELLO = 1,
	CONTROL_OPEN_DATASET = 2,
	CONTROL_OPEN_LANE = 3,
	CONTROL_SEEK = 4,
	CONTROL_SET_EPOCH = 5,
	CONTROL_STATS = 6,
	CONTROL_PATHS = 7,
	CONTROL_CLOSE = 8,
	CONTROL_REPLY = 0x100,
	/* daemon → client */
	CONTROL_ERROR = 0x200,     /* serial > 0: that request failed; 0: the lane failed */
	CONTROL_DRAINING = 0x201,  /* the daemon stops; what is published may be read */
	CONTROL_LANE_LOST = 0x202, /* taken over by a newer attach of this rank */
	CONTROL_PROGRESS = 0x203,  /* a dataset is being indexed for request `serial` */
};

struct control_header {
	uint32_t size; /* of the packet */
	uint32_t type; /* enum control_type */
	uint32_t serial;
	uint32_t zero;
};

struct control_error {
	uint32_t size;
	int32_t code;                /* negative errno */
	uint32_t lane;               /* of an event; 0 for a request's failure */
	uint32_t status;             /* enum feeder_status where a sample is the cause */
	uint64_t sample;             /* its id, where status is set */
	char text[CONTROL_TEXT_MAX]; /* one sentence: dataset, file, sample, stage, remedy */
};

struct control_hello {
	uint32_t size;
	uint16_t major;
	uint16_t minor;
	uint64_t features;       /* reserved: 0 */
	uint32_t private_daemon; /* in the reply: 1 if this daemon belongs to a job */
	uint32_t workers;        /* in the reply */
	uint64_t start_ns;       /* in the reply: CLOCK_MONOTONIC when the daemon started */
	char version[32];        /* of the sender: "0.1.0" */
	char program[32];        /* of the client */
};

#define CONTROL_DATASET_HIDDEN      0x1u
#define CONTROL_DATASET_ALLOW_EMPTY 0x2u
#define CONTROL_DATASET_REBUILD     0x4u

/* With the O_PATH descriptor of path; a list file also with that of its directory. */
struct control_open_dataset {
	uint32_t size;
	uint32_t flags;
	char path[CONTROL_PATH_MAX]; /* as the client sees it: quoted in errors */
};

/* Reply; with a memfd of the class names (NUL-terminated, in order) where there are classes. */
struct control_dataset {
	uint32_t size;
	uint32_t dataset; /* handle in this session */
	uint64_t samples;
	uint8_t fingerprint[16];
	uint32_t class_count;
	uint32_t index_used; /* 1: an existing index was loaded */
	char format[16];
};

struct control_progress {
	uint32_t size;
	uint32_t zero;
	uint64_t files;
	uint64_t directories;
};

/* Codes of operations: those of enum transform_operation, and of the augmentation's counter. */
enum control_operation_code {
	CONTROL_OP_RANDOM_RESIZED_CROP = 1,
	CONTROL_OP_RESIZE = 2,
	CONTROL_OP_CENTER_CROP = 3,
	CONTROL_OP_HORIZONTAL_FLIP = 4,
	CONTROL_OP_NORMALIZE = 5,
	CONTROL_OP_DECODE = 6,
};

/* One operation of a lane's pipeline; parameters by operation in control.md. */
struct control_operation {
	uint32_t code;    /* enum control_operation_code */
	uint32_t version; /* 1 */
	union {
		float f[14];
		uint32_t u[14];
	} parameter;
};

/*
 * Parameters, version 1:
 *	DECODE               u[0] apply EXIF orientation (0)
 *	RANDOM_RESIZED_CROP  f[0..1] scale, f[2..3] ratio, u[4] height, u[5] width, u[6] filter
 *	RESIZE               u[0] short side, u[1] filter
 *	CENTER_CROP          u[0] height, u[1] width
 *	HORIZONTAL_FLIP      f[0] probability
 *	NORMALIZE            u[0] dtype, u[1] layout, u[2] 1: mean and std follow, f[3..5], f[6..8]
 */

#define CONTROL_LANE_REOPEN       0x1u /* after the death of daemon or client */
#define CONTROL_LANE_TAKEOVER     0x2u /* a newer attach of a rank wins */
#define CONTROL_LANE_PIXEL_DIGEST 0x4u
#define CONTROL_LANE_PAYLOAD_RW   0x8u

enum control_bad { CONTROL_BAD_FAIL = 1, CONTROL_BAD_MASK = 2, CONTROL_BAD_SUBSTITUTE = 3 };

struct control_open_lane {
	uint32_t size;
	uint32_t dataset; /* handle */
	uint32_t flags;
	uint32_t rank;
	uint32_t world;
	uint32_t part;  /* g of G */
	uint32_t parts; /* G; 0 = 1 */
	uint32_t batch; /* B of the rank */
	uint32_t accumulate;
	uint32_t order; /* enum order_kind */
	uint32_t tail;  /* enum order_tail */
	uint32_t bad;   /* enum control_bad */
	uint64_t seed;
	uint32_t slots;    /* 0: the daemon's default */
	int32_t numa_node; /* -1: none */
	char pci_id[16];   /* "0000:1b:00.0" or "" */
	char job[CONTROL_JOB_MAX];
	char name[CONTROL_NAME_MAX];
	uint32_t cursor_size; /* 0: epoch 0 from its start */
	uint32_t operation_count;
	uint8_t cursor[CONTROL_CURSOR_MAX];
	struct control_operation operations[CONTROL_OPS_MAX];
	uint32_t weight; /* of the job, 0 = 1 */
	uint32_t zero;
	uint64_t max_batches; /* plan no more than this many; 0: no end */
	uint64_t max_epochs;  /* plan to the end of the so manieth epoch; 0: no end */
	uint64_t epoch;       /* where it starts without a cursor */
};

/* Reply, with three descriptors: payload memfd, control memfd, doorbell eventfd. */
struct control_lane {
	uint32_t size;
	uint32_t lane; /* handle in this session */
	uint32_t generation;
	uint32_t zero;
	uint64_t first;       /* number n of the first batch of this generation */
	uint64_t steps;       /* batches from the cursor to the epoch's end */
	uint64_t steps_epoch; /* batches of a whole epoch */
	uint64_t ring_bytes;
	uint32_t moved; /* 1: the cursor was at the end and the lane starts the next epoch */
	uint32_t cursor_size;
	uint8_t cursor[CONTROL_CURSOR_MAX]; /* where the lane stands */
	uint64_t last; /* number of the lane's last batch; 0: they do not end */
};

struct control_seek { /* answered by struct control_lane */
	uint32_t size;
	uint32_t lane;
	uint32_t cursor_size;
	uint32_t zero;
	uint8_t cursor[CONTROL_CURSOR_MAX];
};

/* Answered by struct control_lane. For order `ids`: with a sealed memfd of int64 ids. */
struct control_set_epoch {
	uint32_t size;
	uint32_t lane;
	uint64_t epoch;
	uint64_t ids; /* entries in the memfd */
};

struct control_stats {
	uint32_t size;
	uint32_t zero;
};

/* Reply, with a sealed memfd: protocol/stats.h. */
struct control_stats_reply {
	uint32_t size;
	uint32_t zero;
	uint64_t bytes;
};

#define CONTROL_PATHS_MAX 512

struct control_paths {
	uint32_t size;
	uint32_t dataset;
	uint64_t first;
	uint32_t count; /* at most CONTROL_PATHS_MAX */
	uint32_t zero;
};

/* Reply: then `bytes` bytes of {i64 label, u32 length, path bytes without NUL}, unpadded. */
struct control_paths_reply {
	uint32_t size;  /* of this struct: the records follow it */
	uint32_t count; /* may be fewer than asked: as many as fit */
	uint32_t bytes;
	uint32_t zero;
};

struct control_close {
	uint32_t size;
	uint32_t lane;    /* or 0 */
	uint32_t dataset; /* or 0 */
	uint32_t zero;
};

struct control_lane_lost {
	uint32_t size;
	uint32_t lane;
	char text[CONTROL_TEXT_MAX];
};

/* ---- codec, for both sides ---- */

/*
 * Sends one message without blocking: 0, -EAGAIN when the peer's buffer is full (the daemon then
 * closes the session), other negative errno. tail (may be NULL) follows the body.
 */
int control_send(int fd, uint32_t type, uint32_t serial, const void *body, size_t body_size,
	const void *tail, size_t tail_size, const int *fds, unsigned int fd_count);

struct control_packet {
	struct control_header header;
	size_t body_size;
	int fds[CONTROL_FDS_MAX]; /* close-on-exec; -1 where none. The receiver owns them */
	unsigned int fd_count;
	_Alignas(8) uint8_t body[CONTROL_PACKET_MAX - sizeof(struct control_header)];
};

/*
 * Receives one message: 1 a packet, 0 end of stream, -EAGAIN nothing there, -EPROTO a malformed
 * packet (sizes, zero words), -EMFILE when descriptors were cut off for lack of room (MSG_CTRUNC;
 * those received are closed, header and body are there), other negative errno. flags as recvmsg's.
 */
int control_receive(int fd, struct control_packet *packet, int flags);
void control_packet_close(struct control_packet *packet); /* closes the descriptors left in it */

/*
 * Copies a packet's body into a struct of `size` bytes that begins with its size word: missing
 * bytes are zero, unknown ones must be. 0, -EPROTO, -E2BIG (a newer peer uses what this side does
 * not know). With tail not NULL, what follows the sender's struct is given there.
 */
int control_body(const struct control_packet *packet, void *ret, size_t size,
	const uint8_t **ret_tail, size_t *ret_tail_size);
/* Whether a char array is NUL-terminated and zero behind it. */
int control_string_ok(const char *s, size_t size);

#endif
