/* tensorboard: event files for TensorBoard. A file is a series of records; numbers are
 * little-endian:
 *
 *   u64 length | u32 masked CRC of the length | data | u32 masked CRC of data
 *
 * whose data is a protocol buffer `Event` {1: double wall_time, 2: int64 step, 3: string
 * file_version, 5: Summary {1: Value {1: string tag, 2: float simple_value} ..}}: few enough fields
 * to write by hand. CRC is CRC-32C (Castagnoli), masked as ((crc >> 15 | crc << 17) + 0xa282ead8).
 */
#ifndef RM_DAEMON_TENSORBOARD_H
#define RM_DAEMON_TENSORBOARD_H

#include "daemon/run_directory.h"
#include "daemon/writer.h"
#include "shm/base/error.h"

#include <stddef.h>
#include <stdint.h>

struct rm_tensorboard {
    int fd;                  /* -1 = off */
    struct rm_writer *files; /* writes records; NULL = at once */
    uint8_t *bytes;          /* the record being built */
    size_t used, room;
    size_t summary_at; /* where the scalars begin */
    int failure;       /* the first error since rm_tensorboard_begin() */
};

/* Makes events.out.tfevents.TIME.HOST in the run directory, with its version record. */
int rm_tensorboard_open(struct rm_tensorboard *board, const struct rm_run_directory *directory,
                        struct rm_error *error);

/* One record with any number of scalars. end() returns 0 or negative errno: of writing,
 * if there is no thread that does. */
void rm_tensorboard_begin(struct rm_tensorboard *board, double wall_time, uint64_t step);
void rm_tensorboard_scalar(struct rm_tensorboard *board, const char *tag, float value);
int rm_tensorboard_end(struct rm_tensorboard *board);

void rm_tensorboard_close(struct rm_tensorboard *board);

uint32_t rm_crc32c(const void *data, size_t bytes);
uint32_t rm_crc32c_masked(const void *data, size_t bytes);

#endif
