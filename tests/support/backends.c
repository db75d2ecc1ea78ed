#include "tests/support/backends.h"

#include "tests/support/emulated.h"
#include "tests/support/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct rm_backend *rm_test_device, *rm_test_cpu;

static void *copies[32];
static uint32_t copy_count;

int rm_test_backends_open(void **state)
{
    struct rm_error error = {""};
    (void)state;
    rm_test_device = rm_test_device_open();
    return rm_backend_cpu_create(&rm_test_cpu, 1, "auto", &error);
}

int rm_test_backends_close(void **state)
{
    (void)state;
    rm_backend_destroy(rm_test_device);
    rm_backend_destroy(rm_test_cpu);
    return 0;
}

void *rm_test_to_device(const void *from, size_t bytes)
{
    const size_t words = bytes / 4 + 1;
    float *padded = calloc(words, sizeof *padded);
    void *to = rm_test_device->ops->alloc_bytes(rm_test_device, words * 4, NULL);
    assert_true(padded && to && copy_count < sizeof copies / sizeof *copies);
    if (from)
        memcpy(padded, from, bytes);
    rm_test_device->ops->upload(rm_test_device, to, padded, words);
    free(padded);
    copies[copy_count++] = to;
    return to;
}

void rm_test_from_device(void *to, const void *from, size_t bytes)
{
    rm_test_device->ops->download(rm_test_device, to, from, bytes / 4);
}

void rm_test_device_release(void)
{
    while (copy_count)
        rm_test_device->ops->release(rm_test_device, copies[--copy_count]);
}

void rm_test_assert_near(const char *what, const float *here, const float *there, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)here[i] - (double)there[i]) <= 1e-5 * (1e-2 + fabs((double)here[i]))))
            fail_msg("%s[%zu]: %.9g, on the device %.9g", what, i, (double)here[i],
                     (double)there[i]);
}
