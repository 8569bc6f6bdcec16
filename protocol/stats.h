/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statistics segment: a sealed memfd that answers CONTROL_STATS, a snapshot of what the asking
 * uid may see. Every counter is declared once, in the lists below, with name, unit, kind, one line
 * and a paragraph; feeder-stat's tables, JSON, OpenMetrics and the man page come from them.
 *
 * X(name, unit, kind, line, paragraph). kind: COUNTER only rises, GAUGE goes both ways.
 */
#ifndef PROTOCOL_STATS_H
#define PROTOCOL_STATS_H

#include <stdint.h>

#include "protocol/control.h"

#define STATS_MAGIC 0x535441545344ull /* "DSTATS" */
#define STATS_MAJOR 1
#define STATS_MINOR 0

#define STATS_DAEMON_LIST(X)                                                                      \
	X(uptime, "seconds_ns", GAUGE, "time since the daemon started",                           \
		"Nanoseconds of CLOCK_MONOTONIC since feederd began to serve.")                   \
	X(workers, "threads", GAUGE, "decode worker threads",                                     \
		"Persistent worker threads, from the CPUs allowed and --workers.")                \
	X(worker_cpu, "ns", COUNTER, "CPU time of the workers",                                   \
		"Thread CPU time of all workers together, decode, transform and overhead.")       \
	X(worker_idle, "ns", COUNTER, "time that workers waited for work",                        \
		"Wall time in which workers slept because no sample could be decoded.")           \
	X(reader_cpu, "ns", COUNTER, "CPU time of the readers",                                   \
		"Thread CPU time of all reader threads together.")                                \
	X(process_cpu, "ns", COUNTER, "CPU time of the daemon",                                   \
		"CPU time of all threads of the process.")                                        \
	X(reads, "reads", COUNTER, "reads completed", "Extents read, good or not.")               \
	X(read_bytes, "bytes", COUNTER, "bytes read", "Bytes of samples that were read.")         \
	X(short_reads, "reads", COUNTER, "reads that came back short and went on",                \
		"Completions with fewer bytes than asked, continued by the reader.")              \
	X(read_retries, "reads", COUNTER, "reads tried again after an error",                     \
		"Attempts repeated after EIO, ESTALE, ENFILE, EMFILE or ETIMEDOUT.")              \
	X(read_timeouts, "reads", COUNTER, "reads past their deadline",                           \
		"Reads given up after the deadline; their samples are bad.")                      \
	X(reads_in_flight, "reads", GAUGE, "reads in flight", "Requests in the reader now.")      \
	X(readahead_bytes, "bytes", GAUGE, "encoded bytes held",                                  \
		"Budgeted read-ahead memory in use now.")                                         \
	X(readahead_peak, "bytes", GAUGE, "most encoded bytes ever held",                         \
		"Peak of read-ahead memory, in use and idle.")                                    \
	X(readahead_budget, "bytes", GAUGE, "the byte budget of the read-ahead",                  \
		"The configured limit that readahead_bytes stays within.")                        \
	X(ring_bytes, "bytes", GAUGE, "memory of rings",                                          \
		"Payload memory of all lanes, closed ones included while a process still maps "   \
		"it.")                                                                            \
	X(sessions, "sessions", GAUGE, "client connections", "Sessions open now.")                \
	X(lanes, "lanes", GAUGE, "lanes", "Lanes open now.")                                      \
	X(refused, "requests", COUNTER, "requests refused",                                       \
		"Requests answered by an error, whatever the reason.")                            \
	X(protocol_errors, "packets", COUNTER, "malformed packets",                               \
		"Packets that closed their session.")                                             \
	X(cpus, "cpus", GAUGE, "CPUs that the daemon may use",                                    \
		"The smaller of its affinity mask's width and its cgroup's quota, rounded up.")   \
	X(repinned, "threads", COUNTER, "workers whose CPU mask was changed from outside",        \
		"Workers look at their mask now and then, and set it again when it was changed.") \
	X(throttled, "ns", COUNTER, "CPU quota throttling",                                       \
		"Time for which the cgroup's CPU quota stopped the daemon.")

