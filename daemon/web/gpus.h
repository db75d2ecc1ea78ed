/* gpus: NVIDIA GPUs of this host, by NVML, which is loaded where a driver has installed it. Used by
 * one thread. */
#ifndef RM_DAEMON_WEB_GPUS_H
#define RM_DAEMON_WEB_GPUS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RM_GPUS_MAX         64
#define RM_GPU_NAME         96                /* bytes of a UUID or a name, NUL included */
#define RM_GPUS_ENVIRONMENT "RINGMASTER_NVML" /* another library than libnvidia-ml.so.1 */

enum rm_gpu_figure {
    RM_GPU_UTILISATION = 0, /* share of the last moment in which a kernel ran, 0 to 1 */
    RM_GPU_MEMORY_USED,     /* bytes */
    RM_GPU_MEMORY_SIZE,
    RM_GPU_POWER,      /* watts */
    RM_GPU_XID_ERRORS, /* since gpus were opened */
    RM_GPU_XID_LATEST, /* number of the latest; NAN: none */
    RM_GPU_FIGURES
};

/* Why a GPU runs slower than it could; as bits of rm_gpu.slowed. */
#define RM_GPU_REASONS 5
const char *rm_gpu_reason_name(int reason);

struct rm_gpu {
    void *device; /* of NVML */
    char uuid[RM_GPU_NAME], name[RM_GPU_NAME];
    double figure[RM_GPU_FIGURES]; /* NAN: the GPU does not have it */
    unsigned slowed;
    bool slowed_known;
};

struct rm_gpus {
    void *library, *events;
    char why[160]; /* there are no figures: the reason, else "" */
    double opened; /* seconds since 1970 */
    size_t count;
    struct rm_gpu gpu[RM_GPUS_MAX];
    uint64_t read_ns;
};

/* Loads NVML and finds the GPUs. Without it `why` has a sentence. */
void rm_gpus_open(struct rm_gpus *gpus);
void rm_gpus_close(struct rm_gpus *gpus);

/* Reads all figures, at most once a second. */
void rm_gpus_read(struct rm_gpus *gpus);

/* {"why": .., "gpus": [{"name", "uuid", "utilisation", .., "slowed": [..]}]} */
json_t *rm_gpus_json(const struct rm_gpus *gpus);

#endif
