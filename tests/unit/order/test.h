/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of this room share: cmocka in the order that it wants, and the long form. */
#ifndef TESTS_ORDER_TEST_H
#define TESTS_ORDER_TEST_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "order/order.h"

/* FEEDER_LONG=1 asks for the large sweeps. */
static inline bool long_form(void)
{
	const char *value = getenv("FEEDER_LONG");

	return value && value[0] && strcmp(value, "0") != 0;
}

#endif
