/* SPDX-License-Identifier: Apache-2.0 */
/* What feeder-bench says: a few lines for a person, one object for a program. */
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"

static double wait_fraction(const struct bench_result *r)
{
	return r->seconds > 0 ? r->wait_seconds / r->seconds : 0.0;
}

void bench_report(const struct bench_options *o, const struct bench_result *r)
{
	printf("%llu images in %llu batches of %u from %s (%llu samples, %u classes, %s)\n",
		(unsigned long long)r->images, (unsigned long long)r->steps, o->batch, o->dataset,
		(unsigned long long)r->dataset_samples, r->classes, r->dataset_format);
	printf("%.0f images/s, waiting %.0f %% of the loop, first batch after %.0f ms; "
	       "%u workers, %s, %s, resize %s\n",
		r->images_per_s, 100.0 * wait_fraction(r), r->first_batch_ms, r->workers, r->reader,
		r->codec, r->simd);
	printf("%.0f images per CPU second (all of daemon and client); %.2f s of CPU before the "
	       "first sample\n",
		r->images_per_cpu_s, r->setup_cpu_s);
	if (r->rounds) {
		printf("libjpeg-turbo alone: %.0f images per CPU second on the same crops; ratio "
		       "to the "
		       "limit %.3f (median of %u rounds:",
			r->limit_images_per_cpu_s, r->ratio_to_limit, r->rounds);
		for (unsigned int i = 0; i < r->rounds; i++)
			printf(" %.3f", r->round[i].limit > 0
						? r->round[i].feeder / r->round[i].limit
						: 0.0);
		printf(")\n");
	}
	printf("of a sample's CPU time decoding takes %.0f %%, resize and store %.0f %%\n",
		100.0 * r->decode_share, 100.0 * (1.0 - r->decode_share));
	printf("bad samples %llu, order digest %016llx", (unsigned long long)r->bad_samples,
		(unsigned long long)r->order_digest);
	if (o->digest)
		printf(", pixel digest %016llx", (unsigned long long)r->pixel_digest);
	printf("\n");
}

static void json_string(const char *name, const char *value)
{
	printf("\"%s\": \"", name);
	for (const unsigned char *p = (const unsigned char *)value; *p; p++) {
		if (*p == '"' || *p == '\\')
			printf("\\%c", *p);
		else if (*p < 0x20 || *p >= 0x7f)
			printf("\\u%04x",
				*p); /* names are bytes: each stands as its own code point */
		else
			putchar(*p);
	}
	printf("\"");
}

void bench_report_json(const struct bench_options *o, const struct bench_result *r)
{
	printf("{\"schema\": \"feeder-bench/1\", ");
	json_string("dataset", o->dataset);
	printf(", \"samples\": %llu, \"classes\": %u, \"batch\": %u, \"size\": %u, \"world\": %u, "
	       "\"rank\": %u, ",
		(unsigned long long)r->dataset_samples, r->classes, o->batch, o->size, o->world,
		o->rank);
	printf("\"images\": %llu, \"steps\": %llu, \"seconds\": %.6f, \"images_per_s\": %.3f, "
	       "\"images_per_cpu_s\": %.3f, \"setup_cpu_s\": %.6f, \"wait_fraction\": %.6f, "
	       "\"first_batch_ms\": %.3f, ",
		(unsigned long long)r->images, (unsigned long long)r->steps, r->seconds,
		r->images_per_s, r->images_per_cpu_s, r->setup_cpu_s, wait_fraction(r),
		r->first_batch_ms);
	printf("\"workers\": %u, \"bad_samples\": %llu, \"ring_bytes\": %llu, "
	       "\"decode_share\": %.4f, \"private_daemon\": %s, ",
		r->workers, (unsigned long long)r->bad_samples, (unsigned long long)r->ring_bytes,
		r->decode_share, r->private_daemon ? "true" : "false");
	json_string("reader", r->reader);
	printf(", ");
	json_string("codec", r->codec);
	printf(", ");
	json_string("simd", r->simd);
	printf(", \"order_digest\": \"%016llx\"", (unsigned long long)r->order_digest);
	if (o->digest)
		printf(", \"pixel_digest\": \"%016llx\"", (unsigned long long)r->pixel_digest);
	if (r->rounds)
		printf(", \"limit_images_per_cpu_s\": %.3f, \"ratio_to_limit\": %.4f",
			r->limit_images_per_cpu_s, r->ratio_to_limit);
	printf("}\n");
}
