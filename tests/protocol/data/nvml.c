/* NVML's double, for check-web-gpus: a GPU that has everything and an Xid, and one that has little.
 */
#include <stdio.h>

enum { OK = 0, NOT_SUPPORTED = 3, TIMED_OUT = 10, LOST = 15 };

static int devices[2], given;

int nvmlInit_v2(void)
{
#ifdef NO_DRIVER
    return 9;
#else
    return OK;
#endif
}
int nvmlShutdown(void)
{
    return OK;
}
const char *nvmlErrorString(int code)
{
    return code == 9 ? "Driver Not Loaded" : "?";
}
int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = 3;
    return OK;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = index < 2 ? &devices[index] : NULL;
    return index < 2 ? OK : LOST;
}
int nvmlDeviceGetUUID(void *device, char *text, unsigned size)
{
    snprintf(text, size, "GPU-%d", (int)((int *)device - devices));
    return OK;
}
int nvmlDeviceGetName(void *device, char *text, unsigned size)
{
    snprintf(text, size, "Double \"%d\" <b>", (int)((int *)device - devices));
    return OK;
}
int nvmlDeviceGetUtilizationRates(void *device, unsigned *percent)
{
    percent[0] = 37;
    percent[1] = 5;
    return device == devices ? OK : NOT_SUPPORTED;
}
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *bytes)
{
    bytes[0] = 80000000000ull;
    bytes[1] = 72000000000ull;
    bytes[2] = 8000000000ull;
    return device ? OK : LOST;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
    *milliwatts = 123456;
    return device == devices ? OK : NOT_SUPPORTED;
}
#ifndef OLD_DRIVER
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons)
{
    *reasons = 0x1 | 0x4 | 0x40;
    return device == devices ? OK : NOT_SUPPORTED;
}
#endif
int nvmlEventSetCreate(void **set)
{
    *set = &given;
    return OK;
}
int nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set)
{
    (void)set;
    return device == devices && types == 8 ? OK : NOT_SUPPORTED;
}
int nvmlEventSetWait_v2(void *set, void *event, unsigned timeout_ms)
{
    struct {
        void *device;
        unsigned long long type, data;
        unsigned instances[2];
    } *of = event;
    (void)set;
    if (timeout_ms || given == 2)
        return TIMED_OUT;
    of->device = devices;
    of->type = 8;
    of->data = given++ ? 79 : 31;
    return OK;
}
int nvmlEventSetFree(void *set)
{
    (void)set;
    return OK;
}
