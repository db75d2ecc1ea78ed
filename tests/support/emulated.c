#include "tests/support/emulated.h"

#include "tests/cuda/emulation/control.h"
#include "tests/support/batch.h"
#include "tests/support/unit.h"

#include <dlfcn.h>
#include <stdlib.h>

#define PLUGIN "RINGMASTER_CUDA_PLUGIN"

void rm_test_device_use(void)
{
    if (!getenv(PLUGIN))
        setenv(PLUGIN, rm_test_build_path("lib/emulated/ringmaster-cuda.so"), 1);
}

static const struct rm_backend_plugin *open_plugin(void)
{
    const struct rm_backend_plugin *plugin;
    struct rm_error error = {""};
    rm_test_device_use();
    if (rm_plugin_open(&plugin, &error))
        fail_msg("%s", error.text);
    return plugin;
}

struct rm_backend *rm_test_device_open(void)
{
    return rm_test_device_open_for(RM_COMPUTE_FP32);
}

struct rm_backend *rm_test_device_open_for(enum rm_compute compute)
{
    const struct rm_backend_plugin *plugin = open_plugin();
    const struct rm_device_spec spec = {
        .index = 0, .compute = compute, .threads = 1, .small = true};
    struct rm_device_info info;
    struct rm_error error = {""};
    struct rm_backend *backend;
    uint32_t count = 0;
    if (plugin->devices(&info, 1, &count, &error) || count == 0) {
        print_message("skipped: no device: %s\n", error.text);
        skip();
    }
    if (plugin->create(&backend, &spec, &error))
        fail_msg("%s", error.text);
    return backend;
}

void *rm_test_emulated_symbol(const char *name)
{
    const char *path = getenv(PLUGIN);
    void *object = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    void *found = object ? dlsym(object, name) : NULL;
    if (object)
        dlclose(object); /* the plugin itself stays */
    return found;
}

bool rm_test_emulated(void)
{
    return rm_test_emulated_symbol("rm_emulated_order");
}

static void tell(const char *name, const char *text)
{
    int (*function)(const char *);
    *(void **)&function = rm_test_emulated_symbol(name);
    if (function)
        assert_int_equal(function(text), 0);
}

void rm_test_emulated_order(const char *order)
{
    tell("rm_emulated_order", order);
}

void rm_test_emulated_fault(const char *faults)
{
    tell("rm_emulated_fault", faults);
}

const char *rm_test_emulated_complaint(void)
{
    const char *(*function)(void);
    *(void **)&function = rm_test_emulated_symbol("rm_emulated_complaint");
    return function ? function() : "";
}

void rm_test_device_fine(struct rm_backend *b)
{
    struct rm_error error = {""};
    b->ops->finish(b);
    if (b->ops->failed(b, &error))
        fail_msg("%s", error.text);
    if (rm_test_emulated_complaint()[0])
        fail_msg("%s", rm_test_emulated_complaint());
}

uint64_t rm_test_emulated_waiting(void)
{
    struct rm_emulated_counts counts = {0};
    void (*function)(struct rm_emulated_counts *);
    *(void **)&function = rm_test_emulated_symbol("rm_emulated_counts");
    if (function)
        function(&counts);
    return counts.waiting;
}
