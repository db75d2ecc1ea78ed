/* host: how much the host's processors work for any process, and how much of that the daemon takes
 * itself. Read once for a row of metrics. */
#ifndef RM_DAEMON_HOST_H
#define RM_DAEMON_HOST_H

struct rm_host {
    double cores;    /* that this process may run on, and that its control group pays for */
    double cpu_s;    /* all processors of the host, busy since boot; NAN: not known */
    double steal_s;  /* taken by other guests of the same machine; NAN: not known */
    double daemon_s; /* processor time of this process */
};

/* Reads all of it. Never fails: what is not known is NAN. */
void rm_host_read(struct rm_host *host);

/* Which host it is: what does not change while a process runs. */
struct rm_host_facts {
    char name[65], kernel[65];
    char processor[65]; /* its model; "unknown" where the kernel does not say */
};
void rm_host_describe(struct rm_host_facts *facts);

/* From the text of /proc/stat, with `ticks` a second. */
void rm_host_parse(struct rm_host *host, const char *text, double ticks);

#endif
