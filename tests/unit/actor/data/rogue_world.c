/* A world that misbehaves as its options ask, to see what becomes of the process. */
#include "env.h"

#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LENGTH 10

struct rm_env {
    uint32_t worlds;
    int create, act;
    uint64_t at, step;
    struct rm_env_agent agent[2];
    struct rm_env_spec spec;
    const struct rm_env_buffers *out; /* of the step that is being made */
    char error[128];
};

static void *nothing(void *self)
{
    return self;
}

static int failed(struct rm_env *env, const char *what)
{
    snprintf(env->error, sizeof env->error, "%s: %s", what, strerror(errno));
    return -EIO;
}

static int do_thread(struct rm_env *env)
{
    pthread_t thread;
    errno = pthread_create(&thread, NULL, nothing, NULL);
    if (errno)
        return failed(env, "pthread_create");
    return pthread_join(thread, NULL);
}

static int do_read(struct rm_env *env)
{
    int fd = open("/proc/self/status", O_RDONLY);
    if (fd < 0)
        return failed(env, "open for reading");
    return close(fd);
}

static int do_write(struct rm_env *env)
{
    int fd = open("rogue.txt", O_WRONLY | O_CREAT, 0600);
    if (fd < 0)
        return failed(env, "open for writing");
    return close(fd);
}

static int do_memory(struct rm_env *env)
{
    const size_t bytes = (size_t)2 << 30;
    char *p = malloc(bytes);
    if (!p)
        return failed(env, "malloc");
    memset(p, 1, 4096);
    free(p);
    return 0;
}

static int do_limit(struct rm_env *env)
{
    const struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    return setrlimit(RLIMIT_DATA, &limit) < 0 ? failed(env, "setrlimit") : 0;
}

static volatile int *volatile nowhere; /* nobody ever sets it */

static int do_fault(struct rm_env *env)
{
    (void)env;
    *nowhere = 1;
    return 0;
}

static int do_fork(struct rm_env *env)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    return pid < 0 ? failed(env, "fork") : waitpid(pid, NULL, 0) < 0;
}

static int do_socket(struct rm_env *env)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd < 0 ? failed(env, "socket") : close(fd);
}

static int do_program(struct rm_env *env)
{
    execl("/bin/true", "true", (char *)NULL);
    return failed(env, "execl");
}

static int do_kill(struct rm_env *env)
{
    return kill(getppid(), 0) < 0 ? failed(env, "kill") : 0;
}

static int do_abort(struct rm_env *env)
{
    (void)env;
    abort();
}

static int do_exit(struct rm_env *env)
{
    (void)env;
    exit(0);
}

static int do_hang(struct rm_env *env)
{
    (void)env;
    while (true)
        pause();
    return 0;
}

/* Memory that no limit of private memory counts. */
static int do_share(struct rm_env *env)
{
    const size_t bytes = (size_t)1 << 24;
    for (int i = 0; i < 256; i++) {
        /* cppcheck-suppress invalidFunctionArg ; -1 is what an anonymous mapping takes */
        void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            return failed(env, "mmap");
        memset(p, 1, bytes);
    }
    return 0;
}

static void *wait_for_ever(void *self)
{
    while (true)
        pause();
    return self;
}

/* Processes that stay, also when this one ends. */
static int do_crowd(struct rm_env *env)
{
    for (int i = 0; i < 1000; i++) {
        const pid_t pid = fork();
        if (pid < 0)
            return failed(env, "fork");
        if (pid == 0)
            wait_for_ever(NULL);
    }
    return 0;
}

static int do_threads(struct rm_env *env)
{
    for (int i = 0; i < 1000; i++) {
        pthread_t thread;
        errno = pthread_create(&thread, NULL, wait_for_ever, NULL);
        if (errno)
            return failed(env, "pthread_create");
    }
    return 0;
}

/* --- for other processes --------------------------------------------------------------------- */

