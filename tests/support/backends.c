#include "tests/support/backends.h"

#include "tests/support/emulated.h"

struct rm_backend *rm_test_device, *rm_test_cpu;

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
