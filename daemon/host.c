#include "daemon/host.h"

#include "daemon/cgroup.h"

#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

static const char *read_text(const char *path, char *text, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

void rm_host_parse(struct rm_host *host, const char *text, double ticks)
{
    unsigned long long user, nice, system, idle, wait, irq, softirq, steal;
    host->cpu_s = host->steal_s = NAN;
    if (sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle,
               &wait, &irq, &softirq, &steal) != 8)
        return;
    host->cpu_s = (double)(user + nice + system + irq + softirq) / ticks;
    host->steal_s = (double)steal / ticks;
}

double rm_host_quota(const char *root, const char *membership)
{
    char group[PATH_MAX], path[PATH_MAX + 16], text[64];
    double least = INFINITY, quota, period;
    struct rm_error none;
    if (rm_cgroup_find(group, root, membership, &none))
        snprintf(group, sizeof group, "%s", root);
    for (size_t n = strlen(group); n >= strlen(root); n = (size_t)(strrchr(group, '/') - group)) {
        group[n] = '\0';
        snprintf(path, sizeof path, "%s/cpu.max", group);
        if (sscanf(read_text(path, text, sizeof text), "%lf %lf", &quota, &period) == 2)
            least = fmin(least, quota / period);
    }
    return least;
}

static double cores(double all)
{
    char membership[4096];
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        all = (double)CPU_COUNT(&set);
    read_text("/proc/self/cgroup", membership, sizeof membership);
    return fmin(all, rm_host_quota(RM_CGROUP_ROOT, membership));
}

static double used_s(int whose)
{
    struct rusage used;
    if (getrusage(whose, &used) < 0)
        return 0;
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

void rm_host_read(struct rm_host *host)
{
    char text[512];
    const double all = (double)sysconf(_SC_NPROCESSORS_ONLN);
    rm_host_parse(host, read_text("/proc/stat", text, sizeof text), (double)sysconf(_SC_CLK_TCK));
    host->cores = cores(all);
    if (host->cores < all) /* who took the time of these cores is not known */
        host->cpu_s = host->steal_s = NAN;
    host->daemon_s = used_s(RUSAGE_SELF);
}

struct rm_host_facts rm_host_describe(void)
{
    struct rm_host_facts facts = {"unknown", "unknown", "unknown"};
    struct utsname system;
    char text[1024];
    if (uname(&system) == 0) {
        snprintf(facts.name, sizeof facts.name, "%.64s", system.nodename);
        snprintf(facts.kernel, sizeof facts.kernel, "%.64s", system.release);
    }
    const char *model = strstr(read_text("/proc/cpuinfo", text, sizeof text), "model name");
    const char *colon = model ? strchr(model, ':') : NULL;
    if (colon)
        (void)sscanf(colon, ": %64[^\n]", facts.processor);
    return facts;
}