/* The first region whose name begins so, to be written: by its descriptor, or by a new one. */
static void *map_region(const char *name, size_t *bytes)
{
    char path[64], target[64];
    for (int fd = 0; fd < 256; fd++) {
        struct stat st;
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        const ssize_t n = readlink(path, target, sizeof target - 1);
        if (n <= 0 || fstat(fd, &st) < 0)
            continue;
        target[n] = '\0';
        if (strncmp(target, "/memfd:", 7) != 0 || strncmp(target + 7, name, strlen(name)) != 0)
            continue;
        *bytes = (size_t)st.st_size;
        void *p = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        const int again = p == MAP_FAILED ? open(path, O_RDWR) : -1;
        if (again >= 0)
            p = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0);
        if (p != MAP_FAILED)
            return p;
    }
    return NULL;
}

/* Its successor is to run without a sandbox. */
static int do_config(struct rm_env *env)
{
    size_t bytes;
    char *text = map_region("config", &bytes);
    char *key = text ? memmem(text, bytes, "\"sandbox\": \"", 12) : NULL;
    if (!key) {
        snprintf(env->error, sizeof env->error, "the configuration cannot be written");
        return -EACCES;
    }
    memcpy(key + 12, "off\", ", 6);
    *nowhere = 1;
    return 0;
}

/* The kernel is to send a signal to the daemon when there is something to read. */
static int do_owner(struct rm_env *env)
{
    int ends[2];
    if (pipe(ends) < 0 || fcntl(ends[0], F_SETOWN, getppid()) < 0 ||
        fcntl(ends[0], F_SETSIG, SIGKILL) < 0 || fcntl(ends[0], F_SETFL, O_ASYNC) < 0 ||
        write(ends[1], "x", 1) < 0)
        return failed(env, "fcntl");
    return 0;
}

static int do_async(struct rm_env *env)
{
    int ends[2];
    return pipe(ends) < 0 || fcntl(ends[0], F_SETFL, O_ASYNC) < 0 ? failed(env, "fcntl") : 0;
}

static int do_lease(struct rm_env *env)
{
    const int fd = open("/dev/null", O_RDONLY);
    return fcntl(fd, F_SETLEASE, F_RDLCK) < 0 ? failed(env, "fcntl") : 0;
}

/* To outlive the daemon. */
static int do_outlive(struct rm_env *env)
{
    return prctl(PR_SET_PDEATHSIG, 0) < 0 ? failed(env, "prctl") : 0;
}

static int do_pin(struct rm_env *env)
{
    cpu_set_t all;
    if (sched_getaffinity(0, sizeof all, &all) < 0 || sched_setaffinity(0, sizeof all, &all) < 0)
        return failed(env, "sched_setaffinity of itself");
    if (sched_setaffinity(getppid(), sizeof all, &all) == 0)
        return 0;
    return failed(env, "sched_setaffinity");
}

static int do_look(struct rm_env *env)
{
    struct rlimit limit;
    return prlimit(getppid(), RLIMIT_NOFILE, NULL, &limit) < 0 ? failed(env, "prlimit") : 0;
}

/* Beyond what is its own of a mapping. */
static int do_grow(struct rm_env *env)
{
    void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mremap(p, 4096, 8192, MREMAP_MAYMOVE) == MAP_FAILED ? failed(env, "mremap") : 0;
}

/* --- for its own ----------------------------------------------------------------------------- */

static int do_umask(struct rm_env *env)
{
    (void)env;
    umask(0);
    return 0;
}

static int do_leave(struct rm_env *env)
{
    return chdir("/") < 0 ? failed(env, "chdir") : 0;
}

static int do_block(struct rm_env *env)
{
    sigset_t all;
    (void)env;
    sigfillset(&all);
    return pthread_sigmask(SIG_BLOCK, &all, NULL);
}

static int do_close(struct rm_env *env)
{
    (void)env;
    for (int fd = 0; fd < 1024; fd++)
        close(fd);
    return 0;
}

static int deep(volatile char *above) /* NOLINT(misc-no-recursion) ; that is the point */
{
    volatile char here[4096];
    if (above[0] == 1) /* it never is */
        return 0;
    here[0] = above[0];
    return deep(here) + here[0];
}

