/* A world that misbehaves as its options ask, to see what becomes of the process. */
#include "env.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LENGTH 10

struct rm_env {
    uint32_t worlds;
    int create, act;
    uint64_t at, step;
    struct rm_env_agent agent;
    struct rm_env_spec spec;
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

static int (*const acts[])(struct rm_env *) = {
    NULL,       do_thread, do_read,  do_write, do_memory, do_limit, do_fault, do_fork,   do_socket,
    do_program, do_kill,   do_abort, do_exit,  do_hang,   do_share, do_crowd, do_threads};
#define ACTS ((int)(sizeof acts / sizeof *acts))

static const struct rm_env_option_doc options[] = {
    {"create", 0, 0, 100, "which act in create()"},
    {"act", 0, 0, 100, "which act in step()"},
    {"at", 1, 0, 1e9, "at which step of the batch"},
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

static struct rm_env *rogue_create(const struct rm_env_config *config, char *error, size_t size)
{
    struct rm_env *env = calloc(1, sizeof *env);
    if (!env)
        return NULL;
    env->worlds = config->worlds;
    env->act = (int)option(config, "act", 0);
    env->at = (uint64_t)option(config, "at", 1);
    env->agent = (struct rm_env_agent){
        .name = "agent", .dtype = RM_ENV_F32, .dims = 1, .shape = {1}, .high = 1, .actions = 2};
    env->spec = (struct rm_env_spec){.abi_version = RM_ENV_ABI_VERSION,
                                     .struct_size = sizeof env->spec,
                                     .name = "rogue",
                                     .doc = "misbehaves",
                                     .agents = 1,
                                     .phases = 1,
                                     .agent = &env->agent,
                                     .score_low = NAN,
                                     .score_high = NAN,
                                     .score_random = NAN,
                                     .score_solved = NAN};
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
