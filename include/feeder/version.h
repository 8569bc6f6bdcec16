/* SPDX-License-Identifier: Apache-2.0 */
/* feeder: version of this header; see feeder_version() for that of the library. */
#ifndef FEEDER_VERSION_H
#define FEEDER_VERSION_H

#define FEEDER_VERSION_MAJOR 0
#define FEEDER_VERSION_MINOR 1
#define FEEDER_VERSION_PATCH 0
#define FEEDER_VERSION       "0.1.0"

#endif
