#include "daemon/web/gpus.h"

#include "shm/base/clock.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NVML's interface as of version 12, as far as it is used: its header is not needed. */
enum { NVML_SUCCESS = 0 };
#define NVML_XID 8ull /* nvmlEventTypeXidCriticalError */

struct nvml_utilisation {
    unsigned gpu, memory; /* percent */
};
struct nvml_memory {
    unsigned long long total, free, used;
};
struct nvml_event {
    void *device;
    unsigned long long type, data; /* data: the number of an Xid */
    unsigned gpu_instance, compute_instance;
};

static struct {
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error)(int code);
    int (*count)(unsigned *count);
    int (*device)(unsigned index, void **device);
    int (*uuid)(void *device, char *text, unsigned size);
    int (*name)(void *device, char *text, unsigned size);
    int (*utilisation)(void *device, struct nvml_utilisation *utilisation);
    int (*memory)(void *device, struct nvml_memory *memory);
    int (*power)(void *device, unsigned *milliwatts);
    int (*reasons)(void *device, unsigned long long *reasons);
    int (*make_events)(void **set);
    int (*watch)(void *device, unsigned long long types, void *set);
    int (*next_event)(void *set, struct nvml_event *event, unsigned timeout_ms);
    int (*free_events)(void *set);
} nvml;

static const struct {
    const char *symbol;
    void *function; /* a member of nvml */
} symbols[] = {
    {"nvmlInit_v2", &nvml.init},
    {"nvmlShutdown", &nvml.shutdown},
    {"nvmlErrorString", &nvml.error},
    {"nvmlDeviceGetCount_v2", &nvml.count},
    {"nvmlDeviceGetHandleByIndex_v2", &nvml.device},
    {"nvmlDeviceGetUUID", &nvml.uuid},
    {"nvmlDeviceGetName", &nvml.name},
    {"nvmlDeviceGetUtilizationRates", &nvml.utilisation},
    {"nvmlDeviceGetMemoryInfo", &nvml.memory},
    {"nvmlDeviceGetPowerUsage", &nvml.power},
    {"nvmlDeviceGetCurrentClocksThrottleReasons", &nvml.reasons},
    {"nvmlEventSetCreate", &nvml.make_events},
    {"nvmlDeviceRegisterEvents", &nvml.watch},
    {"nvmlEventSetWait_v2", &nvml.next_event},
    {"nvmlEventSetFree", &nvml.free_events},
};

/* Reasons that are faults or limits; being idle and clocks that a user has set are none. */
static const struct {
    unsigned long long bit; /* nvmlClocksThrottleReason... */
    const char *name;
} reasons[] = {{0x04, "power_cap"},
               {0x08, "hardware"},
               {0x20, "software_thermal"},
               {0x40, "hardware_thermal"},
               {0x80, "power_brake"}};
_Static_assert(sizeof reasons / sizeof reasons[0] == RM_GPU_REASONS, "a name for each reason");

const char *rm_gpu_reason_name(int reason)
{
    return reasons[reason].name;
}

static bool load(struct rm_gpus *gpus)
{
    const char *other = getenv(RM_GPUS_ENVIRONMENT);
    gpus->library = dlopen(other ? other : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!gpus->library) {
        snprintf(
            gpus->why, sizeof gpus->why,
            "no figures of GPUs: libnvidia-ml.so.1, a part of NVIDIA's driver, is not installed");
        return false;
    }
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *function = dlsym(gpus->library, symbols[i].symbol);
        if (!function) {
            snprintf(gpus->why, sizeof gpus->why,
                     "no figures of GPUs: NVIDIA's driver is too old: %s is missing",
                     symbols[i].symbol);
            return false;
        }
        memcpy(symbols[i].function, &function, sizeof function);
    }
    return true;
}

static void find(struct rm_gpus *gpus)
{
    unsigned count = 0;
    if (nvml.count(&count) != NVML_SUCCESS)
        count = 0;
    if (nvml.make_events(&gpus->events) != NVML_SUCCESS)
        gpus->events = NULL;
    for (unsigned i = 0; i < count && gpus->count < RM_GPUS_MAX; i++) {
        struct rm_gpu *gpu = &gpus->gpu[gpus->count];
        if (nvml.device(i, &gpu->device) != NVML_SUCCESS ||
            nvml.uuid(gpu->device, gpu->uuid, sizeof gpu->uuid) != NVML_SUCCESS)
            continue;
        if (nvml.name(gpu->device, gpu->name, sizeof gpu->name) != NVML_SUCCESS)
            snprintf(gpu->name, sizeof gpu->name, "GPU %u", i);
        for (int f = 0; f < RM_GPU_FIGURES; f++)
            gpu->figure[f] = NAN;
        if (gpus->events && nvml.watch(gpu->device, NVML_XID, gpus->events) == NVML_SUCCESS)
            gpu->figure[RM_GPU_XID_ERRORS] = 0;
        gpus->count++;
    }
    if (!gpus->count)
        snprintf(gpus->why, sizeof gpus->why, "no figures of GPUs: there is no GPU");
}