#define STATS_LANE_LIST(X)                                                                       \
	X(batches, "batches", COUNTER, "batches published", "Batches published into the ring.")  \
	X(samples, "samples", COUNTER, "places delivered", "Places of published batches.")       \
	X(bad_samples, "samples", COUNTER, "places whose asked id was bad",                      \
		"Counted once each, whatever the policy did with the place.")                    \
	X(substituted, "samples", COUNTER, "places filled by a substitute",                      \
		"Places whose id delivered is not the id asked.")                                \
	X(masked, "samples", COUNTER, "places masked for being bad",                             \
		"Blank places of bad samples; places past the end are not counted.")             \
	X(encoded_bytes, "bytes", COUNTER, "encoded bytes decoded", "Bytes of samples decoded.") \
	X(open_time, "ns", COUNTER, "time in open", "Sum over samples: taken up to opened.")     \
	X(read_time, "ns", COUNTER, "time in read", "Sum over samples: opened to read.")         \
	X(decode_cpu, "ns", COUNTER, "CPU time of decoding",                                     \
		"Thread CPU time from header to region, entropy decoding included.")             \
	X(transform_cpu, "ns", COUNTER, "CPU time of resize and store",                          \
		"Thread CPU time of resize, flip, layout, dtype and digest.")                    \
	X(wait_order, "ns", COUNTER, "consumer waits: permutation",                              \
		"Time that the consumer waited while the epoch's order was computed.")           \
	X(wait_read, "ns", COUNTER, "consumer waits: reading",                                   \
		"Time that the consumer waited while bytes of the next batch were being read.")  \
	X(wait_decode, "ns", COUNTER, "consumer waits: decoding",                                \
		"Time that the consumer waited for decoding: CPU is the limit.")                 \
	X(wait_transform, "ns", COUNTER, "consumer waits: transforming",                         \
		"Likewise for resize and store: the part of the CPU time that is theirs.")       \
	X(ring_full, "ns", COUNTER, "time with every slot ready",                                \
		"Time in which no slot was free: the consumer is the limit.")                    \
	X(consumer_wait, "ns", COUNTER, "time in next(), by the client",                         \
		"The client's own count of the time it waited. Shown, never acted on.")          \
	X(consumed, "batches", COUNTER, "batches consumed, by the client",                       \
		"The client's own count of batches that next() returned.")                       \
	X(copied_bytes, "bytes", COUNTER, "bytes copied to the device, by the client",           \
		"H2D copies of this lane, counted by the client.")                               \
	X(copy_time, "ns", COUNTER, "time of copies to the device, by the client",               \
		"Time on the copy stream, measured by events.")                                  \
	X(order_digest, "digest", GAUGE, "order digest of what was published",                   \
		"Sum mod 2^64 over published places since the lane was opened.")                 \
	X(pixel_digest, "digest", GAUGE, "pixel digest of what was published",                   \
		"Likewise, with pixels and labels; 0 unless the lane asked for it.")             \
	X(epoch, "epoch", GAUGE, "epoch of the newest batch", "Epoch of the newest batch.")      \
	X(step, "step", GAUGE, "step of the newest batch", "Step of the newest batch.")          \
	X(position, "positions", GAUGE, "c of the newest cursor",                                \
		"Positions of the epoch consumed after the newest batch.")                       \
	X(steps_epoch, "steps", GAUGE, "batches of a whole epoch",                               \
		"Batches of this rank in a whole epoch.")                                        \
	X(slots, "slots", GAUGE, "slots of the ring", "Slots of the ring.")                      \
	X(ready, "slots", GAUGE, "slots published and not released",                             \
		"Batches that the consumer holds or could take at once.")                        \
	X(ring_bytes, "bytes", GAUGE, "memory of the ring", "Payload memory of this lane.")      \
	X(opened, "ns", GAUGE, "time since the lane was opened", "Nanoseconds.")                 \
	X(opened_cpu, "ns", GAUGE, "CPU time of the daemon when the lane was opened",            \
		"process_cpu just before the lane's first ticket: what comes after it is the "   \
		"lane's.")                                                                       \
	X(first_batch, "ns", GAUGE, "from open lane to the first batch published",               \
		"Nanoseconds; 0 until then.")

enum stats_kind { STATS_COUNTER, STATS_GAUGE };

enum stats_daemon {
#define STATS_ENUM(name, unit, kind, line, paragraph) STATS_DAEMON_##name,
	STATS_DAEMON_LIST(STATS_ENUM)
#undef STATS_ENUM
		STATS_DAEMON_COUNT
};

enum stats_lane {
#define STATS_ENUM(name, unit, kind, line, paragraph) STATS_LANE_##name,
	STATS_LANE_LIST(STATS_ENUM)
#undef STATS_ENUM
		STATS_LANE_COUNT
};

struct stats_counter {
	const char *name;
	const char *unit;
	enum stats_kind kind;
	const char *line;
	const char *paragraph;
};

extern const struct stats_counter stats_daemon_counters[STATS_DAEMON_COUNT];
extern const struct stats_counter stats_lane_counters[STATS_LANE_COUNT];

/* Segment: header, then daemon counters, lane records and cases at the offsets given. */
struct stats_header {
	uint64_t magic;
	uint16_t major;
	uint16_t minor;
	uint32_t header_size;
	uint64_t total_size;
	uint64_t snapshot_ns; /* CLOCK_MONOTONIC */
	uint32_t daemon_offset;
	uint32_t daemon_count; /* u64 counters, in list order; more = a newer daemon */
	uint32_t lane_offset;
	uint32_t lane_count;
	uint32_t lane_size; /* bytes of one struct stats_lane_record */
	uint32_t case_offset;
	uint32_t case_count;
	uint32_t case_size;
	uint32_t pid;
	uint32_t private_daemon;
	char version[32];
	char reader[32];       /* "io_uring", "pread" */
	char reader_note[256]; /* why not io_uring, where it is not */
	char codec[64];        /* "libjpeg-turbo 2.1.5" */
	char simd[32];         /* resize variant */
	char entropy[32];      /* "libjpeg" */
	uint32_t draining;
	uint32_t daemon_uid;
};

struct stats_lane_record {
	uint64_t lane;
	uint32_t uid;
	uint32_t pid;
	uint32_t rank;
	uint32_t world;
	uint32_t batch;
	uint32_t state; /* enum ring_state */
	uint32_t order, tail, bad, accumulate;
	char job[CONTROL_JOB_MAX];
	char name[CONTROL_NAME_MAX];
	char dataset[512]; /* display path, cut at the front */
	char client[32];
	uint64_t counters[STATS_LANE_COUNT];
};

/* A bad sample, newest last, each file once a lane. */
struct stats_case {
	uint64_t lane;
	uint64_t id;
	uint64_t epoch;
	uint32_t status; /* enum feeder_status */
	uint32_t count;  /* times met */
	char path[512];  /* relative to the dataset, cut at the front */
	char text[160];
};

#endif
