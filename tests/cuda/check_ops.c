/* check_ops: every operation of a device, and whole networks, against the CPU's: a line for each.
 *
 *   check_ops [--compute fp32|tf32|bf16|fp16|all] [--draws N] [--most N] [--seed N] [--device N]
 *             [--only WORD]
 *
 * compute: how products are computed (all, one after another). draws: of shapes, for each (12).
 * most: elements of an array, about (60000). only: operations and networks that have this in their
 * names. With RM_CHECK_SMALL in the environment 2 and 3000: for
 * tools that slow everything down. The device is the CUDA plugin's, or what RINGMASTER_CUDA_PLUGIN
 * names.
 *
 * Exits 0 where all is well, 1 where something deviates, 2 on a wrong argument, 70 where the device
 * gave an error, 77 where there is no plugin or no device. */
#include "learner/backend/device.h"
#include "learner/backend/plugin.h"
#include "tests/support/net_parity.h"
#include "tests/support/op_cases.h"
#include "tests/support/random_net.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_DEVICE  70
#define EXIT_SKIPPED 77
#define DRAWN_NETS   32u

static const char *const computes[RM_COMPUTE_COUNT] = {"fp32", "tf32", "bf16", "fp16"};

struct wanted {
    bool compute[RM_COMPUTE_COUNT];
    uint32_t draws, device;
    size_t most;
    uint64_t seed;
    const char *only; /* NULL: all */
};

struct count {
    unsigned lines, wrong;
};

static bool read_number(const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return !errno && *end == '\0' && end != text && *out >= least && *out <= most;
}

static bool read_compute(const char *text, bool out[RM_COMPUTE_COUNT])
{
    bool known = strcmp(text, "all") == 0;
    for (int i = 0; i < RM_COMPUTE_COUNT; i++)
        out[i] = strcmp(text, "all") == 0 || strcmp(text, computes[i]) == 0;
    for (int i = 0; i < RM_COMPUTE_COUNT; i++)
        known = known || out[i];
    return known;
}

static bool read_arguments(int argc, char **argv, struct wanted *w)
{
    static const struct option options[] = {{"compute", required_argument, NULL, 'c'},
                                            {"draws", required_argument, NULL, 'd'},
                                            {"most", required_argument, NULL, 'm'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"device", required_argument, NULL, 'g'},
                                            {"only", required_argument, NULL, 'o'},
                                            {NULL, 0, NULL, 0}};
    uint64_t number = 0;
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (o == 'o')
            w->only = optarg;
        bool good = o == 'c'   ? read_compute(optarg, w->compute)
                    : o == 'o' ? true
                               : o != '?' && read_number(optarg, o == 'd' || o == 'm' ? 1 : 0,
                                                         o == 's' ? UINT64_MAX : 1u << 30, &number);
        if (!good) {
            fprintf(stderr,
                    "check_ops: wrong argument; it takes --compute "
                    "fp32|tf32|bf16|fp16|all, --draws, --most, --seed, --device and --only\n");
            return false;
        }
        if (o == 'd')
            w->draws = (uint32_t)number;
        if (o == 'm')
            w->most = (size_t)number;
        if (o == 's')
            w->seed = number;
        if (o == 'g')
            w->device = (uint32_t)number;
    }
    return optind == argc;
}

static void print_line(struct count *n, const char *what, const char *how, double deviation,
                       double most, const char *wrong)
{
    const bool fine = !*wrong && deviation <= most;
    printf("%-28s %s  %9.2e  of %7.1e  %s%s\n", what, how, deviation, most, fine ? "ok" : "FAIL ",
           wrong);
    fflush(stdout);
    n->lines++;
    n->wrong += !fine;
}

static bool is_wanted(const struct wanted *w, const char *name)
{
    return !w->only || strstr(name, w->only);
}

