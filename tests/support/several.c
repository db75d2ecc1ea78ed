#include "tests/support/several.h"

#include "tests/support/batch.h"
#include "tests/support/emulated.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>

struct rm_backend *rm_test_alone;

void rm_test_several_use(uint32_t devices)
{
    char count[12];
    if (getenv("RM_TEST_SEVERAL")) /* devices and NCCL are what there is of them */
        return;
    snprintf(count, sizeof count, "%u", devices);
    setenv("RM_EMULATED_DEVICES", count, 1);
    setenv("RM_EMULATED_GUARD", "0", 1); /* waiting looks often, and each time it would be lifted */
    rm_test_device_use(); /* where RINGMASTER_CUDA_PLUGIN says, for the double of NCCL too */
    setenv("RINGMASTER_NCCL", rm_test_build_path("lib/emulated/libnccl.so.2"), 1);
}

struct rm_backend *rm_test_several_open(uint32_t index)
{
    const struct rm_backend_plugin *plugin;
    const struct rm_device_spec spec = {.index = index, .compute = RM_COMPUTE_FP32, .threads = 1};
    struct rm_backend *b = NULL;
    struct rm_error error = {""};
    rm_test_device_use();
    if (rm_plugin_open(&plugin, &error) || plugin->create(&b, &spec, &error))
        fail_msg("%s", error.text);
    return b;
}

static void need(uint32_t count)
{
    const struct rm_backend_plugin *plugin;
    struct rm_device_info info[1];
    struct rm_error error = {""};
    uint32_t here = 0;
    if (rm_plugin_open(&plugin, &error) || plugin->devices(info, 1, &here, &error))
        fail_msg("%s", error.text);
    if (here < count) {
        print_message("skipped: needs %u GPUs; here is %u\n", count, here);
        skip();
    }
}

void rm_test_several_need_emulation(void)
{
    if (!rm_test_emulated()) {
        print_message("skipped: the plugin is not the emulated one\n");
        skip();
    }
}

void rm_test_several_join(struct rm_backend *device[], uint32_t count)
{
    struct rm_error error = {""};
    need(count);
    for (uint32_t i = 0; i < count; i++)
        device[i] = rm_test_several_open(i);
    if (device[0]->device->collective->join(device, count, &error))
        fail_msg("%s", error.text);
}

void rm_test_several_close(struct rm_backend *device[], uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        rm_backend_destroy(device[i]);
}

static void clear(void)
{
    rm_test_emulated_fault("");
    rm_test_emulated_order("forward");
}

int rm_test_several_begin(void **state)
{
    (void)state;
    rm_test_alone = rm_test_several_open(0);
    if (!getenv("RM_TEST_SEVERAL"))
        rm_test_several_need_emulation();
    clear();
    return 0;
}

int rm_test_several_end(void **state)
{
    (void)state;
    clear();
    rm_backend_destroy(rm_test_alone);
    return 0;
}
