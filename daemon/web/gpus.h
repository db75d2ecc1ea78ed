/* gpus: figures of this host's NVIDIA GPUs, from NVML. NVML is loaded if a driver has installed it.
 * Used by one thread. */
#ifndef RM_DAEMON_WEB_GPUS_H
#define RM_DAEMON_WEB_GPUS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RM_GPUS_MAX         64
#define RM_GPU_NAME         96                /* bytes of a UUID or a name, NUL included */
#define RM_GPUS_ENVIRONMENT "RINGMASTER_NVML" /* names a library instead of libnvidia-ml.so.1 */

enum rm_gpu_figure {
    RM_GPU_UTILISATION = 0, /* share of NVML's last sample period in which a kernel ran, 0 to 1 */
    RM_GPU_MEMORY_USED,     /* bytes */
    RM_GPU_MEMORY_SIZE,
    RM_GPU_POWER,      /* watts */
    RM_GPU_XID_ERRORS, /* errors since rm_gpus_open() */
    RM_GPU_XID_LATEST, /* number of the latest error; NAN: there was none */
    RM_GPU_FIGURES
};

/* Reasons why a GPU's clocks are lowered; bit i of rm_gpu.slowed is reason i. */
#define RM_GPU_REASONS 5
const char *rm_gpu_reason_name(int reason);

struct rm_gpu {
    void *device; /* of NVML */
    char uuid[RM_GPU_NAME], name[RM_GPU_NAME];
    double figure[RM_GPU_FIGURES]; /* NAN: the GPU does not report it */
    unsigned slowed;
    bool slowed_known;
};

struct rm_gpus {
    void *library, *events;
    char why[160]; /* reason why there are no figures; "": there are figures */
    double opened; /* seconds since 1970 */
    size_t count;
    struct rm_gpu gpu[RM_GPUS_MAX];
    uint64_t read_ns;
};

/* Loads NVML and finds the GPUs. If NVML cannot be loaded, `why` has the reason as a sentence. */
void rm_gpus_open(struct rm_gpus *gpus);
void rm_gpus_close(struct rm_gpus *gpus);

/* Reads all figures, at most once a second. */
void rm_gpus_read(struct rm_gpus *gpus);

/* {"why": .., "gpus": [{"name", "uuid", "utilisation", .., "slowed": [..]}]} */
json_t *rm_gpus_json(const struct rm_gpus *gpus);

#endif