void rm_gpus_open(struct rm_gpus *gpus)
{
    struct timespec t;
    *gpus = (struct rm_gpus){.why = ""};
    clock_gettime(CLOCK_REALTIME, &t);
    gpus->opened = (double)t.tv_sec;
    if (!load(gpus))
        return;
    const int rc = nvml.init();
    if (rc == NVML_SUCCESS) {
        find(gpus);
        return;
    }
    snprintf(gpus->why, sizeof gpus->why, "no figures of GPUs: nvmlInit: %s", nvml.error(rc));
    dlclose(gpus->library);
    gpus->library = NULL;
}

void rm_gpus_close(struct rm_gpus *gpus)
{
    if (gpus->events)
        nvml.free_events(gpus->events);
    if (gpus->library && nvml.shutdown)
        nvml.shutdown();
    if (gpus->library)
        dlclose(gpus->library);
    gpus->library = gpus->events = NULL;
    gpus->count = 0;
}

static void read_gpu(struct rm_gpu *gpu)
{
    struct nvml_utilisation utilisation;
    struct nvml_memory memory;
    unsigned milliwatts;
    unsigned long long bits = 0;
    const bool used = nvml.utilisation(gpu->device, &utilisation) == NVML_SUCCESS;
    const bool sized = nvml.memory(gpu->device, &memory) == NVML_SUCCESS;
    const bool powered = nvml.power(gpu->device, &milliwatts) == NVML_SUCCESS;
    gpu->figure[RM_GPU_UTILISATION] = used ? utilisation.gpu / 100.0 : NAN;
    gpu->figure[RM_GPU_MEMORY_USED] = sized ? (double)memory.used : NAN;
    gpu->figure[RM_GPU_MEMORY_SIZE] = sized ? (double)memory.total : NAN;
    gpu->figure[RM_GPU_POWER] = powered ? milliwatts / 1000.0 : NAN;
    gpu->slowed_known = nvml.reasons(gpu->device, &bits) == NVML_SUCCESS;
    gpu->slowed = 0;
    for (unsigned r = 0; r < RM_GPU_REASONS; r++)
        gpu->slowed |= bits & reasons[r].bit ? 1u << r : 0;
}

/* Those that came since; does not wait. */
static void read_events(struct rm_gpus *gpus)
{
    struct nvml_event event;
    for (int n = 0; n < 1000 && gpus->events; n++) {
        if (nvml.next_event(gpus->events, &event, 0) != NVML_SUCCESS)
            return;
        for (size_t i = 0; i < gpus->count && event.type == NVML_XID; i++)
            if (gpus->gpu[i].device == event.device) {
                gpus->gpu[i].figure[RM_GPU_XID_ERRORS]++;
                gpus->gpu[i].figure[RM_GPU_XID_LATEST] = (double)event.data;
            }
    }
}

void rm_gpus_read(struct rm_gpus *gpus)
{
    if (gpus->read_ns && rm_now_ns() - gpus->read_ns < RM_NS_PER_S)
        return;
    gpus->read_ns = rm_now_ns();
    for (size_t i = 0; i < gpus->count; i++)
        read_gpu(&gpus->gpu[i]);
    read_events(gpus);
}

json_t *rm_gpus_json(const struct rm_gpus *gpus)
{
    static const char *const names[] = {
        [RM_GPU_UTILISATION] = "utilisation",  [RM_GPU_MEMORY_USED] = "memory_used_bytes",
        [RM_GPU_MEMORY_SIZE] = "memory_bytes", [RM_GPU_POWER] = "power_w",
        [RM_GPU_XID_ERRORS] = "xid_errors",    [RM_GPU_XID_LATEST] = "xid_latest"};
    _Static_assert(sizeof names / sizeof names[0] == RM_GPU_FIGURES, "a name for each figure");
    json_t *all = json_array();
    for (size_t i = 0; i < gpus->count; i++) {
        const struct rm_gpu *gpu = &gpus->gpu[i];
        json_t *slowed = json_array(),
               *one = json_pack("{s:s,s:s}", "name", gpu->name, "uuid", gpu->uuid);
        for (int f = 0; f < RM_GPU_FIGURES; f++)
            json_object_set_new(one, names[f],
                                isfinite(gpu->figure[f]) ? json_real(gpu->figure[f]) : json_null());
        for (int r = 0; r < RM_GPU_REASONS; r++)
            if (gpu->slowed & (1u << r))
                json_array_append_new(slowed, json_string(reasons[r].name));
        json_object_set_new(one, "slowed", slowed);
        json_array_append_new(all, one);
    }
    return json_pack("{s:s,s:o}", "why", gpus->why, "gpus", all);
}
