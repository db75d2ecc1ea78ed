/* host: processor time of the host, for all processes and for this daemon. Read once for a row of
 * metrics. */
#ifndef RM_DAEMON_HOST_H
#define RM_DAEMON_HOST_H

struct rm_host {
    double cores;    /* that this process may use, by its affinity and its control group */
    double cpu_s;    /* busy time of all processors since boot */
    double steal_s;  /* taken by other guests of the machine; both NAN: unknown, or not all
                      * processors are for this process */
    double daemon_s; /* processor time of this process */
};

/* Reads all members. Never fails: an unknown number is NAN. */
void rm_host_read(struct rm_host *host);

/* Facts about the host that do not change while a process runs. */
struct rm_host_facts {
    char name[65], kernel[65];
    char processor[65]; /* its model; "unknown" if the kernel does not report it */
};
struct rm_host_facts rm_host_describe(void);

/* The least quota, in cores, of the control group (version 2) that `membership`, the text of
 * /proc/PID/cgroup, names, and of the groups that it is in; `root` is where they are mounted.
 * INFINITY: none. */
double rm_host_quota(const char *root, const char *membership);

/* Reads cpu_s and steal_s from the text of /proc/stat, which counts `ticks` per second. */
void rm_host_parse(struct rm_host *host, const char *text, double ticks);

#endif