static int do_stack(struct rm_env *env)
{
    volatile char zero = 0;
    (void)env;
    return deep(&zero);
}

static int do_end_thread(struct rm_env *env)
{
    (void)env;
    pthread_exit(NULL);
}

static jmp_buf gone;

__attribute__((noinline)) static int set_mark(void)
{
    return setjmp(gone);
}

/* To where there is nobody any more. */
static int do_jump(struct rm_env *env)
{
    if (set_mark() == 0)
        longjmp(gone, 1);
    return do_fault(env);
}

static int do_unmap(struct rm_env *env)
{
    void *page = (void *)((uintptr_t)env->out->obs & ~(uintptr_t)4095);
    return munmap(page, 4096) < 0 ? failed(env, "munmap") : 0;
}

static int do_alarm(struct rm_env *env)
{
    (void)env;
    raise(SIGALRM);
    return 0;
}

static int do_stop(struct rm_env *env)
{
    (void)env;
    return raise(SIGSTOP);
}

/* Rounds down, flushes to zero, counts backwards, leaves the x87 registers full. */
static int do_numbers(struct rm_env *env)
{
    (void)env;
    fesetround(FE_DOWNWARD);
#ifdef __x86_64__
    __asm__ volatile("pxor %mm0, %mm0");
    unsigned control;
    __asm__ volatile("stmxcsr %0" : "=m"(control));
    control |= 0x8040;
    __asm__ volatile("ldmxcsr %0" : : "m"(control));
    __asm__ volatile("std");
#endif
    return 0;
}

static int do_locale(struct rm_env *env)
{
    const locale_t other = newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0);
    if (!setlocale(LC_ALL, "C.UTF-8") || !other)
        return failed(env, "setlocale");
    uselocale(other);
    return 0;
}

static int do_pause(struct rm_env *env)
{
    (void)env;
    return usleep(2000);
}

static int (*const acts[])(struct rm_env *) = {
    NULL,       do_thread,  do_read,  do_write,   do_memory, do_limit,   do_fault,      do_fork,
    do_socket,  do_program, do_kill,  do_abort,   do_exit,   do_hang,    do_share,      do_crowd,
    do_threads, do_config,  do_owner, do_async,   do_lease,  do_outlive, do_pin,        do_look,
    do_grow,    do_umask,   do_leave, do_block,   do_close,  do_stack,   do_end_thread, do_jump,
    do_unmap,   do_alarm,   do_stop,  do_numbers, do_locale, do_pause};
#define ACTS ((int)(sizeof acts / sizeof *acts))

static const struct rm_env_option_doc options[] = {
    {"create", 0, 0, 100, "which act in create()"},
    {"act", 0, 0, 100, "which act in step()"},
    {"at", 1, 0, 1e9, "at which step of the batch"},
    {"names", 0, 0, 5, "which names it has"},
    {NULL, 0, 0, 0, NULL},
};

static double option(const struct rm_env_config *config, const char *key, double fallback)
{
    for (uint32_t i = 0; i < config->option_count; i++)
        if (strcmp(config->options[i].key, key) == 0)
            return config->options[i].value;
    return fallback;
}

static int act(struct rm_env *env, int which)
{
    return which > 0 && which < ACTS ? acts[which](env) : 0;
}

/* Agents' names; NULL: there is no second one. */
static const char *const names_of_agents[][2] = {{"agent", NULL},    {"../../../../pwn", NULL},
                                                 {"a\033[2J", NULL}, {"a\nb", NULL},
                                                 {"twin", "twin"},   {"agent", NULL}};

