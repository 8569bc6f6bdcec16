/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank of several: start it once for each rank, with the same FEEDER_JOB (launchers that set
 * SLURM_JOB_ID or MASTER_ADDR need not), and the ranks share one daemon and one order.
 *
 *	for r in 0 1 2 3; do FEEDER_JOB=demo ./ranks DATASET $r 4 & done; wait
 *
 * The sum of all ranks' order digests is that of the epoch, whatever the number of ranks.
 */
#include <stdio.h>
#include <stdlib.h>

#include <feeder/feeder.h>

int main(int argc, char **argv)
{
	struct feeder *f = NULL;
	struct feeder_lane *lane = NULL;
	struct feeder_lane_config config;
	struct feeder_batch batch = { .size = sizeof(batch) };
	unsigned long long steps = 0;
	int r;

	if (argc != 4) {
		fprintf(stderr, "usage: ranks DATASET RANK WORLD\n");
		return 2;
	}
	feeder_lane_config_init(&config);
	config.batch_size = 32;
	config.rank = (unsigned int)strtoul(argv[2], NULL, 10);
	config.world_size = (unsigned int)strtoul(argv[3], NULL, 10);
	r = feeder_connect(&f, NULL);
	if (r == 0)
		r = feeder_lane_open(&lane, f, argv[1], &config);
	while (r == 0) {
		r = feeder_next(lane, &batch, -1);
		if (r < 0)
			break;
		steps++;
		r = feeder_release(lane, batch.number);
		if (batch.last_of_epoch)
			break;
	}
	if (r < 0)
		fprintf(stderr, "rank %s: %s\n", argv[2], feeder_last_error());
	else
		printf("rank %u of %u in job %s: %llu steps, order digest %016llx\n", config.rank,
			config.world_size, feeder_job(f), steps,
			(unsigned long long)feeder_order_digest(lane));
	feeder_disconnect(f);
	return r < 0;
}
