/* SPDX-License-Identifier: Apache-2.0 */
/* feeder-bench: how fast, how exact, how near to the limit. */
#include <stdio.h>

#include "bench/bench.h"

int main(int argc, char **argv)
{
	struct bench_options options;
	struct bench_result result;
	int status = bench_options_parse(&options, argc, argv);

	if (status)
		return status - 1;
	status = bench_run(&options, &result);
	if (status != EXIT_DONE)
		return status;
	if (options.json)
		bench_report_json(&options, &result);
	else
		bench_report(&options, &result);
	return fflush(stdout) == 0 ? EXIT_DONE : EXIT_FINDING;
}