static struct rm_env *rogue_create(const struct rm_env_config *config, char *error, size_t size)
{
    struct rm_env *env = calloc(1, sizeof *env);
    if (!env)
        return NULL;
    env->worlds = config->worlds;
    env->act = (int)option(config, "act", 0);
    env->at = (uint64_t)option(config, "at", 1);
    const int names = (int)option(config, "names", 0);
    for (int a = 0; a < 2; a++)
        env->agent[a] = (struct rm_env_agent){.name = names_of_agents[names][a],
                                              .dtype = RM_ENV_F32,
                                              .dims = 1,
                                              .shape = {1},
                                              .high = 1,
                                              .actions = 2};
    env->spec = (struct rm_env_spec){.abi_version = RM_ENV_ABI_VERSION,
                                     .struct_size = sizeof env->spec,
                                     .name = names == 5 ? "rogue\n" : "rogue",
                                     .doc = "mis\033]behaves",
                                     .agents = names_of_agents[names][1] ? 2 : 1,
                                     .phases = 1,
                                     .agent = env->agent,
                                     .score_low = NAN,
                                     .score_high = NAN,
                                     .score_random = NAN,
                                     .score_solved = NAN};
    if (option(config, "create", 0) == ACTS) { /* what a terminal would obey */
        snprintf(error, size, "\033]0;mine\007 \302\233 2J\nringctl: all is well");
        free(env);
        return NULL;
    }
    if (act(env, (int)option(config, "create", 0)) < 0) {
        snprintf(error, size, "%s", env->error);
        free(env);
        return NULL;
    }
    return env;
}

static const struct rm_env_spec *rogue_describe(const struct rm_env *env)
{
    return &env->spec;
}

static void show(const struct rm_env *env, const struct rm_env_buffers *out)
{
    const uint64_t row = env->step % (LENGTH + 1);
    for (uint32_t w = 0; w < env->worlds; w++) {
        const float place = (float)row / LENGTH;
        memcpy((char *)out->obs + (ptrdiff_t)w * out->obs_stride, &place, sizeof place);
        out->reward[w] = row > 0;
        out->flags[w] = row == 0 ? RM_ENV_FIRST : row == LENGTH ? RM_ENV_TERMINATED : 0;
    }
}

static int rogue_reset(struct rm_env *env, const struct rm_env_buffers *out)
{
    env->step = 0;
    show(env, out);
    return 0;
}

static int rogue_step(struct rm_env *env, uint32_t phase, const int32_t *const *actions,
                      const struct rm_env_buffers *out)
{
    (void)phase, (void)actions;
    env->step++;
    env->out = out;
    if (env->step == env->at) {
        int rc = act(env, env->act);
        if (rc < 0)
            return rc;
    }
    show(env, out);
    return 0;
}

static size_t rogue_state_size(const struct rm_env *env)
{
    (void)env;
    return 0;
}

static int rogue_no_state(struct rm_env *env, const void *state)
{
    (void)env, (void)state;
    return -ENOTSUP;
}

static int rogue_save_state(const struct rm_env *env, void *state)
{
    (void)env, (void)state;
    return -ENOTSUP;
}

static void rogue_close(struct rm_env *env)
{
    free(env);
}

static const char *rogue_last_error(const struct rm_env *env)
{
    return env->error;
}

/* With ROGUE_TELLS in the environment: which program has loaded it, and whether it is confined. */
__attribute__((constructor)) static void tell_who(void)
{
    char line[256], name[32] = "?", confined[8] = "?";
    FILE *in = getenv("ROGUE_TELLS") ? fopen("/proc/self/status", "r") : NULL;
    while (in && fgets(line, sizeof line, in)) {
        sscanf(line, "Name: %31s", name);
        sscanf(line, "NoNewPrivs: %7s", confined);
    }
    if (in) {
        fclose(in);
        fprintf(stderr, "rogue: loaded by %s, confined: %s\n", name, confined);
    }
}

__attribute__((visibility("default"))) const struct rm_env_ops *rm_env_entry(void);
const struct rm_env_ops *rm_env_entry(void)
{
    static const struct rm_env_ops ops = {.abi_version = RM_ENV_ABI_VERSION,
                                          .struct_size = sizeof ops,
                                          .name = "rogue",
                                          .options = options,
                                          .create = rogue_create,
                                          .describe = rogue_describe,
                                          .reset = rogue_reset,
                                          .step = rogue_step,
                                          .state_size = rogue_state_size,
                                          .save_state = rogue_save_state,
                                          .load_state = rogue_no_state,
                                          .close = rogue_close,
                                          .last_error = rogue_last_error};
    return &ops;
}