static void check_table(const struct op_case *cases, size_t count, struct rm_backend *cpu,
                        struct rm_backend *device, const struct wanted *w, enum rm_compute compute,
                        struct count *n)
{
    for (size_t i = 0; i < count; i++) {
        const struct op_case *c = &cases[i];
        if ((compute != RM_COMPUTE_FP32 && !c->product) || !is_wanted(w, c->name))
            continue;
        const struct op_result r = op_check(c, cpu, device, w->draws, w->most, w->seed + i);
        const struct op_result again = op_check(c, cpu, device, w->draws, w->most, w->seed + i);
        print_line(n, c->name, computes[compute], r.deviation, op_tolerance(c, compute),
                   r.failed               ? "(no memory, or a device error)"
                   : r.bits != again.bits ? "(other bits when done again)"
                                          : "");
    }
}

static void check_net(const struct named_net *of, struct rm_backend *cpu, struct rm_backend *device,
                      uint64_t seed, enum rm_compute compute, struct count *n)
{
    char name[80];
    const struct net_parity r = net_check(of, cpu, device, compute, seed);
    const struct net_parity again = net_check(of, cpu, device, compute, seed);
    const bool result = r.result / r.result_allowed > r.gradient / r.gradient_allowed;
    snprintf(name, sizeof name, "net %.70s", of->name);
    print_line(n, name, computes[compute], result ? r.result : r.gradient,
               result ? r.result_allowed : r.gradient_allowed,
               r.failed               ? "(no memory, or a device error)"
               : !r.captured          ? "(other bits when captured)"
               : r.bits != again.bits ? "(other bits when done again)"
                                      : "");
}

/* All of one way of computing. Returns an exit status. */
static int check(const struct rm_backend_plugin *plugin, const struct wanted *w,
                 enum rm_compute compute, struct count *n)
{
    const struct rm_device_spec spec = {.index = w->device, .compute = compute, .threads = 1};
    struct rm_backend *cpu, *device;
    struct rm_error error;
    int status = EXIT_SUCCESS;
    if (rm_backend_cpu_create(&cpu, 1, "auto", &error)) {
        fprintf(stderr, "check_ops: %s\n", error.text);
        return EXIT_FAILURE;
    }
    if (plugin->create(&device, &spec, &error)) {
        fprintf(stderr, "check_ops: %s\n", error.text);
        rm_backend_destroy(cpu);
        return EXIT_DEVICE;
    }
    check_table(op_cases, op_case_count, cpu, device, w, compute, n);
    check_table(op_sequence_cases, op_sequence_case_count, cpu, device, w, compute, n);
    for (size_t i = 0; i < test_net_count; i++)
        if (is_wanted(w, test_nets[i].name))
            check_net(&test_nets[i], cpu, device, w->seed + i, compute, n);
    for (uint32_t i = 0; i < DRAWN_NETS; i++) {
        struct random_net net;
        random_net_draw(i, &net);
        if (is_wanted(w, net.of.name))
            check_net(&net.of, cpu, device, w->seed + i, compute, n);
    }
    if (device->ops->failed(device, &error)) {
        fprintf(stderr, "check_ops: %s\n", error.text);
        status = EXIT_DEVICE;
    }
    rm_backend_destroy(device);
    rm_backend_destroy(cpu);
    return status;
}

int main(int argc, char **argv)
{
    const bool small = getenv("RM_CHECK_SMALL");
    struct wanted w = {
        .compute = {true, true, true, true}, .draws = small ? 2 : 12, .most = small ? 3000 : 60000};
    const struct rm_backend_plugin *plugin;
    struct rm_device_info info;
    struct rm_error error;
    struct count n = {0};
    uint32_t devices = 0;
    int status = EXIT_SUCCESS;
    if (!read_arguments(argc, argv, &w))
        return 2;
    if (rm_plugin_open(&plugin, &error) || plugin->devices(&info, 1, &devices, &error)) {
        fprintf(stderr, "check_ops: skipped: %s\n", error.text);
        return EXIT_SKIPPED;
    }
    if (devices <= w.device) {
        fprintf(stderr, "check_ops: skipped: no device %u\n", w.device);
        return EXIT_SKIPPED;
    }
    for (int i = 0; i < RM_COMPUTE_COUNT && status == EXIT_SUCCESS; i++)
        if (w.compute[i])
            status = check(plugin, &w, (enum rm_compute)i, &n);
    printf("%u checked, %u wrong\n", n.lines, n.wrong);
    return status ? status : n.wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
